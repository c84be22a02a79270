"""The strict subset of JSON schema that providers enforce, and how a schema is brought into it.

Source: the rules of OpenAI's structured outputs: the root is an object, every key is required, nothing may be added,
few keywords are known, and there are limits of size. A schema is adapted only where every value that fits the adapted
schema fits the original one, or is refused by validation: what a keyword said moves into the description.
"""

from __future__ import annotations

import json
import re
from typing import Final

from SimpleLLMFunc.base.schemas.type_description import Schema, not_empty, own_description
from SimpleLLMFunc.tools.schemas import STRICT_FORMATS

MAX_DEPTH: Final = 10
MAX_PROPERTIES: Final = 5000
MAX_ENUM_VALUES: Final = 1000
MAX_STRING_LENGTH: Final = 120_000

_KEPT: Final = frozenset(
    {"type", "enum", "description", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
     "minItems", "maxItems"}
)  # fmt: skip
_TOLD: Final = {
    "minLength": "at least {} characters", "maxLength": "at most {} characters", "uniqueItems": "no duplicates",
    "pattern": "matches {}", "format": "format {}", "contentEncoding": "encoded as {}",
}  # fmt: skip
_KINDS: Final[dict[type, str]] = {
    bool: "boolean", type(None): "null", str: "string", int: "integer", float: "number", list: "array", dict: "object"
}  # fmt: skip
_LOOKAROUND: Final = re.compile(r"\(\?|\\[1-9bB]")


def wrapped_schema(schema: Schema) -> Schema:
    """Return the schema of ``{"value": …}`` around `schema`; its definitions move to the root."""
    value = {key: part for key, part in schema.items() if key != "$defs"}
    rest = {"required": ["value"], "additionalProperties": False}
    defs = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    return {"type": "object", "properties": {"value": value}, **rest, **defs}


def inlined_root(schema: Schema) -> Schema:
    """Return the schema with an object, not a reference, at its root."""
    defs = schema.get("$defs", {})
    seen: set[str] = set()
    while "$ref" in schema and schema["$ref"] not in seen:
        seen.add(schema["$ref"])
        schema = {**defs.get(_name_of(schema["$ref"]), {}), "$defs": defs}
    return schema


class StrictSchema:
    """A schema within the strict subset.

    Attributes:
        problem: why it cannot be made strict with the same meaning; empty where it can.
        schema: the strict schema, None where there is a problem.
    """

    def __init__(self, schema: Schema) -> None:
        self._defs: dict[str, Schema] = schema.get("$defs", {})
        self._problems: dict[str, None] = {}
        self._properties = self._enum_values = self._string_length = 0
        self._references: list[str] = []
        made = self._object({key: part for key, part in inlined_root(schema).items() if key != "$defs"}, "", 1)
        used = self._used_definitions()
        if used:
            made["$defs"] = used
        self._check_sizes()
        self.problem = "; ".join(self._problems)
        self.schema = None if self._problems else made

    def _used_definitions(self) -> dict[str, Schema]:
        used: dict[str, Schema] = {}
        waiting = [self._references]
        while waiting:
            for name in waiting.pop():
                if name not in used:
                    self._references = []
                    used[name] = self._of(self._defs.get(name, {}), name, 1)
                    waiting.append(self._references)
        return used

    def _check_sizes(self) -> None:
        sizes = (
            (self._properties, MAX_PROPERTIES, "properties"),
            (self._enum_values, MAX_ENUM_VALUES, "enum values"),
            (self._string_length, MAX_STRING_LENGTH, "characters of names and enum values"),
        )
        for size, limit, what in sizes:
            if size > limit:
                self._refuse(f"{size} {what}, at most {limit}")

    def _refuse(self, problem: str) -> Schema:
        self._problems[problem] = None
        return {}

    # --- one schema after the other ----------------------------------------------------------------------

    def _of(self, schema: Schema, path: str, depth: int) -> Schema:
        if depth > MAX_DEPTH:
            return self._refuse(f"nested deeper than {MAX_DEPTH} levels")
        if "$ref" in schema:
            return self._reference(schema)
        choices = schema.get("anyOf") or schema.get("oneOf")
        if choices:
            return self._choice(schema, choices, path, depth)
        if "allOf" in schema and len(schema["allOf"]) == 1:
            rest = {key: part for key, part in schema.items() if key != "allOf"}
            return self._of({**schema["allOf"][0], **rest}, path, depth)
        if "const" in schema:
            schema = {**schema, "enum": [schema["const"]]}
        if "enum" in schema:
            return self._enum(schema)
        kind = schema.get("type")
        if kind == "object":
            return self._object(schema, path, depth)
        if kind == "array":
            return self._array(schema, path, depth)
        if isinstance(kind, str):
            return self._plain(schema)
        return self._refuse(f"{path or 'the value'} may be anything")

    def _reference(self, schema: Schema) -> Schema:
        self._references.append(_name_of(schema["$ref"]))
        reference = {"$ref": schema["$ref"]}
        # a reference may have no other key next to it
        about = own_description(schema)
        return {"anyOf": [reference], "description": about} if about else reference

    def _choice(self, schema: Schema, choices: list[Schema], path: str, depth: int) -> Schema:
        made = [self._of(choice, path, depth) for choice in choices]
        return {"anyOf": made, **not_empty(description=own_description(schema))}

    def _enum(self, schema: Schema) -> Schema:
        values = schema["enum"]
        self._enum_values += len(values)
        self._string_length += sum(len(value) for value in values if isinstance(value, str))
        kinds = list(dict.fromkeys(_KINDS.get(type(value), "string") for value in values))
        return self._told(schema, {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": values})

    def _plain(self, schema: Schema) -> Schema:
        kept = {key: part for key, part in schema.items() if key in _KEPT}
        if schema.get("format") in STRICT_FORMATS:
            kept["format"] = schema["format"]
        if "pattern" in schema and not _LOOKAROUND.search(schema["pattern"]):
            kept["pattern"] = schema["pattern"]
        return self._told(schema, kept)

    def _array(self, schema: Schema, path: str, depth: int) -> Schema:
        if "prefixItems" in schema:
            return self._refuse(f"{path or 'the value'} is a tuple")
        made = {key: part for key, part in schema.items() if key in _KEPT}
        made["items"] = self._of(schema.get("items") or {}, f"{path}[]", depth + 1)
        return self._told(schema, made)

    def _object(self, schema: Schema, path: str, depth: int) -> Schema:
        if "properties" not in schema or schema.get("patternProperties"):
            return self._refuse(f"{path or 'the value'} has any keys")
        if schema.get("additionalProperties", False) is not False:
            return self._refuse(f"{path or 'the value'} takes further keys")
        properties: dict[str, Schema] = schema["properties"]
        self._properties += len(properties)
        self._string_length += sum(map(len, properties))
        made: dict[str, Schema] = {}
        for name, part in properties.items():
            where = f"{path}.{name}" if path else name
            if name not in schema.get("required", ()):
                part = self._required(part, where)  # noqa: PLW2901 - the part as it is sent
            made[name] = self._of(part, where, depth + 1)
        about = not_empty(description=own_description(schema))
        rest = {"required": list(made), "additionalProperties": False}
        return {"type": "object", **about, "properties": made, **rest}

    def _required(self, schema: Schema, path: str) -> Schema:
        """Return the schema of a field that must now be there: only where saying it means the same as leaving it out."""
        default = schema.get("default")
        if default is not None:
            # the model can say the default, which is then the same value
            told = f"default: {json.dumps(default, ensure_ascii=False)}"
            return {**schema, "description": _joined(schema.get("description", ""), told)}
        may_be_empty = schema.get("type") == "array" and not schema.get("minItems")
        if not (_allows_null(schema) if "default" in schema else may_be_empty):
            self._refuse(f"{path} may be left out")
        return schema

    # --- descriptions ------------------------------------------------------------------------------------

    def _told(self, schema: Schema, made: Schema) -> Schema:
        """Move what the subset has no keyword for into the description."""
        told = [
            text.format(schema[key])
            for key, text in _TOLD.items()
            if key in schema and key not in made and schema[key] is not False
        ]
        return {**made, **not_empty(description=_joined(own_description(schema), *told))}


def _name_of(reference: str) -> str:
    return reference.removeprefix("#/$defs/").replace("~1", "/").replace("~0", "~")


def _allows_null(schema: Schema) -> bool:
    return schema.get("type") == "null" or any(map(_allows_null, schema.get("anyOf", ())))


def _joined(*parts: str) -> str:
    present = [part for part in parts if part]
    return present[0] + f" ({'; '.join(present[1:])})" if len(present) > 1 else "".join(present)
