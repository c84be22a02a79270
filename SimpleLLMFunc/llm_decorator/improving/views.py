"""The view `improve` of a decorated function: of an async one, and the same behind the bridge."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from os import PathLike
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict, Unpack

from SimpleLLMFunc.llm_decorator.improving.result import Improved
from SimpleLLMFunc.logger import border
from SimpleLLMFunc.runtime import import_module, run_sync

if TYPE_CHECKING:
    from SimpleLLMFunc.batch import Budget, Progress

_ROOM = "SimpleLLMFunc.improve"
"""Above this one, and loaded when it is needed."""


class ImproveOptions(TypedDict, total=False):
    """The options of `f.improve`.

    Attributes:
        scorer: one, as for `evaluate`; the search makes its mean larger. "exact" is the default.
        budget: a number of requests, or a `budget(...)`; None, the default, is three requests for each case.
        proposer: a model that proposes other wordings of the docstring and of field descriptions, or a `Proposer`.
        seed: of the split and of random choices; 0 is the default.
        path: of the JSON file to write, for ``with_options(improvement=path)``. A search that was interrupted goes on
            from ``path + ".sqlite"``.
        concurrency: how many cases are asked at a time; "auto" is the default.
        progress: as for `map`.
    """

    scorer: Any
    budget: int | Budget | None
    proposer: Any
    seed: int
    path: str | PathLike[str] | None
    concurrency: int | Literal["auto"]
    progress: Progress


_DEFAULTS: ImproveOptions = {
    "scorer": "exact", "budget": None, "proposer": None, "seed": 0, "path": None, "concurrency": "auto", "progress": None,
}  # fmt: skip


class AsyncImproving:
    """The view of an async function."""

    @border
    def improve(
        self, cases: Iterable[Any] | str | PathLike[str], **options: Unpack[ImproveOptions]
    ) -> Coroutine[Any, Any, Improved[Self]]:
        """Look for examples, a calibration, an output mode and a prompt with which the function answers better; when awaited, what was found.

        The cases are split: examples come from one part, the search chooses by another, and a third part is asked once at
        the end, of the function as it was and as it was found. It is accepted where it is better there beyond chance.

        Args:
            cases: as for `SimpleLLMFunc.evaluate.evaluate`; at least 30.
            **options: see `ImproveOptions`.

        Raises:
            UsageError: fewer than 30 cases, or a budget that is too small; says which is wanted.
            SignatureError: a case does not fit the function.
        """
        work = _improved(self, cases, options)
        # Python's warning about a missing `await` then names what its reader wrote.
        name = f"{getattr(self, '__qualname__', '')}.improve"
        work.__qualname__ = name  # type: ignore[attr-defined]  # every coroutine has one
        return work


class Improving:
    """The view of a sync function."""

    @border
    def improve(self, cases: Iterable[Any] | str | PathLike[str], **options: Unpack[ImproveOptions]) -> Improved[Self]:
        """Look for a better form of the function, and return what was found; see `AsyncImproving.improve`."""
        return run_sync(_improved(self, cases, options))


async def _improved(function: Any, cases: Any, options: ImproveOptions) -> Improved[Any]:
    await import_module(_ROOM)
    found: Improved[Any] = await resolve_name(f"{_ROOM}:improved")(function, cases, **{**_DEFAULTS, **options})
    return found
