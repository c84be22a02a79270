"""One writer for a checkpoint over all processes, with a note of the process and of its commits."""

from __future__ import annotations

import json
import os
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import filelock

from SimpleLLMFunc.errors import CheckpointError

_WAIT_SECONDS = 0.2
"""Seconds of waiting for the lock: a process that checks whether it is free holds it for a moment."""

_NOTE_BYTES = 256
"""The note always has this length, so that a full disk or a kill leaves the old note or the new one."""


class WriterLock:
    """The right to write a file: a lock in ``<name>.lock``, and a note of its owner in ``<name>.writer``.

    The system frees the lock of a process that ends. The note stays then, and says how many commits the file has to
    hold; both files are removed when the writing ended well.

    Args:
        path: of the file that is to be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._note = path.with_name(f"{path.name}.writer")
        self._lock = filelock.FileLock(path.with_name(f"{path.name}.lock"), thread_local=False)
        self.commits = 0

    @property
    def is_held(self) -> bool:
        """Whether the file may be written."""
        return self._lock.is_locked

    def acquire(self) -> None:
        """Take the lock; `commits` is then what the note of the writer before says, 0 where it ended well.

        Raises:
            CheckpointError: another map holds it, here or in another process; or the lock file cannot be made.
        """
        try:
            self._lock.acquire(timeout=_WAIT_SECONDS, poll_interval=_WAIT_SECONDS / 5)
        except filelock.Timeout as error:
            if not Path(self._lock.lock_file).exists():  # a folder in which no file can be made, such as /proc
                raise self._unwritable(error) from None
            raise CheckpointError(
                f"the checkpoint {str(self.path)!r} is being written by {self._writer()}. "
                "Wait until that has ended, or give another path."
            ) from None
        except (OSError, NotImplementedError) as error:
            raise self._unwritable(error) from error
        try:
            self.note(self._read().get("commits", 0))
        except OSError as error:  # a full disk
            self.release(ended_well=not self.commits)
            raise self._unwritable(error) from error

    def owner(self) -> str | None:
        """Return who holds the lock, None where it is free."""
        if not Path(self._lock.lock_file).exists():
            return None
        try:
            with filelock.FileLock(self._lock.lock_file, timeout=0):
                return None
        except filelock.Timeout:
            return self._writer()
        except (OSError, NotImplementedError):
            return None

    def note(self, commits: int) -> None:
        """Note who writes, and how many commits the file holds.

        Raises:
            OSError: the disk is full.
        """
        self.commits = commits
        note = {"pid": os.getpid(), "host": socket.gethostname(), "commits": commits, "at": time.time()}
        descriptor = os.open(self._note, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, json.dumps(note).encode().ljust(_NOTE_BYTES))
        finally:
            os.close(descriptor)

    def release(self, *, ended_well: bool) -> None:
        """Give the lock up.

        Args:
            ended_well: the file itself holds all that was written, so that no note is needed.
        """
        if not self.is_held:
            return
        if ended_well:
            for path in (self._note, Path(self._lock.lock_file)):
                with suppress(OSError):  # Windows removes no open file
                    path.unlink()
        self._lock.release()

    def _read(self) -> dict[str, Any]:
        try:
            note = json.loads(self._note.read_bytes())
        except (OSError, ValueError):
            return {}
        return note if isinstance(note, dict) and isinstance(note.get("commits"), int) else {}

    def _writer(self) -> str:
        note = self._read()
        pid, host = note.get("pid"), note.get("host")
        if (pid, host) == (os.getpid(), socket.gethostname()):
            return f"another map of this process ({pid} on {host})"
        return f"process {pid} on {host}" if note else "another process"

    def _unwritable(self, error: Exception) -> CheckpointError:
        return CheckpointError(
            f"the checkpoint {str(self.path)!r} cannot be written: {getattr(error, 'strerror', None) or str(error).rstrip('.')}. "
            "Give a path in a folder that you may write to, on a disk that has room."
        )
