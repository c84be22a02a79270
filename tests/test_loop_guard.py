"""The guard of the event loop sees what it is there for, and blames nobody else."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import types

import pytest

from tests.support.loop_guard import ALLOWED, LIMIT, ROOT, LoopGuard, collecting

linux = pytest.mark.skipif(sys.platform != "linux", reason="there is no such timer")
pytestmark = pytest.mark.blocks_the_loop("these tests block on purpose, each with a guard of its own")


def package(code):
    """A module as if it were one of the package."""
    module = types.ModuleType("made_up")
    exec(compile(code, str(ROOT / "SimpleLLMFunc" / "made_up.py"), "exec"), module.__dict__)
    return module


def offences(main, *args):
    with collecting() as found:
        asyncio.run(main(*args))
    return found


CODE = """
import asyncio, time

def spend(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass

async def compute(seconds):
    await asyncio.sleep(0)
    spend(seconds)
"""
MADE_UP = package(CODE)


# --- computing -------------------------------------------------------------------------------------------


@linux
def test_a_coroutine_that_computes_is_seen_once():
    found = offences(MADE_UP.compute, 4 * LIMIT)
    assert [offence.where.split(":")[0] for offence in found] == ["SimpleLLMFunc/made_up.py"]
    assert "50 ms of processor time" in found[0].what
    assert "spend" in str(found[0])


# --- in pytest -------------------------------------------------------------------------------------------


class Item:
    def __init__(self, *marks):
        self.marks = {mark.name: mark for mark in marks}

    def get_closest_marker(self, name):
        return self.marks.get(name)


def guarded(item, coroutine):
    steps = LoopGuard().pytest_runtest_call(item)
    next(steps)
    asyncio.run(coroutine)
    with pytest.raises(StopIteration) as ended:
        steps.send("outcome")
    return ended.value.value


def test_a_test_in_which_the_package_blocks_fails():
    sleeping = package("import time\nasync def wait(): time.sleep(0.001)").wait
    with pytest.raises(pytest.fail.Exception, match=r"SimpleLLMFunc/made_up.py:2 wait: time.sleep\(0.001\)"):
        guarded(Item(), sleeping())
    assert guarded(Item(), asyncio.sleep(0)) == "outcome"


def test_a_mark_with_a_reason_lets_it_pass():
    sleeping = package("import time\nasync def wait(): time.sleep(0.001)").wait
    assert guarded(Item(pytest.mark.blocks_the_loop("it has to").mark), sleeping()) == "outcome"
    with pytest.raises(pytest.fail.Exception, match="wants a reason"):
        guarded(Item(pytest.mark.blocks_the_loop().mark), asyncio.sleep(0))


def test_each_exception_of_the_package_exists_and_has_a_reason():
    for (file, function), reason in ALLOWED.items():
        assert (ROOT / "SimpleLLMFunc" / file).exists(), file
        assert function == "*" or f"def {function}(" in (ROOT / "SimpleLLMFunc" / file).read_text("utf-8")
        assert len(reason) > 20


RUNS = """
from tests.support.loop_guard import LIMIT, LoopGuard
from tests.test_loop_guard import MADE_UP

def pytest_configure(config):
    config.pluginmanager.register(LoopGuard())

runs = []

async def test_now_and_then():
    runs.append("now and then")
    await MADE_UP.compute(4 * LIMIT if len(runs) == 1 else 0)

async def test_always():
    runs.append("always")
    await MADE_UP.compute(4 * LIMIT)

def test_of_other_reasons():
    runs.append("other")
    assert runs == ["now and then"] * 2 + ["always"] * 2 + ["other"]
    assert not runs
"""


@linux
def test_a_test_that_took_too_long_is_run_once_more(tmp_path):
    for name in ("conftest.py", "test_runs.py"):
        (tmp_path / name).write_text(RUNS)
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:SimpleLLMFunc", "-o", "asyncio_mode=auto", "--rootdir"]
    command = [sys.executable, "-m", "pytest", *options, tmp_path, tmp_path]
    run = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    assert "2 failed, 1 passed" in run.stdout, run.stdout + run.stderr
    assert "of processor time" in run.stdout
    assert "assert not [" in run.stdout
