"""What each family of Gemini models takes, told from the name; a newer name counts as the newest one known.

Source: design notes on the wires, sections 6, 10 and 12, from Google's pages of 2026.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from SimpleLLMFunc.interface.wires.asking import no_such_thinking


@dataclass(frozen=True, slots=True)
class GeminiFamily:
    """What a model takes.

    Attributes:
        thinking: "none", "budget" (tokens), or "level" (a word).
        off: what switches thinking off; None where it cannot be.
        words: the levels.
        sampling: it takes `temperature` and its like.
        signs: it refuses a call of the current turn without its signature.
        schema_with_tools: a schema for the answer and tools go together.
    """

    thinking: Literal["none", "budget", "level"] = "none"
    off: int | str | None = None
    words: tuple[str, ...] = ("low", "medium", "high")
    sampling: bool = True
    signs: bool = False
    schema_with_tools: bool = False


_NAME = re.compile(r"gemini-(\d+)(?:\.(\d+))?(?:-([a-z]+(?:-lite)?))?")
_BUDGETS = {"low": 2048, "medium": 8192, "high": 16_384}


def gemini_family(model_name: str) -> GeminiFamily:
    """Return what the model of this name takes."""
    found = _NAME.search(model_name.lower())
    version = tuple(map(int, (found[1], found[2] or 0) if found else (4, 0)))
    kind = (found[3] if found else "") or ""
    if version >= (3, 0):
        has_minimal = kind.startswith("flash") and (version <= (3, 6) or kind == "flash-lite")
        words = ("low", "high") if version == (3, 0) and kind == "pro" else ("low", "medium", "high")
        off = "minimal" if has_minimal else None
        return GeminiFamily("level", off, words, version < (4, 0), signs=True, schema_with_tools=True)
    if version >= (2, 5):
        return GeminiFamily("budget", None if kind == "pro" else 0)
    return GeminiFamily()


def thinking_config(thinking: object, model_name: str) -> dict[str, Any]:
    """Return `thinking` in the words that the model has.

    Raises:
        ConfigError: it has none for that; the error names those it has.
    """
    family = gemini_family(model_name)
    if thinking == "off":
        if family.thinking == "none":
            return {}
        if family.off is not None:
            return {"thinkingBudget": 0} if family.thinking == "budget" else {"thinkingLevel": family.off}
    elif family.thinking == "budget":
        is_number = isinstance(thinking, int) and not isinstance(thinking, bool) and thinking > 0
        budget = thinking if is_number else _BUDGETS.get(str(thinking))
        if budget is not None:
            return {"thinkingBudget": budget, "includeThoughts": True}
    elif family.thinking == "level" and thinking in family.words:
        return {"thinkingLevel": thinking, "includeThoughts": True}
    words = [] if family.thinking == "none" else list(family.words)
    if family.thinking == "budget":
        words.append("a number of tokens")
    has_off = family.off is not None or family.thinking == "none"
    raise no_such_thinking(model_name, thinking, words=words, off=has_off)
