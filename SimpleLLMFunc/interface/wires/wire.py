"""What a wire is given, and what it gives: plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from typing import Any, TypeAlias, cast

from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.type import Message, ToolSpec

SYSTEM = frozenset({"system", "developer"})
"""Roles of messages that stand above the conversation."""

Downgrades: TypeAlias = list[tuple[str, str]]
"""What was asked for and is not sent, each as what it is and why."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a model is asked: the arguments of `LLM_Interface.chat`.

    Attributes:
        params: go to the provider as they are; without `extra_body`, which no wire has to know.
        trace_id: of the run, for logs.
        deadline: seconds left for the request and its tries; None for no limit.
    """

    messages: Sequence[Message]
    tools: Sequence[ToolSpec] | None = None
    response_format: Mapping[str, Any] | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    trace_id: str = ""
    deadline: float | None = None

    @classmethod
    def of(cls, messages: Sequence[Message], **given: Any) -> Asked:
        """Return what the arguments of `LLM_Interface.chat` ask; messages of the openai package become dicts.

        Raises:
            UsageError: there is no message, one is not a message, or a tool is no dict.
        """
        if not messages:
            raise UsageError("there is no message to send. Give at least one, such as a user message.")
        own = {name: given.pop(name) for name in ("tools", "response_format", "trace_id", "deadline") if name in given}
        if not all(isinstance(spec, Mapping) for spec in own.get("tools") or ()):
            raise UsageError("a tool of chat() is a dict as on the wire; Tool(function).to_openai_tool() makes one")
        return cls([_message(each, place) for place, each in enumerate(messages)], params=given, **own)


def _message(item: Any, place: int) -> Message:
    if hasattr(item, "model_dump"):
        item = item.model_dump(exclude_none=True)
    if not isinstance(item, Mapping) or not isinstance(item.get("role"), str):
        raise UsageError(
            f"message {place} is not a message: it needs 'role' and 'content', and is {type(item).__name__}"
        )
    content = item.get("content")
    parts = [] if content is None or isinstance(content, str) else content
    if not isinstance(parts, (list, tuple)) or not all(isinstance(part, Mapping) for part in parts):
        raise UsageError(f"message {place}: its content is neither text nor a list of parts, each a dict")
    return cast("Message", item)


@dataclass(frozen=True, slots=True)
class Kept:
    """What a wire keeps of a request until it reads the reply.

    Attributes:
        prefix: a hash of all that the reply is bound to; empty where the wire binds nothing.
        limit: of the tokens of the reply, None where none was set.
    """

    prefix: str = ""
    limit: int | None = None


_NOTHING = Kept()


@dataclass(frozen=True, slots=True)
class WireRequest:
    """What goes out.

    Attributes:
        path: after the base address.
        body: JSON data.
        headers: without those of the key and of HTTP itself.
        kept: what the wire needs to know again when it reads the reply.
        downgrades: what is not sent.
    """

    path: str
    body: dict[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    kept: Kept = _NOTHING
    downgrades: Downgrades = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Received:
    """What is known of a reply apart from its body.

    Attributes:
        model: the name of the model, for errors.
        tries: requests so far, this one included.
        status: of HTTP.
        headers: found by lower-case name.
        began: when the reply began, in seconds since the epoch: dates in the headers are compared with it.
        kept: of the request.
        url: that was asked, without secrets; empty where it is not known, or all went well.
        sent: the body of the request; empty where it is not known.
    """

    model: str
    tries: int = 1
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    began: float = 0.0
    kept: Kept = _NOTHING
    url: str = field(default="", repr=False)
    sent: bytes = field(default=b"", repr=False)

    @property
    def facts(self) -> dict[str, Any]:
        """What an error tells of any reply."""
        return {"status": self.status, "tries": self.tries}

    @property
    def charset(self) -> str:
        """What the head says that the body is written in; empty where it does not."""
        return self.headers.get("content-type", "").lower().partition("charset=")[2].partition(";")[0].strip(" '\"")


# --- what headers say ---------------------------------------------------------------------------------------


def retry_after_seconds(headers: Mapping[str, str], now: float) -> float | None:
    """Return how long the service wants us to wait, None where it did not say, or nothing usable.

    Args:
        headers: of the reply, found by lower-case name.
        now: seconds since the epoch, for a date.

    Source: RFC 9110, section 10.2.3; `retry-after-ms` is an extension of OpenAI's.
    """
    milliseconds = header_number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = header_number(value)
    if value is None or seconds is not None:
        return seconds
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(value)
        seconds = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - now
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if seconds > 0 else None


def header_number(text: str | None) -> float | None:
    """Return the value of a header as a number from 0 up; None for anything else."""
    try:
        value = float(text or "nan")
    except ValueError:
        return None
    return value if 0 <= value < math.inf else None
