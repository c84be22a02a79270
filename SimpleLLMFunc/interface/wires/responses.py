"""The wire ``/v1/responses``, which OpenAI's newer models need and some servers speak; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from SimpleLLMFunc.interface.profile import Profile
from SimpleLLMFunc.interface.wires.items import ItemReader, build_request, completion_of, problem_of
from SimpleLLMFunc.interface.wires.replies import Wire
from SimpleLLMFunc.interface.wires.wire import Asked, Received, WireRequest
from SimpleLLMFunc.type import ChatCompletion


@dataclass(frozen=True, slots=True)
class ResponsesWire(Wire):
    """The wire ``/v1/responses``.

    Attributes:
        service: the host, which reasoning goes back to.
        caches: a key leads requests of one kind to one prompt cache.

    Source: https://platform.openai.com/docs/api-reference/responses
    """

    service: str = ""
    caches: bool = True

    name = "responses"
    request_path = "/responses"
    parameters = frozenset({
        "context_management", "include", "logprobs", "max_completion_tokens", "max_output_tokens", "max_tokens",
        "metadata", "moderation", "n", "parallel_tool_calls", "prompt_cache_key", "prompt_cache_options",
        "prompt_cache_retention", "reasoning", "reasoning_effort", "safety_identifier", "service_tier", "store",
        "stream_options", "temperature", "thinking", "tool_choice", "top_logprobs", "top_p", "truncation",
        "user", "verbosity",
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
            path=self.request_path,
            stream=stream,
            caches=self.caches,
            has_choice=profile.tool_choice,
        )

    def decoder(self, received: Received) -> ItemReader:
        """Return what reads a stream."""
        return ItemReader(received, self.service)

    problem_of = staticmethod(problem_of)

    def completion(self, data: dict[str, Any], received: Received) -> ChatCompletion:
        """Return a reply whose form is known to be good."""
        return completion_of(data, self.service, received)
