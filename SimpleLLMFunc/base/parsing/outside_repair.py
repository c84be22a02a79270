"""The last resort for damaged JSON: json-repair, and a check that it neither made anything up nor lost anything."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from SimpleLLMFunc.base.parsing.json_node import Node, decode_strictly

__all__ = ["LONGEST", "repair_outside"]

LONGEST: Final = 4 * 1024
"""Characters; the repair takes quadratic time, a second for twice as many of the worst kind."""

_CONTENT: Final = re.compile(r"[^\s\"'`,，:：{}\[\]()\\“”‘’]+")
_BRACKETS: Final = "{}[]"
_LITERALS: Final[dict[str, str]] = {"None": "null", "True": "true", "False": "false"}


def repair_outside(text: str) -> Node | None:
    """Return the repaired JSON object or list, or None where the repair cannot be trusted.

    Every word and number of the source must be there, in the same order, and nothing else, and as many brackets of
    each kind: so no value was made up, cut or left out, and nothing was closed that the text leaves open.
    """
    import json_repair  # slow to import, rarely needed

    if len(text) > LONGEST:
        return None
    try:
        repaired: Any = json_repair.loads(text, skip_json_loads=True)
        dumped = json.dumps(repaired, ensure_ascii=False)
    except (ValueError, TypeError, RecursionError, IndexError, KeyError):
        return None
    if not isinstance(repaired, dict | list) or not repaired or _content(text) != _content(dumped):
        return None
    if '\\"' in dumped:
        # a quote inside a string: where the string ends would be the repair's guess
        return None
    if any(text.count(bracket) != dumped.count(bracket) for bracket in _BRACKETS):
        return None
    return decode_strictly(dumped)


def _content(text: str) -> str:
    words: list[str] = _CONTENT.findall(text)
    return " ".join(_LITERALS.get(word, word) for word in words)
