"""A function changed for one run on the page, and the change as a patch of its source."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from SimpleLLMFunc.errors import SimpleLLMFuncError, UsageError
from SimpleLLMFunc.interface.current import named_model
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.llm_decorator.improving import patched_source
from SimpleLLMFunc.viewer.offered import OfferedFunction
from SimpleLLMFunc.viewer.responses import Refusal, reason

_FIELDS: Final = ("docstring", "model", "temperature", "output_mode", "examples")
_MODES: Final = ("auto", "native", "tool", "prompt")
_MODEL: Final = re.compile(r"local|(openai|anthropic|gemini):[\w./:@-]{1,200}")
"""Names without a file: the page must not name files."""
_CLASSES: Final = {"openai": "OpenAICompatible", "anthropic": "Anthropic", "gemini": "Gemini"}


def varied(function: OfferedFunction, change: Any, models: Mapping[str, LLM_Interface]) -> OfferedFunction:
    """Return a function with another docstring, model, temperature, mode or other examples.

    Args:
        function: without the change.
        change: any of ``{"docstring", "model", "temperature", "output_mode", "examples"}``.
        models: by their names in the modules that may be run.

    Raises:
        Refusal: the function cannot be changed so.
    """
    if change is None or change == {}:
        return function
    if not isinstance(change, dict) or set(change) - set(_FIELDS):
        raise Refusal(400, f"A function is changed in {', '.join(_FIELDS)}.")
    _check(change, models)
    options = {name: change[name] for name in ("temperature", "output_mode") if change.get(name) is not None}
    if change.get("examples") is not None:
        options["examples"] = _examples(change["examples"])
    model = change.get("model")
    try:
        if model is not None:
            options["llm_interface"] = models[model] if model in models else named_model(model, named_by="The model")
        pipeline = function.pipeline.with_options(options)
        if (docstring := change.get("docstring")) is not None:
            pipeline = pipeline.documented(inspect.cleandoc(str(docstring)))
        _ = pipeline.parts  # raises now if the change does not fit
    except SimpleLLMFuncError as error:
        raise Refusal(422, reason(error)) from None
    return replace(function, pipeline=pipeline)


def _check(change: Mapping[str, Any], models: Mapping[str, LLM_Interface]) -> None:
    model, temperature = change.get("model"), change.get("temperature", 0)
    if not (model is None or model in models or (isinstance(model, str) and _MODEL.fullmatch(model))):
        known = ", ".join(models) or "none"
        raise Refusal(422, f"Name a model as openai:NAME, or by its name in the module (there: {known}).")
    is_number = isinstance(temperature, int | float) and not isinstance(temperature, bool)
    if not (temperature is None or (is_number and math.isfinite(temperature))):
        raise Refusal(422, "The temperature is a number.")
    if change.get("output_mode", "auto") not in {None, *_MODES}:
        raise Refusal(422, f"The mode is one of {', '.join(_MODES)}.")


def _examples(given: Any) -> list[tuple[Any, Any]]:
    if not isinstance(given, list):
        raise Refusal(422, 'Examples are a list: [{"args": …, "value": …}].')
    found = []
    for each in given:
        if not isinstance(each, dict) or "args" not in each or not {"value", "expected"} & set(each):
            raise Refusal(422, 'An example is {"args": …, "value": …}.')
        found.append((each["args"], each.get("value", each.get("expected"))))
    return found


# --- the same as a patch ----------------------------------------------------------------------------------


def patch_of(function: OfferedFunction, change: Mapping[str, Any], models: Mapping[str, LLM_Interface]) -> str:
    """Return a change of `varied` as a patch of the source file, for ``git apply``.

    Raises:
        Refusal: the function cannot be changed so, or its source does not show what is changed.
    """
    varied(function, change, models)
    options, imported = _options(change, models)
    docstring = None if change.get("docstring") is None else inspect.cleandoc(str(change["docstring"]))
    try:
        return patched_source(function.pipeline.definition.func, docstring, options, imported)
    except UsageError as error:
        raise Refusal(409, str(error)) from None


def _options(change: Mapping[str, Any], models: Mapping[str, LLM_Interface]) -> tuple[dict[str, str], str]:
    """Return the options of the decorator as source, and the class that they need imported."""
    options: dict[str, str] = {}
    imported = ""
    if (model := change.get("model")) is not None:
        maker, _, name = model.partition(":")
        imported = "" if model in models else _CLASSES.get(maker, "LocalModel")
        options["llm_interface"] = f"{imported}({name!r})" if name else f"{imported}()" if imported else model
    for name in ("temperature", "output_mode"):
        if change.get(name) is not None:
            options[name] = repr(change[name])
    if change.get("examples") is not None:
        options["examples"] = repr(_examples(change["examples"]))
    return options, imported
