"""What a wire is, and what all of them share: replies read from JSON or events, errors dressed as a success; pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, ClassVar

from SimpleLLMFunc.interface.body_json import decode, head_of
from SimpleLLMFunc.interface.failed_attempt import Again, AttemptFailed
from SimpleLLMFunc.interface.profile import Profile
from SimpleLLMFunc.interface.wires.failures import failure_of, read_error, status_of_error
from SimpleLLMFunc.interface.wires.streams.delta_assembly import ReplyAssembler, put_right
from SimpleLLMFunc.interface.wires.streams.events import EventReader, bad_reply
from SimpleLLMFunc.interface.wires.wire import Asked, Received, WireRequest
from SimpleLLMFunc.type import ChatCompletion, mapping, mappings

_SPACE = b" \t\r\n\xef\xbb\xbf"
_CUT = "its JSON is cut or broken"
_PROBLEMS = {"": "it is empty", "<": "it is a web page", "{": _CUT, "[": _CUT}
"""What is wrong with a body that is not JSON, by how it begins."""
_AGAIN: dict[str, Again] = {"true": "always", "false": "never"}


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
            UsageError: there is no message with a text.
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
        reader = self.decoder(received)
        if body[:64].lstrip(_SPACE).startswith((b"data:", b"event:", b":")):
            # A stream, although a whole reply was asked for.
            return ReplyAssembler(chain(reader.feed(body), reader.close())).completion(received.tries)
        try:
            data: Any = decode(body, charset=received.charset)
        except ValueError:
            text = head_of(body)
            raise bad_reply(_PROBLEMS.get(text[:1], "it is not JSON"), text, received) from None
        if isinstance(data, list) and len(data) == 1:
            data = data[0]
        if not isinstance(data, dict):
            problem = f"a JSON object was expected, not {type(data).__name__}"
        elif data.get("error") or "error" in (data.get("object"), data.get("type")):
            # The code of an error counts as if it were the status.
            error = read_error(data)
            status = status_of_error(error)
            if status is None:
                raise bad_reply("it holds an error", error.message, received, again="never")
            raise failure_of(error, received, status=status)
        else:
            problem = reader.problem_of(data)
            if not problem:
                return put_right(reader.completion_of(data))
        raise bad_reply(problem, head_of(body), received, again=self.asks_again)

    def error(self, body: bytes, received: Received) -> AttemptFailed:
        """Return what a reply with another status than 2xx means."""
        tools = partial(_tools_in, received.sent)
        failed = failure_of(read_error(body, received.charset), received, path=self.request_path, tools=tools)
        # OpenAI and Anthropic know better than the status: a 429 without hope, a 400 that is theirs.
        failed.again = _AGAIN.get(received.headers.get("x-should-retry", ""), failed.again)
        return failed


def _tools_in(sent: bytes) -> list[str]:
    """Return the names of the tools in the body of a request, on any wire."""
    names: list[str] = []
    for tool in mappings(decode(sent).get("tools")) if sent else ():
        functions = mappings(tool.get("functionDeclarations")) or [mapping(tool.get("function")) or tool]
        names += [str(function.get("name") or "") for function in functions]
    return names
