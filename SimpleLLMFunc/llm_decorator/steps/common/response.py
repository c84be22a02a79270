"""Step 5, shared: the text of a response."""

from __future__ import annotations

from typing import Any

from SimpleLLMFunc.base.post_process import extract_content_from_response, extract_content_from_stream_response


def extract_response_content(response: Any, func_name: str) -> str:
    """Return the text of a whole response; "" where it has none."""
    return extract_content_from_response(response, func_name)


def extract_stream_response_content(chunk: Any, func_name: str) -> str:
    """Return the text of a chunk; "" where it has none."""
    return extract_content_from_stream_response(chunk, func_name)
