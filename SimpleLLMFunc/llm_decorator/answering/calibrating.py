"""A calibration from the shares of many rows: pure, no model near it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import fmean

from SimpleLLMFunc.llm_decorator.steps.common.calibration import LEAST_SHARE, Calibration, Estimate, Measured, softmax
from SimpleLLMFunc.statistics import bootstrap_interval, calibration_error, wilson_interval

Fit = tuple[list[float], float]
"""The biases and the temperature."""

_ROUNDS, _CLOSE = 300, 1e-6
_SLOPE_WEIGHT, _BIAS_WEIGHT = 1.0, 10.0
"""How much is kept of the temperature 1 and of the batch calibration: as much as this many rows say.

Chosen by the likelihood of held-out train and dev rows of four public choices and a model of 135 million parameters.
"""

_FOLDS = 5
_SHARPEST, _FLATTEST = 10.0, 0.01


def fitted(shares: Sequence[Sequence[float]], right: Sequence[int] | None = None) -> Fit:
    """Return the biases and the temperature that correct shares.

    Without labels the mean share of each label is taken off, and the temperature is 1. With labels both are fitted from
    there to what is most likely, the fewer rows the closer to it.

    Args:
        shares: of each row, in the order of the labels.
        right: the number of the right label of each row; None where they are not known.

    Source: H. Zhou et al., "Batch Calibration: Rethinking Calibration for In-Context Learning and Prompt Engineering"
    (2024); C. Guo et al., "On Calibration of Modern Neural Networks" (2017), with D. Böhning's bound of the curvature,
    "Multinomial logistic regression algorithm" (1992).
    """
    count = len(shares[0])
    means = [math.log(max(fmean(column), LEAST_SHARE)) for column in zip(*shares, strict=True)]
    if right is None:
        return [-mean for mean in means], 1.0
    scores = [[math.log(max(row[label], LEAST_SHARE)) - means[label] for label in range(count)] for row in shares]
    slope, biases = 1.0, [0.0] * count
    for _ in range(_ROUNDS):
        down, bend = 2 * _SLOPE_WEIGHT * (slope - 1), 2 * _SLOPE_WEIGHT
        pulls = [_BIAS_WEIGHT * bias for bias in biases]
        for row, own in zip(scores, right, strict=True):
            weights = softmax([slope * score + bias for score, bias in zip(row, biases, strict=True)])
            mean = math.fsum(weight * score for weight, score in zip(weights, row, strict=True))
            down += mean - row[own]
            bend += math.fsum(weight * (score - mean) ** 2 for weight, score in zip(weights, row, strict=True))
            for label, weight in enumerate(weights):
                pulls[label] += weight - (label == own)
        before = slope
        slope = min(_SHARPEST, max(_FLATTEST, slope - 0.5 * down / bend))
        step = 1 / (len(scores) / 2 + _BIAS_WEIGHT)
        biases = [bias - step * pull for bias, pull in zip(biases, pulls, strict=True)]
        if max(abs(slope - before), step * max(map(abs, pulls))) < _CLOSE:
            break
    return [bias - slope * mean for bias, mean in zip(biases, means, strict=True)], 1 / slope


def cross_fitted(shares: Sequence[Sequence[float]], right: Sequence[int]) -> list[list[float]]:
    """Return the shares of each row, corrected by a calibration from other rows."""
    corrected: list[list[float]] = [[] for _ in shares]
    for fold in range(_FOLDS):
        others = [number for number in range(len(shares)) if number % _FOLDS != fold]
        made = corrector(fitted([shares[number] for number in others], [right[number] for number in others]))
        for number in range(fold, len(shares), _FOLDS):
            corrected[number] = made(shares[number])
    return corrected


def corrector(fit: Fit) -> Callable[[Sequence[float]], list[float]]:
    """Return what corrects the shares of a row."""
    biases, temperature = fit
    return Calibration("", (), tuple(biases), temperature).corrected


def measured(shares: Sequence[Sequence[float]], right: Sequence[int] | None, min_agreement: float) -> Measured:
    """Return what shares are worth, each number with its interval."""
    tops = [max(range(len(row)), key=row.__getitem__) for row in shares]
    coverage = _share(sum(row[top] >= min_agreement - 1e-9 for row, top in zip(shares, tops, strict=True)), len(shares))
    if right is None:
        return Measured(coverage)
    hits = [(row[top], top == own) for row, top, own in zip(shares, tops, right, strict=True)]
    low, high, _ = bootstrap_interval(hits, calibration_error)
    error = Estimate(calibration_error(hits), low, high)
    return Measured(coverage, _share(sum(hit for _, hit in hits), len(hits)), error)


def _share(count: int, of: int) -> Estimate:
    low, high, _ = wilson_interval(count, of)
    return Estimate(count / of, low, high)
