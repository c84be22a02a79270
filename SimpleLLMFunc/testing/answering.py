"""A value in the form that a request wants: text, the arguments of the answer tool, or a JSON action."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from SimpleLLMFunc.base.schemas import ANSWER_TOOL
from SimpleLLMFunc.type import Message, ToolSpec, content_text

_ACTION: Final = "Reply with exactly one JSON object and nothing else:"


def tool_calls(*calls: tuple[str, Mapping[str, Any] | str], content: str | None = None) -> dict[str, Any]:
    """Return the reply of a model that calls tools: ``tool_calls(("search", {"q": "rain"}), ("clock", {}))``.

    Args:
        *calls: name and arguments of each call; a text is sent unchanged, even if it is not JSON.
        content: text of the model, in addition to the calls.
    """
    return {
        "role": "assistant",
        "content": content,
        "tool_calls": [
            {
                "type": "function",
                "function": {
                    "name": name,
                    "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False),
                },
            }
            for name, arguments in calls
        ],
    }


def answer_message(
    data: Any, messages: Sequence[Message], tools: Sequence[ToolSpec] | None, response_format: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the assistant message with `data`, JSON data, in the form that the request wants."""
    schema = schema_of(response_format)
    if answer_tool := answer_tool_of(tools):
        wanted = answer_tool["function"].get("parameters") or {}
        return tool_calls((ANSWER_TOOL, wrapped(data, wanted)))
    if asks_for_action(messages, response_format):
        data = {"answer": data}
    elif schema is not None:
        data = wrapped(data, schema)
    elif isinstance(data, str):
        return {"role": "assistant", "content": data}
    return {"role": "assistant", "content": json.dumps(data, ensure_ascii=False)}


def schema_of(response_format: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the JSON schema of a response format, None where it names none."""
    schema = ((response_format or {}).get("json_schema") or {}).get("schema")
    return schema if isinstance(schema, Mapping) else None


def answer_tool_of(tools: Sequence[ToolSpec] | None) -> ToolSpec | None:
    """Return the tool whose arguments are the answer: it is offered last."""
    last = tools[-1] if tools else None
    return last if last is not None and last["function"].get("name") == ANSWER_TOOL else None


def asks_for_action(messages: Sequence[Message], response_format: Mapping[str, Any] | None) -> bool:
    """Say whether a reply has to be a JSON action: ``{"tool": …}`` or ``{"answer": …}``."""
    if ((response_format or {}).get("json_schema") or {}).get("name") == "action":
        return True
    return any(
        message["role"] == "system" and _ACTION in (content_text(message["content"]) or "") for message in messages
    )


def wrapped(data: Any, schema: Mapping[str, Any]) -> Any:
    """Return `data` as ``{"value": data}`` where the schema asks for that."""
    properties = schema.get("properties") or {}
    if list(properties) != ["value"] or (isinstance(data, Mapping) and list(data) == ["value"]):
        return data
    return {"value": data}
