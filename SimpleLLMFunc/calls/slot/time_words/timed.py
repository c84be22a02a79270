"""The types `date` and `timestamp`: their values in words, and as dates and times."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from SimpleLLMFunc.calls.slot.places import Places
from SimpleLLMFunc.calls.slot.subschemas import Schema, rebuilt
from SimpleLLMFunc.calls.slot.time_words.calendar_words import Calendar, Span
from SimpleLLMFunc.tools.schemas import ExtraTypes

_HINTS: Final = {
    "date": "A date or a range of dates, in words or as YYYY-MM-DD.",
    "timestamp": "A time or a range of times, in words or as YYYY-MM-DD HH:MM.",
}
_SECONDS: Final = re.compile(r"\d{10}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_date(value: Any) -> bool:
    if isinstance(value, dict):
        return value.keys() == {"start", "end"} and all(isinstance(part, str) for part in value.values())
    return isinstance(value, str) and bool(value.strip())


def _is_timestamp(value: Any) -> bool:
    if isinstance(value, dict):
        return value.keys() == {"start", "end"} and all(map(_is_number, value.values()))
    return _is_number(value) or (isinstance(value, str) and bool(value.strip()))


CUSTOM_TYPES: Final[ExtraTypes] = (("date", _is_date), ("timestamp", _is_timestamp))
"""A text counts as given also where we cannot read it: what reads it later may know more words than we do."""


def timed(schema: Schema | None, value: Any, places: Places, calendar: Calendar) -> Any:
    """Return the value with the dates and timestamps in it read; lists and objects are copied."""
    if schema is None:
        return value
    if isinstance(value, dict):
        return {name: timed(places.member(schema, name), item, places, calendar) for name, item in value.items()}
    if isinstance(value, list):
        return [timed(places.member(schema, number), item, places, calendar) for number, item in enumerate(value)]
    if not isinstance(value, str) and not _is_number(value):
        return value
    kinds = places.kinds(schema)
    if "timestamp" in kinds and isinstance(value, str) and _SECONDS.fullmatch(value.strip()):
        value = int(value)
    if not isinstance(value, str):
        return {"start": value, "end": value} if "timestamp" in kinds else value
    if kinds.isdisjoint({"date", "timestamp"}):
        formats = {part.get("format") for part in places.parts(schema)} - {None}
        span = calendar.read(value) if len(formats) == 1 else None
        return value if span is None else _one_text(value, formats.pop(), span)
    span = calendar.read(value)
    if span is None:
        return value
    return dict(zip(("start", "end"), span.seconds if "timestamp" in kinds else span.days, strict=True))


def _one_text(text: str, wanted: Any, span: Span) -> str:
    """Return the words as one text of a format, if they name one day or one moment; else the words."""
    first, last = span.days
    if wanted == "date" and first == last:
        return first
    if wanted in {"date-time", "timestamp"} and span.start == span.last:
        return span.start.isoformat() if wanted == "date-time" else str(span.seconds[0])
    return text


def in_standard_words(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the schema in which our own types are strings that say what they hold."""

    def standard(part: dict[str, Any]) -> dict[str, Any]:
        types = part.get("type")
        named = types if isinstance(types, list) else [types]
        own = [name for name in named if name in _HINTS]
        if own:
            renamed = list(dict.fromkeys("string" if name in _HINTS else name for name in named))
            part["type"] = renamed if isinstance(types, list) and len(renamed) > 1 else renamed[0]
            part["description"] = f"{part.get('description') or ''} {_HINTS[own[0]]}".strip()
        return part

    return dict(rebuilt(schema, standard))
