"""The arguments of a tool call with slips in their syntax, read by the one mender of JSON.

A call may have side effects. So what an answer may leave open is refused here: a missing brace, text without quotes, a
quote or a backslash inside a string that was not escaped.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from SimpleLLMFunc.base.parsing.json_node import Bare, Braced, Node, Open, holds, plain_value
from SimpleLLMFunc.base.parsing.json_text import bare_text
from SimpleLLMFunc.base.parsing.parsed import Repair
from SimpleLLMFunc.base.parsing.tolerant_json import TolerantReader

_GUESSES: Final = frozenset({"backslash was not escaped", "quotes inside a string were not escaped", "backticks"})


def mended_arguments(text: str) -> dict[str, Any] | None:
    """Return the object that the text is with its syntax mended; None where that would take a guess."""
    reader = TolerantReader(bare_text(text))
    try:
        node = reader.read(0)
        if not isinstance(node, dict) or not reader.is_at_end or not is_certain(node, reader.repairs):
            return None
        value: dict[str, Any] = plain_value(node)
    except (ValueError, RecursionError):
        return None
    return value


def is_certain(node: Node, repairs: Iterable[Repair]) -> bool:
    """Tell whether arguments that were mended are what the model meant, and no less."""
    return not holds(node, Bare, Open, Braced) and not any(map(_is_guess, repairs))


def _is_guess(repair: Repair) -> bool:
    path, what = repair
    # Two items of a list without a comma may be one; between pairs the next key shows where the comma is missing.
    return what in _GUESSES or (what == "missing comma" and path.endswith("]"))
