"""The options of `f.improve`, and the way to its search, which is in a room above this one."""

from __future__ import annotations

from os import PathLike
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

from SimpleLLMFunc.llm_decorator.improving.result import Improved
from SimpleLLMFunc.runtime import import_module

if TYPE_CHECKING:
    from SimpleLLMFunc.batch import Budget, Progress

F = TypeVar("F")

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


async def improved(function: F, cases: Any, options: ImproveOptions) -> Improved[F]:
    """Return what a search for a better form of the function found; see `AsyncFunctionViews.improve`."""
    await import_module(_ROOM)
    found: Improved[F] = await resolve_name(f"{_ROOM}:improved")(function, cases, **{**_DEFAULTS, **options})
    return found
