"""A callable's signature and docstring as a JSON Schema, and arguments from a model as a call of it.

The schema and the validator are built once, from one pydantic `TypedDict` that has a key for every parameter:
a TypedDict takes any key, so a parameter may be called `self`, `model_config`, `_x` or `schema`.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, NotRequired, Optional, Required, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import SchemaError as BoundError
from pydantic_core import to_jsonable_python
from typing_extensions import TypedDict, Unpack

from SimpleLLMFunc.errors import SignatureError, ToolDefinitionError, Violation, cut
from SimpleLLMFunc.logger import shown_value
from SimpleLLMFunc.tools.schemas.annotations import (
    EnumSchema,
    accepts_none,
    annotated,
    described,
    is_context,
    own_description,
    resolved_hints,
)
from SimpleLLMFunc.tools.schemas.docstring import Documentation
from SimpleLLMFunc.tools.schemas.strict import takes_null
from SimpleLLMFunc.utils import path_text, settled

BoundArguments = tuple[list[Any], dict[str, Any]]
"""Positional and keyword arguments of a call."""

_ENCODER = json.JSONEncoder(ensure_ascii=False)
_REST: Final = "**"
"""The key under which surplus arguments are validated for a callable that takes ``**kwargs``."""

# The checkers read a subscript of these as an annotation and refuse a variable in it.
_Required: Any = Required
_NotRequired: Any = NotRequired
_Optional: Any = Optional
_Dict: Any = dict
_List: Any = list
_TypedDict: Any = TypedDict

_MOST_VIOLATIONS: Final = 20
_NUMBER_ERRORS: Final = frozenset({"int_type", "float_type", "decimal_type"})


class ArgumentsError(SignatureError):
    """Arguments that do not fit a tool; `.violations` says where."""

    def __init__(self, violations: list[Violation]) -> None:
        self.violations = violations
        super().__init__(
            "; ".join(f"{path or 'arguments'}: expected {want}, got {got}" for path, want, got in violations)
        )


@dataclass(frozen=True, slots=True)
class SignatureParameters:
    """The parameters of a callable, read from its signature.

    Attributes:
        schema: what the model is shown.
    """

    schema: dict[str, Any]
    _parameters: tuple[inspect.Parameter, ...]
    _contexts: frozenset[str]
    _null_is_absent: frozenset[str]
    _takes_rest: bool
    _adapter: TypeAdapter[dict[str, Any]]
    may_repair: bool = True

    @classmethod
    def of(cls, func: Callable[..., Any], name: str, documentation: Documentation) -> SignatureParameters:
        """Read `func`; `name` is the tool's, for messages.

        Raises:
            ToolDefinitionError: no signature, a parameter without a type, or a type without a schema.
        """
        parameters, hints = _parameters_of(func, name), resolved_hints(func, name)
        preset = _preset_by_partial(func)
        contexts: set[str] = set()
        shown: list[inspect.Parameter] = []
        fields: dict[str, Any] = {}
        for parameter in parameters:
            annotation = hints.get(parameter.name, parameter.annotation)
            if is_context(annotation):
                contexts.add(parameter.name)
            elif parameter.name not in preset:
                shown.append(parameter)
                try:
                    fields |= _fields(name, parameter, annotation, documentation)
                except TypeError as error:  # from `typing`
                    raise ToolDefinitionError(name, f"the annotation of {parameter.name} is no type.") from error
        adapter = _adapter(name, fields)
        schema = _schema(name, adapter, fields, shown)
        optional = schema["properties"].keys() - set(schema.get("required", ()))
        null_is_absent = frozenset(key for key in optional if not takes_null(schema["properties"][key]))
        return cls(schema, parameters, frozenset(contexts), null_is_absent, _REST in fields, adapter)

    def bind(self, arguments: Mapping[str, Any], context: Any) -> BoundArguments:
        """Return what to call the callable with; what the model left out keeps the callable's own default.

        Raises:
            ArgumentsError: unknown, missing or unfit arguments.
        """
        values = self._validated(arguments)
        if self._contexts:
            values |= dict.fromkeys(self._contexts, context)
        rest: Mapping[str, Any] = values.pop(_REST, None) or {}
        args: list[Any] = []
        # What follows an extra positional argument's place must itself be given by position.
        all_by_position = any(p.kind is p.VAR_POSITIONAL and values.get(p.name) for p in self._parameters)
        left_out: list[Any] = []
        for parameter in self._parameters:
            if parameter.kind is parameter.VAR_POSITIONAL:
                args.extend(values.pop(parameter.name, ()))
            elif parameter.kind is parameter.POSITIONAL_ONLY or (
                all_by_position and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
            ):
                if parameter.name not in values and not all_by_position:
                    left_out.append(parameter.default)
                    continue
                args.extend(left_out)
                left_out.clear()
                args.append(values.pop(parameter.name, parameter.default))
        return args, {**rest, **values}

    def _validated(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        known = self.schema["properties"]
        given = {k: value for k, value in arguments.items() if value is not None or k not in self._null_is_absent}
        if self._takes_rest:
            rest = {key: value for key, value in given.items() if key not in known}
            given = {key: value for key, value in given.items() if key in known} | {_REST: rest}
        try:
            return _validated(self._adapter, _ENCODER.encode(given))
        except ValidationError as error:
            raise ArgumentsError(_violations(error, known)) from None
        except RecursionError:
            raise ArgumentsError([("", "a value of reasonable depth", "one nested too deeply")]) from None
        except Exception as error:
            # A validator of the user's own may raise anything; a file that is not there is a FileNotFoundError.
            got = cut(f"{type(error).__name__}: {error}", 200)
            raise ArgumentsError([("", "values that the types of the parameters take", got)]) from error


def _parameters_of(func: Callable[..., Any], name: str) -> tuple[inspect.Parameter, ...]:
    try:
        return tuple(inspect.signature(func).parameters.values())
    except (TypeError, ValueError) as error:
        raise ToolDefinitionError(name, f"it has no signature to read ({error}). Give it `parameters=`.") from error


def _has_default(parameter: inspect.Parameter) -> bool:
    return parameter.default is not inspect.Parameter.empty


def _preset_by_partial(func: Any) -> set[str]:
    """Return the names that a partial fills by keyword: its author has decided; often they are secrets."""
    names: set[str] = set()
    while isinstance(func, functools.partial):
        names |= func.keywords.keys()
        func = func.func
    return names


def _fields(name: str, parameter: inspect.Parameter, annotation: Any, documentation: Documentation) -> dict[str, Any]:
    """Return the keys that a parameter adds to the TypedDict, with their annotations."""
    key = parameter.name
    if annotation is parameter.empty:
        stars = str(parameter).partition(key)[0]
        raise ToolDefinitionError(
            name, f"parameter {stars}{key} has no type. Annotate it, such as `{stars}{key}: str`."
        )
    if parameter.kind is parameter.VAR_KEYWORD:
        if get_origin(annotation) is Unpack:
            return _unpacked(get_args(annotation)[0], documentation)
        return {_REST: _NotRequired[_Dict[str, annotation]]}
    said = own_description(annotation) or documentation.parameters.get(key, "")
    if parameter.kind is parameter.VAR_POSITIONAL:
        return {key: _NotRequired[described(_List[annotation], said)]}
    if isinstance(parameter.default, FieldInfo):
        annotation = annotated(annotation, parameter.default)
        said = own_description(annotation) or said
        has_default = False  # a `Field` without a default does not count
    else:
        has_default = _has_default(parameter)
        if parameter.default is None and not accepts_none(annotation):
            annotation = _Optional[annotation]
    extras = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    has_default = has_default or any(isinstance(extra, FieldInfo) and not extra.is_required() for extra in extras)
    return {key: (_NotRequired if has_default else _Required)[described(annotation, said)]}


def _unpacked(options: Any, documentation: Documentation) -> dict[str, Any]:
    """Return the keys of ``**kwargs: Unpack[Options]``."""
    fields: dict[str, Any] = {}
    for key, annotation in get_type_hints(options, include_extras=True).items():
        said = own_description(annotation) or documentation.parameters.get(key, "")
        # `__required_keys__` misses an explicit Required[…] in annotations that are text; an explicit NotRequired[…] wins here.
        is_required = get_origin(annotation) is Required or key in options.__required_keys__
        fields[key] = (_Required if is_required else _NotRequired)[described(annotation, said)]
    return fields


def _adapter(name: str, fields: dict[str, Any]) -> TypeAdapter[dict[str, Any]]:
    try:
        return _build(fields)
    except Exception as error:  # noqa: BLE001 - pydantic's own, and what a user's hooks raise while it builds the schema
        culprit, reason = _culprit(fields, error)
        hint = ""
        if "typing_extensions.TypedDict" in str(reason):
            hint = " Take TypedDict from typing_extensions: the one in typing will not do below Python 3.12."
        elif getattr(reason, "code", "") == "class-not-fully-defined":
            reason, hint = NameError("it names what is not defined"), " Define it before the tool; see model_rebuild()."
        said = cut((str(reason) or repr(reason)).splitlines()[-1 if isinstance(reason, BoundError) else 0].strip(), 200)
        raise ToolDefinitionError(name, f"{culprit} has a type no schema can be made of ({said}).{hint}") from reason


def _culprit(fields: dict[str, Any], error: Exception) -> tuple[str, Exception]:
    for key, annotation in fields.items():
        try:
            _build({key: annotation})
        except Exception as reason:  # noqa: BLE001 - as above
            return f"parameter {key}", reason
    return "a parameter", error


def _build(fields: dict[str, Any]) -> TypeAdapter[dict[str, Any]]:
    # The names are the user's, so the class can only be made at run time.
    arguments: Any = _TypedDict("Arguments", fields)
    arguments.__pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)
    adapter: TypeAdapter[dict[str, Any]] = TypeAdapter(arguments)
    adapter.json_schema(schema_generator=_Schema)
    return adapter


class _Schema(EnumSchema):
    """JSON Schema without the titles that only repeat a name."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        return False


def _schema(
    name: str, adapter: TypeAdapter[dict[str, Any]], fields: dict[str, Any], shown: list[inspect.Parameter]
) -> dict[str, Any]:
    """Return what the model is shown; the definitions of nested models stand at its root."""
    schema = adapter.json_schema(schema_generator=_Schema)
    schema.pop("title", None)
    properties = schema.setdefault("properties", {})
    if len(properties) != len(fields):
        raise ToolDefinitionError(name, "two parameters have one name for the model. Change the `alias` of one.")
    if _REST in properties:
        schema["additionalProperties"] = properties.pop(_REST).get("additionalProperties", True)
    # The order of the schema is that of the fields; an alias has changed the name, not the place.
    by_name = dict(zip(fields, properties.values(), strict=False))
    for parameter in shown:
        if _has_default(parameter) and not isinstance(parameter.default, FieldInfo):
            try:
                default = json.loads(json.dumps(to_jsonable_python(parameter.default), allow_nan=False))
                by_name[parameter.name]["default"] = settled(default, parameter.default)
            except (ValueError, RecursionError):
                continue  # a default that is no JSON: the model need not know it
    return schema


def _validated(adapter: TypeAdapter[dict[str, Any]], text: str) -> dict[str, Any]:
    try:
        return adapter.validate_json(text, strict=True)
    except ValidationError as error:
        # Conversion is for text that holds a number or a date; yes and no are never taken for 1 and 0.
        if any(e["type"] in _NUMBER_ERRORS and isinstance(e["input"], bool) for e in _errors(error)):
            raise
        return adapter.validate_json(text)


def _errors(error: ValidationError) -> list[Any]:
    return list(error.errors(include_url=False, include_context=False))


def _violations(error: ValidationError, known: Mapping[str, Any]) -> list[Violation]:
    violations: list[Violation] = []
    for item in _errors(error)[:_MOST_VIOLATIONS]:
        path = path_text(part for part in item["loc"] if part != _REST)
        if item["type"] == "missing":
            violations.append((path, "a value", "nothing"))
        elif item["type"] == "extra_forbidden" and len(item["loc"]) == 1:
            violations.append(
                (path, f"one of the parameters {', '.join(known) or '(it has no parameters)'}", "another")
            )
        else:
            wanted = item["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
            violations.append((path, wanted, shown_value(item["input"], 80)))
    return violations
