"""The page as the tests see it: a client that holds the token, a server with a port, a browser."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from SimpleLLMFunc.base.run.sinks import watching
from SimpleLLMFunc.observability.store.trace_store import TraceStore
from SimpleLLMFunc.viewer import ViewerApp, serve_page, viewer_app

TOKEN = "a-token-for-the-tests-0123456789"
HEADERS = {"X-SimpleLLMFunc-Token": TOKEN}
LOOPBACK = "http://127.0.0.1:8000"


def text_of(lines: list[dict[str, Any]]) -> str:
    """Return the text that a run has told in its lines."""
    return "".join(line["text"] for line in lines if line["type"] == "text")


def client_of(app: ViewerApp, **headers: str) -> TestClient:
    return TestClient(app, base_url=LOOPBACK, headers={**HEADERS, **headers}, raise_server_exceptions=False)


def keep(store: TraceStore, work: Any) -> Any:
    """Call `work`, watched by the store, and return what it gives; a coroutine is run."""
    try:
        with watching(store):
            result = work()
            return asyncio.run(result) if asyncio.iscoroutine(result) else result
    finally:
        assert store.flush()


def app_of(store: TraceStore, **more: Any) -> ViewerApp:
    return viewer_app(store, token=TOKEN, **more)


class Served:
    """The page on a port of this machine, in a thread with an event loop."""

    def __init__(self, app: ViewerApp) -> None:
        self.address = ""
        self._app = app
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    def __enter__(self) -> Served:
        self._thread.start()
        assert self._ready.wait(20), "the server has not come up"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(20)
        assert not self._thread.is_alive()

    def _announce(self, address: str) -> None:
        self.address = address
        self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.ensure_future(serve_page(self._app, announce=self._announce))
        await asyncio.wait({self._task})


CHROMIUM_ARGUMENTS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


def chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@contextlib.contextmanager
def opened_browser() -> Iterator[Any]:
    """A real browser; skipped where it is missing, unless SIMPLELLMFUNC_DEMAND_BROWSER=1 demands it."""
    missing = pytest.fail if os.environ.get("SIMPLELLMFUNC_DEMAND_BROWSER") == "1" else pytest.skip
    path = chromium()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright is not installed")
    if path is None:
        missing("no chromium on this machine: apt-get install chromium")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=CHROMIUM_ARGUMENTS)
        yield opened
        opened.close()


class Visit:
    """A tab of a browser that has the page open, and collects its errors.

    Attributes:
        problems: errors of scripts, messages of the console, dialogs, requests to other addresses.
    """

    def __init__(self, browser: Any, address: str, **context: Any) -> None:
        self.base = address.partition("#")[0]
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, "locale": "en-GB", **context})
        self.context.set_default_timeout(15_000)
        self.problems: list[str] = []
        self.tab = self.context.new_page()
        self.tab.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.tab.on("console", lambda message: self.problems.append(f"{message.type}: {message.text}"))
        self.tab.on("dialog", lambda dialog: (self.problems.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.tab.on("request", self._note)
        self.tab.goto(address)
        self.tab.wait_for_selector("main:not([aria-busy])")

    def _note(self, request: Any) -> None:
        if not request.url.startswith(self.base):
            self.problems.append(f"asked {request.url}")

    def go(self, place: str, waiting_for: str) -> Any:
        """Open a place of the page, and return the tab when something is shown there.

        What the place before showed may fit `waiting_for` too: the page says whose contents it shows.
        """
        self.tab.goto(f"{self.base}#{place}")
        self.tab.wait_for_function("document.getElementById('main').dataset.place === location.hash.slice(1)")
        self.tab.wait_for_selector("main:not([aria-busy])")
        self.tab.wait_for_selector(waiting_for)
        return self.tab

    def __enter__(self) -> Visit:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()


PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "is_mobile": True, "has_touch": True}


def in_thread(work):
    """Run a coroutine in another event loop while a browser is open."""
    outcome = []
    worker = threading.Thread(target=lambda: outcome.append(work()))
    worker.start()
    worker.join(60)
    return outcome[0]


def until(tab, expression):
    """Wait until a script says yes; the page forbids the way in which Playwright itself would ask."""
    deadline = time.monotonic() + 20
    while not tab.evaluate(expression):
        assert time.monotonic() < deadline, f"never came true: {expression}\n{tab.inner_text('main')}"
        tab.wait_for_timeout(50)
