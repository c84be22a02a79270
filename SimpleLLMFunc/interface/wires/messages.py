"""The wire ``/v1/messages``, which Anthropic began and several servers speak; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from SimpleLLMFunc.interface.body_json import decode
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.profile import Profile
from SimpleLLMFunc.interface.wires.blocks import BlockReader, build_request, completion_of
from SimpleLLMFunc.interface.wires.blocks.reply import FINISH
from SimpleLLMFunc.interface.wires.chat import bad_body, error_in, is_events, reply_of_events, tools_in
from SimpleLLMFunc.interface.wires.failures.service_error import failure_of, read_error
from SimpleLLMFunc.interface.wires.quirks import put_right
from SimpleLLMFunc.interface.wires.streams.chunk_reader import bad_reply
from SimpleLLMFunc.interface.wires.wire import Asked, Kept, Received, WireRequest
from SimpleLLMFunc.type import ChatCompletion, text_or_none

__all__ = ["MessagesWire"]

_PATH = "/v1/messages"
_PARAMETERS = frozenset(
    {
        "betas",
        "cache_control",
        "container",
        "context_management",
        "inference_geo",
        "max_completion_tokens",
        "max_tokens",
        "mcp_servers",
        "metadata",
        "n",
        "output_config",
        "parallel_tool_calls",
        "reasoning_effort",
        "service_tier",
        "speed",
        "stop",
        "stop_sequences",
        "temperature",
        "thinking",
        "tool_choice",
        "top_k",
        "top_p",
        "user",
    }
)

_HEAD = 8000


@dataclass(frozen=True, slots=True)
class MessagesWire:
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

    version_spoken: ClassVar[str] = "2023-06-01"
    parameters = _PARAMETERS

    @property
    def name(self) -> str:
        """What it is called."""
        return "messages"

    @property
    def models_path(self) -> str:
        """Where the service lists its models, after the base address."""
        return "/v1/models"

    def path(self, model_name: str, *, stream: bool) -> str:  # noqa: ARG002 - both stand in the body
        """Return where requests go, after the base address."""
        return _PATH

    def request(self, asked: Asked, model_name: str, profile: Profile, *, stream: bool) -> WireRequest:
        """Return what goes out.

        Raises:
            ConfigError: something that the wire, or the model, has no word for.
            UsageError: there is no message.
        """
        built = build_request(
            asked,
            model_name,
            self.name,
            self.service,
            stream=stream,
            caches=self.caches,
            has_choice=profile.tool_choice,
        )
        headers = {"anthropic-version": self.version}
        if built.betas:
            headers["anthropic-beta"] = ",".join(dict.fromkeys(built.betas))
        return WireRequest(_PATH, built.body, headers, Kept(built.prefix), tuple(built.downgrades))

    def auth(self, key: str) -> Mapping[str, str]:
        """Return the header that carries the key."""
        return {"x-api-key": key}

    def reply(self, body: bytes, received: Received) -> ChatCompletion:
        """Return the whole reply.

        Raises:
            AttemptFailed: it is broken, or no reply of the protocol, or an error dressed as a success.
        """
        if is_events(body):
            return reply_of_events(self.decoder(received), body, received)
        try:
            data = decode(body)
        except ValueError:
            raise bad_body(body, received) from None
        if isinstance(data, dict) and (data.get("error") or data.get("type") == "error"):
            raise error_in(data, received)
        problem = _problem_of(data)
        if problem:
            raise bad_reply(problem, body[:_HEAD].decode("utf-8", "replace"), received)
        return put_right(completion_of(data, self.name, self.service, received))

    def decoder(self, received: Received) -> BlockReader:
        """Return what reads a stream."""
        return BlockReader(received, self.name, self.service)

    def error(self, body: bytes, received: Received) -> AttemptFailed:
        """Return what a reply with another status than 2xx means."""
        return failure_of(read_error(body), received, path=_PATH, tools=partial(tools_in, received.sent))


def _problem_of(data: Any) -> str:
    """Return why `data` is no reply of the protocol, empty if it is one."""
    if not isinstance(data, dict):
        return f"a JSON object was expected, not {type(data).__name__}"
    content = data.get("content")
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        return "it has no content"
    if text_or_none(data.get("stop_reason")) not in FINISH:
        return f"it stopped for a reason that is not known: {data.get('stop_reason')}"
    return ""
