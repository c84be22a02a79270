"""Around a pipeline: votes, plain code before or in place of the model, a stronger model where votes are not clear.

`answered_by` says what answers the calls of a function: its pipeline, or what stands around it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from SimpleLLMFunc.base.schemas import field_descriptions
from SimpleLLMFunc.errors import ConfigError, SignatureError
from SimpleLLMFunc.llm_decorator.answering.plain_code import Agreement, Disagreement
from SimpleLLMFunc.llm_decorator.function_pipeline import FunctionPipeline
from SimpleLLMFunc.llm_decorator.steps.common.calibration import Calibration
from SimpleLLMFunc.logger import push_warning

if TYPE_CHECKING:  # loaded where a function has them: a start need not pay for what few use
    from SimpleLLMFunc.llm_decorator.answering.answering import Answering

__all__ = [
    "Agreement", "Answers", "Disagreement", "answered_by", "answering", "calibrating", "one_request", "votes", "voting",
]  # fmt: skip

_FOR_VOTES = ("votes", "min_agreement", "vote_on", "escalate_to", "confidence")

Answers: TypeAlias = "FunctionPipeline | Answering"
"""The object that answers the calls of a function; both have the same views."""


def _first(path: str) -> str:
    return path.partition(".")[0].partition("[")[0]


def answered_by(pipeline: FunctionPipeline, agreement: Agreement | None = None) -> Answers:
    """Return what answers the calls of a function: the pipeline, or votes and plain code around it.

    Args:
        pipeline: asks the model.
        agreement: continues to count; None begins at 0.

    Raises:
        ConfigError: the function does not vote, but has options for votes; `vote_on` names no field.
        SignatureError: plain code does not fit the function.
    """
    definition, options = pipeline.definition, pipeline.options
    given = [name for name in ("first", "fallback") if getattr(options, name) is not None]
    if given and definition.iterator_kind:
        raise SignatureError(
            f"{definition.name}: {given[0]}= is for a function that returns one value, not for an iterator."
        )
    calibration = options.calibration
    if calibration is not None or options.confidence == "logprobs":
        what = "calibration=" if calibration is not None else "confidence='logprobs'"
        if not definition.output.labels:
            raise ConfigError(f"{definition.name}: {what} is for a choice: bool, a Literal or an Enum.")
        if isinstance(calibration, Calibration):
            calibration.check(definition.name, list(definition.output.labels))
            if options.confidence == "votes":
                raise ConfigError(f"{definition.name}: calibration= corrects log-probabilities, not votes.")
    if not definition.confident_of:
        if told := [name for name in _FOR_VOTES if getattr(options, name) not in (None, "auto")]:
            raise ConfigError(f"{definition.name}: {', '.join(told)} is for a function annotated `-> Confident[...]`.")
        if not given and calibration is None:
            return pipeline
    elif options.llm_kwargs.get("temperature") == 0 and (options.votes or not definition.output.labels):
        push_warning(f"{definition.name!r} votes, and temperature=0 makes all votes the same.")
    fields = {_first(path) for path in field_descriptions(definition.output.schema)} if options.vote_on else set()
    if unknown := [name for name in options.vote_on or () if fields and _first(name) not in fields]:
        raise ConfigError(
            f"{definition.name}: vote_on names {unknown[0]!r}, and the fields are {', '.join(sorted(fields))}."
        )
    from SimpleLLMFunc.llm_decorator.answering.answering import Answering

    return Answering(pipeline, agreement or Agreement())
