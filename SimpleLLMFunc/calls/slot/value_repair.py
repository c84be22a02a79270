"""Repair values that do not fit a schema, by the aligner of typed answers; each repair is recorded."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from SimpleLLMFunc.base.parsing import Repair, decode_strictly, path_text
from SimpleLLMFunc.base.parsing.alignment import (
    Aligner,
    AnyShape,
    ChoiceShape,
    Fit,
    LeafKind,
    LeafShape,
    ListShape,
    MappingShape,
    Shape,
    UnionShape,
)
from SimpleLLMFunc.calls.slot.building import NULL_UNWANTED, UNKNOWN_FIELD
from SimpleLLMFunc.calls.slot.places import ALL_KINDS, Places, kinds_of_value
from SimpleLLMFunc.calls.slot.pointer import DataPath, pointer_text
from SimpleLLMFunc.calls.slot.subschemas import Schema

_LEAVES: Final[dict[str, LeafKind]] = {
    "null": "none", "boolean": "bool", "integer": "int", "number": "float", "string": "str",
}  # fmt: skip
_LARGEST_EXACT: Final = 2**53


class ValueRepair:
    """One pass over nested data.

    Attributes:
        receipts: what was converted, as ``(path, what was done)``.
        dropped: what was left out, as ``(pointer, why)``.

    Args:
        places: of the schema.
        may_align: convert values; else only members that the schema does not know are left out.
    """

    def __init__(self, places: Places, *, may_align: bool) -> None:
        self.receipts: list[Repair] = []
        self.dropped: list[Repair] = []
        self._places = places
        self._may_align = may_align
        self._aligner = Aligner(may_coerce=True)

    def mended(self, schema: Schema | None, value: Any, path: DataPath = ()) -> Any:
        """Return the value, or what it was meant as, without the members that the schema does not know."""
        if schema is None:
            return value
        if self._may_align and not self._is_of_kind(schema, value):
            value = self._aligned(schema, value, path)
        if isinstance(value, dict):
            return self._object(schema, value, path)
        if isinstance(value, list):
            return [
                self.mended(self._places.member(schema, number), item, (*path, number))
                for number, item in enumerate(value)
            ]
        return value

    def _is_of_kind(self, schema: Schema, value: Any) -> bool:
        if kinds_of_value(value).isdisjoint(self._places.kinds(schema)):
            return False
        choices = None if isinstance(value, dict | list) else self._places.choices(schema)
        return choices is None or any(_is_same(choice, value) for choice in choices)

    # --- objects -----------------------------------------------------------------------------------------

    def _object(self, schema: Schema, value: dict[str, Any], path: DataPath) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        names, is_free = set(self._places.names(schema)), self._places.is_free(schema)
        if self._may_align and not is_free:
            value = self._named(names, value, path)
        for name, item in value.items():
            where = (*path, name)
            inner = self._places.member(schema, name)
            if inner is None and name not in names and not is_free:
                self.dropped.append((pointer_text(where), UNKNOWN_FIELD))
            elif item is None and inner is not None and "null" not in self._places.kinds(inner):
                self.dropped.append((pointer_text(where), NULL_UNWANTED))
            else:
                kept[name] = self.mended(inner, item, where)
        return kept

    def _named(self, names: set[str], value: dict[str, Any], path: DataPath) -> dict[str, Any]:
        """Return the members under the names of the schema, where case, spaces and hyphens do not count."""
        folded: dict[str, list[str]] = {}
        for known in names:
            folded.setdefault(_folded(known), []).append(known)
        meant = {name: name for name in value}
        for name in value:
            like = folded.get(_folded(name), [])
            if name not in names and len(like) == 1:
                meant[name] = like[0]
        if len(set(meant.values())) < len(value):  # two values for one field: the choice would be a guess
            return value
        for name, known in meant.items():
            if name != known:
                self.receipts.append((path_text((*path, known)), f"key {name!r} read as {known!r}"))
        return {known: value[name] for name, known in meant.items()}

    # --- values of another kind --------------------------------------------------------------------------

    def _aligned(self, schema: Schema, value: Any, path: DataPath) -> Any:
        """Return what the value was meant as, the value itself where that is not certain."""
        try:
            node = decode_strictly(json.dumps(value))
            found = self._aligner.align(self._shape(schema), node, path)
        except (TypeError, ValueError, RecursionError):  # not JSON, or nested too deeply: nothing to convert
            return value
        if not isinstance(found, Fit):
            return value
        self.receipts += found.repairs
        result = found.value
        if isinstance(result, float) and result.is_integer() and abs(result) < _LARGEST_EXACT:
            return int(result)
        return result

    def _shape(self, schema: Schema, *, is_item: bool = False) -> Shape:
        """Return the shape of a value, and of the items of a list; `mended` looks at what is deeper inside."""
        choices = self._places.choices(schema)
        if choices is not None:
            scalars = [value for value in choices if not isinstance(value, dict | list)]
            return ChoiceShape([(value, value, "") for value in scalars], "one of " + ", ".join(map(repr, scalars)))
        kinds = self._places.kinds(schema)
        if kinds >= ALL_KINDS:
            return AnyShape()
        leaves = [kind for kind in _LEAVES if kind in kinds and not (kind == "integer" and "number" in kinds)]
        shapes: list[Shape] = [LeafShape(_LEAVES[kind], kind) for kind in leaves]
        if "array" in kinds:
            item = None if is_item else self._places.member(schema, 0)
            shapes.append(ListShape(AnyShape() if item is None else self._shape(item, is_item=True)))
        if "object" in kinds and kinds.isdisjoint({"date", "timestamp"}):
            shapes.append(MappingShape(AnyShape(), AnyShape()))
        return shapes[0] if len(shapes) == 1 else UnionShape(shapes)


def _folded(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold())


def _is_same(left: Any, right: Any) -> bool:
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)
