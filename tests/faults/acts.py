"""Acts that need more than a list of bytes."""

from __future__ import annotations

import gzip
import json
import math
import time
import zlib
from collections.abc import Callable
from email.utils import formatdate
from typing import Any, Literal

from tests.faults.replies import (
    LAST,
    STREAM_HEAD,
    USAGE,
    End,
    answer_of,
    answer_text,
    body_of,
    chunk,
    completion,
    event,
    events_of,
    finish,
    good,
    pieces_of,
    replies,
    status,
    streams,
)
from tests.faults.server import Act
from tests.support.connections import Exchange, head, in_chunk, with_length


async def retry_after_date(exchange: Exchange) -> None:
    """429 with a date one to two seconds ahead: the header knows whole seconds only."""
    date = formatdate(math.ceil(time.time()) + 1, usegmt=True)
    await status(429, retry_after=date)(exchange)


async def half_body(exchange: Exchange) -> None:
    """A body of which half comes; the length of the whole was told."""
    whole = with_length(body_of(completion(answer_text(exchange.request))))
    await exchange.send(whole[:-60])
    exchange.close()


async def half_json(exchange: Exchange) -> None:
    """A body that is complete for HTTP, and cut for JSON."""
    await exchange.send(with_length(body_of(completion(answer_text(exchange.request)))[:-60]))


async def as_plain_text(exchange: Exchange) -> None:
    """The right answer under a wrong content type."""
    if exchange.request.stream:
        events = events_of(answer_text(exchange.request))
        await exchange.send(head(content_type="text/plain", transfer_encoding="chunked"), *map(in_chunk, events), LAST)
    else:
        body = body_of(completion(answer_text(exchange.request)))
        await exchange.send(with_length(body, content_type="text/plain; charset=utf-8"))


def drips(seconds: float) -> Act:
    """The right answer, byte by byte and never done in time."""

    async def act(exchange: Exchange) -> None:
        if exchange.request.stream:
            rest = STREAM_HEAD + b"".join(in_chunk(each) for each in events_of(answer_text(exchange.request) * 20))
        else:
            rest = with_length(body_of(completion(answer_text(exchange.request) * 200)))
        await exchange.send(*bytewise(rest), gap=seconds)

    return act


def breaks_after(pieces: int, end: End | None, *more: Any, pause: float = 0.0, bad_chunk: bool = False) -> Act:
    """A stream that ends, one way or another, after so many pieces of text, `more` (bytes, or data) and a pause."""

    async def act(exchange: Exchange) -> None:
        texts = pieces_of(answer_text(exchange.request))[:pieces]
        said = [chunk(role="assistant", content=""), *(chunk(content=each) for each in texts), *more]
        events = [each if isinstance(each, bytes) else event(each) for each in said]
        await exchange.send(STREAM_HEAD, *map(in_chunk, filter(None, events)))
        await exchange.pause(pause)
        await exchange.send(b"zz\r\n" if bad_chunk else LAST if end is None else b"")
        await finish(exchange, end or "keep")

    return act


def pings_after(pieces: int, gap: float, ping: Any = b": ping\n\n") -> Act:
    """A stream that goes on for ever without saying anything."""

    async def act(exchange: Exchange) -> None:
        await breaks_after(pieces, "keep")(exchange)
        while True:
            await exchange.pause(gap)
            await exchange.send(in_chunk(ping if isinstance(ping, bytes) else event(ping)))

    return act


def formatted(
    *,
    end: bytes = b"\n",
    done: bool = True,
    each: Callable[[bytes], list[bytes]] | None = None,
    before: bytes = b"",
    glued: bool = False,
) -> Act:
    """The right answer as a stream, its events written otherwise; `each` cuts one event into packets."""

    async def act(exchange: Exchange) -> None:
        events = events_of(answer_text(exchange.request), end=end, done=done)
        packets = [packet for one in events for packet in (each(one) if each else [one])]
        wire = [STREAM_HEAD, *(in_chunk(packet) for packet in [before, *packets] if packet), LAST]
        await exchange.send(*([b"".join(wire)] if glued else wire))

    return act


def bytewise(data: bytes) -> list[bytes]:
    """Each byte in a packet of its own."""
    return [data[at : at + 1] for at in range(len(data))]


def with_comments(data: bytes) -> list[bytes]:
    """Comments, ids, retry times and unknown fields around an event."""
    return [b": hello\nid: 7\nretry: 10\nunknown: x\n" + data + b":\n\n"]


def on_several_lines(data: bytes) -> list[bytes]:
    """JSON over several data lines."""
    name, _, text = data.decode().partition("data: ")
    if text.strip() == "[DONE]":
        return [data]
    lines = json.dumps(json.loads(text), indent=1, ensure_ascii=False).split("\n")
    return [(name + "".join(f"data:{line}\n" for line in lines)).encode() + b"\n"]


async def with_noise(exchange: Exchange) -> None:
    """Chunks that say nothing, between those that do; the growing usage in each."""
    said: list[Any] = [{"choices": []}, chunk(role="assistant", content=None), {"type": "ping"}]
    for piece in pieces_of(answer_text(exchange.request)):
        said += [
            {**chunk(content=piece), "usage": USAGE},
            {**chunk(), "choices": [{"index": 0, "delta": None, "finish_reason": None}]},
            {**chunk(), "choices": []},
            chunk(content=None),
            {**chunk(), "choices": [{"index": 0}]},
        ]
    said += [chunk("stop"), {**chunk(), "choices": [], "usage": USAGE}, {**chunk(), "choices": [], "usage": USAGE}]
    await streams(*said, "[DONE]")(exchange)


async def whole_for_stream(exchange: Exchange) -> None:
    """Plain JSON, although a stream was asked for."""
    await replies(completion(answer_text(exchange.request)))(exchange)


async def stream_for_whole(exchange: Exchange) -> None:
    """A stream, although plain JSON was asked for."""
    await streams(*events_of(answer_text(exchange.request)))(exchange)


def packed(how: Literal["gzip", "deflate"], *, lies: bool = False) -> Act:
    """The right answer, packed by a proxy; `lies` names the encoding and leaves the body as it is."""

    async def act(exchange: Exchange) -> None:
        pack = zlib.compressobj(wbits=31 if how == "gzip" else 15)
        if not exchange.request.stream:
            body = body_of(completion(answer_text(exchange.request)))
            data = body if lies else pack.compress(body) + pack.flush()
            await exchange.send(with_length(data, content_encoding=how))
            return
        await exchange.send(head(content_type="text/event-stream", content_encoding=how, transfer_encoding="chunked"))
        for one in events_of(answer_text(exchange.request)):
            data = one if lies else pack.compress(one) + pack.flush(zlib.Z_SYNC_FLUSH)
            await exchange.send(in_chunk(data))
        if not lies:
            await exchange.send(in_chunk(pack.flush()))
        await exchange.send(LAST)

    return act


def damaged(*, checksum: bool) -> Act:
    """The right answer packed with gzip, and damaged so that it unpacks all the same: its `checksum`, if it comes, tells."""

    async def act(exchange: Exchange) -> None:
        kind, right = answer_of(exchange.request)
        _, wrong = answer_of(exchange.request, answer_text(exchange.request).replace("7", "9"))
        packed = gzip.compress(wrong, mtime=0)[:-8]
        end = gzip.compress(right, mtime=0)[-8:] if checksum else b""
        await exchange.send(with_length(packed + end, content_type=kind, content_encoding="gzip"))

    return act


def by_closing(version: str = "HTTP/1.1", **headers: str) -> Act:
    """The right answer, its end told by the end of the connection."""

    async def act(exchange: Exchange) -> None:
        kind, body = answer_of(exchange.request)
        await exchange.send(head(version=version, content_type=kind, **headers), body)
        exchange.close()

    return act


def after(before: bytes, then: Act = good) -> Act:
    """Some bytes, and then the right answer."""

    async def act(exchange: Exchange) -> None:
        await exchange.send(before)
        await then(exchange)

    return act


def redirects(target: Callable[[Exchange], str], code: int = 307) -> Act:
    """A redirect."""

    async def act(exchange: Exchange) -> None:
        await exchange.send(with_length(b"", code, location=target(exchange)))

    return act


def to_other_host(exchange: Exchange) -> str:
    """The same server under another name, which is another host to a client."""
    _, _, path = exchange.request.path[1:].partition("/")
    return f"http://localhost:{exchange.server.port}/elsewhere/{path}"


def to_same_host(exchange: Exchange) -> str:
    """The same server at another path, told without its name."""
    return exchange.request.path.replace("/v1", "/v2", 1)


async def and_closes(exchange: Exchange) -> None:
    """The right answer, and a little later the end of a connection that was said to be kept."""
    await good(exchange)
    exchange.close()


def and_one_more(later: float) -> Act:
    """The right answer, and another one that nobody asked for: at once, or a little later."""

    async def act(exchange: Exchange) -> None:
        wrong = with_length(body_of(completion('{"city": "Bonn", "celsius": 99}')))
        if later:
            await good(exchange)
            await exchange.pause(later)
            await exchange.send(wrong)
        else:
            await exchange.send(with_length(body_of(completion(answer_text(exchange.request)))) + wrong)

    return act


async def with_trailers(exchange: Exchange) -> None:
    """A body in chunked encoding with extensions and trailers."""
    kind, body = answer_of(exchange.request)
    await exchange.send(
        head(content_type=kind, transfer_encoding="chunked", trailer="x-checksum"),
        b'%x;name="value"\r\n%b\r\n' % (len(body), body),
        b"0\r\nx-checksum: 1\r\n\r\n",
    )


def told_key(code: int) -> Act:
    """A refusal that repeats the key, as some services do, and goes on and on."""

    async def act(exchange: Exchange) -> None:
        said = f"Incorrect API key provided: {exchange.request.key}. " + "x" * 3000
        await status(code, said)(exchange)

    return act


async def surrogates(exchange: Exchange) -> None:
    """An answer with a lone surrogate, as JSON writes it."""
    text = "a\ud800b"
    if exchange.request.stream:
        await streams(chunk(content=text), chunk("stop"), "[DONE]")(exchange)
    else:
        await replies(completion(text))(exchange)


async def not_utf8(exchange: Exchange) -> None:
    """An answer with a byte that is not UTF-8, whole whatever was asked for."""
    await exchange.send(with_length(body_of(completion("a?b")).replace(b"?", b"\xff")))
