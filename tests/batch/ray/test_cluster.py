"""A map on a cluster that it starts: the output of the program, and what is left after it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from SimpleLLMFunc.batch import Checkpoint
from tests.batch.ray.ray_app import answer_to
from tests.support.server import LoopbackServer, text_answer

ROOT = Path(__file__).resolve().parents[3]

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(360)]

AGENTS = ("ray::DashboardAgent", "ray::RuntimeEnvAgent")
"""Of Ray itself; they look once a minute whether the raylet is there."""

LONG = 240
"""Seconds that no program takes, even under load."""


def environment(**more: str) -> dict[str, str]:
    # Ray's workers step back behind every other process: next to other tests they would get no time.
    without = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    return without | {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0", **more}


class Process:
    """A process, known by its start time too: the system reuses numbers."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        self.state, self.parent, self.began = self._now()

    def _now(self) -> tuple[str, int, str]:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return fields[0], int(fields[1]), fields[19]

    @property
    def is_there(self) -> bool:
        with suppress(OSError):
            state, _, began = self._now()
            return began == self.began and state != "Z"
        return False


def descendants(pid: int) -> dict[int, Process]:
    found = {}
    for each in Path("/proc").iterdir():
        if each.name.isdecimal():
            with suppress(OSError):
                found[int(each.name)] = Process(int(each.name))
    family = {pid}
    while more := {each for each, process in found.items() if process.parent in family} - family:
        family |= more
    return {member: found[member] for member in family - {pid}}


class Program:
    """A program, and all processes that it was seen to have."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.family: dict[int, Process] = {}

    @classmethod
    @asynccontextmanager
    async def started(cls, *arguments: object, **more: str) -> AsyncGenerator[Program, None]:
        """Start Python."""
        command = (sys.executable, *map(str, arguments))
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, env=environment(**more), **pipes)
        program = cls(process)
        try:
            yield program
        finally:
            program.kill()
            await process.wait()

    async def look(self) -> None:
        found = await asyncio.to_thread(descendants, self.process.pid)
        # Of one that is about to be gone the system does not tell any more what it was.
        self.family |= {pid: each for pid, each in found.items() if each.command or pid not in self.family}

    async def ended(self) -> tuple[str, str]:
        """Return what it said, when it has ended and its output is closed."""
        talking = asyncio.create_task(self.process.communicate())
        try:
            async with asyncio.timeout(LONG):
                while not talking.done():
                    await self.look()
                    await asyncio.wait([talking], timeout=0.5)
                out, err = await talking
        except TimeoutError:
            await self.look()
            has = "has not ended" if self.process.returncode is None else "has ended"
            pytest.fail(f"the program {has}; there are {self.kill()}")
        return out.decode(), err.decode()

    async def nothing_stays(self) -> None:
        try:
            async with asyncio.timeout(90):
                ours = [process for process in self.family.values() if not process.command.startswith(AGENTS)]
                while any(process.is_there for process in ours):
                    await asyncio.sleep(0.1)
        except TimeoutError:
            pytest.fail(f"these stay: {self.kill()}")

    def kill(self) -> dict[int, str]:
        """Kill what is there of it, and say what it was."""
        stays = {pid: process.command for pid, process in self.family.items() if process.is_there}
        with suppress(ProcessLookupError):
            self.process.kill()
        for pid in stays:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return stays


async def reply(request):
    said = next(message["content"] for message in request.body["messages"] if message["role"] == "user")
    return text_answer(answer_to(said.split("text: ", 1)[1].strip()))(request)


async def test_a_started_cluster_ends_with_the_map(tmp_path) -> None:
    pytest.importorskip("ray")
    async with LoopbackServer(reply) as server:
        arguments = ("-W", "error", "-m", "tests.batch.ray.ray_app", server.base_url, tmp_path / "run.sqlite")
        async with Program.started(*arguments, RAY_TMPDIR="/tmp") as program:
            out, err = await program.ended()
            assert program.process.returncode == 0, err
            assert json.loads(out) == list(range(40))
            assert len(server.requests) == 40
            assert err == ""
            assert any("raylet" in process.command for process in program.family.values())
            await program.nothing_stays()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
async def test_a_program_that_is_ended_leaves_nothing_and_goes_on_from_what_is_committed(how, tmp_path) -> None:
    pytest.importorskip("ray")
    came, held = asyncio.Event(), asyncio.Event()

    async def hold(request):
        if len(server.requests) >= 20:
            came.set()
            await held.wait()
        return await reply(request)

    async with LoopbackServer(hold) as server:
        arguments = ("-m", "tests.batch.ray.ray_app", server.base_url, tmp_path / "run.sqlite")
        async with Program.started(*arguments) as program:
            talking = asyncio.create_task(program.ended())
            waiting = asyncio.create_task(came.wait())
            await asyncio.wait([talking, waiting], return_when=asyncio.FIRST_COMPLETED)
            assert came.is_set(), talking.result()
            await program.look()
            assert any("RowWorker" in process.command for process in program.family.values())
            program.process.send_signal(how)
            await talking
            await program.nothing_stays()
        held.set()
        (version,) = Checkpoint.status(tmp_path / "run.sqlite").versions
        assert version.values
        before = len(server.requests)
        async with Program.started(*arguments) as program:
            out, err = await program.ended()
            assert program.process.returncode == 0, err
            assert json.loads(out) == list(range(40))
        assert len(server.requests) - before == 40 - version.values


RUN = """
import sys
from pathlib import Path
from tests.docs.pages import blocks
import __main__
for block in blocks(Path(sys.argv[1]).read_text(encoding="utf-8")):
    print(f"--- {block.line}", flush=True)
    exec(compile("\\n" * (block.line - 1) + block.code, sys.argv[1], "exec", dont_inherit=True), vars(__main__))
"""


def test_every_block_of_the_page_runs(tmp_path) -> None:
    """They run as they stand, those too that want more than is installed for the other pages."""
    pytest.importorskip("ray.data")
    pytest.importorskip("dask.bag")
    command = [sys.executable, "-c", RUN, str(ROOT / "docs" / "how-to" / "map-cluster.md")]
    out, err = tmp_path / "out.txt", tmp_path / "err.txt"  # no pipe, which another process could hold open
    with out.open("wb") as stdout, err.open("wb") as stderr:
        options = {"cwd": tmp_path, "env": environment(PYTHONPATH=str(ROOT)), "timeout": 340}
        done = subprocess.run(command, stdout=stdout, stderr=stderr, check=False, **options)
    assert done.returncode == 0, err.read_text()[-3000:]
    shown = [line for line in out.read_text().splitlines() if not line.startswith("---")]
    assert shown == [
        "['good', 'bad', 'good'] 3 asked", "['good', 'bad', 'good'] 3 asked", "3 asked, 0 failed", "bad",
        "('Review 99, cold', 'bad')", "4 checkpoints",
    ]  # fmt: skip
