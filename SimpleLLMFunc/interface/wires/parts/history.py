"""A conversation in chat completions' form, written in the parts of ``generateContent``.

The service wants: the system prompt apart; a user turn first and last; as many results as calls, right behind them, in
one turn; signatures on the parts they came on. A call that another service made carries the documented placeholder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.body_json import decode
from SimpleLLMFunc.interface.wires.parts.reply import calls_in, text_in
from SimpleLLMFunc.interface.wires.provider_state import state_in

__all__ = ["Conversation", "conversation_of", "system_of"]

Part = dict[str, Any]

_PLACEHOLDER = "skip_thought_signature_validator"
"""Source: https://ai.google.dev/gemini-api/docs/thought-signatures"""

_DATA_URL = re.compile(r"data:([^;,]*)((?:;[^;,]*)*),", re.IGNORECASE)
_FILES = ("https://generativelanguage.googleapis.com/", "gs://")
_NO_RESULT = "The result of this call is not known."
_LEFT_OUT = "(What was said before is left out.)"


@dataclass(slots=True)
class _OpenCall:
    """A call that waits for its result: the id of the house, and what the wire calls it."""

    id: str
    name: str
    wire_id: str | None


@dataclass(slots=True)
class Conversation:
    """The contents for the wire.

    Attributes:
        dropped: why parts that the service wanted back stay out; empty where none do.
        unsigned: places of the model's turns whose calls came without a signature.
    """

    contents: list[dict[str, Any]] = field(default_factory=list)
    dropped: str = ""
    unsigned: list[int] = field(default_factory=list)

    def add(self, role: str, parts: Sequence[Part]) -> None:
        """Add parts; neighbours of one role are one turn."""
        if not parts:
            return
        if self.contents and self.contents[-1]["role"] == role:
            self.contents[-1]["parts"] = [*self.contents[-1]["parts"], *parts]
        else:
            self.contents.append({"role": role, "parts": list(parts)})

    def sign(self) -> bool:
        """Put the placeholder on unsigned calls of the current turn; return whether there were any.

        The current turn begins with the last user content that holds more than results.
        """
        starts = [
            index
            for index, content in enumerate(self.contents)
            if content["role"] == "user" and any("functionResponse" not in part for part in content["parts"])
        ]
        current = [index for index in self.unsigned if index > (starts[-1] if starts else -1)]
        for index in current:
            parts = self.contents[index]["parts"]
            first = next(place for place, part in enumerate(parts) if "functionCall" in part)
            self.contents[index]["parts"] = [
                {**part, "thoughtSignature": _PLACEHOLDER} if place == first else part
                for place, part in enumerate(parts)
            ]
        return bool(current)


def system_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the system prompt: all system messages, joined with blank lines.

    Raises:
        ConfigError: it holds something that is not text.
    """
    texts = []
    for message in messages:
        if message.get("role") in {"system", "developer"}:
            parts = _user_parts(message.get("content"))
            if any("text" not in part for part in parts):
                raise ConfigError("the system prompt holds something that is not text, which generateContent refuses.")
            texts += [part["text"] for part in parts]
    return "\n\n".join(texts)


def conversation_of(messages: Sequence[Mapping[str, Any]], wire: str, service: str) -> Conversation:
    """Return the conversation for the wire; nothing of the caller's is changed.

    Args:
        messages: in chat completions' form.
        wire: the name of the wire; with `service` it says where the conversation goes.
        service: the host; what another one wants back stays out.

    Raises:
        ConfigError: a part that the wire does not take, such as an image behind an address.
    """
    made = Conversation()
    open_calls: list[_OpenCall] = []
    for message in messages:
        role = message.get("role")
        if role == "assistant":
            _settle(made, open_calls)
            parts = _model_parts(message, wire, service, made)
            if parts and not made.contents:
                made.add("user", [{"text": _LEFT_OUT}])
            open_calls += _opened(message, parts)
            made.add("model", parts)
            if any("functionCall" in part for part in parts) and not any("thoughtSignature" in part for part in parts):
                made.unsigned.append(len(made.contents) - 1)
        elif role == "tool":
            made.add("user", _result(message, open_calls))
        elif role not in {"system", "developer"}:
            _settle(made, open_calls)
            made.add("user", _user_parts(message.get("content")))
    _settle(made, open_calls)
    return made


# --- what the user says ------------------------------------------------------------------------------------


def _user_parts(content: Any) -> list[Part]:
    """Return a content as parts; empty texts are left out."""
    if isinstance(content, str):
        return [{"text": content}] if content else []
    parts: list[Part] = []
    for part in content or ():
        kind = part.get("type")
        if kind == "text":
            parts += _user_parts(part.get("text"))
        elif kind == "image_url":
            parts.append(_data(part["image_url"]["url"], "ImgPath"))
        elif kind == "file":
            file = part["file"]
            if file.get("file_id"):
                parts.append({"fileData": {"fileUri": file["file_id"]}})
            else:
                parts.append(_data(str(file.get("file_data") or ""), "File"))
        elif kind == "input_audio":
            audio = part["input_audio"]
            parts.append({"inlineData": {"mimeType": f"audio/{audio['format']}", "data": audio["data"]}})
        else:
            parts.append(dict(part))  # a part of the service's own
    return parts


def _data(url: str, instead: str) -> Part:
    if url.startswith(_FILES):
        return {"fileData": {"fileUri": url}}
    found = _DATA_URL.match(url)
    if found is None or ";base64" not in found[2].lower():
        raise ConfigError(
            f"generateContent fetches no address, so that an image or file comes with its data: {instead}(…)."
        )
    return {"inlineData": {"mimeType": found[1].lower(), "data": url[found.end() :]}}


# --- what the model says -----------------------------------------------------------------------------------


def _model_parts(message: Mapping[str, Any], wire: str, service: str, made: Conversation) -> list[Part]:
    """Return the parts of an assistant's message: those that came, where the message still says the same."""
    content = message.get("content")
    text = content if isinstance(content, str) else "".join(str(part.get("text", "")) for part in content or ())
    calls = message.get("tool_calls") or ()
    state = state_in(message, wire, service)
    if state is not None:
        parts: list[Part] = [dict(part) for part in state[0] if isinstance(part, Mapping)]
        came = [(call.get("name"), call.get("args") or {}) for call in calls_in(parts)]
        if text_in(parts) == text and came == [(_name(call), _arguments(call)) for call in calls]:
            return parts
        made.dropped = made.dropped or "the message was changed after it had come"
    said = [{"text": text}] if text else []
    return [*said, *({"functionCall": {"name": _name(call), "args": _arguments(call)}} for call in calls)]


def _name(call: Mapping[str, Any]) -> str:
    return str((call.get("function") or {}).get("name") or "")


def _arguments(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments as an object; what is none stands in one under the name it has on other wires."""
    text = (call.get("function") or {}).get("arguments") or "{}"
    try:
        value = decode(text.encode("utf-8", "surrogatepass")) if isinstance(text, str) else text
    except ValueError:
        value = text
    return value if isinstance(value, dict) else {"arguments": value}


def _opened(message: Mapping[str, Any], parts: Sequence[Part]) -> list[_OpenCall]:
    calls = message.get("tool_calls") or ()
    return [
        _OpenCall(str(call.get("id") or ""), str(sent.get("name") or ""), sent.get("id"))
        for call, sent in zip(calls, calls_in(parts), strict=True)
    ]


# --- results -----------------------------------------------------------------------------------------------


def _result(message: Mapping[str, Any], open_calls: list[_OpenCall]) -> list[Part]:
    """Return the result of a tool; `open_calls` loses its call."""
    wanted, content = str(message.get("tool_call_id") or ""), message.get("content")
    call = next((call for call in open_calls if call.id == wanted), None)
    if call is None:
        shown = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        return [{"text": f"The result of an earlier tool call: {shown}"}]
    open_calls.remove(call)
    if isinstance(content, str):
        return [_response(call, {"output": content})]
    parts = _user_parts(content)
    text = "\n".join(part["text"] for part in parts if "text" in part)
    media = [part for part in parts if "text" not in part]
    return [_response(call, {"output": text}, media)]


def _response(call: _OpenCall, response: dict[str, Any], media: Sequence[Part] = ()) -> Part:
    said: dict[str, Any] = {"name": call.name, "response": response}
    if call.wire_id is not None:
        said["id"] = call.wire_id
    if media:
        said["parts"] = list(media)
    return {"functionResponse": said}


def _settle(made: Conversation, open_calls: list[_OpenCall]) -> None:
    """Add a result for each call that has none."""
    made.add("user", [_response(call, {"error": _NO_RESULT}) for call in open_calls])
    open_calls.clear()
