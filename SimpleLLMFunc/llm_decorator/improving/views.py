"""The view `improve` of a decorated function: of an async one, and the same behind the bridge."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from os import PathLike
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from SimpleLLMFunc.llm_decorator.improving.result import Improved
from SimpleLLMFunc.logger import border
from SimpleLLMFunc.runtime import import_module, run_sync

if TYPE_CHECKING:
    from SimpleLLMFunc.batch import Budget, Progress

_ROOM = "SimpleLLMFunc.improve"
"""Above this one, and loaded when it is needed."""


class AsyncImproving:
    """The view of an async function."""

    @border
    def improve(
        self,
        cases: Iterable[Any] | str | PathLike[str],
        *,
        scorer: Any = "exact",
        budget: int | Budget | None = None,
        proposer: Any = None,
        seed: int = 0,
        path: str | PathLike[str] | None = None,
        concurrency: int | Literal["auto"] = "auto",
        progress: Progress = None,
    ) -> Coroutine[Any, Any, Improved[Self]]:
        """Look for examples, a calibration, an output mode and a prompt with which the function answers better; when awaited, what was found.

        The cases are split: examples come from one part, the search chooses by another, and a third part is asked once at
        the end, of the function as it was and as it was found. It is accepted where it is better there beyond chance.

        Args:
            cases: as for `SimpleLLMFunc.evaluate.evaluate`; at least 30.
            scorer: one, as for `evaluate`; what is made larger is its mean.
            budget: a number of requests, or a `budget(...)`; None is three requests for each case.
            proposer: a model that proposes other wordings of the docstring and of field descriptions, or a `Proposer`.
            seed: of the split and of what is drawn.
            path: of the JSON file to write, for ``with_options(improvement=path)``. A search that was interrupted goes on
                from ``path + ".sqlite"``.
            concurrency: how many cases are asked at a time.
            progress: as for `map`.

        Raises:
            UsageError: fewer than 30 cases, or a budget that is too small; says which is wanted.
            SignatureError: a case does not fit the function.
        """
        return _found(self, cases, locals())


class Improving:
    """The view of a sync function."""

    @border
    def improve(
        self,
        cases: Iterable[Any] | str | PathLike[str],
        *,
        scorer: Any = "exact",
        budget: int | Budget | None = None,
        proposer: Any = None,
        seed: int = 0,
        path: str | PathLike[str] | None = None,
        concurrency: int | Literal["auto"] = "auto",
        progress: Progress = None,
    ) -> Improved[Self]:
        """Look for a better form of the function, and return what was found; see `AsyncImproving.improve`."""
        return run_sync(_found(self, cases, locals()))


def _found(function: Any, cases: Any, given: dict[str, Any]) -> Coroutine[Any, Any, Improved[Any]]:
    options = {name: value for name, value in given.items() if name not in {"self", "cases"}}
    work: Any = _improved(function, cases, options)
    work.__qualname__ = f"{function.__qualname__}.improve"  # as Python names it where an `await` is missing
    return cast("Coroutine[Any, Any, Improved[Any]]", work)


async def _improved(function: Any, cases: Any, options: dict[str, Any]) -> Improved[Any]:
    await import_module(_ROOM)
    found: Improved[Any] = await resolve_name(f"{_ROOM}:improved")(function, cases, **options)
    return found
