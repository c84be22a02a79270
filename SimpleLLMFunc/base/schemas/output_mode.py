"""How a typed answer is asked for: as native schema, as a tool call, or in the prompt; and what it is read with."""

from __future__ import annotations

import functools
import re
from collections.abc import Hashable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Literal, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import SchemaError as BoundError
from pydantic_core import core_schema

from SimpleLLMFunc.base.parsing import AnswerReader, OutputMode, Parsed, RepairLevel
from SimpleLLMFunc.base.parsing.alignment import Shape
from SimpleLLMFunc.base.schemas.choices import labels_of
from SimpleLLMFunc.base.schemas.strict_schema import StrictSchema, inlined_root, wrapped_schema
from SimpleLLMFunc.errors import ResponseParseError, SignatureError, counted
from SimpleLLMFunc.interface.profile import Profile
from SimpleLLMFunc.tools.schemas import EnumSchema
from SimpleLLMFunc.type import QUOTED, Confident, ToolSpec

ANSWER_TOOL = "answer"
"""Name of the tool whose arguments are the value, in tool mode."""


_KEYS = {"int": "integer", "float": "number", "decimal": "number", "bool": "boolean"}
"""What the keys of a mapping are called that JSON writes as texts."""


class _WireSchema(EnumSchema):
    """pydantic's schema, but a Decimal is a number: its digits are read as they stand, quotes would only confuse."""

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        made: JsonSchemaValue = {"type": "number"}
        limits = {"ge", "gt", "le", "lt", "multiple_of"}
        bounds: Any = {key: float(str(part)) for key, part in schema.items() if key in limits}
        self.update_with_validations(made, bounds, self.ValidationsMapping.numeric)
        return made

    def function_after_schema(self, schema: core_schema.AfterValidatorFunctionSchema) -> JsonSchemaValue:
        made: JsonSchemaValue = super().function_after_schema(schema)
        return {**made, QUOTED: True} if (schema.get("metadata") or {}).get(QUOTED) else made

    def field_is_present(self, field: Any) -> bool:
        return bool(field.get("init", True))  # a value for another field would be thrown away

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        if schema["cls"] is Confident:
            raise SignatureError(
                "Confident[...] cannot stand inside another type. Annotate the function: `-> Confident[list[int]]`."
            )
        return super().dataclass_schema(schema)

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        made = super().dict_schema(schema)
        kind = _KEYS.get(schema.get("keys_schema", {}).get("type", ""))
        return {**made, "propertyNames": {"format": kind}} if kind else made


class OutputSpec:
    """All that is known about a return type: its schema, how it is asked for, how an answer is read.

    Attributes:
        return_type: the annotation.
        adapter: pydantic's adapter of it.
        schema: the plain JSON schema of the value, by alias, not wrapped.
        is_text: the type is `str`; "auto" asks for it as plain text.
        is_none: the type is None; the answer is ignored.
        is_wrapped: the value is no JSON object, so it goes over the wire as ``{"value": …}``.
        name: what the schema is called on the wire.
        quotes: where the value holds texts that must occur in an argument: ``"quote"``, ``"findings[].text"``; "" for
            the value itself.
    """

    thinks = False
    """Whether reasons are asked for before the value."""

    def __init__(
        self, return_type: Any, adapter: TypeAdapter[Any], schema: dict[str, Any], quotes: Sequence[str] = ()
    ) -> None:
        self.return_type = return_type
        self.adapter = adapter
        self.schema = schema
        self.is_text = return_type is str
        self.is_none = return_type is None or return_type is type(None)
        self.is_wrapped = inlined_root(schema).get("type") != "object"
        self.name = _wire_name(return_type)
        self.quotes = tuple(quotes)

    @functools.cached_property
    def wire_schema(self) -> dict[str, Any]:
        """The schema of what is on the wire: `schema`, wrapped where the value is no object."""
        return wrapped_schema(self.schema) if self.is_wrapped else inlined_root(self.schema)

    @functools.cached_property
    def _strict(self) -> StrictSchema:
        return StrictSchema(self.wire_schema)

    @property
    def strict_problem(self) -> str:
        """Why the schema cannot be made strict with the same meaning; empty where it can."""
        return self._strict.problem

    @functools.cached_property
    def _reader(self) -> AnswerReader:
        return AnswerReader(self.return_type, self.adapter, is_wrapped=self.is_wrapped)

    @property
    def shape(self) -> Shape:
        """The type as the engine aligns text to it."""
        return self._reader.shape

    @functools.cached_property
    def native_format(self) -> dict[str, Any]:
        """The native response format: the strict one wherever that means the same, for then no key is forgotten.

        Strict is: every key required, no additional properties, few keywords.
        """
        schema, is_strict = self._strict.schema or self.wire_schema, self._strict.schema is not None
        return {"type": "json_schema", "json_schema": {"name": self.name, "schema": schema, "strict": is_strict}}

    @functools.cached_property
    def runs_code(self) -> bool:
        """Whether code of the user's makes a value too: validators, factories of defaults and the like."""
        return _runs_code(self.adapter.core_schema)

    @functools.cached_property
    def labels(self) -> dict[str, Any]:
        """The values by label, for a type that is a choice between labels; see `labels_of`."""
        return labels_of(self.return_type)

    @functools.cached_property
    def label_spec(self) -> OutputSpec:
        """How a label is asked for and read where the service has a schema for it: a text out of a few."""
        return compile_output(Literal[tuple(self.labels)])

    def labelled(self, label: str) -> Any:
        """Return the value of a label.

        Raises:
            ResponseParseError: a check of the user's own does not take it.
        """
        try:
            return self.adapter.validate_python(self.labels[label])
        except ValidationError as error:
            raise ResponseParseError(label, self.return_type, [("", str(error.errors()[0]["msg"]), label)]) from error

    def _parse_label(self, text: str, repair: RepairLevel) -> Parsed[Any]:
        label = text.strip()
        if label in self.labels:
            return Parsed(self.labelled(label))
        parsed = self.label_spec.parse(text, repair, mode="native")
        return Parsed(self.labelled(parsed.value), parsed.repairs)

    def answer_tool(self) -> ToolSpec:
        """Return the tool `answer`, whose arguments are the value."""
        told = {"name": ANSWER_TOOL, "description": "Give the final answer. Call this once, when you know it."}
        return {"type": "function", "function": {**told, "parameters": self.wire_schema}}

    def parse(self, text: str, repair: RepairLevel = "coerce", *, mode: OutputMode | None = None) -> Parsed[Any]:
        """Read the value in `text`, the answer of a model or the arguments of the tool `answer`.

        Args:
            text: as the model wrote it.
            repair: "off" reads strict JSON only, "syntax" also finds and mends JSON, "coerce" also aligns it
                to the type.
            mode: how the answer was asked for. In "native" and "tool" mode ``{"value": …}`` is our wrapper, also
                around `str` and `Any`; else it is the wrapper only where the bare text does not fit, and a
                `str` is the text as it stands. In "choice" mode the text is a label, bare or in our wrapper.

        Raises:
            ResponseParseError: with the violations, where no one value fits.
        """
        if self.is_none:
            return Parsed(None)
        if mode == "choice":
            return self._parse_label(text, repair)
        is_wire = mode in {"native", "tool"}
        if self.is_text and not is_wire:
            return self._reader.read_text(text)
        return self._reader.read(text, repair, prefers_wrapper=is_wire)


def _runs_code(part: Any) -> bool:
    """Whether a part of pydantic's core schema calls functions when it validates."""
    if not isinstance(part, dict):
        return isinstance(part, (list, tuple)) and any(map(_runs_code, part))
    called = part.get("post_init") or part.get("custom_init") or part.get("default_factory") or list
    is_function = str(part.get("type")).startswith("function-") or not isinstance(called, type)
    return is_function or any(map(_runs_code, part.values()))


def compile_output(return_type: Any) -> OutputSpec:
    """Return the spec of a return type; built once per type.

    Raises:
        SignatureError: no schema can be made of the type; names it and the way out.
    """
    if isinstance(return_type, Hashable):
        try:
            # Literal[1] == Literal[True] and int | str == str | int for a cache; their reprs differ.
            return _compiled(return_type, repr(return_type))
        except TypeError as error:
            # An Annotated with unhashable metadata is Hashable by its class only.
            if isinstance(error, SignatureError):
                raise
    return _compile(return_type)


@functools.lru_cache(maxsize=1024)
def _compiled(return_type: Any, form: str) -> OutputSpec:  # noqa: ARG001 - part of the key
    return _compile(return_type)


def _compile(return_type: Any) -> OutputSpec:
    if return_type is BaseModel:
        raise SignatureError("return type BaseModel has no fields. Write a class that derives from it, with fields.")
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(return_type)
        schema = adapter.json_schema(mode="validation", by_alias=True, schema_generator=_WireSchema)
    except SignatureError as error:  # from one of our own types, which says itself how it is meant
        raise SignatureError(f"return type {_called(return_type)}: {error}") from error
    except ImportError as error:
        # As EmailStr without email-validator; pydantic says what to install.
        raise SignatureError(
            f"return type {_called(return_type)} needs a package that cannot be imported: {error}. Install it."
        ) from error
    except Exception as error:  # pydantic's own, and what a user's hooks raise while it builds the schema
        raise SignatureError(_type_problem(return_type, error)) from error
    quotes = list(dict.fromkeys(_quote_paths(schema, schema.get("$defs", {}), "", ())))
    return OutputSpec(return_type, adapter, _unmarked(schema) if quotes else schema, quotes)


def _quote_paths(schema: Any, defs: dict[str, Any], path: str, inside: tuple[str, ...]) -> Iterator[str]:
    """Yield the paths of the quotes; one inside a type that contains itself is told of once."""
    if not isinstance(schema, dict):
        return
    if QUOTED in schema:
        yield path
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        if name not in inside:
            yield from _quote_paths(defs.get(name), defs, path, (*inside, name))
    for name, part in schema.get("properties", {}).items():
        yield from _quote_paths(part, defs, f"{path}.{name}".removeprefix("."), inside)
    for key in ("items", "additionalProperties"):
        yield from _quote_paths(schema.get(key), defs, f"{path}[]", inside)
    yield from _quote_paths(schema.get("propertyNames"), defs, f"the keys of {path or 'the return value'}", inside)
    for part in (*schema.get("prefixItems", ()), *schema.get("patternProperties", {}).values()):
        yield from _quote_paths(part, defs, f"{path}[]", inside)
    for key in ("anyOf", "oneOf", "allOf"):
        for part in schema.get(key, ()):
            yield from _quote_paths(part, defs, path, inside)


def _unmarked(schema: Any) -> Any:
    if isinstance(schema, dict):
        kept = {key: _unmarked(part) for key, part in schema.items() if key != QUOTED}
        if kept.get("propertyNames") == {}:
            del kept["propertyNames"]  # there was nothing but the mark
        return kept
    return [_unmarked(part) for part in schema] if isinstance(schema, list) else schema


def _called(return_type: Any) -> str:
    """Return what a type is called in an error: ``list[Grade]`` with what it holds, a class by its name."""
    if get_origin(return_type) is not None:
        return repr(return_type)
    return getattr(return_type, "__qualname__", None) or repr(return_type)


def _type_problem(return_type: Any, error: Exception) -> str:
    name = _called(return_type)
    if isinstance(error, BoundError):
        said = str(error).splitlines()[-1].strip()
        return f"return type {name}: pydantic does not take a bound or a pattern in it ({said}). Change that."
    said = str(error).partition("\n")[0]
    if "typing_extensions.TypedDict" in said:
        return (
            f"return type {name}: below Python 3.12 use typing_extensions.TypedDict instead of typing.TypedDict "
            "(`from typing_extensions import TypedDict`)."
        )
    if getattr(error, "code", "") == "class-not-fully-defined":
        return (
            f"return type {name}: an annotation in it names what is not defined. Define it before the first call, and "
            "call model_rebuild() of the model if both stand inside a function."
        )
    return (
        f"return type {name}: no JSON schema can be made of it ({said}). "
        "Use a pydantic model, a dataclass, a TypedDict or a built-in type."
    )


def choose_output_mode(
    spec: OutputSpec,
    profile: Profile,
    requested: OutputMode = "auto",
    refused: AbstractSet[str] = frozenset(),
    *,
    has_tools: bool = False,
) -> tuple[OutputMode, str]:
    """Return how the answer is asked for, and why.

    Args:
        spec: of the return type.
        profile: of the provider.
        requested: what the user asked for; kept, unless the provider has refused it.
        refused: modes this provider has refused for this model.
        has_tools: the user's own tools are offered too.
    """
    if spec.labels and not has_tools and (requested == "choice" or (requested == "auto" and profile.short_prompt)):
        asked_for = "asked for by output_mode='choice'" if requested == "choice" else "a small model"
        return "choice", f"choice: {asked_for}, {counted(len(spec.labels), 'label')}"
    if requested not in {"auto", *refused}:
        return requested, f"{requested}: asked for by output_mode={requested!r}"
    if requested == "auto" and spec.is_none:
        return "text", "text: the answer is ignored, the function returns None"
    if requested == "auto" and spec.is_text:
        return "text", "text: a function that returns str is sent as plain text"
    why: list[str] = [f"the provider refused {mode}" for mode in ("native", "tool", "prompt") if mode in refused]
    if "native" not in refused:
        if not profile.native:
            why.append(f"profile {profile.name!r} takes no response_format")
        elif has_tools and not profile.schema_with_tools:
            why.append(f"profile {profile.name!r} takes no schema together with the function's own tools")
        elif profile.strict and spec.strict_problem:
            why.append(f"the schema does not fit the strict subset ({spec.strict_problem})")
        else:
            subset = "strict schema" if profile.strict else "schema"
            return "native", f"native: profile {profile.name!r} takes a {subset}"
    elif "tool" not in refused and profile.tools == "native":
        others = ", next to the function's own tools" if has_tools else ""
        return "tool", f"tool: {', '.join(why)}; profile {profile.name!r} calls tools{others}"
    return "prompt", f"prompt: {', '.join(why)}"


def _wire_name(return_type: Any) -> str:
    name = getattr(return_type, "__name__", None) or str(return_type)
    return re.sub(r"[^a-zA-Z0-9_-]+", "_", name).strip("_")[:64] or ANSWER_TOOL
