"""TraceStore: every run in one SQLite file, written by a thread so that no call waits."""

from __future__ import annotations

import atexit
import os
import queue
import sqlite3
import sys
import threading
import time
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from multiprocessing.util import Finalize, register_after_fork
from typing import Any, Self, TypeAlias
from weakref import WeakSet

from SimpleLLMFunc.base.events import ReActEvent, RunFailed, RunFinished
from SimpleLLMFunc.config import Settings, file_path
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.logger import push_info, push_warning, redact
from SimpleLLMFunc.observability.store.content import Content
from SimpleLLMFunc.observability.store.items import Intake, Item, said
from SimpleLLMFunc.observability.store.marks import mark_run
from SimpleLLMFunc.observability.store.reader import TraceReader
from SimpleLLMFunc.observability.store.rows import Thumb
from SimpleLLMFunc.observability.store.tables import TraceFile
from SimpleLLMFunc.observability.store.writer import HEARTBEAT, TraceWriter
from SimpleLLMFunc.observability.store.writer_runs import Fold
from SimpleLLMFunc.runtime import ForkSafeLock, renew_in_child

_Waiting: TypeAlias = tuple[str, float, Item]
"""Trace id, time and item."""

_DAY = 86_400.0
_REST_SECONDS = HEARTBEAT / 2
"""How long the thread waits for events: then it updates the row of the process, or ends."""

_PAUSE_SECONDS = 5.0
"""Between attempts to write a file that cannot be written."""

_SMALLEST_FILE = 256 * 1024

_MOST_CHARS = 64_000_000
"""Characters that may wait for the disk."""


class TraceStoreWarning(RuntimeWarning):
    """Runs are missing from a trace store: its file cannot be written, or events come faster than the thread writes them.

    Shown once for each store; calls go on. To hide it:
    ``warnings.filterwarnings("ignore", category=TraceStoreWarning)``.
    """


class TraceStore:
    """Keeps runs in a SQLite file: ``with watching(TraceStore("runs.sqlite")): …``, or SIMPLELLMFUNC_TRACE=path.

    A call queues its events and goes on; a thread writes them in batches. If the file cannot be written, entries are
    lost and one `TraceStoreWarning` is shown and logged; no call fails. Several processes may write the same file.
    Texts are redacted, keys are never written. Queued events are written when the interpreter exits; a process that is
    killed loses its last batch.

    Args:
        path: of the file; made with its folders at the first write.
        content: False keeps only sizes and hashes of arguments, messages, answers and tool results.
        max_age: seconds after which a run is deleted; None for never.
        max_bytes: about the largest size of the file; beyond it the oldest runs are deleted. None for no limit.
        max_text: kept characters of one text.
        queue_size: events that may wait for the thread; further ones are dropped and counted, with one warning.
        interval: seconds between batches.

    Attributes:
        reader: reads the same file.
        writes_to: identifies the file: of several stores of one file, one keeps a run.
        dropped: events that were not written: the queue was full, or the file could not be written.

    Raises:
        ConfigError: an argument is out of range.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        content: bool = True,
        max_age: float | None = 30 * _DAY,
        max_bytes: int | None = 1 << 30,
        max_text: int = 65_536,
        queue_size: int = 50_000,
        interval: float = 0.2,
    ) -> None:
        limits = {"max_age": max_age, "max_bytes": max_bytes, "max_text": max_text}
        numbers = {**limits, "queue_size": queue_size, "interval": interval}
        _check(numbers)
        self.path = file_path(path)
        self.writes_to = f"trace:{os.path.abspath(self.path)}"  # noqa: PTH100 - asks the disk nothing, as resolve() would
        self.content = content
        self.dropped = 0
        self._settings: dict[str, Any] = {"content": content, **numbers}
        self._content = Content(keep=content, max_text=max_text)
        self._file = TraceFile(self.path, create=True)
        self._writer = TraceWriter(self._file, max_age=max_age, max_bytes=max_bytes)
        self._queue_size = queue_size
        self._interval = interval
        self._starting = ForkSafeLock()
        self.reader = TraceReader(self.path, create=True)
        self._problem = ""
        self._has_warned = False
        self._reset()
        renew_in_child(self)
        _stores.add(self)

    def __call__(self, trace_id: str, event: ReActEvent) -> None:
        """Queue one event of a run; a sink."""
        item = self._intake.item_of(trace_id, event)
        if item is None:
            return
        if self._queue.qsize() >= self._queue_size:
            self._incomplete.add(trace_id)
            if not isinstance(event, RunFinished | RunFailed):  # without its end the run would seem to go on
                self._drop(1, "events come faster than they can be written")
                return
        self._queue.put((trace_id, time.monotonic(), item))
        self._start()

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait until all earlier events are in the file; return whether they are.

        Not for an event loop: ``await asyncio.to_thread(store.flush)``.
        """
        done = threading.Event()
        self._queue.put(done)
        self._hurry.set()
        if not self._start():
            self._round([])
        return done.wait(timeout) and not self._problem

    def flush_at_end(self) -> None:
        """Write all waiting events, also those of the thread's current batch."""
        if self._thread is not None or not self._queue.empty():
            self.flush()

    def mark(
        self,
        run: Any,
        *,
        thumb: Thumb | None = None,
        score: float | None = None,
        comment: str | None = None,
        tags: Iterable[str] | None = None,
        forget: bool = False,
    ) -> None:
        """Keep a person's verdict on a run; a part that is not given keeps its earlier value.

        Not for an event loop: ``await asyncio.to_thread(store.mark, result, thumb="up")``.

        Args:
            run: a `Result`, a trace id or a beginning that only one has, or the number of the run.
            thumb: "up" or "down".
            score: any number; you choose its meaning.
            comment: at most 10,000 characters; secrets are masked.
            tags: replace the earlier tags.
            forget: remove the earlier mark first.

        Raises:
            UsageError: there is no such run, or a value cannot be in a mark.
            ConfigError: the file cannot be written.
        """
        self.flush()
        mark_run(self.reader, run, thumb=thumb, score=score, comment=comment, tags=tags, forget=forget)

    def close(self) -> None:
        """Write all waiting events and close the file; later events open it again."""
        self.flush_at_end()
        self._file.close()
        self.reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"TraceStore({redact(str(self.path))!r}{'' if self.content else ', content=False'})"

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(TraceStore, **self._settings), (str(self.path),)

    def renew_in_child(self) -> None:
        """Start with an empty queue: the parent process writes what it has queued."""
        self._reset()
        self._writer.forget_process()

    # --- in the thread of the run ------------------------------------------------------------------------

    def _reset(self) -> None:
        self._queue: queue.SimpleQueue[_Waiting | threading.Event] = queue.SimpleQueue()
        self._hurry = threading.Event()
        self._thread: threading.Thread | None = None
        self._fold = Fold(self._content)
        self._incomplete: set[str] = set()
        self._intake = Intake(self._content)
        self._retry_at = 0.0
        self._writing = threading.Lock()

    def _start(self) -> bool:
        """Start the writing thread unless it runs; return False where no thread can be started."""
        with self._starting:
            if self._thread is not None:
                return True
            if sys.is_finalizing():
                return False
            thread = threading.Thread(target=self._serve, name="SimpleLLMFunc-trace", daemon=True)
            self._thread = thread
            try:
                thread.start()
            except RuntimeError:  # the interpreter is about to end, or the system has no more
                self._thread = None
                return False
        return True

    def _drop(self, count: int, why: str) -> None:
        self.dropped += count
        if not self._has_warned:
            self._has_warned = True
            lost = f"the trace store {redact(str(self.path))!r} is missing something: {why}."
            text = f"{lost} Calls go on; TraceStore.dropped counts what is lost."
            push_warning(text)
            # For programs without a log. Where warnings are errors, no caller could catch it here.
            with suppress(TraceStoreWarning):
                warnings.warn(text, TraceStoreWarning, stacklevel=2)

    # --- in the thread that writes -----------------------------------------------------------------------

    def _serve(self) -> None:
        while True:
            try:
                first = [self._queue.get(timeout=_REST_SECONDS)]
            except queue.Empty:
                first = []
            if first and not isinstance(first[0], threading.Event):
                # Waking for every event would take processor time from the runs.
                self._hurry.wait(self._interval)
            self._hurry.clear()
            self._round(first)
            with self._starting:  # an event queued meanwhile is seen here, or starts the next thread
                if self._queue.empty() and not self._fold.runs:
                    self._thread = None
                    return

    def _round(self, batch: list[_Waiting | threading.Event]) -> None:
        """Process a batch and all waiting events, and write the rows."""
        waiting: list[threading.Event] = []
        with self._writing:
            batch += [self._queue.get() for _ in range(self._queue.qsize())]
            for each in batch:
                if isinstance(each, threading.Event):
                    waiting.append(each)
                else:
                    self._take(*each)
            self._write(at_once=bool(waiting))
        for each in waiting:
            each.set()

    def _take(self, trace_id: str, at: float, item: Item) -> None:
        try:
            self._fold.take(trace_id, at, item)
        except Exception as error:  # noqa: BLE001 - a user's object that fails at showing itself must not end the thread
            self._incomplete.add(trace_id)
            self._drop(1, f"an event could not be read: {redact(f'{type(error).__name__}: {error}')}")

    def _write(self, *, at_once: bool = False) -> None:
        fold = self._fold
        incomplete, self._incomplete = self._incomplete, set()
        for trace_id in incomplete & fold.runs.keys():  # the beginnings of the others were dropped too
            fold.runs[trace_id].columns["incomplete"] = True
            fold.runs[trace_id].is_dirty = True
        if not fold.runs or (self._problem and not at_once and time.monotonic() < self._retry_at):
            self._make_room()
            return
        try:
            self._writer.write(fold.runs.values())
        except (ConfigError, sqlite3.Error, OSError) as error:
            self._failed(error)
        else:
            fold.forget_written()
            if self._problem:
                self._problem = ""
                push_info(f"the trace store {redact(str(self.path))!r} is written again.")

    def _failed(self, error: Exception) -> None:
        """Keep the rows for a later attempt; warn once."""
        self._problem = said(error)
        self._retry_at = time.monotonic() + _PAUSE_SECONDS
        is_told = isinstance(error, ConfigError)
        self._drop(0, self._problem.rstrip(".") if is_told else f"it cannot be written: {redact(self._problem)}")
        self._make_room()

    def _make_room(self) -> None:
        """Drop the oldest runs while too many unwritten rows wait."""
        runs = self._fold.runs
        if not self._problem:
            return
        rows = [row for run in runs.values() for row in (run.columns, *run.rows.values())]
        size = sum(len(cell) for row in rows for cell in row.values() if isinstance(cell, str | bytes))
        if len(rows) <= self._queue_size and size <= _MOST_CHARS:
            return
        for trace_id in list(runs)[: max(len(runs) // 2, 1)]:
            self._drop(len(runs.pop(trace_id).rows) + 1, self._problem)


def from_environment() -> TraceStore | None:
    """Return the store that SIMPLELLMFUNC_TRACE names; None if it is not set.

    SIMPLELLMFUNC_TRACE_CONTENT=0 (or no, off, false) keeps sizes and hashes only.
    """
    path = Settings.from_environment().trace
    keeps = os.environ.get("SIMPLELLMFUNC_TRACE_CONTENT", "").strip().lower() not in {"0", "no", "off", "false"}
    return None if path is None else TraceStore(path, content=keeps)


def _check(settings: Mapping[str, Any]) -> None:
    for name, value in settings.items():
        if value is not None and not (isinstance(value, int | float) and value > 0):
            raise ConfigError(f"TraceStore: {name} is {value!r}; it must be a number above 0.")
    max_bytes = settings["max_bytes"]
    if max_bytes is not None and max_bytes < _SMALLEST_FILE:
        raise ConfigError(f"TraceStore: max_bytes is {max_bytes}; an empty store takes nearly {_SMALLEST_FILE}.")


_stores: WeakSet[TraceStore] = WeakSet()


@atexit.register
def _write_all() -> None:
    for store in tuple(_stores):
        store.flush_at_end()


def _write_at_end_of_worker(_: object = None) -> None:
    # A worker that multiprocessing has forked ends without `atexit`.
    Finalize(None, _write_all, exitpriority=0)


_write_at_end_of_worker()
register_after_fork(_write_all, _write_at_end_of_worker)
