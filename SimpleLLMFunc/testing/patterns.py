"""Texts that match a regular expression, for `SchemaLLM`: made by rstr, and checked before they are given out."""

from __future__ import annotations

import importlib
import random
import re
import string
from typing import Final

from SimpleLLMFunc.errors import ConfigError, UsageError, cut

_TRIES: Final = 1000


def text_matching(pattern: str, rng: random.Random, *, least: int = 0, most: int | None = None) -> str:
    """Return a text in which `pattern` is found, of `least` to `most` characters.

    Raises:
        ConfigError: rstr is not installed.
        UsageError: the pattern cannot be read, or no such text was found.
    """
    try:
        maker = importlib.import_module("rstr").Rstr(rng)
    except ImportError as error:
        raise ConfigError(
            f"SchemaLLM needs a text that matches {cut(pattern, 100)!r}. Give the field examples=[…], or run: "
            "pip install rstr"
        ) from error
    try:
        compiled = re.compile(pattern)
        for _ in range(_TRIES):
            text = _padded(maker.xeger(pattern), rng, compiled, least)
            if len(text) >= least and (most is None or len(text) <= most) and compiled.search(text):
                return text
    except Exception as error:
        raise UsageError(
            f"SchemaLLM cannot read the pattern {cut(pattern, 100)!r} ({error}). Give the field examples=[…]."
        ) from error
    room = f"{least} to {most} characters" if most is not None else f"at least {least} characters"
    raise UsageError(
        f"SchemaLLM found no text of {room} that matches {cut(pattern, 100)!r}. Give the field examples=[…]."
    )


def _padded(text: str, rng: random.Random, pattern: re.Pattern[str], least: int) -> str:
    """Return the text made longer where the pattern lets it be: it need not match from end to end."""
    if len(text) >= least:
        return text
    padding = "".join(rng.choices(string.ascii_lowercase, k=least - len(text)))
    return next((long for long in (text + padding, padding + text) if pattern.search(long)), text)
