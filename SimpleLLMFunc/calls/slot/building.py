"""Plain keys and JSON Pointers, in any order → nested data, and values that do not fit the schema repaired."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

from SimpleLLMFunc.base.parsing import Repair, decode_strictly
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
    folded_key,
)
from SimpleLLMFunc.calls.slot.places import ALL_KINDS, Places, Schema, copied, kinds_of_value
from SimpleLLMFunc.calls.slot.pointer import (
    ABSENT,
    MAX_STEPS,
    DataPath,
    in_order,
    index_of,
    pointer_path,
    pointer_text,
    value_at,
)
from SimpleLLMFunc.errors import CallError, cut
from SimpleLLMFunc.utils import path_text

MAX_VALUES: Final = 100_000
"""Values in the data of one slot."""

UNKNOWN_FIELD: Final = "the schema has no such field"
NULL_UNWANTED: Final = "null where a value is wanted"
"""Why a member is left out."""

_LEAVES: Final[dict[str, LeafKind]] = {
    "null": "none", "boolean": "bool", "integer": "int", "number": "float", "string": "str",
}  # fmt: skip
_LARGEST_EXACT: Final = 2**53
_ALIGNER: Final = Aligner(may_coerce=True)


class Building:
    """Puts keys and pointers together, and repairs values that do not fit the schema.

    Plain keys are laid over what is there, objects member by member. Then each pointer sets its value, sorted, so that
    the order in which they were given means nothing.

    Attributes:
        receipts: what was converted, as ``(path, what was done)``.
        dropped: what was left out, as ``(pointer, why)``.
    """

    def __init__(self, places: Places, root: Schema) -> None:
        self.receipts: list[Repair] = []
        self.dropped: list[Repair] = []
        self._places = places
        self._root = root
        self._ends: dict[tuple[str, ...], int] = {}

    def built(self, data: Mapping[str, Any], onto: Mapping[str, Any]) -> dict[str, Any]:
        """Return the nested data; neither argument is changed.

        Raises:
            CallError: a pointer makes no sense: below a scalar, no index into a list, a gap in a list.
        """
        paths = {key: self._pointer(key, value) for key, value in data.items()}
        pointers = {path: data[key] for key, path in paths.items() if path is not None}
        self._ends.clear()
        tree: dict[str, Any] = copied(pointers.pop((), onto))
        self._lay_over(tree, copied({key: data[key] for key, path in paths.items() if path is None}), self._root, ())
        for path in sorted(pointers, key=in_order):
            if (keys := self._keys(path, tree, pointers[path])) is not None:
                _set(tree, keys, copied(pointers[path]), path)
        return tree

    def _pointer(self, key: str, value: Any) -> tuple[str, ...] | None:
        """Return the steps of a pointer; None for a plain key, also where the schema has a field of that very name.

        The empty pointer is the whole data.
        """
        is_field = key in self._places.names(self._root)
        if not key:
            return () if not is_field and isinstance(value, Mapping) else None
        if not key.startswith("/"):
            return None
        path = pointer_path(key)
        return None if is_field and not self._places.knows(self._root, path[0]) else path

    def _lay_over(
        self, tree: dict[str, Any], update: dict[str, Any], schema: Schema | None, path: tuple[str, ...]
    ) -> None:
        """Set the members, but for those that are null where the schema wants a value: they must not overwrite the data."""
        for name, item in update.items():
            inner = None if schema is None else self._places.member(schema, name)
            if not self._is_given(inner, item, (*path, name)):
                continue
            if isinstance(item, dict):
                there = tree.get(name)
                tree[name] = there if isinstance(there, dict) else {}
                self._lay_over(tree[name], item, inner, (*path, name))
            else:
                tree[name] = item

    def _is_given(self, schema: Schema | None, value: Any, path: DataPath) -> bool:
        if value is not None or schema is None or "null" in self._places.kinds(schema):
            return True
        # how a model says "unknown" where every basic value was offered as null too
        self.dropped.append((pointer_text(path), NULL_UNWANTED))
        return False

    def _keys(self, path: tuple[str, ...], tree: Any, value: Any) -> DataPath | None:
        """Return the steps of a pointer with its indices as numbers; None, with a note, where no value is to be set.

        Raises:
            CallError: there can be no such place: it is below a scalar, or no index into a list.
        """
        schema: Schema | None = self._root
        node = tree
        keys: list[str | int] = []
        for number in range(len(path)):
            kinds = ALL_KINDS if schema is None else self._places.kinds(schema)
            key = self._key(path, number, node, schema, kinds)
            self._check_holder(path, number, node, kinds)
            if isinstance(key, str) and schema is not None and not self._places.knows(schema, key):
                self.dropped.append((pointer_text(path), UNKNOWN_FIELD))
                return None
            keys.append(key)
            schema = None if schema is None else self._places.member(schema, key)
            found = value_at(node, [str(key)])
            node = None if found is ABSENT else found
        return tuple(keys) if self._is_given(schema, value, path) else None

    def _key(
        self, path: tuple[str, ...], number: int, node: Any, schema: Schema | None, kinds: frozenset[str]
    ) -> str | int:
        """Return a step as the name of a member, or as an index where the value that it leads into is a list."""
        step = path[number]
        if "array" not in kinds:
            return step
        if "object" in kinds and not isinstance(node, list):
            # Both are allowed, and no list is there: 0 begins one, unless it is the name of a field.
            is_field = schema is not None and "0" in self._places.names(schema)
            return step if isinstance(node, dict) or is_field or step != "0" else 0
        if step == "-":  # the item behind the last, says RFC 6901; all pointers through it mean the same one
            return self._ends.setdefault(path[:number], len(node) if isinstance(node, list) else 0)
        index = index_of(step)
        if index is None:
            raise _nonsense(path, f"{step!r} is no index, and {pointer_text(path[:number])!r} is a list")
        return index

    def _check_holder(self, path: tuple[str, ...], number: int, node: Any, kinds: frozenset[str]) -> None:
        above = pointer_text(path[:number])
        if kinds.isdisjoint({"array", "object"}):
            raise _nonsense(path, f"{above!r} holds a value of the kind {' or '.join(sorted(kinds)) or 'nothing'}")
        if node is not None and not isinstance(node, dict | list) and not kinds_of_value(node).isdisjoint(kinds):
            raise _nonsense(path, f"{above!r} holds {cut(repr(node), 60)}")

    # --- values that do not fit ---

    def repaired(self, nested: dict[str, Any], *, may_align: bool) -> dict[str, Any]:
        """Return the data without the members that the schema does not know, and with `may_align` its values converted."""
        self._may_align = may_align
        return dict(self._repaired(self._root, nested, ()))

    def _repaired(self, schema: Schema | None, value: Any, path: DataPath) -> Any:
        if schema is None:
            return value
        if self._may_align and not self._is_of_kind(schema, value):
            value = self._aligned(schema, value, path)
        if isinstance(value, dict):
            return self._object(schema, value, path)
        if isinstance(value, list):
            return [
                self._repaired(self._places.member(schema, number), item, (*path, number))
                for number, item in enumerate(value)
            ]
        return value

    def _is_of_kind(self, schema: Schema, value: Any) -> bool:
        if kinds_of_value(value).isdisjoint(self._places.kinds(schema)):
            return False
        choices = None if isinstance(value, dict | list) else self._places.choices(schema)
        is_bool = isinstance(value, bool)  # True is no 1
        return choices is None or any(each == value and isinstance(each, bool) == is_bool for each in choices)

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
            elif self._is_given(inner, item, where):
                kept[name] = self._repaired(inner, item, where)
        return kept

    def _named(self, names: set[str], value: dict[str, Any], path: DataPath) -> dict[str, Any]:
        """Return the members under the names of the schema, where case, spaces and hyphens do not count."""
        folded: dict[str, list[str]] = {}
        for known in names:
            folded.setdefault(folded_key(known), []).append(known)
        meant = {name: name for name in value}
        for name in value:
            like = folded.get(folded_key(name), [])
            if name not in names and len(like) == 1:
                meant[name] = like[0]
        if len(set(meant.values())) < len(value):  # two values for one field: the choice would be a guess
            return value
        for name, known in meant.items():
            if name != known:
                self.receipts.append((path_text((*path, known)), f"key {name!r} read as {known!r}"))
        return {known: value[name] for name, known in meant.items()}

    def _aligned(self, schema: Schema, value: Any, path: DataPath) -> Any:
        """Return what the value was meant as, the value itself where that is not certain."""
        try:
            found = _ALIGNER.align(self._shape(schema), decode_strictly(json.dumps(value)), path)
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
        """Return the shape of a value, and of the items of a list; `repaired` looks at what is deeper inside."""
        if (choices := self._places.choices(schema)) is not None:
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


def checked_data(data: Any, what: str) -> Mapping[str, Any]:
    """Return the data if it is an object within bounds.

    Raises:
        CallError: it is no object, its keys are no texts, or it is nested too deeply or too large.
    """
    if not isinstance(data, Mapping):
        raise CallError(f"{what} must be an object, not {type(data).__name__}")
    waiting: list[tuple[Any, int]] = [(data, 0)]
    count = 0
    while waiting:
        value, depth = waiting.pop()
        count += 1
        if depth > MAX_STEPS or count > MAX_VALUES:
            raise CallError(f"{what} is too large: at most {MAX_STEPS} levels and {MAX_VALUES} values")
        if isinstance(value, Mapping):
            for key, item in value.items():
                if not isinstance(key, str):
                    raise CallError(f"{what} holds a key that is no text: {cut(repr(key), 60)}")
                waiting.append((item, depth + 1))
        elif isinstance(value, list):
            waiting.extend((item, depth + 1) for item in value)
    return data


def _nonsense(path: tuple[str, ...], why: str) -> CallError:
    pointer = pointer_text(path)
    return CallError(f"the pointer {cut(pointer, 100)!r} leads nowhere: {why}", {"pointer": pointer})


def _set(tree: dict[str, Any], keys: DataPath, value: Any, path: tuple[str, ...]) -> None:
    """Set a value; a container that is missing, or of another kind than its key wants, is made new."""
    node: Any = tree
    for key, below in pairwise(keys):
        there = value_at(node, [str(key)])
        kind = list if isinstance(below, int) else dict
        if not isinstance(there, kind):
            there = kind()
            _put(node, key, there, path)
        node = there
    _put(node, keys[-1], value, path)


def _put(node: Any, key: Any, value: Any, path: tuple[str, ...]) -> None:
    """Set a member of an object or an item of a list, which may be the one behind the last."""
    if isinstance(node, list) and key >= len(node):
        if key > len(node):
            raise _nonsense(path, f"the list has no item {len(node)} before it")
        node.append(value)
    else:
        node[key] = value
