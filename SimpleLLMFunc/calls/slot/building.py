"""Plain keys and JSON Pointers, in any order → nested data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

from SimpleLLMFunc.base.parsing import Repair, path_text
from SimpleLLMFunc.calls.slot.places import Places, kinds_of_value
from SimpleLLMFunc.calls.slot.pointer import ABSENT, APPEND, MAX_STEPS, index_of, pointer_path, pointer_text, value_at
from SimpleLLMFunc.calls.slot.subschemas import Schema, copied
from SimpleLLMFunc.errors import CallError, cut

MAX_VALUES: Final = 100_000
"""Values in the data of one slot."""

UNKNOWN_FIELD: Final = "the schema has no such field"
NULL_UNWANTED: Final = "null where a value is wanted"
"""Why a member is left out."""


class Building:
    """Puts keys and pointers together.

    Plain keys are laid over what is there, objects member by member; then each pointer sets its value, in an order of
    our own, so that the order in which they were given means nothing.

    Attributes:
        receipts: what was read in another way than it was written.
        dropped: pointers to places that the schema does not have, each with the reason.
    """

    def __init__(self, places: Places, root: Schema) -> None:
        self.receipts: list[Repair] = []
        self.dropped: list[Repair] = []
        self._places = places
        self._root = root
        self._steps: dict[tuple[str, ...], set[str]] = {}
        self._appended: dict[tuple[str, ...], int] = {}

    def built(self, data: Mapping[str, Any], onto: Mapping[str, Any]) -> dict[str, Any]:
        """Return the nested data; neither argument is changed.

        Raises:
            CallError: a pointer makes no sense: below a scalar, no index into a list, a gap in a list.
        """
        plain, pointers = self._sorted_out(data)
        plain = self._without_nulls(self._root, plain, ())
        pointers = {path: value for path, value in pointers.items() if self._is_given(path, value)}
        if () in pointers:
            onto = _whole(pointers.pop(()))
        for path in pointers:
            for length in range(len(path)):
                self._steps.setdefault(path[:length], set()).add(path[length])
        tree: dict[str, Any] = copied(onto)
        _lay_over(tree, copied(plain))
        # Indices as numbers, so that each item comes after the one before it, and a value before what goes below it.
        for path in sorted(pointers, key=lambda path: [_order(step) for step in path]):
            replaced = value_at(plain, path)
            if replaced is not ABSENT and replaced != pointers[path]:
                self._note_replaced(path, replaced, path)
            self._set(tree, path, copied(pointers[path]))
        return tree

    def _note_replaced(self, where: tuple[str, ...], value: Any, path: tuple[str, ...]) -> None:
        said = f"{cut(repr(value), 60)} replaced by what stands at {pointer_text(path)!r}"
        self.receipts.append((path_text(where), said))

    # --- what is a pointer -------------------------------------------------------------------------------

    def _sorted_out(self, data: Mapping[str, Any]) -> tuple[dict[str, Any], dict[tuple[str, ...], Any]]:
        plain: dict[str, Any] = {}
        pointers: dict[tuple[str, ...], Any] = {}
        for key, value in data.items():
            path = self._path(key, value)
            if path is None:
                plain[key] = value
            elif self._leads_somewhere(path):
                if path in pointers and pointers[path] != value:
                    raise CallError(f"{pointer_text(path)!r} is given twice with different values", {"pointer": key})
                pointers[path] = value
            else:
                self.dropped.append((pointer_text(path), UNKNOWN_FIELD))
        return plain, pointers

    def _path(self, key: str, value: Any) -> tuple[str, ...] | None:
        """Return the steps of a pointer; None for a plain key, also where the schema has a field of that very name."""
        if not key.startswith("/"):
            if not key:
                is_field = "" in self._places.names(self._root) or not isinstance(value, Mapping)
                return None if is_field and self._places.knows(self._root, key) else ()
            if "/" not in key or self._places.knows(self._root, key):
                return None
            path = pointer_path(unquote(key[1:]) if key.startswith("#/") else f"/{key}")
            if not self._is_known(path):
                return None
            self.receipts.append(
                (path_text(path), f"the key {cut(key, 60)!r} read as the pointer {pointer_text(path)!r}")
            )
            return path
        if key in self._places.names(self._root) and not self._is_known(pointer_path(key)):
            return None
        return pointer_path(key)

    def _is_known(self, path: tuple[str, ...]) -> bool:
        try:
            return self._leads_somewhere(path)
        except CallError:
            return False

    def _leads_somewhere(self, path: tuple[str, ...]) -> bool:
        """Tell whether the schema has such a place.

        Raises:
            CallError: there can be no such place: it is below a scalar, or no index into a list.
        """
        schema: Schema | None = self._root
        for number, step in enumerate(path):
            if schema is None:
                return True
            kinds = self._places.kinds(schema)
            if "object" in kinds and not self._is_index(schema, step):
                if not self._places.knows(schema, step):
                    return False
            elif "array" in kinds and not self._is_index(schema, step):
                raise _nonsense(path, f"{step!r} is no index, and {pointer_text(path[:number])!r} is a list")
            elif kinds.isdisjoint({"array", "object"}):
                what = " or ".join(sorted(kinds)) or "nothing"
                raise _nonsense(path, f"{pointer_text(path[:number])!r} holds a value of the kind {what}")
            schema = self._member(schema, step)
        return True

    def _is_index(self, schema: Schema, step: str) -> bool:
        """Tell whether a step is an index into a list there; a field of that name goes first."""
        if "array" not in self._places.kinds(schema) or (step != APPEND and index_of(step) is None):
            return False
        return "object" not in self._places.kinds(schema) or step not in self._places.names(schema)

    def _member(self, schema: Schema, step: str) -> Schema | None:
        return self._places.member(schema, index_of(step) or 0 if self._is_index(schema, step) else step)

    def _schema_at(self, path: tuple[str, ...]) -> Schema | None:
        schema: Schema | None = self._root
        for step in path:
            schema = None if schema is None else self._member(schema, step)
        return schema

    # --- what is no value --------------------------------------------------------------------------------

    def _without_nulls(self, schema: Schema | None, value: Any, path: tuple[str, ...]) -> Any:
        """Leave out members that are null where the schema wants a value: they must not overwrite the data."""
        if schema is None or not isinstance(value, dict):
            return value
        kept: dict[str, Any] = {}
        for name, item in value.items():
            if item is not None or self._is_given((*path, name), item):
                kept[name] = self._without_nulls(self._places.member(schema, name), item, (*path, name))
        return kept

    def _is_given(self, path: tuple[str, ...], value: Any) -> bool:
        schema = self._schema_at(path)
        if value is not None or schema is None or "null" in self._places.kinds(schema):
            return True
        # how a model says "unknown" where every basic value was offered as null too
        self.dropped.append((pointer_text(path), NULL_UNWANTED))
        return False

    # --- setting values ----------------------------------------------------------------------------------

    def _set(self, tree: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
        node: Any = tree
        for number in range(1, len(path)):
            above = path[:number]
            key = self._key(node, path, number - 1)
            is_there = key < len(node) if isinstance(node, list) else key in node
            if not is_there or self._is_in_the_way(node[key], above):
                if is_there and node[key] is not None:
                    self._note_replaced(above, node[key], path)
                _put(node, key, self._container(above, path[number]), path)
            elif not isinstance(node[key], dict | list):
                raise _nonsense(path, f"{pointer_text(above)!r} holds {cut(repr(node[key]), 60)}")
            node = node[key]
        _put(node, self._key(node, path, len(path) - 1), value, path)

    def _is_in_the_way(self, value: Any, path: tuple[str, ...]) -> bool:
        """Tell whether a value is of another kind than the object or list that the schema wants there."""
        schema = self._schema_at(path)
        kinds = frozenset[str]() if schema is None else self._places.kinds(schema)
        return not kinds.isdisjoint({"array", "object"}) and (value is None or kinds_of_value(value).isdisjoint(kinds))

    def _key(self, node: Any, path: tuple[str, ...], number: int) -> Any:
        step = path[number]
        if not isinstance(node, list):
            return step
        if step == APPEND:
            # two pointers through the same new item mean one item
            return self._appended.setdefault(path[:number], len(node))
        index = index_of(step)
        if index is None:
            raise _nonsense(path, f"{step!r} is no index, and {pointer_text(path[:number])!r} is a list")
        return index

    def _container(self, path: tuple[str, ...], step: str) -> dict[str, Any] | list[Any]:
        """Return a new container for a step: the one in the schema, else the one that the steps imply."""
        schema = self._schema_at(path)
        if schema is not None:
            kinds = self._places.kinds(schema)
            if "object" not in kinds or self._is_index(schema, step):
                return []
            if "array" not in kinds or index_of(step) is None:
                return {}
        steps = self._steps.get(path, {step})
        indices = {0 if step == APPEND else index_of(step) for step in steps}
        return [] if None not in indices and 0 in indices else {}


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


def _whole(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise CallError("the empty pointer is the whole data, which must be an object", {"pointer": ""})
    return value


def _nonsense(path: tuple[str, ...], why: str) -> CallError:
    pointer = pointer_text(path)
    return CallError(f"the pointer {cut(pointer, 100)!r} leads nowhere: {why}", {"pointer": pointer})


def _order(step: str) -> tuple[int, int, str]:
    index = index_of(step)
    return (2, 0, "") if step == APPEND else (1, 0, step) if index is None else (0, index, "")


def _put(node: Any, key: Any, value: Any, path: tuple[str, ...]) -> None:
    """Set a member of an object or an item of a list, which may be the one behind the last."""
    if isinstance(node, list) and key >= len(node):
        if key > len(node):
            raise _nonsense(path, f"the list has no item {len(node)} before it")
        node.append(value)
    else:
        node[key] = value


def _lay_over(tree: dict[str, Any], update: Mapping[str, Any]) -> None:
    for key, value in update.items():
        there = tree.get(key)
        if isinstance(there, dict) and isinstance(value, dict):
            _lay_over(there, value)
        else:
            tree[key] = value
