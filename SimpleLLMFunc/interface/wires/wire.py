"""What a wire is: one protocol of providers, pure. Bytes and plain data in and out; no sockets, no clock, no retries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from SimpleLLMFunc.errors import DeadlineExceeded
from SimpleLLMFunc.interface.failed_attempt import Again, AttemptFailed
from SimpleLLMFunc.interface.profile import Profile
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk, Message, ToolSpec

__all__ = ["Asked", "Decoder", "Kept", "Received", "Wire", "WireRequest"]


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
        headers: beside those of the key and of HTTP itself.
        kept: what the wire needs to know again when it reads the reply.
        downgrades: what was asked for and is not sent, each as what it is and why.
    """

    path: str
    body: dict[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    kept: Kept = _NOTHING
    downgrades: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Received:
    """What is known of a reply beside its body.

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


class Decoder(Protocol):
    """Reads one stream, and judges whether it is complete.

    A stream that breaks before it has shown any text is a failed attempt; after that, an error with the text so far.
    """

    @property
    def count(self) -> int:
        """How many chunks there were so far."""
        ...

    @property
    def is_done(self) -> bool:
        """Whether the service has said that nothing more comes."""
        ...

    @property
    def is_complete(self) -> bool:
        """Whether the answer has ended."""
        ...

    def feed(self, piece: bytes) -> Iterable[ChatCompletionChunk]:
        """Return the chunks in the next bytes; they are read as they are taken, before the next bytes come.

        Raises, while they are taken:
            AttemptFailed: the stream broke before it had shown any text.
            StreamInterrupted, BadReply: it broke after that; `.partial` is the text so far.
        """
        ...

    def close(self) -> Iterable[ChatCompletionChunk]:
        """Return what the end of the stream shows to be an answer; raises what `feed` does."""
        ...

    def broken(self, reason: str, again: Again = "always") -> Exception:
        """Return what a break at this point is."""
        ...

    def end(self, error: AttemptFailed | DeadlineExceeded, *, is_checked: bool) -> None:
        """Judge how the stream broke, which does not matter once it is complete, and checked; else it is raised."""
        ...


class Wire(Protocol):
    """One protocol of providers."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def parameters(self) -> frozenset[str]:
        """The request parameters that it knows, beside what the library writes itself."""
        ...

    @property
    def models_path(self) -> str:
        """Where the service lists its models, after the base address."""
        ...

    def path(self, model_name: str, *, stream: bool) -> str:
        """Return where requests go, after the base address."""
        ...

    def request(self, asked: Asked, model_name: str, profile: Profile, *, stream: bool) -> WireRequest:
        """Return what goes out.

        Raises:
            UsageError: there is no message, or one is none.
        """
        ...

    def auth(self, key: str) -> Mapping[str, str]:
        """Return the headers that carry the key."""
        ...

    def reply(self, body: bytes, received: Received) -> ChatCompletion:
        """Return the whole reply.

        Raises:
            AttemptFailed: it is broken, or no reply of the protocol, or an error dressed as a success.
        """
        ...

    def decoder(self, received: Received) -> Decoder:
        """Return what reads a stream."""
        ...

    def error(self, body: bytes, received: Received) -> AttemptFailed:
        """Return what a reply with another status than 2xx means."""
        ...
