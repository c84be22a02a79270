"""A conversation in chat completions' form, written in the parts of ``generateContent``.

The service wants: the system prompt apart; a user turn first and last; as many results as calls, right behind them, in
one turn; signatures on the parts they came on. A call that another service made carries the documented placeholder.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.wires.history import NO_RESULT, History, Part, arguments_of, data_in
from SimpleLLMFunc.interface.wires.parts.reply import WIRE, calls_in, text_in
from SimpleLLMFunc.type import ToolCall, content_text

_PLACEHOLDER = "skip_thought_signature_validator"
"""Source: https://ai.google.dev/gemini-api/docs/thought-signatures"""

_FILES = ("https://generativelanguage.googleapis.com/", "gs://")


class PartHistory(History):
    """The conversation in parts."""

    wire, called = WIRE, "generateContent"
    role, field = "model", "parts"
    text_in, calls_in = staticmethod(text_in), staticmethod(calls_in)

    def sign(self) -> bool:
        """Put the placeholder on unsigned calls of the current turn; return whether there were any.

        The current turn begins with the last user content that holds more than results.
        """
        starts = [
            index
            for index, content in enumerate(self.turns)
            if content["role"] == "user" and any("functionResponse" not in part for part in content["parts"])
        ]
        is_unsigned = False
        for turn in self.turns[starts[-1] if starts else 0 :]:
            parts = turn["parts"]
            calls = [place for place, part in enumerate(parts) if "functionCall" in part]
            if calls and not any("thoughtSignature" in part for part in parts):
                signed = {**parts[calls[0]], "thoughtSignature": _PLACEHOLDER}
                turn["parts"] = [*parts[: calls[0]], signed, *parts[calls[0] + 1 :]]
                is_unsigned = True
        return is_unsigned

    def text(self, text: str) -> list[Part]:
        """Return a text; an empty one is left out."""
        return [{"text": text}] if text else []

    def media(self, kind: Any, part: Mapping[str, Any]) -> Part:
        """Return a part that is not text."""
        if kind == "image_url":
            return _data(part["image_url"]["url"], "ImgPath")
        if kind == "file":
            file = part["file"]
            if file.get("file_id"):
                return {"fileData": {"fileUri": file["file_id"]}}
            return _data(str(file.get("file_data") or ""), "File")
        if kind == "input_audio":
            audio = part["input_audio"]
            return {"inlineData": {"mimeType": f"audio/{audio['format']}", "data": audio["data"]}}
        return dict(part)  # a part of the service's own

    def said(self, content: Any, calls: list[Part]) -> list[Part]:
        """Return what the model said."""
        return [*self.text(content_text(content) or ""), *({"functionCall": call} for call in calls)]

    def call(self, call: ToolCall) -> Part:
        """Return a call."""
        return {"name": call.function.name, "args": arguments_of(call)}

    def result(self, sent: Mapping[str, Any], content: Any) -> Part:
        """Return the result of a call; images and files are added to the response."""
        parts = self.parts(content)
        text = "\n".join(part["text"] for part in parts if "text" in part)
        media = [part for part in parts if "text" not in part]
        return _response(sent, {"output": text}, **({"parts": media} if media else {}))

    def missing(self, sent: Mapping[str, Any]) -> Part:
        """Return what stands for a result that is not there."""
        return _response(sent, {"error": NO_RESULT})


def _response(sent: Mapping[str, Any], response: dict[str, str], **more: Any) -> Part:
    own = {} if sent.get("id") is None else {"id": sent["id"]}
    return {"functionResponse": {"name": str(sent.get("name") or ""), "response": response, **own, **more}}


def _data(url: str, instead: str) -> Part:
    if url.startswith(_FILES):
        return {"fileData": {"fileUri": url}}
    found = data_in(url)
    if found is None or ";base64" not in found[1]:
        raise ConfigError(
            f"generateContent fetches no address, so that an image or file comes with its data: {instead}(…)."
        )
    return {"inlineData": {"mimeType": found[0], "data": found[2]}}
