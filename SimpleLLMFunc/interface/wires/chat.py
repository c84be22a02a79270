"""The wire ``/chat/completions``, which OpenAI began and most services speak, each in its own way; pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from SimpleLLMFunc.errors import ServerUnavailable
from SimpleLLMFunc.interface.body_json import decode
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.profile import Profile
from SimpleLLMFunc.interface.wires.failures.service_error import failure_of, read_error, status_of_error
from SimpleLLMFunc.interface.wires.items import effort_of, leave_out_sampling
from SimpleLLMFunc.interface.wires.quirks import ReplyAssembler, put_right
from SimpleLLMFunc.interface.wires.request_body import build_body
from SimpleLLMFunc.interface.wires.streams.chunk_reader import INTERRUPTED, ChunkReader, bad_reply
from SimpleLLMFunc.interface.wires.wire import Asked, Decoder, Received, WireRequest
from SimpleLLMFunc.type import ChatCompletion

__all__ = ["CHAT", "ChatCompletionsWire"]

_PATH = "/chat/completions"

_PARAMETERS = frozenset(
    {
        "audio",
        "frequency_penalty",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "metadata",
        "modalities",
        "moderation",
        "n",
        "parallel_tool_calls",
        "prediction",
        "presence_penalty",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning_effort",
        "safety_identifier",
        "seed",
        "service_tier",
        "stop",
        "store",
        "stream_options",
        "temperature",
        "tool_choice",
        "top_logprobs",
        "top_p",
        "user",
        "verbosity",
        "web_search_options",
        # Not OpenAI's, but of most other services and servers that speak it.
        "min_p",
        "repetition_penalty",
        "top_k",
    }
)

_HEAD = 8000
"""Bytes of a body that an error looks at; more than it keeps, so that no secret is cut in two."""

_SPACE = b" \t\r\n\xef\xbb\xbf"


class ChatCompletionsWire:
    """The wire ``/chat/completions``.

    A stream is complete when every choice has its finish reason, or ``[DONE]`` came, or the usage came after content.

    Source: https://platform.openai.com/docs/api-reference/chat
    """

    name = "chat"
    models_path = "/models"
    parameters = _PARAMETERS

    def path(self, model_name: str, *, stream: bool) -> str:  # noqa: ARG002 - both stand in the body
        """Return where requests go, after the base address."""
        return _PATH

    def request(self, asked: Asked, model_name: str, profile: Profile, *, stream: bool) -> WireRequest:
        """Return what goes out.

        Raises:
            ConfigError: the model has no such `thinking`.
            UsageError: there is no message, or one is none.
        """
        params, downgrades = _taken(asked.params, model_name)
        body = build_body(
            model_name,
            asked.messages,
            profile,
            tools=asked.tools,
            response_format=asked.response_format,
            stream=stream,
            params=params,
        )
        return WireRequest(_PATH, body, downgrades=tuple(downgrades))

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
            data = decode(body)
        except ValueError:
            raise bad_body(body, received) from None
        if isinstance(data, list) and len(data) == 1:
            data = data[0]
        if isinstance(data, dict) and (data.get("error") or data.get("object") == "error"):
            raise error_in(data, received)
        problem = _problem_of(data)
        if problem or not isinstance(data, dict):
            raise bad_reply(problem, body[:_HEAD].decode("utf-8", "replace"), received, again="never")
        completion = put_right(ChatCompletion.from_dict(data, tries=received.tries))
        if completion.finish_reason in INTERRUPTED:
            said = f"it broke off the answer: {completion.finish_reason}"
            raise AttemptFailed(
                ServerUnavailable(received.model, status=received.status, body=said, tries=received.tries)
            )
        return completion

    def decoder(self, received: Received) -> ChunkReader:
        """Return what reads a stream."""
        return ChunkReader(received)

    def error(self, body: bytes, received: Received) -> AttemptFailed:
        """Return what a reply with another status than 2xx means."""
        return failure_of(read_error(body), received, path=_PATH, tools=partial(tools_in, received.sent))


def _taken(params: Mapping[str, Any], model_name: str) -> tuple[Mapping[str, Any], list[tuple[str, str]]]:
    """Return the parameters in the words of the model, and what is told of those that are left out."""
    if not params:
        return params, []
    spoken, thinking = dict(params), params.get("thinking")
    # Else it is a service's own parameter of this name.
    if isinstance(thinking, (str, int)) and not isinstance(thinking, bool):
        del spoken["thinking"]
        if word := effort_of(thinking, model_name):
            spoken["reasoning_effort"] = word
    downgrades = leave_out_sampling(spoken, model_name, spoken.get("reasoning_effort"))
    return spoken, downgrades


CHAT = ChatCompletionsWire()
"""The one of all models: it holds nothing."""


def tools_in(sent: bytes) -> list[str]:
    """Return the names of the tools in the body of a request."""
    tools = decode(sent).get("tools") or [] if sent else []
    return [str(tool.get("function", tool).get("name", "")) for tool in tools]


def is_events(body: bytes) -> bool:
    """Whether a body is a stream of events, though a whole reply was asked for."""
    return body[:1] != b"{" and body[:64].lstrip(_SPACE).startswith((b"data:", b"event:", b":"))


def reply_of_events(decoder: Decoder, body: bytes, received: Received) -> ChatCompletion:
    """Read a stream that a service sent although a whole reply was asked for."""
    assembler = ReplyAssembler()
    for chunks in (decoder.feed(body), decoder.close()):
        for chunk in chunks:
            assembler.add(chunk)
    return assembler.completion(received.tries)


def _problem_of(data: Any) -> str:
    """Return why `data` is no reply of the protocol, empty if it is one."""
    if not isinstance(data, dict):
        return f"a JSON object was expected, not {type(data).__name__}"
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices:
        return "it has no choices"
    for choice in choices:
        if not isinstance(choice, dict) or not isinstance(choice.get("message"), dict):
            return "a choice has no message"
    return ""


def error_in(data: dict[str, Any], received: Received) -> AttemptFailed:
    """Return what an error in a reply with status 200 means; its code counts as if it were the status."""
    error = read_error(data)
    status = status_of_error(error)
    if status is None:
        return bad_reply("it holds an error", error.message, received, again="never")
    return failure_of(error, received, status=status)


def bad_body(body: bytes, received: Received) -> AttemptFailed:
    """Return what a body is that is not JSON."""
    text = body[:_HEAD].decode("utf-8", "replace").strip()
    if not text:
        problem = "it is empty"
    elif text.startswith("<"):
        problem = "it is a web page"
    elif text.startswith(("{", "[")):
        problem = "its JSON is cut or broken"
    else:
        problem = "it is not JSON"
    return bad_reply(problem, text, received)
