"""One row of a map, before it is written and after it is read; and its value or error as bytes.

What is decoded is the same value of the same type, or it raises.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from pydantic import BaseModel, ValidationError

from SimpleLLMFunc import errors
from SimpleLLMFunc.base.parsing import RepairLevel
from SimpleLLMFunc.base.run import Answer
from SimpleLLMFunc.base.schemas import OutputSpec
from SimpleLLMFunc.errors import CheckpointError, ProviderError, ResponseParseError, RunError, SimpleLLMFuncError
from SimpleLLMFunc.logger import mask_known, redact, redact_head
from SimpleLLMFunc.storage import plain_text
from SimpleLLMFunc.type import NO_USAGE, Usage

_JSON: Final = json.JSONEncoder(separators=(",", ":"))
_PLAIN: Final = b"p"
_DUMPED: Final = b"d"
_TEXT: Final = b"t"

_KEPT_FACTS = (
    *("model", "status", "request_id", "tries", "body", "limit", "retry_after", "kind", "reason", "head", "partial"),
    *("violations", "text", "unit", "spent", "needed", "tool", "field", "seconds", "func_name", "trace_id", "row"),
    *("finish_reason", "output_mode", "message", "problem", "param", "code"),
)
"""Attributes of an error that the file keeps; the conversation is not among them."""

_LONGEST_TEXT: Final = 100_000
"""Characters of a text in an error: to look for secrets in ten megabytes takes a second, for each row that fails."""

_LONGEST_LIST: Final = 1_000
_LONGEST_ITEM: Final = 1_000


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


def cells_of(
    record: Record, number: int, version: int, at: float, output: OutputSpec | None, repair: RepairLevel
) -> tuple[Any, ...]:
    """Return the cells of a row in the order of its table; the checksum is the last of them."""
    if record.answer is None:
        assert record.failure is not None, "a row has a value or an error"
        data = encode_error(record.failure)
    else:
        assert output is not None, "rows are written for a function"
        data = encode_answer(record.answer, output, repair)
    given = encode_given(record.given)
    row = (number, record.key, version, record.error_name, data, encode_usage(record.usage), given, at)
    return (*row, checksum(row))


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


# --- as bytes --------------------------------------------------------------------------------------------


def encode_answer(answer: Answer[Any], output: OutputSpec, repair: RepairLevel) -> bytes:
    """Return bytes from which `decode_value` makes the value again.

    What pydantic writes is not always what it reads as the same (a date in ``date | str``, fields left out, NaN): then
    the model's own answer is kept, which was read as this value.
    """
    if answer.encoded is not None:
        return answer.encoded
    value = answer.value
    if value is None or (type(value) in {str, int, bool} and output.return_type is type(value)):
        return _PLAIN + _ascii(value)
    if (dumped := _dumped(value, output)) is not None:
        return _DUMPED + mask_known(dumped.decode()).encode()
    return _TEXT + _ascii([answer.mode, repair, answer.text])


def _dumped(value: Any, output: OutputSpec) -> bytes | None:
    """Return the value as JSON if that reads as the very same one."""
    try:
        dumped = output.adapter.dump_json(value, by_alias=True, round_trip=True, warnings="error")
        again = output.adapter.validate_json(dumped)
        is_same = bool(again == value) and _is_made_of_the_same(again, value)
    except Exception:  # noqa: BLE001 - the user's own validators and serializers run here; the text is kept instead
        return None
    return dumped if is_same else None


def _is_made_of_the_same(one: Any, other: Any) -> bool:
    """Whether two values that are equal look the same all through: 1 and True do not, nor "red" and Color.RED."""
    kind = type(one)
    if kind is not type(other):
        return False
    if kind is list or kind is tuple:
        return all(map(_is_made_of_the_same, one, other))
    if kind is dict:
        return _is_made_of_the_same(list(one), list(other)) and _is_made_of_the_same([*one.values()], [*other.values()])
    if issubclass(kind, BaseModel):  # its text may leave out a field
        return _is_made_of_the_same(dict(one), dict(other))
    return repr(one) == repr(other)


def decode_value(data: bytes, output: OutputSpec) -> Any:
    """Return the value again.

    Raises:
        ValueError: the data is not what `encode_answer` wrote, or the type reads it no more.
    """
    kind, body = data[:1], data[1:]
    if kind == _PLAIN:
        return json.loads(body.decode())  # of bytes it would find out the encoding first
    if kind == _DUMPED:
        try:
            return output.adapter.validate_json(body)
        except ValidationError as error:
            raise ValueError(f"the type does not take it any more: {error}") from error
    if kind != _TEXT:
        raise ValueError(f"unknown kind {kind!r}")
    mode, repair, text = json.loads(body.decode())
    return output.parse(text, repair, mode=mode).value


def encode_error(error: Exception) -> bytes:
    """Return bytes from which `decode_error` makes an error of the same class, its secrets masked, its texts cut."""
    if not isinstance(error, SimpleLLMFuncError):
        return _ascii(["RunError", [redact_head(f"{type(error).__name__}: {error}", _LONGEST_TEXT)], {}])
    facts = {
        name: _bounded(value)
        for name in _KEPT_FACTS
        if (value := vars(error).get(name)) is not None and isinstance(value, (str, int, float, list))
    }
    if error.downgrades:
        facts["downgrades"] = _bounded(list(error.downgrades))
    args = [arg if isinstance(arg, (int, float, type(None))) else _bounded(str(arg)) for arg in error.args[:-1]]
    return redact(_ascii([type(error).__name__, args, facts]).decode()).encode()


def _bounded(value: Any, longest: int = _LONGEST_TEXT) -> Any:
    if isinstance(value, str):
        return value if len(value) <= longest else redact_head(value, longest)
    if isinstance(value, (list, tuple)):
        return [_bounded(each, _LONGEST_ITEM) for each in value[:_LONGEST_LIST]]
    return value


def asks_again(error: str | None, retry_errors: bool | None) -> bool:
    """Say whether a row that ended so is asked again.

    Args:
        error: name of its class, None for a value.
        retry_errors: True for all, False for none; None for what another try may change: failures of the service and
            of the run, not an answer that did not fit.
    """
    if error is None or retry_errors is not None:
        return error is not None and bool(retry_errors)
    return issubclass(_class_of(error), (ProviderError, RunError))


def _class_of(name: str) -> type[SimpleLLMFuncError]:
    cls = getattr(errors, name, None)
    return cls if isinstance(cls, type) and issubclass(cls, SimpleLLMFuncError) else RunError


def decode_error(data: bytes, usage: Usage) -> SimpleLLMFuncError:
    """Return the error again.

    Raises:
        ValueError: the data is not what `encode_error` wrote.
    """
    name, args, facts = json.loads(data)
    cls = _class_of(name)
    if cls is ResponseParseError:
        facts = {"violations": [], "expected_type": None, **facts}
    facts |= {name: [tuple(each) for each in facts[name]] for name in ("violations", "downgrades") if name in facts}
    error: SimpleLLMFuncError = cls.__new__(cls, *args)  # as pickle does: the class's own arguments are facts
    vars(error).update({**facts, "usage": usage, "cost": usage.cost})
    return error


def encode_usage(usage: Usage) -> str:
    """Return a usage as text."""
    parts = [usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.reasoning_tokens, usage.cost]
    return _JSON.encode([*parts, usage.cache_write_tokens] if usage.cache_write_tokens else parts)


def decode_usage(text: str) -> Usage:
    """Return a usage again."""
    return Usage(*json.loads(text))


def encode_given(row: Any) -> bytes | None:
    """Return a row as it was given as plain data, to look at and to give back; None for None."""
    return None if row is None else mask_known(plain_text([isinstance(row, tuple), row])).encode()


def decode_given(data: bytes | None) -> Any:
    """Return a row as it was given, as plain data; None where it was not kept."""
    if data is None:
        return None
    is_tuple, row = json.loads(data)
    return tuple(row) if is_tuple else row


def _ascii(value: Any) -> bytes:
    # ASCII says every text, lone surrogates and NUL too.
    return mask_known(_JSON.encode(value)).encode()
