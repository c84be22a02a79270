"""Replies, whole or as the events of a stream, and judged: is the answer complete, and what is it if it broke off? Pure.

`EventReader` is what the wires share; a wire says what a whole reply is, what one event is, and when its answer is
complete.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from SimpleLLMFunc.errors import (
    BODY_LIMIT,
    BadReply,
    ConnectionFailed,
    DeadlineExceeded,
    ServerUnavailable,
    StreamInterrupted,
)
from SimpleLLMFunc.interface.body_json import decode, decoded, mend
from SimpleLLMFunc.interface.failed_attempt import Again, AttemptFailed
from SimpleLLMFunc.interface.wires.failures.service_error import failure_of, read_error, status_of_error
from SimpleLLMFunc.interface.wires.streams.delta_assembly import ReplyAssembler, call_dict, chunk_of_reply
from SimpleLLMFunc.interface.wires.streams.reasoning_text import StreamedThoughts
from SimpleLLMFunc.interface.wires.streams.sse import EventDecoder, ServerSentEvent
from SimpleLLMFunc.interface.wires.wire import Received
from SimpleLLMFunc.logger import redact_head
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk, CompletionUsage, index_of, mappings

INTERRUPTED = frozenset({"insufficient_system_resource", "network_error", "error", "abort", "aborted", "cancelled"})
"""Finish reasons by which a service says that it broke off; every other one ends an answer."""

_DONE = b"[DONE]"


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
        is_done: the service said that nothing more comes.
        joins_halves: the wire joins the halves of a character that two events brought; else lone halves are replaced.
        ends_with_done: ``[DONE]`` ends an answer; else it says nothing, though some servers write it.
    """

    joins_halves: ClassVar[bool] = False
    ends_with_done: ClassVar[bool] = False

    def __init__(self, received: Received, service: str = "") -> None:
        self._received = received
        self._service = service
        self._facts: Mapping[str, Any] = {}  # what the reply says of itself: `id`, `model` and `created`
        self._events = EventDecoder()
        self._reply = ReplyAssembler()
        self._call_numbers: dict[Any, int] = {}  # of the calls so far, by what the wire knows them by
        self._thoughts = StreamedThoughts()
        self._has_shown = False
        self.count = 0
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
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if calls:
            message |= {"content": text or None, "tool_calls": calls}
        if thinking:
            message["reasoning_content"] = thinking
        return {**message, **more}

    def choice_of(
        self, words: dict[str, Any], reason: str | None, logprobs: Any = None, *, index: int = 0, of: str = "message"
    ) -> dict[str, Any]:
        """Return a choice of a whole reply, or `of` a "delta"; empty log-probabilities are left out."""
        choice = {"index": index, of: words, "finish_reason": reason}
        return {**choice, "logprobs": logprobs} if logprobs else choice

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
        if event.data.strip() == _DONE:
            self.is_done = self.is_done or self.ends_with_done
            return None
        try:
            value = decode(event.data, mended=not self.joins_halves)
        except ValueError:
            if event.event == "error":
                raise self.broken(f"the service said: {event.text}") from None
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
        self._reply.add(chunk)
        self._has_shown = self._has_shown or any(choice.delta.content for choice in chunk.choices)

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
            raise self._bare_error() if self._events.bare else self.broken("the connection was closed")
        if rest := self._thoughts.rest():
            self._note(rest)
            yield rest

    def _bare_error(self) -> Exception:
        said = decoded(b"\n".join(self._events.bare), None)
        return self.error_in(said) if isinstance(said, dict) else self.broken("the service sent what is no event")

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
        return self.broken(problem) if self._has_shown else bad_reply(problem, "", self._received)

    def _bad_event(self, event: ServerSentEvent, problem: str) -> Exception:
        failed = bad_reply(problem, event.text, self._received, partial=self.partial)
        return failed.error if self._has_shown else failed

    def error_in(self, value: dict[str, Any]) -> Exception:
        """Return what an error inside the stream is."""
        error = read_error(value)
        status = status_of_error(error)
        if self._has_shown or status is None:
            return self.broken(f"the service said: {error.message}")
        return failure_of(error, self._received, status=status)


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
        completion = ChatCompletion.from_dict(data, tries=self._received.tries)
        if completion.finish_reason in INTERRUPTED:
            said = f"it broke off the answer: {completion.finish_reason}"
            raise AttemptFailed(ServerUnavailable(self._received.model, body=said, **self._received.facts))
        return completion

    @property
    def is_complete(self) -> bool:
        """Whether the answer has ended."""
        return self.is_done or self._reply.is_complete

    def chunk_of(self, value: dict[str, Any], event: ServerSentEvent) -> ChatCompletionChunk | None:
        """Return the chunk in an event; raises what `read` does."""
        kind = value.get("object")
        if value.get("error") or event.event == "error" or kind == "error":
            raise self.error_in(value)
        if "choices" not in value and "usage" not in value:
            return None  # a ping, or an event of a kind we do not know
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
            if choice.finish_reason in INTERRUPTED:
                raise self.broken(f"the service said: {choice.finish_reason}")
