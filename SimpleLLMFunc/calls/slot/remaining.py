"""Validation errors → the schema of the missing values, keyed by JSON Pointer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from urllib.parse import quote, unquote

from SimpleLLMFunc.calls.slot.places import Choice, Places
from SimpleLLMFunc.calls.slot.pointer import DataPath, pointer_text
from SimpleLLMFunc.calls.slot.subschemas import DEFINITIONS, Schema, rebuilt

Invalid: TypeAlias = Any
"""jsonschema's ValidationError, which its types take for one whose attributes may all be unset."""

Asked: TypeAlias = dict[DataPath, Schema]
"""What is to be given: the places, each with what describes it."""

_MAX_ITEMS: Final = 16
"""Missing items of a list that are asked for one by one; beyond that the whole list is."""
_MAX_ALTERNATIVES: Final = 8

_DEFINITION: Final = re.compile(r"#/(definitions|\$defs)/([^/]+)(?:/.*)?", re.DOTALL)


@dataclass(slots=True)
class _Wishes:
    """What would mend an error.

    Attributes:
        must: all of it.
        either: of each of these, one alternative.
        whole: objects that hold too much: the user has to give them again.
    """

    must: Asked = field(default_factory=dict)
    either: list[list[Asked]] = field(default_factory=list)
    whole: list[DataPath] = field(default_factory=list)

    def add(self, other: _Wishes) -> None:
        self.must = {**other.must, **self.must}
        self.either += other.either
        self.whole += other.whole


def remaining_schema(root: dict[str, Any], errors: Sequence[Invalid]) -> dict[str, Any]:
    """Return the schema of the values that repair the errors.

    Its properties are the pointers to what is missing or wrong, each with what the schema says about that place; in
    the order in which the schema names them. Where one of several alternatives would do, all their properties are
    there, and `anyOf` says which of them belong together.

    Args:
        root: the whole schema; it is not changed.
        errors: of one validation, at least one.
    """
    return _Asking(root).remaining(errors)


class _Asking:
    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._places = Places(root)

    def remaining(self, errors: Sequence[Invalid]) -> dict[str, Any]:
        wishes = self._wishes(errors, {})
        if not wishes.must and not wishes.either:
            wishes.must = {path: self._described(path, {}) for path in wishes.whole}
        must = _outermost(wishes.must)
        clauses = [clause for clause in (_open(clause, must) for clause in wishes.either) if clause]
        asked = dict(must)
        for clause in clauses:
            for alternative in clause:
                for path, schema in alternative.items():
                    asked.setdefault(path, schema)
        carrier = _Carrier(self._root, self._places)
        properties = {pointer_text(path): carrier.taken(asked[path]) for path in self._in_order(asked)}
        found: dict[str, Any] = {
            "type": "object",
            "properties": properties,
            "required": [pointer_text(path) for path in self._in_order(must)],
        }
        choices = [
            {"anyOf": [{"required": [pointer_text(path) for path in self._in_order(part)]} for part in clause]}
            for clause in clauses
        ]
        found |= choices[0] if len(choices) == 1 else {"allOf": choices} if choices else {}
        return found | carrier.definitions

    # --- what an error asks for --------------------------------------------------------------------------

    def _wishes(self, errors: Iterable[Invalid], chosen: dict[Choice, int]) -> _Wishes:
        wishes = _Wishes()
        for error in errors:
            wishes.add(self._wish(error, chosen))
        return wishes

    def _wish(self, error: Invalid, chosen: dict[Choice, int]) -> _Wishes:
        path: DataPath = tuple(error.absolute_path)
        match error.validator:
            case "required":
                return self._named(path, [name for name in error.validator_value if name not in error.instance], chosen)
            case "dependencies":
                return self._named(path, _dependent(error), chosen)
            case "minProperties":
                return self._more_properties(error, path, chosen)
            case "minItems":
                return self._more_items(error, path, chosen)
            case "contains":
                return self._item(error, path, chosen)
            case "anyOf" | "oneOf":
                return self._branch(error, path, chosen)
            case "additionalProperties" | "propertyNames" | "maxProperties" | None:
                # None is a schema that is false: a value must not be there; the path is that of its holder
                return _Wishes(whole=[path])
            case _:
                return self._given_anew(path, chosen)

    def _named(self, path: DataPath, names: Iterable[str], chosen: dict[Choice, int]) -> _Wishes:
        return _Wishes({(*path, name): self._described((*path, name), chosen) for name in names})

    def _given_anew(self, path: DataPath, chosen: dict[Choice, int]) -> _Wishes:
        """Ask for the value itself; the whole data is asked for only where nothing else would help."""
        return _Wishes({path: self._described(path, chosen)}) if path else _Wishes(whole=[path])

    def _more_properties(self, error: Invalid, path: DataPath, chosen: dict[Choice, int]) -> _Wishes:
        lacking = error.validator_value - len(error.instance)
        schema = self._schema_at(path, chosen)
        names = (
            []
            if schema is None
            else [name for name in Places(self._root, chosen).names(schema) if name not in error.instance]
        )
        if lacking == len(names):
            return self._named(path, names, chosen)
        if lacking == 1 and 1 < len(names) <= _MAX_ALTERNATIVES:
            return _Wishes(either=[[self._named(path, [name], chosen).must for name in names]])
        return self._given_anew(path, chosen)

    def _more_items(self, error: Invalid, path: DataPath, chosen: dict[Choice, int]) -> _Wishes:
        there = len(error.instance)
        missing = range(there, error.validator_value)
        if not there or len(missing) > _MAX_ITEMS:
            return self._given_anew(path, chosen)
        return _Wishes({(*path, number): self._described((*path, number), chosen) for number in missing})

    def _item(self, error: Invalid, path: DataPath, chosen: dict[Choice, int]) -> _Wishes:
        there = len(error.instance)
        schema = error.schema if isinstance(error.schema, dict) else {}
        if not there or there >= schema.get("maxItems", there + 1):
            return self._given_anew(path, chosen)
        where = (*path, there)
        described = self._described(where, chosen)
        wanted = error.validator_value
        return _Wishes({where: {"allOf": [described, wanted]} if described else wanted})

    # --- one of several branches -------------------------------------------------------------------------

    def _branch(self, error: Invalid, path: DataPath, chosen: dict[Choice, int]) -> _Wishes:
        """Ask for what the nearest branches lack; a scalar, or a value of a kind that no branch takes, is asked for again."""
        branches: dict[int, list[Invalid]] = {}
        for inner in error.context or ():
            if not inner.relative_schema_path:
                continue  # of a branch that is false, which nothing mends
            branches.setdefault(int(inner.relative_schema_path[0]), []).append(inner)
        if not isinstance(error.instance, dict | list):
            return self._given_anew(path, chosen)
        ranked: list[tuple[tuple[int, int], Asked]] = []
        for number, inner_errors in branches.items():
            if any(not inner.path and inner.validator in {"type", None} for inner in inner_errors):
                continue
            wishes = self._wishes(inner_errors, {**chosen, (id(error.schema), str(error.validator)): number})
            asked = wishes.must
            for clause in wishes.either:
                asked = {**asked, **clause[0]}  # alternatives inside alternatives: the first of them
            if asked and path not in asked:
                ranked.append(((_contradictions(inner_errors), len(wishes.whole)), _outermost(asked)))
        best = min((rank for rank, _ in ranked), default=None)
        nearest = [asked for rank, asked in ranked if rank == best]
        if not nearest or len(nearest) > _MAX_ALTERNATIVES:
            return self._given_anew(path, chosen)
        told_apart = self._joined(nearest, chosen)
        return _Wishes(told_apart[0]) if len(told_apart) == 1 else _Wishes(either=[told_apart])

    def _joined(self, alternatives: list[Asked], chosen: dict[Choice, int]) -> list[Asked]:
        """Describe a place that several alternatives ask for by the union of their schemas."""
        for number, alternative in enumerate(alternatives):
            for place in alternative:
                others = [other[place] for other in alternatives[number + 1 :] if place in other]
                if any(other != alternative[place] for other in others):
                    described = self._described(place, chosen)
                    for part in alternatives:
                        part.update({place: described} if place in part else {})
        different = {frozenset(alternative): alternative for alternative in reversed(alternatives)}
        return list(reversed(different.values()))

    # --- places ------------------------------------------------------------------------------------------

    def _schema_at(self, path: DataPath, chosen: dict[Choice, int]) -> Schema | None:
        return (Places(self._root, chosen) if chosen else self._places).at(path)

    def _described(self, path: DataPath, chosen: dict[Choice, int]) -> Schema:
        found = self._schema_at(path, chosen)
        return {} if found is None else found

    def _in_order(self, paths: Iterable[DataPath]) -> list[DataPath]:
        return sorted(paths, key=self._position)

    def _position(self, path: DataPath) -> list[tuple[int, str]]:
        schema: Schema | None = self._root
        position: list[tuple[int, str]] = []
        for step in path:
            if isinstance(step, int):
                position.append((step, ""))
            else:
                names = {} if schema is None else self._places.names(schema)
                position.append((names.get(step, len(names)), step))
            schema = None if schema is None else self._places.member(schema, step)
        return position


def _dependent(error: Invalid) -> list[str]:
    wanted = [
        name
        for trigger, names in error.validator_value.items()
        if trigger in error.instance and isinstance(names, list)
        for name in names
    ]
    return [name for name in dict.fromkeys(wanted) if name not in error.instance]


def _contradictions(errors: Iterable[Invalid]) -> int:
    """Count the values that are there and say that another branch is meant."""
    return sum(error.validator in {"const", "enum"} or _contradictions(error.context or ()) > 0 for error in errors)


def _outermost(asked: Asked) -> Asked:
    """Leave out places inside of other places that are asked for."""
    return {
        path: schema for path, schema in asked.items() if not any(path[:length] in asked for length in range(len(path)))
    }


def _open(clause: list[Asked], must: Asked) -> list[Asked]:
    """Return what a clause asks for in addition to `must`; empty if `must` is enough."""
    left = [
        {path: schema for path, schema in part.items() if not any(path[:n] in must for n in range(len(path) + 1))}
        for part in clause
    ]
    return left if all(left) else []


class _Carrier:
    """Copies subschemas so that they mean the same in another document.

    What refers to a definition goes on to do so, and the definition is carried along under its name; what refers to
    another place of the schema, or to the whole of it, gets a new definition.

    Attributes:
        definitions: that the copies need, by keyword.
    """

    def __init__(self, root: dict[str, Any], places: Places) -> None:
        self.definitions: dict[str, dict[str, Any]] = {}
        self._root = root
        self._places = places
        self._moved: dict[str, str] = {}

    def taken(self, schema: Schema) -> Any:
        """Return a copy of a subschema."""
        waiting: list[tuple[str, str, Schema]] = []
        copy = self._copy(schema, waiting)
        while waiting:
            keyword, name, target = waiting.pop(0)
            self.definitions.setdefault(keyword, {})[name] = self._copy(target, waiting)
        return copy

    def _copy(self, schema: Schema, waiting: list[tuple[str, str, Schema]]) -> Any:
        def followed(part: dict[str, Any]) -> dict[str, Any]:
            part.pop("$id", None)
            if isinstance(part.get("$ref"), str):
                part["$ref"] = self._carried(part["$ref"], waiting)
            return part

        if schema is self._root:
            schema = {key: value for key, value in self._root.items() if key not in {*DEFINITIONS, "$schema"}}
        return rebuilt(schema, followed)

    def _carried(self, reference: str, waiting: list[tuple[str, str, Schema]]) -> str:
        found = _DEFINITION.fullmatch(reference)
        if found:
            keyword, name = found[1], unquote(found[2]).replace("~1", "/").replace("~0", "~")
            if name not in self.definitions.get(keyword, {}):
                self.definitions.setdefault(keyword, {})[name] = {}
                waiting.append((keyword, name, self._root[keyword][name]))
            return reference
        if reference not in self._moved:
            name = self._moved[reference] = self._new_name(reference)
            target = self._places.target(reference)
            self.definitions.setdefault("$defs", {})[name] = {}
            waiting.append(("$defs", name, target))
        return f"#/$defs/{quote(self._moved[reference])}"

    def _new_name(self, reference: str) -> str:
        base = re.sub(r"[^A-Za-z0-9]+", "_", reference.removeprefix("#")).strip("_") or "whole"
        name, number = base, 1
        while name in self._root.get("$defs", {}) or name in self.definitions.get("$defs", {}):
            number += 1
            name = f"{base}_{number}"
        return name
