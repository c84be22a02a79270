"""One row of a map, before it is written and after it is read."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from SimpleLLMFunc.base.run import Answer
from SimpleLLMFunc.base.schemas import OutputSpec
from SimpleLLMFunc.batch.checkpoint.codec import decode_error, decode_given, decode_usage, decode_value
from SimpleLLMFunc.errors import CheckpointError
from SimpleLLMFunc.type import NO_USAGE, Usage


@dataclass(slots=True, eq=False)
class Record:
    """A row under way in a map, and what came of it.

    Attributes:
        place: in the input, from 0.
        given: as it was given; None where it need not be kept.
        also: places of the rows that are the same.
        id: its number among the finished rows; 0 for a new one.
        answer: None where there is no value.
        failure: why not; of a row that cannot be asked from the beginning.
    """

    place: int
    key: bytes
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    given: Any = None
    also: list[int] = field(default_factory=list)
    id: int = 0
    answer: Answer[Any] | None = None
    failure: Exception | None = None
    usage: Usage = NO_USAGE

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


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A row of the file, decoded on access.

    Attributes:
        error_name: the name of the error's class; None where there is a value.
        is_sound: its checksum fits.
    """

    id: int
    key: bytes
    error_name: str | None
    _answer: bytes
    _usage: str
    _given: bytes | None
    is_sound: bool
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
        if self.error_name is None:
            return None
        try:
            return decode_error(self._answer, self.usage)
        except (ValueError, TypeError) as error:
            raise CheckpointError(f"its stored error cannot be read: {error}", row=place) from error

    @property
    def given(self) -> Any:
        """The row as it was given, as plain data."""
        return decode_given(self._given)


Finished: TypeAlias = Record | StoredRow


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
