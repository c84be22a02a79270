"""A conversation in chat completions' form, written in the items of ``/v1/responses``.

The service wants: a result for each call, and a call for each result; the items of one reply all and in their order,
reasoning right before what it led to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.wires.history import History, Part
from SimpleLLMFunc.interface.wires.items.reply import WIRE, calls_in, text_in
from SimpleLLMFunc.type import ToolCall, content_text


class ItemHistory(History):
    """The conversation in items; its `turns` are those items."""

    wire, called = WIRE, "/v1/responses"
    starts_with_user = False
    text_in, calls_in = staticmethod(text_in), staticmethod(calls_in)

    def add(self, role: str, parts: Sequence[Part]) -> None:
        """Add items; what a user says is one."""
        if role == "user" and not any(part.get("type") == "function_call_output" for part in parts):
            parts = [{"type": "message", "role": role, "content": list(parts)}] if parts else []
        self.turns += parts

    def text(self, text: str) -> list[Part]:
        """Return a text."""
        return [{"type": "input_text", "text": text}]

    def media(self, kind: Any, part: Mapping[str, Any]) -> Part:
        """Return a part that is not text."""
        if kind == "image_url":
            image = part["image_url"]
            return {"type": "input_image", "image_url": image["url"], "detail": image.get("detail") or "auto"}
        if kind == "file":
            return {"type": "input_file", **part["file"]}
        if kind == "input_audio":
            raise ConfigError('/v1/responses takes no audio. Ask with wire="chat", or another model.')
        return dict(part)  # a part of the service's own

    def said(self, content: Any, calls: list[Part]) -> list[Part]:
        """Return what the model said."""
        text = content_text(content) or ""
        parts = [{"type": "output_text", "text": text, "annotations": []}] if text else []
        return [*([{"type": "message", "role": "assistant", "content": parts}] if parts else []), *calls]

    def call(self, call: ToolCall) -> Part:
        """Return a call."""
        said = {"name": call.function.name, "arguments": call.function.arguments}
        return {"type": "function_call", "call_id": call.id, **said}

    def result(self, sent: Mapping[str, Any], content: Any) -> Part:
        """Return the result of a call."""
        output = content if isinstance(content, str) else self.parts(content)
        return {"type": "function_call_output", "call_id": sent["call_id"], "output": output}
