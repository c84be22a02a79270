"""The log: one record per message, redacted, on one line, with the id of its run; and a handler that shows it.

Only `setup_logging` installs the handler.
"""

from __future__ import annotations

import json as jsonlib
import logging
import os
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from threading import Lock
from types import FrameType
from typing import Any, TypeAlias

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.logger.context import LogContext, get_current_context
from SimpleLLMFunc.logger.failures import shown_error
from SimpleLLMFunc.logger.redact import escape_control, redact, shown_text

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


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(name if name == _PACKAGE or name.startswith(_PACKAGE + ".") else _PACKAGE)


# --- showing it ---------------------------------------------------------------------------------------------

_installed: logging.Handler | None = None
_installing = Lock()


def setup_logging(
    level: int | str = "INFO", json: bool = True, file: str | os.PathLike[str] | None = None
) -> logging.Handler:
    """Show the library's log, and return its handler; calling again replaces the handler.

    Args:
        level: a number or a name of the standard `logging` module.
        json: one JSON object per line; False gives lines for people.
        file: appended to, in UTF-8; None is stderr.

    Raises:
        ConfigError: no such level, or the file cannot be written.
    """
    global _installed  # noqa: PLW0603 - the one handler of the process, so that calling twice does not print twice
    number = level if isinstance(level, int) else logging.getLevelNamesMapping().get(str(level).strip().upper())
    if number is None:
        raise ConfigError(f"no log level is named {level!r}. Use DEBUG, INFO, WARNING, ERROR or CRITICAL.")
    handler = _StderrHandler() if file is None else _file_handler(file)
    handler.setFormatter(JsonFormatter() if json else LineFormatter())
    handler.setLevel(number)
    logger = logging.getLogger("SimpleLLMFunc")
    with _installing:
        if _installed is not None:
            logger.removeHandler(_installed)
            _installed.close()
        logger.addHandler(handler)
        logger.setLevel(number)
        _installed = handler
    return handler


class JsonFormatter(logging.Formatter):
    """Writes a record as one line of JSON; every text in it redacted and on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without its end."""
        return jsonlib.dumps(_facts(self, record), ensure_ascii=False)


class LineFormatter(logging.Formatter):
    """Writes a record as one line for people."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without its end."""
        facts = _facts(self, record)
        named = [str(facts[name]) for name in ("trace_id", "func_name") if facts[name]]
        run = f" [{' '.join(named)} {facts['input_tokens']}+{facts['output_tokens']} tokens]" if named else ""
        parts = [f"{facts['time']} {facts['level']:<7} {facts['logger']}{run} {facts['message']} ({facts['location']})"]
        parts += [str(facts[name]) for name in ("exception", "stack") if name in facts]
        return " | ".join(parts)


def _facts(formatter: logging.Formatter, record: logging.LogRecord) -> dict[str, str | int]:
    # Records made by `logging` itself get the run here: this is still the thread that logs.
    run = record_fields(get_current_context())
    facts: dict[str, str | int] = {
        "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": record.levelname,
        "logger": record.name,
        "message": _clean(record.getMessage()),
        "location": getattr(record, "location", f"{record.filename}:{record.funcName}:{record.lineno}"),
    }
    for name, value in run.items():
        own = getattr(record, name, value)
        facts[name] = own if isinstance(own, int) else _clean(str(own))
    # Never record.exc_text: another formatter may have stored it unredacted.
    if record.exc_info:
        facts["exception"] = _clean(formatter.formatException(record.exc_info))
    if record.stack_info:
        facts["stack"] = _clean(record.stack_info)
    return facts


def _clean(text: str) -> str:
    return escape_control(redact(text))


class _StderrHandler(logging.Handler):
    """Writes to the current `sys.stderr`, which notebooks and test runners replace."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        stream = sys.stderr
        if stream is None:  # a program without a console
            return
        try:
            line = self.format(record)
            encoding = (getattr(stream, "encoding", None) or "utf-8").lower().replace("_", "-")
            stream.write((line if encoding in {"utf-8", "utf8"} else _in_ascii(line)) + "\n")
            stream.flush()
        except Exception:  # noqa: BLE001 - as standard handlers do: a failing log must not end the run
            self.handleError(record)


def _in_ascii(line: str) -> str:
    r"""Return `line` with every other character as ``\uXXXX``, which JSON reads back."""
    return re.sub(r"[^\x00-\x7f]+", lambda match: jsonlib.dumps(match.group())[1:-1], line)


def _file_handler(file: str | os.PathLike[str]) -> logging.Handler:
    try:
        return logging.FileHandler(file, encoding="utf-8", errors="backslashreplace")
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the log cannot be written to {os.fspath(file)!r}: {error}. Give a file that can be, or none for stderr."
        ) from error
