"""How sure a score is, and whether two of them differ: the formulas, each with its source."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from statistics import NormalDist, fmean, stdev
from typing import Literal, NamedTuple, TypeVar

from SimpleLLMFunc.errors import UsageError

T = TypeVar("T")

_EXACT_UP_TO = 16
"""Pairs that differ up to which all assignments of signs are tried: 65,536."""

_DRAWS = 20_000
_TOLERANCE = 1e-12


class Interval(NamedTuple):
    """A confidence interval.

    Attributes:
        low, high: its ends.
        method: the formula; "none" where there is nothing to say.
    """

    low: float
    high: float
    method: Literal["wilson", "newcombe", "t", "bootstrap", "none"]


def wilson_interval(successes: float, count: int, confidence: float = 0.95) -> Interval:
    """Return the score interval of a proportion, `successes` of `count`.

    It stays within 0 and 1, and is no point where all or none succeeded.

    Source: E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference" (1927); method 3 in
    R. G. Newcombe, "Two-sided confidence intervals for the single proportion" (1998).
    """
    _check_confidence(confidence)
    if count <= 0:
        return Interval(0.0, 1.0, "none")
    if not 0 <= successes <= count:
        raise UsageError(f"{successes} of {count} is not a proportion.")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = successes / count
    middle = share + z * z / (2 * count)
    reach = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    below = 1 + z * z / count
    low = (middle - reach) / below if successes else 0.0
    high = (middle + reach) / below if successes < count else 1.0
    return Interval(low, high, "wilson")


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Return the interval of a mean: mean ± t(n - 1) · s / √n.

    One value alone says nothing about the spread: the interval is without bounds.

    Source: Student (W. S. Gosset), "The Probable Error of a Mean" (1908).
    """
    _check_confidence(confidence)
    if len(values) < 2:
        return Interval(-math.inf, math.inf, "none")
    mean = fmean(values)
    reach = t_quantile((1 + confidence) / 2, len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return Interval(mean - reach, mean + reach, "t")


def score_interval(scores: Sequence[float], confidence: float = 0.95) -> Interval:
    """Return the interval of the mean of scores, one for each case, at least one.

    Scores of 0 and 1 are a proportion (`wilson_interval`); others have `mean_interval`, cut to 0 and 1 where all scores
    lie there. Scores from 0 to 1 that are all the same have the interval of a proportion with that mean: no spread was
    seen, which does not mean that there is no spread, and a proportion has the widest spread for its mean.
    """
    is_share = all(0 <= score <= 1 for score in scores)
    if is_share and (all(score in {0, 1} for score in scores) or max(scores) - min(scores) < _TOLERANCE):
        return wilson_interval(math.fsum(scores), len(scores), confidence)
    low, high, method = mean_interval(scores, confidence)
    return Interval(max(0.0, low), min(1.0, high), method) if is_share else Interval(low, high, method)


def t_quantile(share: float, freedom: int) -> float:
    """Return the value below which Student's t with so many degrees of freedom lies with probability `share`."""
    if not 0 < share < 1 or freedom < 1:
        raise UsageError(f"there is no quantile {share} of Student's t with {freedom} degrees of freedom.")
    if share < 0.5:
        return -t_quantile(1 - share, freedom)
    low, high = 0.0, 1.0
    while _t_share(high, freedom) < share:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if middle in {low, high}:
            break
        low, high = (middle, high) if _t_share(middle, freedom) < share else (low, middle)
    return (low + high) / 2


def _t_share(value: float, freedom: int) -> float:
    """Return the probability that Student's t is below a value from 0 up.

    Source: the finite series for whole degrees of freedom, M. Abramowitz and I. A. Stegun, "Handbook of Mathematical
    Functions" (1964), 26.7.3 and 26.7.4.
    """
    angle, is_odd = math.atan(value / math.sqrt(freedom)), freedom % 2
    square = math.cos(angle) ** 2
    term, total = math.cos(angle) if is_odd else 1.0, 0.0
    for step in range(2 + is_odd, freedom + 1, 2):
        total += term
        term *= (step - 1) / step * square
        if term < total * 1e-17:
            break
    within = math.sin(angle) * total
    return (1 + (2 / math.pi * (angle + within) if is_odd else within)) / 2


def mcnemar_exact(only_first: int, only_second: int) -> float:
    """Return the two-sided p-value that two answers to the same cases are right equally often.

    Args:
        only_first: cases that only the first got right.
        only_second: cases that only the second got right.

    Source: the exact (binomial) form of Q. McNemar, "Note on the sampling error of the difference between correlated
    proportions" (1947).
    """
    if only_first < 0 or only_second < 0:
        raise UsageError("a number of cases must be 0 or more.")
    count, least = only_first + only_second, min(only_first, only_second)
    ways = sum(math.comb(count, number) for number in range(least + 1))
    return min(1.0, float(2 * ways / 2**count)) if count else 1.0


def paired_permutation(differences: Sequence[float], *, seed: int = 0) -> float:
    """Return the two-sided p-value that differences between pairs come from chance: their signs are flipped.

    With up to 16 differences that are not 0 all assignments of signs are counted. With more 20,000 are drawn, always
    the same for the same seed, and p is (1 + hits) / (1 + draws).

    Source: R. A. Fisher, "The Design of Experiments" (1935), section 21; for the draws B. Phipson and G. K. Smyth,
    "Permutation p-values should never be zero" (2010).
    """
    found = [difference for difference in differences if abs(difference) > _TOLERANCE]
    if not found:
        return 1.0
    observed = abs(math.fsum(found)) - _TOLERANCE
    if len(found) <= _EXACT_UP_TO:
        hits = sum(
            abs(math.fsum(sign * each for sign, each in zip(signs, found, strict=True))) >= observed
            for signs in itertools.product((1, -1), repeat=len(found))
        )
        return float(hits / 2 ** len(found))
    chance = random.Random(seed)  # noqa: S311 - a simulation
    hits = 0
    for _ in range(_DRAWS):
        bits = chance.getrandbits(len(found))
        total = math.fsum(each if bits >> number & 1 else -each for number, each in enumerate(found))
        hits += abs(total) >= observed
    return (1 + hits) / (1 + _DRAWS)


def _check_confidence(confidence: object) -> None:
    if not (isinstance(confidence, (int, float)) and 0 < confidence < 1):
        raise UsageError(f"confidence is a share between 0 and 1, such as 0.95, not {confidence!r}.")


def paired_share_interval(
    both: int, only_first: int, only_second: int, neither: int, confidence: float = 0.95
) -> Interval:
    """Return the interval of the difference of two proportions over the same cases, at least one: of the second minus the first.

    It is no point where the two never differ, or always in the same way.

    Args:
        both: cases that both got right.
        only_first: cases that only the first got right.
        only_second: cases that only the second got right.
        neither: cases that none got right.
        confidence: of the interval.

    Source: method 10 in R. G. Newcombe, "Improved confidence intervals for the difference between binomial proportions
    based on paired data" (1998).
    """
    count = both + only_first + only_second + neither
    first, second = (both + only_first) / count, (both + only_second) / count
    low_1, high_1, _ = wilson_interval(both + only_first, count, confidence)
    low_2, high_2, _ = wilson_interval(both + only_second, count, confidence)
    margins = (both + only_first) * (only_second + neither) * (both + only_second) * (only_first + neither)
    product = both * neither - only_first * only_second
    corrected = max(product - count / 2, 0.0) if product > 0 else product
    phi = corrected / math.sqrt(margins) if margins else 0.0
    below = (second - low_2) ** 2 - 2 * phi * (second - low_2) * (high_1 - first) + (high_1 - first) ** 2
    above = (high_2 - second) ** 2 - 2 * phi * (high_2 - second) * (first - low_1) + (first - low_1) ** 2
    difference = second - first
    return Interval(difference - math.sqrt(max(below, 0.0)), difference + math.sqrt(max(above, 0.0)), "newcombe")


_IN_A_BIN = 20
_MOST_BINS = 5


def calibration_error(answers: Sequence[tuple[float, bool]]) -> float:
    """Return the expected calibration error: how far the probability that is told lies from the share that is right.

    The answers, sorted by their probability, are cut into up to 5 bins of the same number, at least 20 in each where
    there are as many; the gaps of the bins are averaged, less what chance adds to them. Without that a perfect probability
    of 260 answers in ten bins shows 0.07. 0 is best, 1 worst. Few answers still make it too large.

    Args:
        answers: the probability of each answer, from 0 to 1, and whether it was right; at least one.

    Source: M. P. Naeini, G. F. Cooper, M. Hauskrecht, "Obtaining Well Calibrated Probabilities Using Bayesian Binning"
    (2015); bins of equal numbers as in J. Nixon et al., "Measuring Calibration in Deep Learning" (2019); the correction as
    in A. Kumar, P. Liang, T. Ma, "Verified Uncertainty Calibration" (2019), with the mean of a folded normal distribution.
    """
    ordered: list[tuple[float, float]] = []
    for share, same in itertools.groupby(sorted(answers), key=lambda answer: answer[0]):
        hits = [hit for _, hit in same]
        # of equal ones no bin takes the right ones and leaves the wrong ones
        ordered += [(share, fmean(hits))] * len(hits)
    count = len(ordered)
    bins = max(1, min(_MOST_BINS, count // _IN_A_BIN))
    edges = [round(number * count / bins) for number in range(bins + 1)]
    error = 0.0
    for low, high in itertools.pairwise(edges):
        rate = fmean(hit for _, hit in ordered[low:high])
        gap = abs(fmean(share for share, _ in ordered[low:high]) - rate)
        spread = math.sqrt(rate * (1 - rate) / (high - low))
        # The mean of |gap + chance|: as much as it exceeds the gap, the gap exceeds what it comes from.
        ratio = gap / spread if spread else math.inf
        tail = spread * math.sqrt(2 / math.pi) * math.exp(-ratio * ratio / 2)
        with_chance = tail + gap * math.erf(ratio / math.sqrt(2))
        error += (2 * gap - with_chance) * (high - low) / count
    return max(0.0, error)


def bootstrap_interval(items: Sequence[T], statistic: Callable[[Sequence[T]], float]) -> Interval:
    """Return the 95 % interval of a statistic: from samples of the items with replacement, always the same ones.

    Source: B. Efron, "Bootstrap Methods: Another Look at the Jackknife" (1979), the percentile interval.
    """
    chance = random.Random(0)  # noqa: S311 - a simulation
    found = sorted(statistic(chance.choices(items, k=len(items))) for _ in range(500))
    return Interval(found[12], found[-13], "bootstrap")  # without a fortieth of the samples on either side
