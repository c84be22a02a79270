"""Send a decorated function to another process: by its name if it can be imported there, else by its signature.

The body of a function is never run, so it never travels: neither do the names that it uses, and what they hold.
"""

from __future__ import annotations

import inspect
import multiprocessing
import sys
from collections.abc import Callable
from dataclasses import replace
from pkgutil import resolve_name
from typing import Any

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.current import resolve_llm
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.llm_decorator.definition import Definition
from SimpleLLMFunc.llm_decorator.function_pipeline import FunctionPipeline
from SimpleLLMFunc.llm_decorator.steps.common.options import Options
from SimpleLLMFunc.llm_decorator.steps.common.types import Metadata
from SimpleLLMFunc.tools import FunctionTool
from SimpleLLMFunc.utils import found_by, pickled_by_value

Parts = tuple[Callable[..., FunctionPipeline], tuple[Any, ...]]
"""A function and its arguments: calling it builds the pipeline again."""

Reducer = Callable[[Any], tuple[Any, ...]]
"""Returns how pickle writes an object, as in `copyreg`."""


def parts_of(pipeline: FunctionPipeline) -> Parts:
    """Return what makes `pipeline` again in another process; the model it would ask now goes along, without its keys.

    Raises:
        ConfigError: there is no model to ask, or plain code needs the object of a method.
    """
    own = pipeline.options.llm_interface
    llm = resolve_llm(own)
    name = _name_of(pipeline)
    if name is not None:
        return pipeline_of_name, (name, None if llm is own else llm)
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
    signature = signature.replace(
        parameters=[
            parameter.replace(annotation=hints.get(name, inspect.Parameter.empty))
            for name, parameter in signature.parameters.items()
        ],
        return_annotation=inspect.Signature.empty,
    )
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
