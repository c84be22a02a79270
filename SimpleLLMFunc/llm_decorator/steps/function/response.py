"""Step 5 of `@llm_function`: the response becomes a value of the annotated type."""

from __future__ import annotations

from typing import Any

from SimpleLLMFunc.base.post_process import process_response
from SimpleLLMFunc.errors import ResponseParseError
from SimpleLLMFunc.llm_decorator.steps.common.response import extract_response_content

__all__ = ["extract_response_content", "parse_and_validate_response", "parse_response_to_type"]


def parse_response_to_type(response: Any, return_type: Any) -> Any:
    """Return the value that the response holds.

    Raises:
        ResponseParseError: it does not fit the type (also a ValueError).
    """
    return process_response(response, return_type)


def parse_and_validate_response(response: Any, return_type: Any, func_name: str) -> Any:
    """Return the value that the response of `func_name` holds.

    Raises:
        ResponseParseError: it does not fit the type (also a ValueError); names the function.
    """
    try:
        return parse_response_to_type(response, return_type)
    except ResponseParseError as error:
        error.with_run(func_name=func_name)
        raise
