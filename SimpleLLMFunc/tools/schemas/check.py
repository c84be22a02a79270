"""A given JSON Schema: checked once, then values against it, in bounded work; and the tool parameters that it describes.

The schema may come from outside (an MCP server, a scheduler) and the values come from a model, so both are held in
bounds: nothing is fetched, patterns run in an engine without backtracking, and one validation does a limited amount of
work.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from SimpleLLMFunc.errors import SchemaError, ToolDefinitionError, Violation, cut
from SimpleLLMFunc.tools.schemas.annotations import is_context, resolved_hints
from SimpleLLMFunc.tools.schemas.bounds import at, check_bounds, escaped, pattern_matches
from SimpleLLMFunc.tools.schemas.callable_schema import ArgumentsError, BoundArguments
from SimpleLLMFunc.utils import path_text

if TYPE_CHECKING:
    from jsonschema import ValidationError as Invalid

MAX_WORK: Final = 100_000
"""Keywords that one validation may evaluate."""
MAX_NESTING: Final = 100
"""Keywords inside each other; well below where Python's own limit strikes, which the validator does not survive."""

_MAX_VIOLATIONS = 20

ExtraTypes = tuple[tuple[str, Callable[[Any], bool]], ...]
"""Names that `type` may hold beyond JSON Schema's own, each with what tells its values."""


@dataclass(slots=True)
class _Work:
    """What one validation may still do."""

    left: int = field(default_factory=lambda: MAX_WORK)
    nesting: int = 0


_work: ContextVar[_Work | None] = ContextVar("SimpleLLMFunc.schema_work", default=None)


class SchemaValidation:
    """A schema that has been found sound, and the check of values against it.

    Attributes:
        validator_class: of jsonschema, its dangerous keywords replaced and every keyword counted.
        validator: an instance of it for this schema.

    Args:
        schema: as it was written; it is not changed.
        is_draft_7: which draft it is read by; None asks its ``$schema``, and takes 2020-12 where that is silent.
        extra_types: further names for the keyword `type`, for draft 7 only.

    Raises:
        SchemaError: invalid, remote, endless, too large, or with a pattern that needs backtracking.
    """

    def __init__(
        self, schema: Mapping[str, Any], *, is_draft_7: bool | None = None, extra_types: ExtraTypes = ()
    ) -> None:
        import referencing

        odd = check_bounds(schema)
        if is_draft_7 is None:
            is_draft_7 = "draft-07" in str(schema.get("$schema", ""))
        # On a fresh stack: it nests a dozen calls per level, and the caller may stand deep already.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(_check_keywords, {"": schema, **odd}, _meta_validator(is_draft_7, extra_types)).result()
        self.validator_class: Any = _validator_class(is_draft_7, extra_types)
        # Without this registry the validator would fetch what a `$ref` names.
        self.validator: Any = self.validator_class(schema, registry=referencing.Registry())
        self.violations({})  # an endless schema shows itself with any value

    def violations(self, value: Any) -> list[Violation]:
        """Return what does not fit, at most twenty violations, empty where all does.

        Raises:
            SchemaError: a reference leads nowhere or round in a circle, or the work has no end in sight.
        """
        return [_violation(error) for error in self.errors(value, limit=_MAX_VIOLATIONS)]

    def errors(self, value: Any, *, limit: int) -> list[Invalid]:
        """Return what does not fit as jsonschema says it, at most `limit` errors. Raises as `violations`."""
        import referencing.exceptions

        token = _work.set(_Work())
        try:
            return list(islice(self.validator.iter_errors(value), limit))
        except referencing.exceptions.Unresolvable as error:
            raise SchemaError(f"its reference {cut(str(error.ref), 100)!r} leads nowhere") from None
        finally:
            _work.reset(token)


def _check_keywords(schemas: Mapping[str, Any], meta: Any) -> None:
    from jsonschema.exceptions import best_match

    for reference, schema in schemas.items():
        worst = best_match(meta.iter_errors(schema))
        if worst is not None:
            where = "".join(f"/{escaped(part)}" for part in worst.absolute_path)
            what = f"what its reference {cut(reference, 100)!r} leads to" if reference else "it"
            raise SchemaError(f"{what} is no valid JSON Schema{at(where)}: {cut(worst.message, 200)}")


@functools.cache
def _meta_validator(is_draft_7: bool, extra_types: ExtraTypes) -> Any:
    """Return what checks a schema itself."""
    import jsonschema

    base: Any = jsonschema.Draft7Validator if is_draft_7 else jsonschema.Draft202012Validator
    if not extra_types:
        return base(base.META_SCHEMA)
    meta = json.loads(json.dumps(base.META_SCHEMA))
    meta["definitions"]["simpleTypes"]["enum"] += [name for name, _ in extra_types]
    return base(meta)


# --- the validator ---------------------------------------------------------------------------------------


@functools.cache
def _validator_class(is_draft_7: bool, extra_types: ExtraTypes) -> Any:
    """Return the validator with the dangerous keywords replaced and every keyword counted."""
    import jsonschema
    import jsonschema.validators

    base: Any = jsonschema.Draft7Validator if is_draft_7 else jsonschema.Draft202012Validator
    own = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
        "multipleOf": _multiple_of,
    }
    checks = {keyword: _counted(check) for keyword, check in {**base.VALIDATORS, **own}.items()}
    types = {name: functools.partial(lambda tells, _, value: tells(value), tells) for name, tells in extra_types}
    extend: Any = jsonschema.validators.extend
    return extend(base, checks, type_checker=base.TYPE_CHECKER.redefine_many(types))


Check = Callable[[Any, Any, Any, Any], "Iterator[Invalid] | None"]


def _counted(check: Check) -> Check:
    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Invalid]:
        work = _work.get() or _Work()
        work.left -= 1
        if work.left < 0:
            raise SchemaError(f"checking one value took more than {MAX_WORK} steps")
        work.nesting += 1
        try:
            if work.nesting > MAX_NESTING:
                raise SchemaError("it refers to itself without end, or the value is nested too deeply")
            yield from check(validator, value, instance, schema) or ()
        finally:
            work.nesting -= 1

    return counted


def _pattern(_: Any, pattern: str, instance: Any, __: Any) -> Iterator[Invalid]:
    if isinstance(instance, str) and not pattern_matches(pattern, instance):
        yield _invalid(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, _: Any) -> Iterator[Invalid]:
    if isinstance(instance, dict):
        for pattern, subschema in patterns.items():
            for key, value in instance.items():
                if pattern_matches(pattern, key):
                    yield from validator.descend(value, subschema, path=key, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[Invalid]:
    if not isinstance(instance, dict):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for key, value in instance.items():
        if key not in known and not any(pattern_matches(pattern, key) for pattern in patterns):
            if allowed is False:
                yield _invalid(repr(key))
            else:
                yield from validator.descend(value, allowed, path=key)


def _unique_items(_: Any, wanted: Any, instance: Any, __: Any) -> Iterator[Invalid]:
    if wanted and isinstance(instance, list):
        seen = {json.dumps(_canonical(item), sort_keys=True) for item in instance}
        if len(seen) != len(instance):
            yield _invalid("the items are not all different")


def _canonical(value: Any) -> Any:
    """Return the value with 1.0 written as 1: to JSON Schema they are one number."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    if isinstance(value, dict):
        return {key: _canonical(item) for key, item in value.items()}
    return value


def _multiple_of(validator: Any, divisor: Any, instance: Any, _: Any) -> Iterator[Invalid]:
    if not validator.is_type(instance, "number"):
        return
    try:
        # by its digits: as floats, 0.3 is no multiple of 0.1
        is_multiple = Fraction(repr(instance)) % Fraction(repr(divisor)) == 0
    except ValueError:  # NaN, or without end
        is_multiple = False
    if not is_multiple:
        yield _invalid(f"{cut(repr(instance), 60)} is not a multiple of {divisor}")


def _invalid(message: str) -> Invalid:
    from jsonschema import ValidationError

    return ValidationError(message)


def _violation(error: Invalid) -> Violation:
    path = path_text(error.absolute_path)
    got = cut(json.dumps(error.instance, ensure_ascii=False, default=str), 80)
    match error.validator:
        case "type":
            return path, f"{error.validator_value}", got
        case "enum":
            return path, f"one of {cut(json.dumps(error.validator_value, ensure_ascii=False), 200)}", got
        case "required":
            return path, f"also {error.message.removesuffix(' is a required property')}", got
        case "additionalProperties":
            return path, "no other names", cut(error.message, 120)
    return path, f"what fits its {error.validator}", cut(error.message, 120)


# --- the parameters of a tool ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SchemaParameters:
    """The parameters of a tool whose JSON Schema was given."""

    schema: dict[str, Any]
    _validation: SchemaValidation
    _contexts: frozenset[str]
    may_repair: bool = False

    @classmethod
    def of(cls, func: Callable[..., Any], name: str, schema: Mapping[str, Any]) -> SchemaParameters:
        """Check the schema; `func` is only asked where it wants its `ToolContext`.

        Raises:
            ToolDefinitionError: the schema cannot be used; `name` is the tool's.
        """
        if not hasattr(schema, "get") or schema.get("type", "object") != "object":
            raise ToolDefinitionError(name, "`parameters` must be a JSON Schema of an object.")
        shown = {"type": "object", **schema}
        shown.setdefault("properties", {})
        try:
            validation = SchemaValidation(shown)
        except SchemaError as error:
            raise ToolDefinitionError(name, f"`parameters` cannot be used: {error}") from error
        return cls(shown, validation, _context_names(func))

    def bind(self, arguments: Mapping[str, Any], context: Any) -> BoundArguments:
        """Return the arguments as keywords, nothing converted, filled in or dropped.

        Raises:
            ArgumentsError: they do not fit the schema.
        """
        try:
            violations = self._validation.violations(dict(arguments))
        except SchemaError as error:
            raise ArgumentsError([("", "arguments the schema can be checked with", str(error))]) from None
        taken = [(name, "no such parameter", "another") for name in arguments if name in self._contexts]
        if violations or taken:
            raise ArgumentsError(violations + taken)
        return [], {**arguments, **dict.fromkeys(self._contexts, context)}


def _context_names(func: Callable[..., Any]) -> frozenset[str]:
    try:
        names = inspect.signature(func).parameters
        hints = resolved_hints(func, "")
    except (TypeError, ValueError, ToolDefinitionError):
        return frozenset()  # a callable that shows no signature wants no context either
    return frozenset(name for name in names if is_context(hints.get(name)))
