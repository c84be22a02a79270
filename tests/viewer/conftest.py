"""What the tests of the page share: a store, a run with everything in it, a browser."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from SimpleLLMFunc.base.run.sinks import watching
from SimpleLLMFunc.observability.store.trace_store import TraceStore
from tests.viewer import shop
from tests.viewer.filled import mapped, set_back, showpiece
from tests.viewer.served import Served, Visit, app_of, client_of, in_thread, keep, opened_browser


@pytest.fixture
def store(tmp_path: Path) -> Iterator[TraceStore]:
    with TraceStore(tmp_path / "runs.sqlite", interval=0.01) as made:
        yield made


@pytest.fixture
def client(store: TraceStore) -> TestClient:
    store.reader.seq()
    return client_of(app_of(store))


@pytest.fixture
def order_run(store: TraceStore) -> Any:
    """A run with tools, an answer that was sent back, and a repair."""
    return keep(store, lambda: shop.read_order.with_options(llm_interface=shop.order_llm()).call(shop.LETTER))


@pytest.fixture
def browser() -> Iterator[Any]:
    """A real browser, for one test: while it is open, the thread counts as one that runs an event loop."""
    with opened_browser() as opened:
        yield opened


@pytest.fixture(scope="session")
def original(tmp_path_factory):
    """A folder with a store of a few runs of each kind, and a checkpoint."""
    folder = tmp_path_factory.mktemp("filled")

    def fill():
        with TraceStore(folder / "runs.sqlite", interval=0.01) as store:
            with watching(store):
                for function in (*shop.OLDER_READ_ORDER, shop.read_order):
                    asyncio.run(function.with_options(llm_interface=shop.order_llm())(shop.LETTER))
                for text in ("Thank you!", "谢谢你们"):
                    shop.mood(text)
            trace_id = asyncio.run(showpiece(store, 0.1))
        asyncio.run(mapped(folder / "moods.sqlite", 120))
        set_back(folder / "runs.sqlite", 3, trace_id)
        return folder

    return in_thread(fill)


@pytest.fixture
def filled(original, tmp_path):
    """A copy of it for one test."""
    shutil.copytree(original, tmp_path, dirs_exist_ok=True)
    with TraceStore(tmp_path / "runs.sqlite", interval=0.01) as store:
        yield store


@pytest.fixture
def served(filled):
    app = app_of(filled, allow_run=[shop], checkpoints=[filled.path.with_name("moods.sqlite")])
    with Served(app) as page:
        yield page


@pytest.fixture
def visit(browser, served):
    with Visit(browser, served.address) as made:
        made.context.grant_permissions(["clipboard-read", "clipboard-write"])
        yield made
        assert made.problems == []
