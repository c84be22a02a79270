"""A decorated function as `map` uses it, here and in another process.

It is sent there by its name if it can be imported there, else by its signature. The body of a function is never run, so
it never travels: neither do the names that it uses, and what they hold.
"""

from __future__ import annotations

import inspect
import multiprocessing
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pkgutil import resolve_name
from typing import Any, Generic, TypeVar

from SimpleLLMFunc.base.metadata import FunctionMetadata
from SimpleLLMFunc.base.parsing import RepairLevel
from SimpleLLMFunc.base.run import Abort, Answer, Preview
from SimpleLLMFunc.base.schemas import OutputSpec
from SimpleLLMFunc.base.type_resolve import type_identity
from SimpleLLMFunc.errors import ConfigError, UsageError
from SimpleLLMFunc.interface.llm_interface import LLM_Interface, answering_models, given_to
from SimpleLLMFunc.llm_decorator.answering import Answers, answered_by
from SimpleLLMFunc.llm_decorator.definition import Definition
from SimpleLLMFunc.llm_decorator.function_pipeline import FunctionPipeline
from SimpleLLMFunc.llm_decorator.steps.common.options import Options
from SimpleLLMFunc.llm_decorator.steps.common.signature import bind_function_arguments
from SimpleLLMFunc.llm_decorator.steps.common.types import Metadata
from SimpleLLMFunc.llm_decorator.steps.function import templates
from SimpleLLMFunc.llm_decorator.steps.function.prompt import build_return_type_description
from SimpleLLMFunc.tools import FunctionTool
from SimpleLLMFunc.type import ToolSpec
from SimpleLLMFunc.utils import found_by, pickled_by_value

R_co = TypeVar("R_co", covariant=True)

Parts = tuple[Callable[..., FunctionPipeline], tuple[Any, ...]]
"""A function and its arguments: calling it builds the pipeline again."""

Reducer = Callable[[Any], tuple[Any, ...]]
"""Returns how pickle writes an object, as in `copyreg`."""


class MappedFunction(Generic[R_co]):
    """An `@llm_function` as a `SimpleLLMFunc.base.run.Mappable`.

    Args:
        pipeline: of the function.
        answers: what answers its calls; None finds out.
    """

    def __init__(self, pipeline: FunctionPipeline, answers: Answers | None = None) -> None:
        self.pipeline = pipeline
        self._answers = answered_by(pipeline) if answers is None else answers
        self.name = pipeline.definition.name
        self.signature: inspect.Signature = pipeline.definition.signature
        self.type_hints: Mapping[str, Any] = pipeline.definition.hints
        self.abort: Abort | None = pipeline.options.abort_signal
        self.repair: RepairLevel = pipeline.options.repair
        self.has_tools = bool(pipeline.options.toolkit)

    def __reduce__(self) -> tuple[Any, ...]:
        return made_again, (type(self), parts_of(self.pipeline))

    @property
    def reducers(self) -> Mapping[type, Reducer]:
        """How what belongs to it is pickled where it goes to another process."""
        return reducers_of(self.pipeline)

    @property
    def llm(self) -> LLM_Interface:
        """The model that is asked."""
        return self.pipeline.llm

    @property
    def metadata(self) -> FunctionMetadata:
        """The function's metadata for sinks and traces."""
        return self.pipeline.metadata

    @property
    def output(self) -> OutputSpec:
        """The return type; a list for a function that yields items."""
        voting = self._answers.voting
        return self.pipeline.output if voting is None or not voting.is_confident else voting.output

    def definition(self) -> dict[str, Any]:
        """Return all that an answer depends on, without the arguments.

        The address of the service is left out: the same model behind another gateway is the same model. So are
        deadlines and re-asks, which only say how long to try.
        """
        pipeline, options = self.pipeline, self.pipeline.options
        output, tools = pipeline.definition.output, pipeline.tools.specs or []
        # In the words of 1.0, so that what it has answered need not be asked for again.
        described = build_return_type_description(output.return_type, partial(type_identity, as_json=True))
        parameters = [f"  - {name}: {type_identity(hint)}" for name, hint in pipeline.definition.hints.items()]
        own = options.system_prompt_template
        defaults = [templates.DEFAULT_SYSTEM_PROMPT_TEMPLATE, templates.PLAIN_SYSTEM_PROMPT_TEMPLATE]
        bodies = [_body(part, tools, options.params) for part in answering_models(pipeline.llm)]
        return {
            "model": [body.pop("model", "") for body in bodies],
            "params": bodies,
            "prompt": {
                "docstring": pipeline.definition.metadata[3],
                "template_params": dict(options.template_params or {}),
                "system": [own] if own else defaults,
                "user": options.user_prompt_template or templates.DEFAULT_USER_PROMPT_TEMPLATE,
                "parameters": parameters,
                "output_mode": options.output_mode,
                **pipeline.own_version_parts(),
            },
            "types": {"schema": output.schema, "described": described, "repair": options.repair},
            "tools": [tools or [], options.max_tool_calls if options.toolkit else 0],
        }

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments by parameter name, checked, defaults applied."""
        arguments = bind_function_arguments(self.signature, args, kwargs, f"{self.name}() ").arguments
        self.pipeline.check(arguments)
        return arguments

    def preview(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Preview:
        """Return the exact request of a row, without sending it.

        Raises:
            UsageError: one request is not what answers a row.
        """
        if self._answers is not self.pipeline or self.pipeline.definition.output.quotes or self.pipeline.guards:
            raise UsageError(
                f"{self.name}: a row is answered by several requests, by plain code, by quotes that are looked for in the "
                "arguments, or under guards, and a batch file holds one request a row. Use f.map() without engine=."
            )
        return self.pipeline.preview(args, dict(kwargs))

    async def ask(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Answer[R_co]:
        """Ask the model for one row."""
        return await self._answers.answer(args, dict(kwargs))


def _body(llm: LLM_Interface, tools: Sequence[ToolSpec] | None, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return what goes out with every question."""
    body = dict(llm.render([{"role": "user", "content": "?"}], tools=tools, **given_to(llm, params)))
    for name in ("messages", "input", "contents", "tools", "response_format", "prompt_cache_key"):
        body.pop(name, None)
    # Chat completions is not named, as 1.0 knew no other wire; generateContent has its model in the address.
    return body if llm.wire_name == "chat" else {**body, "model": llm.model_name, "wire": llm.wire_name}


# --- to another process -----------------------------------------------------------------------------------------


def parts_of(pipeline: FunctionPipeline) -> Parts:
    """Return what makes `pipeline` again in another process; the model it would ask now goes along, without its keys.

    Raises:
        ConfigError: there is no model to ask, or plain code needs the object of a method.
    """
    llm = pipeline.llm
    name = _name_of(pipeline)
    if name is not None:
        return pipeline_of_name, (name, None if llm is pipeline.options.llm_interface else llm)
    if pipeline.definition.is_method and (pipeline.options.first is not None or pipeline.options.fallback is not None):
        raise ConfigError(
            f"{pipeline.definition.name}: first= and fallback= of a method need the object, which is not sent to another process. Decorate a function."
        )
    return pipeline_of_parts, _described(pipeline, llm)


def reduced(function: Any) -> Any:
    """Return what `__reduce__` gives for a decorated function: its name, or all it promises where no name leads to it.

    That takes cloudpickle. A bound method has neither.
    """
    pipeline = function._pipeline  # noqa: SLF001 - of our own object
    definition = pipeline.definition
    if _name_of(pipeline) is None and function._instance is None and not definition.is_method:  # noqa: SLF001
        parts = _described(pipeline, pipeline.options.llm_interface)
        name = function.__qualname__
        of_script = name if getattr(sys.modules["__main__"], name, None) is function else ""
        return pickled_by_value(made_again, type(function), (pipeline_of_parts, parts), of_script) or name
    return function.__qualname__


def _described(pipeline: Any, llm: LLM_Interface | None) -> tuple[Any, ...]:
    """Return the arguments of `pipeline_of_parts` for a function or chat."""
    signature, hints, *others = pipeline.definition.metadata
    # Who watches and who may abort is here; what arrives there are the questions.
    options = replace(pipeline.options, llm_interface=llm, watching=None, abort_signal=None)
    if pipeline.options.examples is not None and pipeline.examples is not None:
        options = replace(options, examples=pipeline.examples.given)  # a file is read here: there it may not be
    module = getattr(pipeline.definition.func, "__module__", None) or "__main__"
    # Only this process can resolve annotations that are text; the hints are the resolved ones.
    told = [each.replace(annotation=hints.get(each.name, each.empty)) for each in signature.parameters.values()]
    signature = signature.replace(parameters=told, return_annotation=hints.get("return", inspect.Signature.empty))
    is_async = inspect.iscoroutinefunction(pipeline.definition.func)
    return module, (signature, hints, *others), options, type(pipeline), is_async


def pipeline_of_name(name: str, llm: LLM_Interface | None) -> FunctionPipeline:
    """Return the pipeline of the decorated function ``module:name``, asking `llm` where it is given.

    Raises:
        ConfigError: it cannot be imported here.
    """
    try:
        pipeline = resolve_name(name)._pipeline  # noqa: SLF001 - of our own object
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"the function {name!r} cannot be imported there ({type(error).__name__}: {error}). Its module must be "
            "installed where the workers are, or be sent along: ray.init(runtime_env={'working_dir': '.'})."
        ) from error
    assert isinstance(pipeline, FunctionPipeline), "it was one where it came from"
    return pipeline if llm is None else pipeline.with_options({"llm_interface": llm})


def pipeline_of_parts(module: str, metadata: Metadata, options: Options, kind: type[Any], is_async: bool) -> Any:
    """Return the pipeline of a function or chat that promises just this."""

    def plain() -> None:
        raise NotImplementedError  # the body is a model

    async def coroutine() -> None:
        raise NotImplementedError

    signature, hints, _, docstring, name = metadata
    stand_in: Any = coroutine if is_async else plain
    stand_in.__module__, stand_in.__name__, stand_in.__qualname__ = module, name, name
    stand_in.__doc__ = docstring
    stand_in.__annotations__ = hints
    stand_in.__signature__ = signature
    return kind(Definition(stand_in, None), options)


def reducers_of(pipeline: FunctionPipeline) -> dict[type, Reducer]:
    """Return how the tools of a function are pickled: here by name only where every process finds them by it.

    A pickle of their own would always name them, as one of functions does.
    """
    reducers: dict[type, Reducer] = {FunctionTool: _reduced_tool}
    for each in pipeline.options.toolkit or ():
        func: Any = getattr(each, "_func", each)
        inner = getattr(func, "_pipeline", None)
        if isinstance(inner, FunctionPipeline):
            reducers |= {**reducers_of(inner), type(func): _reduced_function}
    return reducers


def _reduced_tool(tool: FunctionTool[..., Any]) -> tuple[Any, ...]:
    name, found = found_by(tool)
    if found is tool:
        return resolve_name, (name,)
    return object.__new__, (type(tool),), dict(vars(tool))


def _reduced_function(function: Any) -> tuple[Any, ...]:
    return made_again, (type(function), parts_of(function._pipeline))  # noqa: SLF001 - of our own object


def made_again(kind: Callable[[FunctionPipeline], Any], parts: Parts, of_script: str = "") -> Any:
    """Return an object of a kind around the pipeline that `parts_of` described."""
    if of_script and multiprocessing.parent_process() is not None:
        # Such a child has the script too. A copy of its types would not go back through the standard library's pickle.
        found = getattr(sys.modules["__main__"], of_script, None)
        if type(found) is kind:
            return found
    make, arguments = parts
    return kind(make(*arguments))


def _name_of(pipeline: FunctionPipeline) -> str | None:
    """Return by which name the function is found in every process, None where by none."""
    name, found = (None, None) if pipeline.definition.is_method else found_by(pipeline.definition.func)
    return name if getattr(found, "_pipeline", None) is pipeline else None
