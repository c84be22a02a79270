"""Messages: built for the wire, read from replies, copied at the borders."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from enum import Enum
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ConfigDict, TypeAdapter

from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.type import (
    MULTIMODAL,
    ChatCompletion,
    ChatMessage,
    CompletionUsage,
    ContentPart,
    Message,
    Multimodal,
    Text,
    ToolCall,
    Usage,
    fields_or_items,
    holds_multimodal,
)
from SimpleLLMFunc.utils import settled

T = TypeVar("T")

_TOO_DEEP = "an argument is nested too deep to be written into a prompt. Give a flatter one."
_ANYTHING: TypeAdapter[Any] = TypeAdapter(Any, config=ConfigDict(defer_build=True, ser_json_inf_nan="constants"))


def copied(messages: Sequence[T]) -> list[T]:
    """Return a structural copy: new lists and dicts all the way down, the values inside shared."""
    return [_copy(message) for message in messages]


def build_multimodal_content(
    arguments: Mapping[str, Any],
    type_hints: Mapping[str, Any] | None = None,  # noqa: ARG001 - note 002 passes them; the values tell enough
    exclude_params: Sequence[str] | None = None,
) -> list[ContentPart]:
    """Return the parts of a user message that shows the arguments, in their order.

    What is shown is decided by the value alone: an `ImgPath` is an image, also behind `Optional`, a union or
    a list, and a `str` is text, for any annotation. Text becomes a part ``name: value``; None is left out. A picture in
    a dict or an object is named in its place and follows the text.

    Args:
        arguments: by parameter name, in the order they shall appear.
        type_hints: of the parameters; not needed, the note's callers pass them.
        exclude_params: names that are not shown.
    """
    excluded = set(exclude_params or ())
    parts: list[ContentPart] = []
    for name, value in arguments.items():
        if value is not None and name not in excluded:
            try:
                parts.extend(_parts(name, value))
            except RecursionError:
                raise UsageError(_TOO_DEEP) from None
    return parts


def build_assistant_response_message(reply: Any) -> Message:
    """Return the assistant's message as a history holds it.

    Args:
        reply: a text, a message, or a whole reply: ours, the openai package's, or a dict of that shape. Tool
            calls, reasoning and the provider's additions (`extra_content` …) are kept.
    """
    message = reply if isinstance(reply, ChatMessage) else _message_of(reply)
    built = dataclasses.replace(message, role="assistant", extra={}).to_dict()
    if message.content is None and not message.tool_calls:
        built["content"] = ""  # null is allowed only with tool calls
    for name, value in message.extra.items():
        # openai's own objects carry a null for every field the service did not send; LiteLLM adds an object of nulls, which
        # services behind it refuse.
        if value is not None and not (isinstance(value, Mapping) and all(each is None for each in value.values())):
            built.setdefault(name, _copy(value))
    return cast("Message", built)


def build_assistant_tool_message(
    tool_calls: Sequence[Any],
    content: str | None = None,
    *,
    reasoning_content: str | None = None,
    extra: Mapping[str, Any] | None = None,
) -> Message:
    """Return the assistant's message that calls tools.

    Args:
        tool_calls: ours, the openai package's, or dicts; what the provider added to a call is kept.
        content: what the model said with the calls.
        reasoning_content: the model's reasoning, where it has to go back.
        extra: what the provider added to the message.
    """
    calls = tuple(call if isinstance(call, ToolCall) else ToolCall.from_dict(as_data(call)) for call in tool_calls)
    message = ChatMessage(
        content=content, tool_calls=calls or None, reasoning_content=reasoning_content, extra=extra or {}
    )
    return build_assistant_response_message(message)


def extract_usage_from_response(response: Any) -> Usage | None:
    """Return the tokens that a reply or a chunk reports, None where it reports none.

    Args:
        response: ours, the openai package's, or a dict of that shape.
    """
    usage = response.get("usage") if isinstance(response, Mapping) else getattr(response, "usage", None)
    if isinstance(usage, Usage) or usage is None:
        return usage
    if isinstance(usage, CompletionUsage):
        return usage.tokens
    data = as_data(usage)
    return CompletionUsage.from_dict(data).tokens if isinstance(data, Mapping) and data else None


def render_value(value: Any) -> str:
    """Return an argument as the model reads it: text as it is, containers and models as JSON, the rest as `str` gives it."""
    value = value.value if isinstance(value, Enum) else value
    if isinstance(value, (str, bytes, bytearray, memoryview, range)):
        return str(value)
    is_data = isinstance(value, (BaseModel, Sequence, Mapping, AbstractSet))
    if is_data or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
        data = dict(value) if isinstance(value, Mapping) else value
        with suppress(ValueError, TypeError, RecursionError):
            plain = _ANYTHING.dump_python(data, mode="json", by_alias=True)
            with suppress(ValueError, TypeError, RecursionError):  # of a set of models there is no such data
                is_set = isinstance(value, (set, frozenset))
                own = value if is_set else _ANYTHING.dump_python(data, by_alias=True, warnings=False)
                plain = settled(plain, own)
            return json.dumps(plain, ensure_ascii=False)
        try:
            return str(value)
        except RecursionError:
            raise UsageError(_TOO_DEEP) from None
    if isinstance(value, (Iterator, AsyncIterator)) and not hasattr(value, "read"):
        raise UsageError(f"an argument is a {type(value).__name__}, whose items no model sees. Give a list of them.")
    return str(value)


def as_data(value: Any) -> Any:
    """Return a reply of any make as plain dicts and lists: ours, the openai package's, or anything of that shape."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Mapping):
        return {str(key): as_data(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_data(item) for item in value]
    if isinstance(value, ToolCall):
        return value.to_dict()
    return {name: as_data(item) for name, item in _attributes(value).items()}


def _attributes(value: Any) -> dict[str, Any]:
    """Return the public fields of an object, the undeclared ones of pydantic models (`reasoning_content` …) too."""
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        extra = fields.pop("extra", None)
        return {**fields, **extra} if isinstance(extra, Mapping) else fields
    extra = getattr(value, "model_extra", None)
    attributes = {**getattr(value, "__dict__", {}), **(extra if isinstance(extra, dict) else {})}
    return {name: item for name, item in attributes.items() if not name.startswith("_")}


def _message_of(reply: Any) -> ChatMessage:
    if reply is None or isinstance(reply, str):
        return ChatMessage(content=reply or "")
    if isinstance(reply, ChatCompletion):
        return reply.message
    data = as_data(reply)
    if "choices" in data:
        return ChatCompletion.from_dict(data).message
    return ChatMessage.from_dict(data)


def _copy(value: Any) -> Any:
    # By exact type: what is neither dict nor list is shared, and a subclass may not survive the copying.
    if type(value) is dict:
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if type(value) is list else value


def with_places(value: Any, media: list[Multimodal]) -> Any:
    """Return a value as data in which each picture, sound and file is its place, such as "[ImgPath 1]".

    Args:
        value: a container or an object; what holds no picture in it stays as it is.
        media: gets the pictures, sounds and files in the order of their places.

    Raises:
        RecursionError: it holds itself, or is nested too deep.
    """
    if isinstance(value, Text):
        return value.content
    if isinstance(value, MULTIMODAL):
        media.append(value)
        return f"[{type(value).__name__} {len(media)}]"
    inside = fields_or_items(value) if holds_multimodal(value) else None
    if inside is None:
        return value
    if isinstance(inside, Mapping):
        return {key: with_places(item, media) for key, item in inside.items()}
    return [with_places(item, media) for item in inside]


def _parts(name: str, value: Any) -> Iterator[ContentPart]:
    if isinstance(value, MULTIMODAL):
        yield value.to_part()
    elif isinstance(value, (list, tuple)) and holds_multimodal(value):
        for item in value:
            if item is not None:
                yield from _parts(name, item)
    else:
        media: list[Multimodal] = []
        yield {"type": "text", "text": f"{name}: {render_value(with_places(value, media))}"}
        for shown in media:
            yield shown.to_part()
