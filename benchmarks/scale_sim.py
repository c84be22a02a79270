"""What limits a map on many machines: a simulation with measured costs.

    python -m benchmarks.scale_sim             # simulate, print the tables of docs/explanation/scale.md
    python -m benchmarks.scale_sim --measure   # measure the costs on this machine first

The model: rows go from a driver through the hub and Ray Data to workers, from a worker to the provider and back, through
the hub, and to the one writer of the checkpoint. The driver's two threads share one interpreter, so sending, receiving
and committing are one station; the hub, the process that runs the dataset, each worker, and the driver's network are
stations of their own, each serving one thing after the other. The provider is a quota and a latency. A fixed number of
rows is under way; the next one leaves when one has been committed. That rows are carried to their workers ahead of that
costs the stations, and no row waits for it.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import math
import random
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Costs:
    """Seconds of one processor, and bytes; measured on two shared processors, by `--measure`.

    Attributes:
        row: in the driver: reading, the key, a look into the checkpoint, a letter out and one in.
        commit: in the driver: the value's bytes into the file, a row's share of a transaction.
        exchange: in the driver, or in the hub: one call, there and back.
        hub: in the hub: a row and its letters.
        block: in the process that runs the dataset: reading a block, giving it to a worker, taking its receipt.
        worker: in a worker: the whole call.
        letter_out, letter_in: bytes between driver and worker, a row.
        request, reply: bytes between worker and provider.
    """

    row: float = 50e-6
    commit: float = 45e-6
    exchange: float = 570e-6
    hub: float = 40e-6
    block: float = 8e-3
    worker: float = 360e-6
    letter_out: int = 330
    letter_in: int = 150
    request: int = 2_500
    reply: int = 1_500


@dataclass(frozen=True)
class Plan:
    """A cluster and a job.

    Attributes:
        machines: each with `workers` workers.
        quota: requests a minute that the provider allows; inf where the models are ours.
        latency: median seconds of a request; its spread is that of a log-normal with sigma 0.5.
        drivers: maps that share the rows, each with a checkpoint of its own.
        link: bits a second of a driver's network.
        in_flight: rows under way in a worker, at most.
    """

    machines: int
    quota: float = math.inf
    latency: float = 2.0
    drivers: int = 1
    workers: int = 8
    link: float = 10e9
    in_flight: int = 1_000


@dataclass(frozen=True)
class Outcome:
    """What came of a plan.

    Attributes:
        rate: rows a second, when it runs.
        busy: the share of the time that each station was busy.
    """

    rate: float
    busy: dict[str, float]

    @property
    def limit(self) -> str:
        """The station that is busiest."""
        name, share = max(self.busy.items(), key=lambda item: item[1])
        return name if share > 0.9 else "nothing but rows in flight"


class Station:
    """Serves one thing after the other."""

    __slots__ = ("busy", "free")

    def __init__(self) -> None:
        self.free = 0.0
        self.busy = 0.0

    def serve(self, now: float, seconds: float) -> float:
        """Return when it is done."""
        begun = max(now, self.free)
        self.free = begun + seconds
        self.busy += seconds
        return self.free


ROWS_A_BLOCK = 128
"""Where blocks are many; as in `SimpleLLMFunc.batch.ray.hub`."""

DRIVER_LINGER = 0.01


def linger(workers: int) -> float:
    """As `SimpleLLMFunc.batch.ray.worker.linger_seconds`."""
    return min(5.0, max(0.01, 0.005 * workers))


def simulate(plan: Plan, costs: Costs, rows: int = 50_000, seed: int = 1) -> Outcome:
    """Run the part of one driver, with its share of machines and quota."""
    chance = random.Random(seed)
    count = min(1_000, max(1, plan.machines * plan.workers // plan.drivers))
    quota = plan.quota / 60 / plan.drivers
    pause = linger(count)
    driver, hub, dataset, network, provider = Station(), Station(), Station(), Station(), Station()
    workers = [Station() for _ in range(count)]
    # What the exchange of letters takes is a share of a station's time, however many letters there are.
    slower = 1 / (1 - min(0.95, 2 * costs.exchange / DRIVER_LINGER))
    slower_hub = 1 / (1 - min(0.95, 2 * (count / pause + 1 / DRIVER_LINGER) * costs.exchange))
    wire_out, wire_in = costs.letter_out * 8 / plan.link, costs.letter_in * 8 / plan.link
    # No more under way than can matter: beyond that, they only wait in front of the station that limits.
    places = min(count * plan.in_flight, 100_000, 1_000 + int(min(quota, 1e6) * 30))
    # Twice as many rows as are under way are ahead of them; two blocks for each worker come before large ones.
    block = max(1, min(ROWS_A_BLOCK, 3 * places // max(40, 2 * count)))
    # Rows that left together stay together: whole waves are measured.
    rows = places * max(3, math.ceil(rows / places))
    events: list[tuple[float, int, int, int]] = []
    for number in range(places):
        heapq.heappush(events, (0.0, number, 0, number % count))
    sent, done, began, last = places, 0, 0.0, 0.0
    warm = places
    busy_then: list[float] = []

    def stations() -> list[float]:
        everyone = sum(worker.busy for worker in workers) / count
        return [driver.busy, hub.busy, dataset.busy, network.busy, provider.busy, everyone]

    number = places
    while done < rows:
        now, _, stage, at = heapq.heappop(events)
        number += 1
        match stage:
            case 0:  # the driver sends it
                then = driver.serve(now, costs.row * slower / 2) + DRIVER_LINGER / 2
            case 1:  # the hub and Ray Data have it carried to a worker
                dataset_done = dataset.serve(now, costs.block / block)
                then = network.serve(max(dataset_done, hub.serve(now, costs.hub * slower_hub / 2)), wire_out)
            case 2:  # the provider lets it through
                then = provider.serve(now, 1 / quota) if quota < math.inf else now
            case 3:  # the worker asks
                then = workers[at].serve(now, costs.worker / 2) + plan.latency * math.exp(chance.gauss(0, 0.5))
            case 4:  # the worker reads the answer
                then = workers[at].serve(now, costs.worker / 2) + pause / 2
            case 5:  # the hub passes it on
                then = hub.serve(network.serve(now, wire_in), costs.hub * slower_hub / 2)
            case 6:  # the driver takes it in
                then = driver.serve(now, costs.row * slower / 2)
            case _:  # it is committed
                then = driver.serve(now, costs.commit * slower)
                done += 1
                if done == warm:
                    began, busy_then = then, stations()
                last = max(last, then)
                if sent < rows + places:
                    sent += 1
                    heapq.heappush(events, (then, number, 0, at))
                continue
        heapq.heappush(events, (then, number, stage + 1, at))
    seconds = last - began
    names = ("driver and checkpoint", "hub", "Ray Data", "driver's network", "provider's quota", "workers")
    busy = {
        name: min(1.0, (after - before) / seconds)
        for name, before, after in zip(names, busy_then, stations(), strict=True)
    }
    return Outcome((rows - warm) / seconds * plan.drivers, busy)


# --- the tables --------------------------------------------------------------------------------------------


def plans() -> Iterator[tuple[str, Plan]]:
    for machines in (1, 10, 100, 1_000):
        yield f"{machines:,} machines, 10,000 requests a minute", Plan(machines, quota=10_000)
    for machines in (1, 10, 100, 1_000):
        yield f"{machines:,} machines, 1,000,000 requests a minute", Plan(machines, quota=1_000_000)
    for machines in (1, 10, 100, 1_000):
        yield f"{machines:,} machines, models of our own (no quota)", Plan(machines)
    for drivers in (10, 100, 1_000):
        yield f"1,000 machines, no quota, {drivers:,} drivers", Plan(1_000, drivers=drivers)
    yield "1,000 machines, no quota, 100 drivers on 1 Gbit/s", Plan(1_000, drivers=100, link=1e9)
    # One worker a machine, for models that fill it: the answers come slowly, and there are few at a time.
    yield "1,000 machines with a model each, 20 at a time, 1 driver", Plan(1_000, workers=1, in_flight=20)
    yield "1,000 machines with a model each, 20 at a time, 4 drivers", Plan(1_000, workers=1, in_flight=20, drivers=4)


def table(costs: Costs, rows: int) -> str:
    lines = [
        "| | rows a second | 100 million rows take | limited by | driver | hub | Ray Data | network | quota | workers |",
        "| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for title, plan in plans():
        outcome = simulate(plan, costs, rows)
        shares = " | ".join(f"{share:.0%}" for share in outcome.busy.values())
        hours = 1e8 / outcome.rate / 3600
        took = f"{hours:,.1f} hours" if hours < 48 else f"{hours / 24:,.0f} days"
        lines.append(f"| {title} | {outcome.rate:,.0f} | {took} | {outcome.limit} | {shares} |")
    return "\n".join(lines)


# --- measuring -------------------------------------------------------------------------------------------


class _Called:
    """A method of an actor that is none: as much as an actor does, less the way there."""

    def __init__(self, method: Any) -> None:
        self._method = method

    def remote(self, *args: Any) -> Any:
        return asyncio.ensure_future(self._method(*args))


class _Instant:
    """A hub that has every answer; `seconds` is the processor time that is its own."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer
        self._out: list[tuple[Any, ...]] = []
        self._came = asyncio.Event()
        self._number = 0
        self._is_over = asyncio.Event()
        self.seconds = 0.0
        self.bytes_in = self.bytes_out = 0
        self.give, self.take, self.end = _Called(self._give), _Called(self._take), _Called(self._end)
        self.run = _Called(self._run)

    async def _run(self, *_: Any) -> None:
        await self._is_over.wait()

    async def _end(self) -> None:
        self._is_over.set()

    async def _give(self, _: int, letters: bytes) -> None:
        from SimpleLLMFunc.batch.ray.cluster import unpacked

        begun = time.thread_time()
        self.bytes_out += len(letters)
        self._out += [("done", ticket, self._answer()) for kind, ticket, *_ in unpacked(letters) if kind == "ask"]
        self.seconds += time.thread_time() - begun
        self._came.set()

    async def _take(self, _: int) -> list[Any]:
        from SimpleLLMFunc.batch.ray.cluster import packed

        while not self._out:
            self._came.clear()
            await self._came.wait()
        await asyncio.sleep(0.01)
        begun = time.thread_time()
        data = packed(self._out)
        self._out.clear()
        self._number += 1
        self.bytes_in += len(data)
        self.seconds += time.thread_time() - begun
        return [(self._number, ("one", data))]


async def _measured(rows: int, checkpoint: Path | None) -> tuple[float, _Instant]:
    """Return the processor seconds of a driver whose hub answers at once."""
    from unittest.mock import AsyncMock, patch

    from pydantic import BaseModel

    from SimpleLLMFunc import llm_function
    from SimpleLLMFunc.base.run.mappable import Answer
    from SimpleLLMFunc.batch import RayEngine, map_rows
    from SimpleLLMFunc.batch.checkpoint.codec import encode_answer
    from SimpleLLMFunc.batch.ray import engine as ray
    from SimpleLLMFunc.batch.ray.worker import Outcome as Came
    from SimpleLLMFunc.llm_decorator.mapped import MappedFunction
    from SimpleLLMFunc.testing import ScriptedLLM
    from SimpleLLMFunc.type.usage import Usage

    class Order(BaseModel):
        customer: str
        city: str
        items: list[str]
        total: float

    @llm_function(ScriptedLLM(repeat=True))
    async def read(text: str) -> Order:
        """Read the order."""
        raise NotImplementedError

    function = MappedFunction[Order](read._pipeline)  # noqa: SLF001 - as its own views do
    value = Order(customer="Ada Lovelace", city="London", items=["tea", "paper", "ink"], total=12.5)
    data = encode_answer(Answer(value, "", "native", Usage(400, 60)), function.output, function.repair)

    def came() -> Came:
        return Came(True, bytes(bytearray(data)), "native", Usage(400, 60, cost=0.0002), 1, (0, 0, 0.0))

    hub = _Instant(came)

    class Connected:
        async def __aenter__(self) -> Any:
            class Package:
                exceptions = import_module("ray.exceptions")
                kill = staticmethod(lambda _: None)
                cluster_resources = staticmethod(lambda: {"CPU": 1.0})

            return Package

        async def __aexit__(self, *_: object) -> None: ...

    texts = [f"{number:08} " + "An order of some length, as they come by mail. " * 6 for number in range(rows)]
    with (
        patch.object(ray, "connected", lambda _: Connected()),
        patch.object(ray, "_started", lambda *_: [AsyncMock(), hub, hub]),
    ):
        begun = time.process_time()
        report = await map_rows(
            function, texts, engine=RayEngine(workers=1), concurrency=1_000, checkpoint=checkpoint, progress=False
        )
        spent = time.process_time() - begun
    assert report.counts.asked == rows, report
    assert report.counts.failed == 0, report
    return spent - hub.seconds, hub


async def measure(rows: int = 20_000) -> Costs:
    """Measure what can be measured in one process."""
    with tempfile.TemporaryDirectory() as folder:
        await _measured(2_000, None)  # warm
        without, hub = await _measured(min(rows, 10_000), None)
        kept, _ = await _measured(rows, Path(folder, "run.sqlite"))
    row = without / min(rows, 10_000)
    return replace(
        Costs(),
        row=row,
        commit=max(0.0, kept / rows - row),
        letter_out=hub.bytes_out // min(rows, 10_000),
        letter_in=hub.bytes_in // min(rows, 10_000),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--measure", action="store_true", help="the driver's costs on this machine")
    parser.add_argument("--rows", type=int, default=50_000)
    told = parser.parse_args()
    costs = asyncio.run(measure()) if told.measure else Costs()
    print(costs)
    print(table(costs, told.rows))


if __name__ == "__main__":
    main()
