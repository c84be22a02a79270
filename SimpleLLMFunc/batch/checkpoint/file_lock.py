"""One writer for a file, in all processes: a lock that ends with its process, however that ends."""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

from SimpleLLMFunc.errors import CheckpointError
from SimpleLLMFunc.runtime import ForkSafeLock, renew_in_child

__all__ = ["FileLock"]

_OWNER_BYTES: Final = 512
_LOCKED_AT: Final = 1 << 20
"""The byte that is locked, behind all that is written: on some systems what is locked cannot be read."""

_PATIENCE: Final = 0.2
"""Seconds; somebody who only looks who has the lock holds it for a moment."""

_MARK = struct.Struct("<Q")


class FileLock:
    """The right to write a file, and a mark of how far its writing has come.

    It lies in a file of its own, ``<name>.lock``: closing any descriptor of a file gives up all locks that the process
    has on it, and SQLite has locks of its own on the other one. It is gone again when the writing ended well.

    Args:
        path: of the file that is to be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock_path = path.with_name(path.name + ".lock")
        self._descriptor: int | None = None

    @property
    def is_held(self) -> bool:
        """Whether the file may be written."""
        return self._descriptor is not None

    def acquire(self) -> None:
        """Take the lock.

        Raises:
            CheckpointError: another map has it, here or in another process; or no lock can be made there.
        """
        with _taking:
            if self._lock_path in _held:
                # Not even opened: closing it would give up the lock that the other one has.
                raise self._refused(f"another map of this process ({os.getpid()} on {socket.gethostname()})")
            while self._descriptor is None:
                try:
                    descriptor = os.open(self._lock_path, os.O_RDWR | os.O_CREAT, 0o600)
                except OSError as error:
                    raise self._unwritable(error) from error
                if not _locked(descriptor, patience=_PATIENCE):
                    owner = _owner(descriptor)
                    os.close(descriptor)
                    raise self._refused(owner)
                if _is_still(descriptor, self._lock_path):
                    self._descriptor = descriptor
                    _held.add(self._lock_path)
                else:  # its last owner took it away between our opening and locking it
                    os.close(descriptor)
            try:
                self._write(0, _own_name().ljust(_OWNER_BYTES))
            except OSError as error:  # a full disk
                self.release(ended_well=self.mark() == 0)
                raise self._unwritable(error) from error

    def owner(self) -> str | None:
        """Return who holds the lock, None where nobody does; it is not taken."""
        with _taking:
            if self._lock_path in _held:
                return f"this process ({os.getpid()} on {socket.gethostname()})"
            try:
                descriptor = os.open(self._lock_path, os.O_RDWR)
            except OSError:
                return None
            try:
                return None if _locked(descriptor) else _owner(descriptor)
            finally:
                os.close(descriptor)

    def mark(self) -> int:
        """Return the mark that a writer before left, 0 where it ended well."""
        assert self._descriptor is not None, "the lock is held"
        data = _read(self._descriptor, _OWNER_BYTES, _MARK.size)
        return int(_MARK.unpack(data)[0]) if len(data) == _MARK.size else 0

    def set_mark(self, count: int) -> None:
        """Note how far the writing has come."""
        with suppress(OSError):  # a full disk: the file itself will say so
            self._write(_OWNER_BYTES, _MARK.pack(count))

    def release(self, *, ended_well: bool) -> None:
        """Give the lock up.

        Args:
            ended_well: all that was written stands in the file itself, so that no mark is needed.
        """
        with _taking:
            descriptor, self._descriptor = self._descriptor, None
            if descriptor is None:
                return
            if ended_well:
                # While it is locked: who has opened it meanwhile sees that it is not there any more.
                with suppress(OSError):
                    self._lock_path.unlink()
            _held.discard(self._lock_path)
            os.close(descriptor)

    def _write(self, at: int, data: bytes) -> None:
        assert self._descriptor is not None, "the lock is held"
        os.lseek(self._descriptor, at, os.SEEK_SET)
        os.write(self._descriptor, data)

    def _unwritable(self, error: OSError) -> CheckpointError:
        return CheckpointError(
            f"the checkpoint {str(self.path)!r} cannot be written: {error.strerror or error}. "
            "Give a path in a folder that you may write to, on a disk that has room."
        )

    def _refused(self, owner: str) -> CheckpointError:
        return CheckpointError(
            f"the checkpoint {str(self.path)!r} is being written by {owner}. "
            "Wait until that has ended, or give another path."
        )


class _Held:
    """The locks of this process: the system's do not keep a process from itself."""

    def __init__(self) -> None:
        self._paths: set[str] = set()
        renew_in_child(self)

    def __contains__(self, path: Path) -> bool:
        return os.path.realpath(path) in self._paths

    def add(self, path: Path) -> None:
        self._paths.add(os.path.realpath(path))

    def discard(self, path: Path) -> None:
        self._paths.discard(os.path.realpath(path))

    def renew_in_child(self) -> None:
        """Forget them: they are the parent's."""
        self._paths.clear()


_held = _Held()
_taking = ForkSafeLock()


def _locked(descriptor: int, *, patience: float = 0.0) -> bool:
    """Lock the file; return False where another process has done so for longer than `patience` seconds."""
    until = time.monotonic() + patience
    while True:
        try:
            if sys.platform == "win32":
                os.lseek(descriptor, _LOCKED_AT, os.SEEK_SET)
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            else:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _LOCKED_AT)
        except OSError:
            if time.monotonic() >= until:
                return False
            time.sleep(patience / 5)
        else:
            return True


def _read(descriptor: int, at: int, size: int) -> bytes:
    os.lseek(descriptor, at, os.SEEK_SET)
    return os.read(descriptor, size)


def _own_name() -> bytes:
    owner = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
    return json.dumps(owner).encode()[:_OWNER_BYTES]


def _owner(descriptor: int) -> str:
    try:
        owner = json.loads(_read(descriptor, 0, _OWNER_BYTES))
        return f"process {owner['pid']} on {owner['host']} since {owner['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


def _is_still(descriptor: int, path: Path) -> bool:
    try:
        there = path.stat()
    except OSError:
        return False
    ours = os.fstat(descriptor)
    return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)
