"""What all contenders share: the line protocol, the clock, and the look at every answer. Standard library only.

The runner writes one JSON object a line to standard input, and reads one from standard output:

    {"mode": "sequence", "ask": "plain", "url": "http://…", "seconds": 0.5, "expect": "…"}
    {"calls": 400, "asked": 407, "wall": 0.5, "cpu": 0.41}

`calls` were measured; `asked` counts the others too, those that warmed up. A contender is a class `Client(url)` with
some of the methods `plain typed tool history sync`, `mapped` (takes all questions, and how many to ask at a time) and
the async generator `stream`; what it lacks is told as `lacks`.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

MODEL = "gpt-4o-mini"
SYSTEM = "You are a helpful assistant who answers briefly."
TYPED_QUESTION = "Read the order: number 12 of Bob Miller, Main Street 5 in Paris, red, 12.50, tags new, paid, gift."
ORDER = {
    "number": 12,
    "customer": "Bob Miller",
    "color": "red",
    "total": 12.5,
    "address": {"street": "Main Street 5", "city": "Paris"},
    "tags": ["new", "paid", "gift"],
}
_SAID = "the quick brown fox jumps over the lazy dog, and the dog does not mind at all."
TURNS: list[dict[str, str]] = [{"role": "system", "content": SYSTEM}]
"""A conversation of 42 messages: the system's, 40 in turn, and the question."""
for _number in range(20):
    TURNS.append({"role": "user", "content": f"Question {_number}: {_SAID} {_SAID}"})
    TURNS.append({"role": "assistant", "content": f"Answer {_number}: {_SAID} {_SAID} {_SAID}"})
TURNS.append({"role": "user", "content": "And what will the weather be like after all that?"})


def question(ask: str, number: int) -> str:
    """Return what the call `number` asks; the answer to a tool question must hold its token."""
    if ask == "typed":
        return TYPED_QUESTION
    if ask == "tool":
        return f"Look up the ticket <<ticket-{number:07}>> and tell me about it."
    return f"What will the weather be like on day {number}?"


def lookup(token: str) -> str:
    """Look up a ticket.

    Args:
        token: the name of the ticket.
    """
    return f"{token} is open"


# Types and not their names: some libraries do not look them up.
lookup.__annotations__ = {"token": str, "return": str}


def memory(field: str) -> float:
    """Return a field of /proc/self/status in MB; elsewhere the peak is all that is known."""
    try:
        return int(Path("/proc/self/status").read_text("ascii").split(f"{field}:", 1)[1].split(None, 1)[0]) / 1024
    except FileNotFoundError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 / (1024 if sys.platform == "darwin" else 1)


class Worker:
    """Does what the runner orders, with one client per address, and one event loop for all of them."""

    def __init__(self, client: Callable[[str], Any], runner: asyncio.Runner) -> None:
        self._new_client = client
        self._run = runner.run
        self._clients: dict[str, Any] = {}
        self._calls: dict[str, int] = {}
        self._threads: dict[int, ThreadPoolExecutor] = {}
        self._asked = 0
        self._first_memory = memory("VmRSS")

    def client(self, url: str) -> Any:
        if url not in self._clients:
            # Inside the loop: some clients want one that runs.
            async def make() -> Any:
                return self._new_client(url)

            self._clients[url] = self._run(make())
        return self._clients[url]

    def obey(self, order: dict[str, Any]) -> dict[str, Any]:
        """Measure what is ordered."""
        client, ask, before = self.client(order["url"]), order["ask"], self._asked
        call = getattr(client, ask, None)
        if call is None:
            return {"lacks": getattr(client, "lacks", {}).get(ask, "has nothing of the kind")}
        if order["mode"] == "paced":
            told = self._run(self._paced(call, order["expect"]))
        else:
            measured = getattr(self, f"_{order['mode']}")(order, call)
            told = measured if isinstance(measured, dict) else self._steady(order, *measured)
        return {**told, "asked": self._asked - before}

    def _steady(
        self, order: dict[str, Any], batch: Callable[[int], list[Any]], least: int, most: int
    ) -> dict[str, Any]:
        """Warm up and find how many calls fill the wanted seconds, once; then measure so many."""
        key = json.dumps(order)
        ask, expect = order["ask"], order.get("expect", "")
        if key not in self._calls:
            calls, took = least, 0.0
            # The first time opens connections and fills caches, and says nothing about the second.
            for is_warm in (False, *[True] * 12):
                begun = time.perf_counter()
                self._check(ask, expect, batch(calls))
                took = max(time.perf_counter() - begun, 1e-6)
                # Waves that take long are not asked twice; of single calls the first, which imports, says nothing.
                if (is_warm and took > order["seconds"] / 4) or (least > 1 and took > 4 * order["seconds"]):
                    break
                calls *= 2 if is_warm and least == 1 else 1
            wanted = round(calls * order["seconds"] / took / least)
            # Who is fast shows it in a steady state only; to the others a wave is long enough.
            is_fast = "waves" in order and took < 1.0
            self._calls[key] = least * (most if is_fast else min(max(wanted, 1), most))
        calls = self._calls[key]
        gc.collect()
        begun, cpu = time.perf_counter(), time.process_time()
        results = batch(calls)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - begun
        self._check(ask, expect, results)
        return {"calls": calls, "wall": wall, "cpu": cpu}

    def _sequence(self, order: dict[str, Any], call: Any) -> tuple[Callable[[int], list[Any]], int, int]:
        """One call after the other."""
        asked = asked_for(order["ask"], call)

        async def batch(calls: int) -> list[Any]:
            return [await asked(number) for number in self._numbers(calls)]

        return lambda calls: self._run(batch(calls)), 1, 1_000_000

    def _flight(self, order: dict[str, Any], call: Any) -> tuple[Callable[[int], list[Any]], int, int]:
        """So many calls at once, all the time."""
        asked = asked_for(order["ask"], call)

        async def batch(calls: int) -> list[Any]:
            numbers, results = iter(self._numbers(calls)), []

            async def lane() -> None:
                for number in numbers:
                    results.append(await asked(number))  # noqa: PERF401 - the lanes share it

            await asyncio.gather(*(lane() for _ in range(order["width"])))
            return results

        return lambda calls: self._run(batch(calls)), order["width"], order.get("waves", 1_000)

    def _mapped(self, order: dict[str, Any], call: Any) -> tuple[Callable[[int], list[Any]], int, int]:
        """All questions given at once to what asks so many of them at a time."""

        async def batch(calls: int) -> list[Any]:
            answers: list[Any] = await call(
                [question("plain", number) for number in self._numbers(calls)], order["width"]
            )
            return answers

        return lambda calls: self._run(batch(calls)), order["width"], order.get("waves", 1_000)

    def _threaded(self, order: dict[str, Any], call: Any) -> tuple[Callable[[int], list[Any]], int, int]:
        """From plain functions, in so many threads."""
        width = order["width"]

        def batch(calls: int) -> list[Any]:
            numbers = self._numbers(calls)
            if width == 1:
                return [call(question("sync", number)) for number in numbers]
            pool = self._threads.setdefault(width, ThreadPoolExecutor(width))
            lanes = [
                pool.submit(lambda part: [call(question("sync", number)) for number in part], numbers[lane::width])
                for lane in range(width)
            ]
            return [result for lane in lanes for result in lane.result()]

        return batch, width, 1_000_000

    def _memory(self, order: dict[str, Any], call: Any) -> dict[str, Any]:
        """In a new process: what it takes with many calls in flight."""
        self._run(call(question("plain", 0)))

        async def storm() -> list[Any]:
            return await asyncio.gather(*(call(question("plain", number)) for number in range(order["width"])))

        results = self._run(storm())
        self._asked += 1 + order["width"]
        self._check(order["ask"], order["expect"], results)
        return {"calls": order["width"], "peak_mb": memory("VmHWM")}

    def _once(self, order: dict[str, Any], call: Any) -> dict[str, Any]:
        """One call and no more."""
        results = [self._run(call(question("plain", 0)))]
        self._asked += 1
        self._check(order["ask"], order["expect"], results)
        return {"calls": 1, "imported_mb": self._first_memory}

    async def _paced(self, call: Any, expect: int) -> dict[str, Any]:
        """How long after it was written each chunk is in the user's hands; each brings the time of its writing."""
        for _ in range(2):  # the first stream opens the connection, and warms up
            late: list[float] = []
            self._asked += 1
            async for piece in call(question("stream", 0)):
                now = time.monotonic_ns()
                late.extend((now - int(stamp)) / 1e3 for stamp in piece.split())
        if len(late) != expect:
            raise AssertionError(f"{len(late)} of {expect} chunks came")
        return {"calls": 1, "median_us": statistics.median(late), "p99_us": sorted(late)[int(expect * 0.99)]}

    def _numbers(self, calls: int) -> Sequence[int]:
        begin = self._asked
        self._asked += calls
        return range(begin, begin + calls)

    def _check(self, ask: str, expect: str, results: list[Any]) -> None:
        for number, result in enumerate(results, self._asked - len(results)):
            if ask == "typed":
                right = as_data(result) == ORDER
            elif ask == "tool":
                # Those in flight together do not end in order.
                right = f"<<ticket-{number:07}>>" in result
            else:
                right = result == expect
            if not right:
                raise AssertionError(f"{ask} {number}: {str(result)[:200]!r} is not the answer")


def asked_for(ask: str, call: Any) -> Callable[[int], Awaitable[Any]]:
    """Return what asks the question of a number, and reads the whole answer."""
    if ask != "stream":
        return lambda number: call(question(ask, number))

    async def read(number: int) -> str:
        return "".join([piece async for piece in call(question(ask, number))])

    return read


def as_data(value: Any) -> Any:
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else value


def serve(client: Callable[[str], Any]) -> None:
    """Obey the lines of standard input until it ends."""
    # Some libraries print: what is not ours goes to standard error.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with asyncio.Runner() as runner:
        worker = Worker(client, runner)
        for line in sys.stdin:
            try:
                told = worker.obey(json.loads(line))
            except Exception as error:  # noqa: BLE001 - whatever it is, it is told
                told = {"error": f"{type(error).__name__}: {error}"[:400]}
            print(json.dumps(told), file=out, flush=True)
        out.close()
        # Clients that were never closed complain at the end of the interpreter; nothing of theirs is needed.
        os._exit(0)
