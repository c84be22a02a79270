"""A choice asked for once, with the probability of each label: from the log-probabilities in the reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, WeakSet

from SimpleLLMFunc.base.events import ReActEvent
from SimpleLLMFunc.base.parsing import is_same_value
from SimpleLLMFunc.base.run import Result
from SimpleLLMFunc.errors import BadRequest, ConfigError
from SimpleLLMFunc.interface.llm_interface import LLM_Interface, answering_models
from SimpleLLMFunc.interface.wires import gives_logprobs
from SimpleLLMFunc.llm_decorator.answering.label_shares import label_shares
from SimpleLLMFunc.llm_decorator.function_pipeline import FunctionPipeline
from SimpleLLMFunc.llm_decorator.steps.common.calibration import Calibration
from SimpleLLMFunc.llm_decorator.steps.common.run import FunctionRun
from SimpleLLMFunc.logger import push_warning


class Question(NamedTuple):
    """A call of a function, which several runs may ask.

    Attributes:
        args: without an instance.
        kwargs: by name.
        emit: gets the events of all runs as they happen, if anybody reads them.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    emit: Callable[[ReActEvent], object] | None = None

    async def result(self, pipeline: FunctionPipeline, params: Mapping[str, Any]) -> tuple[Result[Any], FunctionRun]:
        """Ask a function, and return its result and its run; `params` go to the provider over those of the options."""
        run = pipeline.start(self.args, dict(self.kwargs), stream=self.emit is not None, params=params)
        return await pipeline.result_of(run, self.emit), run


_WITHOUT: WeakKeyDictionary[LLM_Interface, str] = WeakKeyDictionary()
"""The models that gave no log-probabilities though they were asked for, and what was said: the next call asks otherwise."""


class OneRequest:
    """Asks a function for one label, and reads from the reply how probable each label is.

    Args:
        pipeline: of a function that returns a choice, or ``Confident[...]`` of one.
    """

    def __init__(self, pipeline: FunctionPipeline) -> None:
        self._asked = pipeline
        self.output = pipeline.definition.output
        self._told: WeakSet[LLM_Interface] = WeakSet()

    @cached_property
    def pipeline(self) -> FunctionPipeline:
        """The pipeline of the same function that asks for a label."""
        return self._asked.with_options({"output_mode": "choice", "calibration": None})

    def params(self, llm: LLM_Interface) -> dict[str, Any]:
        """Return what asks a model for log-probabilities; empty where it gives none."""
        most = min(gives_logprobs(each, self._asked.options.params) for each in answering_models(llm))
        return {"logprobs": True, "top_logprobs": most} if most and not self.is_settled else {}

    @property
    def is_settled(self) -> bool:
        """Whether there is but one label, so that nothing is asked."""
        return len(self.output.labels) == 1

    @staticmethod
    def without(llm: LLM_Interface) -> str:
        """Return why a model that should give log-probabilities was seen to give none; empty where it was not."""
        return next((_WITHOUT[each] for each in answering_models(llm) if each in _WITHOUT), "")

    async def ask(
        self, question: Question, llm: LLM_Interface, calibration: Calibration | None
    ) -> tuple[Result[Any], dict[str, float]] | str:
        """Return the answer, and the share of each label, from 0 to 1, together 1; a text where the model gives no log-probabilities: why.

        Args:
            question: the call.
            llm: that is current, and gives log-probabilities.
            calibration: corrects the shares; None takes them as they are.
        """
        try:
            result, run = await question.result(self.pipeline, self.params(llm))
        except BadRequest as error:
            if "logprobs" not in f"{error.param} {error.body}".lower():
                raise
            return _remember(llm, error.body)
        labels = list(self.output.labels)
        written = labels.index(self.label_of(result.value))
        logprobs = run.reply.choices[0].logprobs if run.reply and run.reply.choices else None
        found = [1.0] if self.is_settled else label_shares(labels, written, logprobs)
        if found is None:
            return _remember(llm, "the reply shows no log-probabilities")
        if calibration is not None:
            if calibration.model not in {"", llm.model_name} and llm not in self._told:
                self._told.add(llm)
                push_warning(
                    f"the calibration of {calibration.function!r} was made with {calibration.model}, and {llm.model_name} "
                    "is asked: its shares are corrected as those of the other one. Calibrate again."
                )
            found = calibration.corrected(found)
        return result, dict(zip(labels, found, strict=True))

    def label_of(self, value: Any) -> str:
        """Return the label of a value of the return type."""
        return next(label for label in self.output.labels if is_same_value(self.output.labelled(label), value))

    def require(self, llm: LLM_Interface, what: str) -> None:
        """Return if a model gives log-probabilities.

        Raises:
            ConfigError: it does not.
        """
        name = self._asked.definition.name
        if self._asked.options.toolkit:
            raise ConfigError(f"{name}: {what} asks for one label, so it takes no toolkit.")
        if not self.params(llm) and not self.is_settled:
            raise ConfigError(
                f"{name}: {what} needs log-probabilities, and {llm.model_name} gives none "
                f"(profile {llm.profile.name!r}, wire {llm.wire_name!r}). Leave it out, ask a model that gives them (its profile "
                "has logprobs=20, say), or let one that reasons answer at once: thinking='off'."
            )


def _remember(llm: LLM_Interface, said: str) -> str:
    for each in answering_models(llm):
        _WITHOUT[each] = said
    push_warning(f"{llm.model_name} gives no log-probabilities, and is asked for votes instead: {said}")
    return said
