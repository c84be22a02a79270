"""The wire ``/v1/responses``, which OpenAI's newer models need and some servers speak; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from SimpleLLMFunc.interface.body_json import decode
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.profile import Profile
from SimpleLLMFunc.interface.wires.chat import bad_body, error_in, is_events, reply_of_events, tools_in
from SimpleLLMFunc.interface.wires.failures.service_error import failure_of, read_error
from SimpleLLMFunc.interface.wires.items import ItemReader, build_request, completion_of, problem_of
from SimpleLLMFunc.interface.wires.quirks import put_right
from SimpleLLMFunc.interface.wires.streams.chunk_reader import bad_reply
from SimpleLLMFunc.interface.wires.wire import Asked, Received, WireRequest
from SimpleLLMFunc.type import ChatCompletion

__all__ = ["ResponsesWire"]

_PATH = "/responses"
_PARAMETERS = frozenset(
    {
        "context_management",
        "include",
        "logprobs",
        "max_completion_tokens",
        "max_output_tokens",
        "max_tokens",
        "metadata",
        "moderation",
        "n",
        "parallel_tool_calls",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning",
        "reasoning_effort",
        "safety_identifier",
        "service_tier",
        "store",
        "stream_options",
        "temperature",
        "thinking",
        "tool_choice",
        "top_logprobs",
        "top_p",
        "truncation",
        "user",
        "verbosity",
    }
)

_HEAD = 8000


@dataclass(frozen=True, slots=True)
class ResponsesWire:
    """The wire ``/v1/responses``.

    Attributes:
        service: the host, which reasoning goes back to.
        caches: a key leads requests of one kind to one prompt cache.

    Source: https://platform.openai.com/docs/api-reference/responses
    """

    service: str = ""
    caches: bool = True

    parameters = _PARAMETERS

    @property
    def name(self) -> str:
        """What it is called."""
        return "responses"

    @property
    def models_path(self) -> str:
        """Where the service lists its models, after the base address."""
        return "/models"

    def path(self, model_name: str, *, stream: bool) -> str:  # noqa: ARG002 - both stand in the body
        """Return where requests go, after the base address."""
        return _PATH

    def request(self, asked: Asked, model_name: str, profile: Profile, *, stream: bool) -> WireRequest:
        """Return what goes out.

        Raises:
            ConfigError: something that the wire, or the model, has no word for.
            UsageError: there is no message.
        """
        return build_request(
            asked,
            model_name,
            _PATH,
            self.name,
            self.service,
            stream=stream,
            caches=self.caches,
            has_choice=profile.tool_choice,
        )

    def auth(self, key: str) -> Mapping[str, str]:
        """Return the header that carries the key."""
        return {"Authorization": f"Bearer {key}"}

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
        if isinstance(data, dict) and data.get("error"):
            raise error_in(data, received)
        problem = problem_of(data)
        if problem:
            raise bad_reply(problem, body[:_HEAD].decode("utf-8", "replace"), received)
        return put_right(completion_of(data, self.name, self.service, received))

    def decoder(self, received: Received) -> ItemReader:
        """Return what reads a stream."""
        return ItemReader(received, self.name, self.service)

    def error(self, body: bytes, received: Received) -> AttemptFailed:
        """Return what a reply with another status than 2xx means."""
        return failure_of(read_error(body), received, path=_PATH, tools=partial(tools_in, received.sent))
