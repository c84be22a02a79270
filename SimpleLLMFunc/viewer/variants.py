"""A function changed for one run on the page, and the change as a patch of its source."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Final, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from SimpleLLMFunc.errors import SimpleLLMFuncError, UsageError
from SimpleLLMFunc.interface.current import named_model
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.llm_decorator.improving import patched_source
from SimpleLLMFunc.viewer.offered import OfferedFunction
from SimpleLLMFunc.viewer.responses import Refusal, clean, reason

_MODEL: Final = re.compile(r"local|(openai|anthropic|gemini):[\w./:@-]{1,200}")
"""Names without a file: the page must not name files."""
_CLASSES: Final = {"openai": "OpenAICompatible", "anthropic": "Anthropic", "gemini": "Gemini"}


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
        imported = "" if model in models else _CLASSES.get(maker, "LocalModel")
        options["llm_interface"] = f"{imported}({name!r})" if name else f"{imported}()" if imported else model
    options |= {name: repr(value) for name, value in read.options().items()}
    docstring = None if read.docstring is None else inspect.cleandoc(read.docstring)
    try:
        return patched_source(function.pipeline.definition.func, docstring, options, imported)
    except UsageError as error:
        raise Refusal(409, str(error)) from None
