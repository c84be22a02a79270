"""What each family of Claude models takes, told from the name; a newer name counts as the newest one known.

Source: design notes on the wires, sections 1, 5, 10 and 12, from Anthropic's pages of 2026.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal


@dataclass(frozen=True, slots=True)
class Family:
    """What a model takes.

    Attributes:
        output: the most tokens it writes in one reply, thinking included.
        native: it answers under a JSON schema (`output_config.format`).
        sampling: it takes `temperature`, `top_p` and `top_k`.
        forced: it may be made to call a tool.
        thinking: "none", "budget" (tokens), "adaptive" (effort), or "both".
        off: how its thinking is switched off; None where it cannot be.
        is_bound: its thinking blocks are bound to all that stands before them.
    """

    output: int = 32_000
    native: bool = True
    sampling: bool = True
    forced: bool = True
    thinking: Literal["none", "budget", "adaptive", "both"] = "budget"
    off: Literal["disabled", "between_tools"] | None = "disabled"
    is_bound: bool = False


_UNKNOWN = Family(native=False)
"""Of another maker: a compatible server takes what it can, and says what it cannot."""

_NAME = re.compile(
    r"claude-(?:(?P<line>[a-z]+)-)?(?P<major>\d{1,2})(?:[-.](?P<minor>\d{1,2}))?(?!\d)(?:-(?P<late>[a-z]+))?"
)


@lru_cache(maxsize=256)
def family_of(model_name: str) -> Family:
    """Return what the model of this name takes."""
    found = _NAME.search(model_name.lower())
    if found is None:
        return _UNKNOWN
    line = found["line"] or found["late"] or ""
    version = (int(found["major"]), int(found["minor"] or 0))
    if version >= (5, 5) or (line == "fable" and version >= (5, 1)):
        off: Literal["between_tools"] | None = "between_tools" if line == "sonnet" else None
        return Family(128_000, sampling=False, forced=False, thinking="adaptive", off=off, is_bound=True)
    if version >= (4, 7):
        return Family(128_000, sampling=False, thinking="adaptive")
    if version >= (4, 6):
        return Family(128_000, thinking="both")
    if version >= (4, 5):
        return Family(64_000)
    if version >= (3, 7):
        return Family(32_000 if line == "opus" else 64_000, native=False)
    return Family(8_192 if version >= (3, 5) else 4_096, native=False, thinking="none")
