"""The arguments of the decorators, checked when they are given."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

from SimpleLLMFunc.base.metadata import FunctionKind
from SimpleLLMFunc.base.parsing import OutputMode, RepairLevel
from SimpleLLMFunc.base.run import Abort, EventSink, is_sink
from SimpleLLMFunc.config import speaks_chinese
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.wires import check_options
from SimpleLLMFunc.llm_decorator.steps.common.calibration import Calibration
from SimpleLLMFunc.llm_decorator.steps.common.types import Compact, GivenExamples, Thinking
from SimpleLLMFunc.logger import shown_value
from SimpleLLMFunc.utils import is_number

CHAT_ONLY = frozenset({"compact", "return_mode", "stream"})
FUNCTION_ONLY = frozenset({
    "calibration", "confidence", "escalate_to", "examples", "fallback", "fallback_reserve", "first", "improvement",
    "max_examples", "max_reasks", "min_agreement", "output_mode", "repair", "sample", "system_prompt_template",
    "think_first", "user_prompt_template", "vote_on", "votes",
})  # fmt: skip
_MODEL = "Say which model is asked as llm_interface=OpenAICompatible('gpt-5-mini')"
_DOCSTRING = "Write it as the docstring, which is the system prompt"
_ANNOTATION = "The return annotation says what comes back, output_mode= how it is asked for"
_PLACES: Mapping[str, str] = {
    **dict.fromkeys(("llm", "model", "model_name"), _MODEL),
    **dict.fromkeys(("instructions", "prompt", "system", "system_prompt"), _DOCSTRING),
    **dict.fromkeys(FUNCTION_ONLY, "It is an argument of @llm_function, not of @llm_chat"),
    **dict.fromkeys(CHAT_ONLY, "It is an argument of @llm_chat, not of @llm_function"),
    **dict.fromkeys(("functions", "function_call", "tool"), "Give tools and functions as toolkit=[...]"),
    "stream": "Call .stream(...) of the function; only @llm_chat has stream=True",
    **dict.fromkeys(("output_type", "response_format", "response_model", "result_type"), _ANNOTATION),
    **dict.fromkeys(("context", "deps"), "Give it as tool_context=, which tools read as .context of a ToolContext"),
    **dict.fromkeys(("output_retries", "retries"), "max_reasks= says how often a misfit is asked again"),
    "message_history": "A chat takes its history as an argument: @llm_chat",
    "improvement": "Give it to with_options(improvement=...): it is for one version of the function",
    "template_params": "Give it to with_options(template_params=...), or to the call as _template_params=",
}
"""For names that are no option here: what to write instead."""

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
        if isinstance(self.calibration, (str, os.PathLike)):
            object.__setattr__(self, "calibration", Calibration.load(self.calibration))  # read once
        given: Any = self  # callers are not all type-checked
        if isinstance(given.tools, Sequence) and not isinstance(given.tools, str):
            raise ConfigError(
                "tools= says how tools are offered: 'auto', 'native' or 'json'. Give them as toolkit=[...]."
            )
        for name in _RULES:
            check_option(name, getattr(given, name))
        _check_thinking(given.thinking)
        if self.sample and self.first is None and self.fallback is None:
            raise ConfigError("sample compares plain code with the model: give first= or fallback= as well.")
        own = [known.name for known in fields(self) if known.name != "llm_kwargs"]
        models = [name for name, value in self.llm_kwargs.items() if isinstance(value, LLM_Interface)]
        check_options(self.llm_kwargs, own, {**dict.fromkeys(models, _MODEL), **_PLACES})

    @property
    def sinks(self) -> tuple[EventSink, ...]:
        """The sinks that see every run of the function."""
        if self.watching is None:
            return ()
        return (self.watching,) if callable(self.watching) else tuple(self.watching)

    @property
    def params(self) -> Mapping[str, Any]:
        """The parameters of each request."""
        return self.llm_kwargs if self.thinking is None else {**self.llm_kwargs, "thinking": self.thinking}

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


def check_option(name: str, value: Any) -> None:
    """Return if an option that has a rule may have this value.

    Raises:
        ConfigError: it may not.
    """
    fits, wanted = _RULES[name]
    if not fits(value) and not (value is None and _DEFAULTS[name] is None):
        raise ConfigError(f"{name} must be {wanted}, not {shown_value(value, 120)}.")


def read_arguments(
    signature: inspect.Signature, args: tuple[Any, ...], options: Mapping[str, Any]
) -> tuple[Any, Options]:
    """Return the function that a decorator was given where it is used bare, else None; and its options.

    Args:
        signature: of the decorator.
        args: what it was called with.
        options: what it was called with, by name.
    """
    given = signature.bind(*args, **options)
    given.apply_defaults()
    first = given.arguments["llm_interface"]
    # A model class was meant as the model; for any other class the error says that it is no function.
    is_model = isinstance(first, LLM_Interface) or (isinstance(first, type) and issubclass(first, LLM_Interface))
    if not is_model and (callable(first) or isinstance(first, (classmethod, staticmethod))):
        return first, Options()
    return None, Options(**given.arguments)


def _is_count(value: Any) -> bool:
    return is_number(value, int) and value >= 0


def _is_model(value: object) -> bool:
    return isinstance(value, LLM_Interface)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _one_of(allowed: Sequence[object]) -> str:
    return f"one of {', '.join(map(repr, allowed))}"


_DEFAULTS: Mapping[str, Any] = {known.name: known.default for known in fields(Options)}
_CHOICES: Mapping[str, Sequence[object]] = {
    name: get_args(hint) for name, hint in get_type_hints(Options).items() if get_origin(hint) is Literal
}
_FITS: Sequence[tuple[str, Callable[[Any], bool], str]] = (
    *((name, allowed.__contains__, _one_of(allowed)) for name, allowed in _CHOICES.items()),
    ("llm_interface embeddings escalate_to", _is_model, "an LLM_Interface such as OpenAICompatible(...)"),
    ("max_tool_calls max_reasks retry_times max_result_chars max_examples", _is_count, "a whole number from 0 up"),
    ("votes", lambda given: _is_count(given) and 1 <= given <= MOST_VOTES, f"a whole number from 1 to {MOST_VOTES}"),
    ("deadline", lambda given: is_number(given) and given > 0, "seconds above 0, or None"),
    ("fallback_reserve", lambda given: is_number(given) and given >= 0, "seconds from 0 up"),
    ("min_agreement sample", lambda given: is_number(given) and 0 <= given <= 1, "a share from 0 to 1"),
    ("system_prompt_template user_prompt_template", _is_text, "text"),
    ("check_arguments think_first stream", lambda given: isinstance(given, bool), "True or False"),
    ("toolkit", _is_list, "a list of tools and functions"),
    ("vote_on", lambda given: _is_list(given) and all(map(_is_text, given)), "a list of field names"),
    ("first fallback compact toolkit_confirm", callable, "a function"),
    ("watching", lambda given: all(map(is_sink, given if _is_list(given) else [given])), "one sink or more, not async"),
    ("template_params", lambda given: isinstance(given, Mapping), "a mapping from the docstring's fields to values"),
    ("abort_signal", lambda given: isinstance(given, Abort), "an AbortSignal or an asyncio.Event"),
    ("examples", lambda given: isinstance(given, (Sequence, os.PathLike)), "a list of (arguments, value), or a path"),
    ("calibration", lambda given: isinstance(given, Calibration), "what f.calibrate() kept, or the path of it"),
)
"""Which values options take, and how an error says that; an option whose default is None takes None too."""
_RULES = {name: (fits, wanted) for names, fits, wanted in _FITS for name in names.split()}


def _check_thinking(value: object) -> None:
    known = (None, "off", "low", "medium", "high")
    # A mapping is a service's own form.
    if (_is_count(value) and value) or isinstance(value, Mapping) or value in known:
        return
    if speaks_chinese():
        raise ConfigError(f"thinking 只能是 {'、'.join(map(repr, known))} 或者一个 token 数，不能是 {value!r}。")
    raise ConfigError(f"thinking must be {_one_of(known)} or a number of tokens, not {value!r}.")
