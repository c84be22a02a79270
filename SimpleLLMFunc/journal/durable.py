"""`durable`: a block of code whose runs cannot be lost."""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Literal, Self

from SimpleLLMFunc.base.run import JOURNAL, Journal, RunIdentity
from SimpleLLMFunc.errors import CheckpointError, UsageError
from SimpleLLMFunc.journal.log_file import JournalFile, KeyLog, NewRow, Row
from SimpleLLMFunc.journal.scopes import Scope
from SimpleLLMFunc.logger import border, push_info
from SimpleLLMFunc.runtime import Worker
from SimpleLLMFunc.utils import Block


class durable:  # noqa: N801 - used like a function
    """Keep the runs of a block in a journal: ``with durable("runs.sqlite", key="order-17"): …``, in async code too.

    Every reply of a model and every result of a tool inside is written before it is used. After a crash the same block
    with the same key goes on: what was written is given again, without a request and without a second run of a tool.
    When the block has ended without an exception, its key gives what it has written for ever.

    Args:
        path: of the journal, a SQLite file; made with its folders. Many keys share it, at the same time too.
        key: of the work that the block does, such as the number of an order.
        on_change: what happens where a function is called whose docstring, signature, types or tools are others than
            when the block ran before: an error, or "restart": the key's journal is forgotten, the block goes on anew.
        sync: "normal" outlasts the death of the process, "full" a loss of power too.

    Raises:
        UsageError: an argument that cannot be.

    Entering it raises:
        CheckpointError: the key runs already, here or elsewhere; or the file cannot be trusted, read or written.
        UsageError: it stands inside of another one.
    """

    @border
    def __init__(
        self,
        path: str | os.PathLike[str],
        key: str,
        *,
        on_change: Literal["error", "restart"] = "error",
        sync: Literal["normal", "full"] = "normal",
    ) -> None:
        given: Any = key
        if not isinstance(given, str) or not given:
            raise UsageError(f"key is a text that names the work, such as 'order-17', not {key!r}.")
        if on_change not in {"error", "restart"}:
            raise UsageError(f'on_change is "error" or "restart", not {on_change!r}.')
        if sync not in {"normal", "full"}:
            raise UsageError(f'sync is "normal" or "full", not {sync!r}.')
        self.path = path
        self.key = key
        self._on_change = on_change
        self._sync = sync
        self._entered: tuple[ExitStack, _Steps, Block[Journal | None]] | None = None

    @border
    def __enter__(self) -> Self:
        if self._entered is not None or JOURNAL.get() is not None:
            raise UsageError(
                "a durable block stands inside of another one. Give the outer one the key of the whole work."
            )
        with ExitStack() as stack:
            file = JournalFile(self.path, sync=self._sync)
            stack.enter_context(file.lock(self.key))
            stack.callback(file.close)
            log = KeyLog(file, self.key)
            stack.callback(log.close)
            log.read()
            steps = _Steps(log, restarts=self._on_change == "restart")
            self._entered = stack.pop_all(), steps, JOURNAL.enter(steps.scope)
        return self

    @border
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._entered is not None, "it was entered"
        stack, steps, block = self._entered
        JOURNAL.leave(block)
        self._entered = None
        with stack:
            steps.close(error)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)


class _Steps:
    """The steps of an open block: what was written before, and what is written now.

    Args:
        log: that has been read.
        restarts: a function that has changed begins the block anew.
    """

    def __init__(self, log: KeyLog, *, restarts: bool) -> None:
        self.key = log.key
        self.unread: list[tuple[BaseException, list[bytes]]] = []
        self._log = log
        self._may_restart = restarts
        self._worker = Worker()
        self._changed = threading.Condition()
        self._waiting = 0
        self._is_open = True
        self._has_grown = False
        self._later: list[NewRow] = []
        self._read()
        self.restarts = self._starts

    def _read(self) -> None:
        self.answers = self._log.answers
        self.pending: dict[str, dict[str, Any]] = {}
        self._known: dict[bytes, Row] = {}
        self._begun: set[bytes] = set()
        self.approved: set[bytes] = set()
        self._versions: dict[str, set[str]] = {}
        self._starts = 0
        self._is_finished = False
        for row in self._log.rows:
            self._take(row)
            if row.kind == "run" and (place := row.data["place"]):
                self._versions.setdefault(place, set()).add(row.data["version"])
        if not hasattr(self, "scope"):
            self.scope = Scope(self, self._log.epoch)
        self.scope.place = self._log.epoch

    def _take(self, row: Row) -> None:
        self._is_finished = row.kind == "end"
        self._starts += row.kind == "start"
        if row.kind in {"run", "reply", "tool", "moment"}:
            self._known[row.place] = row
        if row.kind in {"began", "undone", "tool"}:
            (self._begun.add if row.kind == "began" else self._begun.discard)(row.place)
        if row.kind == "undone":
            self.approved.add(row.place)  # it had begun, so it may
        if row.kind == "dropped":
            for place in row.data:
                self._known.pop(bytes.fromhex(place), None)
        note_pending(self.pending, row, self.key)

    # --- what its scopes ask ---

    def found(self, place: bytes) -> Row | None:
        """Return what stands at a place."""
        return self._known.get(place)

    def has_begun(self, place: bytes) -> bool:
        """Say whether a once-tool had begun there, and not ended."""
        return place in self._begun

    def check_open(self) -> None:
        """Return if the block goes on.

        Raises:
            UsageError: it was left.
        """
        if not self._is_open:
            raise UsageError(
                f"the durable block {self.key!r} was left while this call went on: it is in no journal. Await the call, or "
                "cancel it, before the block ends."
            )

    async def check_version(self, identity: RunIdentity) -> None:
        """Return if a function is as it was when the block ran before, or the block begins anew.

        Raises:
            CheckpointError: it is not, and must not.
        """
        before = self._versions.get(identity.place) if identity.place else None
        if not before or identity.version in before:
            return
        if not self._may_restart:
            raise CheckpointError(
                f"the function {identity.name!r} has changed since the run {self.key!r} began: it was version "
                f"{', '.join(sorted(before))} and is {identity.version}. Run it with the code it began with; or say "
                'durable(..., on_change="restart"), and the work begins anew.'
            )
        push_info(f"{identity.name!r} has changed: the run {self.key!r} begins anew.")
        await self._work(self._restart)

    def _restart(self) -> None:
        self._log.forget()
        self._later.clear()
        self.unread.clear()
        self._read()

    async def append(self, *rows: NewRow, used: str = "") -> None:
        """Write rows, in a thread; also when the caller is cancelled meanwhile."""
        await self._work(self._append, rows, used)

    async def _work(self, work: Any, *args: Any) -> None:
        with self._changed:
            self.check_open()
            self._waiting += 1
        await self._worker.run(self._done, work, *args)

    def _done(self, work: Any, *args: Any) -> None:
        try:
            work(*args)
        finally:
            with self._changed:
                self._waiting -= 1
                self._changed.notify_all()

    def append_now(self, *rows: NewRow) -> None:
        """Write rows in this thread."""
        with self._changed:
            self.check_open()
            self._waiting += 1
        self._done(self._append, rows)

    def later(self, row: NewRow) -> None:
        """Write a row with those that come next: nothing that is written depends on it before."""
        self._later.append(row)

    def _append(self, rows: tuple[NewRow, ...], used: str = "") -> None:
        later, self._later = self._later, []
        first: list[NewRow] = [] if self._has_grown else [("start", b"", os.getpid())]
        for row in self._log.append([*first, *later, *rows], used=used):
            self._take(row)
        self._has_grown = True

    def close(self, error: BaseException | None) -> None:
        """Wait for what is being written, and note how the block has ended."""
        with self._changed:
            self._is_open = False
            self._changed.wait_for(lambda: not self._waiting)
        if error is None and self.scope.interrupted is None:
            if self._has_grown or (self._log.rows and not self._is_finished):
                self._append((("end", b"", None),))
        elif error is not None:
            ends = _all_in(error)
            lost = [place.hex() for reason, places in self.unread if id(reason) in ends for place in places]
            if lost:
                self._append((("dropped", b"", lost),))


def note_pending(pending: dict[str, dict[str, Any]], row: Row, key: str) -> None:
    """Bring what waits for an answer, by the id of its call, up to the next row of a key."""
    if row.kind == "asked":
        pending[row.data["call_id"]] = {"key": key, **row.data, "since": row.at}
    elif row.kind in {"began", "tool"}:
        pending.pop(row.place.hex()[:16], None)


def pending_in(log: KeyLog) -> dict[str, dict[str, Any]]:
    """Return what waits, or has waited until its answer came, of a key that was read."""
    pending: dict[str, dict[str, Any]] = {}
    for row in log.rows:
        note_pending(pending, row, log.key)
    return pending


def _all_in(error: BaseException) -> set[int]:
    """Return the ids of an error, of those in its group, and of what led to it."""
    found: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is not None and id(each) not in found:
            found.add(id(each))
            waiting += [each.__cause__, each.__context__, *getattr(each, "exceptions", ())]
    return found
