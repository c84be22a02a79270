"""Costs grow with what a call carries, and no faster."""

from __future__ import annotations

import asyncio
import xml.etree.ElementTree as ET

import pytest

from benchmarks.growth import BY_KEY, KINDS, caller, exponent, measure, page, plot
from benchmarks.server import ServerProcess

SMALL = {
    "messages": (200, 800), "tools": (50, 200), "text": (100_000, 1_000_000), "typed": (100_000, 400_000),
    "chunks": (1_000, 8_000), "items": (100, 400), "nesting": (30, 120), "flight": (50, 400),
}  # fmt: skip


def test_the_exponent_tells_linear_from_quadratic() -> None:
    linear = {size: {"us": 3.0 * size} for size in (10, 100, 1_000)}
    quadratic = {size: {"us": 3.0 * size * size} for size in (10, 100, 1_000)}
    assert exponent(linear, "us") == pytest.approx(1)
    assert exponent(quadratic, "us") == pytest.approx(2)
    assert exponent({1: {"us": 1.0}, 2: {"error": "no"}}, "us") is None


def test_table_and_plot_show_all_that_was_measured() -> None:
    points = {kind.key: {size: {"us": 10.0 * size, "mb": 0.1 * size} for size in kind.sizes} for kind in KINDS}
    points["tools"][200] = {"error": "a | b"}
    text = page(points)
    assert "| messages of the history | 2,000 | 20,000 | 1.00 | 200.0 | 1.00 |" in text
    assert "| tools offered | 200 | a / b | | | |" in text
    assert len(list(ET.fromstring(plot(points)).iter("{http://www.w3.org/2000/svg}polyline"))) == 2 * len(KINDS)


async def test_every_kind_makes_the_call_it_speaks_of() -> None:
    with ServerProcess() as server:
        for kind in KINDS:
            size = kind.sizes[1] if kind.key in {"messages", "tools", "nesting"} else kind.sizes[0]
            await asyncio.to_thread(server.say, kind.key, kind.says(size) or "text")
            options = ",".join((kind.options(size).replace("SAY", kind.key), f"watch={kind.key}"))
            result = await caller(kind.key, size, server.url(options))()
            seen = await asyncio.to_thread(server.watched, kind.key)
            assert seen["requests"] == (size if kind.key == "flight" else 1), kind.key
            if kind.key == "messages":
                assert max(map(int, seen["messages"])) >= size
            elif kind.key == "tools":
                assert seen["last"].count('"look_') == size
            elif kind.key in {"text", "typed", "chunks", "items"}:
                length = result if isinstance(result, int) else len(str(result))
                assert length >= size * 0.8, kind.key
            elif kind.key == "nesting":
                depth = 0
                while result is not None:
                    result, depth = result.child, depth + 1
                assert depth == size


@pytest.mark.heavy
@pytest.mark.timeout(300)
@pytest.mark.parametrize("key", SMALL)
def test_the_cost_of_a_call_grows_no_faster_than_what_it_carries(key: str) -> None:
    small, large = SMALL[key]
    points = measure([BY_KEY[key]], sizes=(small, large), seconds=0.1, rounds=2)[key]
    # Twice linear is generous enough for a neighbour, and far from quadratic: 4 to 10 times as much.
    assert points[large]["us"] / points[small]["us"] < large / small * 2
    assert points[large]["mb"] < max(points[small]["mb"], 1.0) * large / small * 2
