"""Tools of other packages, read by what they carry: a name, a description, a JSON Schema, something to call. Imports none."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from SimpleLLMFunc.errors import ToolDefinitionError, cut
from SimpleLLMFunc.logger import shown_error
from SimpleLLMFunc.tools.running import run_callable

_SCHEMAS = "tool_call_schema, args_schema, function_schema, metadata, inputs, args, input_schema, parameters"


@dataclass(frozen=True, slots=True)
class CarriedTool:
    """What a tool of another package says of itself, and what runs it with keyword arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    func: Callable[..., Any]


def carried_tool(candidate: Any) -> CarriedTool | None:
    """Return what the tool object of another package carries; None for a plain callable, and for what is no tool at all.

    Known are the tool objects of LangChain, LlamaIndex, pydantic-ai, smolagents and DSPy, all that look like them, and
    a pair of an OpenAI tool dictionary (of chat completions or Responses) and a callable.

    Raises:
        ToolDefinitionError: it looks like a tool, and lacks something; says what.
    """
    if isinstance(candidate, Mapping):
        raise ToolDefinitionError(
            str(_function_of(candidate).get("name") or cut(repr(candidate), 60)),
            "it is a dictionary without something to call. Give both as a pair: (dictionary, function).",
        )
    if isinstance(candidate, tuple):
        return _pair(candidate)
    if inspect.isroutine(candidate) or inspect.isclass(candidate):
        return None
    try:
        return _object(candidate)
    except ToolDefinitionError:
        raise
    except Exception as error:
        problem = f"its schema cannot be read ({shown_error(error)})."
        raise ToolDefinitionError(_name_of(candidate) or type(candidate).__name__, problem) from error


def _pair(candidate: tuple[Any, ...]) -> CarriedTool:
    spec = _function_of(candidate[0]) if candidate and isinstance(candidate[0], Mapping) else {}
    name = spec.get("name")
    if len(candidate) != 2 or not isinstance(name, str) or not callable(candidate[1]):
        raise ToolDefinitionError(
            str(name or cut(repr(candidate), 60)),
            "a tuple is taken as a pair of an OpenAI tool dictionary, with a name, and the function that it calls.",
        )
    return CarriedTool(name, str(spec.get("description") or ""), spec.get("parameters") or {}, candidate[1])


def _function_of(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = spec.get("function")
    return inner if isinstance(inner, Mapping) else spec


def _object(candidate: Any) -> CarriedTool | None:
    name, schema = _name_of(candidate), _schema_of(candidate)
    if schema is None:
        if name is None or callable(candidate):
            return None
        raise ToolDefinitionError(name, f"it carries no JSON Schema of its arguments ({_SCHEMAS}).")
    if name is None:
        raise ToolDefinitionError(cut(repr(candidate), 60), "it carries a schema and no name.")
    func = _call_of(candidate)
    if func is None:
        raise ToolDefinitionError(name, "it carries nothing to call (ainvoke, acall, function or __call__).")
    holders = ((candidate, "description"), (getattr(candidate, "metadata", None), "description"), (candidate, "desc"))
    said = (getattr(holder, attribute, None) for holder, attribute in holders)
    return CarriedTool(name, next((text for text in said if isinstance(text, str)), ""), schema, func)


def _name_of(candidate: Any) -> str | None:
    names = (getattr(holder, "name", None) for holder in (candidate, getattr(candidate, "metadata", None)))
    return next((name for name in names if isinstance(name, str) and name), None)


def _schema_of(candidate: Any) -> Mapping[str, Any] | None:
    for attribute in ("tool_call_schema", "args_schema", "input_schema", "inputSchema"):  # LangChain; MCP
        if (schema := _json_schema(getattr(candidate, attribute, None))) is not None:
            return schema
    of_function = getattr(getattr(candidate, "function_schema", None), "json_schema", None)  # pydantic-ai
    if isinstance(of_function, Mapping):
        return of_function
    metadata = getattr(candidate, "metadata", None)  # LlamaIndex
    if callable(told := getattr(metadata, "get_parameters_dict", None)) and isinstance(schema := told(), Mapping):
        return schema
    for attribute in ("inputs", "args"):  # smolagents; DSPy
        properties = getattr(candidate, attribute, None)
        if isinstance(properties, Mapping) and all(isinstance(each, Mapping) for each in properties.values()):
            return _of_properties(properties)
    return _json_schema(getattr(candidate, "parameters", None))


def _json_schema(given: Any) -> Mapping[str, Any] | None:
    if isinstance(given, Mapping):
        return given
    made = getattr(given, "model_json_schema", None) if inspect.isclass(given) else None
    schema = made() if callable(made) else None
    return schema if isinstance(schema, Mapping) else None


def _of_properties(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an object whose properties are described one by one; "nullable" and a default make one optional."""
    properties: dict[str, Any] = {}
    for name, each in given.items():
        own = {key: value for key, value in each.items() if key != "nullable"}
        if own.get("type") == "any":
            del own["type"]
        if each.get("nullable") and isinstance(own.get("type"), str):
            own["type"] = [own["type"], "null"]
        properties[name] = own
    required = [name for name, each in given.items() if not each.get("nullable") and "default" not in each]
    return {"type": "object", "properties": properties, "required": required}


def _call_of(candidate: Any) -> Callable[..., Any] | None:
    invoke: Any = getattr(candidate, "ainvoke", None)
    if callable(invoke):  # LangChain takes one dictionary

        async def invoked(**arguments: Any) -> Any:
            work: Any = invoke(arguments)
            return await work

        return invoked
    if (schema := getattr(candidate, "function_schema", None)) is not None and hasattr(schema, "validator"):
        if getattr(candidate, "takes_ctx", False):
            raise ToolDefinitionError(
                str(_name_of(candidate)), "it wants pydantic-ai's RunContext, which only its own agents have."
            )

        async def validated(**arguments: Any) -> Any:
            return await schema.call(schema.validator.validate_python(arguments), None)

        return validated
    inner = getattr(candidate, "func", None)
    # DSPy's `acall` runs a sync function on the event loop; called as it is, it gets a thread.
    is_sync = inner is not None and not inspect.iscoroutinefunction(inner) and callable(candidate)
    call = candidate if is_sync else getattr(candidate, "acall", None)
    if not callable(call):
        call = candidate if callable(candidate) else getattr(candidate, "function", None)
    if not callable(call):
        return None

    async def called(**arguments: Any) -> Any:
        return _output(await run_callable(call, [], arguments))

    return called


def _output(result: Any) -> Any:
    """Return what a tool gave; of LlamaIndex's `ToolOutput` what is meant for the model."""
    if not (hasattr(result, "raw_output") and hasattr(result, "is_error")):
        return result
    if result.is_error:
        raise result.exception or RuntimeError(str(result.content))
    return result.content or result.raw_output
