"""A JSON Schema that somebody wrote: checked once, then arguments against it, exactly as they were sent.

The schema may come from outside (an MCP server) and the arguments come from a model, so both are held in bounds:
nothing is fetched, patterns run in an engine without backtracking, and one validation does a limited amount of work.
"""

from __future__ import annotations

import functools
import inspect
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import SchemaError as PatternError
from pydantic_core import SchemaValidator, core_schema
from pydantic_core import ValidationError as NoMatch

from SimpleLLMFunc.errors import SchemaError, ToolDefinitionError, Violation, cut
from SimpleLLMFunc.tools.annotations import is_context, resolved_hints
from SimpleLLMFunc.tools.schema import ArgumentsError, BoundArguments

if TYPE_CHECKING:
    from jsonschema import ValidationError as Invalid

__all__ = ["SchemaParameters", "SchemaValidation"]

MAX_DEPTH: Final = 64
MAX_NODES: Final = 10_000
MAX_REFERENCES: Final = 1_000
MAX_PATTERN_CHARS: Final = 256
MAX_WORK: Final = 100_000
"""Keywords that one validation may evaluate."""
MAX_NESTING: Final = 100
"""Keywords inside each other; well below where Python's own limit strikes, which the validator does not survive."""

_MAX_VIOLATIONS = 20


@dataclass(slots=True)
class _Work:
    """What one validation may still do."""

    left: int = MAX_WORK
    nesting: int = 0


_work: ContextVar[_Work | None] = ContextVar("SimpleLLMFunc.schema_work", default=None)


class SchemaValidation:
    """A schema that has been found sound, and the check of values against it.

    Raises:
        SchemaError: invalid, remote, endless, too large, or with a pattern that needs backtracking.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        import referencing
        from jsonschema.exceptions import SchemaError as Unsound

        _check_bounds(schema)
        kind = _validator_class("draft-07" in str(schema.get("$schema", "")))
        try:
            _on_a_fresh_stack(lambda: kind.check_schema(schema))
        except Unsound as error:
            raise SchemaError(f"it is no valid JSON Schema: {cut(error.message, 200)}") from None
        # Without a registry of its own the validator would fetch what a `$ref` names.
        self._validator: Any = kind(schema, registry=referencing.Registry())
        self.violations({})  # an endless schema shows itself with any value

    def violations(self, value: Any) -> list[Violation]:
        """Return what does not fit, empty where all does.

        Raises:
            SchemaError: a reference leads nowhere or round in a circle, or the work has no end in sight.
        """
        import referencing.exceptions

        token = _work.set(_Work())
        try:
            found = []
            for error in self._validator.iter_errors(value):
                found.append(_violation(error))
                if len(found) == _MAX_VIOLATIONS:
                    break
        except referencing.exceptions.Unresolvable as error:
            raise SchemaError(f"its reference {cut(str(error.ref), 100)!r} leads nowhere") from None
        finally:
            _work.reset(token)
        return found


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


def _on_a_fresh_stack(work: Callable[[], None]) -> None:
    """Do the work in a thread: it nests a dozen calls per level, and the caller may stand deep already."""
    failures: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            failures.append(error)

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


def _context_names(func: Callable[..., Any]) -> frozenset[str]:
    try:
        names = inspect.signature(func).parameters
        hints = resolved_hints(func, "")
    except (TypeError, ValueError, ToolDefinitionError):
        return frozenset()  # a callable that shows no signature wants no context either
    return frozenset(name for name in names if is_context(hints.get(name)))


def _check_bounds(schema: Any) -> None:
    """Walk through the schema without recursion and count."""
    nodes = references = 0
    waiting: list[tuple[Any, int]] = [(schema, 0)]
    while waiting:
        node, depth = waiting.pop()
        nodes += 1
        if depth > MAX_DEPTH or nodes > MAX_NODES:
            raise SchemaError(f"it is too large: at most {MAX_DEPTH} levels and {MAX_NODES} values")
        if isinstance(node, Mapping):
            references += _check_keywords(schema, node)
            if references > MAX_REFERENCES:
                raise SchemaError(f"it has more than {MAX_REFERENCES} references")
            waiting.extend((item, depth + 1) for item in node.values())
        elif isinstance(node, list):
            waiting.extend((item, depth + 1) for item in node)


def _check_keywords(schema: Any, node: Mapping[str, Any]) -> int:
    """Check the references and patterns of one subschema; return how many references there are."""
    targets = [
        node[keyword] for keyword in ("$ref", "$dynamicRef", "$recursiveRef") if isinstance(node.get(keyword), str)
    ]
    for target in targets:
        _check_reference(schema, target)
    patterns = node.get("patternProperties")
    for pattern in [node.get("pattern"), *(patterns if isinstance(patterns, Mapping) else ())]:
        if isinstance(pattern, str):
            _engine(pattern)
    return len(targets)


def _check_reference(schema: Any, target: str) -> None:
    if not target.startswith("#"):
        raise SchemaError(f"its reference {cut(target, 100)!r} is remote; only references into itself are followed")
    node = schema
    if target.startswith("#/"):
        for part in target[2:].split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(node, list) and key.isdecimal() and int(key) < len(node):
                node = node[int(key)]
            elif isinstance(node, Mapping) and key in node:
                node = node[key]
            elif "%" not in key:
                raise SchemaError(f"its reference {cut(target, 100)!r} leads nowhere")


@functools.lru_cache(maxsize=1024)
def _engine(pattern: str) -> SchemaValidator:
    if len(pattern) > MAX_PATTERN_CHARS:
        raise SchemaError(f"a pattern has more than {MAX_PATTERN_CHARS} characters")
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, strict=True))
    except PatternError:
        raise SchemaError(f"the pattern {cut(pattern, 60)!r} is wrong, or looks around or back") from None


def _matches(pattern: str, text: str) -> bool:
    try:
        _engine(pattern).validate_python(text)
    except NoMatch:
        return False
    return True


@functools.cache
def _validator_class(is_draft_7: bool) -> Any:
    """Return the validator with the dangerous keywords replaced and every keyword counted."""
    import jsonschema
    import jsonschema.validators

    base: Any = jsonschema.Draft7Validator if is_draft_7 else jsonschema.Draft202012Validator
    own = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
    }
    extend: Any = jsonschema.validators.extend
    return extend(base, {keyword: _counted(check) for keyword, check in {**base.VALIDATORS, **own}.items()})


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
    if isinstance(instance, str) and not _matches(pattern, instance):
        yield _invalid(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, _: Any) -> Iterator[Invalid]:
    if isinstance(instance, dict):
        for pattern, subschema in patterns.items():
            for key, value in instance.items():
                if _matches(pattern, key):
                    yield from validator.descend(value, subschema, path=key, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[Invalid]:
    if not isinstance(instance, dict):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for key, value in instance.items():
        if key not in known and not any(_matches(pattern, key) for pattern in patterns):
            if allowed is False:
                yield _invalid(f"{key!r} is no parameter")
            else:
                yield from validator.descend(value, allowed, path=key)


def _unique_items(_: Any, wanted: Any, instance: Any, __: Any) -> Iterator[Invalid]:
    if wanted and isinstance(instance, list):
        seen = {json.dumps(item, sort_keys=True) for item in instance}
        if len(seen) != len(instance):
            yield _invalid("the items are not all different")


def _invalid(message: str) -> Invalid:
    from jsonschema import ValidationError

    return ValidationError(message)


def _violation(error: Invalid) -> Violation:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
    got = cut(json.dumps(error.instance, ensure_ascii=False, default=str), 80)
    if error.validator == "type":
        return path.removeprefix("."), f"{error.validator_value}", got
    if error.validator == "enum":
        return path.removeprefix("."), f"one of {cut(json.dumps(error.validator_value, ensure_ascii=False), 200)}", got
    if error.validator == "required":
        return path.removeprefix("."), "all that is required", f"{got}: {error.message}"
    return path.removeprefix("."), f"what fits its {error.validator}", cut(error.message, 120)
