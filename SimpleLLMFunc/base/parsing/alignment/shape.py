"""The wanted type as a tree that text is aligned to: built once per type by `shape_builder`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pydantic import TypeAdapter
from pydantic_core import SchemaValidator

LeafKind: TypeAlias = Literal[
    "str", "int", "float", "bool", "none", "decimal", "date", "datetime", "time", "timedelta", "uuid"
]


@dataclass(slots=True, eq=False)
class Check:
    """Validates one part of a type by itself; pydantic's validator is built when it is first needed."""

    schema: Any
    definitions: Mapping[str, Any] = field(default_factory=dict)
    config: Any = None
    _validator: SchemaValidator | None = None

    def validate(self, value: Any) -> Any:
        """Return the validated value.

        Raises:
            ValidationError: pydantic's; it does not fit.
        """
        if self._validator is None:
            schema: Any = self.schema
            if self.definitions:
                schema = {"type": "definitions", "schema": schema, "definitions": list(self.definitions.values())}
            self._validator = SchemaValidator(schema, self.config)
        return self._validator.validate_python(value)


@dataclass(slots=True, eq=False)
class LeafShape:
    """A scalar."""

    kind: LeafKind
    name: str
    allows_nan: bool = False


@dataclass(slots=True, eq=False)
class AnyShape:
    """Anything that JSON can say."""

    name: str = "any JSON value"


@dataclass(slots=True, eq=False)
class OpaqueShape:
    """A type whose own validator runs before pydantic's: it reads the value as it was written.

    Attributes:
        inner: the shape behind that code, None if it is not known.
    """

    inner: Shape | None
    name: str = "value"


@dataclass(slots=True, eq=False)
class ChoiceShape:
    """An enum or a literal.

    Attributes:
        members: what pydantic is given, what stands on the wire, and the name of an enum's member.
        cls: the enum; None for a literal.
    """

    members: list[tuple[Any, Any, str]]
    name: str
    cls: Any = None


@dataclass(slots=True, eq=False)
class ListShape:
    """Any number of items, `made` into a list, set, frozenset or tuple; `check` validates one of them."""

    item: Shape
    name: str = "list"
    made: type = list
    check: Check = field(default_factory=lambda: Check({"type": "any"}))


@dataclass(slots=True, eq=False)
class TupleShape:
    """A fixed number of items; `named` is the object that says the same where they have names."""

    items: list[Shape]
    required: int
    name: str
    named: ObjectShape | None = None


@dataclass(slots=True, eq=False)
class MappingShape:
    """An object with any keys."""

    key: Shape
    value: Shape
    name: str = "object"


@dataclass(slots=True, eq=False)
class FieldShape:
    """One field of an object.

    Attributes:
        key: what pydantic reads it under.
        names: all it answers to: its aliases, and its own name.
        own_name: what the attribute is called.
        check: validates the field alone.
    """

    key: str
    names: list[str]
    shape: Shape
    is_required: bool
    own_name: str
    check: Check


@dataclass(slots=True, eq=False)
class ObjectShape:
    """A model, dataclass or TypedDict.

    Attributes:
        by_name: every exact name to its field.
        cls: builds the value, None for a TypedDict.
        extra: what pydantic does with unknown keys.
        is_hooked: its own validator reads the object first.
        has_paths: a field is found by a path into others.
    """

    name: str
    fields: list[FieldShape]
    by_name: dict[str, FieldShape]
    cls: Any = None
    extra: str = "ignore"
    is_hooked: bool = False
    has_paths: bool = False

    def field_of(self, key: str) -> FieldShape | None:
        """Return the one field that answers to the key when case, spaces, hyphens and underscores do not count."""
        wanted = folded_key(key)
        found = {part.key: part for name, part in self.by_name.items() if wanted and folded_key(name) == wanted}
        return next(iter(found.values())) if len(found) == 1 else None

    _adapter: TypeAdapter[Any] | None = None

    @property
    def adapter(self) -> TypeAdapter[Any]:
        """Validates the fields and builds the value."""
        if self._adapter is None:
            self._adapter = TypeAdapter(self.cls)
        return self._adapter


@dataclass(slots=True, eq=False)
class UnionShape:
    """One of several shapes."""

    choices: list[Shape]

    @property
    def name(self) -> str:
        """What the union is called in a violation."""
        return " or ".join(dict.fromkeys(choice.name for choice in self.choices))


@dataclass(slots=True, eq=False)
class TaggedShape:
    """One of several objects, told apart by the value of a field.

    Attributes:
        tag: the name of that field.
        choices: its values to the objects.
    """

    tag: str
    choices: dict[Any, Shape]
    name: str = "object"

    def tags(self) -> list[str]:
        """Return all names of that field. An object may hold this union again, so it is complete only when it is read."""
        names = dict.fromkeys([self.tag])
        for shape in self.choices.values():
            target = resolved(shape)
            if isinstance(target, ObjectShape) and self.tag in target.by_name:
                names.update(dict.fromkeys(target.by_name[self.tag].names))
        return list(names)


@dataclass(slots=True, eq=False)
class Ref:
    """A shape that contains itself, met again."""

    target: Shape | None = None
    name: str = "object"


Shape: TypeAlias = (
    LeafShape | AnyShape | OpaqueShape | ChoiceShape | ListShape | TupleShape | MappingShape | ObjectShape | UnionShape
    | TaggedShape | Ref
)  # fmt: skip


def folded_key(key: str) -> str:
    """Return a key without case, spaces, hyphens and underscores."""
    return re.sub(r"[\W_]+", "", key.casefold())


def resolved(shape: Shape) -> Shape:
    """Return what the shape stands for."""
    while isinstance(shape, Ref):
        assert shape.target is not None
        shape = shape.target
    return shape


def choices_of(shape: Shape) -> list[Shape]:
    """Return the choices of a union, or the shape itself, each resolved."""
    shape = resolved(shape)
    return [resolved(choice) for choice in shape.choices] if isinstance(shape, UnionShape) else [shape]


def leaf_kinds(shape: Shape) -> list[str]:
    """Return the kind of scalar of each choice, empty for what is no scalar."""
    return [choice.kind if isinstance(choice, LeafShape) else "" for choice in choices_of(shape)]
