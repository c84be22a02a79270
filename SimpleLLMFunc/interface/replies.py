"""Reads what came back: a whole reply, or a stream of chunks; judges whether it is complete.

A stream is complete when every choice has its finish reason, or ``[DONE]`` came, or the usage came after content.
Before it has shown any text, a broken stream is a failed try like any other; after that it is `StreamInterrupted`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from typing import Any

from SimpleLLMFunc.errors import (
    BODY_LIMIT,
    BadReply,
    ConnectionFailed,
    DeadlineExceeded,
    ProviderError,
    ServerUnavailable,
    SimpleLLMFuncError,
    StreamInterrupted,
)
from SimpleLLMFunc.interface.dialect import ReplyAssembler, chunk_of_reply, normalise_reply
from SimpleLLMFunc.interface.per_choice import PerChoice
from SimpleLLMFunc.interface.retry import Again, TryFailed
from SimpleLLMFunc.interface.service_error import failure_of, read_error, status_of_error
from SimpleLLMFunc.interface.sse import EventDecoder, ServerSentEvent
from SimpleLLMFunc.interface.thoughts import StreamedThoughts, without_thoughts
from SimpleLLMFunc.interface.transport import LARGEST_BODY, HttpReply, now, read_all
from SimpleLLMFunc.interface.wire_json import decode, decode_large, mend
from SimpleLLMFunc.logger.redact import redact_head
from SimpleLLMFunc.type.completion import ChatCompletion, ChatCompletionChunk
from SimpleLLMFunc.type.wire import index_of, mappings

__all__ = ["check_status", "read_chunks", "read_reply"]

_INTERRUPTED = frozenset({"insufficient_system_resource", "network_error", "error", "abort", "aborted", "cancelled"})
"""Finish reasons by which a service says that it broke off; every other one ends an answer."""

_AFTER_END_SECONDS = 5.0
"""How long the usage and ``[DONE]`` may follow the last finish reason."""

_CLOSING_SECONDS = 0.05
"""How long the end of the body may follow ``[DONE]``; waiting for it keeps the connection."""

_HEAD = 8000
"""Bytes of a body that an error looks at; more than it keeps, so that no secret is cut in two."""

_SLICE = 16 * 1024
"""Bytes of a stream that are read in one go; what has arrived at once may be ten times as much."""

_DONE = b"[DONE]"
_SPACE = b" \t\r\n\xef\xbb\xbf"


async def check_status(reply: HttpReply, model: str, tries: int) -> None:
    """Return if the status is 2xx.

    Raises:
        TryFailed: it is not; the error tells what it means.
    """
    if 200 <= reply.status < 300:
        return
    body = await read_all(reply, model, tries)
    raise failure_of(reply.status, read_error(body), headers=reply.headers, now=now(), model=model, tries=tries)


# --- whole replies ---------------------------------------------------------------------------------------


async def read_reply(reply: HttpReply, model: str, tries: int) -> ChatCompletion:
    """Return the whole reply.

    Raises:
        TryFailed: it is broken, or no reply of the protocol, or an error dressed as a success.
        DeadlineExceeded: the call took too long.
    """
    return await _whole(reply, await read_all(reply, model, tries), model, tries)


async def _whole(reply: HttpReply, body: bytes, model: str, tries: int) -> ChatCompletion:
    start = body[:64].lstrip(_SPACE)
    if start.startswith((b"data:", b"event:", b":")):
        return _from_events(body, model, tries)
    try:
        data = await decode_large(body)
    except ValueError:
        raise _bad_body(reply, body, model, tries) from None
    if isinstance(data, list) and len(data) == 1:
        data = data[0]
    _check_error(data, reply.headers, model, tries)
    problem = _problem_of(data)
    if problem or not isinstance(data, Mapping):
        head = body[:_HEAD].decode("utf-8", "replace")
        raise _bad(problem, head, model, tries, status=reply.status, again="never")
    completion = without_thoughts(normalise_reply(ChatCompletion.from_dict(data, tries=tries)))
    if completion.finish_reason in _INTERRUPTED:
        said = f"it broke off the answer: {completion.finish_reason}"
        raise TryFailed(ServerUnavailable(model, status=reply.status, body=said, tries=tries))
    return completion


def _problem_of(data: Any) -> str:
    """Return why `data` is no reply of the protocol, empty if it is one."""
    if not isinstance(data, Mapping):
        return f"a JSON object was expected, not {type(data).__name__}"
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices:
        return "it has no choices"
    if not all(isinstance(choice, Mapping) and isinstance(choice.get("message"), Mapping) for choice in choices):
        return "a choice has no message"
    return ""


def _check_error(data: Any, headers: Mapping[str, str], model: str, tries: int) -> None:
    """Raise what an error in a reply with status 200 means; its code counts as if it were the status."""
    if not isinstance(data, Mapping) or not (data.get("error") or data.get("object") == "error"):
        return
    error = read_error(data)
    status = status_of_error(error)
    if status is None:
        raise _bad("it holds an error", error.message, model, tries, status=200, again="never")
    raise failure_of(status, error, headers=headers, now=now(), model=model, tries=tries)


def _bad_body(reply: HttpReply, body: bytes, model: str, tries: int) -> TryFailed:
    text = body[:_HEAD].decode("utf-8", "replace").strip()
    if not text:
        problem = "it is empty"
    elif text.startswith("<"):
        problem = "it is a web page"
    elif text.startswith(("{", "[")):
        problem = "its JSON is cut or broken"
    else:
        problem = "it is not JSON"
    return _bad(problem, text, model, tries, status=reply.status)


def _bad(
    problem: str, head: str, model: str, tries: int, *, status: int | None = None, again: Again = "once"
) -> TryFailed:
    return TryFailed(
        BadReply(model, problem=problem, head=redact_head(head, 2000), status=status, tries=tries), again=again
    )


def _from_events(body: bytes, model: str, tries: int) -> ChatCompletion:
    """Read a stream that a service sent although a whole reply was asked for."""
    reader = _ChunkReader(model, tries, {})
    assembler = ReplyAssembler()
    decoder = EventDecoder()
    events = decoder.feed(body)
    for event in [*events, *filter(None, [decoder.close()])]:
        chunk = reader.read(event)
        if chunk is not None:
            assembler.add(chunk)
    if not reader.is_complete:
        raise reader.broken("the connection was closed")
    if rest := reader.rest():
        assembler.add(rest)
    return assembler.completion(tries)


# --- streams ---------------------------------------------------------------------------------------------


class _ChunkReader:
    """Reads the events of one stream and keeps what is needed to judge it."""

    __slots__ = (
        "_finished",
        "_halves",
        "_has_answer",
        "_has_shown",
        "_has_usage",
        "_headers",
        "_is_finished",
        "_model",
        "_open",
        "_texts",
        "_thoughts",
        "_tries",
        "is_done",
    )

    def __init__(self, model: str, tries: int, headers: Mapping[str, str]) -> None:
        self._model = model
        self._tries = tries
        self._headers = headers
        self._texts: list[str] = []
        self._is_finished: PerChoice[bool] = PerChoice()
        self._open = self._finished = 0  # how many choices
        self._halves: dict[int, str] | None = None
        self._thoughts = StreamedThoughts()
        self._has_shown = False
        self._has_answer = False
        self._has_usage = False
        self.is_done = False

    @property
    def partial(self) -> str:
        """The text so far."""
        return "".join(self._texts)

    @property
    def is_complete(self) -> bool:
        """Whether the answer has ended."""
        return self.is_done or self._has_usage or bool(self._finished and not self._open)

    def chunks(self, events: Iterable[ServerSentEvent]) -> Iterator[ChatCompletionChunk]:
        """Yield the chunks in some events, as far as the end of the stream; raises what `read` does."""
        for event in events:
            chunk = self.read(event)
            if chunk is not None:
                yield chunk
            if self.is_done:
                return

    def read(self, event: ServerSentEvent) -> ChatCompletionChunk | None:
        """Return the chunk in an event, None where there is none.

        Raises:
            StreamInterrupted, BadReply: the stream broke after some text.
            TryFailed: it broke before.
        """
        data = event.data
        if data.strip() == _DONE:
            self.is_done = True
            return None
        try:
            value = decode(data, mended=False)
        except ValueError:
            if event.event == "error":
                raise self.broken(f"the service said: {event.text}") from None
            raise self._bad_event(event, "an event is not JSON") from None
        if not isinstance(value, dict):
            raise self._bad_event(event, "an event is not a JSON object")
        if value.get("error") or event.event == "error" or value.get("object") == "error":
            raise self._error(value)
        if "choices" not in value and "usage" not in value:
            return None  # a ping, or an event of a kind we do not know
        if self._halves or b"\\ud" in data or b"\\uD" in data:
            self._join_halves(value)
        chunk = self._thoughts.apart(self._chunk(value))
        self._note(chunk)
        return chunk

    def rest(self) -> ChatCompletionChunk | None:
        """Return what the end of the stream shows to be text, None where there is nothing."""
        rest = self._thoughts.rest()
        if rest:
            self._note(rest)
        return rest

    def _chunk(self, value: dict[str, Any]) -> ChatCompletionChunk:
        if value.get("object") == "chat.completion":
            # A whole reply as the only event of a stream.
            return chunk_of_reply(ChatCompletion.from_dict(value, tries=self._tries))
        return ChatCompletionChunk.from_dict(value, tries=self._tries)

    def _join_halves(self, value: dict[str, Any]) -> None:
        """Join surrogate pairs of which one chunk brought the first half and the next one the second."""
        halves = self._halves = self._halves or {}
        for position, choice in enumerate(mappings(value.get("choices"))):
            delta = choice.get("delta")
            if not isinstance(delta, dict) or not isinstance(delta.get("content") or "", str):
                continue
            index = index_of(choice, position)
            text = halves.pop(index, "") + (delta.get("content") or "")
            if text and "\ud800" <= text[-1] <= "\udbff" and not choice.get("finish_reason"):
                halves[index] = text[-1]
                text = text[:-1]
            if text or delta.get("content"):
                delta["content"] = text
        mended = mend(value)
        value.clear()
        value.update(mended)

    def _note(self, chunk: ChatCompletionChunk) -> None:
        adds = False
        for choice in chunk.choices:
            delta = choice.delta
            if delta.content:
                adds = self._has_shown = True
                if choice.index == 0:
                    self._texts.append(delta.content)
            adds = adds or bool(delta.tool_calls)
            if not choice.finish_reason:
                if self._is_finished.get(choice.index) is None:
                    self._is_finished.put(choice.index, False)
                    self._open += 1
            elif choice.finish_reason in _INTERRUPTED:
                raise self.broken(f"the service said: {choice.finish_reason}")
            else:
                known = self._is_finished.get(choice.index)
                self._is_finished.put(choice.index, True)
                self._open -= known is False
                self._finished += known is not True
        self._has_answer = self._has_answer or adds
        if chunk.usage is not None and not adds and self._has_answer:
            self._has_usage = True

    def broken(self, reason: str, again: Again = "always") -> Exception:
        """Return what a break at this point is."""
        error = StreamInterrupted(
            self._model, partial=self.partial, reason=redact_head(reason, BODY_LIMIT), tries=self._tries
        )
        return error if self._has_shown else TryFailed(error, again=again)

    def ending(self, last: ServerSentEvent | None) -> Iterator[ChatCompletionChunk]:
        """Yield what the end of the stream shows to be an answer; `last` is an event that it cut off.

        Raises:
            StreamInterrupted: the answer had not ended, after some text.
            TryFailed: the same before.
        """
        if last is not None and (ended := _last_chunk(self, last)) is not None:
            yield ended
        if not self.is_complete:
            raise self.broken("the connection was closed")
        if rest := self.rest():
            yield rest

    def end(self, error: TryFailed | DeadlineExceeded) -> None:
        """Judge how the stream broke, which does not matter once it is complete; else it is raised."""
        if self.is_complete:
            return
        if isinstance(error, DeadlineExceeded):
            error.partial = self.partial
            raise error
        if isinstance(error.error, ConnectionFailed):
            raise self.broken(error.error.reason) from error.__cause__
        if self.partial:
            # Whatever it was: what has been shown is not asked for again.
            raise self.broken(str(error.error)) from error.__cause__
        raise error

    def _bad_event(self, event: ServerSentEvent, problem: str) -> Exception:
        failed = _bad(problem, event.text, self._model, self._tries)
        if not self._has_shown:
            return failed
        return BadReply(
            self._model, problem=problem, head=redact_head(event.text, 2000), partial=self.partial, tries=self._tries
        )

    def _error(self, value: dict[str, Any]) -> Exception:
        error = read_error(value)
        status = status_of_error(error)
        if self._has_shown or status is None:
            return self.broken(f"the service said: {error.message}")
        return failure_of(status, error, headers=self._headers, now=now(), model=self._model, tries=self._tries)


async def read_chunks(reply: HttpReply, model: str, tries: int) -> AsyncGenerator[ChatCompletionChunk, None]:
    """Yield the chunks of a streamed reply as they arrive; return when it is complete.

    Raises:
        TryFailed: it broke before it had shown any text.
        StreamInterrupted, BadReply, DeadlineExceeded: it broke after that; `.partial` is the text so far.
    """
    piece = await _first_bytes(reply, model, tries)
    if piece.lstrip(_SPACE)[:1] in {b"{", b"[", b"<"}:
        yield chunk_of_reply(await _whole(reply, piece + await read_all(reply, model, tries), model, tries))
        return
    reader = _ChunkReader(model, tries, reply.headers)
    decoder = EventDecoder()
    size = 0
    while piece:
        size += len(piece)
        for start in range(0, len(piece), _SLICE):
            if start:
                await asyncio.sleep(0)  # a long piece holds hundreds of chunks: in between others have their turn
            for chunk in reader.chunks(decoder.feed(piece[start : start + _SLICE])):
                reply.patience.progress()
                yield chunk
                del chunk  # not kept while the next one is waited for; the same in the generators around this one
            if reader.is_done:
                for chunk in reader.ending(None):
                    yield chunk
                await _finish(reply)
                return
        if size > LARGEST_BODY:
            raise reader.broken(f"it is longer than {LARGEST_BODY} bytes", again="never")
        if reader.is_complete:
            reply.patience.shorten(_AFTER_END_SECONDS)
        piece = b""  # not kept while the next one is waited for
        try:
            reply.patience.deadline.check("reading the answer")
            piece = await reply.piece()
        except (TryFailed, DeadlineExceeded) as error:
            reader.end(error)
    for chunk in reader.ending(decoder.close()):
        yield chunk


async def _first_bytes(reply: HttpReply, model: str, tries: int) -> bytes:
    """Return the body up to its first character that is no white space; empty where there is none."""
    start = b""
    while not start.strip(_SPACE):
        try:
            piece = await reply.piece()
        except TryFailed as failed:
            if isinstance(failed.error, ConnectionFailed):
                raise _ChunkReader(model, tries, {}).broken(failed.error.reason) from failed.__cause__
            raise
        if not piece:
            break
        start += piece
    return start


def _last_chunk(reader: _ChunkReader, event: ServerSentEvent) -> ChatCompletionChunk | None:
    """Return the chunk of an event that the end cut off before its blank line; a cut in its middle leaves none."""
    try:
        return reader.read(event)
    except BadReply:
        return None
    except TryFailed as failed:
        if isinstance(failed.error, BadReply):
            return None
        raise


async def _finish(reply: HttpReply) -> None:
    """Read to the end of the body, where it is near, so that the connection can serve the next request."""
    reply.patience.shorten(_CLOSING_SECONDS)
    try:
        while await reply.piece():
            pass
    except (TryFailed, ProviderError, SimpleLLMFuncError):
        return  # the answer is complete; the connection is closed instead of being kept
