"""Reads what came back: a whole reply, or a stream of chunks; judges whether it is complete.

A stream is complete when every choice has its finish reason, or ``[DONE]`` came, or the usage came after content; one
that is packed, when in addition what it packs is whole: damaged bytes unpack too, and only the checksum tells.
Before it has shown any text, a broken stream is a failed try like any other; after that it is `StreamInterrupted`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from typing import Any

from SimpleLLMFunc.errors import (
    ConnectionFailed,
    DeadlineExceeded,
    ServerUnavailable,
    SimpleLLMFuncError,
)
from SimpleLLMFunc.interface.attempts.retry import now
from SimpleLLMFunc.interface.body_json import decode, decode_large, is_large, off_loop
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.http import LARGEST_BODY, HttpReply, read_all
from SimpleLLMFunc.interface.wires import (
    INTERRUPTED,
    ChunkReader,
    EventDecoder,
    ReplyAssembler,
    bad_reply,
    chunk_of_reply,
    failure_of,
    normalise_reply,
    read_error,
    status_of_error,
    without_thoughts,
)
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk

__all__ = ["check_status", "read_chunks", "read_reply"]

_AFTER_END_SECONDS = 5.0
"""How long the usage and ``[DONE]`` may follow the last finish reason."""

_CLOSING_SECONDS = 0.05
"""How long the end of the body may follow ``[DONE]``; waiting for it keeps the connection."""

_HEAD = 8000
"""Bytes of a body that an error looks at; more than it keeps, so that no secret is cut in two."""

_SLICE = 16 * 1024
"""Bytes of a stream that are read in one go; what has arrived at once may be ten times as much."""

_SPACE = b" \t\r\n\xef\xbb\xbf"


async def check_status(reply: HttpReply, model: str, tries: int) -> None:
    """Return if the status is 2xx.

    Raises:
        AttemptFailed: it is not; the error tells what it means.
    """
    if 200 <= reply.status < 300:
        return
    body = await read_all(reply, model, tries)
    error = await off_loop(read_error, body) if is_large(body) else read_error(body)
    raise failure_of(reply.status, error, headers=reply.headers, now=now(), model=model, tries=tries)


# --- whole replies ---------------------------------------------------------------------------------------


async def read_reply(reply: HttpReply, model: str, tries: int, *, start: bytes = b"") -> ChatCompletion:
    """Return the whole reply; `start` is what has been read of it.

    Raises:
        AttemptFailed: it is broken, or no reply of the protocol, or an error dressed as a success.
        DeadlineExceeded: the call took too long.
    """
    body = start + await read_all(reply, model, tries)
    if body[:1] != b"{" and body[:64].lstrip(_SPACE).startswith((b"data:", b"event:", b":")):
        given = (body, model, tries)
        return await off_loop(_from_events, *given) if is_large(body) else _from_events(*given)
    try:
        data = await decode_large(body) if is_large(body) else decode(body)
    except ValueError:
        raise _bad_body(reply, body, model, tries) from None
    if isinstance(data, list) and len(data) == 1:
        data = data[0]
    if isinstance(data, dict) and (data.get("error") or data.get("object") == "error"):
        raise _error_in(data, reply.headers, model, tries)
    problem = _problem_of(data)
    if problem or not isinstance(data, dict):
        head = body[:_HEAD].decode("utf-8", "replace")
        raise bad_reply(problem, head, model, tries, status=reply.status, again="never")
    completion = without_thoughts(normalise_reply(ChatCompletion.from_dict(data, tries=tries)))
    if completion.finish_reason in INTERRUPTED:
        said = f"it broke off the answer: {completion.finish_reason}"
        raise AttemptFailed(ServerUnavailable(model, status=reply.status, body=said, tries=tries))
    return completion


def _problem_of(data: Any) -> str:
    """Return why `data` is no reply of the protocol, empty if it is one."""
    if not isinstance(data, dict):
        return f"a JSON object was expected, not {type(data).__name__}"
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices:
        return "it has no choices"
    for choice in choices:
        if not isinstance(choice, dict) or not isinstance(choice.get("message"), dict):
            return "a choice has no message"
    return ""


def _error_in(data: dict[str, Any], headers: Mapping[str, str], model: str, tries: int) -> AttemptFailed:
    """Return what an error in a reply with status 200 means; its code counts as if it were the status."""
    error = read_error(data)
    status = status_of_error(error)
    if status is None:
        return bad_reply("it holds an error", error.message, model, tries, status=200, again="never")
    return failure_of(status, error, headers=headers, now=now(), model=model, tries=tries)


def _bad_body(reply: HttpReply, body: bytes, model: str, tries: int) -> AttemptFailed:
    text = body[:_HEAD].decode("utf-8", "replace").strip()
    if not text:
        problem = "it is empty"
    elif text.startswith("<"):
        problem = "it is a web page"
    elif text.startswith(("{", "[")):
        problem = "its JSON is cut or broken"
    else:
        problem = "it is not JSON"
    return bad_reply(problem, text, model, tries, status=reply.status)


def _from_events(body: bytes, model: str, tries: int) -> ChatCompletion:
    """Read a stream that a service sent although a whole reply was asked for."""
    reader = ChunkReader(model, tries, {})
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


async def read_chunks(reply: HttpReply, model: str, tries: int) -> AsyncGenerator[Iterable[ChatCompletionChunk], None]:
    """Yield the chunks of each piece of a streamed reply, as the pieces arrive; return when it is complete.

    The chunks of a piece are read as they are asked for, and have to be taken before the next piece is. By the piece,
    because to hand each chunk through one more generator takes as long as to decode its JSON.

    Raises, also while the chunks of a piece are read:
        AttemptFailed: it broke before it had shown any text.
        StreamInterrupted, BadReply, DeadlineExceeded: it broke after that; `.partial` is the text so far.
    """
    piece = await _first_bytes(reply, model, tries)
    if piece.lstrip(_SPACE)[:1] in {b"{", b"[", b"<"}:
        yield (chunk_of_reply(await read_reply(reply, model, tries, start=piece)),)
        return
    reader = ChunkReader(model, tries, reply.headers, began=now())
    decoder = EventDecoder()
    size = 0
    while piece:
        size += len(piece)
        for start in range(0, len(piece), _SLICE):
            if start:
                await asyncio.sleep(0)  # a long piece holds hundreds of chunks: in between others have their turn
            count = reader.count
            yield reader.chunks(decoder.feed(piece[start : start + _SLICE]))
            if reader.count > count:
                reply.patience.progress()
            if reader.is_done:
                yield reader.ending(None)
                await _finish(reply, reader)
                return
        if size > LARGEST_BODY:
            raise reader.broken(f"it is longer than {LARGEST_BODY} bytes", again="never")
        if reader.is_complete:
            reply.patience.shorten(_AFTER_END_SECONDS)
        piece = b""  # not kept while the next one is waited for
        try:
            reply.patience.deadline.check("reading the answer")
            piece = await reply.piece()
        except (AttemptFailed, DeadlineExceeded) as error:
            reader.end(error, is_checked=reply.is_checked)
    yield reader.ending(decoder.close())


async def _first_bytes(reply: HttpReply, model: str, tries: int) -> bytes:
    """Return the body up to its first character that is no white space; empty where there is none."""
    start = b""
    while not start.strip(_SPACE):
        try:
            piece = await reply.piece()
        except AttemptFailed as failed:
            if isinstance(failed.error, ConnectionFailed):
                raise ChunkReader(model, tries, {}).broken(failed.error.reason) from failed.__cause__
            raise
        if not piece:
            break
        start += piece
    return start


async def _finish(reply: HttpReply, reader: ChunkReader) -> None:
    """Read to the end of the body, where it is near, so that the connection can serve the next request.

    Raises what `ChunkReader.end` does, where the body is packed and not whole; the answer is complete otherwise.
    """
    reply.patience.shorten(_CLOSING_SECONDS if reply.is_checked else _AFTER_END_SECONDS)
    try:
        while await reply.piece():
            pass
    except (AttemptFailed, DeadlineExceeded) as error:
        reader.end(error, is_checked=reply.is_checked)
    except SimpleLLMFuncError:
        if not reply.is_checked:
            raise
