"""The lock of a checkpoint, over real processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from SimpleLLMFunc.batch.checkpoint.writer_lock import WriterLock
from SimpleLLMFunc.errors import CheckpointError

ROOT = Path(__file__).resolve().parents[3]
HOLDER = """
import sys
from pathlib import Path
from SimpleLLMFunc.batch.checkpoint.writer_lock import WriterLock

lock = WriterLock(Path(sys.argv[1]))
lock.acquire()
lock.note(7)
print("taken", flush=True)
sys.stdin.read()
"""


def test_who_ends_well_leaves_nothing(tmp_path):
    lock = WriterLock(tmp_path / "run.sqlite")
    lock.acquire()
    lock.note(3)
    assert str(os.getpid()) in WriterLock(lock.path).owner()
    lock.release(ended_well=True)
    assert list(tmp_path.iterdir()) == []
    assert lock.owner() is None


def test_a_killed_process_frees_the_lock_and_leaves_its_note(tmp_path):
    lock = WriterLock(tmp_path / "run.sqlite")
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(lock.path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout.readline() == "taken\n"
        with pytest.raises(CheckpointError, match=f"process {holder.pid} on"):
            lock.acquire()
        assert f"process {holder.pid} on" in lock.owner()
        holder.send_signal(signal.SIGKILL)
    assert lock.owner() is None
    lock.acquire()
    assert lock.commits == 7
    lock.release(ended_well=True)


def _end_at_once():
    pass


@pytest.mark.skipif(os.name != "posix", reason="forks as on Unix")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_that_ends_does_not_free_the_lock_of_its_parent(tmp_path):
    lock, other = WriterLock(tmp_path / "run.sqlite"), WriterLock(tmp_path / "run.sqlite")
    lock.acquire()
    child = multiprocessing.get_context("fork").Process(target=_end_at_once)
    child.start()
    child.join(30)
    assert child.exitcode == 0
    with pytest.raises(CheckpointError, match="another map of this process"):
        other.acquire()
    lock.release(ended_well=True)
    other.acquire()
    other.release(ended_well=True)
