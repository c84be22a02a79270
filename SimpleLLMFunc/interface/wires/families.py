"""What each family of models takes, told from the name; a newer name counts as the newest one known.

Source: design notes on the wires, sections 1, 5, 6, 10 and 12, from the services' pages of 2026.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from SimpleLLMFunc.config import speaks_chinese
from SimpleLLMFunc.errors import ConfigError

EFFORTS = ("low", "medium", "high")
_SAMPLING = ("temperature", "top_p", "top_k")
BUDGETS = {"low": 2048, "medium": 8192, "high": 16_384}
"""Tokens for thinking that a word means, for models that are given a number."""


def thinking_of(
    thinking: Any, model_name: str, *, words: Sequence[str], off: bool, least_budget: int | None = None
) -> str | int:
    """Return `thinking` where the model has it.

    Args:
        thinking: what was asked for.
        model_name: for the error.
        words: that it has, without "off".
        off: it can be switched off.
        least_budget: the fewest tokens that it takes as a budget; None where it takes no number.

    Raises:
        ConfigError: it has none of that; the error names what it has.
    """
    is_number = isinstance(thinking, int) and not isinstance(thinking, bool)
    is_budget = is_number and least_budget is not None and thinking >= least_budget
    if is_budget or thinking in words or (off and thinking == "off"):
        said: str | int = thinking
        return said
    has = ["None", *(["off"] if off else []), *words, *(["a number of tokens"] if least_budget is not None else [])]
    if speaks_chinese():
        raise ConfigError(f"{model_name} 没有 thinking={thinking!r}。可以写的是：{'、'.join(has)}。")
    raise ConfigError(f"{model_name} has no thinking={thinking!r}. It has: {', '.join(has)}.")


def budget_of(said: str | int) -> int:
    """Return the tokens that a checked `thinking` means."""
    return BUDGETS[said] if isinstance(said, str) else said


# --- OpenAI ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OpenAIFamily:
    """What a model takes.

    Attributes:
        thinks: it reasons before it answers; None for a model that is not OpenAI's, of which nothing is known.
        off: the effort that switches reasoning off; None where it cannot be.
    """

    thinks: bool | None = None
    off: str | None = "none"


_GPT = re.compile(r"(?:^|[/:])gpt-(\d+)(?:\.(\d+))?(?:-(\w+))?")
_O = re.compile(r"(?:^|[/:])o[134](?:-|$)")
_WHILE_IT_REASONS = ("temperature", "top_p", "top_logprobs", "logprobs")


def openai_family(model_name: str) -> OpenAIFamily:
    """Return what the model of this name takes."""
    name = model_name.lower()
    if _O.search(name):
        return OpenAIFamily(thinks=True, off=None)
    found = _GPT.search(name)
    if found is None:
        return OpenAIFamily()
    version, kind = (int(found[1]), int(found[2] or 0)), found[3] or ""
    if found[1].startswith("35") or version < (5, 0) or kind == "chat":
        return OpenAIFamily(thinks=False)
    if version < (5, 1):
        return OpenAIFamily(thinks=True, off="minimal")
    if (version >= (6, 0) and kind == "astra") or version == (6, 1) or kind in {"pro", "codex"}:
        return OpenAIFamily(thinks=True, off=None)
    return OpenAIFamily(thinks=True)


def effort_of(thinking: object, model_name: str) -> str:
    """Return the effort that `thinking` means; empty for "off" of a model that does not think.

    Raises:
        ConfigError: the model has no such word; the error names those it has.
    """
    family = openai_family(model_name)
    words = () if family.thinks is False else EFFORTS
    said = thinking_of(thinking, model_name, words=words, off=family.off is not None)
    if said == "off":
        return family.off or "" if words else ""
    return str(said)


def leave_out_sampling(params: dict[str, Any], model_name: str, effort: object) -> list[tuple[str, str]]:
    """Take out the sampling parameters that the model refuses, and return what is told of them.

    Args:
        params: of the request; changed.
        model_name: one that reasons takes none.
        effort: of its reasoning; with "none" it takes any parameter.
    """
    if effort == "none" or not openai_family(model_name).thinks:
        return []
    return omitted(params, "a model that reasons takes none", _WHILE_IT_REASONS)


def omitted(params: dict[str, Any], why: str, names: Sequence[str] = _SAMPLING) -> list[tuple[str, str]]:
    """Take parameters out of those of a request, and return what is told of them."""
    given = [name for name in names if params.pop(name, None) is not None]
    return [(f"sampling: {name} is left out", why) for name in given]


# --- Claude ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClaudeFamily:
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


_CLAUDE = re.compile(
    r"claude-(?:(?P<line>[a-z]+)-)?(?P<major>\d{1,2})(?:[-.](?P<minor>\d{1,2}))?(?!\d)(?:-(?P<late>[a-z]+))?"
)


def claude_family(model_name: str) -> ClaudeFamily:
    """Return what the model of this name takes."""
    found = _CLAUDE.search(model_name.lower())
    if found is None:  # of another maker: a compatible server takes what it can, and says what it cannot
        return ClaudeFamily(native=False)
    line = found["line"] or found["late"] or ""
    version = (int(found["major"]), int(found["minor"] or 0))
    if version >= (5, 5) or (line == "fable" and version >= (5, 1)):
        off: Literal["between_tools"] | None = "between_tools" if line == "sonnet" else None
        return ClaudeFamily(128_000, sampling=False, forced=False, thinking="adaptive", off=off, is_bound=True)
    if version >= (4, 7):
        return ClaudeFamily(128_000, sampling=False, thinking="adaptive")
    if version >= (4, 6):
        return ClaudeFamily(128_000, thinking="both")
    if version >= (4, 5):
        return ClaudeFamily(64_000)
    if version >= (3, 7):
        return ClaudeFamily(32_000 if line == "opus" else 64_000, native=False)
    return ClaudeFamily(8_192 if version >= (3, 5) else 4_096, native=False, thinking="none")


# --- Gemini ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GeminiFamily:
    """What a model takes.

    Attributes:
        thinking: "none", "budget" (tokens), or "level" (a word).
        off: what switches thinking off; None where it cannot be.
        words: the levels.
        sampling: it takes `temperature` and its like.
        signs: it refuses a call of the current turn without its signature.
        schema_with_tools: a schema for the answer and tools go together, and so do tools of both kinds.
    """

    thinking: Literal["none", "budget", "level"] = "none"
    off: int | str | None = None
    words: tuple[str, ...] = EFFORTS
    sampling: bool = True
    signs: bool = False
    schema_with_tools: bool = False


_GEMINI = re.compile(r"gemini-(\d+)(?:\.(\d+))?(?:-([a-z]+(?:-lite)?))?")


def gemini_family(model_name: str) -> GeminiFamily:
    """Return what the model of this name takes."""
    found = _GEMINI.search(model_name.lower())
    major, minor, kind = (found[1], found[2] or "0", found[3] or "") if found else ("4", "0", "")
    version = (int(major), int(minor))
    if version >= (3, 0):
        has_minimal = kind.startswith("flash") and (version <= (3, 6) or kind == "flash-lite")
        words = ("low", "high") if version == (3, 0) and kind == "pro" else EFFORTS
        off = "minimal" if has_minimal else None
        return GeminiFamily("level", off, words, version < (4, 0), signs=True, schema_with_tools=True)
    if version >= (2, 5):
        return GeminiFamily("budget", None if kind == "pro" else 0)
    return GeminiFamily()
