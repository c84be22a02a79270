"""What a model did not accept of a function, so that it is asked otherwise at once: remembered for that one function.

What one function's schema or tools cost, no other function pays: each finds out for itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal
from weakref import WeakKeyDictionary

from SimpleLLMFunc.base.json_action import JsonActions
from SimpleLLMFunc.base.parsing import OutputMode
from SimpleLLMFunc.base.request import ModelRequest
from SimpleLLMFunc.errors import BadRequest
from SimpleLLMFunc.interface.llm_interface import LLM_Interface, answering_models
from SimpleLLMFunc.interface.wires import refused_in, tool_name
from SimpleLLMFunc.logger import push_warning
from SimpleLLMFunc.type import ToolSpec, spec_name

_REFUSED: WeakKeyDictionary[LLM_Interface, dict[bytes, dict[str, str]]] = WeakKeyDictionary()
"""What a model has refused: by the schema or the tools that it was about, each way with the words of the service."""

_MOST = 1_000
"""Schemas that are remembered for one model; those of Calls may differ from one to the next."""


def refused_by(llm: LLM_Interface, about: Any) -> dict[str, str]:
    """Return the ways to ask that a model, or one of its members, has refused, each with the words of the service.

    Args:
        llm: the model.
        about: the schema of the answer, or the specs of the tools.
    """
    known = [told for model in answering_models(llm) if (told := _REFUSED.get(model))]
    if not known:
        return {}
    key = _key(about)
    return {way: said for told in known for way, said in dict(told.get(key, ())).items()}


def remember_refusal(error: BadRequest, llm: LLM_Interface, way: OutputMode | Literal["tools"], about: Any) -> None:
    """Note that the model that `error` names does not take a way to ask, and log it.

    Args:
        error: what the service said.
        llm: that was asked; of several models behind it the one that refused is meant.
        way: that was refused; "tools" are native tool calls.
        about: the schema of the answer, or the specs of the tools: others are asked for as before.
    """
    key = _key(about)
    models = answering_models(llm)
    for model in [each for each in models if each.model_name == error.model] or models:
        told = _REFUSED.setdefault(model, {})
        told[key] = {**told.get(key, {}), way: error.body}
        while len(told) > _MOST:
            told.pop(next(iter(told)), None)
    what = "native tool calls" if way == "tools" else f"output mode {way}"
    push_warning(f"{error.model} does not take {what} for this function, and is asked in another way: {error.body}")


def _key(about: Any) -> bytes:
    return hashlib.blake2b(json.dumps(about, default=repr).encode()).digest()


def refuses_mode(error: BadRequest, request: ModelRequest) -> bool:
    """Say whether an error means, beyond doubt, the output mode of a request."""
    refused = refused_in(error)
    if request.output_mode != "tool":
        return refused == "response_format" and request.response_format is not None
    if refused:
        # A `tool_choice` of the user's own is not ours to change.
        return refused == "tools" or (refused == "tool_choice" and "tool_choice" not in request.params)
    told = error.tool or tool_name(
        error.param, error.body, lambda: [spec_name(tool) for tool in request.wire(is_last=False)["tools"] or ()]
    )
    return told == request.answer_name


def json_actions(
    llm: LLM_Interface,
    specs: Sequence[ToolSpec] | None,
    answer_schema: Mapping[str, Any] | None = None,
    wanted: Literal["auto", "native", "json"] = "auto",
) -> JsonActions | None:
    """Return how tools are offered to a model that cannot call them; None if it can, or without tools.

    Args:
        llm: the model; what it has refused of these tools counts.
        specs: the tools, in wire form.
        answer_schema: of a typed answer, None for text.
        wanted: "native" and "json" decide for the model.
    """
    functions = [spec for spec in specs or () if "function" in spec]
    if not functions or wanted == "native":
        return None
    refused = refused_by(llm, specs)
    if wanted == "auto" and "tools" not in refused and llm.profile.tools == "native":
        return None
    has_schema = llm.profile.native and "native" not in {*refused, *refused_by(llm, answer_schema)}
    return JsonActions(functions, answer_schema, native=has_schema)


def downgrades_of(request: ModelRequest, *schemas: object) -> tuple[tuple[str, str], ...]:
    """Return what a request asks for in another way because the model refused the first one: `(what, said)`.

    Args:
        request: as it goes out.
        schemas: that of the answer, and the specs of the tools; None where the user said how to ask.
    """
    told = {way: said for about in schemas for way, said in refused_by(request.llm, about).items()}
    mode, actions = request.output_mode, request.actions
    found = []
    for way, said in told.items():
        if way == "tools":
            if actions is not None:
                found.append(("tools: JSON actions instead of native calls", said))
        elif way == mode == "choice":
            found.append(("output mode: choice in words instead of a schema", said))
        elif mode not in {"text", way}:
            found.append((f"output mode: {mode} instead of {way}", said))
        elif actions is not None and not actions.native:
            found.append(("tools: JSON actions in words instead of a schema", said))
    return tuple(found)
