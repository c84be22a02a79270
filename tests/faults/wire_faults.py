"""The "also" line and its like: what proxies and HTTP servers do to the bytes around a reply."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from typing import Literal

from tests.faults.replies import LAST, answer_of, answer_text, body_of, completion, events_of, good, sends, status
from tests.faults.scenario import Scenario, both, has, tells
from tests.faults.server import Act, FaultServer
from tests.support.connections import Exchange, head, in_chunk, with_length

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
HINTS = b"HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n"

OK = b"HTTP/1.1 200 OK\r\n"


def also(name: str, fault: str, *acts: Act) -> Scenario:
    """A fault of the line below the numbered rows."""
    return Scenario(name, "also", fault, acts)


def at(*, scheme: str = "http", host: str = "127.0.0.1") -> Callable[[FaultServer, str], str]:
    """An address that is not the usual one."""
    return lambda server, play: server.address(play, scheme=scheme, host=host)


def nobody(_server: FaultServer, play: str) -> str:
    """An address where nobody listens: port 1 is nobody's."""
    return f"http://127.0.0.1:1/{play}/v1"


# --- what the server does ---------------------------------------------------------------------------------


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


def after(before: bytes) -> Act:
    """Some bytes, and then the right answer."""

    async def act(exchange: Exchange) -> None:
        await exchange.send(before)
        await good(exchange)

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


# --- scenarios --------------------------------------------------------------------------------------------

ENCODINGS = [
    also("gzip", "a proxy packs the reply with gzip", packed("gzip")),
    also("deflate", "a proxy packs the reply with deflate", packed("deflate")),
    also("gzip_lies", "content-encoding gzip, and it is not", packed("gzip", lies=True))
    .then("ConnectionFailed", requests=3)
    .when_streamed("StreamInterrupted"),
    also("gzip_damaged", "packed with gzip, and damaged so that only the checksum tells", damaged(checksum=True))
    .then("ConnectionFailed", requests=3)
    .when_streamed("StreamInterrupted"),
    also("gzip_no_checksum", "packed with gzip, damaged, and ended before the checksum", damaged(checksum=False))
    .then("ConnectionFailed", requests=3)
    .when_streamed("StreamInterrupted", requests=1),
    also(
        "encoding_unknown",
        "an unknown content-encoding",
        sends(with_length(b"\x00\x01\x02", content_encoding="x-secret")),
    )
    .then("BadReply", requests=2)
    .when_streamed("StreamInterrupted", requests=3),
]

HTTP = [
    also("connection_close", "Connection: close", by_closing(connection="close")),
    also("http_1_0", "HTTP/1.0", by_closing("HTTP/1.0")),
    also("continue_100", "100 Continue before the reply", after(CONTINUE)),
    also("early_hints", "three times 103 before the reply", after(HINTS * 3)),
    also("trailers", "chunk extensions and trailers", with_trailers),
    also("kept_and_closed", "a kept connection that the server has closed", and_closes).using(calls=3).then(requests=3),
    also("unasked_reply", "an unrequested second reply, in the same packet", and_one_more(0.0), good)
    .only("whole")
    .using(calls=2)
    .then(requests=2)
    .client_sees(
        "WRONG", why="its HTTP client keeps the second reply, and takes it for the answer to the next request"
    ),
    also("unasked_reply_later", "an unrequested second reply, on the resting connection", and_one_more(0.05), good)
    .using(calls=2, rest=0.15)
    .then(requests=2),
    *(
        also(name, fault, sends(data, end="close"))
        .then("BadReply", requests=2)
        .client_sees("ConnectionFailed", requests=3, why="the client says no more than that the connection failed")
        for name, fault, data in (
            ("no_http", "something that is not HTTP", b"\x00\xffSSH-2.0-OpenSSH\r\n"),
            ("bad_length", "a content-length that is no number", OK + b"content-length: many\r\n\r\n{}"),
            (
                "two_lengths",
                "two content-lengths that differ",
                OK + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}",
            ),
        )
    ),
    also(
        "bad_chunk",
        "a chunk whose size is no number",
        sends(head(transfer_encoding="chunked"), b"zz\r\n{}\r\n", gap=0.05, end="hold"),
    )
    .then("ConnectionFailed", requests=3)
    .when_streamed("StreamInterrupted"),
    also("long_header", "a header of 100 kB", by_closing(x_long="x" * 100_000))
    .then("BadReply", requests=2)
    .client_sees("exact", requests=1, why="its HTTP client takes headers of any length"),
    also("no_content", "204 without a body", sends(head("204 No Content")))
    .then("BadReply", requests=2)
    .when_streamed("StreamInterrupted", requests=3),
    also("not_modified", "304, to a request without a condition", sends(head("304 Not Modified"))).then("BadReply"),
]

ADDRESSES = [
    also("redirect_307", "307 within the same host", redirects(to_same_host), good).then(requests=2),
    also("redirect_other_host", "307 to another host: the key does not follow", redirects(to_other_host))
    .using(elsewhere=[good])
    .then("BadRequest", check=tells("localhost")),
    also("redirect_loop", "307 in a circle", redirects(to_same_host)).then("BadRequest", requests=6),
    also("redirect_303", "303, which would turn the question into a GET", redirects(to_same_host, 303)).then(
        "BadRequest"
    ),
    also("dns", "a host that has no address", good)
    .using(address=at(host="host.invalid"), llm={"max_retries": 1})
    .then("ConnectionFailed", requests=0),
    also("refused", "no server at the address", good).using(address=nobody).then("ConnectionFailed", requests=0),
    also("tls_unknown", "an untrusted certificate: not tried again", good)
    .using(address=at(scheme="https"), tls=True)
    .then("ConnectionFailed", requests=0, check=both(tells("TLS"), has(tries=1))),
    also("tls_none", "https, and the server speaks plain HTTP: not tried again", status(400))
    .using(address=at(scheme="https"))
    .then("ConnectionFailed", requests=0, check=both(tells("TLS"), has(tries=1))),
]

WIRE_FAULTS = [*ENCODINGS, *HTTP, *ADDRESSES]
