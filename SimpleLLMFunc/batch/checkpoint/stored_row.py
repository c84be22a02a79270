"""One row of a map, before it is written and after it is read."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from SimpleLLMFunc.base.run import Answer
from SimpleLLMFunc.base.schemas import OutputSpec
from SimpleLLMFunc.batch.checkpoint.codec import decode_error, decode_given, decode_usage, decode_value
from SimpleLLMFunc.errors import CheckpointError
from SimpleLLMFunc.type import NO_USAGE, Usage


@dataclass(slots=True)
class Record:
    """A row that was asked, before it is written.

    Attributes:
        answer: None where there is no value.
        failure: why not.
        id: its number in the file; 0 for a new one.
        row: as it was given; None where it need not be kept.
    """

    key: bytes
    answer: Answer[Any] | None
    failure: Exception | None
    usage: Usage
    id: int = 0
    row: Any = None

    is_sound = True

    @property
    def error_name(self) -> str | None:
        """The name of the error's class; None where there is a value."""
        return None if self.failure is None else type(self.failure).__name__

    def value(self, place: int) -> Any:
        """Return the value."""
        assert self.answer is not None, f"row {place} has a value"
        return self.answer.value

    def error(self, place: int) -> Exception | None:  # noqa: ARG002 - as `StoredRow`
        """Return what went wrong."""
        return self.failure

    def given(self) -> Any:
        """Return the row as it was given."""
        return self.row


@dataclass(frozen=True, slots=True)
class Found:
    """A row of the file, found by its key.

    Attributes:
        error: name of the error, None where there is a value.
        is_sound: its checksum fits.
    """

    id: int
    error: str | None
    is_sound: bool


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A row of the file, decoded on access."""

    key: bytes
    is_sound: bool
    _is_error: bool
    _usage: str
    _answer: bytes
    _given: bytes | None
    _output: OutputSpec

    @property
    def usage(self) -> Usage:
        """What it took."""
        return decode_usage(self._usage) if self.is_sound else NO_USAGE

    def value(self, place: int) -> Any:
        """Return the value, of the function's return type.

        Raises:
            CheckpointError: the kept bytes cannot be read as that type.
        """
        try:
            return decode_value(self._answer, self._output)
        except (ValueError, TypeError, KeyError, IndexError) as error:
            raise CheckpointError(
                f"its stored value cannot be read as {self._output.name}: {error}", row=place
            ) from error

    def error(self, place: int) -> Exception | None:
        """Return what went wrong, None where there is a value."""
        if not self._is_error:
            return None
        try:
            return decode_error(self._answer, self.usage)
        except (ValueError, TypeError) as error:
            raise CheckpointError(f"its stored error cannot be read: {error}", row=place) from error

    def given(self) -> Any:
        """Return the row as it was given, as plain data."""
        return decode_given(self._given)


def checksum(row: Sequence[Any]) -> bytes:
    """Return the checksum of the other cells of a row, in the order of its table."""
    number, key, version, error, answer, usage, given, at = row
    head = f"{number}|{version}|{error}|{usage}|{at!r}|{len(answer)}|{-1 if given is None else len(given)}|"
    text = head.encode("utf-8", "surrogateescape") + key + answer + (given or b"")
    return hashlib.blake2b(text, digest_size=8).digest()


def is_sound(row: Sequence[Any]) -> bool:
    """Say whether the cells of a row are as they were written; its checksum is the last of them."""
    try:
        return bool(checksum(row[:-1]) == row[-1])
    except (TypeError, ValueError, AttributeError):  # a cell of another type than was written
        return False
