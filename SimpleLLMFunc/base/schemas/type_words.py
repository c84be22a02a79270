"""What a type is called in a prompt: plain English, made of phrases that know their plural.

``list[str | None]`` is "list of strings, each may be null". What holds for a value follows it after a comma; what holds for
the values inside of it follows after "each"; fields are in braces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from SimpleLLMFunc.base.schemas.type_description import (
    Describer,
    Schema,
    field_notes,
    literal,
    own_description,
    without_description,
)
from SimpleLLMFunc.tools.schemas import EnumSchema

_SCALARS = {
    "integer": "integer{s}", "number": "number{s}", "string": "string{s}", "boolean": "true/false value{s}",
    "date": "date{s} (YYYY-MM-DD)", "date-time": "date{s} and time{s} (ISO 8601, such as 2024-05-31T09:30:00Z)",
    "time": "time{s} (HH:MM:SS)", "duration": "duration{s} (ISO 8601, such as PT1H30M)",
    "uuid": "UUID{s}", "email": "e-mail address{es}", "uri": "URL{s}",
    "path": "file path{s}", "file-path": "file path{s}", "directory-path": "folder path{s}",
    "ipv4": "IPv4 address{es}", "ipv6": "IPv6 address{es}",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Phrase:
    """What a value is called.

    Attributes:
        one: of one value: "integer".
        many: of several: "integers"; empty where they have no such word.
        notes: what else holds for the value: "at least 1".
        or_null: it may be null.
        is_deep: the notes also say what holds for the values inside.
    """

    one: str
    many: str = ""
    notes: tuple[str, ...] = ()
    or_null: bool = False
    is_deep: bool = False

    def __str__(self) -> str:
        one = self.one
        if self.or_null:
            one = "true, false or null" if one == "true or false" else f"{one} or null"
            # Of a list of strings or null one could think that the strings may be null.
            one = f"null or {self.one}" if self._runs_on else one
        return ", ".join([one, *self.notes])

    @property
    def _runs_on(self) -> bool:
        return self.one.startswith(("list of ", "object with "))

    @property
    def as_part(self) -> str:
        """The phrase as one of several choices: in brackets where it could run into the next one."""
        could_run = self.notes or self._runs_on or " or " in self.one or ", " in self.one.partition("{")[0]
        return f"({self})" if could_run else str(self)

    @property
    def inside(self) -> str:
        """The phrase behind "each:": in brackets where it says "each" itself."""
        return f"({self})" if self.is_deep else str(self)

    def each(self, what: str) -> tuple[str, ...]:
        """Return what to say of the values inside a list or a mapping that have this phrase."""
        return (*(f"{what} {note}" for note in self.notes), *([f"{what} may be null"] if self.or_null else []))


def either(phrases: Sequence[Phrase]) -> Phrase:
    """Return the phrase of a choice."""
    different = list(dict.fromkeys(phrases))
    others = [phrase for phrase in different if phrase.one != "null"]
    or_null = len(others) < len(different) or any(phrase.or_null for phrase in others)
    if not others:
        return Phrase("null")
    if len(others) == 1:
        return replace(others[0], or_null=or_null)
    return Phrase(" or ".join(replace(phrase, or_null=False).as_part for phrase in others), or_null=or_null)


def list_of(item: Phrase | None, notes: Sequence[str] = ()) -> Phrase:
    """Return the phrase of a list; of "anything" without an item schema."""
    if item is None:
        return Phrase("list", "lists", tuple(notes))
    if not item.many or item.is_deep:
        return Phrase("list of values", "", (*notes, f"each: {item.inside}"), is_deep=True)
    each = item.each("each")
    return Phrase(f"list of {item.many}", f"lists of {item.many}", (*notes, *each), is_deep=bool(each))


class PlainWords(Describer):
    """Describes one schema as a model reads it."""

    def in_words(self, schema: Schema, inside: tuple[str, ...] = ()) -> str:
        """Return the type in plain words."""
        return str(self.phrase(schema, inside))

    def phrase(self, schema: Schema, inside: tuple[str, ...] = ()) -> Phrase:
        """Return what a value of the schema is called; `inside` is the chain of definitions around it."""
        schema, inside, is_cut = self._resolved(schema, inside)
        title = f"{schema.get('title', '')} object".strip()
        if is_cut:
            return Phrase(f"{title} (as above)", f"{title}s (as above)")
        if "properties" in schema:
            fields = self._fields_in_words(schema, inside)
            about = _in_one_line(own_description(schema))
            shown = f"{f' ({about})' if about else ''} {{{fields}}}" if fields else " without fields"
            return Phrase(f"{title}{shown}", f"{title}s{shown}")
        return self._leaf(schema, inside)

    def _cut(self, schema: Schema) -> str:
        return f"{schema.get('title', '')} object (as above)".strip()

    def _field_in_words(self, schema: Schema, name: str, field: Schema, inside: tuple[str, ...]) -> str:
        kind = self.in_words(without_description(field), inside)
        described = f" ({_in_one_line(field['description'])})" if "description" in field else ""
        return f"{name}: {', '.join([kind, *field_notes(schema, name, field)])}{described}"

    def _plain(self, schema: Schema, inside: tuple[str, ...]) -> str:
        return str(self._leaf(schema, inside))

    def _leaf(self, schema: Schema, inside: tuple[str, ...]) -> Phrase:
        if "const" in schema:
            return Phrase(literal(schema["const"]))
        if "enum" in schema:
            values = [literal(value) for value in schema["enum"]]
            named = str(schema.get("description", "")).partition(EnumSchema.NAMED)[2]
            return Phrase(f"one of {', '.join(values)}{named and f' ({named})'}" if len(values) > 1 else values[0])
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return either([self.phrase(part, inside) for part in schema[key]])
        kind = schema.get("type")
        if isinstance(kind, list):
            return either([self._leaf({**schema, "type": one}, inside) for one in kind])
        notes = tuple(self._bounds(schema))
        if kind == "array":
            return self._list(schema, inside, notes)
        if kind == "object":
            return self._mapping(schema, inside, notes)
        if kind == "boolean":
            return Phrase("true or false", "true/false values")
        if kind == "null":
            return Phrase("null")
        if schema.get("format") == "binary":
            return Phrase("bytes", "byte strings", notes)
        scalar = _SCALARS.get(schema.get("format", ""), _SCALARS.get(kind or "", ""))
        if not scalar:
            return Phrase("any value", "any values")
        one = scalar.replace("{s}", "").replace("{es}", "")
        return Phrase(one, scalar.replace("{s}", "s").replace("{es}", "es"), notes)

    def _list(self, schema: Schema, inside: tuple[str, ...], notes: tuple[str, ...]) -> Phrase:
        if "prefixItems" in schema:
            parts = [_named(part, self.phrase(part, inside)) for part in schema["prefixItems"]]
            return Phrase(f"list of exactly {_counted(len(parts), 'value')}: {', then '.join(parts)}")
        if schema.get("maxItems") == 0:
            return Phrase("empty list", "empty lists")
        items = schema.get("items")
        unique = ("without duplicates",) if schema.get("uniqueItems") else ()
        return list_of(self.phrase(items, inside) if isinstance(items, dict) and items else None, (*unique, *notes))

    def _mapping(self, schema: Schema, inside: tuple[str, ...], notes: tuple[str, ...]) -> Phrase:
        keys, values = "with any keys", schema.get("additionalProperties")
        if names := schema.get("propertyNames"):
            key = self.phrase({"type": "string", **names}, inside)
            keys = f"with {key.many} as keys" if key.many and not key.notes else f"with keys ({key})"
        if patterns := schema.get("patternProperties"):
            [(pattern, values), *_] = patterns.items()
            keys = f"with keys matching the regular expression {pattern}"
        if not isinstance(values, dict) or not values:
            return Phrase(f"object {keys}", f"objects {keys}", notes)
        value = self.phrase(values, inside)
        if not value.many or value.is_deep:
            return Phrase(f"object {keys}", "", (*notes, f"each value: {value.inside}"), is_deep=True)
        whose, each = f"{keys} whose values are {value.many}", value.each("each value")
        return Phrase(f"object {whose}", f"objects {whose}", (*notes, *each), is_deep=bool(each))

    def _bounds(self, schema: Schema) -> list[str]:
        return [] if "prefixItems" in schema else list(_notes(schema))


def _notes(schema: Schema) -> Iterator[str]:
    yield from _span(schema, "minimum", "maximum")
    if "exclusiveMinimum" in schema:
        yield f"greater than {literal(schema['exclusiveMinimum'])}"
    if "exclusiveMaximum" in schema:
        yield f"less than {literal(schema['exclusiveMaximum'])}"
    if "multipleOf" in schema:
        yield f"a multiple of {literal(schema['multipleOf'])}"
    yield from _span(schema, "minLength", "maxLength", "character")
    if "pattern" in schema:
        yield f"matching the regular expression {schema['pattern']}"
    yield from (f"with {span}" for span in _span(schema, "minItems", "maxItems", "item"))
    yield from (f"with {span}" for span in _span(schema, "minProperties", "maxProperties", "key"))


def _span(schema: Schema, least: str, most: str, unit: str = "") -> Iterator[str]:
    low, high = schema.get(least), schema.get(most)
    if low is None and high is None:
        return
    last = _counted(low if high is None else high, unit)
    if low is None or high is None:
        yield f"at {'least' if high is None else 'most'} {last}"
    else:
        yield f"exactly {last}" if low == high else f"{'' if unit else 'from '}{literal(low)} to {last}"


def _counted(number: Any, unit: str) -> str:
    return " ".join([literal(number), *([unit if number == 1 else f"{unit}s"] if unit else [])])


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def _named(part: Schema, phrase: Phrase) -> str:
    # A field of a named tuple has a title; an item of a plain one has none, and a referred type its own.
    return f"{part['title']}: {phrase}" if "title" in part and "properties" not in part else phrase.as_part
