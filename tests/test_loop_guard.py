"""The guard of the event loop sees what it is there for, and blames nobody else."""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import socket
import sqlite3
import sys
import threading
import time
import types

import pytest

from tests.support.loop_guard import ALLOWED, LARGE_FILE, LIMIT, NOT_YET, ROOT, LoopGuard, collecting

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

async def generate(count, seconds):
    for number in range(count):
        spend(seconds)
        yield number

async def in_c(count):
    await asyncio.sleep(0)
    return sum(range(count))

async def call(function, *args):
    await asyncio.sleep(0)
    return function(*args)

async def in_turns(count, seconds):
    for _ in range(count):
        spend(seconds)
        await asyncio.sleep(0)

def callback(seconds):
    spend(seconds)
"""
MADE_UP = package(CODE)


def spend(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


# --- computing -------------------------------------------------------------------------------------------


@linux
def test_a_coroutine_that_computes_is_seen_once():
    found = offences(MADE_UP.compute, 4 * LIMIT)
    assert [offence.where.split(":")[0] for offence in found] == ["SimpleLLMFunc/made_up.py"]
    assert "50 ms of processor time" in found[0].what
    assert "spend" in str(found[0])


# --- waiting ---------------------------------------------------------------------------------------------


def database(path):
    sqlite3.connect(path).close()


WAITS = {
    "sleep": ("import time\nasync def wait(_): time.sleep(0.001)", "time.sleep"),
    "name": ("import socket\nasync def wait(_): socket.getaddrinfo('127.0.0.1', 80)", "looks up"),
    "connection": (
        "import socket\nasync def wait(place):\n    socket.create_connection(place['address']).close()",
        "connects",
    ),
    "process": ("import subprocess, sys\nasync def wait(_): subprocess.run([sys.executable, '-c', ''])", "process"),
    "system": ("import os\nasync def wait(_): os.system('true')", "command"),
    "database": ("import sqlite3\nasync def wait(_): sqlite3.connect(':memory:').close()", "opens a database"),
    "query": ("async def wait(place): place['connection'].execute('select 1')", "asks a database"),
    "cursor": ("async def wait(place): place['connection'].cursor().execute('select 1')", "asks a database"),
    "commit": ("async def wait(place): place['connection'].commit()", "waits for a database"),
    "large file": ("async def wait(place): open(place['large'], 'rb').close()", "opens a file of"),
    "pipe": ("import os\nasync def wait(place): os.close(os.open(place['pipe'], os.O_RDONLY | os.O_NONBLOCK))", "no regular"),
    "disk": ("import os\nasync def wait(place):\n    with open(place['small'], 'w') as file: os.fsync(file.fileno())", "disk"),
    "event": ("import threading\nasync def wait(_): threading.Event().wait(0.001)", "another thread"),
    "queue": ("async def wait(place):\n    try: place['queue'].get(timeout=0.001)\n    except Exception: pass", "another"),
    "join": ("async def wait(place): place['thread'].join()", "end of a thread"),
}  # fmt: skip


@pytest.fixture
def place(tmp_path):
    large, small, pipe = tmp_path / "large", tmp_path / "small", tmp_path / "pipe"
    large.write_bytes(bytes(LARGE_FILE + 1))
    small.write_text("small")
    if hasattr(os, "mkfifo"):
        os.mkfifo(pipe)
    thread = threading.Thread(target=time.sleep, args=(0.05,))
    thread.start()
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        collecting(),
        contextlib.closing(sqlite3.connect(":memory:")) as connection,
    ):
        yield {
            "address": server.getsockname(),
            "connection": connection,
            "large": large,
            "small": small,
            "pipe": pipe,
            "queue": queue.Queue(),
            "thread": thread,
        }  # fmt: skip
    thread.join()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a named pipe")
@pytest.mark.parametrize("kind", WAITS)
def test_what_waits_is_an_offence_however_short(kind, place):
    code, what = WAITS[kind]
    found = offences(package(code).wait, place)
    assert found, "not seen"
    assert any(what in offence.what for offence in found), found
    assert {offence.where.split(":")[0] for offence in found} == {"SimpleLLMFunc/made_up.py"}


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
    for (file, function), reason in (ALLOWED | NOT_YET).items():
        assert (ROOT / "SimpleLLMFunc" / file).exists(), file
        assert function == "*" or f"def {function}(" in (ROOT / "SimpleLLMFunc" / file).read_text("utf-8")
        assert len(reason) > 20
