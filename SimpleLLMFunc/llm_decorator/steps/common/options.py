"""The arguments of the decorators, checked when they are given."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

from SimpleLLMFunc.base.metadata import FunctionKind, code_version
from SimpleLLMFunc.base.parsing import OutputMode, RepairLevel
from SimpleLLMFunc.base.run import Abort, EventSink
from SimpleLLMFunc.config import speaks_chinese
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.wires import check_options
from SimpleLLMFunc.llm_decorator.steps.common.calibration import Calibration
from SimpleLLMFunc.llm_decorator.steps.common.types import Compact, GivenExamples, Thinking

CHAT_ONLY = frozenset({"compact", "return_mode", "stream"})
FUNCTION_ONLY = frozenset({
    "calibration", "confidence", "escalate_to", "examples", "fallback", "fallback_reserve", "first", "improvement",
    "max_examples", "max_reasks", "min_agreement", "output_mode", "repair", "sample", "system_prompt_template",
    "think_first", "user_prompt_template", "vote_on", "votes",
})  # fmt: skip
_MODEL = "Say which model is asked as llm_interface=OpenAICompatible('gpt-5-mini')"
_DOCSTRING = "Write it as the docstring, which is the system prompt"
_PLACES: Mapping[str, str] = {
    **dict.fromkeys(("llm", "model", "model_name"), _MODEL),
    **dict.fromkeys(("instructions", "system", "system_prompt"), _DOCSTRING),
    **dict.fromkeys(FUNCTION_ONLY, "It is an argument of @llm_function, not of @llm_chat"),
    **dict.fromkeys(CHAT_ONLY, "It is an argument of @llm_chat, not of @llm_function"),
    **dict.fromkeys(("functions", "function_call"), "Give tools and functions as toolkit=[...]"),
    "stream": "Call .stream(...) of the function; only @llm_chat has stream=True",
    "response_format": "The return annotation says what comes back, output_mode= how it is asked for",
    "improvement": "Give it to with_options(improvement=...): it is for one version of the function",
    "template_params": "Give it to with_options(template_params=...), or to the call as _template_params=",
}
"""Where names belong that are no option here."""

MOST_VOTES = 1000


@dataclass(frozen=True, slots=True)
class Options:
    """The arguments of `@llm_function` and `@llm_chat`; see there.

    Attributes:
        improvement: an `Improvement` that the pipeline has taken in.
        llm_kwargs: request parameters, and `extra_body`; they go to the provider.
    """

    llm_interface: LLM_Interface | None = None
    toolkit: Sequence[Any] | None = None
    max_tool_calls: int = 5
    system_prompt_template: str | None = None
    user_prompt_template: str | None = None
    output_mode: OutputMode = "auto"
    repair: RepairLevel = "coerce"
    max_reasks: int = 2
    retry_times: int = 2
    deadline: float | None = None
    on_tool_error: Literal["report", "raise"] = "report"
    max_result_chars: int = 65536
    toolkit_confirm: Callable[..., Any] | None = None
    template_params: Mapping[str, Any] | None = None
    tools: Literal["auto", "native", "json"] = "auto"
    tool_context: Any = None
    watching: EventSink | Sequence[EventSink] | None = None
    abort_signal: Abort | None = None
    check_arguments: bool = True
    examples: GivenExamples | None = None
    max_examples: int = 8
    votes: int | None = None
    min_agreement: float | None = None
    vote_on: Sequence[str] | None = None
    escalate_to: LLM_Interface | None = None
    confidence: Literal["auto", "logprobs", "votes"] = "auto"
    calibration: Calibration | str | os.PathLike[str] | None = None
    first: Callable[..., Any] | None = None
    fallback: Callable[..., Any] | None = None
    fallback_reserve: float = 0.5
    sample: float = 0.0
    compact: Compact | None = None
    stream: bool = False
    return_mode: Literal["text", "raw"] = "text"
    thinking: Thinking | None = None
    think_first: bool = False
    improvement: Any = None
    guards: Sequence[Callable[..., Any]] | None = None
    toolkit_search: bool | Callable[..., Any] | None = None
    embeddings: LLM_Interface | None = None
    llm_kwargs: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given: Any = self  # what was really given: callers are not all type-checked
        for name in ("llm_interface", "embeddings"):
            if (model := getattr(given, name)) is not None and not isinstance(model, LLM_Interface):
                raise ConfigError(
                    f"{name} must be an LLM_Interface such as OpenAICompatible(...) or LocalModel(), not {_kind_of(model)}."
                )
        _check_one_of("output_mode", self.output_mode, get_args(OutputMode))
        _check_one_of("repair", self.repair, get_args(RepairLevel))
        _check_one_of("on_tool_error", self.on_tool_error, ("report", "raise"))
        if isinstance(given.tools, Sequence) and not isinstance(given.tools, str):
            raise ConfigError(
                "tools= says how tools are offered: 'auto', 'native' or 'json'. Give them as toolkit=[...]."
            )
        _check_one_of("tools", self.tools, ("auto", "native", "json"))
        _check_one_of("return_mode", self.return_mode, ("text", "raw"))
        for name in ("max_tool_calls", "max_reasks", "retry_times", "max_result_chars", "max_examples"):
            value = getattr(given, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise ConfigError(f"{name} must be a whole number from 0 up, not {value!r}.")
        if given.deadline is not None and not (_is_number(given.deadline) and given.deadline > 0):
            raise ConfigError(f"deadline must be seconds above 0, or None, not {self.deadline!r}.")
        _check_thinking(given.thinking)
        for name in ("system_prompt_template", "user_prompt_template"):
            template = getattr(given, name)
            if template is not None and not isinstance(template, str):
                raise ConfigError(f"{name} must be text, not {type(template).__name__}.")
        for name in ("check_arguments", "think_first"):
            if not isinstance(getattr(given, name), bool):
                raise ConfigError(f"{name} must be True or False, not {getattr(given, name)!r}.")
        if given.toolkit is not None and (isinstance(given.toolkit, str) or not isinstance(given.toolkit, Sequence)):
            raise ConfigError(f"toolkit must be a list of tools and functions, not {type(self.toolkit).__name__}.")
        self._check_answering()
        own = [known.name for known in fields(self) if known.name != "llm_kwargs"]
        models = [name for name, value in self.llm_kwargs.items() if isinstance(value, LLM_Interface)]
        check_options(self.llm_kwargs, own, {**dict.fromkeys(models, _MODEL), **_PLACES})

    def _check_answering(self) -> None:
        """Check what says who answers: several votes, plain code."""
        given: Any = self
        _check_one_of("confidence", self.confidence, ("auto", "logprobs", "votes"))
        if isinstance(given.calibration, (str, os.PathLike)):
            object.__setattr__(self, "calibration", Calibration.load(given.calibration))  # read once
        elif given.calibration is not None and not isinstance(given.calibration, Calibration):
            raise ConfigError(
                f"calibration must be what f.calibrate() kept, or the path of it, not {_kind_of(given.calibration)}."
            )
        if given.votes is not None and (type(given.votes) is not int or not 1 <= given.votes <= MOST_VOTES):
            raise ConfigError(f"votes must be a whole number from 1 to {MOST_VOTES}, not {given.votes!r}.")
        for name in ("min_agreement", "sample"):
            value = getattr(given, name)
            if value is not None and not (_is_number(value) and 0 <= value <= 1):
                raise ConfigError(f"{name} must be a share from 0 to 1, not {value!r}.")
        if not (_is_number(given.fallback_reserve) and given.fallback_reserve >= 0):
            raise ConfigError(f"fallback_reserve must be seconds from 0 up, not {given.fallback_reserve!r}.")
        if given.escalate_to is not None and not isinstance(given.escalate_to, LLM_Interface):
            raise ConfigError(f"escalate_to must be an LLM_Interface, not {type(given.escalate_to).__name__}.")
        is_listed = isinstance(given.vote_on, Sequence) and not isinstance(given.vote_on, str)
        if given.vote_on is not None and not (is_listed and all(isinstance(name, str) for name in given.vote_on)):
            raise ConfigError(f"vote_on must be a list of field names, not {given.vote_on!r}.")
        for name in ("first", "fallback"):
            if (code := getattr(given, name)) is not None and not callable(code):
                raise ConfigError(f"{name} must be a function, not {type(code).__name__}.")
        if self.sample and self.first is None and self.fallback is None:
            raise ConfigError("sample compares plain code with the model: give first= or fallback= as well.")

    @property
    def sinks(self) -> tuple[EventSink, ...]:
        """Who watches every run of the function."""
        if self.watching is None:
            return ()
        return (self.watching,) if callable(self.watching) else tuple(self.watching)

    @property
    def params(self) -> Mapping[str, Any]:
        """What goes to the provider with each request."""
        return self.llm_kwargs if self.thinking is None else {**self.llm_kwargs, "thinking": self.thinking}

    @property
    def version_parts(self) -> list[Any]:
        """The prompt templates, as a part of the function's version; JSON data."""
        templates = {"system": self.system_prompt_template, "user": self.user_prompt_template}
        given = {name: text for name, text in templates.items() if text is not None}
        return [{"templates": given}] if given else []

    def answering_parts(self, *, votes: bool) -> dict[str, Any]:
        """Return by name what says who answers: votes, the stronger model, plain code; JSON data."""
        found: dict[str, Any] = {}
        if votes:
            found["votes"] = [self.votes, self.min_agreement, list(self.vote_on or ())]
            if self.confidence != "auto":
                found["votes"].append(self.confidence)
            found["escalate_to"] = self.escalate_to.model_name if self.escalate_to else ""
        if isinstance(self.calibration, Calibration):
            found["calibration"] = self.calibration.digest
        for kind, code in (("first", self.first), ("fallback", self.fallback)):
            if code is not None:
                found[kind] = code_version(code)
        return found

    def changed(self, options: Mapping[str, Any], kind: FunctionKind) -> Options:
        """Return these options with some of them changed; request parameters come over the earlier ones.

        Raises:
            ConfigError: one is no option of this kind of function, or has a value that it cannot have.
        """
        others = {"llm_kwargs", *(FUNCTION_ONLY if kind == "chat" else CHAT_ONLY)}
        names = {known.name for known in fields(self)} - others
        ours = {name: value for name, value in options.items() if name in names}
        theirs = {name: value for name, value in options.items() if name not in names}
        return replace(self, **ours, llm_kwargs={**self.llm_kwargs, **theirs})


def _kind_of(value: object) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _check_thinking(value: object) -> None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and value > 0
    known = (None, "off", "low", "medium", "high")
    if is_count or isinstance(value, Mapping) or value in known:  # a mapping is a service's own form
        return
    if speaks_chinese():
        raise ConfigError(f"thinking 只能是 {'、'.join(map(repr, known))} 或者一个 token 数，不能是 {value!r}。")
    _check_one_of("thinking", value, known, " or a number of tokens")


def _check_one_of(name: str, value: object, allowed: Sequence[object], more: str = "") -> None:
    if value not in allowed:
        raise ConfigError(f"{name} must be one of {', '.join(repr(one) for one in allowed)}{more}, not {value!r}.")
