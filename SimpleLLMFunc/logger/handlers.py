"""Showing the log: a handler that writes one line per record; only `setup_logging` installs it."""

from __future__ import annotations

import json as jsonlib
import logging
import os
import re
import sys
from datetime import UTC, datetime
from threading import Lock

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.logger.context import get_current_context
from SimpleLLMFunc.logger.records import record_fields
from SimpleLLMFunc.logger.redact import escape_control, redact

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
    number = _level(level)
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
    moment = datetime.fromtimestamp(record.created, UTC)
    facts: dict[str, str | int] = {
        "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
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


def _level(level: int | str) -> int:
    number = level if isinstance(level, int) else logging.getLevelNamesMapping().get(str(level).strip().upper())
    if number is None:
        raise ConfigError(f"no log level is named {level!r}. Use DEBUG, INFO, WARNING, ERROR or CRITICAL.")
    return number


def _file_handler(file: str | os.PathLike[str]) -> logging.Handler:
    try:
        return logging.FileHandler(file, encoding="utf-8", errors="backslashreplace")
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the log cannot be written to {os.fspath(file)!r}: {error}. Give a file that can be, or none for stderr."
        ) from error
