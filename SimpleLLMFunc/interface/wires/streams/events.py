"""The events of a streamed reply: bytes to events, events to chunks, and judged; pure.

`EventReader` is what the wires share; a wire says what a whole reply is, what one event is, and when its answer is
complete.

Source of `EventDecoder`: WHATWG HTML, section 9.2.6 "Interpreting an event stream", with one leniency: an event that the
end of the stream cut off before its blank line is still handed out by `close`, for the reader to judge.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

from SimpleLLMFunc.errors import BODY_LIMIT, BadReply, ConnectionFailed, DeadlineExceeded, RunError, StreamInterrupted
from SimpleLLMFunc.interface.body_json import decode, decoded, head_of
from SimpleLLMFunc.interface.failed_attempt import Again, AttemptFailed
from SimpleLLMFunc.interface.wires.failures import failure_of, read_error, status_of_error
from SimpleLLMFunc.interface.wires.streams.delta_assembly import ReplyAssembler, call_dict
from SimpleLLMFunc.interface.wires.streams.reasoning_text import StreamedThoughts
from SimpleLLMFunc.interface.wires.wire import Received
from SimpleLLMFunc.logger import redact_head
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk, CompletionUsage

_BOM = b"\xef\xbb\xbf"
_GARBLED = b'"choices"'
_DONE = b"[DONE]"


class ServerSentEvent(NamedTuple):
    """One event.

    Attributes:
        data: the data lines joined with newlines, still UTF-8 bytes: a JSON decoder reads them as they are.
        event: the event's type, empty where none was given.
    """

    data: bytes
    event: str = ""


class EventDecoder:
    """Collects bytes, in pieces of any size, and gives out the events that they complete.

    Only CR, LF and CRLF end a line: other characters that Python calls line ends (U+2028, U+0085 …) are data.
    Comments are dropped. The work is linear in the number of bytes, however they are cut.

    Attributes:
        bare: lines of JSON that came without being an event: Gemini may end a stream with an error in this way.
    """

    def __init__(self) -> None:
        self._line: list[bytes] = []  # the pieces of the line that is not complete
        self._data: list[bytes] = []
        self._event = ""
        self._is_after_cr = False
        self._is_first = True
        self.bare: list[bytes] = []

    def feed(self, piece: bytes) -> list[ServerSentEvent]:
        """Take the next bytes and return the events that are complete now, in order."""
        if self._is_after_cr and piece:
            piece = piece.removeprefix(b"\n")  # the LF of a CRLF that was cut in two
            self._is_after_cr = False
        if not piece:
            return []
        self._is_after_cr = piece.endswith(b"\r")
        *ended, rest = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        events: list[ServerSentEvent] = []
        for end in ended:
            line = b"".join([*self._line, end])
            self._line = []
            if line:
                self._field(line)
            else:
                events += filter(None, [self._dispatch()])
        self._line.append(rest)
        return events

    def close(self) -> ServerSentEvent | None:
        """Return the event that the end of the stream cut off, None where nothing was pending."""
        self._field(b"".join(self._line))
        self._line = []
        return self._dispatch()

    def _dispatch(self) -> ServerSentEvent | None:
        event = ServerSentEvent(b"\n".join(self._data), self._event) if self._data else None
        self._data, self._event = [], ""
        return event

    def _field(self, line: bytes) -> None:
        if self._is_first:
            line = line.removeprefix(_BOM)
            self._is_first = False
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")
        elif _GARBLED in line:
            # Its name is damaged, but this was a piece of an answer: the reader shall see that something is wrong.
            self._data.append(line)
        elif self.bare or line.lstrip(b" \t").startswith(b"{"):
            self.bare.append(line)
        # Comments (": …"), "id" and "retry" say nothing to a reader that never reconnects.


def bad_reply(
    problem: str, head: str, received: Received, *, again: Again = "once", partial: str = ""
) -> AttemptFailed:
    """Return the failure for a reply that does not fit the protocol; `head` is how it begins, `partial` what it has shown."""
    told = {"problem": problem, "head": redact_head(head, 2000), "partial": partial}
    return AttemptFailed(BadReply(received.model, **told, **received.facts), again=again)


# --- chat completions' form, for the wires that have another -----------------------------------------------


def joined(parts: Iterable[Mapping[str, Any]], name: str = "text", between: str = "") -> str:
    """Return the texts that the parts have under a name."""
    return between.join(filter(None, (str(part.get(name) or "") for part in parts)))


def reason_in(told: Mapping[str, Any], *names: str) -> str:
    """Return why a service refused, as far as it says so under these names."""
    return ": ".join(word for word in map(told.get, names) if isinstance(word, str) and word)


def usage_dict(prompt: int, completion: int, *, cached: int = 0, written: int = 0, thinking: int = 0) -> dict[str, Any]:
    """Return usage; `prompt` holds the tokens of the cache, `completion` those of the thinking."""
    total = prompt + completion
    return CompletionUsage(prompt, completion, total, cached, thinking, cache_write_tokens=written).to_dict()


class EventReader(ABC):
    """Reads one reply: a whole one, or a stream of JSON events, of which it keeps what is needed to judge it.

    A wire writes `problem_of` and `completion_of` for the one, `chunk_of` for the other; and `is_complete` where its
    answers end before their streams.

    Args:
        received: what is known of the reply.
        service: the host, which wants some of it back.

    Attributes:
        count: of the chunks so far.
        is_writing: the latest piece was text of the answer, and no thinking has begun since.
        is_done: the service said that nothing more comes.
        joins_halves: the wire joins the halves of a character that two events brought; else lone halves are replaced.
        ends_with_done: ``[DONE]`` ends an answer; else it says nothing, though some servers write it.
    """

    joins_halves: ClassVar[bool] = False
    ends_with_done: ClassVar[bool] = False

    def __init__(self, received: Received, service: str = "") -> None:
        self._received, self._charset = received, received.charset
        self._service = service
        self._facts: Mapping[str, Any] = {}  # what the reply says of itself: `id`, `model` and `created`
        self._events = EventDecoder()
        self._reply = ReplyAssembler()
        self._call_numbers: dict[Any, int] = {}  # of the calls so far, by what the wire knows them by
        self._thoughts = StreamedThoughts()
        self._has_shown = False
        self._said: Mapping[str, Any] = {}  # what may be why no answer comes
        self.count = 0
        self.is_writing = False
        self.is_done = False

    @abstractmethod
    def problem_of(self, data: Mapping[str, Any]) -> str:
        """Return why a whole reply does not fit the protocol, empty if it does."""

    @abstractmethod
    def completion_of(self, data: dict[str, Any]) -> ChatCompletion:
        """Return a whole reply whose form is known to be good.

        Raises:
            AttemptFailed: the service says that it broke off.
        """

    def message_of(
        self, text: str, calls: Sequence[Mapping[str, Any]], thinking: str, more: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return an assistant's message; `more` are further fields of it."""
        content = text or (None if calls else "")
        return {"role": "assistant", "content": content, "tool_calls": calls, "reasoning_content": thinking, **more}

    def choice_of(
        self, words: dict[str, Any], reason: str | None, logprobs: Any = None, *, index: int = 0, of: str = "message"
    ) -> dict[str, Any]:
        """Return a choice of a whole reply, or `of` a "delta"; empty log-probabilities are left out."""
        return {"index": index, of: words, "finish_reason": reason, "logprobs": logprobs or None}

    def facts_of(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a reply says of itself, under the names of any wire: its `id`, `model` and `created`."""
        return {
            "id": str(body.get("id") or body.get("responseId") or ""),
            "model": str(body.get("model") or body.get("modelVersion") or ""),
            "created": body.get("created_at"),
        }

    def completion(self, data: Mapping[str, Any], choices: Sequence[Mapping[str, Any]], usage: Any) -> ChatCompletion:
        """Return a whole reply out of its choices in chat completions' form."""
        reply = {**self.facts_of(data), "choices": choices, "usage": usage}
        return replace(ChatCompletion.from_dict(reply, tries=self._received.tries), raw=data)

    @abstractmethod
    def chunk_of(self, value: dict[str, Any], event: ServerSentEvent) -> ChatCompletionChunk | None:
        """Return the chunk in an event; None where it has none.

        Args:
            value: the data of the event, which may be changed.
            event: the event as it came.

        Raises:
            StreamInterrupted, BadReply: the event ends the stream, after some text.
            AttemptFailed: the same before.
        """

    @property
    def is_complete(self) -> bool:
        """Whether the answer has ended: by default, whether nothing more comes."""
        return self.is_done

    @property
    def partial(self) -> str:
        """The text so far."""
        return self._reply.text

    def feed(self, piece: bytes) -> Iterator[ChatCompletionChunk]:
        """Yield the chunks in the next bytes, as far as the end of the stream; raises what `read` does."""
        for event in self._events.feed(piece):
            chunk = self.read(event)
            if chunk is not None:
                yield chunk
            if self.is_done:
                return

    def read(self, event: ServerSentEvent) -> ChatCompletionChunk | None:
        """Return the chunk in an event, None where the event has no chunk.

        Raises:
            StreamInterrupted, BadReply: the stream broke after some text.
            AttemptFailed: it broke before.
        """
        if event.data.strip() in {_DONE, b""}:  # empty ones keep a connection open
            self.is_done = self.is_done or (self.ends_with_done and bool(event.data.strip()))
            return None
        try:
            value = decode(event.data, mended=not self.joins_halves, charset=self._charset)
        except ValueError:
            if event.event == "error":
                raise self.broken(f"the service said: {head_of(event.data)}") from None
            raise self._bad_event(event, "an event is not JSON") from None
        if not isinstance(value, dict):
            raise self._bad_event(event, "an event is not a JSON object")
        chunk = self.chunk_of(value, event)
        if chunk is not None:
            chunk = self._thoughts.apart(chunk)
            self._note(chunk)
        return chunk

    def _note(self, chunk: ChatCompletionChunk) -> None:
        self.count += 1
        self._said = {}
        self._reply.add(chunk)
        self.is_writing = any(choice.delta.content for choice in chunk.choices)
        self._has_shown = self._has_shown or self.is_writing

    def broken(self, reason: str, again: Again = "always") -> Exception:
        """Return what a break at this point is."""
        told, tries = redact_head(reason, BODY_LIMIT), self._received.tries
        error = StreamInterrupted(self._received.model, partial=self.partial, reason=told, tries=tries)
        return error if self._has_shown else AttemptFailed(error, again=again)

    def close(self) -> Iterator[ChatCompletionChunk]:
        """Yield what the end of the stream shows to be an answer; an event that it cut off counts if it is whole.

        Raises:
            StreamInterrupted: the answer had not ended, after some text.
            AttemptFailed: the same before.
        """
        last = None if self.is_done else self._events.close()
        try:
            ended = self.read(last) if last is not None else None
        except (BadReply, AttemptFailed) as failed:
            if not isinstance(getattr(failed, "error", failed), BadReply):
                raise
            ended = None  # it was cut in its middle
        if ended is not None:
            yield ended
        if not self.is_complete:
            raise self._lost()
        if rest := self._thoughts.rest():
            self._note(rest)
            yield rest

    def _lost(self) -> Exception:
        """Return why no more of the answer comes."""
        said: Any = self._said
        if not said:
            if not self._events.bare:
                return self.broken("the connection was closed")
            said = decoded(b"\n".join(self._events.bare), None)
        return self.error_in(said) if isinstance(said, Mapping) else self.broken("the service sent what is no event")

    def end(self, error: AttemptFailed | DeadlineExceeded, *, is_checked: bool) -> None:
        """Judge how the stream broke, which does not matter once it is complete, and checked; else it is raised."""
        if self.is_complete and is_checked:
            return
        if isinstance(error, DeadlineExceeded):
            error.partial = self.partial
            raise error
        if isinstance(error.error, ConnectionFailed):
            raise self.broken(error.error.reason) from error.__cause__
        if self.partial:
            # After any error: a reply that was shown is not asked for again.
            raise self.broken(str(error.error)) from error.__cause__
        raise error

    def chunk(
        self, delta: dict[str, Any], reason: str | None = None, usage: Any = None, logprobs: Any = None
    ) -> ChatCompletionChunk:
        """Return what an event adds, in chat completions' form."""
        data = {**self._facts, "choices": [self.choice_of(delta, reason, logprobs, of="delta")], "usage": usage}
        return ChatCompletionChunk.from_dict(data, tries=self._received.tries)

    def new_call(self, key: Any, call_id: Any, name: Any, arguments: Any = "") -> dict[str, Any]:
        """Return the first piece of a call, for `chunk`; `key` is what the wire knows it by."""
        number = self._call_numbers[key] = len(self._call_numbers)
        return {**call_dict(call_id, name, arguments), "index": number}

    def more_of_call(self, key: Any, piece: str) -> ChatCompletionChunk:
        """Return a further piece of the arguments of a call."""
        return self.chunk({"tool_calls": [{"index": self._call_numbers[key], "function": {"arguments": piece}}]})

    def no_answer(self, problem: str) -> Exception:
        """Return what an event is that ends the stream without an answer."""
        told = problem[:200]
        return self.broken(told) if self._has_shown else bad_reply(told, "", self._received)

    def _bad_event(self, event: ServerSentEvent, problem: str) -> Exception:
        failed = bad_reply(problem, head_of(event.data), self._received, partial=self.partial)
        return failed.error if self._has_shown else failed

    def error_in(self, value: Mapping[str, Any]) -> Exception:
        """Return what an error inside the stream is."""
        error = read_error(value)
        status = status_of_error(error)
        failed = None if status is None else failure_of(error, self._received, status=status, partial=self.partial)
        if failed is None or (self._has_shown and not isinstance(failed.error, RunError)):  # what is blocked stays so
            return self.broken(f"the service said: {error.message}")
        return failed
