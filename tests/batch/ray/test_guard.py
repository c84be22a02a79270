"""What ends a process that works for a map: its parent is gone, the map is over, or the hub is gone."""

from __future__ import annotations

import atexit
import os
import select
import signal
import subprocess
import sys
import threading
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace

import pytest

from SimpleLLMFunc.batch.ray import guard as ray_guard
from SimpleLLMFunc.batch.ray.guard import Guard, guarded

ROOT = Path(__file__).resolve().parents[3]
LONG = 60
"""Seconds that nothing takes."""

WORKER = """
import os, sys, threading
from SimpleLLMFunc.batch.ray.guard import Guard
Guard().start()
os.write(int(sys.argv[1]), b"here")
threading.Event().wait()
"""
PARENT = """
import subprocess, sys
subprocess.Popen([sys.executable, "-c", sys.argv[2], sys.argv[1]], pass_fds=[int(sys.argv[1])]).wait()
"""


def test_a_process_ends_with_its_parent_whatever_it_waits_for() -> None:
    reading, writing = os.pipe()
    try:
        parent = subprocess.Popen([sys.executable, "-c", PARENT, str(writing), WORKER], cwd=ROOT, pass_fds=[writing])
        os.close(writing)
        try:
            assert select.select([reading], [], [], LONG)[0]
            assert os.read(reading, 4) == b"here"
        finally:
            parent.send_signal(signal.SIGKILL)
            parent.wait(LONG)
        # Its end of the pipe is closed: it is gone.
        assert select.select([reading], [], [], LONG)[0], "the process is there without its parent"
        assert os.read(reading, 4) == b""
    finally:
        os.close(reading)


HANGS_AT_ITS_END = """
import atexit, sys, time
from SimpleLLMFunc.batch.ray import guard as ray_guard
ray_guard._EXIT_SECONDS = 1
atexit.register(time.sleep, 60)  # called after what is registered later
if sys.argv[1] == "dismissed":
    atexit.unregister(time.sleep)
    atexit.register(time.sleep, 1.5)
    with ray_guard.Guard():
        pass
else:
    ray_guard.Guard().start()
"""


@pytest.mark.skipif(not hasattr(signal, "alarm"), reason="the system has no alarms")
@pytest.mark.parametrize(("guard", "code"), [("on duty", -signal.SIGALRM), ("dismissed", 0)])
def test_a_process_that_hangs_when_it_ends_is_ended_by_the_system(guard: str, code: int) -> None:
    done = subprocess.run([sys.executable, "-c", HANGS_AT_ITS_END, guard], cwd=ROOT, timeout=LONG, check=False)
    assert done.returncode == code


class RayError(Exception):
    pass


class ActorDiedError(RayError):
    pass


class ActorUnavailableError(RayError):
    pass


class Hub:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.over = self
        self.answers: list[Future[None]] = []
        self.was_asked = threading.Semaphore(0)

    def remote(self):
        self.answers.append(Future())
        self.was_asked.release()
        return self

    def future(self):
        return self.answers[-1]


@pytest.fixture
def ended(monkeypatch):
    """Is set where the process would be ended; its parent is `ended.parent`."""
    ended = SimpleNamespace(here=threading.Event(), parent=7)

    def exit_(code) -> None:
        assert code == 1
        ended.here.set()

    monkeypatch.setattr(ray_guard, "os", SimpleNamespace(getppid=lambda: ended.parent, _exit=exit_))
    monkeypatch.setattr(ray_guard, "_TICK_SECONDS", 0.001)
    errors = SimpleNamespace(RayError=RayError, ActorUnavailableError=ActorUnavailableError)
    monkeypatch.setattr(ray_guard, "ray_package", lambda: SimpleNamespace(exceptions=errors))
    yield ended
    atexit.unregister(ray_guard._set_alarm)  # this process is none of a cluster's


def test_a_process_ends_when_the_hub_is_gone(ended, monkeypatch) -> None:
    monkeypatch.setattr(ray_guard, "_AFTER_LOSS_SECONDS", 0.0)
    hub = Hub()
    with Guard(hub) as guard:
        assert hub.was_asked.acquire(timeout=LONG)
        assert not ended.here.is_set()
        hub.answers[0].set_exception(ActorDiedError())
        guard.join(LONG)
    assert ended.here.is_set()


def test_a_process_that_cannot_ask_the_hub_ends(ended, monkeypatch) -> None:
    monkeypatch.setattr(ray_guard, "_AFTER_LOSS_SECONDS", 0.0)
    with Guard(SimpleNamespace()) as guard:
        guard.join(LONG)
    assert ended.here.is_set()


def test_a_hub_that_does_not_answer_is_asked_again(ended, monkeypatch) -> None:
    monkeypatch.setattr(ray_guard, "_AFTER_LOSS_SECONDS", 0.0)
    hub = Hub()
    with Guard(hub):
        for number in range(3):
            assert hub.was_asked.acquire(timeout=LONG)
            hub.answers[number].set_exception(ActorUnavailableError())
        assert hub.was_asked.acquire(timeout=LONG)
        assert not ended.here.is_set()


def test_a_process_has_time_when_the_map_is_over_and_less_when_the_hub_goes_then(ended, monkeypatch) -> None:
    monkeypatch.setattr(ray_guard, "_AFTER_LOSS_SECONDS", 0.0)
    monkeypatch.setattr(ray_guard, "_AFTER_END_SECONDS", 1e9)
    hub = Hub()
    with Guard(hub) as guard:
        assert hub.was_asked.acquire(timeout=LONG)
        hub.answers[0].set_result(None)
        assert hub.was_asked.acquire(timeout=LONG)
        assert not ended.here.is_set()
        hub.answers[1].set_exception(ActorDiedError())
        guard.join(LONG)
    assert ended.here.is_set()


def test_a_process_that_stays_though_it_is_over_is_ended(ended, monkeypatch) -> None:
    monkeypatch.setattr(ray_guard, "_AFTER_END_SECONDS", 0.0)
    hub = Hub()
    with Guard(hub) as guard:
        assert hub.was_asked.acquire(timeout=LONG)
        hub.answers[0].set_result(None)
        guard.join(LONG)
    assert ended.here.is_set()


def test_who_is_dismissed_ends_nothing(ended) -> None:
    with Guard(Hub()) as guard:
        pass
    guard.join(LONG)
    ended.parent = 1
    assert not guard.is_alive()
    assert not ended.here.is_set()


def test_a_guarded_actor_is_what_it_was_and_ends_with_its_parent(ended) -> None:
    class Plain:
        def __init__(self, number) -> None:
            self.number = number

    actor = guarded(Plain)(3)
    assert actor.number == 3
    assert isinstance(actor, Plain)
    assert type(actor).__name__ == "Plain"
    ended.parent = 1
    assert ended.here.wait(LONG)
