"""An OpenAI-compatible server with answers made beforehand, fast enough to measure clients with; in its own process.

    python -m benchmarks.server --port 8080          # prints the port, serves until its standard input ends

    with ServerProcess() as server:
        server.url("delay=200")                      # a base_url; what it says holds for the requests sent there
        server.stats()["peak_open"]

The first part of the path says how to answer, so that every client can be told with its `base_url` alone:

    /v1                                  a canned text
    /delay=200,chunks=2000/v1            200 ms later; a streamed answer comes in 2,000 chunks

| option | meaning |
|---|---|
| `answer=text` | a canned text (the default) |
| `answer=echo` | a text that holds the last `<<token>>` of the request |
| `answer=typed` | JSON whose fields hold that token, see `TYPED` |
| `answer=order` | JSON of a nested order with six fields, see `ORDER` |
| `answer=tool` | a call of the tool `lookup` with that token; when a tool result stands in the request, as `echo` |
| `delay=MS` | milliseconds before the answer |
| `chunks=N` | content chunks of a streamed answer, 20 by default |
| `pace=MS` | milliseconds between two chunks |
| `hold=N` | no answer ends before so many requests are open at once, or `HOLD_SECONDS` are over; what is streamed stops half-way |
| `fail=429` | is refused, with `Retry-After: 0` |
| `fail=cut` | a streamed answer is cut off half-way, a whole one in its middle |
| `once=1` | the failure comes at the first request with a token only |
| `say=NAME` | the text that was sent with `POST /say/NAME`, in the place of `answer=text` |
| `tool=NAME` | the tool that `answer=tool` calls; with another answer: its text as arguments of a call of that tool |
| `stamp=1` | the content of each streamed chunk is the monotonic time at which it was written |
| `watch=NAME` | what comes is counted under that name, for `GET /watch/NAME` |

`GET /stats` tells what was seen, `POST /reset` begins anew.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

HOLD_SECONDS = 300.0
TEXT = "The canned answer of the server: it rains, and it will go on raining until the evening, says the forecast."
ECHO = "You asked for <<%s>>, and here it is: nothing was lost, nothing was mixed up, and nobody else was told."
TYPED = '{"token": "%s", "subject": "a printer that prints nothing", "urgency": 3, "tags": ["hardware", "printer"]}'
ORDER = json.dumps(
    {
        "number": 12,
        "customer": "Bob Miller",
        "color": "red",
        "total": 12.5,
        "address": {"street": "Main Street 5", "city": "Paris"},
        "tags": ["new", "paid", "gift"],
    }
)
USAGE = '{"prompt_tokens":60,"completion_tokens":24,"total_tokens":84}'

_TOKEN_END, _TOKEN_BEGIN = b">>", b"<<"
_STREAM = re.compile(rb'"stream":\s*true')
_MODEL = re.compile(rb'"model":\s*"([^"]*)"')
_USAGE = re.compile(rb'"include_usage":\s*true')
_LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
_MOST_UNREAD = 32 * 1024 * 1024
_HEAD = b'{"id":"chatcmpl-bench","object":"chat.completion","created":1767225600,"model":"bench","choices":[{"index":0,'
_CHUNK = '{"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1767225600,"model":"bench","choices":'


# --- requests --------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _head_of(head: bytes) -> tuple[bytes, bytes, int, bool]:
    """Return method, path and length of the body, and whether the client waits to be told to go on.

    A client sends a handful of different heads, thousands of times.
    """
    length = _LENGTH.search(head)
    method, path, _ = head.split(b" ", 2)
    return method, path, int(length[1]) if length else 0, b"100-continue" in head


# --- answers, made once ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Recipe:
    """How the requests of one path are answered; see the module."""

    answer: str = "text"
    delay: float = 0.0
    chunks: int = 20
    pace: float = 0.0
    hold: int = 0
    fail: str = ""
    once: int = 0
    say: str = ""
    tool: str = ""
    stamp: int = 0
    watch: str = ""
    is_simple: bool = False  # a whole answer is always the same, and comes at once


SAID: dict[str, str] = {}
"""What `POST /say/NAME` brought."""


@lru_cache(maxsize=1024)
def recipe_of(path: bytes) -> Recipe:
    """Return what the first part of a path asks for.

    Raises:
        ValueError: it asks for what there is not.
    """
    first = path.decode("latin-1").lstrip("/").partition("/")[0]
    given = dict(option.split("=", 1) for option in first.split(",")) if "=" in first else {}
    numbers = {"delay": 1e-3, "pace": 1e-3, "chunks": 1, "hold": 1, "once": 1, "stamp": 1}
    if unknown := set(given) - set(numbers) - {"answer", "fail", "say", "tool", "watch"}:
        raise ValueError(f"unknown options {sorted(unknown)}")
    if given.get("say", "") not in {"", *SAID}:
        raise ValueError(f"nobody said {given['say']}")
    if given.get("answer", "text") not in {"text", "echo", "typed", "order", "tool"}:
        raise ValueError(f"unknown answer {given['answer']}")
    if given.get("fail", "") not in {"", "429", "cut"}:
        raise ValueError(f"unknown failure {given['fail']}")
    scaled = {name: int(given[name]) * factor for name, factor in numbers.items() if name in given}
    is_simple = given.get("answer", "text") in {"text", "order"} and not given.keys() & {"delay", "hold", "fail"}
    return Recipe(**{**given, **scaled}, is_simple=is_simple)  # type: ignore[arg-type]


def _http(body: bytes, *, status: str = "200 OK", kind: str = "application/json", more: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n{more}content-length: {len(body)}\r\n\r\n"
    return head.encode() + body


_REFUSED = _http(
    b'{"error":{"message":"too many requests","type":"rate_limit","code":"rate_limit_exceeded"}}',
    status="429 Too Many Requests",
    more="retry-after: 0\r\n",
)
_STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_STREAM_TAIL = b"0\r\n\r\n"


def _whole(message: str, finish: str) -> bytes:
    rest = f'"message":{message},"finish_reason":"{finish}"}}],"usage":{USAGE}}}'
    return _http(_HEAD + rest.encode())


def _event(choices: str, usage: str = "null") -> bytes:
    data = f'data: {_CHUNK}{choices},"usage":{usage}}}\n\n'.encode()
    return b"%x\r\n%b\r\n" % (len(data), data)


def _delta(delta: str, finish: str = "null") -> bytes:
    return _event(f'[{{"index":0,"delta":{delta},"finish_reason":{finish}}}]')


_ROLE = _delta('{"role":"assistant","content":""}')
_STOP, _STOP_FOR_TOOLS = _delta("{}", '"stop"'), _delta("{}", '"tool_calls"')
_USAGE_EVENT = _event("[]", USAGE)
_DONE = b"e\r\ndata: [DONE]\n\n\r\n"
_STAMP = b"#" * 19 + b" "


def _tool_call(token: str, name: str = "lookup", arguments: str = "") -> str:
    arguments = arguments or json.dumps({"token": token})
    function = f'{{"name":{json.dumps(name)},"arguments":{json.dumps(arguments)}}}'
    return f'[{{"index":0,"id":"call_{token}","type":"function","function":{function}}}]'


def _text_of(answer: str, token: str, say: str = "") -> str:
    if answer == "text":
        return SAID[say] if say else TEXT
    return ORDER if answer == "order" else (TYPED if answer == "typed" else ECHO) % token


def _plain_answer(answer: str, token: str, say: str = "", tool: str = "") -> bytes:
    if calls := _calls_of(answer, token, say, tool):
        return _whole(f'{{"role":"assistant","content":null,"tool_calls":{calls}}}', "tool_calls")
    return _whole(f'{{"role":"assistant","content":{json.dumps(_text_of(answer, token, say))}}}', "stop")


def _calls_of(answer: str, token: str, say: str, tool: str) -> str:
    """Return the tool calls of an answer, "" for one without."""
    if answer == "tool":
        return _tool_call(token, tool or "lookup")
    return _tool_call("1", tool, _text_of(answer, token, say)) if tool else ""


def _stream_answer(
    answer: str, token: str, count: int, usage: bool, say: str = "", tool: str = "", stamp: int = 0
) -> tuple[bytes, ...]:
    """Return the chunks of a streamed answer, the head with the first of them."""
    calls = _calls_of(answer, token, say, tool)
    if calls:
        pieces = [_delta(f'{{"tool_calls":{calls}}}')]
    elif stamp:
        pieces = [_delta(f'{{"content":"{_STAMP.decode()}"}}')] * count
    else:
        text = _text_of(answer, token, say)
        if answer in {"text", "order"} and count > len(text):
            text *= count // len(text) + 1
        size, rest = divmod(len(text), count)
        cuts = [at * size + min(at, rest) for at in range(count + 1)]
        pieces = [
            _delta(f'{{"content":{json.dumps(text[begin:end])}}}') for begin, end in pairwise(cuts) if end > begin
        ]
    last = (_STOP_FOR_TOOLS if calls else _STOP) + (_USAGE_EVENT if usage else b"") + _DONE + _STREAM_TAIL
    return (_STREAM_HEAD + _ROLE + pieces[0], *pieces[1:], last)


_canned_plain = lru_cache(maxsize=16)(_plain_answer)
_canned_stream = lru_cache(maxsize=64)(_stream_answer)


def forget_canned() -> None:
    """Make all answers anew: something else is to be said."""
    for canned in (recipe_of, _canned_plain, _canned_stream, _canned_whole_stream):
        canned.cache_clear()


@lru_cache(maxsize=16)
def _canned_whole_stream(answer: str, count: int, usage: bool, say: str, tool: str) -> bytes:
    """Return a streamed answer as one piece: joining thousands of chunks for each request would slow the server."""
    return b"".join(_canned_stream(answer, "", count, usage, say, tool))


# --- the server ------------------------------------------------------------------------------------------


@dataclass
class Watched:
    """What came under one name; the body of the last request as well, for whoever wants to look closely.

    Bodies are looked into when somebody asks, which is between two samples, or when there are many of them.
    """

    requests: int = 0
    streams: int = 0
    bytes: int = 0
    models: Counter[str] = field(default_factory=Counter)
    messages: Counter[int] = field(default_factory=Counter)
    last: bytes = b""
    new: list[bytes] = field(default_factory=list)
    new_bytes: int = 0

    def add(self, body: bytes) -> None:
        self.new.append(body)
        self.new_bytes += len(body)
        if self.new_bytes > _MOST_UNREAD:
            self._look()

    def _look(self) -> None:
        for body in self.new:
            self.streams += _STREAM.search(body) is not None
            model = _MODEL.search(body)
            self.models[model[1].decode() if model else ""] += 1
            self.messages[body.count(b'"role"')] += 1
            self.last = body
        self.requests += len(self.new)
        self.bytes += self.new_bytes
        self.new, self.new_bytes = [], 0

    def as_json(self) -> bytes:
        self._look()
        names = ("requests", "streams", "bytes", "models", "messages")
        told = {name: getattr(self, name) for name in names}
        return json.dumps({**told, "last": self.last.decode("utf-8", "replace")}).encode()


@dataclass
class State:
    """What the server saw, and who waits for company."""

    requests: int = 0
    open: int = 0
    peak_open: int = 0
    connections: int = 0
    open_connections: int = 0
    peak_connections: int = 0
    hung_up: int = 0
    waiting: list[tuple[Connection, Callable[[], None]]] = field(default_factory=list)
    deadline: asyncio.TimerHandle | None = None
    seen: set[bytes] = field(default_factory=set)
    order: deque[bytes] = field(default_factory=deque)
    watched: dict[str, Watched] = field(default_factory=dict)

    def as_json(self) -> bytes:
        names = ("requests", "open", "peak_open", "connections", "open_connections", "peak_connections", "hung_up")
        told = {name: getattr(self, name) for name in names}
        return json.dumps({**told, "cpu_microseconds": round(time.process_time() * 1e6)}).encode()

    def reset(self) -> None:
        self.watched.clear()
        self.requests = self.hung_up = 0
        self.connections = self.peak_connections = self.open_connections
        self.peak_open = self.open
        self.seen.clear()
        self.order.clear()

    def watch(self, name: str) -> Watched:
        """Return what is counted under a name."""
        watched = self.watched.get(name)
        if watched is None:
            watched = self.watched[name] = Watched()
        return watched

    def is_first(self, token: bytes) -> bool:
        """Whether no request with this token has come lately."""
        if token in self.seen:
            return False
        self.seen.add(token)
        self.order.append(token)
        if len(self.order) > 100_000:
            self.seen.discard(self.order.popleft())
        return True

    def hold(self, connection: Connection, go_on: Callable[[], None], count: int) -> None:
        """Call `go_on` when `count` requests wait here together, or have waited for too long."""
        self.waiting.append((connection, go_on))
        if len(self.waiting) >= count:
            self.waiting = [(waiting, go_on) for waiting, go_on in self.waiting if waiting.is_open]
        if len(self.waiting) >= count:
            self.release()
        elif self.deadline is None:
            self.deadline = asyncio.get_running_loop().call_later(HOLD_SECONDS, self.release)

    def release(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None
        waiting, self.waiting = self.waiting, []
        loop = asyncio.get_running_loop()
        for _, go_on in waiting:
            loop.call_soon(go_on)


class Connection(asyncio.Protocol):
    """Reads requests by hand, one after the other, and writes what is ready."""

    __slots__ = ("_buffer", "_busy", "_state", "_transport")

    def __init__(self, state: State) -> None:
        self._state = state
        self._buffer = b""
        self._busy = False
        self._transport: Any = None

    @property
    def is_open(self) -> bool:
        return self._transport is not None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        state = self._state
        state.connections += 1
        state.open_connections += 1
        state.peak_connections = max(state.peak_connections, state.open_connections)

    def connection_lost(self, _: Exception | None) -> None:
        self._state.open_connections -= 1
        if self._busy:
            self._state.hung_up += 1
            self._state.open -= 1
            self._busy = False
        self._transport = None

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        if not self._busy:
            self._read()

    def _read(self) -> None:
        buffer = self._buffer
        end = buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        method, path, length, waits = _head_of(buffer[: end + 2])
        total = end + 4 + length
        if len(buffer) < total:
            if waits and len(buffer) == end + 4:
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            return
        self._buffer = buffer[total:] if len(buffer) > total else b""
        if method == b"POST" and path.endswith(b"/chat/completions"):
            try:
                recipe = recipe_of(path)
            except ValueError as error:
                self._write(_http(str(error).encode(), status="400 Bad Request", kind="text/plain"))
                return
            body = buffer[end + 4 : total]
            if recipe.is_simple and (b'"stream"' not in body or _STREAM.search(body) is None):
                self._answer_at_once(recipe, body)
            else:
                self._answer(recipe, body)
            return
        if path == b"/reset":
            self._state.reset()
        elif path.startswith(b"/say/"):
            SAID[path[5:].decode()] = buffer[end + 4 : total].decode()
            forget_canned()
        elif path.startswith(b"/watch/"):
            self._write(_http(self._state.watched.get(path[7:].decode(), Watched()).as_json()))
            return
        known = path in {b"/stats", b"/reset"} or path.startswith(b"/say/")
        self._write(_http(self._state.as_json()) if known else _http(b"{}", status="404 Not Found"))

    def _write(self, data: bytes) -> None:
        self._transport.write(data)
        if self._buffer:
            self._read()

    # --- one answer --------------------------------------------------------------------------------------

    def _answer_at_once(self, recipe: Recipe, body: bytes) -> None:
        """Write the canned answer of a request that is read and answered in one go: nothing can come in between."""
        state = self._state
        state.requests += 1
        if state.open >= state.peak_open:
            state.peak_open = state.open + 1
        if recipe.watch:
            state.watch(recipe.watch).add(body)
        self._transport.write(_canned_plain(recipe.answer, "", recipe.say, recipe.tool))
        if self._buffer:
            self._read()

    def _answer(self, recipe: Recipe, body: bytes) -> None:
        state = self._state
        self._busy = True
        state.requests += 1
        state.open += 1
        state.peak_open = max(state.peak_open, state.open)
        answer, token = recipe.answer, b""
        if recipe.watch:
            state.watch(recipe.watch).add(body)
        if answer not in {"text", "order"} or recipe.once:
            stop = body.rfind(_TOKEN_END)
            token = body[body.rfind(_TOKEN_BEGIN, 0, stop) + 2 : stop] if stop >= 0 else b"none"
            if answer == "tool" and b'"tool_call_id"' in body:
                answer = "echo"
        fails = bool(recipe.fail) and (not recipe.once or state.is_first(token))
        if _STREAM.search(body) is not None and not (fails and recipe.fail == "429"):
            make = _stream_answer if token else _canned_stream
            usage, is_plain = _USAGE.search(body) is not None, not (token or fails or recipe.pace or recipe.hold)
            if is_plain and not recipe.stamp:
                pieces = (_canned_whole_stream(answer, recipe.chunks, usage, recipe.say, recipe.tool),)
            else:
                more = (recipe.say, recipe.tool, recipe.stamp)
                pieces = make(answer, token.decode("latin-1"), recipe.chunks, usage, *more)
            # A canned answer without pauses is one write.
            half = len(pieces) // 2
            if fails:
                pieces = pieces[: half + 1]
            elif not recipe.pace and not recipe.hold:
                pieces = pieces if len(pieces) == 1 else (b"".join(pieces),)
            elif not recipe.pace:
                pieces = (b"".join(pieces[:half]), b"".join(pieces[half:]))
        elif fails and recipe.fail == "429":
            pieces, fails = (_REFUSED,), False
        else:
            make_whole = _plain_answer if token else _canned_plain
            data = make_whole(answer, token.decode("latin-1"), recipe.say, recipe.tool)
            pieces = (data[:-40],) if fails else (data,)
        if recipe.delay:
            asyncio.get_running_loop().call_later(recipe.delay, self._send, pieces, 0, recipe, fails)
        else:
            self._send(pieces, 0, recipe, fails)

    def _send(self, pieces: tuple[bytes, ...], at: int, recipe: Recipe, fails: bool, is_held: bool = False) -> None:
        """Write the pieces from `at` on, as fast as the recipe says."""
        if self._transport is None:
            return
        count = len(pieces)
        while at < count:
            if recipe.hold and not is_held and at == count // 2:
                self._state.hold(self, partial(self._send, pieces, at, recipe, fails, is_held=True), recipe.hold)
                return
            piece = pieces[at]
            if recipe.stamp:
                piece = piece.replace(_STAMP, b"%019d " % time.monotonic_ns())
            self._transport.write(piece)
            at += 1
            if recipe.pace and at < count:
                asyncio.get_running_loop().call_later(recipe.pace, self._send, pieces, at, recipe, fails, is_held)
                return
        self._busy = False
        self._state.open -= 1
        if fails:
            self._transport.close()
        elif self._buffer:
            self._read()


async def serve(port: int, ready: Callable[[int], None], stop: asyncio.Event) -> None:
    """Serve on the loopback interface until `stop` is set; `ready` is told the port."""
    state = State()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(state), "127.0.0.1", port, backlog=65535)
    ready(server.sockets[0].getsockname()[1])
    await stop.wait()
    server.close()


def raise_open_files() -> int:
    """Allow this process as many open files as it may have, and return how many; 0 where nobody counts."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (hard, 1_000_000, 65_536, 10_240):
        # macOS says "unlimited" and means less.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return wanted if wanted > 0 else 1_000_000
    return soft


def run(port: int) -> None:
    """Serve until standard input ends: no server outlives the script that started it."""
    raise_open_files()

    async def main() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()

        def wait_for_end() -> None:
            sys.stdin.buffer.read()
            loop.call_soon_threadsafe(stop.set)

        threading.Thread(target=wait_for_end, daemon=True).start()
        await serve(port, lambda number: print(number, flush=True), stop)

    gc.freeze()
    try:
        import uvloop
    except ImportError:
        asyncio.run(main())
    else:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main())


class ServerProcess:
    """The server in a process of its own.

    Attributes:
        python: who runs it; one with uvloop makes it faster.
        port: where it listens.
    """

    def __init__(self, python: str | Path = sys.executable) -> None:
        self._process = subprocess.Popen(
            [str(python), "-m", "benchmarks.server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parent.parent,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.strip():
            raise RuntimeError(f"the server did not start: exit code {self._process.wait()}")
        self.port = int(line)

    @property
    def pid(self) -> int:
        """Its number among the processes."""
        return self._process.pid

    def url(self, options: str = "") -> str:
        """Return the `base_url` of requests that are answered as `options` say."""
        return f"http://127.0.0.1:{self.port}{'/' + options if options else ''}/v1"

    def stats(self) -> dict[str, int]:
        """Return what the server has seen."""
        return self._ask("/stats", None)

    def reset(self) -> None:
        """Begin counting anew."""
        self._ask("/reset", b"")

    def say(self, name: str, text: str) -> None:
        """Let `say=name` be answered with `text`."""
        self._ask(f"/say/{name}", text.encode())

    def watched(self, name: str) -> dict[str, Any]:
        """Return what came to paths with `watch=name`: requests, streams, bytes, models, messages, last."""
        return self._ask(f"/watch/{name}", None)

    def _ask(self, path: str, data: bytes | None) -> dict[str, Any]:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data), timeout=60) as reply:
            told: dict[str, Any] = json.load(reply)
        return told

    def close(self) -> None:
        """End the server and wait for its end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="An OpenAI-compatible server with canned answers.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    run(parser.parse_args().port)
