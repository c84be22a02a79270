"""A checkpoint whose file or disk is in trouble while a map writes it."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from SimpleLLMFunc import CheckpointError, llm_function, use_llm
from SimpleLLMFunc.batch import Checkpoint, MapReport
from SimpleLLMFunc.testing import ScriptedLLM

ROOT = Path(__file__).resolve().parents[3]


@llm_function
async def count(text: str) -> int:
    """Count the letters."""


class Held:
    """A model that answers ten rows, and the others when it is told to."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.go = asyncio.Event()
        self.llm = ScriptedLLM(self._reply, repeat=True)

    async def _reply(self, request):
        if request.index >= 10:
            self.asked.set()
            await self.go.wait()
        return "1"


TEXTS = [f"text {number}" for number in range(40)]


async def troubled(path: Path, trouble) -> CheckpointError:
    """Map, make trouble when ten rows are kept, go on, and return the error."""
    held = Held()
    with use_llm(held.llm):
        running = asyncio.create_task(count.map(TEXTS, checkpoint=path, concurrency=2))
        await held.asked.wait()
        trouble()
        held.go.set()
        with pytest.raises(CheckpointError) as caught:
            await running
    assert len(held.llm.calls) <= 12 + 2  # nothing is asked that could not be kept
    return caught.value


async def test_a_folder_that_is_removed_in_the_middle_ends_the_map(tmp_path) -> None:
    folder = tmp_path / "runs"
    error = await troubled(folder / "run.sqlite", lambda: shutil.rmtree(folder))
    assert "is gone" in str(error)
    assert not (folder / "run.sqlite").exists()


async def test_a_file_that_is_replaced_in_the_middle_ends_the_map(tmp_path) -> None:
    path = tmp_path / "run.sqlite"

    def replace() -> None:
        path.rename(tmp_path / "old.sqlite")
        path.touch()

    error = await troubled(path, replace)
    assert "is gone" in str(error)
    assert path.stat().st_size == 0


async def test_a_file_that_is_overwritten_in_the_middle_is_never_believed(tmp_path) -> None:
    path = tmp_path / "run.sqlite"
    held = Held()
    with use_llm(held.llm):
        running = asyncio.create_task(count.map(TEXTS, checkpoint=path, concurrency=2))
        await held.asked.wait()
        for suffix in ("", "-wal"):
            file = path.with_name(path.name + suffix)
            with file.open("r+b") as opened:
                opened.write(os.urandom(file.stat().st_size))
        held.go.set()
        # Who writes need not see it: what it has in memory is sound.
        (came,) = await asyncio.gather(running, return_exceptions=True)
    assert isinstance(came, (CheckpointError, MapReport)), came
    with use_llm(ScriptedLLM()) as llm, pytest.raises(CheckpointError):
        await count.map(TEXTS, checkpoint=path)
    assert not llm.calls


READ_ONLY = """
import asyncio, os, sys
from SimpleLLMFunc import llm_function, CheckpointError
from SimpleLLMFunc.testing import ScriptedLLM
llm = ScriptedLLM("1", repeat=True)
@llm_function(llm)
async def count(text: str) -> int:
    "Count the letters."
    raise NotImplementedError
asyncio.run(count.map(["c"], checkpoint=sys.argv[2]))  # what is imported late is there now
if not os.getuid():
    os.setgid(65534)
    os.setuid(65534)  # to root everything is allowed
llm.calls.clear()
try:
    asyncio.run(count.map(["a", "b"], checkpoint=sys.argv[1]))
except CheckpointError as error:
    print(len(llm.calls), "asked, refused:", error)
"""


@pytest.mark.skipif(os.name != "posix", reason="rights as on Unix")
async def test_a_file_that_may_only_be_read_is_refused(tmp_path) -> None:
    path = tmp_path / "run.sqlite"
    with use_llm(ScriptedLLM("1", repeat=True)):
        await count.map(TEXTS, checkpoint=path)
    path.chmod(0o444)
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(0o777)
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", READ_ONLY, path, tmp_path / "other.sqlite"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("0 asked, refused:")
    assert "Permission denied" in done.stdout
    assert Checkpoint.status(path).values == 40
