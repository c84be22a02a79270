"""Step 2: name the run in every log line."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from SimpleLLMFunc.logger import app_log, async_log_context, is_enabled, log_context, render_arguments


def log_function_call(func_name: str, arguments: Mapping[str, Any]) -> None:
    """Write one log line with the arguments: redacted, cut, and rendered only if the log is on."""
    app_log(lambda: f"LLM function {func_name!r} called with arguments: {render_arguments(arguments)}")


def create_log_context_manager(func_name: str, trace_id: str) -> AbstractAsyncContextManager[Any]:
    """Return the context manager that names the run in every record."""
    return async_log_context(trace_id=trace_id, function_name=func_name, input_tokens=0, output_tokens=0)


def setup_log_context(func_name: str, trace_id: str, arguments: Mapping[str, Any]) -> AbstractAsyncContextManager[Any]:
    """Log the call, and return the context manager to run it in."""
    if is_enabled(logging.INFO):
        with log_context(trace_id, func_name):  # this line belongs to the run too
            log_function_call(func_name, arguments)
    return create_log_context_manager(func_name, trace_id)
