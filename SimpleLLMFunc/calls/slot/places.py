"""What a schema says about each place of its data: the members and their kinds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from SimpleLLMFunc.calls.slot.pointer import DataPath
from SimpleLLMFunc.calls.slot.subschemas import Schema, subschemas
from SimpleLLMFunc.errors import SchemaError, cut
from SimpleLLMFunc.tools.schemas import MAX_NESTING, pattern_matches

ALL_KINDS: Final = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})
CUSTOM_KINDS: Final = {
    # a date is given in words, and is a start and an end once it was read
    "date": frozenset({"date", "string", "object"}),
    "timestamp": frozenset({"timestamp", "string", "integer", "number", "object"}),
}

MAX_IN_PLACE: Final = 10_000
"""Subschemas that may look at one value: through references, branches and conditions."""

_PYTHON_KINDS: Final[tuple[tuple[type, str], ...]] = ((str, "string"), (list, "array"), (dict, "object"))

Choice: TypeAlias = tuple[int, str]
"""The id of a schema, and its keyword `anyOf` or `oneOf`."""


class Places:
    """Answers about one schema; remembers what it has worked out.

    A place that several subschemas describe (through `allOf`, branches, references) is described by one that joins
    them. A branch that says nothing about a place is left out of that.

    Args:
        root: the whole schema, found sound before.
        chosen: the branch that counts where one is known: others of that keyword are left out.
    """

    def __init__(self, root: dict[str, Any], chosen: Mapping[Choice, int] | None = None) -> None:
        self._root = root
        self._chosen = chosen or {}
        self._members: dict[tuple[int, str | int], Schema | None] = {}
        self._kinds: dict[int, frozenset[str]] = {}
        self._kept: list[Schema] = []  # the ids above are of objects that must stay alive
        self._depth = 0

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        """Count how deep an answer asks for others."""
        self._depth += 1
        try:
            if self._depth > MAX_NESTING:
                raise SchemaError("its references nest too deeply, or without end")
            yield
        finally:
            self._depth -= 1

    # --- references --------------------------------------------------------------------------------------

    def resolved(self, schema: Schema) -> Schema:
        """Return the schema, or the target of its reference (`check_growth` has made sure that it ends)."""
        while isinstance(schema, dict) and isinstance(schema.get("$ref"), str):
            schema = self.target(schema["$ref"])
        return schema

    def target(self, reference: str) -> Schema:
        """Return the subschema that a reference into the schema names.

        Raises:
            SchemaError: the place does not exist.
        """
        node: Any = self._root
        if reference.startswith("#/"):
            for part in unquote(reference[2:]).split("/"):
                key = part.replace("~1", "/").replace("~0", "~")
                node = node[int(key)] if isinstance(node, list) else node[key]  # looked up before, so it is there
        elif reference != "#":
            node = next((part for part in subschemas(self._root) if part.get("$id") == reference), None)
        if not isinstance(node, dict | bool):
            raise SchemaError(f"its reference {cut(reference, 100)!r} leads to no schema")
        return node

    # --- places ------------------------------------------------------------------------------------------

    def at(self, path: DataPath) -> Schema | None:
        """Return what describes the value at a path; None where the schema says nothing about it."""
        schema: Schema | None = self._root
        for step in path:
            if schema is None:
                return None
            schema = self.member(schema, step)
        return schema

    def member(self, schema: Schema, step: str | int) -> Schema | None:
        """Return what describes a member of an object (by its name) or a list (by its index); None: nothing does."""
        memo = (id(schema), step)
        if memo not in self._members:
            self._members[memo] = None  # a schema that holds itself adds nothing to itself
            self._kept.append(schema)
            with self._deeper():
                self._members[memo] = self._member(schema, step)
        return self._members[memo]

    def _member(self, schema: Schema, step: str | int) -> Schema | None:
        schema = self.resolved(schema)
        if isinstance(schema, bool):
            return None
        own = _own_item(schema, step) if isinstance(step, int) else _own_property(schema, step)
        found = [*own, *(self.member(part, step) for part in schema.get("allOf", ()))]
        found += [self.member(part, step) for part in _dependent_schemas(schema)]
        wanted = "array" if isinstance(step, int) else "object"
        for branches in self._branches(schema):
            inside = [self.member(branch, step) for branch in branches if wanted in self.kinds(branch)]
            found.append(_joined("anyOf", inside))
        return _joined("allOf", found)

    def _branches(self, schema: dict[str, Any]) -> Iterator[list[Schema]]:
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                only = self._chosen.get((id(schema), keyword))
                yield schema[keyword] if only is None else [schema[keyword][only]]
        yield [schema[keyword] for keyword in ("then", "else") if keyword in schema]

    def parts(self, schema: Schema, *, also_conditions: bool = False) -> Iterator[dict[str, Any]]:
        """Yield every subschema that describes the same value: through references, `allOf`, branches, conditions."""
        seen: set[int] = set()
        waiting = [schema]
        while waiting:
            part = self.resolved(waiting.pop())
            if isinstance(part, bool) or id(part) in seen:
                continue
            seen.add(id(part))
            yield part
            conditions = [part["if"]] if also_conditions and "if" in part else []
            branches = [branch for group in self._branches(part) for branch in group]
            waiting += reversed([*part.get("allOf", ()), *branches, *_dependent_schemas(part), *conditions])

    def names(self, schema: Schema) -> dict[str, int]:
        """Return the members of an object that the schema names, each with its position."""
        names: dict[str, int] = {}
        for part in self.parts(schema, also_conditions=True):
            allowed = [name for name, inner in part.get("properties", {}).items() if inner is not False]
            for name in (*allowed, *part.get("required", ())):
                names.setdefault(name, len(names))
        return names

    def knows(self, schema: Schema, name: str) -> bool:
        """Tell whether an object may hold a member of that name, as far as the schema says anything about names."""
        return name in self.names(schema) or self.member(schema, name) is not None or self.is_free(schema)

    def is_free(self, schema: Schema) -> bool:
        """Tell whether the schema says nothing about the members of an object, or that there may be any."""
        says = False
        for part in self.parts(schema):
            if part.get("additionalProperties") is True:
                return True
            says = says or not part.keys().isdisjoint({"properties", "patternProperties", "additionalProperties"})
        return not says

    # --- kinds -------------------------------------------------------------------------------------------

    def kinds(self, schema: Schema) -> frozenset[str]:
        """Return the kinds of values that the schema allows, by the names of `type`; a custom type with the types that hold it.

        A number may be written as an integer: ``number`` is never there without ``integer``.
        """
        memo = id(schema)
        if memo not in self._kinds:
            self._kinds[memo] = ALL_KINDS  # a schema that holds itself asks nothing more of itself
            self._kept.append(schema)
            with self._deeper():
                self._kinds[memo] = self._kinds_of(schema)
        return self._kinds[memo]

    def _kinds_of(self, schema: Schema) -> frozenset[str]:
        schema = self.resolved(schema)
        if isinstance(schema, bool):
            return ALL_KINDS if schema else frozenset()
        found = _own_kinds(schema)
        for part in schema.get("allOf", ()):
            found = _both(found, self.kinds(part))
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                found = _both(found, frozenset[str]().union(*(self.kinds(part) for part in schema[keyword])))
        return found

    def choices(self, schema: Schema) -> list[Any] | None:
        """Return the allowed values if the schema lists them, else None."""
        with self._deeper():
            return self._choices_of(self.resolved(schema))

    def _choices_of(self, schema: Schema) -> list[Any] | None:
        if isinstance(schema, bool):
            return None
        if "const" in schema or "enum" in schema:
            return list(schema["enum"]) if "enum" in schema else [schema["const"]]
        for part in schema.get("allOf", ()):
            listed = self.choices(part)
            if listed is not None:
                return listed
        for branches in (schema[keyword] for keyword in ("anyOf", "oneOf") if keyword in schema):
            lists = [[None] if self.kinds(branch) == {"null"} else self.choices(branch) for branch in branches]
            told = [listed for listed in lists if listed is not None]
            if len(told) == len(lists):
                return [value for listed in told for value in listed]
        return None


def kinds_of_value(value: Any) -> frozenset[str]:
    """Return the names of `type` that a value answers to; none for what JSON does not know."""
    if value is None:
        return frozenset({"null"})
    if isinstance(value, bool):
        return frozenset({"boolean"})
    if isinstance(value, int):
        return frozenset({"integer", "number"})
    if isinstance(value, float):
        return frozenset({"integer", "number"} if value.is_integer() else {"number"})
    for kind, name in _PYTHON_KINDS:
        if isinstance(value, kind):
            return frozenset({name})
    return frozenset()


def _own_property(schema: dict[str, Any], name: str) -> list[Schema | None]:
    found: list[Schema] = [schema["properties"][name]] if name in schema.get("properties", {}) else []
    found += [inner for pattern, inner in schema.get("patternProperties", {}).items() if pattern_matches(pattern, name)]
    if not found and "additionalProperties" in schema:
        found.append(schema["additionalProperties"])
    return [None if inner is False else inner for inner in found]


def _own_item(schema: dict[str, Any], index: int) -> list[Schema | None]:
    items = schema.get("items")
    if isinstance(items, list):
        return [items[index] if index < len(items) else schema.get("additionalItems")]
    return [items]


def _dependent_schemas(schema: dict[str, Any]) -> list[Schema]:
    return [part for part in schema.get("dependencies", {}).values() if isinstance(part, dict)]


def _own_kinds(schema: dict[str, Any]) -> frozenset[str]:
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        found = frozenset[str]().union(*(CUSTOM_KINDS.get(name, {name}) for name in names))
        return found | {"integer"} if "number" in found else found
    if "const" in schema or "enum" in schema:
        values = schema.get("enum", [schema.get("const")])
        return frozenset[str]().union(*map(kinds_of_value, values))
    return ALL_KINDS


def _both(left: frozenset[str], right: frozenset[str]) -> frozenset[str]:
    if left == ALL_KINDS:
        return right
    if right == ALL_KINDS:
        return left
    return (left & right) | ((left | right) & CUSTOM_KINDS.keys())


def _joined(keyword: str, found: Iterable[Schema | None]) -> Schema | None:
    """Return one schema for several that describe the same place; what says anything hides what says nothing."""
    kept: list[Schema] = []
    for schema in found:
        if schema is not None and schema not in kept:
            kept.append(schema)
    telling = [schema for schema in kept if schema is not True and schema != {}]
    if not telling:
        return {} if kept else None
    if len(telling) == 1:
        return telling[0]
    # what is said to the reader is found where a reader looks
    words: dict[str, Any] = {}
    for part in telling:
        if isinstance(part, dict):
            words |= {word: part[word] for word in ("title", "description") if word in part and word not in words}
    return {**words, keyword: telling}


def check_growth(root: Any) -> None:
    """Count, without following them one by one, the subschemas that would look at one value.

    Raises:
        SchemaError: a reference comes back to itself while it looks at the same value, or there are too many.
    """
    places = Places(root)
    counts: dict[int, int] = {}
    for start in subschemas(root):
        open_: set[int] = set()
        waiting: list[tuple[Schema, bool]] = [(start, False)]
        while waiting:
            schema, is_done = waiting.pop()
            key = id(schema)
            if isinstance(schema, bool) or (key in counts and not is_done):
                continue
            if is_done:
                open_.discard(key)
                counts[key] = 1 + sum(counts.get(id(inner), 1) for inner in _in_place(schema, places))
                if counts[key] > MAX_IN_PLACE:
                    raise SchemaError(f"one value would be looked at by more than {MAX_IN_PLACE} of its parts")
                continue
            if key in open_:
                where = cut(str(schema.get("$ref", "a part of it")), 100)
                raise SchemaError(f"it refers to itself without end: {where!r} leads back to itself")
            open_.add(key)
            waiting.append((schema, True))
            waiting += [(inner, False) for inner in _in_place(schema, places)]


def _in_place(schema: dict[str, Any], places: Places) -> Iterator[Schema]:
    """Yield the subschemas that look at the same value as the schema does."""
    if isinstance(schema.get("$ref"), str):
        yield places.target(schema["$ref"])
        return
    for keyword in ("allOf", "anyOf", "oneOf"):
        yield from schema.get(keyword, ())
    for keyword in ("not", "if", "then", "else"):
        if keyword in schema:
            yield schema[keyword]
    yield from (part for part in schema.get("dependencies", {}).values() if isinstance(part, dict))
