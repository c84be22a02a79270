"""The wire ``/v1/messages``, which Anthropic began and several servers speak; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from SimpleLLMFunc.interface.profile import Profile
from SimpleLLMFunc.interface.wires.blocks import BlockReader, build_request, completion_of
from SimpleLLMFunc.interface.wires.blocks.reply import problem_of
from SimpleLLMFunc.interface.wires.replies import Wire
from SimpleLLMFunc.interface.wires.wire import Asked, Received, WireRequest
from SimpleLLMFunc.type import ChatCompletion


@dataclass(frozen=True, slots=True)
class MessagesWire(Wire):
    """The wire ``/v1/messages``.

    Attributes:
        service: the host, which thinking goes back to.
        version: of the protocol, for the header `anthropic-version`.
        caches: the service is told where its prompt cache may begin.

    Source: https://docs.anthropic.com/en/api/messages
    """

    service: str = ""
    version: str = "2023-06-01"
    caches: bool = True

    name = "messages"
    request_path = "/v1/messages"
    models_path = "/v1/models"
    version_spoken: ClassVar[str] = "2023-06-01"
    parameters = frozenset({
        "betas", "cache_control", "container", "context_management", "inference_geo", "max_completion_tokens",
        "max_tokens", "mcp_servers", "metadata", "n", "output_config", "parallel_tool_calls",
        "reasoning_effort", "service_tier", "speed", "stop", "stop_sequences", "temperature", "thinking",
        "tool_choice", "top_k", "top_p", "user",
    })  # fmt: skip

    def request(self, asked: Asked, model_name: str, profile: Profile, *, stream: bool) -> WireRequest:
        """Return what goes out.

        Raises:
            ConfigError: something that the wire, or the model, has no word for.
            UsageError: there is no message.
        """
        return build_request(
            asked,
            model_name,
            self.service,
            version=self.version,
            stream=stream,
            caches=self.caches,
            has_choice=profile.tool_choice,
        )

    def auth(self, key: str) -> Mapping[str, str]:
        """Return the header that carries the key."""
        return {"x-api-key": key}

    def decoder(self, received: Received) -> BlockReader:
        """Return what reads a stream."""
        return BlockReader(received, self.service)

    def is_error(self, data: Mapping[str, Any]) -> bool:
        """Whether a reply is an error dressed as a success."""
        return bool(data.get("error")) or data.get("type") == "error"

    problem_of = staticmethod(problem_of)

    def completion(self, data: dict[str, Any], received: Received) -> ChatCompletion:
        """Return a reply whose form is known to be good."""
        return completion_of(data, self.service, received)
