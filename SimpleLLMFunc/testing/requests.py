"""What a request to a test double wants, an answer in that form, and the request as text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from SimpleLLMFunc.base.schemas import ANSWER_TOOL
from SimpleLLMFunc.errors import UsageError, cut
from SimpleLLMFunc.interface.wires import schema_of
from SimpleLLMFunc.logger import redact
from SimpleLLMFunc.type import Message, ToolSpec, content_text

_ACTION: Final = "Reply with exactly one JSON object and nothing else:"
_MOST_CHARS: Final = 4000


def tool_calls(*calls: tuple[str, Mapping[str, Any] | str], content: str | None = None) -> dict[str, Any]:
    """Return the reply of a model that calls tools: ``tool_calls(("search", {"q": "rain"}), ("clock", {}))``.

    Args:
        *calls: name and arguments of each call; a text is sent unchanged, even if it is not JSON.
        content: text of the model, in addition to the calls.

    Raises:
        UsageError: a call is no pair of a name and arguments.
    """
    made: list[dict[str, Any]] = []
    call: Any
    for call in calls:
        if isinstance(call, str) or len(call) != 2:
            raise UsageError(
                f'a call is its name and its arguments, such as ("search", {{"q": "rain"}}), not {call!r}.'
            )
        name, arguments = call
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        made.append({"type": "function", "function": {"name": name, "arguments": text}})
    return {"role": "assistant", "content": content, "tool_calls": made}


def answer_message(
    data: Any, messages: Sequence[Message], tools: Sequence[ToolSpec] | None, response_format: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the assistant message with `data`, JSON data, in the form that the request wants."""
    if answer_tool := answer_tool_of(tools):
        return tool_calls((ANSWER_TOOL, wrapped(data, answer_tool["function"].get("parameters") or {})))
    if asks_for_action(messages, response_format):
        data = {"answer": data}
    elif (schema := schema_of(response_format)) is not None:
        data = wrapped(data, schema)
    elif isinstance(data, str):
        return {"role": "assistant", "content": data}
    return {"role": "assistant", "content": json.dumps(data, ensure_ascii=False)}


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


# --- as text -----------------------------------------------------------------------------------------------


class UnmatchedRequest(UsageError, AssertionError):
    """A request to a test double has no written or recorded reply; fails a test like any assertion."""


def request_text(
    messages: Sequence[Mapping[str, Any]],
    *,
    tools: Sequence[ToolSpec] | None = None,
    response_format: Mapping[str, Any] | None = None,
    params: Mapping[str, Any] | None = None,
    limit: int = _MOST_CHARS,
) -> str:
    """Return a request as lines, to read and to compare: secrets masked, each message cut to `limit` characters."""
    lines: list[str] = []
    for message in messages:
        lines.append(f"[{message.get('role', '?')}]")
        content = message.get("content")
        if isinstance(content, str):
            lines += cut(content, limit).split("\n")
        elif content is not None:
            lines += [cut(json.dumps(part, ensure_ascii=False), 300) for part in content]
        for call in message.get("tool_calls") or ():
            function = call.get("function") or {}
            lines.append(f"calls {function.get('name')}({function.get('arguments')})")
    for tool in tools or ():
        function = tool.get("function") or {}
        lines.append(f"[tool {function.get('name')}] {cut(str(function.get('description', '')), 300)}")
        lines += _json_lines(function.get("parameters"), limit)
    for name, data in (("response_format", response_format), ("params", params or None)):
        if data is not None:
            lines += [f"[{name}]", *_json_lines(data, limit)]
    return redact("\n".join(lines))


def brief_request(request: object) -> str:
    """Return the last parts of the `request_text` of a request, each cut to one line."""
    return "\n".join(cut(" ".join(part.split()), 200) for part in re.split(r"\n(?=\[)", str(request))[-6:])


def _json_lines(data: Any, limit: int) -> list[str]:
    return cut(json.dumps(data, ensure_ascii=False, indent=1, default=str), limit).split("\n")
