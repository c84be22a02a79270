"""A conversation in chat completions' form, written in the blocks of ``/v1/messages``.

The service wants: the system prompt apart; roles that alternate, the user first; all results of a turn in the one user
message behind it, before any text; no empty text; ids of letters, digits, ``_`` and ``-``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.wires.blocks.reply import WIRE, calls_in, text_in
from SimpleLLMFunc.interface.wires.history import NO_RESULT, History, Part, arguments_of, data_in
from SimpleLLMFunc.interface.wires.provider_state import Prefix
from SimpleLLMFunc.type import ToolCall

THINKING = frozenset({"thinking", "redacted_thinking"})
_UNFIT_ID = re.compile(r"[^a-zA-Z0-9_-]")


class BlockHistory(History):
    """The conversation in blocks.

    Args:
        service: the host.
        is_bound: thinking is bound to what stands before it, and stays out where that has changed.

    Attributes:
        prefix: of what stands before the messages; it takes the messages in, for the reply.
    """

    wire, called = WIRE, "/v1/messages"
    text_in, calls_in = staticmethod(text_in), staticmethod(calls_in)

    def __init__(self, service: str, *, is_bound: bool) -> None:
        super().__init__(service)
        self.prefix = Prefix()
        self._is_bound = is_bound
        self._hashed = 0  # whole messages only, since neighbours may grow

    def hash(self) -> None:
        """Take the messages so far into the prefix."""
        for message in self.turns[self._hashed :]:
            self.prefix.add(message)
        self._hashed = len(self.turns)

    def add_answer(self, message: Mapping[str, Any]) -> None:
        """Add what the model said; the messages before it are whole now, and go into the prefix."""
        self.hash()
        super().add_answer(message)

    def text(self, text: str) -> list[Part]:
        """Return a text; one without a word is left out."""
        return [{"type": "text", "text": text}] if text.strip() else []

    def media(self, kind: Any, part: Mapping[str, Any]) -> Part:
        """Return a part that is not text."""
        if kind == "image_url":
            url = part["image_url"]["url"]
            found = data_in(url)
            source = {"type": "base64", "media_type": found[0], "data": found[2]} if found else None
            return {"type": "image", "source": source or {"type": "url", "url": url}}
        if kind == "file":
            return _document(part["file"])
        if kind == "input_audio":
            raise ConfigError("/v1/messages takes no audio. Ask a model that does, such as Gemini(…).")
        return dict(part)  # a block of the service's own

    def kept(self, parts: list[Part], prefix: str) -> list[Part]:
        """Return the blocks that came, without thinking that is bound to something else."""
        if not self._is_bound or not prefix or prefix == self.prefix.value():
            return parts
        self.drop("what stands before the thinking has changed")
        return [part for part in parts if part.get("type") not in THINKING]

    def said(self, content: Any, calls: list[Part]) -> list[Part]:
        """Return what the model said."""
        return [*self.parts(content), *calls]

    def call(self, call: ToolCall) -> Part:
        """Return a call."""
        made = {"type": "tool_use", "id": _fit_id(call.id), "name": call.function.name}
        return {**made, "input": arguments_of(call)}

    def result(self, sent: Mapping[str, Any], content: Any) -> Part:
        """Return the result of a call."""
        blocks = content if isinstance(content, str) else self.parts(content)
        return {"type": "tool_result", "tool_use_id": sent["id"], "content": blocks}

    def missing(self, sent: Mapping[str, Any]) -> Part:
        """Return what stands for a result that is not there."""
        return {**self.result(sent, NO_RESULT), "is_error": True}

    def is_in_thoughtless_round(self) -> bool:
        """Whether the conversation ends inside of a round of calls that began without thinking.

        Another service's calls have none, and the service wants it there once thinking is on.
        """
        first: Sequence[Part] = ()
        for message in reversed(self.turns):
            if message["role"] == "assistant":
                first = message["content"]
            elif any(block["type"] != "tool_result" for block in message["content"]):
                break  # here the user speaks
        return bool(first) and first[0]["type"] not in THINKING


def _document(file: Mapping[str, Any]) -> Part:
    title = {"title": file["filename"]} if file.get("filename") else {}
    if file.get("file_id"):
        return {"type": "document", "source": {"type": "file", "file_id": file["file_id"]}, **title}
    mime, form, data = data_in(str(file.get("file_data") or "")) or ("", "", "")
    if mime == "application/pdf":
        source = {"type": "base64", "media_type": mime, "data": data}
    elif mime.startswith("text/") or mime in {"application/json", "application/xml"}:
        source = {"type": "text", "media_type": "text/plain", "data": _plain(data, is_base64=";base64" in form)}
    else:
        raise ConfigError(f"/v1/messages takes PDF and plain text as files, not {mime or 'data of an unknown kind'}.")
    return {"type": "document", "source": source, **title}


def _plain(data: str, *, is_base64: bool) -> str:
    import base64
    import binascii
    from urllib.parse import unquote_to_bytes

    try:
        raw = base64.b64decode(data) if is_base64 else unquote_to_bytes(data)
    except binascii.Error:
        raise ConfigError("a file's data is not base64.") from None
    return raw.decode("utf-8", "replace")


def _fit_id(given: str) -> str:
    """Return an id that the service takes; the same one each time."""
    if given and not _UNFIT_ID.search(given):
        return given
    return "call_" + hashlib.sha256(given.encode("utf-8", "replace")).hexdigest()[:24]
