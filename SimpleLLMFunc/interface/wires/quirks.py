"""How providers deviate from the protocol; pure.

What deviates, and is put right here:

* tool-call deltas without `index` (Gemini), with ``index: 0`` for every call (Ollama), with id and name repeated in
  each chunk (vLLM and others), without id, with an id that two calls share, with arguments as an object or as ``""``;
* reasoning under several names, apart from the answer (or at its beginning: `thoughts.py`);
* usage in every chunk, in the choice, or in another field: counted once;
* a plain JSON reply to a request for a stream;
* system messages that must stand first, reasoning that must (or must not) go back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.interface.profile import Profile
from SimpleLLMFunc.interface.wires.provider_state import STATE
from SimpleLLMFunc.interface.wires.streams.delta_assembly import rekeyed
from SimpleLLMFunc.interface.wires.streams.reasoning_text import without_thoughts
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk, Choice, ChoiceDelta, ChunkChoice, Message, ToolCall

_REASONING_FIELDS = ("reasoning_content", "reasoning")


# --- whole replies ---------------------------------------------------------------------------------------


def put_right(reply: ChatCompletion) -> ChatCompletion:
    """Return a whole reply with its reasoning apart, a unique id for each tool call, ``{}`` for no arguments."""
    if any(choice.message.tool_calls is not None for choice in reply.choices):
        choices = [
            replace(
                choice, message=replace(choice.message, tool_calls=rekeyed(choice.message.tool_calls or ()) or None)
            )
            for choice in reply.choices
        ]
        reply = replace(reply, choices=tuple(choices))
    return without_thoughts(reply)


def chunk_of_reply(reply: ChatCompletion) -> ChatCompletionChunk:
    """Return a whole reply as the one chunk of a stream, for servers that do not stream what they were asked to."""
    choices = [_chunk_choice(choice) for choice in reply.choices]
    facts = {name: getattr(reply, name) for name in ("id", "model", "created", "usage", "tries", "cached")}
    return ChatCompletionChunk(tuple(choices), **facts)


def _chunk_choice(choice: Choice) -> ChunkChoice:
    message = choice.message.to_dict()
    calls = [{**call, "index": index} for index, call in enumerate(message.get("tool_calls") or ())]
    delta = ChoiceDelta.from_dict({**message, "tool_calls": calls})
    return ChunkChoice(delta, choice.index, choice.finish_reason, choice.logprobs)


# --- messages --------------------------------------------------------------------------------------------


def wire_messages(messages: Sequence[Message], profile: Profile) -> list[dict[str, Any]]:
    """Return the messages as the wire wants them; nothing of the caller's is changed.

    System messages come first, as one: many services refuse a second one, or one in the middle. Reasoning goes back
    only where the provider asks for it. Assistant messages always have `content`, their calls have `type` and
    arguments as text.

    Raises:
        UsageError: there is no message, or one is not a message.
    """
    if not messages:
        raise UsageError("there is no message to send. Give at least one, such as a user message.")
    system: list[dict[str, Any]] = []
    others: list[dict[str, Any]] = []
    for position, item in enumerate(messages):
        message = _as_dict(item, position)
        if message["role"] in {"system", "developer"}:
            system.append(message)
        else:
            others.append(_assistant(message, profile) if message["role"] == "assistant" else message)
    return [*_one_system(system), *others]


def _as_dict(item: Any, position: int) -> dict[str, Any]:
    if hasattr(item, "model_dump"):  # an object of the openai package
        item = item.model_dump(exclude_none=True)
    if not isinstance(item, Mapping) or not isinstance(item.get("role"), str):
        raise UsageError(
            f"message {position} is not a message: it needs 'role' and 'content', and is {type(item).__name__}"
        )
    return cast("dict[str, Any]", item)


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
    drops = {STATE, *(() if profile.keep_reasoning else _REASONING_FIELDS), *(() if calls else ("tool_calls",))}
    said = {name for name, value in message.items() if value is not None or name == "content"}
    sent = {name: value for name, value in message.items() if name in said - drops}
    if sent.get("content") is None:
        # Null is for messages that call tools; an empty answer is an empty text.
        sent["content"] = None if calls else ""
    if calls:
        sent["tool_calls"] = [ToolCall.from_dict(call).to_dict() for call in calls]
    return sent
