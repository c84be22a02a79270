"""The wire ``/chat/completions``, which OpenAI began and most services speak, each in its own way; pure.

How providers deviate from the protocol, and where it is put right:

* system messages that must stand first, reasoning that must (or must not) go back: here;
* tool-call deltas without `index` (Gemini), with ``index: 0`` for every call (Ollama), with id and name repeated in each
  chunk (vLLM and others), without id, with an id that two calls share, with arguments as an object or as ``""``:
  `streams/delta_assembly.py`;
* reasoning under several names, apart from the answer (or at its beginning: `streams/reasoning_text.py`);
* usage in every chunk, in the choice, or in another field, counted once: `type/usage.py`;
* a plain JSON reply to a request for a stream: `chunk_of_reply`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from SimpleLLMFunc.interface.profile import Profile
from SimpleLLMFunc.interface.wires.failures import failure_of, read_error, status_of_error
from SimpleLLMFunc.interface.wires.families import effort_of, leave_out_sampling
from SimpleLLMFunc.interface.wires.provider_state import STATE
from SimpleLLMFunc.interface.wires.replies import Wire
from SimpleLLMFunc.interface.wires.request_body import own_tool
from SimpleLLMFunc.interface.wires.streams.delta_assembly import chunk_of_reply
from SimpleLLMFunc.interface.wires.streams.events import EventReader, ServerSentEvent
from SimpleLLMFunc.interface.wires.wire import SYSTEM, Asked, Received, WireRequest
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk, Message, ToolCall, index_of, mappings, mend

_TOKEN_LIMITS = ("max_tokens", "max_completion_tokens")
_REASONING_FIELDS = ("reasoning_content", "reasoning")
_NEVER_SENT = frozenset({STATE, "annotations", "is_error"})
"""What a message carries for others: other wires' state, citations, which replies alone have, the mark of a failed tool."""

_INTERRUPTED = frozenset({"insufficient_system_resource", "network_error", "error", "abort", "aborted", "cancelled"})
"""Finish reasons by which a service says that it broke off; every other one ends an answer."""


class ChunkReader(EventReader):
    """Reads one stream of ``/chat/completions``."""

    joins_halves = True
    ends_with_done = True

    def __init__(self, received: Received, service: str = "") -> None:
        super().__init__(received, service)
        self._halves: dict[int, str] = {}

    def problem_of(self, data: Mapping[str, Any]) -> str:
        """Return why a whole reply does not fit the protocol, empty if it does."""
        choices = data.get("choices")
        if not isinstance(choices, list) or not choices:
            return "it has no choices"
        are_whole = all(isinstance(each, dict) and isinstance(each.get("message"), dict) for each in choices)
        return "" if are_whole else "a choice has no message"

    def completion_of(self, data: dict[str, Any]) -> ChatCompletion:
        """Return a whole reply; raises what `EventReader.completion_of` does."""
        completion, failed = ChatCompletion.from_dict(data, tries=self._received.tries), _failed_in(data)
        if not failed and completion.finish_reason in _INTERRUPTED:
            failed = {"error": f"it broke off the answer: {completion.finish_reason}"}
        if failed:
            error = read_error(failed)
            raise failure_of(error, self._received, status=status_of_error(error) or 503)
        return completion

    @property
    def is_complete(self) -> bool:
        """Whether the answer has ended."""
        return self.is_done or self._reply.is_complete

    def chunk_of(self, value: dict[str, Any], event: ServerSentEvent) -> ChatCompletionChunk | None:
        """Return the chunk in an event; raises what `read` does."""
        kind, failed = value.get("object"), _failed_in(value)
        if failed or event.event == "error" or kind == "error":
            raise self.error_in(failed or value)
        if "choices" not in value and "usage" not in value:
            # A message may be why no answer comes; all else is a ping, or of a kind we do not know.
            self._said = value if value.get("message") or value.get("detail") else self._said
            return None
        if self._halves or b"\\ud" in event.data.lower():
            value = self._with_whole_characters(value)
        if kind == "chat.completion":  # a whole reply may be the only event of a stream
            return chunk_of_reply(ChatCompletion.from_dict(value, tries=self._received.tries))
        return ChatCompletionChunk.from_dict(value, tries=self._received.tries)

    def _with_whole_characters(self, value: dict[str, Any]) -> dict[str, Any]:
        """Join surrogate pairs of which one chunk brought the first half and the next one the second."""
        for position, choice in enumerate(mappings(value.get("choices"))):
            delta = choice.get("delta")
            if not isinstance(delta, dict) or not isinstance(delta.get("content") or "", str):
                continue
            index = index_of(choice, position)
            text = self._halves.pop(index, "") + (delta.get("content") or "")
            if text and "\ud800" <= text[-1] <= "\udbff" and not choice.get("finish_reason"):
                self._halves[index] = text[-1]
                text = text[:-1]
            if text or delta.get("content"):
                delta["content"] = text
        mended: dict[str, Any] = mend(value)
        return mended

    def _note(self, chunk: ChatCompletionChunk) -> None:
        super()._note(chunk)
        for choice in chunk.choices:
            if choice.finish_reason in _INTERRUPTED:
                raise self.broken(f"the service said: {choice.finish_reason}")


def _failed_in(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what holds an error: the whole, or one of its choices (OpenRouter); empty where nothing does."""
    return next((part for part in (value, *mappings(value.get("choices"))) if part.get("error")), {})


class ChatCompletionsWire(Wire):
    """The wire ``/chat/completions``.

    A stream is complete when every choice has its finish reason, or ``[DONE]`` came, or the usage came after content.

    Source: https://platform.openai.com/docs/api-reference/chat
    """

    name = "chat"
    request_path = "/chat/completions"
    reader = ChunkReader
    asks_again = "never"
    # The last line is not OpenAI's, but of most other services and servers that speak it.
    parameters = frozenset({
        "audio", "frequency_penalty", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens",
        "metadata", "modalities", "moderation", "n", "parallel_tool_calls", "prediction", "presence_penalty",
        "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning_effort",
        "safety_identifier", "seed", "service_tier", "stop", "store", "stream_options", "temperature",
        "tool_choice", "top_logprobs", "top_p", "user", "verbosity", "web_search_options",
        "min_p", "repetition_penalty", "top_k",
    })  # fmt: skip

    def request(self, asked: Asked, model_name: str, profile: Profile, *, stream: bool) -> WireRequest:
        """Return what goes out.

        Raises:
            ConfigError: the model has no such `thinking`.
        """
        params, thinking = dict(asked.params), asked.params.get("thinking")
        # Else it is a service's own parameter of this name.
        if isinstance(thinking, (str, int)) and not isinstance(thinking, bool):
            del params["thinking"]
            if word := effort_of(thinking, model_name):
                params["reasoning_effort"] = word
        downgrades = leave_out_sampling(params, model_name, params.get("reasoning_effort"))
        body = build_body(model_name, replace(asked, params=params), profile, stream=stream)
        return WireRequest(self.request_path, body, downgrades=downgrades)


CHAT = ChatCompletionsWire()
"""The one of all models: it holds nothing."""


def build_body(model_name: str, asked: Asked, profile: Profile, *, stream: bool) -> dict[str, Any]:
    """Return the body of chat completions; parameters come last, and what is None is left out.

    Raises:
        ConfigError: a tool that is no function, and in a form that no service has on this wire.
    """
    body: dict[str, Any] = {"model": model_name, "messages": wire_messages(asked.messages, profile)}
    if asked.tools:
        # Some services have tools of their own on this wire, each with a type.
        body["tools"] = [
            own_tool(spec, '{"type": "web_search"}', fits="function" in spec or isinstance(spec.get("type"), str))
            for spec in asked.tools
        ]
    if asked.response_format is not None:
        body["response_format"] = asked.response_format
    if stream:
        body["stream"] = True
        if profile.stream_usage:
            body["stream_options"] = {"include_usage": True}
    for name, value in asked.params.items():
        if value is not None:
            body[profile.max_tokens_field if name in _TOKEN_LIMITS and name not in body else name] = value
    # Services refuse these where no tool is offered.
    if not asked.tools:
        body.pop("parallel_tool_calls", None)
    if not asked.tools or not profile.tool_choice:
        body.pop("tool_choice", None)
    return body


def wire_messages(messages: Sequence[Message], profile: Profile) -> list[dict[str, Any]]:
    """Return the messages as the wire wants them; nothing of the caller's is changed.

    System messages come first, as one: many services refuse a second one, or one in the middle. Reasoning goes back
    only where the provider asks for it. Assistant messages always have `content`, their calls have `type` and
    arguments as text.
    """
    given = cast("Sequence[dict[str, Any]]", messages)
    system = [message for message in given if message["role"] in SYSTEM]
    sent = [
        _assistant(message, profile)
        if message["role"] == "assistant"
        else {name: value for name, value in message.items() if name not in _NEVER_SENT}
        for message in given
        if message["role"] not in SYSTEM
    ]
    return [*_one_system(system), *sent]


def _one_system(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if len(messages) < 2:
        return messages
    contents = [message.get("content") for message in messages]
    if all(isinstance(content, str) for content in contents):
        return [{**messages[0], "content": "\n\n".join(cast("list[str]", contents))}]
    parts: list[Any] = []
    for content in contents:
        parts += [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    return [{**messages[0], "content": parts}]


def _assistant(message: dict[str, Any], profile: Profile) -> dict[str, Any]:
    calls = message.get("tool_calls")
    drops = {*_NEVER_SENT, *(() if profile.keep_reasoning else _REASONING_FIELDS), *(() if calls else ("tool_calls",))}
    drops |= {name for name, value in message.items() if value is None and name != "content"}
    sent = {name: value for name, value in message.items() if name not in drops}
    if sent.get("content") is None:
        # Null is for messages that call tools; an empty answer is an empty text.
        sent["content"] = None if calls else ""
    if calls:
        sent["tool_calls"] = [ToolCall.from_dict(call).to_dict() for call in calls]
    return sent
