"""Values of a JSON schema, drawn with a random generator."""

from __future__ import annotations

import base64
import importlib
import json
import math
import random
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any, Final, TypeAlias

from SimpleLLMFunc.errors import ConfigError, UsageError, cut

Schema: TypeAlias = Mapping[str, Any]

_DEEP: Final = 4
"""Deepest level with random choices; below it the value with the least height is chosen."""

_MOST_ITEMS: Final = 3
_TRIES: Final = 100
_MOST_MATCHES: Final = 1000
_FIRST_DAY: Final = datetime(2001, 1, 1, tzinfo=UTC)
_SECONDS: Final = 30 * 365 * 86400

WORDS: Final = (
    "amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "harbour", "iris", "juniper", "kelp", "lantern",
    "meadow", "north", "orchid", "pebble", "quartz", "river", "stone", "tundra", "umbra", "violet", "willow", "zephyr",
)  # fmt: skip


def value_of(schema: Schema, rng: random.Random, *, definitions: Schema | None = None) -> Any:
    """Return JSON data that fits `schema`.

    Args:
        schema: as pydantic and tools write them: references to ``$defs``, constraints, formats, patterns, unions.
            Validators in code are in no schema, so the value may fail them.
        rng: makes all choices.
        definitions: for references; the schema's own ``$defs`` by default.

    Raises:
        UsageError: no value fits, or none was found.
    """
    return _Values(definitions if definitions is not None else schema.get("$defs", {}), rng).of(schema, 0)


class _Values:
    def __init__(self, definitions: Schema, rng: random.Random) -> None:
        self._defs = definitions
        self._rng = rng

    def of(self, schema: Schema, depth: int) -> Any:
        schema = self._resolved(schema)
        if schema.get("examples") and "pattern" in schema:
            return self._rng.choice(schema["examples"])  # in place of a generated match
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._rng.choice(schema["enum"])
        choices = schema.get("anyOf") or schema.get("oneOf")
        if choices:
            return self.of(self._chosen(choices, depth), depth)
        kind = schema.get("type")
        if isinstance(kind, list):
            return self.of({**schema, "type": self._rng.choice(kind)}, depth)
        match kind or _kind_of(schema):
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, depth)
            case "integer" | "number" as name:
                return _number(schema, self._rng, is_integer=name == "integer")
            case "boolean":
                return self._rng.random() < 0.5
            case "null":
                return None
            case _:
                return self._text(schema, depth)

    # --- where a schema leads ----------------------------------------------------------------------------

    def _resolved(self, schema: Schema) -> Schema:
        """Return the schema with references followed, and the parts of an `allOf` as one."""
        if "$ref" in schema:
            rest = {key: part for key, part in schema.items() if key not in {"$ref", "description"}}
            return self._resolved({**self._target(schema["$ref"]), **rest})
        if not schema.get("allOf"):
            return schema
        parts = [*map(self._resolved, schema["allOf"]), {key: part for key, part in schema.items() if key != "allOf"}]
        merged: dict[str, Any] = {}
        for part in parts:
            both = {name: {**merged[name], **part[name]} for name in {"properties"} & merged.keys() & part.keys()}
            required = [*merged.get("required", ()), *part.get("required", ())]
            merged |= {**part, **both, "required": required}
        return merged

    def _target(self, reference: str) -> Schema:
        target = self._defs.get(reference.removeprefix("#/$defs/").replace("~1", "/").replace("~0", "~"))
        if not isinstance(target, Mapping):
            raise UsageError(f"the schema refers to {reference!r}, which is not among its $defs. Check the schema.")
        return target

    def _chosen(self, choices: Sequence[Schema], depth: int) -> Schema:
        if [choice.get("type") for choice in choices] == ["number", "string"] and len(choices[1]) == 1:
            return choices[0]  # pydantic's schema of a Decimal; not every text is one
        heights = [self._height(choice, frozenset()) for choice in choices]
        finite = [choice for choice, height in zip(choices, heights, strict=True) if height < math.inf]
        if not finite:
            raise UsageError("no finite value fits the schema: it contains itself in every way. Check the type.")
        if depth >= _DEEP:
            return choices[heights.index(min(heights))]
        return self._rng.choice(finite)

    def _height(self, schema: Schema, inside: frozenset[str]) -> float:
        """Return the levels of the lowest value; infinite where the schema always contains itself."""
        if "$ref" in schema:
            if schema["$ref"] in inside:
                return math.inf
            return self._height(self._target(schema["$ref"]), inside | {schema["$ref"]})
        choices = schema.get("anyOf") or schema.get("oneOf")
        if choices:
            return min(self._height(choice, inside) for choice in choices)
        parts = [*schema.get("prefixItems", ()), *schema.get("allOf", ())]
        parts += [part for name, part in schema.get("properties", {}).items() if name in schema.get("required", ())]
        parts += [schema["items"]] if schema.get("minItems") and isinstance(schema.get("items"), Mapping) else []
        values = schema.get("additionalProperties")
        parts += [values] if schema.get("minProperties") and isinstance(values, Mapping) else []
        return 1 + max((self._height(part, inside) for part in parts), default=0)

    def _is_finite(self, schema: Schema) -> bool:
        return self._height(schema, frozenset()) < math.inf

    # --- made of parts -----------------------------------------------------------------------------------

    def _object(self, schema: Schema, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        required = schema.get("required", ())
        properties: Mapping[str, Schema] = schema.get("properties", {})
        for name, part in properties.items():
            # Tags with a default are required too; other optional fields are left out at random.
            is_wanted = name in required or "const" in self._resolved(part)
            if is_wanted or (depth < _DEEP and self._rng.random() < 0.7 and self._is_finite(part)):
                made[name] = self.of(part, depth + 1)
        return made if properties else self._mapping(schema, depth)

    def _mapping(self, schema: Schema, depth: int) -> dict[str, Any]:
        values = schema.get("additionalProperties", True)
        keys: Schema | None = schema.get("propertyNames")
        if schema.get("patternProperties"):
            pattern, values = next(iter(schema["patternProperties"].items()))
            keys = {"type": "string", "pattern": pattern, **(keys or {})}
        least = schema.get("minProperties", 0)
        value: Schema = values if isinstance(values, Mapping) else {}
        if values is False or (least == 0 and (depth >= _DEEP or not self._is_finite(value))):
            return {}

        def key(number: int) -> str:
            # Without a schema for keys, digits serve as texts and as numbers.
            return str({0: 1, 1: 0}.get(number, number)) if keys is None else str(self.of(keys, depth + 1))

        return {name: self.of(value, depth + 1) for name in self._different(key, least, schema.get("maxProperties"))}

    def _array(self, schema: Schema, depth: int) -> list[Any]:
        if "prefixItems" in schema:
            return [self.of(part, depth + 1) for part in schema["prefixItems"]]
        items = schema.get("items")
        item: Schema = items if isinstance(items, Mapping) else {}
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        if items is False or (least == 0 and (depth >= _DEEP or not self._is_finite(item))):
            return []
        if schema.get("uniqueItems"):
            return self._different(lambda _: self.of(item, depth + 1), least, most)
        return [self.of(item, depth + 1) for _ in range(_between(self._rng, least, most))]

    def _different(self, draw: Callable[[int], Any], least: int, most: int | None) -> list[Any]:
        """Return values that are all different."""
        wanted = _between(self._rng, least, most)
        made: list[Any] = []
        for number in range(_TRIES):
            if len(made) < wanted and (one := draw(number)) not in made:
                made.append(one)
        if len(made) < least:
            raise UsageError(f"SchemaLLM found only {len(made)} of {least} different values. Check the type.")
        return made

    # --- texts -------------------------------------------------------------------------------------------

    def _text(self, schema: Schema, depth: int) -> str:
        least, most = schema.get("minLength", 0), schema.get("maxLength")
        if "pattern" in schema:
            return text_matching(schema["pattern"], self._rng, least=least, most=most)
        if schema.get("contentSchema") or schema.get("format") == "json-string":
            return json.dumps(self.of(schema.get("contentSchema") or {}, depth + 1), ensure_ascii=False)
        made = _formatted(schema.get("format") or schema.get("contentEncoding", ""), self._rng)
        return words(self._rng, least, most) if made is None else made


def _kind_of(schema: Schema) -> str:
    if "properties" in schema:
        return "object"
    return "array" if "items" in schema or "prefixItems" in schema else "string"


def _between(rng: random.Random, least: int, most: int | None) -> int:
    highest = least + _MOST_ITEMS if most is None else min(most, max(least, _MOST_ITEMS))
    return rng.randint(min(least, highest), highest)


def _number(schema: Schema, rng: random.Random, *, is_integer: bool) -> Any:
    # As fractions, since 3 * 0.1 is not 0.3 as floats. Few digits, since a schema does not tell how many a Decimal may have.
    told = {name: Fraction(str(schema[name])) for name in _BOUNDS if name in schema}
    step = told.get("multipleOf") or Fraction(1 if is_integer else "0.5")
    if is_integer:
        step = Fraction(step.numerator)  # the whole multiples of a fraction are those of its numerator
    low = max((told[name] for name in _BOUNDS[:2] if name in told), default=None)
    high = min((told[name] for name in _BOUNDS[2:4] if name in told), default=None)
    if low is None:
        low = Fraction(0) if high is None else high - 100 * step
    if high is None:
        high = low + 100 * step
    while True:
        first, last = math.ceil(low / step), math.floor(high / step)
        first += first * step == told.get("exclusiveMinimum")
        last -= last * step == told.get("exclusiveMaximum")
        if first <= last:
            number = step * rng.randint(first, last)
            return int(number) if number.denominator == 1 and (is_integer or rng.random() < 0.5) else float(number)
        if is_integer or "multipleOf" in told or low >= high:
            shown = ", ".join(f"{name} {schema[name]}" for name in told)
            raise UsageError(f"no number fits {shown}. Check the type.")
        step = (high - low) / 2


_BOUNDS: Final = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf")


def text_matching(pattern: str, rng: random.Random, *, least: int = 0, most: int | None = None) -> str:
    """Return a text in which `pattern` is found, of `least` to `most` characters.

    Raises:
        ConfigError: rstr is not installed.
        UsageError: the pattern cannot be read, or no such text was found.
    """
    shown = cut(pattern, 100)
    try:
        maker = importlib.import_module("rstr").Rstr(rng)
    except ImportError as error:
        raise ConfigError(
            f"SchemaLLM needs a text that matches {shown!r}. Give the field examples=[…], or run: pip install rstr"
        ) from error
    try:
        for _ in range(_MOST_MATCHES):
            text: str = maker.xeger(pattern)
            if len(text) < least:
                text = text.ljust(least, "x")  # a pattern need not match from end to end
            if (most is None or len(text) <= most) and re.search(pattern, text):
                return text
    except Exception as error:
        raise UsageError(
            f"SchemaLLM cannot read the pattern {shown!r} ({error}). Give the field examples=[…]."
        ) from error
    room = f"at least {least}" if most is None else f"{least} to {most}"
    raise UsageError(
        f"SchemaLLM found no text of {room} characters that matches {shown!r}. Give the field examples=[…]."
    )


def words(rng: random.Random, least: int = 0, most: int | None = None) -> str:
    """Return a few words, together of `least` to `most` characters."""
    text = " ".join(rng.choices(WORDS, k=rng.randint(1, 3)))
    while len(text) < least:
        text += f" {rng.choice(WORDS)}"
    if most is not None and len(text) > most:
        # White space at an end may be stripped, and would then be missing.
        text = text[:most]
        text = text if text == text.strip() else text.strip().ljust(most, "x")
    return text


def _formatted(name: str, rng: random.Random) -> str | None:
    """Return a text of a format, None for an unknown format."""
    when = _FIRST_DAY + timedelta(seconds=rng.randrange(_SECONDS))
    word, number = rng.choice(WORDS), rng.randrange(1, 256)
    if name.startswith("uuid"):
        return str(uuid.UUID(int=rng.getrandbits(128), version=int(name[4:] or 4) if name[4:] in "1345" else 4))
    formats = {
        "date": when.date().isoformat(),
        "date-time": when.isoformat().replace("+00:00", "Z"),
        "time": when.strftime("%H:%M:%S"),
        "duration": f"PT{rng.randrange(48)}H{rng.randrange(60)}M",
        "name-email": f"{word.capitalize()} <{word}@example.com>",
        "hostname": f"{word}.example.com",
        "regex": f"^{word}$",
    }
    formats |= dict.fromkeys(("email", "idn-email"), f"{word}@example.com")
    formats |= dict.fromkeys(("uri", "url", "iri", "uri-reference"), f"https://example.com/{word}")
    formats |= dict.fromkeys(("base64", "base64url"), base64.urlsafe_b64encode(word.encode()).decode())
    formats |= {"ipv4": f"192.0.2.{number}", "ipvanyaddress": f"192.0.2.{number}", "boolean": "true"}
    for network in ("interface", "network"):
        formats |= dict.fromkeys((f"ipv4{network}", f"ipvany{network}"), f"192.0.2.{number}/32")
        formats[f"ipv6{network}"] = f"2001:db8::{number:x}/128"
    return {**formats, "ipv6": f"2001:db8::{number:x}", "integer": str(number), "number": f"{number}.5"}.get(name)
