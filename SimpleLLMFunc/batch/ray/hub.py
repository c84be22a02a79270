"""The hub of a map on a Ray cluster: an actor that rows leave for the dataset from, and that letters go through.

Ray Data decides which worker gets a row; nobody knows it before. So the driver hands its rows to the hub, the dataset
reads them there in blocks, and the worker that gets a block asks the hub which of its rows are still wanted. Ray Data looks
ten times a second whether there is something to do; so rows go ahead, and wait at their worker until the driver has a
place for them. What came of a row goes back as soon as it is there, not with the block.

A block that Ray runs again, because its worker died, has the rows again that nobody has answered, and no others.

========  =====================================  ==========================================================
to        letter                                 meaning
========  =====================================  ==========================================================
hub       ``("row", ticket, data)``              a row that will be asked for, unless it is dropped
hub       ``("ask", ticket, s)``                 ask for it now, in at most s seconds (None: any number)
hub       ``("drop", ticket)``                   nobody wants it any more
hub       ``("may", ticket, number, error, w)``  the answer to a question of worker w about the budget; None: it may
worker    ``("ask", ticket, s)``, ``("drop", ticket)``, ``("may", ticket, number, error)``, ``("end",)``
driver    ``("done", ticket, outcome)``          what came of the row
driver    ``("may?", ticket, number, needed, spent)``  may the row send a request that takes so much?
driver    ``("lost", ticket)``                   its worker died; the one that writes has it now
driver    ``("failed", error)``                  the worker cannot load the function
========  =====================================  ==========================================================

Many letters go at a time: a call of an actor costs half a millisecond, a letter in it next to nothing. A call may be made
again after a failure; nobody acts on its letters twice.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from SimpleLLMFunc.batch.ray.cluster import packed, unpacked

__all__ = ["MOST_LOSSES", "Hub", "Row", "block_seconds"]

T = TypeVar("T")

MOST_LOSSES = 3
"""So often a row is asked again after its worker died; a row that kills its worker must not do so for ever."""

_FEW_BLOCKS = 40
_OTHERS_SECONDS = 5.0
"""How long the first worker waits for the others."""

_LEAST = 128
"""Rows in a block, where there are many blocks."""

_PAUSE = 0.01
_LONGEST = 5.0

Row = tuple[int, bytes]
"""A ticket, and the arguments as they travel."""


def block_seconds(unfinished: int) -> float:
    """Return how long rows are gathered for a block while so many blocks are under way.

    A block is under way as long as its slowest row, and each costs Ray a few milliseconds: where they are many, answers
    take long, and rows may wait a small part of that.
    """
    return min(_LONGEST, _PAUSE * unfinished / _FEW_BLOCKS)


@dataclass(slots=True)
class _Open:
    """A row without an answer.

    Attributes:
        is_asked: the driver has a place for it.
        until: when its time is up, on the clock of the event loop.
        block: that it left with.
        worker: who has it.
        losses: how many workers died with it.
    """

    data: bytes
    is_asked: bool = False
    until: float | None = None
    block: tuple[str, int] | None = None
    worker: str = ""
    losses: int = 0


class Hub:
    """The actor.

    Args:
        workers: how many there are; rows that come together are for all of them.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._open: dict[int, _Open] = {}
        self._waiting: list[int] = []
        self._pieces: deque[list[int]] = deque()
        self._blocks: dict[tuple[str, int], set[int]] = {}
        self._served: dict[str, int] = {}
        self._run = ""
        self._has_rows = asyncio.Event()
        self._joined: set[str] = set()
        self._has_joined = asyncio.Event()
        self._are_all_there = asyncio.Event()
        self._is_over = False
        self._has_ended = asyncio.Event()
        self._seen: dict[str, int] = {}
        self._for_driver: _Box[tuple[str, bytes]] = _Box()
        self._for_workers: dict[str, _Box[tuple[Any, ...]]] = {}

    # --- the driver ----------------------------------------------------------------------------------------------

    async def give(self, number: int, letters: bytes) -> None:
        """Take the driver's letters; `number` counts its calls."""
        if self._is_known("", number):
            return
        now = asyncio.get_running_loop().time()
        for kind, ticket, *rest in unpacked(letters):
            if kind == "row":
                self._open[ticket] = _Open(*rest)
                self._waiting.append(ticket)
                self._has_rows.set()
            elif kind == "ask":
                (seconds,) = rest
                if (row := self._open.get(ticket)) is None:
                    continue
                row.is_asked, row.until = True, None if seconds is None else now + seconds
                if row.worker:
                    self._box(row.worker).put((kind, ticket, seconds))
            elif kind == "drop":
                dropped = self._close(ticket)
                if dropped is not None and dropped.worker:
                    self._box(dropped.worker).put((kind, ticket))
            else:
                *answer, worker = rest
                self._box(worker).put((kind, ticket, *answer))

    async def take(self, seen: int) -> list[tuple[int, tuple[str, bytes]]]:
        """Return what the workers wrote after number `seen`, each with its writer, as soon as there is something."""
        return await self._for_driver.take(seen)

    async def end(self) -> None:
        """End the dataset: no row is wanted any more, and none will come."""
        self._is_over = True
        self._has_joined.set()
        self._are_all_there.set()
        for ticket in list(self._open):
            self._close(ticket)
        for box in self._for_workers.values():
            box.put(("end",))
        self._has_rows.set()
        self._has_ended.set()

    async def over(self) -> None:
        """Return when it is over, to those who wait for nothing else."""
        await self._has_ended.wait()

    # --- the dataset ---------------------------------------------------------------------------------------------

    async def block(self, run: str, index: int) -> list[Row] | None:
        """Return the rows of a block of the dataset, as soon as there are some; None when no more will come.

        A reader that Ray has started again asks for all blocks anew, and what was finished is empty then: the place of a
        block says which it is. A run that is new is a dataset that was started again, with all that is not answered.
        """
        if run not in self._served:
            self._run = run
            self._served[run] = 0
            self._pieces.clear()
            self._blocks.clear()
            self._waiting = list(self._open)
            for row in self._open.values():
                row.block = None
            if self._waiting:
                self._has_rows.set()
            await self._some_workers()
        # Of a reader that is no more a question may still wait here: the next one gets what came to that.
        while index >= self._served[run]:
            if run != self._run:
                return None  # its dataset is no more: what it took would be lost
            if self._pieces:
                self._serve(run, self._pieces.popleft())
            elif self._waiting:
                await asyncio.sleep(block_seconds(len(self._blocks)))
                self._cut()
            elif self._is_over:
                return None
            else:
                self._has_rows.clear()
                await self._has_rows.wait()
        return [(ticket, self._open[ticket].data) for ticket in sorted(self._blocks.get((run, index), ()))]

    async def _some_workers(self) -> None:
        """Return when the workers are there: the first one would get what is for all of them."""
        await self._has_joined.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(_OTHERS_SECONDS):
                await self._are_all_there.wait()

    def _cut(self) -> None:
        """Make blocks of what has come: one for each worker, as long as there are few under way.

        Rows are dealt out like cards: what is asked for together is then not all with one worker.
        """
        waiting, self._waiting = [ticket for ticket in self._waiting if ticket in self._open], []
        least = 1 if len(self._blocks) < max(_FEW_BLOCKS, 2 * self._workers) else _LEAST
        count = min(self._workers, -(-len(waiting) // least))
        self._pieces.extend(waiting[first::count] for first in range(count))

    def _serve(self, run: str, piece: Sequence[int]) -> None:
        tickets = {ticket for ticket in piece if ticket in self._open}
        if not tickets:
            return
        block = (run, self._served[run])
        self._served[run] += 1
        self._blocks[block] = tickets
        for ticket in tickets:
            self._open[ticket].block = block

    # --- the workers ---------------------------------------------------------------------------------------------

    async def join(self, worker: str) -> None:
        """Take note of a worker that is there."""
        self._joined.add(worker)
        self._has_joined.set()
        if len(self._joined) >= self._workers:
            self._are_all_there.set()

    async def accept(self, worker: str, tickets: Sequence[int]) -> list[tuple[int, bool, float | None]]:
        """Give a worker those rows of its block that are still wanted.

        Each with whether to ask for it now, and the seconds that it has left.
        """
        now = asyncio.get_running_loop().time()
        wanted: list[tuple[int, bool, float | None]] = []
        lost: list[tuple[Any, ...]] = []
        for ticket in tickets:
            row = self._open.get(ticket)
            if row is None:
                continue
            if row.is_asked and row.worker not in {"", worker}:
                row.losses += 1
                lost.append(("lost", ticket))
            row.worker = worker
            if row.losses > MOST_LOSSES:
                self._close(ticket)
            else:
                wanted.append((ticket, row.is_asked, None if row.until is None else row.until - now))
        if lost:
            self._for_driver.put((worker, packed(lost)))
        return wanted

    async def report(self, worker: str, number: int, ended: Sequence[int], letters: bytes) -> None:
        """Take a worker's letters to the driver; `number` counts its calls, `ended` are rows that are answered."""
        if self._is_known(worker, number):
            return
        for ticket in ended:
            self._close(ticket)
        self._for_driver.put((worker, letters))

    async def orders(self, worker: str, seen: int) -> list[tuple[int, tuple[Any, ...]]]:
        """Return the letters to a worker after number `seen`, as soon as there are some."""
        return await self._box(worker).take(seen)

    def _box(self, worker: str) -> _Box[tuple[Any, ...]]:
        box = self._for_workers.get(worker)
        if box is None:
            box = self._for_workers[worker] = _Box()
            if self._is_over:
                box.put(("end",))
        return box

    def _is_known(self, writer: str, number: int) -> bool:
        if number <= self._seen.get(writer, 0):
            return True
        self._seen[writer] = number
        return False

    def _close(self, ticket: int) -> _Open | None:
        row = self._open.pop(ticket, None)
        if row is not None and row.block is not None and (block := self._blocks.get(row.block)) is not None:
            block.discard(ticket)
            if not block:
                del self._blocks[row.block]
        return row


class _Box(Generic[T]):
    """Letters for one reader, kept until it has seen them."""

    def __init__(self) -> None:
        self._letters: deque[tuple[int, T]] = deque()
        self._numbers = 0
        self._has_letters = asyncio.Event()

    def put(self, letter: T) -> None:
        self._numbers += 1
        self._letters.append((self._numbers, letter))
        self._has_letters.set()

    async def take(self, seen: int) -> list[tuple[int, T]]:
        """Return those after number `seen`, as soon as there are some; what was seen is forgotten."""
        while self._letters and self._letters[0][0] <= seen:
            self._letters.popleft()
        while not self._letters:
            self._has_letters.clear()
            await self._has_letters.wait()
        return list(self._letters)
