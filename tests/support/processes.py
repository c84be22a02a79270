"""Processes: scripts in an interpreter of their own, forked children, and a Ctrl-C for this one."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.starved import without_slow_steps

ROOT = Path(__file__).parents[2]

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def run_script(script: str, *options: str, timeout: float = 50.0) -> subprocess.CompletedProcess[str]:
    """Run a script, if no `options` say otherwise as a user would who wants to see every warning."""
    done = subprocess.run(
        [sys.executable, *(options or ("-X", "dev", "-W", "error")), "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        check=False,
    )
    done.stderr = without_slow_steps(done.stderr)
    return done


def check_script(script: str, expected: str) -> None:
    """Run a script that is to print what is expected, and nothing else."""
    done = run_script(script)
    assert (done.stdout.strip(), done.stderr, done.returncode) == (expected, "", 0)


def in_child(work: Callable[[], object]) -> str:
    """Run `work` in a forked child and return what it said, as text."""
    reading, writing = os.pipe()
    # os.fork warns in a process with threads; that there are some is what is tested here.
    child = os.fork()
    if child == 0:
        answer = "nothing"
        try:
            answer = repr(work())
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}"
        finally:
            os.write(writing, answer.encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return answer


@contextlib.contextmanager
def interrupting(started: threading.Event) -> Iterator[None]:
    """Interrupt the main thread once as Ctrl-C does, when `started` is set."""
    heard = threading.Event()

    def hear(*_: object) -> None:
        if not heard.is_set():
            heard.set()
            raise KeyboardInterrupt

    def interrupt() -> None:
        started.wait()
        os.kill(os.getpid(), signal.SIGINT)
        # The interpreter sleeps on if a signal comes in the moment before it falls asleep. A user would press again.
        while not heard.wait(0.5):
            os.kill(os.getpid(), signal.SIGINT)

    helper = threading.Thread(target=interrupt)
    before = signal.signal(signal.SIGINT, hear)
    helper.start()
    try:
        yield
    finally:
        heard.set()
        helper.join()
        signal.signal(signal.SIGINT, before)
