"""What a wire is, and what all of them share: replies read from JSON or events, errors dressed as a success; pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, cast

from SimpleLLMFunc.interface.body_json import decode
from SimpleLLMFunc.interface.failed_attempt import Again, AttemptFailed
from SimpleLLMFunc.interface.profile import Profile
from SimpleLLMFunc.interface.wires.failures.service_error import failure_of, read_error, status_of_error
from SimpleLLMFunc.interface.wires.streams.chunk_reader import EventReader, bad_reply
from SimpleLLMFunc.interface.wires.streams.delta_assembly import ReplyAssembler, put_right
from SimpleLLMFunc.interface.wires.wire import Asked, Received, WireRequest
from SimpleLLMFunc.type import ChatCompletion, mapping, mappings

_HEAD = 8000
"""Bytes of a body that an error looks at; more than it keeps, so that no secret is cut in two."""

_SPACE = b" \t\r\n\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Wire(ABC):
    """One protocol of providers, pure: bytes and plain data in and out; no sockets, no clock, no retries.

    Replies are JSON, or events of JSON; a subclass reads one.

    Attributes:
        service: the host, which gets back what it wanted back.
        name: what it is called.
        parameters: the request parameters that it knows, without those that the library writes.
        request_path: after the base address, where no part of it changes.
        models_path: where the service lists its models, after the base address.
        reader: reads a reply, whole or streamed.
        asks_again: whether a reply that does not fit the protocol is asked for again.
    """

    service: str = ""

    name: ClassVar[str]
    parameters: ClassVar[frozenset[str]]
    request_path: ClassVar[str] = ""
    models_path: ClassVar[str] = "/models"
    reader: ClassVar[type[EventReader]]
    asks_again: ClassVar[Again] = "once"

    def path(self, model_name: str, *, stream: bool) -> str:  # noqa: ARG002 - the body holds both
        """Return where requests go, after the base address."""
        return self.request_path

    @abstractmethod
    def request(self, asked: Asked, model_name: str, profile: Profile, *, stream: bool) -> WireRequest:
        """Return what goes out.

        Args:
            asked: in chat completions' form.
            model_name: its family tells what may be sent.
            profile: what the service can do.
            stream: events are wanted.

        Raises:
            ConfigError: something that the wire, or the model, has no word for.
            UsageError: there is no message, or one is not a message.
        """

    def auth(self, key: str) -> Mapping[str, str]:
        """Return the header that carries the key."""
        return {"Authorization": f"Bearer {key}"}

    def decoder(self, received: Received) -> EventReader:
        """Return what reads a reply."""
        return self.reader(received, self.service)

    def reply(self, body: bytes, received: Received) -> ChatCompletion:
        """Return the whole reply.

        Raises:
            AttemptFailed: it is broken, or no reply of the protocol, or an error dressed as a success.
        """
        if _is_events(body):
            return self._reply_of_events(body, received)
        try:
            data: Any = decode(body)
        except ValueError:
            raise _bad_body(body, received) from None
        if isinstance(data, list) and len(data) == 1:
            data = data[0]
        if isinstance(data, dict) and _is_error(data):
            raise _error_in(data, received)
        reader = self.decoder(received)
        is_object = isinstance(data, dict)
        problem = reader.problem_of(data) if is_object else f"a JSON object was expected, not {type(data).__name__}"
        if problem:
            raise bad_reply(problem, body[:_HEAD].decode("utf-8", "replace"), received, again=self.asks_again)
        return put_right(reader.completion_of(cast("dict[str, Any]", data)))

    def _reply_of_events(self, body: bytes, received: Received) -> ChatCompletion:
        """Read a stream that a service sent although a whole reply was asked for."""
        decoder, assembler = self.decoder(received), ReplyAssembler()
        for chunks in (decoder.feed(body), decoder.close()):
            for chunk in chunks:
                assembler.add(chunk)
        return assembler.completion(received.tries)

    def error(self, body: bytes, received: Received) -> AttemptFailed:
        """Return what a reply with another status than 2xx means."""
        tools = partial(_tools_in, received.sent)
        return failure_of(read_error(body), received, path=self.request_path, tools=tools)


def _tools_in(sent: bytes) -> list[str]:
    """Return the names of the tools in the body of a request, on any wire."""
    names: list[str] = []
    for tool in mappings(decode(sent).get("tools")) if sent else ():
        functions = mappings(tool.get("functionDeclarations")) or [mapping(tool.get("function")) or tool]
        names += [str(function.get("name") or "") for function in functions]
    return names


def _is_events(body: bytes) -> bool:
    return body[:64].lstrip(_SPACE).startswith((b"data:", b"event:", b":"))


def _is_error(data: Mapping[str, Any]) -> bool:
    """Whether a reply is an error dressed as a success."""
    return bool(data.get("error")) or "error" in (data.get("object"), data.get("type"))


def _error_in(data: dict[str, Any], received: Received) -> AttemptFailed:
    """Return what an error in a reply with status 200 means; its code counts as if it were the status."""
    error = read_error(data)
    status = status_of_error(error)
    if status is None:
        return bad_reply("it holds an error", error.message, received, again="never")
    return failure_of(error, received, status=status)


def _bad_body(body: bytes, received: Received) -> AttemptFailed:
    """Return what a body is that is not JSON."""
    text = body[:_HEAD].decode("utf-8", "replace").strip()
    problem = "it is not JSON"
    if not text:
        problem = "it is empty"
    elif text.startswith("<"):
        problem = "it is a web page"
    elif text.startswith(("{", "[")):
        problem = "its JSON is cut or broken"
    return bad_reply(problem, text, received)
