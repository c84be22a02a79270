"""The hub of a map on a cluster, by itself: what leaves it, in which order, and what a second reader gets."""

from __future__ import annotations

import asyncio
import pickle

import pytest

from SimpleLLMFunc.batch.ray import hub as ray_hub
from SimpleLLMFunc.batch.ray.hub import MOST_LOSSES, Hub, block_seconds


@pytest.fixture(autouse=True)
def plain_letters(monkeypatch) -> None:
    """Ray's pickle is not needed for what is plain."""
    monkeypatch.setattr(ray_hub, "packed", pickle.dumps)
    monkeypatch.setattr(ray_hub, "unpacked", pickle.loads)


class Driver:
    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.number = 0

    async def give(self, *letters) -> None:
        self.number += 1
        await self.hub.give(self.number, pickle.dumps(letters))

    async def rows(self, *tickets) -> None:
        await self.give(*(("row", ticket, b"%d" % ticket) for ticket in tickets))

    async def ask(self, *tickets) -> None:
        await self.give(*(("ask", ticket, None) for ticket in tickets))

    async def letters(self, seen=0):
        return [(worker, letter) for _, (worker, data) in await self.hub.take(seen) for letter in pickle.loads(data)]


async def hub_of(workers: int) -> tuple[Hub, Driver]:
    hub = Hub(workers)
    for number in range(workers):
        await hub.join(f"w{number}")
    return hub, Driver(hub)


def row(ticket: int) -> tuple[int, bytes]:
    return ticket, b"%d" % ticket


async def test_rows_that_come_together_are_dealt_out_to_the_workers() -> None:
    hub, driver = await hub_of(3)
    await driver.rows(1, 2, 3, 4, 5, 6, 7)
    assert await hub.block("run", 0) == [row(1), row(4), row(7)]
    assert await hub.block("run", 1) == [row(2), row(5)]
    assert await hub.block("run", 2) == [row(3), row(6)]


async def test_a_row_that_comes_alone_leaves_alone_and_at_once() -> None:
    hub, driver = await hub_of(2)
    block = asyncio.create_task(hub.block("run", 0))
    await asyncio.sleep(0)
    await driver.rows(1)
    assert await block == [row(1)]
    assert block_seconds(0) == 0


def test_rows_are_gathered_for_longer_where_blocks_are_many_and_never_long() -> None:
    assert block_seconds(4) < 0.002
    assert block_seconds(400) == pytest.approx(0.1)
    assert block_seconds(10**9) == 5


async def test_the_first_block_waits_for_all_workers_but_not_for_ever(monkeypatch) -> None:
    monkeypatch.setattr(ray_hub, "_OTHERS_SECONDS", 0.01)
    hub = Hub(2)
    await Driver(hub).rows(1)
    block = asyncio.create_task(hub.block("run", 0))
    await asyncio.sleep(0.03)
    assert not block.done()  # nobody is there
    await hub.join("w0")
    assert await block == [row(1)]


async def test_a_reader_that_is_started_again_gets_what_is_not_answered_in_the_same_places() -> None:
    hub, driver = await hub_of(1)
    for ticket in (1, 2, 3):
        await driver.rows(ticket)
        await hub.block("run", ticket - 1)
    waiting = asyncio.create_task(hub.block("run", 3))  # of the reader that dies
    await asyncio.sleep(0)
    assert [ticket for ticket, *_ in await hub.accept("w0", [1])] == [1]
    await hub.report("w0", 1, [1, 2], pickle.dumps([]))
    assert await hub.block("run", 0) == []
    assert await hub.block("run", 1) == []
    assert await hub.block("run", 2) == [row(3)]
    again = asyncio.create_task(hub.block("run", 3))
    await asyncio.sleep(0)
    await driver.rows(4)
    assert await waiting == await again == [row(4)]  # what the dead one took is not lost


async def test_a_dataset_that_is_started_again_gets_all_that_is_not_answered() -> None:
    hub, driver = await hub_of(1)
    await driver.rows(1, 2, 3)
    await hub.block("run", 0)
    await hub.report("w0", 1, [2], pickle.dumps([]))
    waiting = asyncio.create_task(hub.block("run", 1))  # of the reader that died with its dataset
    await asyncio.sleep(0)
    again = asyncio.create_task(hub.block("another", 0))
    await asyncio.sleep(0)
    await driver.rows(4)
    assert await again == [row(1), row(3), row(4)]
    assert await waiting is None
    await driver.rows(5)
    assert await hub.block("another", 1) == [row(5)]
    assert await hub.block("run", 1) is None


async def test_a_worker_gets_what_is_wanted_and_hears_of_the_rest_later() -> None:
    hub, driver = await hub_of(1)
    await driver.rows(1, 2, 3, 4)
    await driver.give(("ask", 1, None), ("ask", 2, 60.0), ("drop", 4))
    await hub.block("run", 0)
    wanted = await hub.accept("w0", [1, 2, 3, 4])
    assert [(ticket, is_asked) for ticket, is_asked, _ in wanted] == [(1, True), (2, True), (3, False)]
    assert wanted[0][2] is None
    assert 50 < wanted[1][2] <= 60
    await driver.give(("ask", 3, 5.0), ("drop", 2), ("may", 1, 1, None, "w0"))
    assert await hub.orders("w0", 0) == [(1, ("ask", 3, 5.0)), (2, ("drop", 2)), (3, ("may", 1, 1, None))]
    await hub.end()
    assert await hub.orders("w0", 3) == [(4, ("end",))]
    assert await hub.orders("late", 0) == [(1, ("end",))]
    assert await hub.block("run", 1) is None


async def test_a_call_that_comes_twice_counts_once() -> None:
    hub, driver = await hub_of(1)
    for _ in range(2):
        await hub.give(1, pickle.dumps([("row", 1, b"1")]))
        await hub.report("w0", 1, [], pickle.dumps([("done", 7, "x")]))
    assert await hub.block("run", 0) == [row(1)]
    assert await driver.letters() == [("w0", ("done", 7, "x"))]


async def test_only_what_was_asked_is_lost_with_a_worker_and_not_for_ever() -> None:
    hub, driver = await hub_of(1)
    await driver.rows(1, 2)
    await driver.ask(1)
    await hub.block("run", 0)
    await hub.accept("w0", [1, 2])
    await hub.accept("w0", [1, 2])  # the same worker, told again
    for death in range(1, MOST_LOSSES + 1):
        assert [ticket for ticket, *_ in await hub.accept(f"w{death}", [1, 2])] == [1, 2]
    assert [ticket for ticket, *_ in await hub.accept("w9", [1, 2])] == [2]
    lost = [("lost", 1)] * (MOST_LOSSES + 1)
    assert [letter for _, letter in await driver.letters()] == lost
    assert (await driver.letters())[-1][0] == "w9"


async def test_nothing_is_kept_of_what_is_answered() -> None:
    hub, driver = await hub_of(2)
    seen = 0
    for first in range(0, 2_000, 100):
        tickets = range(first, first + 100)
        await driver.rows(*tickets)
        await driver.ask(*tickets)
        for block in range(2):
            rows = await hub.block("run", first // 50 + block)
            accepted = await hub.accept(f"w{block}", [ticket for ticket, _ in rows])
            await hub.report(f"w{block}", first + block + 1, [ticket for ticket, *_ in accepted], b"")
        letters = await hub.take(seen)
        seen = letters[-1][0]
        assert len(letters) == 2
    assert not hub._open
    assert not hub._blocks
    assert not hub._waiting
