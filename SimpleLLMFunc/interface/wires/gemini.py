"""The wire ``generateContent``, which Google's Gemini speaks; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, cast
from urllib.parse import quote

from SimpleLLMFunc.interface.body_json import decode, encode
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.profile import Profile
from SimpleLLMFunc.interface.wires.chat import bad_body, error_in, is_events, reply_of_events
from SimpleLLMFunc.interface.wires.failures.service_error import failure_of, read_error
from SimpleLLMFunc.interface.wires.parts import PartReader, build_request, completion_of
from SimpleLLMFunc.interface.wires.parts.reply import problem_of
from SimpleLLMFunc.interface.wires.quirks import put_right
from SimpleLLMFunc.interface.wires.streams.chunk_reader import bad_reply
from SimpleLLMFunc.interface.wires.wire import Asked, Received, WireRequest
from SimpleLLMFunc.type import ChatCompletion, mappings

__all__ = ["GeminiWire"]

_PARAMETERS = frozenset(
    {
        "cachedContent",
        "frequency_penalty",
        "generationConfig",
        "labels",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "n",
        "parallel_tool_calls",
        "presence_penalty",
        "safetySettings",
        "seed",
        "stop",
        "temperature",
        "thinking",
        "tool_choice",
        "top_k",
        "top_logprobs",
        "top_p",
    }
)

_HEAD = 8000


@dataclass(frozen=True, slots=True)
class GeminiWire:
    """The wire ``generateContent``.

    Attributes:
        service: the host, which signatures go back to.
        version: of the protocol; it stands in the path.

    Source: https://ai.google.dev/api/generate-content
    """

    service: str = ""
    version: str = "v1beta"

    version_spoken: ClassVar[str] = "v1beta"
    parameters = _PARAMETERS

    @property
    def name(self) -> str:
        """What it is called."""
        return "gemini"

    @property
    def models_path(self) -> str:
        """Where the service lists its models, after the base address."""
        return f"/{self.version}/models"

    def path(self, model_name: str, *, stream: bool) -> str:
        """Return where requests go, after the base address."""
        method = "streamGenerateContent?alt=sse" if stream else "generateContent"
        return f"/{self.version}/models/{quote(model_name.removeprefix('models/'), safe='')}:{method}"

    def request(self, asked: Asked, model_name: str, profile: Profile, *, stream: bool) -> WireRequest:
        """Return what goes out.

        Raises:
            ConfigError: something that the wire, or the model, has no word for.
            UsageError: there is no message.
        """
        path = self.path(model_name, stream=stream)
        return build_request(asked, model_name, path, self.name, self.service, has_choice=profile.tool_choice)

    def auth(self, key: str) -> Mapping[str, str]:
        """Return the header that carries the key."""
        return {"x-goog-api-key": key}

    def reply(self, body: bytes, received: Received) -> ChatCompletion:
        """Return the whole reply.

        Raises:
            AttemptFailed: it is broken, or no reply of the protocol, or an error dressed as a success.
        """
        if is_events(body):
            return reply_of_events(self.decoder(received), body, received)
        try:
            data: Any = decode(body)
        except ValueError:
            raise bad_body(body, received) from None
        if isinstance(data, list) and data and all(isinstance(item, dict) for item in data):
            # A stream without events is a list of what would have been their data.
            events = b"".join(b"data: " + encode(item) + b"\n\n" for item in data)
            return reply_of_events(self.decoder(received), events, received)
        if isinstance(data, dict) and data.get("error"):
            raise error_in(data, received)
        problem = problem_of(data)
        if problem:
            head = body[:_HEAD].decode("utf-8", "replace")
            raise bad_reply(problem, head, received)
        return put_right(completion_of(cast("dict[str, Any]", data), self.name, self.service, received))

    def decoder(self, received: Received) -> PartReader:
        """Return what reads a stream."""
        return PartReader(received, self.name, self.service)

    def error(self, body: bytes, received: Received) -> AttemptFailed:
        """Return what a reply with another status than 2xx means."""
        return failure_of(read_error(body), received, tools=partial(_tools_in, received.sent))


def _tools_in(sent: bytes) -> list[str]:
    """Return the names of the tools in the body of a request."""
    tools = mappings(decode(sent).get("tools")) if sent else []
    return [str(each.get("name") or "") for tool in tools for each in mappings(tool.get("functionDeclarations"))]
