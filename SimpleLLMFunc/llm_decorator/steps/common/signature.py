"""Step 1: the function, its arguments and its return type."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from types import GenericAlias
from typing import Any

from SimpleLLMFunc.base.metadata import shown_signature
from SimpleLLMFunc.base.run import generate_trace_id
from SimpleLLMFunc.errors import SignatureError
from SimpleLLMFunc.llm_decorator.steps.common.types import FunctionSignature, Metadata


def extract_template_params(kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """Take `_template_params` out of `kwargs` (which is changed) and return it, or None."""
    params: dict[str, Any] | None = kwargs.pop("_template_params", None)
    return params


def extract_function_metadata(func: Callable[..., Any], local_names: Mapping[str, Any] | None = None) -> Metadata:
    """Return ``(signature, type_hints, return_type, docstring, func_name)`` of `func`.

    Args:
        func: a function or a bound method.
        local_names: names of the scope in which it was written, for annotations that are text.

    Raises:
        SignatureError: an annotation names something that does not exist.
    """
    func_name = getattr(func, "__name__", type(func).__name__)
    try:
        signature = inspect.signature(func)
    except (TypeError, ValueError) as error:
        raise SignatureError(f"{func_name}: its signature cannot be read ({error}). Decorate a function.") from error
    try:
        hints = typing.get_type_hints(func, localns=dict(local_names) if local_names else None, include_extras=True)
    except NameError as error:
        raise SignatureError(
            f"{func_name}: an annotation names {error.name!r}, which is not defined where the function is. "
            "Define or import it before the first call."
        ) from error
    except Exception as error:  # an annotation that is text may do anything when it is read
        raise SignatureError(f"{func_name}: an annotation cannot be read ({error}). Write a type there.") from error
    return_type = hints.get("return", str)
    if return_type is type(None):
        return_type = None
    return signature, hints, return_type, inspect.getdoc(func) or "", func_name


def bind_function_arguments(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any], about: str = ""
) -> inspect.BoundArguments:
    """Bind the arguments of a call and apply defaults; an error begins with `about`.

    Raises:
        SignatureError: they do not fit; the text is the one Python itself would give.
    """
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        unknown = "" if "unexpected keyword" in str(error) else _unknown_keywords(signature, kwargs)
        raise SignatureError(f"{about}{error}{unknown}; the signature is {shown_signature(signature)}") from error
    bound.apply_defaults()
    return bound


def _unknown_keywords(signature: inspect.Signature, kwargs: Mapping[str, Any]) -> str:
    """Name the unknown keywords: `bind` first names what is missing, which is often the same one misspelt."""
    unknown = [name for name in kwargs if name not in signature.parameters]
    return f", and there is no {', '.join(map(repr, unknown))}" if unknown else ""


def type_of_argument(parameter: inspect.Parameter, hints: Mapping[str, Any]) -> Any:
    """Return the type of what a call binds to a parameter: for ``*names: str`` a tuple of them; `Any` without annotation."""
    hint = hints.get(parameter.name, Any)
    if parameter.kind is parameter.VAR_POSITIONAL:
        return GenericAlias(tuple, (hint, ...))
    if parameter.kind is parameter.VAR_KEYWORD:
        return hint.__args__[0] if typing.get_origin(hint) is typing.Unpack else GenericAlias(dict, (str, hint))
    return hint


def build_function_signature(
    func_name: str,
    trace_id: str,
    bound_args: inspect.BoundArguments,
    signature: inspect.Signature,
    type_hints: dict[str, Any],
    return_type: Any,
    docstring: str,
) -> FunctionSignature:
    """Return the signature of one call, made of its parts."""
    return FunctionSignature(func_name, trace_id, bound_args, signature, type_hints, return_type, docstring)


def parse_function_signature(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], metadata: Metadata | None = None
) -> tuple[FunctionSignature, dict[str, Any] | None]:
    """Return the signature of one call and its template parameters.

    Args:
        func: the function called.
        args: positional arguments.
        kwargs: keyword arguments; `_template_params` is taken out of them.
        metadata: what `extract_function_metadata` gave before, so that it need not be read again.

    Raises:
        SignatureError: the arguments do not fit, or the function cannot be read.
    """
    template_params = extract_template_params(kwargs)
    signature, type_hints, return_type, docstring, func_name = metadata or extract_function_metadata(func)
    trace_id = generate_trace_id(func_name)
    bound_args = bind_function_arguments(signature, args, kwargs, f"{func_name}() ")
    parts = func_name, trace_id, bound_args, signature, type_hints, return_type, docstring
    return build_function_signature(*parts), template_params
