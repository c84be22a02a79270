"""A server in a thread, which goes on while the test keeps its own event loop busy."""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import threading
import time
from collections.abc import Callable
from typing import Any, Self

from tests.support.connections import with_length
from tests.support.server import completion


def keep_loop_busy(seconds: float = 0.3) -> None:
    """Hold up the event loop that calls this, as careless code of a program does."""
    time.sleep(seconds)


def whole_reply(text: str) -> bytes:
    """A reply with this text."""
    return with_length(json.dumps(completion(text)).encode())


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


class ThreadServer(socketserver.ThreadingTCPServer):
    """Hands each connection to `serve` with its number, in a thread of its own.

    Attributes:
        base_url: ends in ``/v1``.
        connections: how many there were so far.
    """

    request_queue_size = 512
    daemon_threads = True

    def __init__(self, serve: Callable[[socket.socket, int], Any]) -> None:
        super().__init__(("127.0.0.1", 0), socketserver.BaseRequestHandler)
        self._serve = serve
        self.base_url = f"http://127.0.0.1:{self.server_address[1]}/v1"
        self.connections = 0

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections += 1
        super().process_request(request, self.connections)

    def finish_request(self, request: Any, client_address: Any) -> None:
        with contextlib.suppress(OSError):
            self._serve(request, client_address)

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()
        self.server_close()
