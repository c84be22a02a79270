"""The run-time guard of a rule: nothing in the package holds up an event loop for longer than 50 ms.

Two kinds of offence, each found by the means that does not depend on how busy the machine is:

*Computing.* On the main thread, where the tests run their loops, a timer strikes every 10 ms and looks at what is
running. What one call into the package takes without giving the loop back is added up in processor time of the thread
(`time.thread_time`), less what the garbage collector took: a machine that is shared with others makes a call longer, but
not its processor time. A long call into C code that holds the interpreter (a JSON parser, a regular expression) cannot
be looked into; the signal arrives at its end, in the frame that called it, and so it counts as a whole. The measure is a
little too kind (by up to two ticks), never too strict. The timer is a POSIX one that signals this one thread: an
interval timer of processor time would make the clocks coarse that other tests measure with, and the one of real time is
taken by pytest-timeout.

*Waiting.* Some calls wait for something outside, for who knows how long: `time.sleep`, a look-up of a name, a
connection, a process, a database, a large or a strange file, a flush to disk, another thread; and the first import of a
library that takes its time. Those are an offence by themselves when the package makes them on a loop, however short
they were this time. They are seen through audit events, and through wrappers where there is none. What is not in this
list (a lock that is held for long, say) is not seen.

Whose a call is: the innermost frame that is in the package or in the tests decides. A tool or a double that a test has
written may block as it likes; the code of the package around it may not. A *synchronous* function of the package that a
test calls on its loop takes as long as it takes: only what runs inside a coroutine or a callback of the package counts.

A test that has a reason says so: ``@pytest.mark.blocks_the_loop("why")``. `ALLOWED` names the places in the package that
may, each with its reason. Under a tracer (coverage, a debugger) computing is not judged, nor on other systems than
Linux, which have no such timer.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import inspect
import os
import signal
import sqlite3
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

LIMIT = 0.050
OF_TIME = "of processor time"
TICK = 0.010
LARGE_FILE = 1024 * 1024

ROOT = Path(__file__).parent.parent.parent
_PACKAGE = f"{ROOT / 'SimpleLLMFunc'}{os.sep}"
_OURS = f"{ROOT}{os.sep}"
_PROCESSES = f"asyncio{os.sep}unix_events.py"
_LIBRARIES = f"{os.sep}site-packages{os.sep}"

ALLOWED: dict[tuple[str, str], str] = {
    ("runtime/sync.py", "*"): "whoever makes a synchronous call on a loop waits for its end; that is what it means",
    ("interface/http/openai_client.py", "_copy"): "a client of httpx reads the certificates, once",
    ("interface/http/openai_client.py", "_follow"): "the openai package builds its types at its first call",
}
"""File and function (``*`` for all) of the package that may block, and why."""

SLOW_IMPORTS = frozenset(
    {"aiohttp", "genai_prices", "jinja2", "jsonschema", "mcp", "openai", "rich", "tqdm", "xllamacpp"}
)


@dataclass(frozen=True)
class Offence:
    """The loop was held up.

    Attributes:
        what: in words.
        where: ``file:line function`` of the package.
    """

    what: str
    where: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass
class _State:
    """What the hooks share; they are there once per process, and cannot be taken away again."""

    is_installed: bool = False
    found: list[Offence] | None = None
    """Where offences go; None while nobody watches."""
    loops: set[int] = field(default_factory=set)
    """The threads that are inside a callback of a loop now."""
    collected: float = 0.0
    """Seconds that the garbage collector took in the main thread."""
    collecting_since: float = 0.0
    is_collecting: bool = False
    last: float = 0.0
    is_in_step: bool = False
    call: FrameType | None = None
    taken: float = 0.0
    ticks: _Ticks | None = None


_state = _State()
_run: Callable[[asyncio.Handle], None] = asyncio.Handle._run


# --- whose it is -----------------------------------------------------------------------------------------


def _owner(frame: FrameType | None) -> tuple[FrameType, FrameType] | None:
    """Return the innermost frame of the package and the one by which it was entered; None if it is not to blame."""
    innermost = entry = None
    while frame is not None:
        name = frame.f_code.co_filename
        if frame.f_code is _guarded.__code__:
            break  # what called this is the loop's business
        if name == __file__:
            pass  # above what the guard wraps
        elif name.startswith(_PACKAGE):
            innermost = innermost or frame
            entry = frame
        elif name.startswith(_OURS) and _LIBRARIES not in name:
            if entry is None or not _is_asynchronous(entry):
                return None
            break
        frame = frame.f_back
    if innermost is None or entry is None or _is_allowed(innermost):
        return None
    return innermost, entry


def _is_asynchronous(frame: FrameType) -> bool:
    flags = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE
    return bool(frame.f_code.co_flags & flags)


def _is_allowed(frame: FrameType) -> bool:
    file = frame.f_code.co_filename.removeprefix(_PACKAGE).replace(os.sep, "/")
    return (file, "*") in ALLOWED or (file, frame.f_code.co_name) in ALLOWED


def _place(frame: FrameType) -> str:
    file = frame.f_code.co_filename.removeprefix(_OURS)
    return f"{file}:{frame.f_lineno} {frame.f_code.co_qualname}"


def _note(what: str, frame: FrameType) -> None:
    if _state.found is not None:
        _state.found.append(Offence(what, _place(frame)))


# --- computing -------------------------------------------------------------------------------------------


def _guarded(handle: asyncio.Handle) -> None:
    if _state.found is None:
        _run(handle)
        return
    thread = threading.get_ident()
    is_main = thread == _MAIN
    if thread in _state.loops:  # a loop inside a callback of another: nothing to add
        _run(handle)
        return
    _state.loops.add(thread)
    if is_main:
        _state.last = time.thread_time() - _state.collected
        _state.is_in_step = True
    try:
        _run(handle)
    finally:
        # From Python 3.13 on, a traceback may hold this frame, and with it the handle, its task and the task's error.
        del handle
        _state.loops.discard(thread)
        if is_main:
            _state.is_in_step = False
            _state.call = None


class _Ticks:
    """Sends SIGPROF to the main thread every `TICK` seconds, while it is on.

    Source: timer_create(2) and sigevent(7) of Linux; the structures are those of its 64-bit systems.
    """

    class _Event(ctypes.Structure):
        _fields_ = (
            ("value", ctypes.c_void_p),
            ("signal", ctypes.c_int),
            ("notify", ctypes.c_int),
            ("thread", ctypes.c_int),
            ("rest", ctypes.c_int * 11),
        )

    class _Interval(ctypes.Structure):
        _fields_ = tuple((name, ctypes.c_long) for name in ("every_s", "every_ns", "first_s", "first_ns"))

    _MONOTONIC, _TO_THREAD = 1, 4

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._timer = ctypes.c_void_p()
        event = self._Event(None, signal.SIGPROF, self._TO_THREAD, threading.main_thread().native_id)
        if self._libc.timer_create(self._MONOTONIC, ctypes.byref(event), ctypes.byref(self._timer)):
            raise OSError(ctypes.get_errno(), "timer_create")

    def turn(self, on: bool) -> None:
        nanoseconds = int(TICK * 1e9) if on else 0
        interval = self._Interval(0, nanoseconds, 0, nanoseconds)
        if self._libc.timer_settime(self._timer, 0, ctypes.byref(interval), None):
            raise OSError(ctypes.get_errno(), "timer_settime")


def _strike(_: int, frame: FrameType | None) -> None:
    if not _state.is_in_step or _state.is_collecting or sys.gettrace() is not None:
        return
    now = time.thread_time() - _state.collected
    spent, _state.last = now - _state.last, now
    owner = _owner(frame)
    if owner is None:
        _state.call = None
        return
    innermost, entry = owner
    if entry is not _state.call:
        # When it began nobody knows. Much at once is one long call into C, which ends here.
        _state.call, _state.taken = entry, 0.0
        spent -= TICK
        if spent < 2 * TICK:
            return
    before, _state.taken = _state.taken, _state.taken + spent
    if before <= LIMIT < _state.taken:
        _note(f"held the event loop up for more than {LIMIT * 1000:.0f} ms {OF_TIME}", innermost)


def _collecting(phase: str, _: dict[str, Any]) -> None:
    if threading.get_ident() != _MAIN:
        return
    if phase == "start":
        _state.is_collecting = True
        _state.collecting_since = time.thread_time()
    else:
        _state.collected += time.thread_time() - _state.collecting_since
        _state.is_collecting = False


# --- waiting ---------------------------------------------------------------------------------------------


def _connection(arguments: tuple[Any, ...]) -> str | None:
    # asyncio connects too, with sockets that do not wait.
    return None if arguments[0].gettimeout() == 0 else "connects and waits for it"


def _file(arguments: tuple[Any, ...]) -> str | None:
    path = arguments[0]
    if not isinstance(path, (str, bytes, os.PathLike)):
        return None
    try:
        status = Path(os.fsdecode(path)).stat()
    except (OSError, ValueError):
        return None
    if stat.S_ISREG(status.st_mode):
        return f"opens a file of {status.st_size:,} bytes" if status.st_size > LARGE_FILE else None
    return None if stat.S_ISDIR(status.st_mode) or stat.S_ISCHR(status.st_mode) else "opens what is no regular file"


def _import(arguments: tuple[Any, ...]) -> str | None:
    return f"imports {arguments[0]} for the first time" if arguments[0] in SLOW_IMPORTS else None


_AUDITED: dict[str, Callable[[tuple[Any, ...]], str | None]] = {
    "import": _import, "open": _file, "os.system": lambda _: "runs a command", "socket.connect": _connection,
    "socket.getaddrinfo": lambda arguments: f"looks up {arguments[0]!r}",
    "socket.gethostbyaddr": lambda arguments: f"looks up {arguments[0]!r}",
    "socket.gethostbyname": lambda arguments: f"looks up {arguments[0]!r}",
    "sqlite3.connect": lambda _: "opens a database", "subprocess.Popen": lambda _: "starts a process",
    "urllib.Request": lambda _: "asks over urllib",
}  # fmt: skip


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    look = _AUDITED.get(event)
    if look is None or _state.found is None or threading.get_ident() not in _state.loops:
        return
    frame = sys._getframe(1)
    if event == "subprocess.Popen" and _is_below(frame, _PROCESSES):
        return  # asyncio has no other way to start a process; it does not wait for it
    owner = _owner(frame)
    if owner is not None and (what := look(arguments)):
        _note(what, owner[0])


def _is_below(frame: FrameType | None, file: str) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.endswith(file):
            return True
        frame = frame.f_back
    return False


def _waits(what: str) -> None:
    """Note a call that waits, if it is the package's and on a loop."""
    if _state.found is None or threading.get_ident() not in _state.loops:
        return
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename == threading.__file__:
        if frame.f_code is threading.Thread.start.__code__:
            return  # waits until the thread is there, which takes no time of anybody else's
        frame = frame.f_back
    owner = _owner(frame)
    if owner is not None:
        _note(what, owner[0])


def _noted(kind: type, name: str) -> Callable[..., Any]:
    method = getattr(kind, name)
    what = "waits for a database" if name == "commit" else "asks a database"

    def call(*args: Any) -> Any:
        _waits(what)
        return method(*args)

    return call


class _Cursor(sqlite3.Cursor):
    execute, executemany = (_noted(sqlite3.Cursor, name) for name in ("execute", "executemany"))


class _Connection(sqlite3.Connection):
    execute, executemany, executescript, commit = (
        _noted(sqlite3.Connection, name) for name in ("execute", "executemany", "executescript", "commit")
    )

    def cursor(self, factory: Any = None) -> Any:
        return super().cursor(factory or _Cursor)


def _wrapped(what: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        # The last argument of the functions of threads is how long they wait: 0 only looks.
        if kwargs.get("timeout", args[-1]) != 0:
            _waits(what)
        return function(*args, **kwargs)

    return call


def _sleeping(sleep: Callable[[float], None]) -> Callable[[float], None]:
    def call(seconds: float) -> None:
        if seconds != 0:
            _waits(f"time.sleep({seconds})")
        sleep(seconds)

    return call


def _connect(connect: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) < 6:
            kwargs.setdefault("factory", _Connection)
        return connect(*args, **kwargs)

    return call


# --- on and off ------------------------------------------------------------------------------------------

_MAIN = threading.main_thread().ident


def install() -> None:
    """Put the hooks in place, for the rest of the process; they do nothing while nobody collects."""
    if _state.is_installed:
        return
    _state.is_installed = True
    asyncio.Handle._run = _guarded  # type: ignore[method-assign]
    sys.addaudithook(_audit)
    gc.callbacks.append(_collecting)
    # All that waits for another thread comes down to these two: Event, Queue, Future, Barrier, Semaphore.
    threading.Condition.wait = _wrapped("waits for another thread", threading.Condition.wait)  # type: ignore[method-assign]
    threading.Thread.join = _wrapped("waits for the end of a thread", threading.Thread.join)  # type: ignore[method-assign]
    time.sleep = _sleeping(time.sleep)
    os.fsync = _wrapped("waits for the disk", os.fsync)
    sqlite3.connect = sqlite3.dbapi2.connect = _connect(sqlite3.connect)  # type: ignore[attr-defined]
    if sys.platform == "linux" and sys.maxsize > 2**32 and threading.get_ident() == _MAIN:
        signal.signal(signal.SIGPROF, _strike)
        signal.siginterrupt(signal.SIGPROF, False)
        _state.ticks = _Ticks()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forget)


def _forget() -> None:
    # A child has neither the timer nor the loops.
    _state.found = _state.ticks = None
    _state.loops.clear()


@contextlib.contextmanager
def collecting() -> Iterator[list[Offence]]:
    """Watch the loops of this process inside the block; what was found is in the list."""
    install()
    before, _state.found = _state.found, []
    if _state.ticks is not None and before is None:
        _state.ticks.turn(on=True)
    try:
        yield _state.found
    finally:
        _state.found = before
        if _state.ticks is not None and before is None:
            _state.ticks.turn(on=False)


# --- in pytest -------------------------------------------------------------------------------------------


class LoopGuard:
    """The plugin: fails a test in which the package held up a loop."""

    def pytest_configure(self, config: pytest.Config) -> None:
        config.addinivalue_line("markers", "blocks_the_loop(why): the package may hold the event loop up in this test")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Run a test, and once more if it took too long: the clock of a shared machine may count its neighbours."""
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        if any(report.failed and OF_TIME in report.longreprtext for report in reports):
            item._initrequest()  # type: ignore[attr-defined]
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        return (yield from self._guarded(item))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        return (yield from self._guarded(item))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        return (yield from self._guarded(item))

    def _guarded(self, item: pytest.Item) -> Iterator[None]:
        with collecting() as found:
            result = yield
        mark = item.get_closest_marker("blocks_the_loop")
        if mark is not None and not mark.args:
            pytest.fail("blocks_the_loop wants a reason", pytrace=False)
        if found and mark is None:
            lines = "\n".join(f"  {offence}" for offence in dict.fromkeys(found))
            pytest.fail(f"the package held up the event loop:\n{lines}", pytrace=False)
        return result
