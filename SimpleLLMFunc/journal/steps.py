"""The steps of an open block: those in its journal, and those that are written now."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from SimpleLLMFunc.base.run import RunIdentity
from SimpleLLMFunc.errors import CheckpointError, UsageError
from SimpleLLMFunc.journal.log_file import KeyLog, NewRow, Row
from SimpleLLMFunc.logger import push_info, with_causes


class Steps:
    """The steps of an open block: the written ones, and new ones.

    Args:
        log: that has been read.
        restarts: a changed function restarts the block; else it is an error.

    Attributes:
        epoch: the place of the block itself; another one after a restart.
        restarts: how often the block was broken off before.
        answers: by the id of the call.
        pending: what waits for an answer, by the id of the call.
        begun: places of tool calls that had begun, and not ended.
        approved: places of calls that may run.
        unread: errors of answers that could not be read, with the places of these answers.
    """

    def __init__(self, log: KeyLog, *, restarts: bool) -> None:
        self.key = log.key
        self.unread: list[tuple[BaseException, list[bytes]]] = []
        self._log = log
        self._may_restart = restarts
        self._writer = ThreadPoolExecutor(1, "SimpleLLMFunc-journal")
        self._is_open, self._pid = True, os.getpid()
        self._has_grown = False
        self._later: list[NewRow] = []
        self._read()
        self.restarts = self._starts

    def _read(self) -> None:
        self.answers = self._log.answers
        self.pending: dict[str, dict[str, Any]] = {}
        self._known: dict[bytes, Row] = {}
        self.begun: set[bytes] = set()
        self.approved: set[bytes] = set()
        self._versions: dict[str, set[str]] = {}
        self._starts = 0
        self._is_finished = False
        for row in self._log.rows:
            self._take(row)
            if row.kind == "run" and (place := row.data["place"]):
                self._versions.setdefault(place, set()).add(row.data["version"])
        self.epoch = self._log.epoch

    def _take(self, row: Row) -> None:
        self._is_finished = row.kind == "end"
        self._starts += row.kind == "start"
        if row.kind in {"run", "reply", "tool", "moment"}:
            self._known[row.place] = row
        if row.kind in {"began", "undone", "tool"}:
            (self.begun.add if row.kind == "began" else self.begun.discard)(row.place)
        if row.kind == "undone":
            self.approved.add(row.place)  # it had begun, so it was approved
        if row.kind == "dropped":
            for place in row.data:
                self._known.pop(bytes.fromhex(place), None)
        note_pending(self.pending, row, self.key)

    # --- for the scopes ---

    def found(self, place: bytes) -> Row | None:
        """Return the row at a place; None without one."""
        return self._known.get(place)

    @property
    def is_inherited(self) -> bool:
        """Whether this process was forked inside the block: it has the block in its memory, but not its thread and lock."""
        return os.getpid() != self._pid

    def check_open(self) -> None:
        """Check that the block is open, and this process's own.

        Raises:
            UsageError: it is not.
        """
        if self.is_inherited:
            raise UsageError(
                f"this process was forked inside the durable block {self.key!r}, and only the parent writes its journal. Call "
                "in the parent, in a thread, or in a process that was spawned; or open a block with another key here."
            )
        if not self._is_open:
            raise UsageError(
                f"the durable block {self.key!r} was left while this call went on: it is in no journal. Await the call, or "
                "cancel it, before the block ends."
            )

    async def check_version(self, identity: RunIdentity) -> None:
        """Check that a function is the version that the block ran before; else restart the block where that is allowed.

        Raises:
            CheckpointError: the function has changed, and a restart is not allowed.
        """
        before = self._versions.get(identity.place) if identity.place else None
        if not before or identity.version in before:
            return
        if not self._may_restart:
            raise CheckpointError(
                f"the function {identity.name!r} has changed since the run {self.key!r} began: it was version "
                f"{', '.join(sorted(before))} and is {identity.version}. Run it with the code it began with; or say "
                'durable(..., on_change="restart"), and the work starts over.'
            )
        push_info(f"{identity.name!r} has changed: the run {self.key!r} starts over.")
        await self._written(self._restart)

    def _restart(self) -> None:
        self._log.forget()
        self._later.clear()
        self.unread.clear()
        self._read()

    async def append(self, *rows: NewRow, used: str = "") -> None:
        """Write rows in a thread; a cancelled caller's rows are written too."""
        await self._written(self._append, rows, used)

    async def _written(self, work: Callable[..., None], *args: Any) -> None:
        await asyncio.shield(asyncio.wrap_future(self._submit(work, *args)))

    def append_now(self, *rows: NewRow) -> None:
        """Write rows, and wait for it in this thread."""
        self._submit(self._append, rows).result()

    def _submit(self, work: Callable[..., None], *args: Any) -> Future[None]:
        self.check_open()
        try:
            return self._writer.submit(work, *args)
        except RuntimeError as error:  # the block, or the interpreter, is just ending
            raise UsageError(f"the durable block {self.key!r} takes no further step: {error}") from error

    def later(self, row: NewRow) -> None:
        """Queue a row for the next write; no earlier row depends on it."""
        self._later.append(row)

    def _append(self, rows: tuple[NewRow, ...], used: str = "") -> None:
        later, self._later = self._later, []
        first: list[NewRow] = [] if self._has_grown else [("start", b"", os.getpid())]
        for row in self._log.append([*first, *later, *rows], used=used):
            self._take(row)
        self._has_grown = True

    def close(self, error: BaseException | None, *, is_interrupted: bool) -> None:
        """Wait for running writes, then write how the block has ended."""
        self._is_open = False
        self._writer.shutdown()
        if error is None and not is_interrupted:
            if self._has_grown or (self._log.rows and not self._is_finished):
                self._append((("end", b"", None),))
        elif error is not None:
            ends = {id(each) for each in with_causes(error)}
            lost = [place.hex() for reason, places in self.unread if id(reason) in ends for place in places]
            if lost:
                self._append((("dropped", b"", lost),))


def note_pending(pending: dict[str, dict[str, Any]], row: Row, key: str) -> None:
    """Update the waiting calls, by id, with the next row of a key."""
    if row.kind == "asked":
        pending[row.data["call_id"]] = {"key": key, **row.data, "since": row.at}
    elif row.kind in {"began", "tool"}:
        pending.pop(row.place.hex()[:16], None)


def pending_in(log: KeyLog) -> dict[str, dict[str, Any]]:
    """Return the calls of a key that was read, with and without an answer, by id."""
    pending: dict[str, dict[str, Any]] = {}
    for row in log.rows:
        note_pending(pending, row, log.key)
    return pending
