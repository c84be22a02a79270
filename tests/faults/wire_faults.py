"""The "also" line and its like: what proxies and HTTP servers do to the bytes around a reply."""

from __future__ import annotations

from collections.abc import Callable

from tests.faults.acts import (
    after,
    and_closes,
    and_one_more,
    by_closing,
    damaged,
    packed,
    redirects,
    to_other_host,
    to_same_host,
    with_trailers,
)
from tests.faults.replies import good, sends, status
from tests.faults.scenario import Scenario, both, has, tells
from tests.faults.server import FaultServer
from tests.support.connections import head, with_length

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
HINTS = b"HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n"

OK = b"HTTP/1.1 200 OK\r\n"


def at(*, scheme: str = "http", host: str = "127.0.0.1") -> Callable[[FaultServer, str], str]:
    """An address that is not the usual one."""
    return lambda server, play: server.address(play, scheme=scheme, host=host)


def nobody(_server: FaultServer, play: str) -> str:
    """An address where nobody listens: port 1 is nobody's."""
    return f"http://127.0.0.1:1/{play}/v1"


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
