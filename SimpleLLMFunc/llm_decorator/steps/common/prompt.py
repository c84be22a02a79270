"""Shared parts of the prompts of functions and chats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from SimpleLLMFunc.base.templates import fill_fields
from SimpleLLMFunc.base.type_resolve import has_multimodal_content
from SimpleLLMFunc.errors import TemplateError
from SimpleLLMFunc.logger import push_warning


def process_docstring_template(docstring: str, template_params: Mapping[str, Any] | None) -> str:
    """Return the docstring with its ``{fields}`` filled.

    Only ``{identifier}`` is a field. One that has no value leaves the whole docstring as written, with a warning.
    """
    return filled_docstring([docstring], template_params)[0]


def filled_docstring(parts: Sequence[str], template_params: Mapping[str, Any] | None) -> list[str]:
    """Return the parts of a docstring with their ``{fields}`` filled: all of them, or with a warning none."""
    if not template_params:
        return list(parts)
    try:
        return [fill_fields(part, template_params, name="docstring") for part in parts]
    except TemplateError as error:
        push_warning(f"{error} The docstring is used as written.")
        return list(parts)


def extract_parameter_type_hints(type_hints: Mapping[str, Any]) -> dict[str, Any]:
    """Return the hints of the parameters: all but "return"."""
    return {name: hint for name, hint in type_hints.items() if name != "return"}


def check_multimodal_content(
    arguments: Mapping[str, Any], type_hints: Mapping[str, Any], exclude_params: Sequence[str] | None = None
) -> bool:
    """Say whether an argument, `exclude_params` aside, is or holds an image, a sound or a file."""
    return has_multimodal_content(arguments, type_hints, exclude_params)
