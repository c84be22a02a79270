"""The wire ``generateContent``, which Google's Gemini speaks; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import quote

from SimpleLLMFunc.interface.body_json import decode, encode
from SimpleLLMFunc.interface.profile import Profile
from SimpleLLMFunc.interface.wires.parts import PartReader, build_request, completion_of
from SimpleLLMFunc.interface.wires.parts.reply import problem_of
from SimpleLLMFunc.interface.wires.replies import Wire
from SimpleLLMFunc.interface.wires.wire import Asked, Received, WireRequest
from SimpleLLMFunc.type import ChatCompletion, mappings


@dataclass(frozen=True, slots=True)
class GeminiWire(Wire):
    """The wire ``generateContent``.

    Attributes:
        service: the host, which signatures go back to.
        version: of the protocol; a part of the path.

    Source: https://ai.google.dev/api/generate-content
    """

    service: str = ""
    version: str = "v1beta"

    name = "gemini"
    version_spoken: ClassVar[str] = "v1beta"
    parameters = frozenset({
        "cachedContent", "frequency_penalty", "generationConfig", "labels", "logprobs", "max_completion_tokens",
        "max_tokens", "n", "parallel_tool_calls", "presence_penalty", "safetySettings", "seed", "stop",
        "temperature", "thinking", "tool_choice", "top_k", "top_logprobs", "top_p",
    })  # fmt: skip

    @property
    def models_path(self) -> str:  # type: ignore[override]
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
        return build_request(asked, model_name, self.service, path=path, has_choice=profile.tool_choice)

    def auth(self, key: str) -> Mapping[str, str]:
        """Return the header that carries the key."""
        return {"x-goog-api-key": key}

    def reply(self, body: bytes, received: Received) -> ChatCompletion:
        """Return the whole reply; raises as those of the other wires do."""
        return Wire.reply(self, _as_events(body), received)

    def decoder(self, received: Received) -> PartReader:
        """Return what reads a stream."""
        return PartReader(received, self.service)

    problem_of = staticmethod(problem_of)

    def completion(self, data: dict[str, Any], received: Received) -> ChatCompletion:
        """Return a reply whose form is known to be good."""
        return completion_of(data, self.service, received)

    def tools_in(self, sent: Mapping[str, Any]) -> list[str]:
        """Return the names of the tools in the body of a request."""
        return [
            str(each.get("name") or "")
            for tool in mappings(sent.get("tools"))
            for each in mappings(tool.get("functionDeclarations"))
        ]


def _as_events(body: bytes) -> bytes:
    """Return a stream without events, which is a list of what would have been their data, as events."""
    if not body.lstrip().startswith(b"["):
        return body
    try:
        data = decode(body)
    except ValueError:
        return body
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        return body
    return b"".join(b"data: " + encode(item) + b"\n\n" for item in data) or body
