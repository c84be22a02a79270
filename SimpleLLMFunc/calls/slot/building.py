"""Plain keys and JSON Pointers, in any order → nested data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from SimpleLLMFunc.base.parsing import Repair
from SimpleLLMFunc.calls.slot.places import Places, kinds_of_value
from SimpleLLMFunc.calls.slot.pointer import MAX_STEPS, index_of, pointer_path, pointer_text
from SimpleLLMFunc.calls.slot.subschemas import Schema, copied
from SimpleLLMFunc.errors import CallError, cut

MAX_VALUES: Final = 100_000
"""Values in the data of one slot."""

UNKNOWN_FIELD: Final = "the schema has no such field"
NULL_UNWANTED: Final = "null where a value is wanted"
"""Why a member is left out."""


class Building:
    """Puts keys and pointers together.

    Plain keys are laid over what is there, objects member by member. Then each pointer sets its value, sorted, so that
    the order in which they were given means nothing.

    Attributes:
        dropped: pointers to places that the schema does not have, each with the reason.
    """

    def __init__(self, places: Places, root: Schema) -> None:
        self.dropped: list[Repair] = []
        self._places = places
        self._root = root

    def built(self, data: Mapping[str, Any], onto: Mapping[str, Any]) -> dict[str, Any]:
        """Return the nested data; neither argument is changed.

        Raises:
            CallError: a pointer makes no sense: below a scalar, no index into a list, a gap in a list.
        """
        plain: dict[str, Any] = {}
        pointers: dict[tuple[str, ...], Any] = {}
        for key, value in data.items():
            path = self._pointer(key, value)
            if path is None:
                plain[key] = value
            elif not self._leads_somewhere(path):
                self.dropped.append((pointer_text(path), UNKNOWN_FIELD))
            else:
                pointers[path] = value
        plain = self._without_nulls(self._root, plain, ())
        pointers = {path: value for path, value in pointers.items() if self._is_given(path, value)}
        tree: dict[str, Any] = copied(pointers.pop((), onto))
        _lay_over(tree, copied(plain))
        # Indices as numbers: each item comes after the one before it, and a value before those below it.
        for path in sorted(
            pointers, key=lambda path: [(index_of(step) is None, index_of(step) or 0, step) for step in path]
        ):
            self._set(tree, path, copied(pointers[path]))
        return tree

    # --- what is a pointer -------------------------------------------------------------------------------

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
            if not self._is_index(schema, step):
                if "object" in kinds:
                    if not self._places.knows(schema, step):
                        return False
                elif "array" in kinds:
                    raise _nonsense(path, f"{step!r} is no index, and {pointer_text(path[:number])!r} is a list")
                else:
                    what = " or ".join(sorted(kinds)) or "nothing"
                    raise _nonsense(path, f"{pointer_text(path[:number])!r} holds a value of the kind {what}")
            schema = self._member(schema, step)
        return True

    def _is_index(self, schema: Schema, step: str) -> bool:
        """Tell whether a step is an index into a list there; a field of that name goes first."""
        kinds = self._places.kinds(schema)
        if "array" not in kinds or index_of(step) is None:
            return False
        return "object" not in kinds or step not in self._places.names(schema)

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
            key = _key(node, path, number - 1)
            there = node.get(key) if isinstance(node, dict) else node[key] if key < len(node) else None
            schema = self._schema_at(above)
            if there is None or self._is_in_the_way(there, schema):
                _put(node, key, self._container(schema, path[number]), path)
            elif not isinstance(there, dict | list):
                raise _nonsense(path, f"{pointer_text(above)!r} holds {cut(repr(there), 60)}")
            node = node[key]
        _put(node, _key(node, path, len(path) - 1), value, path)

    def _is_in_the_way(self, value: Any, schema: Schema | None) -> bool:
        """Tell whether a value is of another kind than the object or list that the schema wants there."""
        kinds = frozenset[str]() if schema is None else self._places.kinds(schema)
        return not kinds.isdisjoint({"array", "object"}) and kinds_of_value(value).isdisjoint(kinds)

    def _container(self, schema: Schema | None, step: str) -> dict[str, Any] | list[Any]:
        """Return a new container for a step: the one in the schema; else a list for the index 0."""
        kinds = self._places.kinds({} if schema is None else schema)
        if schema is not None and "object" not in kinds:
            return []
        return [] if "array" in kinds and step == "0" and (schema is None or self._is_index(schema, step)) else {}


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


def _key(node: Any, path: tuple[str, ...], number: int) -> Any:
    """Return what a step is to a node: a key of an object, an index of a list."""
    step = path[number]
    index = index_of(step)
    if isinstance(node, list) and index is None:
        raise _nonsense(path, f"{step!r} is no index, and {pointer_text(path[:number])!r} is a list")
    return index if isinstance(node, list) else step


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
