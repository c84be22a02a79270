"""Writing to the log: one record per message, redacted, on one line, with the id of its run."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from functools import lru_cache
from types import FrameType
from typing import Any, TypeAlias

from SimpleLLMFunc.logger.context import LogContext, get_current_context
from SimpleLLMFunc.logger.failures import shown_error
from SimpleLLMFunc.logger.redact import escape_control, shown_text

LogMessage: TypeAlias = str | Callable[[], str]
"""A text, or a function that returns it; the function is called only if the level is enabled."""

_PACKAGE = "SimpleLLMFunc"
_HERE = f"{_PACKAGE}.logger"
_LONGEST = 16_000
"""Most characters of a message: redacting a megabyte would block the event loop longer than a call takes."""

_NO_RUN = LogContext()


def app_log(message: LogMessage, location: str | None = None) -> None:
    """Log the ordinary course of a run, at level INFO."""
    _push(logging.INFO, message, location)


def push_debug(message: LogMessage, location: str | None = None) -> None:
    """Log a detail, at level DEBUG."""
    _push(logging.DEBUG, message, location)


def push_info(message: LogMessage, location: str | None = None) -> None:
    """Log a fact, at level INFO."""
    _push(logging.INFO, message, location)


def push_warning(message: LogMessage, location: str | None = None) -> None:
    """Log a problem that was repaired, at level WARNING."""
    _push(logging.WARNING, message, location)


def push_error(message: LogMessage, location: str | None = None) -> None:
    """Log an error that ended a run, at level ERROR."""
    _push(logging.ERROR, message, location)


def get_location() -> str:
    """Return the caller's position, as ``file.py:function:line``."""
    return _location(_caller())


def is_enabled(level: int | str) -> bool:
    """Return whether a record of the calling module would be written at `level` (a number, or a name)."""
    number = level if isinstance(level, int) else logging.getLevelName(level.upper())
    return isinstance(number, int) and _logger(_caller().f_globals.get("__name__", "")).isEnabledFor(number)


def record_fields(context: LogContext | None) -> dict[str, Any]:
    """Return the extra attributes of every record: the run's id, name and tokens."""
    context = context or _NO_RUN
    return {
        "trace_id": context.trace_id,
        "parent_trace_id": context.parent_trace_id,
        "func_name": context.function_name,
        "input_tokens": context.input_tokens,
        "output_tokens": context.output_tokens,
    }


def _push(level: int, message: LogMessage, location: str | None) -> None:
    frame = _caller()
    logger = _logger(frame.f_globals.get("__name__", ""))
    if not logger.isEnabledFor(level):
        return
    extra = record_fields(get_current_context())
    extra["location"] = escape_control(location) if location else _location(frame)
    code = frame.f_code
    record = logger.makeRecord(
        logger.name, level, code.co_filename, frame.f_lineno, _rendered(message), (), None, code.co_name, extra
    )
    logger.handle(record)


def _rendered(message: LogMessage) -> str:
    if callable(message):
        try:
            message = message()
        except Exception as error:  # noqa: BLE001 - a log message must never end a run
            message = f"(this message could not be rendered: {shown_error(error)})"
    return escape_control(shown_text(message, _LONGEST))


def _caller() -> FrameType:
    """Return the nearest frame outside of this package."""
    frame: FrameType = sys._getframe(2)  # noqa: SLF001 - inspect.stack() reads source files, a hundred times slower
    # No frame further than needed: reading a frame allocates 300 bytes until it ends.
    while frame.f_globals.get("__name__", "").startswith(_HERE) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def _location(frame: FrameType) -> str:
    code = frame.f_code
    return f"{os.path.basename(code.co_filename)}:{code.co_name}:{frame.f_lineno}"  # noqa: PTH119 - on a hot path


@lru_cache(maxsize=1024)
def _logger(name: str) -> logging.Logger:
    ours = name == _PACKAGE or name.startswith(_PACKAGE + ".")
    return logging.getLogger(name if ours else _PACKAGE)
