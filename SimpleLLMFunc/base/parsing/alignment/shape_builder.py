"""pydantic's core schema → the shape that text is aligned to."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from SimpleLLMFunc.base.parsing.alignment.shape import (
    AnyShape,
    Check,
    ChoiceShape,
    FieldShape,
    LeafKind,
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
)
from SimpleLLMFunc.base.parsing.json_node import Node, decode_strictly

_LEAVES: Final[dict[str, tuple[LeafKind, str]]] = {
    "str": ("str", "str"), "int": ("int", "int"), "float": ("float", "float"), "bool": ("bool", "bool"),
    "none": ("none", "null"), "decimal": ("decimal", "Decimal"), "uuid": ("uuid", "UUID"),
    "date": ("date", "date (YYYY-MM-DD)"), "datetime": ("datetime", "date and time (ISO 8601)"),
    "time": ("time", "time (HH:MM:SS)"), "timedelta": ("timedelta", "duration (ISO 8601)"),
}  # fmt: skip
_PASSED_ON: Final = {
    "default": "schema", "function-after": "schema", "model-field": "schema", "json-or-python": "json_schema",
    "lax-or-strict": "lax_schema",
}  # fmt: skip
_LISTS: Final[dict[str, type]] = {"list": list, "set": set, "frozenset": frozenset, "generator": list}


def shape_of(adapter: TypeAdapter[Any]) -> tuple[Shape, bool]:
    """Return the shape of the adapter's type, and whether a user's own code reads some part of it first."""
    builder = _Builder()
    return builder.build(adapter.core_schema), builder.has_hooks


class _Builder:
    def __init__(self) -> None:
        self._schemas: dict[str, Mapping[str, Any]] = {}
        self._refs: dict[str, Ref] = {}
        self.has_hooks = False

    def build(self, schema: Mapping[str, Any]) -> Shape:
        kind = schema["type"]
        if kind in _LEAVES:
            leaf, name = _LEAVES[kind]
            return LeafShape(leaf, _with_bounds(name, schema), allows_nan=schema.get("allow_inf_nan") is True)
        if kind in _PASSED_ON:
            # Code that reads Python data alone may refuse what it takes as JSON.
            self.has_hooks |= schema.get("python_schema", schema)["type"] == "function-plain"
            return self.build(schema[_PASSED_ON[kind]])
        if kind in _LISTS:
            return self._list_of(schema.get("items_schema", {"type": "any"}), _LISTS[kind])
        method = getattr(self, f"_{kind.replace('-', '_')}", None)
        return method(schema) if method else self._opaque(None, kind)

    def _opaque(self, inner: Shape | None, name: str = "value") -> Shape:
        self.has_hooks = True
        return OpaqueShape(inner, name)

    def _list_of(self, schema: Mapping[str, Any], made: type) -> Shape:
        item = self.build(schema)
        return ListShape(item, f"list of {item.name}", made, Check(schema, self._schemas))

    # --- what only passes on -----------------------------------------------------------------------------

    def _definitions(self, schema: Mapping[str, Any]) -> Shape:
        for definition in schema["definitions"]:
            self._schemas[definition["ref"]] = definition
        return self.build(schema["schema"])

    def _definition_ref(self, schema: Mapping[str, Any]) -> Shape:
        name = schema["schema_ref"]
        if name not in self._refs:
            if name not in self._schemas:
                return self._opaque(None)
            ref = self._refs[name] = Ref()
            ref.target = self.build(self._schemas[name])
            ref.name = ref.target.name
        return self._refs[name]

    def _nullable(self, schema: Mapping[str, Any]) -> Shape:
        return UnionShape([*_flat(self.build(schema["schema"])), LeafShape("none", "null")])

    def _function_before(self, schema: Mapping[str, Any]) -> Shape:
        inner = self.build(schema["schema"])
        if isinstance(inner, ObjectShape):
            inner.is_hooked = self.has_hooks = True
            return inner
        return self._opaque(inner, inner.name)

    _function_wrap = _function_before

    # --- values ------------------------------------------------------------------------------------------

    def _any(self, schema: Mapping[str, Any]) -> Shape:  # noqa: ARG002 - one signature for all
        return AnyShape()

    def _enum(self, schema: Mapping[str, Any]) -> Shape:
        cls = schema["cls"]
        members = [(member, _wire(member.value), name) for name, member in cls.__members__.items()]
        values = ", ".join(dict.fromkeys(repr(member.value) for member in cls))
        return ChoiceShape(members, f"one of {values}", cls)

    def _literal(self, schema: Mapping[str, Any]) -> Shape:
        members = [
            (value, value.value, value.name) if isinstance(value, enum.Enum) else (value, value, "")
            for value in schema["expected"]
        ]
        if members == [(None, None, "")]:
            return LeafShape("none", "null")
        return ChoiceShape(members, "one of " + ", ".join(repr(wire) for _, wire, _ in members))

    # --- containers --------------------------------------------------------------------------------------

    def _tuple(self, schema: Mapping[str, Any]) -> Shape:
        items = [self.build(item) for item in schema["items_schema"]]
        if schema.get("variadic_item_index") is not None:
            return self._list_of(schema["items_schema"][0], tuple) if len(items) == 1 else self._opaque(None, "list")
        return TupleShape(items, len(items), f"list of exactly {len(items)} items")

    def _named_tuple(self, schema: Mapping[str, Any]) -> Shape:
        return self._named_items([(part["name"], part["schema"]) for part in schema["fields"]])

    def _call(self, schema: Mapping[str, Any]) -> Shape:
        arguments = schema["arguments_schema"]
        if arguments["type"] != "arguments":
            return self._opaque(None)  # the schema of a user's own type may have another around them
        return self._named_items([(part["name"], part["schema"]) for part in arguments["arguments_schema"]])

    def _named_items(self, parts: list[tuple[str, Mapping[str, Any]]]) -> Shape:
        shapes = [(name, self.build(part), part) for name, part in parts]
        required = sum(part["type"] != "default" for _, part in parts)
        fields = [
            FieldShape(name, [name], shape, number < required, name, Check(part, self._schemas))
            for number, (name, shape, part) in enumerate(shapes)
        ]
        name = f"list of {len(parts)} items ({', '.join(name for name, _ in parts)})"
        named = ObjectShape(name, fields, {part.key: part for part in fields}, extra="forbid")
        return TupleShape([part.shape for part in fields], required, name, named if fields else None)

    def _dict(self, schema: Mapping[str, Any]) -> Shape:
        key = self.build(schema["keys_schema"]) if "keys_schema" in schema else AnyShape()
        value = self.build(schema["values_schema"]) if "values_schema" in schema else AnyShape()
        return MappingShape(key, value)

    def _model(self, schema: Mapping[str, Any]) -> Shape:
        if schema.get("root_model"):
            return self.build(schema["schema"])
        inner, is_hooked = _fields_schema(schema)
        if inner["type"] != "model-fields":
            return self._opaque(None, schema["cls"].__name__)
        is_hooked = is_hooked or bool(schema.get("custom_init"))
        return self._object(schema, inner["fields"], inner.get("extra_behavior"), is_hooked=is_hooked)

    def _dataclass(self, schema: Mapping[str, Any]) -> Shape:
        inner, is_hooked = _fields_schema(schema)
        parts = {part["name"]: part for part in inner["fields"] if part.get("init", True)}
        return self._object(schema, parts, is_hooked=is_hooked)

    def _typed_dict(self, schema: Mapping[str, Any]) -> Shape:
        total = schema.get("total", True)
        parts = {name: {"required": total, **part} for name, part in schema["fields"].items()}
        return self._object(schema, parts, schema.get("extra_behavior"))

    def _object(
        self, schema: Mapping[str, Any], parts: Mapping[str, Any], extra: str | None = None, *, is_hooked: bool = False
    ) -> Shape:
        config, cls, is_class = schema.get("config"), schema.get("cls"), schema["type"] != "typed-dict"
        behavior: str = extra or (config or {}).get("extra_fields_behavior") or "ignore"
        name = getattr(cls, "__name__", None) or schema.get("cls_name") or "object"
        fields: list[FieldShape] = []
        has_paths = False
        for own, part in parts.items():
            inner = part["schema"]
            aliases, is_path = _aliases(part.get("validation_alias"))
            has_paths = has_paths or is_path
            names = list(dict.fromkeys([*aliases, own]))
            is_required = bool(part.get("required", True)) and inner["type"] != "default" and not is_path
            check = Check(inner, self._schemas, config if is_class else None)
            fields.append(FieldShape(names[0], names, self.build(inner), is_required, own, check))
        by_name: dict[str, FieldShape] = {}
        for position in range(max((len(field.names) for field in fields), default=0)):
            # an alias of one field beats the own name of another
            for field in fields:
                if position < len(field.names):
                    by_name.setdefault(field.names[position], field)
        self.has_hooks = self.has_hooks or is_hooked
        return ObjectShape(f"{name} object", fields, by_name, cls if is_class else None, behavior, is_hooked, has_paths)

    # --- choices -----------------------------------------------------------------------------------------

    def _union(self, schema: Mapping[str, Any]) -> Shape:
        choices = [choice[0] if isinstance(choice, tuple) else choice for choice in schema["choices"]]
        return UnionShape([part for choice in choices for part in _flat(self.build(choice))])

    def _tagged_union(self, schema: Mapping[str, Any]) -> Shape:
        tag = schema["discriminator"]
        choices: dict[Any, Shape] = {}
        for value, choice in schema["choices"].items():
            target = schema["choices"].get(choice, choice) if isinstance(choice, str) else choice
            choices[value.value if isinstance(value, enum.Enum) else value] = self.build(target)
        if not isinstance(tag, str):
            return UnionShape(list({id(shape): shape for shape in choices.values()}.values()))
        return TaggedShape(tag, choices, f"object whose {tag} is one of {', '.join(map(repr, choices))}")


def _wire(value: Any) -> Node:
    """Return what the value of an enum is on the wire: a date is a text, a tuple a list."""
    made = to_jsonable_python(value, serialize_unknown=True)
    return decode_strictly(json.dumps(made)) if isinstance(made, list | dict) else made


def _fields_schema(schema: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """Return the schema of the fields of a class, and whether a validator of the user's reads the object first."""
    inner, is_hooked = schema["schema"], False
    while inner["type"] in {"function-before", "function-wrap", "function-after"}:
        is_hooked = is_hooked or inner["type"] != "function-after"
        inner = inner["schema"]
    return inner, is_hooked


def _flat(shape: Shape) -> list[Shape]:
    return shape.choices if isinstance(shape, UnionShape) else [shape]


def _aliases(alias: Any) -> tuple[list[str], bool]:
    """Return the plain names of a validation alias, and whether it also holds a path into other fields."""
    if alias is None or isinstance(alias, str):
        return [] if alias is None else [alias], False
    paths = alias if alias and isinstance(alias[0], list) else [alias]
    return [path[0] for path in paths if len(path) == 1], any(len(path) > 1 for path in paths)


def _with_bounds(name: str, schema: Mapping[str, Any]) -> str:
    words = (("ge", "at least"), ("gt", "more than"), ("le", "at most"), ("lt", "less than"))
    return ", ".join([name, *[f"{word} {schema[key]}" for key, word in words if key in schema]])
