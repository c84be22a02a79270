"""The number of steps of each key, outside the database: a truncated write-ahead log looks whole to SQLite."""

from __future__ import annotations

import os
import struct
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import filelock

from SimpleLLMFunc.errors import CheckpointError

_SLOT: Final = struct.Struct("<16sQI4x")
"""Hash of the key, number of steps, checksum of both."""

_FLAGS: Final = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)


@dataclass
class StepCounts:
    """The number of one key's steps, in a file that all keys share; each slot has 32 bytes, written at once.

    A number below the rows is harmless; one above them means that steps are lost.

    Attributes:
        path: of the file.
        key: hash of the key, 16 bytes.
        shown: what the journal is called in errors.
    """

    path: Path
    key: bytes
    shown: str
    _place: int | None = None

    def read(self) -> int:
        """Return the number of steps; 0 if the file has none.

        Raises:
            CheckpointError: the number is damaged.
        """
        try:
            slots = self.path.read_bytes()
        except OSError:
            return 0
        self._place = _find(slots, self.key)
        if self._place is None:
            return 0
        key, count, checksum = _SLOT.unpack_from(slots, self._place)
        if checksum != _checksum(key, count):
            raise CheckpointError(
                f"{self.shown} is damaged: the number of steps in {self.path.name} is wrong. Restore a copy of that file; "
                "or remove it, if the journal itself is intact."
            )
        return int(count)

    def note(self, count: int) -> None:
        """Write the number of steps; on a full disk the earlier number stays."""
        with suppress(OSError):
            if self._place is not None:
                self._write(self._place, count)
                return
            with filelock.FileLock(self.path.with_suffix(".lock"), timeout=10.0, thread_local=False):
                slots = self.path.read_bytes() if self.path.exists() else b""
                found = _find(slots, self.key)
                place = len(slots) // _SLOT.size * _SLOT.size if found is None else found
                self._write(place, count)
            self._place = place

    def forget(self) -> None:
        """Set the number of steps to 0, if there is one."""
        slots = self.path.read_bytes() if self.path.exists() else b""
        self._place = _find(slots, self.key)
        if self._place is not None:
            self.note(0)

    def _write(self, place: int, count: int) -> None:
        file = os.open(self.path, _FLAGS, 0o600)
        try:
            os.lseek(file, place, os.SEEK_SET)
            os.write(file, _SLOT.pack(self.key, count, _checksum(self.key, count)))
        finally:
            os.close(file)


def _find(slots: bytes, key: bytes) -> int | None:
    place = slots.find(key)
    while place >= 0 and (place % _SLOT.size or place + _SLOT.size > len(slots)):
        place = slots.find(key, place + 1)
    return None if place < 0 else place


def _checksum(key: bytes, count: int) -> int:
    return zlib.crc32(key + count.to_bytes(8, "little"))
