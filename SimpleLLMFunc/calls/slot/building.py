"""Plain keys and JSON Pointers, in any order → nested data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

from SimpleLLMFunc.base.parsing import Repair, path_text
from SimpleLLMFunc.calls.slot.pointer import APPEND, MAX_STEPS, DataPath, index_of, pointer_path, pointer_text
from SimpleLLMFunc.calls.slot.subschemas import Places, Schema, copied, kinds_of_value
from SimpleLLMFunc.errors import CallError, cut

__all__ = ["NULL_UNWANTED", "UNKNOWN_FIELD", "Building", "checked_data"]

MAX_VALUES: Final = 100_000
"""Values in the data of one slot."""

UNKNOWN_FIELD: Final = "the schema has no such field"
NULL_UNWANTED: Final = "null where a value is wanted"
"""Why a member is left out."""


class _Items(dict[int, Any]):
    """A list under construction: its items may come in any order."""


class Building:
    """Puts keys and pointers together.

    Plain keys are laid over what is there, objects member by member; then each pointer sets its value, the shorter
    ones first, so that the order in which they were given means nothing.

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
        for path in pointers:
            self._cleared(tree, path)
        _lay_over(tree, copied(plain))
        for path in sorted(pointers, key=_order):
            self._note_replaced(plain, path, pointers[path])
            self._set(tree, path, copied(pointers[path]))
        finished: dict[str, Any] = _finished(tree, ())
        return finished

    def _note_replaced(self, plain: Mapping[str, Any], path: tuple[str, ...], value: Any) -> None:
        there: Any = plain
        for step in path:
            key: Any = index_of(step) if isinstance(there, list) else step
            if not (key in there if isinstance(there, dict) else isinstance(there, list) and _has(there, key)):
                return
            there = there[key]
        if there != value:
            where = path_text(tuple(path))
            self.receipts.append((where, f"{cut(repr(there), 60)} replaced by what stands at {pointer_text(path)!r}"))

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
        """Leave out members that are null where the schema wants a value: they must not wipe out what is there."""
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

    def _cleared(self, tree: dict[str, Any], path: tuple[str, ...]) -> None:
        """Take a value of the wrong kind, from before, out of the way of a pointer that goes below it."""
        node: Any = tree
        for number, step in enumerate(path[:-1]):
            key: Any = index_of(step) if isinstance(node, list) else step
            if not isinstance(node, dict | list) or (
                key not in node if isinstance(node, dict) else not _has(node, key)
            ):
                return
            schema = self._schema_at(path[: number + 1])
            kinds = frozenset[str]() if schema is None else self._places.kinds(schema)
            is_in_the_way = node[key] is None or kinds_of_value(node[key]).isdisjoint(kinds)
            if kinds & {"array", "object"} and is_in_the_way:
                node[key] = self._container(path[: number + 1], path[number + 1])
            node = node[key]

    def _set(self, tree: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
        node: Any = tree
        for number in range(len(path) - 1):
            key = self._key(node, path, number)
            if key not in node:
                node[key] = self._container(path[: number + 1], path[number + 1])
            elif isinstance(node[key], list):
                node[key] = _Items(enumerate(node[key]))
            elif not isinstance(node[key], dict):
                raise _nonsense(path, f"{pointer_text(path[: number + 1])!r} holds {cut(repr(node[key]), 60)}")
            node = node[key]
        node[self._key(node, path, len(path) - 1)] = value

    def _key(self, node: dict[Any, Any], path: tuple[str, ...], number: int) -> str | int:
        step = path[number]
        if not isinstance(node, _Items):
            return step
        if step == APPEND:
            # two pointers through the same new item mean one item
            return self._appended.setdefault(path[:number], max(node, default=-1) + 1)
        index = index_of(step)
        if index is None:
            raise _nonsense(path, f"{step!r} is no index, and {pointer_text(path[:number])!r} is a list")
        return index

    def _container(self, path: tuple[str, ...], step: str) -> dict[Any, Any]:
        """Return what is to hold a step, where nothing stands yet: what the schema wants, else what the steps say."""
        schema = self._schema_at(path)
        if schema is not None:
            kinds = self._places.kinds(schema)
            if "object" not in kinds or self._is_index(schema, step):
                return _Items()
            if "array" not in kinds or index_of(step) is None:
                return {}
        steps = self._steps.get(path, {step})
        indices = {0 if step == APPEND else index_of(step) for step in steps}
        return _Items() if None not in indices and 0 in indices else {}


def checked_data(data: Any, what: str) -> Mapping[str, Any]:
    """Return the data if it is an object within bounds.

    Raises:
        CallError: it is none, its keys are no texts, or it is nested too deeply or too large.
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


def _order(path: tuple[str, ...]) -> tuple[bool, int, list[tuple[int, int, str]]]:
    """Sort the shorter ones first, indices as numbers, and what appends last."""
    steps = []
    for step in path:
        index = index_of(step)
        steps.append((2, 0, "") if step == APPEND else (1, 0, step) if index is None else (0, index, ""))
    return APPEND in path, len(path), steps


def _has(items: list[Any], index: int | None) -> bool:
    return index is not None and index < len(items)


def _finished(node: Any, path: DataPath) -> Any:
    """Return the tree with its lists made, none of them with a gap."""
    if isinstance(node, _Items):
        missing = next((number for number in range(len(node)) if number not in node), None)
        if missing is not None:
            last = pointer_text((*path, max(node)))
            raise CallError(
                f"the pointer {cut(last, 100)!r} leads nowhere: the list has no item {missing} before it",
                {"pointer": last},
            )
        return [_finished(node[number], (*path, number)) for number in range(len(node))]
    if isinstance(node, dict):
        return {key: _finished(item, (*path, key)) for key, item in node.items()}
    if isinstance(node, list):
        return [_finished(item, (*path, number)) for number, item in enumerate(node)]
    return node


def _lay_over(tree: dict[str, Any], update: Mapping[str, Any]) -> None:
    for key, value in update.items():
        there = tree.get(key)
        if isinstance(there, dict) and isinstance(value, dict):
            _lay_over(there, value)
        else:
            tree[key] = value
