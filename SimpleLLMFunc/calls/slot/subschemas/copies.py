"""Subschemas taken out of a schema, with the definitions they refer to."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import quote, unquote

from SimpleLLMFunc.calls.slot.subschemas.members import DEFINITIONS, Schema, rebuilt
from SimpleLLMFunc.calls.slot.subschemas.walk import Places

__all__ = ["Carrier"]

_DEFINITION: Final = re.compile(r"#/(definitions|\$defs)/([^/]+)(?:/.*)?", re.DOTALL)


class Carrier:
    """Copies subschemas so that they mean the same in another document.

    What refers to a definition goes on to do so, and the definition is carried along under its name; what refers to
    another place of the schema, or to the whole of it, gets a definition of its own.

    Attributes:
        definitions: what has to stand beside the copies, by keyword.
    """

    def __init__(self, root: dict[str, Any], places: Places) -> None:
        self.definitions: dict[str, dict[str, Any]] = {}
        self._root = root
        self._places = places
        self._moved: dict[str, str] = {}

    def taken(self, schema: Schema) -> Any:
        """Return a copy of a subschema."""
        if schema is self._root:
            schema = {key: value for key, value in self._root.items() if key not in {*DEFINITIONS, "$schema"}}
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
            if target is self._root:
                target = {key: value for key, value in self._root.items() if key not in {*DEFINITIONS, "$schema"}}
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
