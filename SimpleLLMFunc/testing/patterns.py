"""Texts that match a regular expression, for `SchemaLLM`: made by rstr, and checked before they are given out."""

from __future__ import annotations

import importlib
import random
import re
from typing import Final

from SimpleLLMFunc.errors import ConfigError, UsageError, cut

_ATTEMPTS: Final = 1000


def text_matching(pattern: str, rng: random.Random, *, least: int = 0, most: int | None = None) -> str:
    """Return a text in which `pattern` is found, of `least` to `most` characters.

    Raises:
        ConfigError: rstr is not installed.
        UsageError: the pattern cannot be read, or no such text was found.
    """
    shown = cut(pattern, 100)
    try:
        maker = importlib.import_module("rstr").Rstr(rng)
    except ImportError as error:
        raise ConfigError(
            f"SchemaLLM needs a text that matches {shown!r}. Give the field examples=[…], or run: pip install rstr"
        ) from error
    try:
        for _ in range(_ATTEMPTS):
            text: str = maker.xeger(pattern)
            if len(text) < least:
                text = text.ljust(least, "x")  # a pattern need not match from end to end
            if (most is None or len(text) <= most) and re.search(pattern, text):
                return text
    except Exception as error:
        raise UsageError(
            f"SchemaLLM cannot read the pattern {shown!r} ({error}). Give the field examples=[…]."
        ) from error
    room = f"at least {least}" if most is None else f"{least} to {most}"
    raise UsageError(
        f"SchemaLLM found no text of {room} characters that matches {shown!r}. Give the field examples=[…]."
    )
