"""Walk a Draft 7 schema: its subschemas, copies of it with changes, and along the places of its data what describes each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias, TypeVar
from urllib.parse import unquote

from SimpleLLMFunc.calls.slot.pointer import DataPath
from SimpleLLMFunc.errors import SchemaError, cut
from SimpleLLMFunc.tools.schemas import MAX_NESTING, pattern_matches

T = TypeVar("T")

Schema: TypeAlias = dict[str, Any] | bool
Kinds: TypeAlias = frozenset[str]

ALL_KINDS: Final = frozenset(["null", "boolean", "integer", "number", "string", "array", "object"])
CUSTOM_KINDS: Final = {
    # a date is given in words, and is a start and an end once it was read
    "date": frozenset({"date", "string", "object"}),
    "timestamp": frozenset({"timestamp", "string", "integer", "number", "object"}),
}

MAX_IN_PLACE: Final = 10_000
"""Subschemas that may look at one value: through references, branches and conditions."""

_MEMBERS: Final = frozenset({"properties", "patternProperties", "additionalProperties"})
_PYTHON_KINDS: Final[tuple[tuple[type, str], ...]] = ((str, "string"), (list, "array"), (dict, "object"))


class Places:
    """Answers questions about one schema.

    Several subschemas may describe one place (through `allOf`, branches, references): they are joined into one. A
    branch that says nothing about a place is left out.

    Args:
        root: the whole schema, valid.
    """

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        # Answers by question and id: each subschema is asked once, however often references lead to it.
        self._answers: dict[tuple[Any, ...], Any] = {}
        self._kept: list[Schema] = []  # an id is only good while its object lives
        self._depth = 0

    def check(self) -> None:
        """Look at every subschema once.

        Raises:
            SchemaError: a reference leads to no schema, or back to itself while it describes the same value; or too many
                subschemas describe one value.
        """
        for part in subschemas(self._root):
            self._once(self._weight, part)

    def _weight(self, schema: Schema) -> int:
        """Return how many subschemas look at one value."""
        weight = 1
        for part in () if isinstance(schema, bool) else self._in_place(schema):
            inner = self._once(self._weight, part, meanwhile=0)
            if not inner:
                raise SchemaError("it refers to itself without end")
            weight += inner
        if weight > MAX_IN_PLACE:
            raise SchemaError(f"one value would be looked at by more than {MAX_IN_PLACE} of its parts")
        return weight

    def _in_place(self, schema: dict[str, Any]) -> list[Schema]:
        if isinstance(schema.get("$ref"), str):
            return [self.target(schema["$ref"])]
        listed = [part for keyword in ("allOf", "anyOf", "oneOf") for part in schema.get(keyword, ())]
        single = [schema[keyword] for keyword in ("not", "if", "then", "else") if keyword in schema]
        return [*listed, *single, *_dependent_schemas(schema)]

    def _once(self, question: Callable[..., T], schema: Schema, *more: Any, meanwhile: T | None = None) -> T:
        """Return the answer to a question, asked once; `meanwhile` answers a schema that asks itself."""
        key = (question.__name__, id(schema), *more)
        if key not in self._answers:
            self._answers[key] = meanwhile
            self._kept.append(schema)
            self._depth += 1
            try:
                if self._depth > MAX_NESTING:
                    raise SchemaError("its references nest too deeply")
                self._answers[key] = question(schema, *more)
            finally:
                self._depth -= 1
        answer: T = self._answers[key]
        return answer

    # --- references --------------------------------------------------------------------------------------

    def resolved(self, schema: Schema) -> Schema:
        """Return the schema, or the target of its reference (`check` has made sure that it ends)."""
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

    def at(self, path: DataPath, start: Schema | None = None) -> Schema | None:
        """Return what describes the value at a path below `start` (the root); None if the schema says nothing of it."""
        schema: Schema | None = self._root if start is None else start
        for step in path:
            schema = None if schema is None else self.member(schema, step)
        return schema

    def member(self, schema: Schema, step: str | int) -> Schema | None:
        """Return what describes a member of an object (by its name) or of a list (by its index); None: nothing does."""
        return self._once(self._member, schema, step)

    def _member(self, schema: Schema, step: str | int) -> Schema | None:
        schema = self.resolved(schema)
        if isinstance(schema, bool):
            return None
        own = _own_item(schema, step) if isinstance(step, int) else _own_property(schema, step)
        found = [*own, *(self.member(part, step) for part in [*schema.get("allOf", ()), *_dependent_schemas(schema)])]
        wanted = "array" if isinstance(step, int) else "object"
        for branches in _branches(schema):
            inside = [self.member(branch, step) for branch in branches if wanted in self.kinds(branch)]
            found.append(_joined("anyOf", inside))
        return _joined("allOf", found)

    def parts(self, schema: Schema) -> Iterator[dict[str, Any]]:
        """Yield every subschema that describes the same value: through references, `allOf`, branches, conditions."""
        seen: set[int] = set()
        waiting = [schema]
        while waiting:
            part = self.resolved(waiting.pop())
            if not isinstance(part, bool) and id(part) not in seen:
                seen.add(id(part))
                yield part
                waiting += (inner for inner in self._in_place(part) if inner is not part.get("not"))

    def names(self, schema: Schema) -> list[str]:
        """Return the members of an object that the schema names, in its order."""
        names: dict[str, None] = {}
        for part in self.parts(schema):
            allowed = [name for name, inner in part.get("properties", {}).items() if inner is not False]
            names |= dict.fromkeys([*allowed, *part.get("required", ())])
        return list(names)

    def knows(self, schema: Schema, name: str) -> bool:
        """Tell whether an object may hold a member of that name, as far as the schema says anything about names."""
        return self.member(schema, name) is not None or name in self.names(schema) or self.is_free(schema)

    def is_free(self, schema: Schema) -> bool:
        """Tell whether the schema says nothing about the members of an object, or that there may be any."""
        says = False
        for part in self.parts(schema):
            if part.get("additionalProperties") is True:
                return True
            says = says or any(part.get(keyword, {}) != {} for keyword in _MEMBERS)
        own = self.resolved(schema)
        if says and isinstance(own, dict) and own.keys().isdisjoint({*_MEMBERS, "allOf"}):
            branches = [branch for keyword in ("anyOf", "oneOf") for branch in own.get(keyword, ())]
            return any("object" in self.kinds(branch) and self.is_free(branch) for branch in branches)
        return not says

    # --- kinds -------------------------------------------------------------------------------------------

    def kinds(self, schema: Schema) -> Kinds:
        """Return the kinds of values that the schema allows, by the names of `type`; a custom type with the types that hold it.

        A number may be written as an integer: ``number`` is never there without ``integer``.
        """
        return self._once(self._kinds_of, schema)

    def _kinds_of(self, schema: Schema) -> Kinds:
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
        return self._once(self._choices_of, schema)

    def _choices_of(self, schema: Schema) -> list[Any] | None:
        schema = self.resolved(schema)
        if isinstance(schema, bool):
            return None
        if "const" in schema or "enum" in schema:
            return list(schema["enum"]) if "enum" in schema else [schema["const"]]
        for part in schema.get("allOf", ()):
            if (listed := self.choices(part)) is not None:
                return listed
        for branches in (schema[keyword] for keyword in ("anyOf", "oneOf") if keyword in schema):
            lists = [[None] if self.kinds(branch) == {"null"} else self.choices(branch) for branch in branches]
            told = [listed for listed in lists if listed is not None]
            if len(told) == len(lists):
                return [value for listed in told for value in listed]
        return None


def kinds_of_value(value: Any) -> Kinds:
    """Return the names of `type` that a value answers to; none for what JSON does not know."""
    if value is None:
        return frozenset({"null"})
    if isinstance(value, bool):
        return frozenset({"boolean"})
    if isinstance(value, int | float):
        return frozenset({"integer", "number"} if isinstance(value, int) or value.is_integer() else {"number"})
    return frozenset(name for kind, name in _PYTHON_KINDS if isinstance(value, kind))


def _branches(schema: dict[str, Any]) -> list[list[Schema]]:
    alternatives = [schema[keyword] for keyword in ("anyOf", "oneOf") if keyword in schema]
    return [*alternatives, [schema[keyword] for keyword in ("then", "else") if keyword in schema]]


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


def _own_kinds(schema: dict[str, Any]) -> Kinds:
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        found = frozenset[str]().union(*(CUSTOM_KINDS.get(name, {name}) for name in names))
        return found | {"integer"} if "number" in found else found
    if "const" in schema or "enum" in schema:
        return frozenset[str]().union(*map(kinds_of_value, schema.get("enum", [schema.get("const")])))
    return ALL_KINDS


def _both(left: Kinds, right: Kinds) -> Kinds:
    if left == ALL_KINDS:
        return right
    if right == ALL_KINDS:
        return left
    return (left & right) | ((left | right) & CUSTOM_KINDS.keys())


def _joined(keyword: str, found: Iterable[Schema | None]) -> Schema | None:
    """Return one schema for several that describe the same place; one that says something hides those that say nothing."""
    kept: list[Schema] = []
    for schema in found:
        if schema is not None and schema not in kept:
            kept.append(schema)
    telling = [schema for schema in kept if schema is not True and schema != {}]
    if not telling:
        return {} if kept else None
    if len(telling) == 1:
        return telling[0]
    # a reader looks for title and description at the top
    words: dict[str, Any] = {}
    for part in telling:
        if isinstance(part, dict):
            words |= {word: part[word] for word in ("title", "description") if word in part and word not in words}
    return {**words, keyword: telling}


# --- subschemas ---

DEFINITIONS: Final = ("definitions", "$defs")

_NAMED: Final = frozenset({"properties", "patternProperties", "dependencies", *DEFINITIONS})
_LISTED: Final = frozenset({"allOf", "anyOf", "oneOf", "items"})
_SINGLE: Final = frozenset({
    "additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then",
})  # fmt: skip

_BASIC: Final = frozenset({"string", "number", "integer", "boolean", "date", "timestamp"})
_NOT_ASKED: Final = frozenset({"not", "if", "propertyNames", "contains"})
"""Their subschemas tell values apart, and would tell others apart with null in them."""
_FIXED: Final = frozenset({"const", "title", "description"})


def rebuilt(
    schema: Any, change: Callable[[dict[str, Any]], dict[str, Any]], *, skip: frozenset[str] = frozenset()
) -> Any:
    """Return a copy of the schema in which every subschema is what `change` makes of its copy, the inner ones first.

    Args:
        schema: sound and within bounds; it is not changed.
        change: takes a copied subschema, which it may alter, and returns it or another.
        skip: keywords whose subschemas are copied as they are.
    """
    if not isinstance(schema, Mapping):
        return copied(schema)

    def inside(keyword: str, value: Any) -> Any:
        if keyword in skip:
            return copied(value)
        if keyword in _NAMED and isinstance(value, Mapping):
            return {name: rebuilt(part, change, skip=skip) for name, part in value.items()}
        if isinstance(value, list) and keyword in _LISTED:
            return [rebuilt(part, change, skip=skip) for part in value]
        if keyword in _SINGLE:
            return rebuilt(value, change, skip=skip)
        return copied(value)

    return change({keyword: inside(keyword, value) for keyword, value in schema.items()})


def subschemas(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield the schema and every subschema in it that is an object."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if not isinstance(part, dict):
            continue
        yield part
        for keyword, value in part.items():
            if keyword in _NAMED and isinstance(value, dict):
                waiting += value.values()
            elif isinstance(value, list) and keyword in _LISTED:
                waiting += value
            elif keyword in _SINGLE:
                waiting.append(value)


def copied(value: Any) -> Any:
    """Return a structural copy of JSON data."""
    if isinstance(value, Mapping):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copied(item) for item in value]
    return value


def with_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a copy with null among the types of every basic value, and among the values of an `enum` of such.

    A `const` stays what it is: it leaves nothing to know. What was `oneOf` becomes `anyOf`: null may now be in more
    than one branch. So every value that fitted the schema fits the copy.
    """
    return dict(rebuilt(schema, _nullable, skip=_NOT_ASKED))


def _nullable(part: dict[str, Any]) -> dict[str, Any]:
    branches = part.get("oneOf")
    if branches and not all(isinstance(branch, dict) and branch.keys() <= _FIXED for branch in branches):
        del part["oneOf"]
        if "anyOf" in part:
            part["allOf"] = [*part.get("allOf", ()), {"anyOf": branches}]
        else:
            part["anyOf"] = branches
    if "type" in part:
        types = part["type"] if isinstance(part["type"], list) else [part["type"]]
        if _BASIC.isdisjoint(types):
            return part
        if "null" not in types:
            part["type"] = [*types, "null"]
    values = part.get("enum")
    if values and None not in values and not any(isinstance(value, dict | list) for value in values):
        part["enum"] = [*values, None]
    return part
