"""What the assistant and its tools say to users and models, in both languages: the texts of ``words.json``."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from typing import Any, Final, Literal, TypeAlias

from SimpleLLMFunc.tools import Tool

Language: TypeAlias = Literal["zh", "en"]
"""Of the descriptions of tools, and of what they say."""

WORDS: Final[dict[str, Any]] = json.loads(files("SimpleLLMFunc.assistant").joinpath("words.json").read_text("utf-8"))
"""The texts by their place and language; the Chinese docstrings of the tools; the words that models use for operations and kinds."""

SPOKEN: Final = {"zh": "Simplified Chinese", "en": "English"}
"""What a model is told to write in."""


def localized(func: Callable[..., Any], language: Language, **options: Any) -> Tool:
    """Return a function as a tool, told to a model in its language: described by its docstring, or by the Chinese one of `WORDS`.

    Args:
        func: one made for this tool alone; its docstring is replaced.
        language: which of the two.
        **options: go to `Tool`.
    """
    if language == "zh":
        func.__doc__ = "\n".join(WORDS["tools in Chinese"][func.__name__])
    return Tool(func, **options)
