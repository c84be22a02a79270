"""A conversation in chat completions' form, written in the blocks of ``/v1/messages``.

The service wants: the system prompt apart; roles that alternate, the user first; all results of a turn in the one user
message behind it, before any text; no empty text; ids of letters, digits, ``_`` and ``-``. A history that was cut fits
too: a call whose result is missing is told so, and a result without its call becomes text.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.body_json import decode
from SimpleLLMFunc.interface.wires.blocks.reply import calls_in, text_in
from SimpleLLMFunc.interface.wires.provider_state import Prefix, state_in

__all__ = ["Conversation", "conversation_of", "system_of"]

Block = dict[str, Any]

THINKING = frozenset({"thinking", "redacted_thinking"})
_UNFIT_ID = re.compile(r"[^a-zA-Z0-9_-]")
_DATA_URL = re.compile(r"data:([^;,]*)((?:;[^;,]*)*),", re.IGNORECASE)
_NO_RESULT = "The result of this call is not known."
_LEFT_OUT = "(What was said before is left out.)"


@dataclass(slots=True)
class Conversation:
    """The messages for the wire.

    Attributes:
        messages: their content is a list of blocks.
        tool_names: of the calls in the history, in order.
        dropped: why blocks that the service wanted back stay out; empty where none do.
    """

    messages: list[dict[str, Any]] = field(default_factory=list)
    tool_names: list[str] = field(default_factory=list)
    dropped: str = ""

    def add(self, role: str, blocks: Sequence[Block]) -> None:
        """Add blocks; neighbours of one role are one message."""
        if not blocks:
            return
        if self.messages and self.messages[-1]["role"] == role:
            self.messages[-1]["content"] = [*self.messages[-1]["content"], *blocks]
        else:
            self.messages.append({"role": role, "content": list(blocks)})

    def is_in_thoughtless_round(self) -> bool:
        """Whether the conversation ends inside of a round of calls that began without thinking.

        Another service's calls have none, and the service wants it there once thinking is on.
        """
        first: Sequence[Block] = ()
        for message in reversed(self.messages):
            if message["role"] == "assistant":
                first = message["content"]
            elif any(block["type"] != "tool_result" for block in message["content"]):
                break  # here the user speaks
        return bool(first) and first[0]["type"] not in THINKING


def system_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the system prompt: all system messages, joined with blank lines.

    Raises:
        ConfigError: it holds something that is not text.
    """
    texts = []
    for message in messages:
        if message.get("role") in {"system", "developer"}:
            blocks = _user_blocks(message.get("content"))
            if any(block["type"] != "text" for block in blocks):
                raise ConfigError("the system prompt holds something that is not text, which /v1/messages cannot take.")
            texts += [block["text"] for block in blocks]
    return "\n\n".join(texts)


def conversation_of(
    messages: Sequence[Mapping[str, Any]], wire: str, service: str, prefix: Prefix, *, is_bound: bool
) -> Conversation:
    """Return the conversation for the wire; nothing of the caller's is changed.

    Args:
        messages: in chat completions' form.
        wire: the name of the wire; with `service` it says where the conversation goes.
        service: the host; what another one wants back stays out.
        prefix: of what stands before the messages; it takes the messages in, for the reply.
        is_bound: thinking is bound to what stands before it, and stays out where that has changed.

    Raises:
        ConfigError: a part that the wire does not take, such as audio.
    """
    made = Conversation()
    open_calls: list[str] = []
    # What is in `prefix` so far: whole messages only, since neighbours may grow.
    hashed = 0
    for message in messages:
        role = message.get("role")
        if role == "assistant":
            _settle(made, open_calls)
            while hashed < len(made.messages):
                prefix.add(made.messages[hashed])
                hashed += 1
            blocks = _assistant_blocks(message, wire, service, prefix.value() if is_bound else "", made)
            open_calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
            made.tool_names += [block["name"] for block in blocks if block["type"] == "tool_use"]
            if blocks and not made.messages:
                made.add("user", [_text(_LEFT_OUT)])
            made.add("assistant", blocks)
        elif role == "tool":
            made.add("user", [_result(message, open_calls)])
        elif role not in {"system", "developer"}:
            _settle(made, open_calls)
            made.add("user", _user_blocks(message.get("content")))
    _settle(made, open_calls)
    for part in made.messages[hashed:]:
        prefix.add(part)
    return made


# --- what the user says ------------------------------------------------------------------------------------


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _user_blocks(content: Any) -> list[Block]:
    """Return a content as blocks; empty texts are left out."""
    if isinstance(content, str):
        return [_text(content)] if content.strip() else []
    blocks = []
    for part in content or ():
        kind = part.get("type")
        if kind == "text":
            blocks += _user_blocks(part.get("text"))
        elif kind == "image_url":
            blocks.append({"type": "image", "source": _image_source(part["image_url"]["url"])})
        elif kind == "file":
            blocks.append(_document(part["file"]))
        elif kind == "input_audio":
            raise ConfigError("/v1/messages takes no audio. Ask a model that does, such as Gemini(…).")
        else:
            blocks.append(dict(part))  # a block of the service's own
    return blocks


def _image_source(url: str) -> dict[str, str]:
    found = _DATA_URL.match(url)
    if found is None:
        return {"type": "url", "url": url}
    return {"type": "base64", "media_type": found[1].lower(), "data": url[found.end() :]}


def _document(file: Mapping[str, Any]) -> Block:
    title = {"title": file["filename"]} if file.get("filename") else {}
    if file.get("file_id"):
        return {"type": "document", "source": {"type": "file", "file_id": file["file_id"]}, **title}
    url = str(file.get("file_data") or "")
    found = _DATA_URL.match(url)
    mime = found[1].lower() if found else ""
    if mime == "application/pdf":
        source = {"type": "base64", "media_type": mime, "data": url[found.end() :]} if found else {}
    elif mime.startswith("text/") or mime in {"application/json", "application/xml"}:
        source = {"type": "text", "media_type": "text/plain", "data": _plain(url)}
    else:
        raise ConfigError(f"/v1/messages takes PDF and plain text as files, not {mime or 'data of an unknown kind'}.")
    return {"type": "document", "source": source, **title}


def _plain(url: str) -> str:
    import base64
    import binascii
    from urllib.parse import unquote_to_bytes

    head, _, data = url.partition(",")
    try:
        raw = base64.b64decode(data) if ";base64" in head.lower() else unquote_to_bytes(data)
    except binascii.Error:
        raise ConfigError("a file's data is not base64.") from None
    return raw.decode("utf-8", "replace")


# --- what the model says -----------------------------------------------------------------------------------


def _assistant_blocks(
    message: Mapping[str, Any], wire: str, service: str, before: str, made: Conversation
) -> list[Block]:
    """Return the blocks of an assistant's message: those that came, where the message still says the same."""
    said = [*_user_blocks(message.get("content")), *map(_call, message.get("tool_calls") or ())]
    state = state_in(message, wire, service)
    if state is None:
        return said
    items: list[Block] = [dict(item) for item in state[0] if isinstance(item, Mapping)]
    if not _say_the_same(items, message):
        made.dropped = made.dropped or "the message was changed after it had come"
        return said
    if before and state[1] and state[1] != before:
        made.dropped = made.dropped or "what stands before the thinking has changed"
        return [item for item in items if item.get("type") not in THINKING] or said
    return items


def _say_the_same(items: Sequence[Block], message: Mapping[str, Any]) -> bool:
    """Whether blocks hold the text and the calls of the message they stand beside."""
    content = message.get("content")
    text = content if isinstance(content, str) else "".join(str(part.get("text", "")) for part in content or ())
    calls = [(call.get("id"), _arguments(call)) for call in message.get("tool_calls") or ()]
    return text_in(items) == text and [(call["id"], call.get("input") or {}) for call in calls_in(items)] == calls


def _call(call: Mapping[str, Any]) -> Block:
    return {
        "type": "tool_use",
        "id": _fit_id(str(call.get("id") or "")),
        "name": str((call.get("function") or {}).get("name") or ""),
        "input": _arguments(call),
    }


def _arguments(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments as an object; what is none stands in one under the name it has on other wires."""
    text = (call.get("function") or {}).get("arguments") or "{}"
    try:
        value = decode(text.encode("utf-8", "surrogatepass")) if isinstance(text, str) else text
    except ValueError:
        value = text
    return value if isinstance(value, dict) else {"arguments": value}


def _fit_id(given: str) -> str:
    """Return an id that the service takes; the same one each time."""
    if given and not _UNFIT_ID.search(given):
        return given
    return "call_" + hashlib.sha256(given.encode("utf-8", "replace")).hexdigest()[:24]


# --- results -----------------------------------------------------------------------------------------------


def _result(message: Mapping[str, Any], open_calls: list[str]) -> Block:
    """Return the result of a tool; `open_calls` loses its call."""
    call, content = _fit_id(str(message.get("tool_call_id") or "")), message.get("content")
    if call not in open_calls:
        shown = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        return _text(f"The result of an earlier tool call: {shown}")
    open_calls.remove(call)
    blocks = content if isinstance(content, str) else _user_blocks(content)
    return {"type": "tool_result", "tool_use_id": call, "content": blocks}


def _settle(made: Conversation, open_calls: list[str]) -> None:
    """Add a result for each call that has none."""
    made.add(
        "user",
        [{"type": "tool_result", "tool_use_id": call, "content": _NO_RESULT, "is_error": True} for call in open_calls],
    )
    open_calls.clear()
