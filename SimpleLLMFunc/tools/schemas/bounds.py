"""The bounds within which a JSON Schema is looked at, before anything is checked against it: pure, without jsonschema."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import unquote

from pydantic_core import SchemaError as PatternError
from pydantic_core import SchemaValidator, core_schema
from pydantic_core import ValidationError as NoMatch

from SimpleLLMFunc.errors import SchemaError, cut

MAX_DEPTH: Final = 64
MAX_NODES: Final = 10_000
MAX_REFERENCES: Final = 1_000
MAX_PATTERN_CHARS: Final = 256

_DATA_KEYWORDS: Final = frozenset({"const", "default", "enum", "examples"})
"""Keywords that hold values and not schemas: a ``$ref`` in there is a key like another."""
_NAMED_SCHEMAS: Final = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)
"""Keywords whose keys are names: a property may be called ``$ref``, or ``pattern``."""


_SCHEMA_KEYWORDS: Final = _NAMED_SCHEMAS | {
    "additionalItems", "additionalProperties", "allOf", "anyOf", "contains", "contentSchema", "else", "if", "items", "not",
    "oneOf", "prefixItems", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
}  # fmt: skip


def check_bounds(schema: Any) -> dict[str, Any]:
    """Walk through a schema without recursion, and count; look at its references and patterns.

    Returns:
        What references lead to under keywords that JSON Schema does not know, by reference; not checked
        to be schemas yet.

    Raises:
        SchemaError: too large, remote, or with a pattern that needs backtracking.
    """
    nodes = references = 0
    odd: dict[str, Any] = {}
    waiting: list[tuple[Any, str, int, _Role]] = [(schema, "", 0, "schema")]
    while waiting:
        node, where, depth, role = waiting.pop()
        nodes += 1
        if depth > MAX_DEPTH or nodes > MAX_NODES:
            raise SchemaError(f"it is too large{at(where)}: at most {MAX_DEPTH} levels and {MAX_NODES} values")
        if isinstance(node, Mapping):
            if role == "schema":
                for target in _references(node):
                    references += 1
                    found, is_odd = _target(schema, target, where)
                    odd.update({target: found} if is_odd else {})
                if references > MAX_REFERENCES:
                    raise SchemaError(f"it has more than {MAX_REFERENCES} references")
                _check_patterns(node, where)
            for key, item in node.items():
                if not isinstance(key, str):
                    raise SchemaError(f"it is no valid JSON Schema{at(where)}: the key {key!r} is no text")
                waiting.append((item, f"{where}/{escaped(key)}", depth + 1, _role_of(key, role)))
        elif isinstance(node, list):
            waiting.extend((item, f"{where}/{number}", depth + 1, role) for number, item in enumerate(node))
    return odd


_Role: TypeAlias = Literal["schema", "names", "data"]


def _role_of(key: str, parent: _Role) -> _Role:
    if parent != "schema":
        return "schema" if parent == "names" else "data"
    return "data" if key in _DATA_KEYWORDS else "names" if key in _NAMED_SCHEMAS else "schema"


def escaped(name: object) -> str:
    """Return a key as a JSON Pointer writes it."""
    return str(name).replace("~", "~0").replace("/", "~1")


def at(where: str) -> str:
    """Return where something is in the schema, for a message; nothing for its root."""
    return f" at {cut(where, 200)}" if where else ""


def _references(node: Mapping[str, Any]) -> list[str]:
    return [node[keyword] for keyword in ("$ref", "$dynamicRef", "$recursiveRef") if isinstance(node.get(keyword), str)]


def _check_patterns(node: Mapping[str, Any], where: str) -> None:
    patterns = node.get("patternProperties")
    for pattern in [node.get("pattern"), *(patterns if isinstance(patterns, Mapping) else ())]:
        if isinstance(pattern, str):
            try:
                _engine(pattern)
            except SchemaError as error:
                raise SchemaError(f"{error}{at(where)}") from None


def _target(schema: Any, target: str, where: str) -> tuple[Any, bool]:
    """Return what a reference leads to, and whether the way there goes through a keyword JSON Schema does not know."""
    shown = f"{cut(target, 100)!r}{at(where)}"
    if not target.startswith("#"):
        raise SchemaError(f"its reference {shown} is remote; only references into itself are followed")
    node: Any = schema
    role: _Role = "schema"
    is_odd = False
    for part in unquote(target[2:]).split("/") if target.startswith("#/") else ():
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list) and key.isdecimal() and int(key) < len(node):
            node = node[int(key)]
            continue
        if not (isinstance(node, Mapping) and key in node):
            raise SchemaError(f"its reference {shown} leads nowhere")
        is_odd = is_odd or (role == "schema" and key not in _SCHEMA_KEYWORDS)
        node, role = node[key], _role_of(key, role)
    if role == "data":
        raise SchemaError(f"its reference {shown} leads to a value, not to a schema")
    return node, is_odd


# --- patterns, in an engine without backtracking ---


def pattern_matches(pattern: str, text: str) -> bool:
    """Tell whether the pattern is found in the text, in linear time.

    Raises:
        SchemaError: the pattern is too long, wrong, or needs backtracking.
    """
    try:
        _engine(pattern).validate_python(text)
    except NoMatch:
        return False
    return True


@functools.lru_cache(maxsize=1024)
def _engine(pattern: str) -> SchemaValidator:
    if len(pattern) > MAX_PATTERN_CHARS:
        raise SchemaError(f"a pattern has more than {MAX_PATTERN_CHARS} characters")
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, strict=True))
    except PatternError:
        raise SchemaError(f"the pattern {cut(pattern, 60)!r} is wrong, or looks around or back") from None
