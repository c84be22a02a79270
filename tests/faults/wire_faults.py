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
    Scenario("gzip", "also", "a proxy packs the reply with gzip", [packed("gzip")]),
    Scenario("deflate", "also", "a proxy packs the reply with deflate", [packed("deflate")]),
    Scenario("gzip_lies", "also", "content-encoding gzip, and it is not", [packed("gzip", lies=True)])
    .then("ConnectionFailed", requests=3)
    .when_streamed("StreamInterrupted"),
    Scenario("gzip_damaged", "also", "packed with gzip, and damaged so that only the checksum tells")
    .plays(damaged(checksum=True))
    .then("ConnectionFailed", requests=3)
    .when_streamed("StreamInterrupted"),
    Scenario("gzip_no_checksum", "also", "packed with gzip, damaged, and ended before the checksum")
    .plays(damaged(checksum=False))
    .then("ConnectionFailed", requests=3)
    .when_streamed("StreamInterrupted", requests=1),
    Scenario("encoding_unknown", "also", "an unknown content-encoding")
    .plays(sends(with_length(b"\x00\x01\x02", content_encoding="x-secret")))
    .then("BadReply", requests=2)
    .when_streamed("StreamInterrupted", requests=3),
]

HTTP = [
    Scenario("connection_close", "also", "Connection: close", [by_closing(connection="close")]),
    Scenario("http_1_0", "also", "HTTP/1.0", [by_closing("HTTP/1.0")]),
    Scenario("continue_100", "also", "100 Continue before the reply", [after(CONTINUE)]),
    Scenario("early_hints", "also", "three times 103 before the reply", [after(HINTS * 3)]),
    Scenario("trailers", "also", "chunk extensions and trailers", [with_trailers]),
    Scenario("kept_and_closed", "also", "a kept connection that the server has closed", [and_closes])
    .using(calls=3)
    .then(requests=3),
    Scenario("unasked_reply", "also", "an unrequested second reply, in the same packet")
    .plays(and_one_more(0.0), good)
    .only("whole")
    .using(calls=2)
    .then(requests=2)
    .client_sees(
        "WRONG", why="its HTTP client keeps the second reply, and takes it for the answer to the next request"
    ),
    Scenario("unasked_reply_later", "also", "an unrequested second reply, on the resting connection")
    .plays(and_one_more(0.05), good)
    .using(calls=2, rest=0.15)
    .then(requests=2),
    *(
        Scenario(name, "also", fault, [sends(data, end="close")])
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
    Scenario("bad_chunk", "also", "a chunk whose size is no number")
    .plays(sends(head(transfer_encoding="chunked"), b"zz\r\n{}\r\n", gap=0.05, end="hold"))
    .then("ConnectionFailed", requests=3)
    .when_streamed("StreamInterrupted"),
    Scenario("long_header", "also", "a header of 100 kB", [by_closing(x_long="x" * 100_000)])
    .then("BadReply", requests=2)
    .client_sees("exact", requests=1, why="its HTTP client takes headers of any length"),
    Scenario("no_content", "also", "204 without a body", [sends(head("204 No Content"))])
    .then("BadReply", requests=2)
    .when_streamed("StreamInterrupted", requests=3),
    Scenario("not_modified", "also", "304, to a request without a condition", [sends(head("304 Not Modified"))]).then(
        "BadReply"
    ),
]

ADDRESSES = [
    Scenario("redirect_307", "also", "307 within the same host", [redirects(to_same_host), good]).then(requests=2),
    Scenario("redirect_other_host", "also", "307 to another host: the key does not follow", [redirects(to_other_host)])
    .using(elsewhere=[good])
    .then("BadRequest", check=tells("localhost")),
    Scenario("redirect_loop", "also", "307 in a circle", [redirects(to_same_host)]).then("BadRequest", requests=6),
    Scenario(
        "redirect_303", "also", "303, which would turn the question into a GET", [redirects(to_same_host, 303)]
    ).then("BadRequest"),
    Scenario("dns", "also", "a host that has no address", [good])
    .using(address=at(host="host.invalid"), llm={"max_retries": 1})
    .then("ConnectionFailed", requests=0),
    Scenario("refused", "also", "no server at the address", [good])
    .using(address=nobody)
    .then("ConnectionFailed", requests=0),
    Scenario("tls_unknown", "also", "an untrusted certificate: not tried again", [good])
    .using(address=at(scheme="https"), tls=True)
    .then("ConnectionFailed", requests=0, check=both(tells("TLS"), has(tries=1))),
    Scenario("tls_none", "also", "https, and the server speaks plain HTTP: not tried again", [status(400)])
    .using(address=at(scheme="https"))
    .then("ConnectionFailed", requests=0, check=both(tells("TLS"), has(tries=1))),
]

WIRE_FAULTS = [*ENCODINGS, *HTTP, *ADDRESSES]
