"""One tool, told to a model in its language."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from SimpleLLMFunc.assistant.words import WORDS, Language
from SimpleLLMFunc.tools import Tool


def localized(func: Callable[..., Any], language: Language, **options: Any) -> Tool:
    """Return a function as a tool: described by its docstring, or by the Chinese one of `WORDS`.

    Args:
        func: one made for this tool alone; its docstring is replaced.
        language: which of the two.
        **options: go to `Tool`.
    """
    if language == "zh":
        func.__doc__ = "\n".join(WORDS["tools in Chinese"][func.__name__])
    return Tool(func, **options)
