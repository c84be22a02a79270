"""What the model behind an interface did not accept: remembered, so that it is asked otherwise at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal
from weakref import WeakKeyDictionary

from SimpleLLMFunc.base.json_action import JsonActions
from SimpleLLMFunc.errors import BadRequest
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.type import ToolSpec

__all__ = ["is_refusal", "json_actions", "refused_by", "remember_refusal"]

_REFUSED: WeakKeyDictionary[LLM_Interface, set[str]] = WeakKeyDictionary()
"""What a model behind an interface has refused: output modes, and "tools" for native tool calls."""

_REFUSAL_STATUS = {400, 404, 422}

# What a 400 says when it means the mode, and not something in the conversation.
_REFUSAL_WORDS = {
    "native": ("response_format", "json_schema", "response format", "structured output", "guided", "grammar"),
    "tool": ("tool", "function"),
}


def refused_by(llm: LLM_Interface) -> frozenset[str]:
    """Return what a model has refused so far: output modes, and "tools" for native tool calls."""
    return frozenset(_REFUSED.get(llm, ()))


def is_refusal(error: BadRequest, mode: str) -> bool:
    """Say whether an error means the way the answer was asked for, and not something in the conversation.

    Args:
        error: of the request.
        mode: the output mode that was asked for; "tool" for tools as well.
    """
    body = error.body.lower()
    return error.status in _REFUSAL_STATUS and any(word in body for word in _REFUSAL_WORDS.get(mode, ()))


def remember_refusal(llm: LLM_Interface, what: str) -> None:
    """Note that the model behind `llm` refused an output mode, or "tools"."""
    _REFUSED.setdefault(llm, set()).add(what)


def json_actions(
    llm: LLM_Interface,
    specs: Sequence[ToolSpec] | None,
    answer_schema: Mapping[str, Any] | None = None,
    wanted: Literal["auto", "native", "json"] = "auto",
) -> JsonActions | None:
    """Return how tools are offered to a model that cannot call them; None where it can, or there are none.

    Args:
        llm: the model; what it has refused counts.
        specs: the tools, in wire form.
        answer_schema: of a typed answer, None for text.
        wanted: "native" and "json" decide for the model.
    """
    if wanted == "auto":
        wanted = "json" if "tools" in refused_by(llm) else llm.profile.tools
    if not specs or wanted == "native":
        return None
    is_native = llm.profile.native and "native" not in refused_by(llm)
    return JsonActions(list(specs), answer_schema, native=is_native)
