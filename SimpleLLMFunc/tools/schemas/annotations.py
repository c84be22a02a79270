"""What the annotation of a parameter says: its type, its description, whether it is ours to fill."""

from __future__ import annotations

import functools
import inspect
import json
import sys
import traceback
from collections.abc import Callable
from enum import EnumMeta
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from pydantic import Field
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonRef, JsonSchemaValue
from pydantic_core import PydanticSerializationError, to_jsonable_python

from SimpleLLMFunc.errors import ToolDefinitionError
from SimpleLLMFunc.tools.context import ToolContext

# The checkers read a subscript of it as an annotation and refuse a variable in it.
_Annotated: Any = Annotated


def underlying(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function behind partials, bound methods and callable objects: what carries name and docstring."""
    while True:
        if isinstance(func, functools.partial):
            func = func.func
        elif isinstance(func, (staticmethod, classmethod)) or inspect.ismethod(func):
            func = func.__func__
        elif inspect.isroutine(func) or inspect.isclass(func) or hasattr(func, "__wrapped__"):
            return func
        else:
            return type(func).__call__


def name_of(func: Callable[..., Any]) -> str:
    """Return what a callable is called: the function's name, or the class of a callable object."""
    target = underlying(func)
    if target is type(func).__call__:
        return type(func).__name__
    name = getattr(target, "__name__", type(func).__name__)
    return "function" if name == "<lambda>" else str(name)


def docstring_of(func: Callable[..., Any]) -> str | None:
    """Return the docstring of a callable; of an object whose `__call__` has none, that of its class."""
    target = underlying(func)
    # Not `inspect.getdoc`: what a base class says is about the base class.
    text: str | None = target.__doc__
    return type(func).__doc__ if not text and target is type(func).__call__ else text


def resolved_hints(func: Callable[..., Any], name: str) -> dict[str, Any]:
    """Return the annotations of `func` as objects, extras kept; names of the defining function's locals count.

    Raises:
        ToolDefinitionError: an annotation cannot be resolved; `name` is the tool's.
    """
    target: Any = underlying(func)
    if inspect.isclass(target):
        target = target.__init__
    elif not hasattr(target, "__annotations__"):
        target = inspect.unwrap(target)
    try:
        try:
            return get_type_hints(target, include_extras=True)
        except NameError:  # perhaps a type that was defined next to the function, inside another one
            return get_type_hints(target, localns=_local_names(target), include_extras=True)
    except Exception as error:
        problem = f"an annotation cannot be read ({type(error).__name__}: {error}). Import its type."
        raise ToolDefinitionError(name, problem) from error


def is_context(annotation: Any) -> bool:
    """Whether a parameter of this annotation is filled by us."""
    return any(each is ToolContext or get_origin(each) is ToolContext for each in _members(annotation))


def accepts_none(annotation: Any) -> bool:
    """Whether None fits the annotation, as far as its outside tells."""
    return any(each in {None, type(None), Any, object} for each in _members(annotation))


def _members(annotation: Any) -> list[Any]:
    """Return the members of a union; of any other annotation that itself, without its extras."""
    origin = get_origin(annotation)
    parts = get_args(annotation)[:1] if origin is Annotated else get_args(annotation)
    if origin in {Annotated, Union, UnionType}:
        return [member for part in parts for member in _members(part)]
    return [annotation]


def own_description(annotation: Any) -> str:
    """Return what ``Annotated`` itself says: ``Field(description=…)``, ``Doc(…)`` or a plain string."""
    if get_origin(annotation) is not Annotated:
        return ""
    for extra in get_args(annotation)[1:]:
        text = extra.description if isinstance(extra, FieldInfo) else getattr(extra, "documentation", extra)
        if isinstance(text, str) and text:
            return text
    return ""


def annotated(annotation: Any, *extras: Any) -> Any:
    """Return ``Annotated[annotation, *extras]``."""
    return _Annotated[(annotation, *extras)]


def described(annotation: Any, description: str) -> Any:
    """Return the annotation with the description added, where there is one."""
    return annotated(annotation, Field(description=description)) if description else annotation


_shown = functools.partial(json.dumps, ensure_ascii=False)


class EnumSchema(GenerateJsonSchema):
    """JSON Schema in which a member of an enum stands once, and has its name where its value is no text.

    Defaults that are no JSON are left out.
    """

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - as pydantic declares it
    NAMED: Final = "The values mean: "
    """Precedes the names in a description."""

    def encode_default(self, dft: Any) -> Any:
        """Return a default as JSON, which has no infinity and no NaN."""
        try:
            json.dumps(to_jsonable_python(dft, fallback=repr), allow_nan=False)
        except (ValueError, RecursionError) as error:
            raise PydanticSerializationError(str(error)) from error
        return super().encode_default(dft)

    def generate_inner(self, schema: Any) -> JsonSchemaValue:
        """Return the schema of one part of a type."""
        if schema["type"] == "is-instance" and isinstance(schema["cls"], EnumMeta) and not len(schema["cls"]):
            raise ValueError(f"the enum {schema['cls'].__name__} has no members")
        if schema["type"] != "enum":
            return super().generate_inner(schema)
        # An alias is a member once more, and services refuse a value that stands twice.
        members = {member.name: member for member in schema["members"]}
        without_aliases: Any = {**schema, "members": list(members.values())}
        made = super().generate_inner(without_aliases)
        enum = self.get_schema_from_definitions(JsonRef(made["$ref"])) if "$ref" in made else made
        values, about = (enum or {}).get("enum", ()), (enum or {}).get("description", "")
        if enum and self.NAMED not in about and not all(isinstance(value, str) for value in values):
            # By value, not by place: an enum may have a JSON schema that says less, or in another order.
            names = {_shown(to_jsonable_python(each.value, fallback=repr)): name for name, each in members.items()}
            told = [f"{text} is {names[text]}" for text in map(_shown, values) if text in names]
            if told:
                enum["description"] = f"{about} {self.NAMED}{'; '.join(told)}".strip()
        return made


def _local_names(func: Any) -> dict[str, Any]:
    """Return the names that were in sight where `func` was defined: its closure, and its defining function's locals."""
    inner = inspect.unwrap(func)
    names: dict[str, Any] = {}
    scope = getattr(inner, "__qualname__", "").rpartition(".<locals>")[0]
    space = getattr(inner, "__globals__", None)
    # The defining function is on the stack.
    for frame, _ in reversed(list(traceback.walk_stack(sys._getframe(1)))):  # noqa: SLF001 - as inspect does
        if frame.f_globals is space and scope.startswith(frame.f_code.co_qualname):
            names |= frame.f_locals
    code, closure = getattr(inner, "__code__", None), getattr(inner, "__closure__", None)
    for name, cell in zip(code.co_freevars if code else (), closure or (), strict=False):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # not filled yet
            continue
    return names
