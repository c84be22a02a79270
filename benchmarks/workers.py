"""The contenders' processes: one each, which does what it is told line by line; and the look at what the server saw."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from benchmarks.contenders._worker import MODEL, TURNS
from benchmarks.rows import Row
from benchmarks.server import ServerProcess

ROOT = Path(__file__).parent.parent
SECONDS_FOR_ONE_ORDER = 300.0


class Failed(Exception):
    """A contender could not be measured."""


class Lacks(Exception):
    """A contender has nothing of the kind."""


def environment(home: Path) -> dict[str, str]:
    """Return what a worker's process sees: no settings of ours, no proxy, nothing that reaches for the network."""
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "LANG", "LC_ALL", "SYSTEMROOT"}}
    return {
        **kept,
        "HOME": str(home),
        "PYTHONPATH": str(ROOT),
        "OPENAI_API_KEY": "sk-bench",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "LANGSMITH_TRACING": "false",
        "DSPY_CACHEDIR": str(home / "dspy"),
        "NO_PROXY": "*",
    }


class WorkerProcess:
    """One contender in its own process.

    Args:
        name: of its module.
        python: the interpreter of its environment.
        home: where it may write.
        command: the module and its arguments, where it is another than that in `benchmarks.contenders`.
    """

    def __init__(self, name: str, python: Path, home: Path, *command: str) -> None:
        self._log = (home / f"{name}.log").open("w+b")
        self._process = subprocess.Popen(
            [str(python), "-P", "-m", *(command or (f"benchmarks.contenders.{name}",))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=home,
            env=environment(home),
        )

    @property
    def pid(self) -> int:
        """Its number among the processes."""
        return self._process.pid

    def tell(self, order: dict[str, Any], *, seconds: float = SECONDS_FOR_ONE_ORDER) -> dict[str, Any]:
        """Have an order obeyed.

        Raises:
            Failed: it went wrong, took too long, or the process ended.
            Lacks: the contender has nothing of the kind.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()
            if not select.select([self._process.stdout], [], [], seconds)[0]:
                self._process.kill()
                raise Failed(f"no answer within {seconds:g} s")
            line = self._process.stdout.readline()
        except OSError as error:
            raise Failed(self._last_words()) from error
        if not line:
            raise Failed(self._last_words())
        told: dict[str, Any] = json.loads(line)
        if "error" in told:
            raise Failed(told["error"])
        if "lacks" in told:
            raise Lacks(told["lacks"])
        return told

    def _last_words(self) -> str:
        code = self._process.wait(10)
        self._log.seek(0)
        lines = self._log.read().decode("utf-8", "replace").strip().splitlines()
        return f"the process ended with {code}: {lines[-1] if lines else 'not a word'}"[:400]

    def close(self) -> None:
        """End the process and wait for its end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.close()
            self._process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def run_on(pid: int, cores: Collection[int]) -> None:
    """Let all threads of a process, and those to come, run on these processors only, where the system can do so."""
    if sys.platform == "linux":
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(ProcessLookupError):  # it has just ended
                os.sched_setaffinity(int(thread.name), cores)


class Bench:
    """Measures rows of contenders against one server, and believes no answer that was not asked for.

    A contender's process is held to one processor, unless a row says otherwise or begins a new one: what is asked is how
    many calls one of them can do; the server is held to the others. Where one call follows the other it is held to the
    same one. Else it is also measured what this machine takes to wake another processor, by a request to the server or a
    job for a thread: on a virtual machine that is a call out of it, as much as a quarter of a whole question, and no part
    of a request that goes out to a network; and a row changes from one round to the next with the places that the system
    finds for them.

    Args:
        server: that answers.
        python: the interpreter of each contender, by its name.
        home: where their processes may write.

    Attributes:
        python: the same.
    """

    def __init__(self, server: ServerProcess, python: Callable[[str], Path], home: Path) -> None:
        self._server = server
        self.python = python
        self._home = home
        self._workers: dict[str, WorkerProcess] = {}
        self._asked: Counter[str] = Counter()
        self._cores = os.sched_getaffinity(0) if sys.platform == "linux" else set()

    def measure(self, name: str, row: Row, more_options: str = "") -> dict[str, Any]:
        """Take one sample.

        Raises:
            Failed: there is none.
            Lacks: the contender has nothing of the kind.
        """
        one = {max(self._cores, default=0)}
        servers = {"with the server": one, "one processor": self._cores - one or one, "anywhere": self._cores}
        run_on(self._server.pid, servers[row.place])
        if row.mode in {"first", "memory"}:
            return self._in_new_process(name, row, more_options)
        worker = self._workers.get(name)
        if worker is None:
            worker = self._workers[name] = WorkerProcess(name, self.python(name), self._home)
        watch = f"{name}.{row.key}"
        run_on(worker.pid, self._cores if row.place == "anywhere" else one)
        order = {**self._order(row, watch, more_options), "mode": row.mode}
        try:
            told = worker.tell(order)
        except Failed:
            # What it still has in flight must not disturb the others, nor be counted.
            self._workers.pop(name).close()
            raise
        self._check(row, watch, told["asked"])
        return told

    def _order(self, row: Row, watch: str, more_options: str, options: str | None = None) -> dict[str, Any]:
        wanted = row.options if options is None else options
        if "say=" in more_options:
            wanted = ",".join(option for option in wanted.split(",") if not option.startswith(("say=", "answer=")))
        options = ",".join(filter(None, (wanted, more_options, f"watch={watch}")))
        url = self._server.url(options)
        return {"ask": row.ask, "url": url, "seconds": row.seconds, "expect": row.expect, **row.order}

    def _in_new_process(self, name: str, row: Row, more_options: str) -> dict[str, Any]:
        from benchmarks.rows import MEMORY_OPTIONS, TEXT

        watch = f"{name}.{row.key}"
        is_first = row.mode == "first"
        order = self._order(row, watch, more_options, "say=text" if is_first else MEMORY_OPTIONS)
        # A first answer is one call and no more: what a worker counts, warming up included, is not asked for.
        order |= {
            "expect": TEXT,
            "mode": "once" if is_first else "memory",
            "width": 1 if is_first else row.order.get("width", 1_000),
        }
        begun = time.perf_counter()
        with WorkerProcess(name, self.python(name), self._home) as worker:
            told = worker.tell(order)
            wall = time.perf_counter() - begun
        self._check(row, watch, told["asked"])
        return {**told, "wall": wall}

    def _check(self, row: Row, watch: str, asked: int) -> None:
        """Compare what the contender says it asked with what the server saw.

        Raises:
            Failed: they differ.
        """
        self._asked[watch] += asked
        seen = self._server.watched(watch)
        if wrong := what_is_wrong(row, seen, self._asked[watch]):
            raise Failed(f"the server saw something else than was asked: {wrong}")

    def close(self) -> None:
        """End all processes."""
        while self._workers:
            self._workers.popitem()[1].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def what_is_wrong(row: Row, seen: dict[str, Any], asked: int) -> str:
    """Return in which way the requests that the server saw are not those of the row, "" if they are."""
    wanted = asked * row.requests
    last = seen["last"]
    if seen["requests"] != wanted:
        return f"{seen['requests']} requests for {asked} calls, {wanted} were due"
    if set(seen["models"]) != {MODEL}:
        return f"requests for {sorted(seen['models'])}"
    if row.ask == "stream" and seen["streams"] != wanted:
        return f"{seen['streams']} of {wanted} requests for a stream"
    if row.ask == "history":
        fewest = min(map(int, seen["messages"]))
        if fewest < len(TURNS) or TURNS[1]["content"] not in last or TURNS[-2]["content"] not in last:
            return f"a conversation of {fewest} messages, {len(TURNS)} were due"
    if row.ask == "typed" and not all(f"{name}" in last for name in ("customer", "street", "tags")):
        return "nothing about the type"
    if row.ask == "tool" and not ("lookup" in last and '"tool_call_id"' in last and " is open" in last):
        return "no result of the tool"
    return ""
