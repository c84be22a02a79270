"""Validation errors → the schema of the missing values, keyed by JSON Pointer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias
from urllib.parse import quote, unquote

from SimpleLLMFunc.calls.slot.places import DEFINITIONS, Places, Schema, rebuilt
from SimpleLLMFunc.calls.slot.pointer import DataPath, pointer_text

Invalid: TypeAlias = Any
"""jsonschema's ValidationError, which its types take for one whose attributes may all be unset."""

Around: TypeAlias = tuple[int, Schema | None]
"""The branch that is meant: the length of the path to its value, and the branch; the whole schema is ``(0, None)``."""

_DEFINITION: Final = re.compile(r"#/(definitions|\$defs)/([^/]+)(?:/.*)?", re.DOTALL)


def remaining_schema(
    root: dict[str, Any], errors: Sequence[Invalid], also: Mapping[DataPath, Schema] | None = None
) -> dict[str, Any]:
    """Return the schema of the values that repair the errors.

    Its properties are the pointers to what is missing or wrong, each with what the schema says about that place.
    Where one of several alternatives would do, the properties of all of them are there, and none of them is required.

    Args:
        root: the whole schema; it is not changed.
        errors: of one validation, at least one.
        also: further places, and what the schema says about them.
    """
    asking = _Asking(root)
    asking.look_at(errors, (0, None))
    asked = asking.asked
    if len(asked) > 1:
        asked.pop((), None)  # the whole data is asked for only where nothing else would help
    outermost = {
        path: schema for path, schema in asked.items() if not any(path[:length] in asked for length in range(len(path)))
    }
    outermost |= also or {}
    carrier = _Carrier(root, asking.places)
    return {
        "type": "object",
        "properties": {pointer_text(path): carrier.taken(schema) for path, schema in outermost.items()},
        "required": [pointer_text(path) for path in outermost if path in asking.required],
        **carrier.definitions,
    }


class _Asking:
    """Finds the values to ask for.

    Attributes:
        asked: the paths of these values, each with its schema.
        required: the paths that no alternative makes superfluous.
    """

    def __init__(self, root: dict[str, Any]) -> None:
        self.places = Places(root)
        self.asked: dict[DataPath, Schema] = {}
        self.required: set[DataPath] = set()

    def look_at(self, errors: Iterable[Invalid], around: Around, *, is_required: bool = True) -> None:
        """Ask for what would repair the errors.

        Args:
            errors: of one schema.
            around: whose words describe the values.
            is_required: False inside one of several alternatives.
        """
        for error in errors:
            path: DataPath = tuple(error.absolute_path)
            if error.validator in {"anyOf", "oneOf"} and isinstance(error.instance, dict | list):
                self._look_into_branches(error, path, around, is_required=is_required)
                continue
            wanted = [path]
            if error.validator in {"required", "dependencies"}:
                named = error.validator_value if error.validator == "required" else _dependent(error)
                wanted = [(*path, name) for name in named if name not in error.instance]
            for place in wanted:
                self._ask(place, around, is_required=is_required)

    def _ask(self, path: DataPath, around: Around, *, is_required: bool) -> None:
        length, branch = around
        described = None if branch is None else self.places.at(path[length:], branch)
        if described is None:
            described = self.places.at(path)
        self.asked.setdefault(path, {} if described is None else described)
        if is_required:
            self.required.add(path)

    def _look_into_branches(self, error: Invalid, path: DataPath, around: Around, *, is_required: bool) -> None:
        """Ask for what the nearest branches lack; for the value itself if no branch takes a value of its kind."""
        branches: dict[int, list[Invalid]] = {}
        for inner in error.context:
            if inner.relative_schema_path:  # else the branch is `false`, and no value fits it
                branches.setdefault(int(inner.relative_schema_path[0]), []).append(inner)
        fitting = {
            number: inside
            for number, inside in branches.items()
            if not any(not inner.path and inner.validator not in {"required", "anyOf", "oneOf"} for inner in inside)
        }
        least = min(map(_contradictions, fitting.values()), default=0)
        nearest = [number for number, inside in fitting.items() if _contradictions(inside) == least]
        if not nearest:
            self._ask(path, around, is_required=is_required)
        elif len(nearest) == 1:
            branch = error.validator_value[nearest[0]]
            self.look_at(branches[nearest[0]], (len(path), branch), is_required=is_required)
        else:
            for number in nearest:
                self.look_at(branches[number], around, is_required=False)


def _dependent(error: Invalid) -> list[str]:
    lists = [names for trigger, names in error.validator_value.items() if trigger in error.instance]
    return [name for names in lists if isinstance(names, list) for name in names]


def _contradictions(errors: Iterable[Invalid]) -> int:
    """Count the values that are there and say that another branch is meant."""
    return sum(error.validator in {"const", "enum"} or _contradictions(error.context) > 0 for error in errors)


class _Carrier:
    """Copies subschemas so that they mean the same in another document.

    A reference to a definition stays, and the definition is carried along under its name; the target of any other
    reference becomes a new definition.

    Attributes:
        definitions: that the copies need, by keyword.
    """

    def __init__(self, root: dict[str, Any], places: Places) -> None:
        self.definitions: dict[str, dict[str, Any]] = {}
        self._root = root
        self._places = places
        self._waiting: list[tuple[str, str, Schema]] = []
        self._moved: dict[str, str] = {}

    def taken(self, schema: Schema) -> Any:
        """Return a copy of a subschema."""
        copy = self._copy(schema)
        while self._waiting:
            keyword, name, target = self._waiting.pop(0)
            self.definitions[keyword][name] = self._copy(target)
        return copy

    def _copy(self, schema: Schema) -> Any:
        def followed(part: dict[str, Any]) -> dict[str, Any]:
            part.pop("$id", None)
            if isinstance(part.get("$ref"), str):
                part["$ref"] = self._carried(part["$ref"])
            return part

        if schema is self._root:
            schema = {key: value for key, value in self._root.items() if key not in {*DEFINITIONS, "$schema"}}
        return rebuilt(schema, followed)

    def _carried(self, reference: str) -> str:
        """Carry the target along, and return the reference to it."""
        if found := _DEFINITION.fullmatch(reference):
            keyword, name = found[1], unquote(found[2]).replace("~1", "/").replace("~0", "~")
            self._carry(keyword, name, self._root[keyword][name])
            return reference
        if reference not in self._moved:
            name = base = re.sub(r"[^A-Za-z0-9]+", "_", reference).strip("_") or "whole"
            number = 1
            while name in self._root.get("$defs", ()) or name in self._moved.values():
                number += 1
                name = f"{base}_{number}"
            self._moved[reference] = name
            self._carry("$defs", name, self._places.target(reference))
        return f"#/$defs/{quote(self._moved[reference])}"

    def _carry(self, keyword: str, name: str, target: Schema) -> None:
        if name not in self.definitions.setdefault(keyword, {}):
            self.definitions[keyword][name] = {}
            self._waiting.append((keyword, name, target))
