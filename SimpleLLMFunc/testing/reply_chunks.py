"""Replies in a provider's form: whole, with ids, finish reason and usage, and as the chunks of a stream."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk, Message, ToolCall

_PIECE = re.compile(r"\s*\S{1,4}|\s+")
"""Text of one chunk by default: about one token of a model, with the white space before it."""


def completion_of(message: Mapping[str, Any], messages: Sequence[Message], index: int, model: str) -> ChatCompletion:
    """Return the whole reply with `message`: with ids, finish reason and estimated usage.

    Args:
        message: an assistant message; its `finish_reason` is used. A dict with `choices` is the whole reply.
        messages: of the request.
        index: of the request, from 0; part of the ids.
        model: its name in the reply.
    """
    if "choices" in message:
        return ChatCompletion.from_dict({"model": model, **message})
    calls = [
        {**call, "id": call.get("id") or f"call_{index}_{position}"}
        for position, call in enumerate(message.get("tool_calls") or ())
    ]
    content = message.get("content")
    body = {"role": "assistant", **message, "content": content}
    finish_reason = body.pop("finish_reason", None) or ("tool_calls" if calls else "stop")
    if calls:
        body["tool_calls"] = calls
    prompt = sum(_tokens(message_text(each)) for each in messages)
    written = _tokens(content or "") + sum(_tokens(json.dumps(call["function"])) for call in calls)
    head = {"id": f"scripted-{index}", "object": "chat.completion", "created": 0, "model": model}
    choices = [{"index": 0, "message": body, "finish_reason": finish_reason}]
    usage = {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written}
    return ChatCompletion.from_dict({**head, "choices": choices, "usage": usage})


def split_reply(reply: ChatCompletion, chunk_size: int | None = None) -> Iterator[ChatCompletionChunk]:
    """Yield `reply` as a provider's stream: role, text, tool calls, finish reason, usage."""
    for choice in reply.choices:
        message = choice.message
        deltas: list[dict[str, Any]] = [{"role": message.role, "content": "", **message.extra}]
        deltas += [{"reasoning_content": piece} for piece in _pieces(message.reasoning_content or "", chunk_size)]
        deltas += [{"content": piece} for piece in _pieces(message.content or "", chunk_size)]
        if message.refusal:
            deltas.append({"refusal": message.refusal})
        for position, call in enumerate(message.tool_calls or ()):
            deltas += [{"tool_calls": [piece]} for piece in _call_pieces(call, position, chunk_size)]
        for delta in deltas:
            yield _chunk(reply, [{"index": choice.index, "delta": delta, "finish_reason": None}])
        end = {"finish_reason": choice.finish_reason, "logprobs": choice.logprobs}
        yield _chunk(reply, [{"index": choice.index, "delta": {}, **end}])
    if reply.usage is not None:
        yield _chunk(reply, [], usage=reply.usage.to_dict())


def _chunk(reply: ChatCompletion, choices: list[dict[str, Any]], **more: Any) -> ChatCompletionChunk:
    head = {"id": reply.id, "object": "chat.completion.chunk", "created": reply.created, "model": reply.model}
    return ChatCompletionChunk.from_dict({**head, "choices": choices, **more})


def _pieces(text: str, chunk_size: int | None) -> list[str]:
    if chunk_size is None:
        return _PIECE.findall(text)
    return [text[start : start + chunk_size] for start in range(0, len(text), chunk_size)]


def _call_pieces(call: ToolCall, index: int, chunk_size: int | None) -> Iterator[dict[str, Any]]:
    function = {"name": call.function.name, "arguments": ""}
    yield {"index": index, "id": call.id, "type": call.type, "function": function, **call.extra}
    for piece in _pieces(call.function.arguments, chunk_size):
        yield {"index": index, "function": {"arguments": piece}}


def message_text(message: Message) -> str:
    """Return the text of a message, its parts with spaces between; empty where it has none."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    return " ".join(part["text"] for part in content or () if isinstance(part.get("text"), str))


def _tokens(text: str) -> int:
    """Estimate the tokens of `text`; 0 only for no text."""
    return -(-len(text.encode("utf-8", "replace")) // 4)
