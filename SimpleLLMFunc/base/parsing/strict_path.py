"""The short way for an answer that is strict JSON of the type: pydantic reads it, a few looks make sure of it.

pydantic alone would take the last of two equal keys, 1e999 as infinity, true for ``Literal[1]``, bare digits as
seconds since 1970, a Decimal through a float, and drop a key written in another case. Each look below is for one of
these; where one fails the long way decides.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeAlias

from SimpleLLMFunc.base.parsing.alignment import (
    AnyShape,
    ChoiceShape,
    LeafShape,
    ListShape,
    MappingShape,
    ObjectShape,
    OpaqueShape,
    Ref,
    Shape,
    TaggedShape,
    TupleShape,
    UnionShape,
    resolved,
)
from SimpleLLMFunc.base.parsing.json_node import object_of

Look: TypeAlias = Callable[[Any], bool]
"""Tells whether JSON data surely is what pydantic's strict reading makes of it."""

_DATED: Final = re.compile(r"\d{4}-\d{2}-\d{2}|\d{2}:\d{2}|[+-]?P|\d+ ?d")
_DATE_KINDS: Final = frozenset({"date", "datetime", "time", "timedelta"})


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


class _LongFloat(float):
    """A number whose digits a float cannot hold."""


def _checked_float(text: str) -> float:
    value = float(text)
    return value if repr(value) == text else _LongFloat(value)


_QUICK: Final = json.JSONDecoder(parse_float=_checked_float, parse_constant=_no_constant, object_pairs_hook=object_of)


def decode_quickly(text: str) -> Any:
    """Read strict JSON into Python data.

    Raises:
        ValueError: it is not strict JSON, a key stands twice with different values, or a number is too long.
        RecursionError: it is nested too deep.
    """
    return _QUICK.decode(text)


def look_at(shape: Shape) -> Look:
    """Return the look for a shape."""
    return _Looks().of(shape)


def _always(node: Any) -> bool:  # noqa: ARG001 - a look
    return True


def _never(node: Any) -> bool:  # noqa: ARG001 - a look
    return False


def _is_finite(node: Any) -> bool:
    return not isinstance(node, float) or math.isfinite(node)


def _is_exact(node: Any) -> bool:
    return not isinstance(node, _LongFloat)


def _is_no_bool(node: Any) -> bool:
    return node is not True and node is not False


def _is_dated(node: Any) -> bool:
    return not isinstance(node, str) or _DATED.match(node) is not None


def _is_bool_or_text(node: Any) -> bool:
    return isinstance(node, bool | str) or node is None


class _Looks:
    def __init__(self) -> None:
        self._made: dict[int, Look] = {}

    def of(self, shape: Shape) -> Look:
        if isinstance(shape, Ref):
            return self._ref(shape)
        match shape:
            case LeafShape():
                return self._leaf(shape)
            case ChoiceShape():
                numbers = any(
                    isinstance(wire, int | float) and not isinstance(wire, bool) for _, wire, _ in shape.members
                )
                has_bools = any(isinstance(wire, bool) for _, wire, _ in shape.members)
                return _never if numbers and has_bools else _is_no_bool if numbers else _is_bool_or_text
            case AnyShape():
                return _is_deeply_finite
            case OpaqueShape():
                return _is_deeply_finite
            case ListShape():
                return self._list(shape)
            case TupleShape():
                return self._tuple(shape)
            case MappingShape():
                return self._mapping(shape)
            case ObjectShape():
                return self._object(shape)
            case UnionShape():
                return self._union(shape)
            case TaggedShape():
                return self._tagged(shape)

    def _ref(self, shape: Ref) -> Look:
        key = id(shape)
        if key not in self._made:
            target: list[Look] = []

            def later(node: Any) -> bool:
                return target[0](node)

            self._made[key] = later
            target.append(self.of(resolved(shape)))
        return self._made[key]

    def _leaf(self, shape: LeafShape) -> Look:
        if shape.kind == "float":
            return _is_finite
        if shape.kind == "decimal":
            return _is_exact
        return _is_dated if shape.kind in _DATE_KINDS else _always

    def _list(self, shape: ListShape) -> Look:
        item = self.of(shape.item)
        if item is _always:
            return _always
        return lambda node: not isinstance(node, list) or all(map(item, node))

    def _tuple(self, shape: TupleShape) -> Look:
        items = [self.of(item) for item in shape.items]
        return lambda node: isinstance(node, list) and all(look(part) for look, part in zip(items, node, strict=False))

    def _mapping(self, shape: MappingShape) -> Look:
        key, value = self.of(shape.key), self.of(shape.value)
        if key is _always and value is _always:
            return _always
        return lambda node: isinstance(node, dict) and all(map(key, node)) and all(map(value, node.values()))

    def _object(self, shape: ObjectShape) -> Look:
        if shape.is_hooked or shape.has_paths or any(len(part.names) > 2 for part in shape.fields):
            return _never
        fields = {part.key: self.of(part.shape) for part in shape.fields}
        # a name that only we know (the own name of an aliased field) counts as unknown here
        find = fields.get

        def look(node: Any) -> bool:
            if type(node) is not dict:
                return False
            for key, value in node.items():
                part = find(key)
                if part is None or (part is not _always and not part(value)):
                    return False
            return True

        return look

    def _union(self, shape: UnionShape) -> Look:
        """Look at the one branch of the node's kind; where two could be meant the long way weighs them."""
        targets = [(resolved(choice), self.of(choice)) for choice in shape.choices]
        objects = [look for target, look in targets if isinstance(target, ObjectShape | MappingShape | TaggedShape)]
        lists = [look for target, look in targets if isinstance(target, ListShape | TupleShape)]
        scalars = [target for target, _ in targets if isinstance(target, LeafShape | ChoiceShape)]
        leaves = [
            look for target, look in targets if isinstance(target, LeafShape | ChoiceShape) and look is not _always
        ]
        if len(objects) + len(lists) + len(scalars) != len(targets) or len(objects) > 1 or len(lists) > 1:
            return _never
        kinds = {target.kind for target in scalars if isinstance(target, LeafShape)}
        has_bool = "bool" in kinds
        choices = [look for target, look in targets if isinstance(target, ChoiceShape)]

        def look(node: Any) -> bool:
            if node is None:
                return True
            if isinstance(node, dict):
                return bool(objects) and objects[0](node)
            if isinstance(node, list):
                return bool(lists) and lists[0](node)
            if isinstance(node, bool):
                return has_bool and not choices
            return (
                all(part(node) for part in leaves)
                if isinstance(node, str)
                else not choices and _is_finite(node) and _is_exact(node)
            )

        return look

    def _tagged(self, shape: TaggedShape) -> Look:
        choices = {tag: self.of(choice) for tag, choice in shape.choices.items()}
        if len(shape.tags) != 1:
            return _never
        name = shape.tags[0]

        def look(node: Any) -> bool:
            tag = node.get(name) if isinstance(node, dict) else None
            chosen = choices.get(tag) if isinstance(tag, str) else None
            return chosen is not None and chosen(node)

        return look


def _is_deeply_finite(node: Any) -> bool:
    if isinstance(node, list):
        return all(map(_is_deeply_finite, node))
    if isinstance(node, dict):
        return all(map(_is_deeply_finite, node.values()))
    return _is_finite(node)
