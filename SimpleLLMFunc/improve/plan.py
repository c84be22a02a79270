"""Which case is for what, and how many candidates a budget is enough for; pure."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import NamedTuple

from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.evaluate.cases import CheckedCase
from SimpleLLMFunc.storage import canonical

FEWEST = 30
"""Cases below which no part is large enough to tell anything."""

_SHARES = (0.3, 0.3, 0.4)
_FIRST = 5
"""Cases of the first round, at least: one or two say nothing."""


class Parts(NamedTuple):
    """The cases of a search.

    Attributes:
        train: examples, and what a proposer sees, come from here.
        choice: candidates are compared here.
        held_out: the one that was chosen is tested here.
    """

    train: list[CheckedCase]
    choice: list[CheckedCase]
    held_out: list[CheckedCase]


class Round(NamedTuple):
    """One round: so many candidates have been asked for so many cases when it is over."""

    candidates: int
    cases: int


def parted(cases: Sequence[CheckedCase], seed: int) -> Parts:
    """Split the cases: 30 % train, 30 % choice, 40 % held out. Cases with equal arguments are in the same part.

    The order in which they were given does not matter.

    Raises:
        UsageError: there are too few, or too few that differ.
    """
    if len(cases) < FEWEST:
        raise UsageError(
            f"improve needs at least {FEWEST} cases, but got {len(cases)}. With fewer, no test shows anything."
        )
    equal: dict[bytes, list[CheckedCase]] = {}
    for case in cases:
        equal.setdefault(canonical(case.arguments), []).append(case)
    groups = [equal[key] for key in sorted(equal)]
    random.Random(seed).shuffle(groups)  # noqa: S311 - a split, no secret
    parts = Parts([], [], [])
    for group in groups:
        # Into the part that lacks most.
        lacking = [share * len(cases) - len(part) for share, part in zip(_SHARES, parts, strict=True)]
        parts[lacking.index(max(lacking))].extend(group)
    if not all(parts):
        raise UsageError(f"the {len(cases)} cases have only {len(groups)} different arguments. Give cases that differ.")
    return parts


def rounds(candidates: int, cases: int) -> list[Round]:
    """Return the rounds that leave the better half each time; every round asks for about twice as many cases.

    Source: successive halving, K. Jamieson and A. Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter
    Optimization" (2016).
    """
    counts = [candidates]
    while counts[-1] > 2:
        counts.append((counts[-1] + 1) // 2)
    found: list[Round] = []
    for number, count in enumerate(counts):
        seen = -(-cases // 2 ** (len(counts) - 1 - number))
        found.append(Round(count, max(min(_FIRST, cases), seen)))
    return found


def affordable(most: int, cases: int, questions: float) -> Round:
    """Return how many candidates can be compared on how many cases; on fewer where not even one is affordable.

    Args:
        most: candidates that there are.
        cases: of the choice part.
        questions: a candidate asked for a case is one.
    """
    for count in range(most, 0, -1):
        if _questions(rounds(count, cases)) <= questions:
            return Round(count, cases)
    return Round(1, min(cases, int(questions // 2)))


def _questions(plan: Sequence[Round]) -> int:
    """Return how many questions a plan takes, with the function as it was.

    Each round after the first may join two candidates to a new one.
    """
    total = (plan[0].candidates + 1) * plan[0].cases
    for before, now in itertools.pairwise(plan):
        total += (now.candidates + 1) * (now.cases - before.cases) + now.cases
    return total
