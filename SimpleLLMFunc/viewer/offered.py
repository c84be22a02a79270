"""The functions, chats and assistants that the page may run: those of the modules that `allow_run` names.

A function can be changed for one run, and the change shown as a patch of its source.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Annotated, Any, Final, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from SimpleLLMFunc.assistant import AIAssistant
from SimpleLLMFunc.errors import ConfigError, SimpleLLMFuncError, ToolDefinitionError, UsageError, cut
from SimpleLLMFunc.interface.current import MAKERS, named_model
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.llm_decorator.chat_pipeline import ChatPipeline
from SimpleLLMFunc.llm_decorator.decorated import (
    CHATS,
    FUNCTIONS,
    chat_pipeline_of,
    is_offered,
    lacks_instance,
    pipeline_of,
    takes_a_file,
)
from SimpleLLMFunc.llm_decorator.function_pipeline import FunctionPipeline
from SimpleLLMFunc.llm_decorator.improving import patched_source
from SimpleLLMFunc.llm_decorator.steps.chat.message import HISTORY_PARAMS
from SimpleLLMFunc.tools import Tool
from SimpleLLMFunc.type import spec_name
from SimpleLLMFunc.viewer.responses import Refusal, clean, reason

_KINDS = (*FUNCTIONS, *CHATS, AIAssistant)


@dataclass(frozen=True, slots=True)
class OfferedFunction:
    """A decorated function with its form.

    Attributes:
        name: on the page.
        pipeline: starts its runs.
        tool: binds the values of the form to its parameters; None where it cannot be run.
        module: of the function.
        problem: why the page cannot run it; empty where it can.
    """

    name: str
    pipeline: FunctionPipeline
    tool: Tool | None
    module: str
    problem: str = ""

    def described(self) -> dict[str, Any]:
        """Return what the page shows of it."""
        about = self.pipeline.metadata
        return {
            "name": self.name,
            "function": about.name,
            "module": self.module,
            "docstring": about.docstring,
            "signature": about.signature,
            "version": about.version,
            "schema": self.tool.parameters if self.tool is not None else None,
            "defaults": _defaults(self.pipeline.definition.signature),
            "tools": [spec_name(spec) for spec in about.tools],
            "model": getattr(self.pipeline.options.llm_interface, "model_name", ""),
            "output_mode": self.pipeline.options.output_mode,
            "temperature": self.pipeline.options.llm_kwargs.get("temperature"),
            "problem": self.problem,
        }


@dataclass(frozen=True, slots=True)
class OfferedChat:
    """A chat, or an assistant.

    Attributes:
        message: the parameter for the user's message; empty for an assistant.
        history: the parameter for the earlier messages; empty for an assistant.
    """

    name: str
    module: str
    assistant: AIAssistant | None = None
    pipeline: ChatPipeline | None = None
    message: str = ""
    history: str = ""
    problem: str = ""

    def described(self) -> dict[str, Any]:
        """Return what the page shows of it."""
        about = self.pipeline.metadata if self.pipeline is not None else None
        return {
            "name": self.name,
            "module": self.module,
            "kind": "assistant" if self.pipeline is None else "chat",
            "docstring": about.docstring if about else "",
            "signature": about.signature if about else "",
            "problem": self.problem,
        }


@dataclass(frozen=True, slots=True)
class Offered:
    """Functions and chats by their names on the page, and the models of the modules by their names there."""

    functions: Mapping[str, OfferedFunction] = field(default_factory=dict)
    chats: Mapping[str, OfferedChat] = field(default_factory=dict)
    models: Mapping[str, LLM_Interface] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.functions or self.chats)


def offered_of(given: Any) -> Offered:
    """Return the functions, chats and models of what `allow_run` names.

    Args:
        given: modules, functions, chats, assistants, or one of them. A module offers its top-level names; imported ones only if `__all__`
            lists them.

    Raises:
        ConfigError: a module has nothing to run, or an object cannot be run.
    """
    functions: dict[str, OfferedFunction] = {}
    chats: dict[str, OfferedChat] = {}
    models: dict[str, LLM_Interface] = {}
    for each in given if isinstance(given, Iterable) else (given,):
        if isinstance(each, ModuleType):
            models |= {name: value for name, value in vars(each).items() if isinstance(value, LLM_Interface)}
            home, found = each.__name__, _members(each)
        elif isinstance(each, _KINDS):
            home = str(getattr(each, "__module__", ""))
            found = {"assistant" if isinstance(each, AIAssistant) else str(getattr(each, "__name__", "function")): each}
        else:
            raise ConfigError(
                f"{cut(repr(each), 80)} cannot be run from the page. Give a module, a function under @llm_function or "
                "@llm_chat, or an AIAssistant."
            )
        for name, value in found.items():
            if isinstance(value, FUNCTIONS):
                free = _free(name, home, functions)
                functions[free] = _function(free, value, home)
            else:
                free = _free(name, home, chats)
                chats[free] = _chat(free, value, home)
    return Offered(functions, chats, models)


def _members(module: ModuleType) -> dict[str, Any]:
    found = {}
    for name, value in vars(module).items():
        # An AIAssistant has the module of our class; the user's module has made it.
        home = module.__name__ if isinstance(value, AIAssistant) else str(getattr(value, "__module__", ""))
        if isinstance(value, _KINDS) and is_offered(module, name, home):
            found[name] = value
    if not found:
        raise ConfigError(
            f"the module {module.__name__} has nothing to run. Put @llm_function or @llm_chat on a function at its top "
            "level, or an AIAssistant."
        )
    return found


def _free(name: str, home: str, taken: Mapping[str, Any]) -> str:
    if name not in taken:
        return name
    full = f"{home}.{name}"
    if full in taken:
        raise ConfigError(f"{full} was given twice. Give it once.")
    return full


def _function(name: str, value: Any, home: str) -> OfferedFunction:
    pipeline, tool, problem = pipeline_of(value), None, ""
    file = next((parameter for parameter, hint in pipeline.definition.hints.items() if takes_a_file(hint)), None)
    if file is not None:
        problem = f"Its parameter {file!r} takes the path of a file, which a page must not name."
    elif lacks_instance(value):
        problem = "It is a method without an instance."
    else:
        try:
            tool = Tool(func=value)
        except ToolDefinitionError as error:
            problem = f"No form can be made of its parameters: {error}"
    return OfferedFunction(name, pipeline, tool, home, problem)


def _chat(name: str, value: Any, home: str) -> OfferedChat:
    if isinstance(value, AIAssistant):
        return OfferedChat(name, home, assistant=value)
    pipeline = chat_pipeline_of(value)
    parameters = pipeline.definition.signature.parameters
    history = next((each for each in HISTORY_PARAMS if each in parameters), "")
    others = [each for each in parameters if each != history]
    needed = [each for each in others if parameters[each].default is inspect.Parameter.empty]
    problem = ""
    if pipeline.options.return_mode != "text":
        problem = 'It gives raw replies (return_mode="raw").'
    elif not history:
        problem = "It has no parameter called history or chat_history."
    elif len(needed) > 1 or not others:
        problem = "It takes more than one message: " + ", ".join(needed) if needed else "It takes no message."
    return OfferedChat(name, home, None, pipeline, (needed or others or [""])[0], history, problem)


def _defaults(signature: inspect.Signature) -> dict[str, Any]:
    """Return the defaults with a JSON form, by parameter."""
    return {
        name: parameter.default
        for name, parameter in signature.parameters.items()
        if parameter.default is None or isinstance(parameter.default, (str, int, float, bool))
    }


# --- a function changed for one run ---


_MODEL: Final = re.compile(r"local|(openai|anthropic|gemini):[\w./:@-]{1,200}")
"""Names without a file: the page must not name files."""


class _Example(BaseModel):
    args: Any
    value: Any = Field(validation_alias=AliasChoices("value", "expected"))


class _Change(BaseModel):
    """What is changed; the page sends it as JSON."""

    model_config = ConfigDict(extra="forbid")

    docstring: str | None = None
    model: str | None = None
    temperature: Annotated[float, Field(strict=True, allow_inf_nan=False)] | None = None
    output_mode: Literal["auto", "native", "tool", "prompt"] | None = None
    examples: list[_Example] | None = None

    def options(self) -> dict[str, Any]:
        """Return the options of the decorator that are changed, without the model."""
        options = {name: getattr(self, name) for name in ("temperature", "output_mode")}
        if self.examples is not None:
            options["examples"] = [(each.args, each.value) for each in self.examples]
        return {name: value for name, value in options.items() if value is not None}


def _read(change: Any, models: Mapping[str, LLM_Interface]) -> _Change:
    try:
        read = _Change.model_validate(change)
    except ValidationError as error:
        (problem, *_) = error.errors()
        where = ".".join(map(str, problem["loc"]))
        raise Refusal(422, clean(f"The change does not fit: {where}: {problem['msg']}.")) from None
    if read.model is not None and read.model not in models and not _MODEL.fullmatch(read.model):
        known = ", ".join(models) or "none"
        raise Refusal(422, f"Name a model as openai:NAME, or by its name in the module (there: {known}).")
    return read


def varied(function: OfferedFunction, change: Any, models: Mapping[str, LLM_Interface]) -> OfferedFunction:
    """Return a function with another docstring, model, temperature, mode or other examples.

    Args:
        function: without the change.
        change: any of ``{"docstring", "model", "temperature", "output_mode", "examples"}``; None changes nothing.
        models: by their names in the modules that may be run.

    Raises:
        Refusal: the function cannot be changed so.
    """
    if not change:
        return function
    read = _read(change, models)
    options, model = read.options(), read.model
    try:
        if model is not None:
            options["llm_interface"] = models[model] if model in models else named_model(model, named_by="The model")
        pipeline = function.pipeline.with_options(options)
        if read.docstring is not None:
            pipeline = pipeline.documented(inspect.cleandoc(read.docstring))
        _ = pipeline.parts  # raises now if the change does not fit
    except SimpleLLMFuncError as error:
        raise Refusal(422, reason(error)) from None
    return replace(function, pipeline=pipeline)


def patch_of(function: OfferedFunction, change: Mapping[str, Any], models: Mapping[str, LLM_Interface]) -> str:
    """Return a change of `varied` as a patch of the source file, for ``git apply``.

    Raises:
        Refusal: the function cannot be changed so, or its source does not show what is changed.
    """
    varied(function, change, models)
    read, imported = _read(change, models), ""
    options = {}
    if (model := read.model) is not None:
        maker, _, name = model.partition(":")
        imported = "" if model in models else MAKERS.get(maker, "LocalModel")
        options["llm_interface"] = f"{imported}({name!r})" if name else f"{imported}()" if imported else model
    options |= {name: repr(value) for name, value in read.options().items()}
    docstring = None if read.docstring is None else inspect.cleandoc(read.docstring)
    try:
        return patched_source(function.pipeline.definition.func, docstring, options, imported)
    except UsageError as error:
        raise Refusal(409, str(error)) from None
