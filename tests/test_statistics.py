"""The formulas: against published values, and by simulation."""

from __future__ import annotations

import math
import random
from statistics import NormalDist, fmean

import pytest

from SimpleLLMFunc import UsageError
from SimpleLLMFunc.statistics import (
    calibration_error,
    mcnemar_exact,
    mean_interval,
    paired_permutation,
    paired_share_interval,
    score_interval,
    t_quantile,
    wilson_interval,
)

DARWIN = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
"""Differences in height between crossed and self-fertilised maize, in eighths of an inch."""


@pytest.mark.parametrize(
    ("successes", "count", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0000, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_as_newcombe_1998_table_1_has_it(successes, count, low, high):
    found = wilson_interval(successes, count)
    assert (found.low, found.high) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))
    mirrored = wilson_interval(count - successes, count)
    assert (mirrored.low, mirrored.high) == (pytest.approx(1 - found.high), pytest.approx(1 - found.low))


def test_paired_proportions_as_newcombe_1998_has_them():
    found = paired_share_interval(36, 2, 12, 0)
    assert (found.low, found.high) == (pytest.approx(0.0569, abs=5e-5), pytest.approx(0.3404, abs=5e-5))
    nothing = paired_share_interval(20, 0, 0, 0)
    assert nothing.low < 0 < nothing.high


@pytest.mark.parametrize(
    ("share", "freedom", "value"),
    [
        (0.975, 1, 12.706), (0.975, 2, 4.303), (0.975, 5, 2.571), (0.975, 10, 2.228), (0.975, 30, 2.042),
        (0.975, 120, 1.980), (0.95, 10, 1.812), (0.995, 4, 4.604), (0.9995, 3, 12.924), (0.5, 7, 0.0), (0.05, 10, -1.812),
    ],
)  # fmt: skip
def test_students_table(share, freedom, value):
    assert t_quantile(share, freedom) == pytest.approx(value, abs=5e-4)


def test_students_t_becomes_normal_and_is_exact_for_one_and_two():
    assert t_quantile(0.975, 100_000) == pytest.approx(NormalDist().inv_cdf(0.975), abs=1e-4)
    for share in (0.6, 0.9, 0.99):
        assert t_quantile(share, 1) == pytest.approx(math.tan(math.pi * (share - 0.5)), rel=1e-9)
        assert t_quantile(share, 2) == pytest.approx((2 * share - 1) / math.sqrt(2 * share * (1 - share)), rel=1e-9)


def test_a_mean_as_fisher_has_it_for_darwins_maize():
    low, high, method = mean_interval(DARWIN)
    assert (low, high) == (pytest.approx(0.03, abs=0.01), pytest.approx(41.84, abs=0.01))  # 20.93 +- 2.145 * 9.75
    assert method == "t"


def test_mcnemar_exact():
    # The example of R's exact2x2: 2 and 9 discordant pairs.
    assert mcnemar_exact(2, 9) == pytest.approx(0.06543, abs=5e-6)
    assert mcnemar_exact(9, 2) == mcnemar_exact(2, 9)
    assert mcnemar_exact(0, 0) == mcnemar_exact(4, 4) == 1.0
    assert mcnemar_exact(0, 10) == pytest.approx(2 / 1024)


def test_permutation_as_fisher_1935_counted_it():
    assert paired_permutation(DARWIN) == pytest.approx(1726 / 32768)
    assert paired_permutation([-each for each in DARWIN]) == pytest.approx(1726 / 32768)
    assert paired_permutation([]) == paired_permutation([0.0, 0.0]) == 1.0


def test_permutation_by_drawing_is_near_the_exact_one_and_repeats():
    padded = [*DARWIN, 1, -1, 2]  # beyond what is counted out
    assert paired_permutation(padded) == pytest.approx(0.053, abs=0.012)
    assert paired_permutation(padded) == paired_permutation(padded)
    assert paired_permutation(padded, seed=1) != paired_permutation(padded)
    assert paired_permutation([1.0] * 60) == pytest.approx(1 / 20_001)


def test_scores_choose_their_formula():
    assert score_interval([1, 0, 1]).method == "wilson"
    assert score_interval([0.5, 0.5]).method == "wilson"  # no spread seen is no proof of none
    assert score_interval([0.5, 0.5]).low < 0.5 < score_interval([0.5, 0.5]).high
    assert score_interval([0.5, 1.0, 0.7]).method == "t"
    assert score_interval([0.5, 1.0, 0.7]).high == 1.0
    assert score_interval([5, 7]).high > 7
    assert score_interval([0.4]) == wilson_interval(0.4, 1)
    assert score_interval([7]).method == "none"


def test_what_cannot_be():
    for of, arguments in (
        (wilson_interval, (3, 2)), (wilson_interval, (1, 2, 95)), (mean_interval, ([1, 2], 0)), (t_quantile, (1, 3)),
        (t_quantile, (0.9, 0)), (mcnemar_exact, (-1, 2)), (wilson_interval, (1, 2, "95")),
    ):  # fmt: skip
        with pytest.raises(UsageError):
            of(*arguments)


def test_the_calibration_error_is_the_gap_that_is_there_and_little_of_what_chance_adds():
    chance = random.Random(4)

    def mean_error(gap: float) -> float:
        shares = [[chance.uniform(0.35, 0.95) for _ in range(260)] for _ in range(60)]
        return fmean(calibration_error([(share, chance.random() < share - gap) for share in row]) for row in shares)

    # ten bins without the correction show 0.07 where there is none
    assert mean_error(0) < 0.04
    assert mean_error(0.3) == pytest.approx(0.3, abs=0.02)
    # where the middle third is wrong, neither fewer bins nor the correction may hide it
    middle = [(0.6, True)] * 20 + [(0.7, False)] * 20 + [(0.95, True)] * 20
    assert calibration_error(middle) == pytest.approx((0.4 + 0.7 + 0.05) / 3)
    assert calibration_error([(0.9, False)]) == pytest.approx(0.9)
