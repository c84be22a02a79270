"""One JSON node → one scalar of the wanted kind, or None where it is not one."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
import re
import uuid
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from pydantic import ConfigDict, TypeAdapter, ValidationError

from SimpleLLMFunc.base.parsing.alignment import scalars
from SimpleLLMFunc.base.parsing.alignment.shape import LeafShape, Shape, leaf_kinds
from SimpleLLMFunc.base.parsing.json_node import MAX_DIGITS, Bare, Node, Num, quoted
from SimpleLLMFunc.errors import cut
from SimpleLLMFunc.type import without_surrogates


class LeafFit(NamedTuple):
    """A scalar, or a member of an enum, that fits.

    Attributes:
        value: of the leaf's Python type.
        cost: 0 if the text was exactly this value; the more it took to read it, the higher.
        note: what was done, empty where nothing was.
    """

    value: Any
    cost: float = 0
    note: str = ""


EXACT_STRING: Final = 3
PROSE: Final = 4

_INTEGER: Final = re.compile(r"-?\d+")
_DECIMAL: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,6})?")
_NULLS: Final = frozenset({"null", "None", "Null", "NULL"})
_MIDNIGHT: Final = re.compile(r"\s*(\d{4}-\d{2}-\d{2})[T ]00:00(?::00(?:\.0+)?)?Z?\s*")


def fit_leaf(shape: LeafShape, node: Node, *, may_coerce: bool) -> LeafFit | None:
    """Return how the node fits the leaf; None if it does not, or only by a step that is not allowed."""
    text = node if isinstance(node, str) else node.text if isinstance(node, Bare) else None
    match shape.kind:
        case "str":
            return _str(node, may_coerce)
        case "int" | "float" | "decimal":
            return _number(shape, node, text, may_coerce)
        case "bool":
            return LeafFit(node) if isinstance(node, bool) else _bool(text) if may_coerce and text is not None else None
        case "none":
            return LeafFit(None) if node is None else _null(node, text) if may_coerce and text is not None else None
        case _:
            return _TEXTS[shape.kind].fit(node, text, may_coerce) if text is not None else None


def _str(node: Node, may_coerce: bool) -> LeafFit | None:
    if isinstance(node, str):
        clean = without_surrogates(node)
        return LeafFit(clean, 0, "" if clean == node else "half a character replaced")
    if isinstance(node, Bare):
        return LeafFit(without_surrogates(node.text), 2, "text without quotes")
    if isinstance(node, Num) and may_coerce and node.text[-1].isdigit():
        return LeafFit(node.text, EXACT_STRING, f"the number {cut(node.text, 41)} kept as its digits")
    return None


# --- numbers ---------------------------------------------------------------------------------------------


def _number(shape: LeafShape, node: Node, text: str | None, may_coerce: bool) -> LeafFit | None:
    """Read a number, or the one number in a text."""
    if isinstance(node, Num):
        return _literal(shape, node.text, may_coerce)
    if shape.kind == "decimal" and isinstance(node, str) and (value := _decimal(node)) is not None:
        return LeafFit(value)  # digits in quotes are one of the two forms that the JSON schema of a Decimal offers
    literal = scalars.read_number(text) if text is not None and may_coerce else None
    found = _literal(shape, literal, may_coerce) if literal is not None else None
    if text is None or found is None:
        return None
    cost = EXACT_STRING if text.strip() == literal else PROSE
    return LeafFit(found.value, cost + found.cost % 1, f"number taken from {quoted(text)}")


def _literal(shape: LeafShape, literal: str, may_coerce: bool) -> LeafFit | None:
    """Read the literal of a JSON number."""
    if shape.kind == "int":
        return _int(literal, may_coerce)
    if shape.kind == "decimal":
        exact = _decimal(literal)
        return None if exact is None else LeafFit(exact, 0.2)
    value = float(literal)
    if not math.isfinite(value):
        # NaN and Infinity only as the model wrote them, never by overflow
        return LeafFit(value) if shape.allows_nan and literal.lstrip("-").isalpha() else None
    return LeafFit(value, 0.1 if _INTEGER.fullmatch(literal) else 0)


def _int(literal: str, may_coerce: bool) -> LeafFit | None:
    if _INTEGER.fullmatch(literal):
        return LeafFit(int(literal)) if len(literal) <= MAX_DIGITS else None
    number = _decimal(literal) if may_coerce else None
    if number is None or re.fullmatch(r"-?[1-9]\d{0,2}\.000", literal):
        return None  # 1.000 is one, or a thousand as much of Europe writes it
    # 1e999999 would fill the memory
    if number.adjusted() > 30 or number != number.to_integral_value():
        return None
    return LeafFit(int(number), 2, f"{cut(literal, 41)} read as a whole number")


def _decimal(literal: str) -> decimal.Decimal | None:
    return decimal.Decimal(literal) if _DECIMAL.fullmatch(literal) and len(literal) <= MAX_DIGITS else None


# --- words -----------------------------------------------------------------------------------------------


def _bool(text: str) -> LeafFit | None:
    value = scalars.read_bool(text)
    if value is None:
        return None
    cost = EXACT_STRING if text.strip().isalpha() else PROSE
    return LeafFit(value, cost, f"{str(value).lower()} taken from {quoted(text)}")


def digit_truth(shape: Shape, node: Node) -> LeafFit | None:
    """Return what `1` and `0`, or these digits in quotes, say where nothing but true, false and null is wanted.

    pydantic's lax rule, for a node that is the whole answer: inside of an object or a list a number stays a number.
    """
    kinds = set(leaf_kinds(shape))
    digit = (node if isinstance(node, str) else node.text if isinstance(node, Num | Bare) else "").strip()
    if "bool" not in kinds or not kinds <= {"bool", "none"} or digit not in {"0", "1"}:
        return None
    return LeafFit(digit == "1", EXACT_STRING, f"{'true' if digit == '1' else 'false'} taken from {digit}")


def _null(node: Node, text: str) -> LeafFit | None:
    if text.strip() not in _NULLS:
        return None
    return LeafFit(None, 1 if isinstance(node, Bare) else EXACT_STRING, f"null taken from {quoted(text)}")


# --- dates and the like, which JSON writes as strings ------------------------------------------------------------------------------


class _Text:
    """Reads a kind of value that JSON writes as a string: exactly as pydantic does, or the only one in a text.

    Args:
        kind: the Python type.
        guard: what the string must look like: pydantic would read bare digits as seconds since 1970.
        find: gives the only one in a text, as a value or in pydantic's form.
    """

    def __init__(self, kind: Any, guard: str, find: Callable[[str], Any]) -> None:
        self._adapter: TypeAdapter[Any] = TypeAdapter(kind, config=ConfigDict(defer_build=True))
        self._name = kind.__name__
        self._guard = re.compile(guard)
        self._find = find

    def fit(self, node: Node, text: str, may_coerce: bool) -> LeafFit | None:
        value = self._exactly(text)
        if value is not None:
            return LeafFit(value, 1 if isinstance(node, Bare) else 0)
        found = self._find(text) if may_coerce else None
        if isinstance(found, str):
            found = self._exactly(found)
        return None if found is None else LeafFit(found, PROSE, f"{self._name} taken from {quoted(text)}")

    def _exactly(self, text: str) -> Any:
        if not self._guard.match(text):
            return None
        try:
            return self._adapter.validate_json(json.dumps(text), strict=True)
        except ValidationError:
            return None


def _find_date(text: str) -> str | None:
    midnight = _MIDNIGHT.fullmatch(text)
    return midnight.group(1) if midnight else scalars.read_date(text)


_TEXTS: Final = {
    "date": _Text(dt.date, r"\d{4}-\d{2}-\d{2}$", _find_date),
    "datetime": _Text(dt.datetime, r"\d{4}-\d{2}-\d{2}[Tt _]\d", scalars.read_datetime),
    "time": _Text(dt.time, r"\d{2}:\d{2}(?!-|.*[+-](?:1[5-9]|2))", scalars.read_time),
    "timedelta": _Text(dt.timedelta, r"[+-]?(?:P|\d+:\d+:\d|\d+ ?d)", scalars.read_duration),
    "uuid": _Text(uuid.UUID, r"[{]?[0-9a-fA-F-]{32}|urn:", scalars.read_uuid),
}
