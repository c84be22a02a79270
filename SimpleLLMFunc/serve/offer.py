"""A decorated function for callers outside the process: its schemas, and its answer as data."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any, Final, TypeAlias

from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError

from SimpleLLMFunc.base.schemas import OutputSpec, inlined_root
from SimpleLLMFunc.errors import ConfigError, SimpleLLMFuncError, did_you_mean
from SimpleLLMFunc.llm_decorator.decorated import (
    CHATS,
    FUNCTIONS,
    STREAMS,
    Function,
    answers_of,
    is_offered,
    pipeline_of,
    takes_a_file,
)
from SimpleLLMFunc.logger import push_error, shown_error, shown_traceback
from SimpleLLMFunc.runtime import in_thread, submit
from SimpleLLMFunc.tools import ArgumentsError, Tool, wire_names
from SimpleLLMFunc.type import Confident

Decorated: TypeAlias = Function
"""The functions that can be offered."""

_MAX_ERROR_CHARS: Final = 2000


def decorated_functions(
    module: ModuleType, names: Iterable[str] = (), kinds: tuple[type, ...] = FUNCTIONS
) -> dict[str, Any]:
    """Return the decorated functions of a module, by name.

    Args:
        module: imported functions count only if its `__all__` lists them.
        names: of functions; empty for all public ones.
        kinds: classes of functions; chats are left out unless they are among them.

    Raises:
        ConfigError: a name is missing or not a decorated function, or the module has none.
    """
    wanted = list(names)
    found = {name: value for name, value in vars(module).items() if isinstance(value, kinds)}
    if wanted:
        for name in wanted:
            if name not in found:
                raise ConfigError(_why_not(module, name, found))
        return {name: found[name] for name in wanted}
    offered = {
        name: value for name, value in found.items() if is_offered(module, name, str(getattr(value, "__module__", "")))
    }
    if not offered:
        raise ConfigError(
            f"the module {module.__name__} has no function to offer. Decorate one with @llm_function at its top level"
            f"{', or name one of: ' + ', '.join(found) if found else ''}."
        )
    return offered


def _why_not(module: ModuleType, name: str, found: Iterable[str]) -> str:
    found = list(found)
    known = ", ".join(found) or "none"
    if not hasattr(module, name):
        return f"the module {module.__name__} has no {name!r}.{did_you_mean(name, found)} Its decorated functions are: {known}."
    if isinstance(getattr(module, name), CHATS):
        return f"{module.__name__}.{name} is a chat, which keeps a history. Offer an @llm_function: {known}."
    return f"{module.__name__}.{name} is not decorated with @llm_function. Those that are: {known}."


def offers(functions: Mapping[str, Decorated]) -> dict[str, Offer]:
    """Return the offers by their names outside."""
    names = wire_names(functions)
    return {names[name]: Offer(names[name], function) for name, function in functions.items()}


def refuse_files(name: str, pipeline: Any) -> None:
    """Return if no parameter of a function or chat takes a file's path: a caller must not name files of this machine.

    Raises:
        ConfigError: one does.
    """
    for parameter, hint in pipeline.definition.hints.items():
        if takes_a_file(hint):
            raise ConfigError(
                f"{name} cannot be offered: its parameter {parameter!r} takes a file's path. "
                "Take an ImgUrl (a data: address holds the image itself), or text."
            )


class Offer:
    """A decorated function with the schemas of its parameters and its answer.

    Attributes:
        name: outside the process.
        function: the decorated function.
        pipeline: of the function.
        answers: answers its calls.
        tool: the function as a tool: description, schema of the parameters, check of the arguments.
        is_iterator: it yields items.
        spec: the type of the answer.
        value_schema: of the value; {} if it has no schema.
        output_schema: of the structured answer, always an object; None where the answer is text or None.

    Raises:
        ToolDefinitionError: a parameter has no type, or a type without a schema.
        ConfigError: a parameter takes a file's path.
    """

    def __init__(self, name: str, function: Decorated) -> None:
        self.name = name
        self.function = function
        self.tool = Tool(func=function, name=name)
        self.is_iterator = isinstance(function, STREAMS)
        self.pipeline = pipeline_of(function)
        self.answers = answers_of(function)
        refuse_files(name, self.pipeline)
        self.spec = self.pipeline.definition.output
        self.value_schema = _value_schema(self.spec)
        self.output_schema = _output_schema(self.spec, self.value_schema)

    async def answer(self, arguments: Mapping[str, Any] | None) -> tuple[str, dict[str, Any] | None]:
        """Call the function; return its answer as text, and as structured data where it has a type.

        The call runs on the library's event loop; cancelling the waiting task cancels it.

        Raises:
            OfferFailed: with a text for the caller: no secret, no traceback.
        """
        try:
            args, kwargs = self.tool.bind(dict(arguments or {}))
        except ArgumentsError as error:
            raise OfferFailed(f"The arguments do not fit {self.name}: {error}.") from None
        try:
            value = await asyncio.wrap_future(submit(self.answers.value(tuple(args), kwargs)))
            return await in_thread(self._rendered, value)
        except Exception as error:  # noqa: BLE001 - the caller is told every failure, of tools and of ours
            if not isinstance(error, SimpleLLMFuncError):
                push_error(f"{self.name} failed: {shown_traceback(error)}")
            raise OfferFailed(shown_error(error, _MAX_ERROR_CHARS)) from None

    def data(self, value: Any) -> Any:
        """Return an answer as JSON data. It may be large: call it in a thread."""
        return (
            None if self.spec.is_none else json.loads(self.spec.adapter.dump_json(value, by_alias=True, warnings=False))
        )

    def _rendered(self, answered: Any) -> tuple[str, dict[str, Any] | None]:
        value = answered.value if isinstance(answered, Confident) else answered
        if self.spec.is_none:
            return "", None
        if self.spec.is_text:
            return str(value), None
        data = self.data(value)
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        if isinstance(data, dict) and not self.spec.is_wrapped:
            return text, data
        return text, {"result": data}


class OfferFailed(Exception):
    """A call failed; the text is for the caller."""


def _value_schema(spec: OutputSpec) -> dict[str, Any]:
    """Return the schema of a value in an answer; {} for a type whose values have no schema when they are written."""
    if spec.is_none:
        return {"type": "null"}
    try:
        return spec.adapter.json_schema(mode="serialization", by_alias=True)
    except (PydanticInvalidForJsonSchema, PydanticUserError):
        return {}


def _output_schema(spec: OutputSpec, value: Mapping[str, Any]) -> dict[str, Any] | None:
    if spec.is_text or spec.is_none or not value:
        return None
    schema = dict(value)
    if not spec.is_wrapped:
        return inlined_root(schema)
    definitions = {"$defs": schema.pop("$defs")} if "$defs" in schema else {}
    return {"type": "object", "properties": {"result": schema}, "required": ["result"], **definitions}
