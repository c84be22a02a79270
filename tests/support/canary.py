"""Planted keys, and everything a process puts out, searched for them.

outputs = Outputs(tmp_path)
with outputs.watching():
    ...                                   # logs of all levels and libraries, warnings, the traceback of `outputs.error(e)`
assert outputs.leaks(canary) == []
"""

from __future__ import annotations

import base64
import contextlib
import html
import io
import json
import logging
import pickle
import random
import string
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

from SimpleLLMFunc.logger.records import JsonFormatter, LineFormatter

_WINDOW = 8
_LOGGERS = (
    "SimpleLLMFunc", "aiohttp", "aiohttp.client", "asyncio", "openai", "httpx", "httpx2", "httpcore", "httpcore2", "mcp", "concurrent",
)  # fmt: skip


class Canary:
    """A planted key; whoever finds eight characters of it, in any case or in base64, has found it."""

    def __init__(self, name: str, key: str) -> None:
        self.name = name
        self.key = key
        runs = "".join(each if each.isalnum() else " " for each in key.lower()).split()
        self._windows = {run[at : at + _WINDOW] for run in runs for at in range(len(run) - _WINDOW + 1)}
        assert len(self._windows) > 4, "a canary needs something to be known by"
        self._encoded: set[str] = set()
        for before in range(3):
            core = base64.b64encode(bytes(before) + key.encode()).decode().rstrip("=")[4:-2]
            for text in (core, core.replace("+", "-").replace("/", "_")):
                self._encoded |= {text[at : at + _WINDOW + 2] for at in range(len(text) - _WINDOW - 1)}

    def found_in(self, text: str) -> str:
        """Return the text around a part of the key, empty where there is none."""
        for windows, searched in ((self._windows, text.lower()), (self._encoded, text)):
            for window in windows:
                if (at := searched.find(window)) >= 0:
                    return text[max(at - 120, 0) : at + 60]
        return ""

    def __repr__(self) -> str:
        return f"Canary({self.name})"  # pytest prints it

    def __reduce__(self) -> Any:
        raise TypeError("a canary is not to travel")


def _random_text(seed: int, length: int) -> str:
    return "".join(random.Random(seed).choices(string.ascii_letters + string.digits, k=length))


# Made here, so that no line of source, which tracebacks print, holds one.
CANARIES = [
    Canary("prefixed", f"sk-{_random_text(1, 40)}"),
    Canary("plain", _random_text(2, 40)),
    Canary("special", f"{_random_text(3, 12)}/+=&?%25\"\\'<b>#{_random_text(4, 12)}"),
    Canary("upper", _random_text(5, 32).upper()),
]


def dressed(key: str) -> dict[str, str]:
    """How a key may stand in a text."""
    return {
        "plain": key, "url": quote(key, safe=""), "form": quote_plus(key), "html": html.escape(key),
        "json": json.dumps(key), "json in json": json.dumps(json.dumps(key)),
        "repr": repr({"Authorization": f"Bearer {key}"}), "bytes": repr(key.encode()), "lower": key.lower(),
        "upper": key.upper(), "base64": base64.b64encode(b"user:" + key.encode()).decode(),
        "urlsafe": base64.urlsafe_b64encode(key.encode()).decode(),
    }  # fmt: skip


def chain_of(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and all that hangs on it, whether it is printed with it or not."""
    waiting, seen = [error], set()
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        groups = part.exceptions if isinstance(part, BaseExceptionGroup) else ()
        waiting += [each for each in (*groups, part.__cause__, part.__context__) if each is not None]


class _Keep(logging.Handler):
    def __init__(self, outputs: Outputs) -> None:
        super().__init__(1)
        self.outputs = outputs

    def emit(self, record: logging.LogRecord) -> None:
        where = f"log {record.name} {record.levelname}"
        self.outputs.add(where, logging.Formatter("%(asctime)s %(name)s %(message)s").format(record))
        self.outputs.add(where, repr(record.__dict__))
        self.outputs.add(where, JsonFormatter().format(record))
        self.outputs.add(where, LineFormatter().format(record))


class Outputs:
    """All that came out."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kept: list[tuple[str, str]] = []

    def add(self, where: str, text: str | bytes) -> None:
        """Keep what came out of `where`."""
        self.kept.append((where, text.decode("latin-1") if isinstance(text, bytes) else text))

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Keep all logs, also those of other libraries, all warnings, and what is printed."""
        handler = _Keep(self)
        root = logging.getLogger()
        levels = {name: logging.getLogger(name).level for name in ("", *_LOGGERS)}
        out, err = io.StringIO(), io.StringIO()
        root.addHandler(handler)
        try:
            for name in levels:
                logging.getLogger(name).setLevel(1)
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                    yield
            for each in warned:
                self.add("warning", f"{each!r} {each.message!r}")
        finally:
            root.removeHandler(handler)
            for name, level in levels.items():
                logging.getLogger(name).setLevel(level)
            self.add("stdout", out.getvalue())
            self.add("stderr", err.getvalue())

    def error(self, error: BaseException, *, holds_content: bool = False) -> None:
        """Keep what an error shows: its text, its traceback, its chain, its attributes, its pickle.

        `holds_content` leaves out attributes and pickle: what the model wrote stands there as it wrote it.
        """
        self.add("traceback", "".join(traceback.format_exception(error)))
        for part in chain_of(error):
            where = f"error {type(part).__name__}"
            self.add(where, f"{part!s} {part!r} {part.args!r} {getattr(part, '__notes__', '')}")
            if not holds_content:
                self.add(f"{where} vars", repr(vars(part)))
        if not holds_content:
            self.add("error pickle", pickle.dumps(error))

    def object(self, made: Any, *, pickled: bool = True) -> None:
        """Keep what an object shows: its repr, that of its attributes, its pickle."""
        where = type(made).__name__
        self.add(f"{where} repr", f"{made!r} {made!s} {made:}")
        self.add(f"{where} vars", repr(getattr(made, "__dict__", {})))
        if pickled:
            self.add(f"{where} pickle", pickle.dumps(made))

    def files(self) -> None:
        """Keep the content of every file below the folder."""
        for path in self.folder.rglob("*"):
            if path.is_file():
                self.add(f"file {path.suffix}", path.read_bytes())

    def leaks(self, canary: Canary) -> list[str]:
        """Return where the canary was found, and the text around it."""
        found = ((where, canary.found_in(text)) for where, text in self.kept)
        return list(dict.fromkeys(f"{where}: {around}" for where, around in found if around))
