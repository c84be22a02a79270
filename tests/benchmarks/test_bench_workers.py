"""The contenders' processes: they measure what they are told to, look at every answer, and nobody wins by not asking."""

from __future__ import annotations

import ast
import asyncio
import dataclasses
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.bench import server_cost, teach
from benchmarks.contenders._worker import Worker
from benchmarks.field import AIOHTTP, FIELD, OURS, SDK
from benchmarks.rows import BY_KEY, LONG, ROWS, TEXT
from benchmarks.server import ServerProcess
from benchmarks.workers import ROOT, Bench, Failed, Lacks, WorkerProcess, what_is_wrong

IN_DEV = (AIOHTTP, "httpx", SDK, OURS)
SHORT = {"plain", "typed", "tool", "history", "chunk200", "paced", "sync1", "sync16"}


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with ServerProcess() as process:
        teach(process)
        yield process


@pytest.fixture
def bench(server: ServerProcess, tmp_path: Path) -> Iterator[Bench]:
    server.reset()
    with Bench(server, lambda _: Path(sys.executable), tmp_path) as made:
        yield made


def test_a_worker_measures_what_it_is_told_to(bench: Bench) -> None:
    row = dataclasses.replace(BY_KEY["plain"], seconds=0.01)
    told = bench.measure(AIOHTTP, row)
    assert told["asked"] > told["calls"] >= 1
    assert 0 < row.figure(told) < 1e6
    # The second sample is not calibrated again.
    assert bench.measure(AIOHTTP, row)["asked"] == told["calls"]
    with pytest.raises(Lacks, match="has no plain functions"):
        bench.measure(AIOHTTP, dataclasses.replace(BY_KEY["sync1"], seconds=0.01))


@pytest.mark.heavy
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", IN_DEV)
def test_every_row_of_those_who_are_in_the_development_environment(bench: Bench, name: str) -> None:
    for row in ROWS:
        if row.key in SHORT and not (name == AIOHTTP and row.ask == "sync"):
            assert row.figure(bench.measure(name, dataclasses.replace(row, seconds=0.02))) > 0
    flight = dataclasses.replace(BY_KEY["flight256"], order={"width": 16}, seconds=0.02)
    assert flight.figure(bench.measure(name, flight)) > 0
    first = bench.measure(name, BY_KEY["first"])
    assert first["wall"] > 0
    assert BY_KEY["imported"].figure(first) > 5
    # A thousand connections may take a slow machine longer than one may wait for them.
    peak = dataclasses.replace(BY_KEY["peak1000"], order={"width": 50})
    assert bench.measure(name, peak)["peak_mb"] > first["imported_mb"]


class Cheat:
    """Knows the answers."""

    def __init__(self, _: str) -> None: ...

    async def plain(self, _: str) -> str:
        return TEXT

    async def stream(self, _: str) -> AsyncIterator[str]:
        yield LONG[:-1]

    async def typed(self, _: str) -> dict[str, Any]:
        return {"number": 12}

    async def tool(self, _: str) -> str:
        return "all tickets are open"


def obey(client: type[Any], key: str, url: str = "http://127.0.0.1:9/v1") -> dict[str, Any]:
    row = BY_KEY[key]
    with asyncio.Runner() as runner:
        order = {"mode": row.mode, "ask": row.ask, "url": url, "seconds": 0.001, "expect": row.expect}
        return Worker(client, runner).obey(order)


def test_who_answers_without_asking_is_found_out(server: ServerProcess) -> None:
    told = obey(Cheat, "plain")
    assert told["asked"] > 0
    assert "0 requests" in what_is_wrong(BY_KEY["plain"], server.watched("cheat"), told["asked"])


@pytest.mark.parametrize("key", ["chunk200", "typed", "tool"])
def test_a_wrong_answer_is_no_answer(key: str) -> None:
    with pytest.raises(AssertionError, match="is not the answer"):
        obey(Cheat, key)


def test_what_a_contender_lacks_is_told() -> None:
    assert obey(Cheat, "history") == {"lacks": "has nothing of the kind"}


SEEN = {"requests": 4, "streams": 0, "models": {"gpt-4o-mini": 4}, "messages": {"2": 4}, "last": ""}


@pytest.mark.parametrize(("key", "changed", "said"), [
    ("plain", {}, ""), ("plain", {"requests": 3}, "3 requests for 4 calls"),
    ("plain", {"models": {"gpt-4o-mini": 3, "small": 1}}, "small"), ("chunk200", {"streams": 3}, "3 of 4"),
    ("history", {}, "a conversation of 2 messages"), ("typed", {}, "nothing about the type"),
    ("tool", {}, "4 requests for 4 calls, 8 were due"), ("tool", {"requests": 8}, "no result of the tool"),
])  # fmt: skip
def test_what_the_server_saw_has_to_fit(key: str, changed: dict[str, Any], said: str) -> None:
    wrong = what_is_wrong(BY_KEY[key], {**SEEN, **changed}, 4)
    assert said in wrong
    assert bool(wrong) == bool(said)


def test_a_process_that_ends_says_why(tmp_path: Path) -> None:
    with (
        WorkerProcess("nobody", Path(sys.executable), tmp_path) as worker,
        pytest.raises(Failed, match=r"No module named benchmarks\.contenders\.nobody"),
    ):
        worker.tell({"mode": "sequence"})


def test_an_order_that_takes_too_long_ends_the_process(tmp_path: Path, server: ServerProcess) -> None:
    order = {"mode": "once", "ask": "plain", "url": server.url("delay=60000"), "seconds": 1, "expect": ""}
    with WorkerProcess(AIOHTTP, Path(sys.executable), tmp_path) as worker:
        with pytest.raises(Failed, match="no answer within"):
            worker.tell(order, seconds=0.1)
        with pytest.raises(Failed):
            worker.tell(order)


def test_the_server_is_compared_with_the_client_of_the_same_sample(bench: Bench, server: ServerProcess) -> None:
    teach(server)
    cost, times = server_cost(bench, server, AIOHTTP, rounds=1)
    assert cost > 0
    assert times > 0
    assert server.watched(f"{AIOHTTP}.server")["requests"] >= 256


@pytest.mark.parametrize("contender", FIELD, ids=lambda contender: contender.name)
def test_a_contender_is_a_short_module_of_its_own_with_pins(contender: Any) -> None:
    text = (ROOT / "benchmarks" / "contenders" / f"{contender.name}.py").read_text("utf-8")
    assert ast.get_docstring(ast.parse(text))
    assert len(text.splitlines()) <= 110
    pins = (ROOT / "benchmarks" / "pins" / f"{contender.name}.txt").read_text("utf-8").splitlines()
    assert all(line.count("==") == 1 for line in pins)
    assert contender.package == "SimpleLLMFunc" or any(line.startswith(f"{contender.package}==") for line in pins)


@pytest.mark.skipif(sys.platform != "linux", reason="processes cannot be held to a processor everywhere")
def test_contender_and_server_run_where_the_row_says(bench: Bench, server: ServerProcess) -> None:
    row = dataclasses.replace(BY_KEY["plain"], seconds=0.01)
    bench.measure(AIOHTTP, row)
    (worker,) = bench._workers.values()
    (cores,) = _cores_of(worker.pid)
    assert len(cores) == 1
    assert _cores_of(server.pid) == {cores}
    every = frozenset(os.sched_getaffinity(0))
    bench.measure(AIOHTTP, dataclasses.replace(row, place="one processor"))
    assert _cores_of(worker.pid) == {cores}
    assert _cores_of(server.pid) == {every - cores or cores}
    bench.measure(AIOHTTP, row)
    bench.measure(AIOHTTP, dataclasses.replace(row, place="anywhere"))
    assert _cores_of(worker.pid) == _cores_of(server.pid) == {every}


def _cores_of(pid: int) -> set[frozenset[int]]:
    threads = Path(f"/proc/{pid}/task").iterdir()
    return {frozenset(os.sched_getaffinity(int(thread.name))) for thread in threads}
