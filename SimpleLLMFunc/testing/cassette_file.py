"""A cassette as a file: JSON that people read and compare, with the secrets taken out.

A text of several lines stands as ``{"|": ["first line", "second line"]}``; all else is plain JSON. Images, sounds and
files stand as the hash of what they hold.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import filelock

from SimpleLLMFunc.batch import replaced_whole
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.logger import MASK, looks_secret, redact

_FORMAT: Final = 1
_ABOUT: Final = ("function", "version", "test", "model", "profile", "wire")
_LINES: Final = "|"
_LOCK_SECONDS: Final = 10.0
_DATA_URL: Final = re.compile(r"data:(?P<mime>[^;,\s]{0,100})(?:;[^,\s]{0,100})?;base64,", re.IGNORECASE)
_HEADERS: Final = frozenset({"extra_headers", "extra_query"})


@dataclass(slots=True)
class Exchange:
    """One request and its outcome.

    Attributes:
        function: ``module:qualname`` of the caller, or its name; empty where it is unknown.
        version: of that function.
        model: name of the model.
        test: that recorded it; empty outside of tests.
        profile: name of the model's profile; empty for an unknown one.
        wire: protocol of the request; empty for chat completions, the only one of 1.0.
        request: `messages`, `tools`, `response_format`, `params`: without secrets and without random ids.
        outcome: `reply`, `stream` or `error`.
    """

    function: str
    version: str
    model: str
    test: str
    request: dict[str, Any]
    outcome: dict[str, Any] = field(default_factory=dict)
    profile: str = ""
    wire: str = ""

    @property
    def key(self) -> str:
        """A hash of request, model and wire."""
        asked = [self.model, self.request, *([self.wire] if self.wire else [])]
        text = json.dumps(asked, sort_keys=True, separators=(",", ":"), default=str)
        return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return the exchange in the form that the file has."""
        about = {name: getattr(self, name) for name in _ABOUT}
        return {**{name: text for name, text in about.items() if text}, "request": self.request, **self.outcome}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Exchange:
        """Read an exchange back."""
        outcome = {name: data[name] for name in ("reply", "stream", "error", "left") if name in data}
        about = {name: str(data.get(name, "")) for name in _ABOUT}
        return cls(**about, request=dict(data["request"]), outcome=outcome)


# --- without secrets -------------------------------------------------------------------------------------


def plain_request(
    messages: Iterable[Mapping[str, Any]], *, tools: Any = None, response_format: Any = None, **params: Any
) -> dict[str, Any]:
    """Return a request in the form that is stored and compared: without secrets, files by their hash, calls numbered."""
    ids: dict[str, str] = {}
    kept = {name: value for name, value in params.items() if value is not None}
    request = {
        "messages": [_plain_message(message, ids) for message in messages],
        "tools": scrubbed(list(tools)) if tools else None,
        "response_format": scrubbed(response_format),
        "params": {
            name: _without_values(value) if name in _HEADERS else scrubbed(value, name=name)
            for name, value in sorted(kept.items())
        },
    }
    # In the form that JSON gives back: no tuples, all keys texts.
    plain: dict[str, Any] = json.loads(json.dumps({name: part for name, part in request.items() if part}, default=repr))
    return plain


def _plain_message(message: Mapping[str, Any], ids: dict[str, str]) -> dict[str, Any]:
    # `is_error` repeats what the content says; recordings of 1.0 have none.
    plain: dict[str, Any] = {
        name: scrubbed(part) for name, part in message.items() if part is not None and name != "is_error"
    }
    # Some providers give no ids, and others give new ones each time.
    if message.get("tool_calls"):
        for call in plain["tool_calls"]:
            call["id"] = ids.setdefault(str(call.get("id")), f"call_{len(ids) + 1}")
    if "tool_call_id" in message:
        plain["tool_call_id"] = ids.setdefault(str(message["tool_call_id"]), f"call_{len(ids) + 1}")
    return plain


def _without_values(headers: Any) -> Any:
    return dict.fromkeys(sorted(headers), MASK) if isinstance(headers, Mapping) else MASK


def scrubbed(value: Any, *, name: str = "") -> Any:
    """Return JSON data without secrets, with a hash in place of a file's contents."""
    if isinstance(value, str):
        if name and looks_secret(name, value):
            return MASK
        return _scrubbed_text(value)
    if isinstance(value, Mapping):
        is_sound = isinstance(value.get("data"), str) and "format" in value
        return {
            _scrubbed_text(str(key)): _hashed("", part) if is_sound and key == "data" else scrubbed(part)
            for key, part in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [scrubbed(item) for item in value]
    return value


def _scrubbed_text(text: str) -> str:
    match = _DATA_URL.match(text)
    return redact(text) if match is None else _hashed(f"data:{match['mime']};", text[match.end() :])


def _hashed(head: str, data: str) -> str:
    try:
        content = base64.b64decode(data, validate=False)
    except (binascii.Error, ValueError):
        content = data.encode("utf-8", "backslashreplace")
    return f"{head}sha256={hashlib.sha256(content).hexdigest()} ({len(content)} bytes)"


# --- the file --------------------------------------------------------------------------------------------


def read_cassette(path: Path) -> list[Exchange]:
    """Return the recorded exchanges; [] without a file.

    Raises:
        ConfigError: the file is not a cassette, or one of a newer version.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the cassette {str(path)!r} cannot be read: {error}") from error
    try:
        data = json.loads(text)
        if data["cassette"] != _FORMAT:
            raise ConfigError(
                f"the cassette {str(path)!r} has the format {data['cassette']!r}; this version of SimpleLLMFunc reads "
                f"{_FORMAT}. Update SimpleLLMFunc, or delete the file and record again."
            )
        return [Exchange.from_dict(_joined(each)) for each in data["exchanges"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(
            f"{str(path)!r} is not a cassette, or was damaged ({type(error).__name__}: {error}). Take it from version "
            "control again, or delete it and record again."
        ) from error


def update_cassette(path: Path, new: list[Exchange], *, replacing: str | None = None) -> None:
    """Add exchanges to a file; other processes may add to it at the same time.

    Args:
        path: of the file; made if it is missing.
        new: recorded exchanges.
        replacing: the test whose earlier exchanges are replaced; None keeps all.

    Raises:
        ConfigError: the file cannot be written, or is not a cassette.
    """
    lock = path.with_name(f"{path.name}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(lock, timeout=_LOCK_SECONDS, poll_interval=0.02):
            kept = [each for each in read_cassette(path) if replacing is None or each.test != replacing]
            # Sorted by test, since workers end in any order.
            every = sorted([*kept, *new], key=lambda each: each.test)
            _write(path, {"cassette": _FORMAT, "exchanges": [_split(each.to_dict()) for each in every]})
            with contextlib.suppress(OSError):  # Windows removes no open file
                lock.unlink()
    except filelock.Timeout as error:
        raise ConfigError(f"the cassette {str(path)!r} is being written by another process.") from error
    except OSError as error:
        raise ConfigError(f"the cassette {str(path)!r} cannot be written: {error.strerror or error}") from error


def _write(path: Path, data: Any) -> None:
    text = json.dumps(data, ensure_ascii=False, indent=2) + "\n"
    with replaced_whole(path) as part:
        # Halves of characters become "\\ud800" and so on, which JSON knows too.
        part.write_bytes(text.encode("utf-8", "backslashreplace"))


def _split(value: Any) -> Any:
    """Return JSON data with texts of several lines as lists of lines."""
    if isinstance(value, str):
        return {_LINES: value.split("\n")} if "\n" in value else value
    if isinstance(value, Mapping):
        # The key of a dict that only looks like lines gets another bar.
        return {(f"{_LINES}{key}" if key.startswith(_LINES) else key): _split(part) for key, part in value.items()}
    return [_split(item) for item in value] if isinstance(value, list) else value


def _joined(value: Any) -> Any:
    """Undo `_split`."""
    if isinstance(value, dict):
        if list(value) == [_LINES] and isinstance(value[_LINES], list):
            return "\n".join(value[_LINES])
        return {
            (key[1:] if key.startswith(_LINES) and key != _LINES else key): _joined(part) for key, part in value.items()
        }
    return [_joined(item) for item in value] if isinstance(value, list) else value
