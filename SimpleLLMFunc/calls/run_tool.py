"""`RunTool`: a plain callable as a step."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, ClassVar

from pydantic import ConfigDict, Field
from pydantic_core import PydanticSerializationError, to_jsonable_python

from SimpleLLMFunc.base.run import JournaledCall, RunLimits, kept_once
from SimpleLLMFunc.calls.call_data import CallInfo, CallOutputChunk, CallOutputType, CallVars, DataBase, LanguageType
from SimpleLLMFunc.calls.core import CoreCall
from SimpleLLMFunc.errors import CallError, UsageError
from SimpleLLMFunc.interface.spending import Deadline, time_limits
from SimpleLLMFunc.logger import get_current_trace_id
from SimpleLLMFunc.tools import Tool, ToolContext, as_tool, run_callable
from SimpleLLMFunc.tools.schemas import docstring_of, name_of, underlying


class RunToolInput(DataBase, extra="allow"):
    """The arguments of the callable, by name."""


class RunToolOutput(DataBase, extra="allow"):
    """What the callable returned; under `result` where that is no object."""


class RunTool(CoreCall, input_model=RunToolInput, output_model=RunToolOutput):
    """Runs a callable: ``Step("weather", call=RunTool, params={"func": weather, "city": "Hangzhou"})``.

    Sync callables run in a thread of their own. The other parameters are the callable's arguments, validated and
    converted by its type hints as a model's would be. The result is the DATA chunk: an object as it is, anything else
    as `{"result": …}`, models and dates as JSON.

    Attributes:
        func: a function, a `Tool`, a decorated function; parameters without a type take anything.
        arguments: arguments by name; or the path of an object in the history that holds them, such as
            ``"slot/slot_data"`` after a step `slot`. Arguments given one by one override them.
    """

    model_config = ConfigDict(extra="allow")

    _infos: ClassVar = {
        LanguageType.CHINESE: CallInfo("工具", "使用给定的参数运行一个函数。"),
        LanguageType.ENGLISH: CallInfo("Tool", "Runs a function with the given arguments."),
    }

    func: Any = Field(description="要运行的函数", exclude=True)
    arguments: dict[str, Any] | str = Field(default={}, description="函数的参数，或其在历史中的路径")

    @classmethod
    def _parameters(cls, given: dict[str, Any]) -> dict[str, Any]:
        # An argument may be called `name` or `description`; the step's own are never meant here.
        if "func" not in given:
            return given
        hidden = (cls.model_fields.keys() - {"func"}) & _tool_of(given["func"]).parameters.get("properties", {}).keys()
        if not hidden & given.keys():
            return given
        moved = {name: given[name] for name in given.keys() & hidden}
        others = {name: value for name, value in given.items() if name not in moved}
        named = others.get("arguments", {})
        if not isinstance(named, dict):
            raise UsageError(
                f"give {', '.join(sorted(moved))} in `arguments`, as a dict: the Call has fields with these names."
            )
        return {**others, "arguments": {**named, **moved}}

    @functools.cached_property
    def tool(self) -> Tool:
        """The callable as the library's tools are: with a schema and a check of the arguments.

        Raises:
            ToolDefinitionError: it cannot be called, or a parameter has a type no schema can be made of.
        """
        return _tool_of(self.func)

    def input_schema(self) -> dict[str, Any]:
        """Return the JSON schema of the callable's parameters."""
        return self.tool.parameters

    async def _init(self, call_vars: CallVars) -> dict[str, Any]:
        _ = self.tool  # a callable that cannot be run is an error here
        named = self.arguments
        if isinstance(named, str):
            found = self._extract_history_variables(named, call_vars.step_data)
            if not isinstance(found, dict):
                steps = ", ".join(call_vars.step_order) or "none"
                raise CallError(
                    f"{self.name}: no object stands at {named!r} in the history. It has the steps: {steps}."
                )
            named = found
        return {**named, **(self.model_extra or {})}

    async def _exec(self, input_data: dict[str, Any]) -> AsyncGenerator[CallOutputChunk, None]:
        given = _as_json(input_data, "the arguments")
        data = await kept_once(self.tool.name, given, functools.partial(self._run, given))
        yield CallOutputChunk(CallOutputType.DATA, data if isinstance(data, dict) else {"result": data})

    async def _run(self, given: dict[str, Any], step: JournaledCall | None) -> Any:
        tool, key = self.tool, "" if step is None else step.idempotency_key
        context: ToolContext[Any] = ToolContext(get_current_trace_id(), self.name, tool.name, idempotency_key=key)
        args, kwargs = tool.bind(given, context)
        known = await step.outcome(tool, given, context) if step is not None and step.has_begun else ()
        if step is not None and tool.once and not known:
            await step.begins(tool, given)
        work = functools.partial(run_callable, tool.func, args, kwargs)
        return _as_json(known[0] if known else await self._limited(work, tool), f"the result of {tool.name}")

    async def _limited(self, work: Callable[[], Awaitable[Any]], tool: Tool) -> Any:
        """Do the work within the tool's timeout, the step's deadline, the budget and the abort signal."""
        with time_limits() as around:
            clock = Deadline.after(tool.timeout).stricter(around)
            limits = RunLimits(clock, getattr(self._executor, "abort_signal", None))
            limits.check(f"running {tool.name}")
            return await limits.wait(work(), f"running {tool.name}")


def _as_json(value: Any, what: str) -> Any:
    try:
        return to_jsonable_python(value, inf_nan_mode="null", bytes_mode="base64")
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise CallError(f"{what} cannot be written as JSON: {error}") from error


def _tool_of(func: Any) -> Tool:
    if isinstance(func, Tool) or hasattr(func, "as_tool"):
        return as_tool(func, where="step")
    try:
        signature = inspect.signature(func)
    except (TypeError, ValueError):
        return as_tool(func, where="step")  # says what is wrong with it
    target: Any = underlying(func)
    known = getattr(target, "__annotations__", {})
    untyped = {name for name, each in signature.parameters.items() if each.annotation is each.empty} - known.keys()
    if not untyped:
        return as_tool(func, where="step")

    @functools.wraps(target)
    def typed(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    # Parameters without a type take anything.
    shown: Any = typed
    shown.__name__, shown.__doc__, shown.__signature__ = name_of(func), docstring_of(func), signature
    shown.__annotations__ = {**known, **dict.fromkeys(untyped, Any)}
    return as_tool(typed, where="step")
