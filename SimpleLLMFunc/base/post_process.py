"""From a reply to what the user gets: its text, or a typed value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, get_args, overload

from SimpleLLMFunc.base.parsing import Parsed, RepairLevel
from SimpleLLMFunc.base.schemas import compile_output
from SimpleLLMFunc.errors import ConfigError, OutputTruncated
from SimpleLLMFunc.logger import border
from SimpleLLMFunc.type import content_text

R = TypeVar("R")


@overload
def parse_text(text: str, return_type: type[R], *, repair: RepairLevel = "coerce") -> Parsed[R]: ...
@overload
def parse_text(text: str, return_type: Any, *, repair: RepairLevel = "coerce") -> Parsed[Any]: ...
@border
def parse_text(text: str, return_type: Any, *, repair: RepairLevel = "coerce") -> Parsed[Any]:
    """Read a value of `return_type` in the text of a model.

    Args:
        text: as the model wrote it.
        return_type: any type a decorated function can return.
        repair: "off" reads strict JSON only, "syntax" also finds and mends JSON, "coerce" also aligns it to the type.

    Returns:
        The value, and a line for every step beyond strict JSON.

    Raises:
        ResponseParseError: no one value fits; the violations say why.
        SignatureError: no schema can be made of the type.
        ConfigError: there is no such `repair`.
    """
    if repair not in get_args(RepairLevel):
        raise ConfigError(f"repair must be one of {', '.join(map(repr, get_args(RepairLevel)))}, not {repair!r}.")
    return compile_output(return_type).parse(text, repair)


@border
def process_response(response: Any, return_type: Any) -> Any:
    """Return the value of `return_type` in a reply, as `parse_text` reads it; a reply is also a plain text.

    Raises:
        ResponseParseError: also a ValueError; no one value fits.
        OutputTruncated: a typed answer was cut.
    """
    spec = compile_output(return_type)
    text = response if isinstance(response, str) else extract_content_from_response(response, "")
    if _part(_first_choice(response), "finish_reason") == "length" and not (spec.is_text or spec.is_none):
        raise OutputTruncated(partial=text)
    return spec.parse(text).value


def extract_content_from_response(response: Any, func_name: str) -> str:  # noqa: ARG001 - the note's signature
    """Return the text of the choice with the lowest index; empty if there is no choice, or the model only called tools.

    Args:
        response: a `ChatCompletion`, the openai package's, or anything of that shape, also as dictionaries.
        func_name: who asks.
    """
    return content_text(_part(_part(_first_choice(response), "message"), "content")) or ""


def extract_content_from_stream_response(chunk: Any, func_name: str) -> str:  # noqa: ARG001 - the note's signature
    """Return the piece of text in a chunk for the choice with index 0; empty where it has none.

    Args:
        chunk: a `ChatCompletionChunk`, the openai package's, or anything of that shape, also as dictionaries.
        func_name: who asks.
    """
    for choice in _part(chunk, "choices") or ():
        if not _part(choice, "index"):
            return content_text(_part(_part(choice, "delta"), "content")) or ""
    return ""


def _first_choice(response: Any) -> Any:
    return min(_part(response, "choices") or (), key=lambda choice: _part(choice, "index") or 0, default=None)


def _part(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)
