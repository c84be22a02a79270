"""What an assistant was given, checked when it is made: callers are not all type-checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from SimpleLLMFunc.assistant.words import SPOKEN
from SimpleLLMFunc.errors import ConfigError, cut
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.wires import check_options

_MODEL = "Say which model is asked as llm=OpenAICompatible('gpt-5-mini')"
_PLACES: Mapping[str, str] = {
    **dict.fromkeys(("llm_interface", "model", "model_name"), _MODEL),
    "max_tool_calls": "Write max_tool_rounds=",
    "response_format": "An assistant answers with text",
    "stream": "Call stream_query(...)",
    "toolkit": "Give tools and functions as tools=[...]",
}


_SECONDS = (lambda value: _is_number(value) and value > 0, "a number of seconds above 0")
_OPTIONAL = {"llm", "search", "tools", "detector", "toolkit_confirm", "system_prompt", "deadline"}
_WANTED: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "llm": (lambda value: isinstance(value, LLM_Interface), "a model such as OpenAICompatible(...) or LocalModel()"),
    "language": (lambda value: isinstance(value, str) and value in SPOKEN, '"zh" or "en"'),
    "search": (
        lambda value: not isinstance(value, type) and callable(getattr(value, "search", None)),
        "an object with `search(query)`, such as TavilySearch() or WikipediaSearch()",
    ),
    "detector": (lambda value: value == "model" or callable(value), 'a callable that takes the answer, or "model"'),
    "toolkit_confirm": (callable, "a callable that takes the tool's name and its arguments"),
    "system_prompt": (lambda value: isinstance(value, str), "text"),
    "tools": (
        lambda value: isinstance(value, Iterable) and not isinstance(value, str),
        "a list of tools and functions",
    ),
    "max_tool_rounds": (lambda value: _is_number(value, int) and value >= 0, "a whole number from 0 up"),
    "max_sessions": (lambda value: _is_number(value, int) and value >= 1, "a whole number from 1 up"),
    **dict.fromkeys(("memory_timeout", "search_timeout", "session_seconds", "deadline"), _SECONDS),
}
"""Each argument: whether a value can be used, and what it has to be."""


def _is_number(value: Any, kind: type | tuple[type, ...] = (int, float)) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def check_settings(given: Mapping[str, Any], params: Mapping[str, Any]) -> None:
    """Make sure that the arguments of an `AIAssistant` can be used.

    Args:
        given: the arguments by name.
        params: what goes to the provider.

    Raises:
        ConfigError: one of them cannot; it is named.
    """
    for name, (fits, wanted) in _WANTED.items():
        value = given[name]
        if not (value is None and name in _OPTIONAL) and not fits(value):
            shown = cut(repr(value), 60) if isinstance(value, (str, int, float)) else type(value).__name__
            raise ConfigError(f"{name}= is {wanted}, not {shown}.")
    check_options(params, [*_WANTED, "memory"], _PLACES)
