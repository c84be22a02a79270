"""The finished rows of a map: in memory while they are few, else in a file. A worker thread does the I/O."""

from __future__ import annotations

import asyncio
import os
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from SimpleLLMFunc.base.run import Mappable
from SimpleLLMFunc.batch.checkpoint.checkpoint import Checkpoint
from SimpleLLMFunc.batch.checkpoint.codec import Finished, Record
from SimpleLLMFunc.batch.checkpoint.row_file import RowFile
from SimpleLLMFunc.batch.progress import MapProgress
from SimpleLLMFunc.errors import CheckpointError
from SimpleLLMFunc.runtime import Worker
from SimpleLLMFunc.storage import version_of

MOST_IN_MEMORY = 10_000
"""Rows that are held in memory where there is no checkpoint; more go to a temporary file."""

AT_ONCE = 1000
"""Rows that go there together: while they are written, they are in memory twice."""


class Store:
    """The finished rows of one map, written in one thread; those that finish together share a transaction.

    Attributes:
        first_new_id: rows with a higher number are of this map.
        path: of the checkpoint.
        file: that the rows are in; None while they are in memory.

    Args:
        function: whose rows they are.
        checkpoint: the path of a file; None for memory, and a temporary file beyond `MOST_IN_MEMORY` rows.
        progress: says how far the map is; a checkpoint keeps that with the rows.
    """

    def __init__(
        self, function: Mappable[Any], checkpoint: str | os.PathLike[str] | None, progress: Callable[[], MapProgress]
    ) -> None:
        self._function = function
        self._progress = progress
        self._worker = Worker()
        self.first_new_id = 0
        self._done = 0
        self._checkpoint = None if checkpoint is None else Checkpoint(checkpoint, function.output, function.repair)
        self.path = None if self._checkpoint is None else self._checkpoint.path
        self.file: RowFile | None = None
        self._memory: list[Record] = []
        self._ids: dict[bytes, int] = {}
        self._waiting: list[Record] = []
        self._next: asyncio.Task[None] | None = None  # will write what waits
        self._writing: asyncio.Task[None] | None = None

    # --- while the map runs ----------------------------------------------------------------------------------

    async def open(self) -> bytes:
        """Open the checkpoint where there is one, and return the version of the function.

        Raises:
            CheckpointError: it cannot be used.
            ConfigError: there is no model to ask.
        """
        definition = self._function.definition()
        if self._checkpoint is None:
            return version_of(definition)
        # Where this is cancelled the thread goes on; what it opens is closed by `close`, which the same thread does next.
        version = await self._worker.run(self._checkpoint.open, self._function.name, definition, self._progress())
        self.file = self._checkpoint.rows
        self.first_new_id = self.file.last_id
        return version

    async def find(self, keys: Sequence[bytes]) -> Mapping[bytes, Finished]:
        """Return what is known of these rows."""
        found: dict[bytes, Finished] = {key: self._memory[number - 1] for key in keys if (number := self._ids.get(key))}
        if self.file is not None and (others := [key for key in keys if key not in found]):
            found.update(await self._worker.run(self.file.find, others))
        return found

    async def keep(self, record: Record) -> int:
        """Keep a row, and return its number when it has been committed.

        Raises:
            CheckpointError: the row cannot be written.
        """
        if self.file is None and len(self._memory) < MOST_IN_MEMORY:
            self._memory.append(record)
            record.id = self._ids[record.key] = len(self._memory)
            return record.id
        self._waiting.append(record)
        if self._next is None:
            self._next = asyncio.create_task(self._write(self._writing))
        await asyncio.shield(self._next)  # the other rows of the group are written where one is cancelled
        return record.id

    async def close(self) -> None:
        """Write what waits, and give the checkpoint up for others; the rows can still be read."""
        await asyncio.gather(*filter(None, (self._writing, self._next)), return_exceptions=True)
        if self._checkpoint is not None:
            progress = self._progress()
            # Rows that were committed during the cancellation are finished, although the map did not count them.
            done = max(progress.done, self._done)
            await self._worker.run(self._checkpoint.close, replace(progress, done=done))

    async def _write(self, before: asyncio.Task[None] | None) -> None:
        """Write the rows that wait, once those before them are written."""
        if before is not None:
            await asyncio.gather(before, return_exceptions=True)  # its own rows hear of an error
        await asyncio.sleep(0)  # what finishes in the same round of the loop goes along
        records, self._waiting = self._waiting, []
        self._writing, self._next = self._next, None
        if self.file is None:
            self.file = await self._worker.run(self._spilled, self._progress())
            self._memory, self._ids = [], {}
        await self._worker.run(self._committed, records, self._progress())

    # --- in the thread ---------------------------------------------------------------------------------------

    def _committed(self, records: list[Record], progress: MapProgress) -> None:
        assert self.file is not None, "it was opened before"
        done = progress.done + len(records)
        self.file.write(records, replace(progress, done=done))
        self._done = done
        if self._checkpoint is not None:
            self._checkpoint.committed()

    def _spilled(self, progress: MapProgress) -> RowFile:
        """Move what is in memory to a temporary file, which is removed with the last reference to it."""
        try:
            descriptor, name = tempfile.mkstemp(prefix="SimpleLLMFunc-", suffix=".sqlite")
        except OSError as error:
            raise CheckpointError(
                f"no temporary file can be made for more than {MOST_IN_MEMORY} rows ({error}). Give a checkpoint."
            ) from error
        os.close(descriptor)
        path = Path(name)
        function = self._function
        file = RowFile(path, function.output, function.repair, f"the temporary file {name!r}")
        weakref.finalize(file, _remove, path, os.getpid())
        file.open()
        for start in range(0, len(self._memory), AT_ONCE):
            file.write(self._memory[start : start + AT_ONCE], progress)
        return file

    # --- when it has ended -----------------------------------------------------------------------------------

    def read(self, ids: Sequence[int]) -> Mapping[int, Finished]:
        """Return rows by number."""
        if self.file is None:
            return {number: self._memory[number - 1] for number in ids}
        return self.file.read(ids)

    def release(self) -> None:
        """Close the file; it opens again where rows are read after all."""
        if self.file is not None:
            self.file.file.close()


def _remove(path: Path, pid: int) -> None:
    if os.getpid() == pid:  # a forked child has the object, but not the file
        for suffix in ("", "-wal", "-shm"):
            with suppress(OSError):
                path.with_name(path.name + suffix).unlink()
