"""The lock of a checkpoint, over real processes."""

from __future__ import annotations

import multiprocessing
import os

import pytest

from SimpleLLMFunc.batch.checkpoint.writer_lock import WriterLock
from SimpleLLMFunc.errors import CheckpointError


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
