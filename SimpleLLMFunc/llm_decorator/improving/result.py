"""The options of `f.improve` and its outcome; the search itself is in a room above this one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, TypeVar

from SimpleLLMFunc.errors import cut
from SimpleLLMFunc.interface.spending import Spent
from SimpleLLMFunc.llm_decorator.improving.patch import source_patch
from SimpleLLMFunc.runtime import import_module

if TYPE_CHECKING:
    from SimpleLLMFunc.batch import Budget, Progress

F = TypeVar("F")
F_co = TypeVar("F_co", covariant=True)

_ROOM = "SimpleLLMFunc.improve"
"""Above this one, and loaded when it is needed."""


@dataclass(frozen=True, slots=True)
class Change:
    """One changed part of a function.

    Attributes:
        what: "examples", "calibration", "output mode", "think first", "prompt", "docstring" or "descriptions".
        was: before, in words.
        now: in words.
    """

    what: str
    was: str
    now: str

    def __str__(self) -> str:
        was, now = (cut(" ".join(text.split()), 200) for text in (self.was, self.now))
        return f"{self.what}: {was} -> {now}"


@dataclass(frozen=True)
class Improved(Generic[F_co]):
    """The outcome of `f.improve`.

    Attributes:
        function: the better function where `accepted`, else the function as it was.
        accepted: on the held-out cases it is better, and that is no chance (p < 0.05).
        before, after: mean score on the held-out cases, of the function as it was and as the search found it; nan where no
            held-out case was answered.
        interval: of the difference, 95 %.
        p_value: of the paired test, two-sided.
        changes: what is different now; empty where nothing was accepted.
        spent: requests, tokens and money of the whole search, an interrupted part of it included.
        why: one sentence that says why it was accepted, or not.
        report: the content of the file as JSON data, with all attempts.
    """

    function: F_co
    accepted: bool
    before: float
    after: float
    interval: tuple[float, float]
    p_value: float
    changes: tuple[Change, ...]
    spent: Spent
    why: str
    report: Mapping[str, Any] = field(repr=False)

    def diff(self) -> str:
        """Return the change of docstring, examples and output mode as a patch of the source file, for `git apply`.

        What has no place in the source of the function (descriptions of fields, a calibration) is left out and stays in
        the file.
        Empty where nothing was accepted.

        Raises:
            UsageError: the source cannot be found or changed; says why.
        """
        function: Any = self.function
        return source_patch(function.__wrapped__, self.report["options"]) if self.accepted else ""

    def __str__(self) -> str:
        held, choice = self.report["held_out"], self.report["choice"]
        low, high = self.interval
        parts = {"held out": held, "choice": choice}
        lines = [
            f"{self.report['function']}: {self.why}",
            *(
                f"  {name:8}  {part['cases']:4} cases  {_score(part['before'])} -> {_score(part['after'])}"
                for name, part in parts.items()
            ),
            f"  difference on the held-out part {_points(held['difference'])} ({low:+.3f} .. {high:+.3f}), p = {self.p_value:.3g}",
            "  the search chose by the choice part: that score flatters what was found",
            *(f"  {change}" for change in self.changes),
            f"  {len(self.report['tried'])} forms tried, {self.spent.requests} requests",
        ]
        return "\n".join(lines)


def _score(score: Mapping[str, Any] | None) -> str:
    return "-" if score is None else f"{score['mean']:.3f} ({score['low']:.3f} .. {score['high']:.3f})"


def _points(difference: float | None) -> str:
    return "-" if difference is None else f"{difference:+.3f}"


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


async def improved(function: F, cases: Any, options: ImproveOptions) -> Improved[F]:
    """Return what a search for a better form of the function found; see `AsyncFunctionViews.improve`."""
    await import_module(_ROOM)
    found: Improved[F] = await resolve_name(f"{_ROOM}:improved")(function, cases, **options)
    return found
