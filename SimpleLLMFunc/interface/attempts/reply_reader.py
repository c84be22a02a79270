"""Reads what came back over HTTP, by the wire that it is in: a whole reply, or a stream of chunks.

A stream that is packed is complete only when what it packs is whole: damaged bytes unpack too, and only the checksum
tells. Before it has shown any text, a broken stream is a failed try like any other; after that it is `StreamInterrupted`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from dataclasses import replace

from SimpleLLMFunc.errors import ConnectionFailed, DeadlineExceeded, SimpleLLMFuncError
from SimpleLLMFunc.interface.attempts.retry import now
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.http import Address, HttpReply, read_all
from SimpleLLMFunc.interface.wires import (
    EventReader,
    Kept,
    Received,
    Wire,
    chunk_of_reply,
    header_number,
    read_embeddings,
)
from SimpleLLMFunc.runtime import off_loop_if_large
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk

_AFTER_END_SECONDS = 5.0
"""How long the usage and ``[DONE]`` may follow the last finish reason."""

_CLOSING_SECONDS = 0.05
"""How long the end of the body may follow ``[DONE]``; waiting for it keeps the connection."""

_COST = "x-litellm-response-cost"
"""USD. Source: https://docs.litellm.ai/docs/proxy/cost_tracking"""

_SLICE = 4 * 1024
"""Bytes of a stream that are read in one go; what has arrived at once may be ten times as much."""

_BLANKS = b" \t\r\n"
_SPACE = _BLANKS + b"\xef\xbb\xbf"
_LONGEST_MARK = 1024
"""Bytes among which a byte order mark may stand, whole or in part."""


async def check_status(reply: HttpReply, wire: Wire) -> None:
    """Return if the status is 2xx.

    Raises:
        AttemptFailed: it is not; the error tells what it means.
    """
    if 200 <= reply.status < 300:
        return
    body = await read_all(reply)
    received = _received(reply)
    raise await off_loop_if_large(len(body) + len(received.sent), lambda: wire.error(body, received))


async def read_reply(reply: HttpReply, wire: Wire, kept: Kept, start: bytes = b"") -> ChatCompletion:
    """Return the whole reply; `kept` is of the request, `start` is what has been read of the reply.

    Raises:
        AttemptFailed: it is broken, or no reply of the protocol, or an error dressed as a success.
        DeadlineExceeded: the call took too long.
    """
    body = await read_all(reply, start)
    received = _received(reply, kept)
    completion = await off_loop_if_large(len(body), lambda: wire.reply(body, received))
    cost = header_number(reply.headers.get(_COST))
    if cost is None or completion.usage is None:
        return completion
    return replace(completion, usage=replace(completion.usage, cost=cost))


async def read_vectors(reply: HttpReply, count: int) -> tuple[list[list[float]], int | None]:
    """Return the vectors of a reply and the tokens that they took; see `read_embeddings`."""
    body = await read_all(reply)
    received = _received(reply)
    return await off_loop_if_large(len(body), lambda: read_embeddings(body, received, count))


def _received(reply: HttpReply, kept: Kept | None = None) -> Received:
    url = "" if 200 <= reply.status < 300 else Address(reply.url).shown
    asked = reply.request
    return Received(asked.model, asked.tries, reply.status, reply.headers, now(), kept or Kept(), url, asked.body)


async def read_chunks(reply: HttpReply, wire: Wire, kept: Kept) -> AsyncGenerator[Iterable[ChatCompletionChunk], None]:
    """Yield the chunks of each piece of a streamed reply, as the pieces arrive; return when it is complete.

    The chunks of a piece are read as they are asked for, and have to be taken before the next piece is. By the piece,
    because to hand each chunk through one more generator takes as long as to decode its JSON.

    Raises, also while the chunks of a piece are read:
        AttemptFailed: it broke before it had shown any text.
        StreamInterrupted, BadReply, DeadlineExceeded: it broke after that; `.partial` is the text so far.
    """
    decoder = wire.decoder(_received(reply, kept))
    piece = await _first_bytes(reply, decoder)
    if piece.lstrip(_SPACE)[:1] in {b"{", b"[", b"<"}:
        yield (chunk_of_reply(await read_reply(reply, wire, kept, start=piece)),)
        return
    while piece:
        for start in range(0, len(piece), _SLICE):
            if start:
                await asyncio.sleep(0)  # a long piece holds hundreds of chunks: in between others have their turn
            before = decoder.count, decoder.is_writing
            yield decoder.feed(piece[start : start + _SLICE])
            if (decoder.count, decoder.is_writing) != before:
                reply.timeout.progress(is_writing=decoder.is_writing)
            if decoder.is_done:
                yield decoder.close()
                await _finish(reply, decoder)
                return
        if decoder.is_complete:
            reply.timeout.shorten(_AFTER_END_SECONDS)
        piece = b""  # not kept while the next one is waited for
        try:
            piece = await reply.piece()
        except (AttemptFailed, DeadlineExceeded) as error:
            decoder.end(error, is_checked=reply.is_checked)
    yield decoder.close()


async def _first_bytes(reply: HttpReply, decoder: EventReader) -> bytes:
    """Return the body from about its first character that is not white space; empty for an empty body."""
    start = b""
    while not start.strip(_SPACE) and len(start) < _LONGEST_MARK:
        try:
            piece = await reply.piece()
        except AttemptFailed as failed:
            if isinstance(failed.error, ConnectionFailed):
                raise decoder.broken(failed.error.reason) from failed.__cause__
            raise
        if not piece:
            break
        start = (start + piece).lstrip(_BLANKS)
    return start


async def _finish(reply: HttpReply, decoder: EventReader) -> None:
    """Read to the end of the body, where it is near, so that the connection can serve the next request.

    Raises what `EventReader.end` does, where the body is packed and not whole; the answer is complete otherwise.
    """
    reply.timeout.shorten(_CLOSING_SECONDS if reply.is_checked else _AFTER_END_SECONDS)
    try:
        while await reply.piece():
            pass
    except (AttemptFailed, DeadlineExceeded) as error:
        decoder.end(error, is_checked=reply.is_checked)
    except SimpleLLMFuncError:
        if not reply.is_checked:
            raise
