"""What the tests of the page share: a store, a run with everything in it, a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from SimpleLLMFunc.observability.store.trace_store import TraceStore
from tests.viewer import shop
from tests.viewer.served import keep, opened_browser


@pytest.fixture
def store(tmp_path: Path) -> Iterator[TraceStore]:
    with TraceStore(tmp_path / "runs.sqlite", interval=0.01) as made:
        yield made


@pytest.fixture
def order_run(store: TraceStore) -> Any:
    """A run with tools, an answer that was sent back, and a repair."""
    return keep(store, lambda: shop.read_order.with_options(llm_interface=shop.order_llm()).call(shop.LETTER))


@pytest.fixture
def browser() -> Iterator[Any]:
    """A real browser, for one test: while it is open, the thread counts as one that runs an event loop."""
    with opened_browser() as opened:
        yield opened
