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
from itertools import count
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from SimpleLLMFunc.errors import TemplateError
from SimpleLLMFunc.type import without_surrogates

MAX_NODES: Final = 100_000
"""Values inside one value, it counted."""

MAX_DEPTH: Final = 64
"""Levels of nesting."""

_SCALARS: Final = (dt.date, dt.time, dt.timedelta, decimal.Decimal, uuid.UUID, pathlib.PurePath)


class Finished(str):
    """A text that `plain_data` leaves unchanged when it changes other texts."""

    __slots__ = ()


def plain_data(value: Any, *, name: str = "value", text: Callable[[str], str] | None = None) -> Any:
    """Return `value` as strings, numbers, booleans, None, lists and dicts with text keys, all of them new.

    Models, dataclasses and enums become their data; dates, UUIDs, decimals and paths their usual text. An object
    of any other kind is refused: a template has no business with its attributes and methods.

    Args:
        value: what to convert.
        name: what it is called in an error.
        text: applied to every text inside, those that are `Finished` excepted; keys stay.

    Raises:
        TemplateError: an object that is no data, or a value too large, too deep, or inside itself.
    """
    nodes = count(1)

    def refused(problem: str) -> TemplateError:
        return TemplateError(f"{name!r} {problem}.", field=name)

    def of(value: Any, depth: int = 0) -> Any:
        if next(nodes) > MAX_NODES:
            raise refused(f"holds more than {MAX_NODES} values. Pass less")
        try:
            value = _opened(value)
        except Exception as error:
            raise refused(f"holds a {type(value).__name__} that does not turn into data") from error
        if value is None or isinstance(value, (str, int, float)):
            return _scalar(value, None if isinstance(value, Finished) else text)
        if depth >= MAX_DEPTH:
            raise refused(f"is nested deeper than {MAX_DEPTH} levels, or holds itself")
        if isinstance(value, Mapping):
            return {key(each): of(item, depth + 1) for each, item in value.items()}
        if isinstance(value, (list, tuple, AbstractSet)):
            return [of(item, depth + 1) for item in value]
        raise refused(
            f"holds an object of type {type(value).__name__}, which is no plain data. Pass its text, or a dict of it"
        )

    def key(value: Any) -> str:
        plain = value.value if isinstance(value, Enum) else value
        if not isinstance(plain, (str, int, float, type(None), *_SCALARS)):
            raise refused(f"has a key of type {type(value).__name__}. Keys are texts")
        return without_surrogates(str.__str__(plain) if isinstance(plain, str) else str(plain))

    return of(value)


def _scalar(value: str | float | None, text: Callable[[str], str] | None) -> Any:
    if isinstance(value, str):
        plain = without_surrogates(str.__str__(value))
        return plain if text is None else text(plain)
    if value is None or isinstance(value, bool):
        return value
    return int(value) if isinstance(value, int) else float(value)


def _opened(value: Any) -> Any:
    """Return the data that an enum, a date, a model or a dataclass is; anything else as it is."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, _SCALARS):
        return str(to_jsonable_python(value, fallback=str))
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", warnings=False)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
    return value
