"""A server in a thread, which goes on while the test keeps its own event loop busy."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

HELLO = [{"role": "user", "content": "hello"}]


def keep_loop_busy(seconds: float = 0.3) -> None:
    """Hold up the event loop that calls this, as careless code of a program does."""
    time.sleep(seconds)


def whole_reply(text: str, head: str = "") -> bytes:
    """A reply with this text, and with more lines in its head."""
    body = json.dumps({"choices": [{"index": 0, "message": {"content": text}, "finish_reason": "stop"}]}).encode()
    return f"HTTP/1.1 200 OK\r\n{head}content-length: {len(body)}\r\n\r\n".encode() + body


def read_request(sock: socket.socket) -> bytes:
    """Return the body of the next request, empty where the other side has gone."""
    data = b""
    while b"\r\n\r\n" not in data:
        if not (piece := sock.recv(65536)):
            return b""
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
    while len(body) < length and (piece := sock.recv(65536)):
        body += piece
    return body


class ThreadServer:
    """Hands each connection to `serve` with its number, in a thread of its own.

    Attributes:
        base_url: ends in ``/v1``.
        connections: how many there were so far.
    """

    def __init__(self, serve: Callable[[socket.socket, int], Any]) -> None:
        self._serve = serve
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.base_url = f"http://127.0.0.1:{self._listening.getsockname()[1]}/v1"
        self.connections = 0

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._run, args=(sock, self.connections), daemon=True).start()

    def _run(self, sock: socket.socket, number: int) -> None:
        with sock:
            try:
                self._serve(sock, number)
            except OSError:
                return

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
