"""One tool, told to a model in its language."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from typing import Any, Final, Literal, TypeAlias

from SimpleLLMFunc.tools import Tool

Language: TypeAlias = Literal["zh", "en"]
"""Of the descriptions of tools, and of what they say."""

WORDS: Final[dict[str, Any]] = json.loads(
    files("SimpleLLMFunc.assistant.builtin").joinpath("words.json").read_text("utf-8")
)
"""What the tools say in each language, by tool; and the words that models use for operations and kinds."""

SPOKEN: Final = {"zh": "Simplified Chinese", "en": "English"}
"""What a model is told to write in."""


def localized(func: Callable[..., Any], language: Language, in_chinese: str, **options: Any) -> Tool:
    """Return a function as a tool: described by its docstring, or by the Chinese one given.

    Args:
        func: one made for this tool alone; its docstring is replaced.
        language: which of the two.
        in_chinese: a docstring with the same parameters.
        **options: go to `Tool`.
    """
    if language == "zh":
        func.__doc__ = in_chinese
    return Tool(func, **options)
