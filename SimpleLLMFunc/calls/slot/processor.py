"""Slot data against its schema, with the types `date` and `timestamp`: values in words, and as dates and times. Pure."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from SimpleLLMFunc.base.parsing import Repair
from SimpleLLMFunc.calls.slot.building import Building, checked_data
from SimpleLLMFunc.calls.slot.places import Places, Schema, copied, rebuilt, with_null
from SimpleLLMFunc.calls.slot.pointer import DataPath
from SimpleLLMFunc.calls.slot.remaining import remaining_schema
from SimpleLLMFunc.calls.slot.time_words import Calendar, Span
from SimpleLLMFunc.calls.zone import DEFAULT_ZONE
from SimpleLLMFunc.errors import SchemaError
from SimpleLLMFunc.logger import border, push_warning
from SimpleLLMFunc.tools.schemas import ExtraTypes, SchemaValidation, check_bounds
from SimpleLLMFunc.utils import is_number

_MAX_ERRORS: Final = 1_000
"""The most errors of one validation; the next one asks for the rest."""


@dataclass(frozen=True, slots=True)
class Converted:
    """The result of `SlotProcessor.convert`.

    Attributes:
        data: nested, as the schema wants it.
        receipts: what was converted on the way, as ``(path, what was done)``: ``("items[0].price", "number taken …")``.
        dropped: what was left out, as ``(pointer, why)``.
    """

    data: dict[str, Any]
    receipts: list[Repair] = field(default_factory=list)
    dropped: list[Repair] = field(default_factory=list)


class SlotProcessor:
    """Reads, checks and completes the data of one slot.

    The schema is Draft 7, with two further types: `date` and `timestamp` are given in words ("下周一", "May 2024") and
    become a start and an end by `process_json`. It is copied, never changed, and nothing it refers to is fetched.

    Args:
        schema: of an object.
        time_zone: of the words about time, an IANA name.
        now: the time of "today", or a function that returns it; a naive time is one of the zone. None: the clock.

    Raises:
        SchemaError: invalid, remote, endless, too large, not of an object; the text says where.
        CallError: there is no such time zone.
    """

    @border
    def __init__(
        self,
        schema: Mapping[str, Any],
        *,
        time_zone: str = DEFAULT_ZONE,
        now: dt.datetime | Callable[[], dt.datetime] | None = None,
    ) -> None:
        self._calendar = Calendar(time_zone, now)
        if not isinstance(schema, Mapping):
            raise SchemaError(f"the slot's schema must be a JSON object, not {type(schema).__name__}")
        try:
            self._validation = _validation(schema)
            self._schema: dict[str, Any] = self._validation.validator.schema
            places = Places(self._schema)
            places.check()
        except SchemaError as error:
            raise SchemaError(f"the slot's schema cannot be used: {error}") from None
        if "object" not in places.kinds(self._schema):
            raise SchemaError("the slot's schema must describe an object: give it type 'object' and properties")
        self._validator_cls = self._validation.validator_class
        self._validator = self._validation.validator

    @border
    def check_json(self, data: Mapping[str, Any], *, also: Mapping[DataPath, Schema] | None = None) -> dict[str, Any]:
        """Return {} where the data is valid, else the schema of what is missing or wrong.

        Its properties are keyed by JSON Pointer (``/items/0/price``), each described as in the schema and with the
        definitions it refers to; `convert` lays the values given for it over the data.

        Raises:
            SchemaError: the check has no end in sight.
            CallError: the data is no object, or nested too deeply.
        """
        errors = self._validation.errors(copied(checked_data(data, "the data")), limit=_MAX_ERRORS)
        return remaining_schema(self._schema, errors, also) if errors else {}

    @border
    def convert(self, data: Mapping[str, Any], onto: Mapping[str, Any] | None = None) -> Converted:
        """Return plain keys and JSON Pointers, in any order, as nested data.

        Plain objects are merged member by member, everything else is replaced; a pointer replaces what is there, an
        index one item. Then values of another kind are brought to what the schema wants where only one
        reading is possible, and members that the schema does not have are left out. Where the schema names no members
        at all, or says `additionalProperties`, it has any. Data that is valid keeps every value.

        Args:
            data: as a model or a person gave it.
            onto: the data so far, which is copied.

        Raises:
            CallError: a pointer makes no sense; or the data is no object, nested too deeply, too large.
            SchemaError: the check has no end in sight.
        """
        building = Building(Places(self._schema), self._schema)
        nested = building.built(checked_data(data, "the data"), checked_data(onto or {}, "the data so far"))
        checked_data(nested, "the data")
        made = building.repaired(nested, may_align=bool(self._validation.errors(nested, limit=1)))
        return Converted(made, building.receipts, building.dropped)

    def convert_json(self, data: Mapping[str, Any], onto: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the data of `convert`; what was left out is noted in the log. Raises as that does."""
        converted = self.convert(data, onto)
        for pointer, why in converted.dropped:
            push_warning(f"slot: {pointer} left out: {why}")
        return converted.data

    @border
    def process_json(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return a copy in which words about time have become times.

        A `date` becomes ``{"start": "2024-05-01", "end": "2024-05-31"}``, a `timestamp` the first and the last second,
        counted from 1970. A string with the format `date`, `date-time` or `timestamp` stays one string, where the words
        name one day or one moment. What cannot be read stays as it is.

        Raises:
            CallError: the data is no object, or nested too deeply.
        """
        words = copied(checked_data(data, "the data"))
        return dict(timed(self._schema, words, Places(self._schema), self._calendar))

    def add_null_to_basic_types(self) -> dict[str, Any]:
        """Return a copy of the schema in which every string, number, boolean and date may also be null."""
        return with_null(self._schema)


def _validation(schema: Mapping[str, Any]) -> SchemaValidation:
    check_bounds(schema)
    root = rebuilt(schema, _without_base)
    if "$id" in schema:
        root["$id"] = schema["$id"]
    return SchemaValidation(root, is_draft_7=True, extra_types=CUSTOM_TYPES)


def _without_base(part: dict[str, Any]) -> dict[str, Any]:
    """Take away the address of a subschema, against which its references would be resolved; a mere name stays."""
    if not str(part.get("$id", "#")).startswith("#"):
        del part["$id"]
    return part


# --- the types `date` and `timestamp` ---

_HINTS: Final = {
    "date": "A date or a range of dates, in words or as YYYY-MM-DD.",
    "timestamp": "A time or a range of times, in words or as YYYY-MM-DD HH:MM.",
}
_SECONDS: Final = re.compile(r"\d{10}")


def _is_date(value: Any) -> bool:
    if isinstance(value, dict):
        return value.keys() == {"start", "end"} and all(isinstance(part, str) for part in value.values())
    return isinstance(value, str) and bool(value.strip())


def _is_timestamp(value: Any) -> bool:
    if isinstance(value, dict):
        return value.keys() == {"start", "end"} and all(map(is_number, value.values()))
    return is_number(value) or (isinstance(value, str) and bool(value.strip()))


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
    if not isinstance(value, str) and not is_number(value):
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
        if own := [name for name in named if name in _HINTS]:
            renamed = list(dict.fromkeys("string" if name in _HINTS else name for name in named))
            part["type"] = renamed if isinstance(types, list) and len(renamed) > 1 else renamed[0]
            part["description"] = f"{part.get('description') or ''} {_HINTS[own[0]]}".strip()
        return part

    return dict(rebuilt(schema, standard))
