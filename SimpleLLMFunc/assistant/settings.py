"""What an assistant was given, checked when it is made: callers are not all type-checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from SimpleLLMFunc.assistant.prompts import SYSTEM_PROMPT
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.wires import check_options

__all__ = ["check_settings"]

_MODEL = "Say which model is asked as llm=OpenAICompatible('gpt-5-mini')"
_PLACES: Mapping[str, str] = {
    **dict.fromkeys(("llm_interface", "model", "model_name"), _MODEL),
    "max_tool_calls": "Write max_tool_rounds=",
    "response_format": "An assistant answers with text",
    "stream": "Call stream_query(...)",
    "toolkit": "Give tools and functions as tools=[...]",
}


def check_settings(*, params: Mapping[str, Any], **given: Any) -> None:
    """Make sure that the arguments of an `AIAssistant` can be used.

    Args:
        params: what goes to the provider.
        **given: the arguments by name.

    Raises:
        ConfigError: one of them cannot; it is named.
    """
    if given["llm"] is not None and not isinstance(given["llm"], LLM_Interface):
        raise ConfigError(
            f"llm= is a model such as OpenAICompatible(...) or LocalModel(), not {type(given['llm']).__name__}."
        )
    if not isinstance(given["language"], str) or given["language"] not in SYSTEM_PROMPT:
        raise ConfigError(f'an assistant speaks "zh" or "en", not {given["language"]!r}.')
    search = given["search"]
    if search is not None and (isinstance(search, type) or not callable(getattr(search, "search", None))):
        raise ConfigError("search= is an object with `search(query)`, such as TavilySearch() or WikipediaSearch().")
    detector = given["detector"]
    if detector is not None and detector != "model" and not callable(detector):
        raise ConfigError('detector= is a callable that takes the answer, or "model".')
    _check_others(given)
    _check_numbers(given)
    check_options(params, given, _PLACES)


def _check_others(given: Mapping[str, Any]) -> None:
    if given["toolkit_confirm"] is not None and not callable(given["toolkit_confirm"]):
        raise ConfigError("toolkit_confirm= is a callable that takes the tool's name and its arguments.")
    if given["system_prompt"] is not None and not isinstance(given["system_prompt"], str):
        raise ConfigError(f"system_prompt= is text, not {type(given['system_prompt']).__name__}.")
    tools = given["tools"]
    if tools is not None and (isinstance(tools, str) or not isinstance(tools, Iterable)):
        raise ConfigError(f"tools= is a list of tools and functions, not {type(tools).__name__}.")


def _check_numbers(given: Mapping[str, Any]) -> None:
    for name, least in (("max_tool_rounds", 0), ("max_sessions", 1)):
        if not isinstance(given[name], int) or isinstance(given[name], bool) or given[name] < least:
            raise ConfigError(f"{name}= is a whole number from {least} up, not {given[name]!r}.")
    for name in ("memory_timeout", "search_timeout", "session_seconds", "deadline"):
        seconds = given[name]
        if name == "deadline" and seconds is None:
            continue
        if not isinstance(seconds, (int, float)) or isinstance(seconds, bool) or not seconds > 0:
            raise ConfigError(f"{name}= is a number of seconds above 0, not {seconds!r}.")
