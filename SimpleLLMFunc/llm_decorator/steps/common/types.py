"""The result of step 1, and types of the decorators' arguments."""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from SimpleLLMFunc.type import Message

Metadata: TypeAlias = tuple[inspect.Signature, dict[str, Any], Any, str, str]
"""``(signature, type_hints, return_type, docstring, func_name)`` of a function."""

Compact: TypeAlias = Callable[[list[Message]], list[Message] | Awaitable[list[Message]]]
"""``compact(history) -> shorter history``, sync or async; gets a copy, without the system prompt and the new message."""


class ExampleLines(list[tuple[str, dict[str, Any]]]):
    """The lines of a file of examples as they were read, each with what it is called in an error."""


GivenExamples: TypeAlias = Sequence[tuple[Any, Any]] | str | os.PathLike[str]
"""``[(args, value), …]``, or the path of a JSONL file whose lines are ``{"args": …, "value": …}``."""


Thinking: TypeAlias = Literal["off", "low", "medium", "high"] | int | Mapping[str, Any]
"""How much the model thinks before it answers: a word, tokens, or what the service itself calls `thinking`, as it is."""


class FunctionSignature(NamedTuple):
    """A function and the arguments of one call of it.

    Attributes:
        func_name: the function's `__name__`.
        trace_id: of this call.
        bound_args: the arguments by parameter name, defaults applied.
        signature: of the function; without `self` or `cls` for a bound method.
        type_hints: the resolved annotations by name, `Annotated` kept; "return" among them where it was written.
        return_type: `type_hints["return"]`; `str` where nothing was written, None for `-> None`.
        docstring: as written, indentation cleaned; "" without one.
    """

    func_name: str
    trace_id: str
    bound_args: inspect.BoundArguments
    signature: inspect.Signature
    type_hints: dict[str, Any]
    return_type: Any
    docstring: str
