"""A small package index on loopback, for what is fetched with pip."""

from __future__ import annotations

import http.server
import os
import threading


class PackageIndex:
    """A simple index of projects with one wheel each; a context manager that serves in threads of its own.

    Attributes:
        wheel: what it serves.
        page_status: status of the project's page.
        cut: hang up after so many bytes of the wheel; None sends it whole.
        stall: do not hang up at `cut` before this is set.
        reached_cut: set when `cut` was reached.
        downloads: how often a wheel was asked for.
        also: further projects by name, each with its file's name and its wheel.
        environment: variables that make pip use this index and nothing else.
    """

    def __init__(self, project: str, file_name: str, wheel: bytes) -> None:
        self.wheel = wheel
        self.page_status = 200
        self.cut: int | None = None
        self.stall: threading.Event | None = None
        self.reached_cut = threading.Event()
        self.downloads = 0
        self.also: dict[str, tuple[str, bytes]] = {}
        index = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                for name, (file, wheel) in {project: (file_name, index.wheel), **index.also}.items():
                    if self.path == f"/files/{file}":
                        index.downloads += 1
                        self.answer(200, "application/octet-stream", wheel, cut=index.cut)
                        return
                    if self.path == f"/simple/{name}/":
                        page = f'<!DOCTYPE html><html><body><a href="/files/{file}">{file}</a></body></html>'
                        self.answer(index.page_status, "text/html", page.encode())
                        return
                self.answer(404, "text/html", b"nothing here")

            def answer(self, status: int, kind: str, body: bytes, cut: int | None = None) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body if cut is None else body[:cut])
                if cut is not None:
                    self.wfile.flush()
                    index.reached_cut.set()
                    if index.stall is not None:
                        index.stall.wait(30)
                self.close_connection = True

            def log_message(self, *args: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/simple/"
        self.environment = {
            "PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": self.url, "PIP_NO_CACHE_DIR": "1", "PIP_RETRIES": "0",
            "PIP_TIMEOUT": "20",
        }  # fmt: skip

    def __enter__(self) -> PackageIndex:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.stall is not None:
            self.stall.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
