"""Any value as plain JSON data, within limits: what a prompt template is given to work with."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import pathlib
import uuid
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from SimpleLLMFunc.errors import TemplateError
from SimpleLLMFunc.type import without_surrogates

__all__ = ["MAX_CHARS", "MAX_DEPTH", "MAX_NODES", "Finished", "plain_data"]

MAX_CHARS: Final = 4 << 20
"""Characters of all texts inside one value."""

MAX_NODES: Final = 100_000
"""Values inside one value, it and its keys counted."""

MAX_DEPTH: Final = 64
"""Levels of nesting."""

_SCALARS = (
    dt.date,
    dt.time,
    dt.timedelta,
    decimal.Decimal,
    uuid.UUID,
    pathlib.PurePath,
)


class Finished(str):
    """A text that `plain_data` leaves as it is, whatever is done to the other texts."""

    __slots__ = ()


def plain_data(value: Any, *, name: str = "value", text: Callable[[str], str] | None = None) -> Any:
    """Return `value` as strings, numbers, booleans, None, lists and dicts with text keys, all of them new.

    Models, dataclasses and enums become their data; dates, UUIDs, decimals and paths their usual text. An object
    of any other kind is refused: its attributes and methods are nobody's business here.

    Args:
        value: what to convert.
        name: what it is called in an error.
        text: applied to every text inside, those that are `Finished` excepted; keys stay.

    Raises:
        TemplateError: an object that is no data, or a value too large, too deep, or inside itself.
    """
    return _Conversion(name, text).of(value, 0)


class _Conversion:
    def __init__(self, name: str, text: Callable[[str], str] | None) -> None:
        self._name = name
        self._text = text
        self._nodes = MAX_NODES
        self._chars = MAX_CHARS

    def of(self, value: Any, depth: int) -> Any:
        self._count(1)
        if isinstance(value, Enum):
            value = value.value
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self._of_text(value)
        if isinstance(value, int):
            return int(value)
        if isinstance(value, float):
            return float(value)
        if depth >= MAX_DEPTH:
            raise self._refused(f"is nested deeper than {MAX_DEPTH} levels, or holds itself")
        return self._of_container(value, depth + 1)

    def _of_container(self, value: Any, depth: int) -> Any:
        if isinstance(value, BaseModel):
            value = self._of_model(value)
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            value = {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
        if isinstance(value, Mapping):
            return {self._key(key): self.of(item, depth) for key, item in value.items()}
        if isinstance(value, (list, tuple, AbstractSet)):
            return [self.of(item, depth) for item in value]
        if isinstance(value, _SCALARS):
            return self._of_text(str(to_jsonable_python(value, fallback=str)))
        raise self._refused(
            f"holds an object of type {type(value).__name__}, which is no plain data. Pass its text, or a dict of it"
        )

    def _of_text(self, value: str) -> str:
        self._chars -= len(value)
        if self._chars < 0:
            raise self._refused(f"holds more than {MAX_CHARS} characters. Pass less")
        text = without_surrogates(str.__str__(value))
        return text if self._text is None or isinstance(value, Finished) else self._text(text)

    def _of_model(self, value: BaseModel) -> Any:
        try:
            return value.model_dump(mode="json", warnings=False)
        except (PydanticSerializationError, ValidationError, ValueError, TypeError, RecursionError) as error:
            raise self._refused(f"holds a {type(value).__name__} that does not turn into data") from error

    def _key(self, key: Any) -> str:
        self._count(1)
        plain = key.value if isinstance(key, Enum) else key
        if isinstance(plain, str):
            self._chars -= len(plain)
            return without_surrogates(str.__str__(plain))
        if plain is None or isinstance(plain, (bool, int, float, *_SCALARS)):
            return str(plain)
        raise self._refused(f"has a key of type {type(key).__name__}. Keys are texts")

    def _count(self, nodes: int) -> None:
        self._nodes -= nodes
        if self._nodes < 0:
            raise self._refused(f"holds more than {MAX_NODES} values. Pass less")

    def _refused(self, problem: str) -> TemplateError:
        return TemplateError(f"{self._name!r} {problem}.", field=self._name)
