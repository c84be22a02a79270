"""The parameters of a tool whose JSON Schema was given: arguments against it, exactly as they were sent."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from SimpleLLMFunc.errors import SchemaError, ToolDefinitionError
from SimpleLLMFunc.tools.schemas.annotations import is_context, resolved_hints
from SimpleLLMFunc.tools.schemas.callable_schema import ArgumentsError, BoundArguments
from SimpleLLMFunc.tools.schemas.check import SchemaValidation


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
