"""An unexpected request, shown as text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from SimpleLLMFunc.errors import UsageError, cut
from SimpleLLMFunc.logger import redact
from SimpleLLMFunc.type import ToolSpec

_MOST_CHARS: Final = 4000


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
    if response_format is not None:
        lines.append("[response_format]")
        lines += _json_lines(response_format, limit)
    if params:
        lines.append("[params]")
        lines += _json_lines(params, limit)
    return redact("\n".join(lines))


def brief_request(request: object) -> str:
    """Return the last parts of the `request_text` of a request, each cut to one line."""
    parts = re.split(r"\n(?=\[)", str(request))
    return "\n".join(cut(" ".join(part.split()), 200) for part in parts[-6:])


def _json_lines(data: Any, limit: int) -> list[str]:
    return cut(json.dumps(data, ensure_ascii=False, indent=1, default=str), limit).split("\n")
