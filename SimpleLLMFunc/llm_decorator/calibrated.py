"""`f.calibrate`: a function asked about many rows, so that its probabilities can be corrected."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sized
from typing import TYPE_CHECKING, Any

from SimpleLLMFunc.batch import map_rows
from SimpleLLMFunc.batch.rows.rows import Rows
from SimpleLLMFunc.config import file_to_write
from SimpleLLMFunc.errors import ConfigError, UsageError
from SimpleLLMFunc.llm_decorator.answering import Agreement
from SimpleLLMFunc.llm_decorator.answering.answering import Answering
from SimpleLLMFunc.llm_decorator.answering.calibrating import corrector, cross_fitted, fitted, measured
from SimpleLLMFunc.llm_decorator.answering.one_request import OneRequest
from SimpleLLMFunc.llm_decorator.answering.voting import MIN_AGREEMENT, Voting
from SimpleLLMFunc.llm_decorator.function_pipeline import FunctionPipeline
from SimpleLLMFunc.llm_decorator.mapped import MappedFunction
from SimpleLLMFunc.llm_decorator.steps.common.calibration import Calibration, CalibrationReport
from SimpleLLMFunc.runtime import in_thread

if TYPE_CHECKING:
    from SimpleLLMFunc.batch import MapReport, RunOptions

LEAST_ROWS = 20

_PLAIN = {
    "confidence": "logprobs",
    **dict.fromkeys(("calibration", "votes", "vote_on", "escalate_to", "first", "fallback")),
    "sample": 0.0,
}
"""Options of a function that is asked once, and by nothing but its model."""


async def calibrate(
    pipeline: FunctionPipeline,
    rows: Rows,
    labels: Iterable[Any] | None,
    path: str | os.PathLike[str] | None,
    options: RunOptions | None = None,
    count: Callable[[MapReport[Any]], None] = lambda _: None,
) -> Calibration:
    """Ask a function once for each row, and return what corrects the probabilities of its labels.

    Args:
        pipeline: of a function that returns a choice, or ``Confident[...]`` of one.
        rows: as for `map`; at least 20.
        labels: the right answer to each row, as the function returns it or as its label. None takes the mean share of
            each label off, which makes all labels equally frequent: right where they are about that in the rows.
        path: where the calibration is kept, for ``with_options(calibration=path)``; None keeps it nowhere.
        options: of the map, its checkpoint among them.
        count: is called with the report of the map, before anything is made of it.

    Raises:
        ConfigError: the function returns no choice, or the model gives no log-probabilities; the file cannot be written.
        UsageError: there are too few rows, or not as many labels; a label that the function does not have.
    """
    definition, name = pipeline.definition, pipeline.definition.name
    output = definition.output
    if len(output.labels) < 2:
        raise ConfigError(f"{name}: calibrate() is for a choice between labels: bool, a Literal or an Enum.")
    right = None if labels is None else [_number_of(label, output, name) for label in labels]
    if isinstance(rows, Sized) and not isinstance(rows, str):
        _check_counts(name, len(rows), right)
    if path is not None:
        await in_thread(file_to_write, path)
    asked = asked_once(pipeline)
    given: RunOptions = options or {}
    report = await map_rows(asked, rows, **given)
    try:
        found = await in_thread(_found, report, count)
    finally:
        await in_thread(report.close)
    _check_counts(name, len(found), right)
    lost = [each for each in found if isinstance(each, Exception)]
    answered = [number for number, each in enumerate(found) if not isinstance(each, Exception)]
    if lost and len(answered) < LEAST_ROWS:
        raise lost[0]
    shares = [[found[number].probabilities[output.labelled(label)] for label in output.labels] for number in answered]
    known = None if right is None else [right[number] for number in answered]
    least = MIN_AGREEMENT if pipeline.options.min_agreement is None else pipeline.options.min_agreement
    fit, before, after = await in_thread(_made, shares, known, least)
    version = pipeline.with_options({"calibration": None}).metadata.version
    measured = CalibrationReport(len(answered), len(lost), before, after)
    model = asked.llm.model_name
    calibration = Calibration(name, tuple(output.labels), tuple(fit[0]), fit[1], model, version, measured)
    if path is not None:
        await in_thread(calibration.save, path)
    return calibration


def asked_once(pipeline: FunctionPipeline) -> MappedFunction[Any]:
    """Return what asks a function of a choice once for each row, for the shares of its labels as they are.

    Raises:
        ConfigError: its model gives no log-probabilities.
    """
    asked = pipeline.with_options(_PLAIN)
    answering = Answering(asked, Agreement())
    OneRequest(asked).require(asked.llm, "calibrate()")
    answering.voting = Voting(asked, is_confident=True)
    mapped = MappedFunction[Any](asked, answering)
    mapped.name += ".calibrate"  # in a checkpoint, no other version of what `map` asks
    return mapped


def _found(report: MapReport[Any], count: Callable[[MapReport[Any]], None]) -> list[Any]:
    count(report)
    if report.stopped is not None:
        raise report.stopped
    return [row.value if row.error is None else row.error for row in report.rows]


def _made(shares: Any, right: Any, least: float) -> Any:
    fit = fitted(shares, right)
    corrected = list(map(corrector(fit), shares)) if right is None else cross_fitted(shares, right)
    return fit, measured(shares, right, least), measured(corrected, right, least)


def _number_of(label: Any, output: Any, name: str) -> int:
    for number, known in enumerate(output.labels):
        value = output.labelled(known)
        if type(value) is type(label) and value == label:
            return number
    if isinstance(label, str) and label in output.labels:
        return list(output.labels).index(label)
    raise UsageError(f"{name}: {label!r} is not one of its labels: {', '.join(output.labels)}.")


def _check_counts(name: str, rows: int, right: list[int] | None) -> None:
    if right is not None and len(right) != rows:
        raise UsageError(f"{name}: there are {rows} rows and {len(right)} labels; each row needs one.")
    if rows < LEAST_ROWS:
        raise UsageError(f"{name}: calibrate() needs at least {LEAST_ROWS} rows, not {rows}.")
