"""Responses to the page: JSON that every browser reads, streams of JSON lines, errors in one form."""

from __future__ import annotations

import asyncio
import json
import string
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import to_jsonable_python

from SimpleLLMFunc.base.events import Attempt
from SimpleLLMFunc.errors import SimpleLLMFuncError
from SimpleLLMFunc.logger import (
    end_before_growing_secret,
    end_before_secret,
    push_error,
    redact,
    shown_error,
    shown_text,
    shown_traceback,
)
from SimpleLLMFunc.runtime import in_thread, unless_gone

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

_MAX_ERROR_CHARS = 4000


class Refusal(Exception):
    """A request that is answered with a status and a sentence."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def number_of(request: Request, name: str, default: int, least: int, most: int) -> int:
    """Return a parameter of the address as a whole number.

    Raises:
        Refusal: it is no number, or out of bounds.
    """
    text = request.query_params.get(name)
    if not text:
        return default
    if not (text.isascii() and text.isdecimal()) or len(text) > 19 or not least <= int(text) <= most:
        raise Refusal(400, f"{name} is a whole number from {least} to {most}.")
    return int(text)


def json_text(data: Any) -> str:
    """Return JSON that a browser reads: ASCII, with null for NaN and infinity; dataclasses as objects."""
    return json.dumps(to_jsonable_python(data, inf_nan_mode="null"))


def json_reply(data: Any, status: int = 200) -> Response:
    """Return a small `data` as the response to the page."""
    from starlette.responses import Response

    return Response(json_text(data), status, media_type="application/json")


async def reply_of(read: Callable[..., Any], *args: Any) -> Response:
    """Return the result of `read` as the response to the page; a thread reads and encodes it."""
    return await in_thread(lambda: json_reply(read(*args)))


async def body_of(request: Request) -> dict[str, Any]:
    """Return the JSON object in a request's body.

    Raises:
        Refusal: the body holds none.
    """
    from starlette.requests import ClientDisconnect

    try:
        data = json.loads(await request.body())
    except ClientDisconnect:
        raise Refusal(413, "The request was cut off.") from None
    except (ValueError, RecursionError):
        raise Refusal(400, "This is no JSON.") from None
    if not isinstance(data, dict):
        raise Refusal(400, "Send a JSON object.")
    return data


def reason(error: BaseException) -> str:
    """Return the text of an error, redacted."""
    return shown_error(error, _MAX_ERROR_CHARS)


def error_facts(error: BaseException) -> dict[str, Any]:
    """Return an error in the form that the page shows; a foreign error is logged with its traceback."""
    if not isinstance(error, SimpleLLMFuncError):
        push_error(f"a run on the page failed: {shown_traceback(error)}")
    return {
        "error": type(error).__name__,
        "message": shown_text(str(error), _MAX_ERROR_CHARS),
        "violations": clean(getattr(error, "violations", None) or []),
        "trace_id": str(getattr(error, "trace_id", "") or ""),
        "attempts": [attempt_facts(each) for each in getattr(error, "attempts", None) or []],
    }


def attempt_facts(attempt: Attempt) -> dict[str, Any]:
    """Return one answer of a run in the form that the page shows."""
    return {name: clean(getattr(attempt, name)) for name in ("text", "violations", "repairs")}


def clean(value: Any, depth: int = 0) -> Any:
    """Return `value` as JSON data without secrets."""
    if isinstance(value, str):
        return redact(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if depth > 60:
        return "…"
    if isinstance(value, Mapping):
        return {redact(str(name)): clean(item, depth + 1) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean(item, depth + 1) for item in value]
    return redact(str(value))


class Lines:
    """A response of JSON lines, each sent at once; when the client leaves, the work is cancelled.

    Args:
        items: the data of the lines; always closed.
    """

    def __init__(self, items: AsyncGenerator[Mapping[str, Any], None]) -> None:
        self._items = items

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Send the lines."""
        sending = asyncio.create_task(self._send(send))
        if await unless_gone(sending, receive):
            sending.result()

    async def _send(self, send: Send) -> None:
        headers = [(b"content-type", b"application/x-ndjson"), (b"x-accel-buffering", b"no")]
        async with aclosing(self._items) as items:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            async for item in items:
                line = json_text(item).encode() + b"\n"
                await send({"type": "http.response.body", "body": line, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


_WORD: Final = f"{string.ascii_letters}{string.digits}_-./+=:@%*~\\"
"""Characters of a word that may become a secret."""

_CONTEXT: Final = 1000
"""A longer word is data and not a secret, unless a name before it says so."""

_MOST_HELD: Final = 64_000
"""Held characters behind the name of a secret; a longer value is cut at its line end."""


class Veil:
    """Masks secrets in a streamed text, also those that arrive in several pieces.

    A long line is checked again when it has grown by a sixteenth, so the work is proportional to the text.
    """

    def __init__(self) -> None:
        self._line = ""
        self._shown = ""
        self._waiting = 0
        self._is_closed = False

    def add(self, text: str) -> str:
        """Add a piece, and return the text that may be shown now."""
        if self._is_closed:
            _, line_end, text = text.partition("\n")
            if not line_end:
                return ""
            self._is_closed = False
            text = line_end + text
        self._line += text
        self._waiting += len(text)
        if len(self._line) > _CONTEXT and self._waiting < len(self._line) // 16:
            return ""
        self._waiting = 0
        word_start = max(len(self._line.rstrip(_WORD)), len(self._line) - _CONTEXT)
        end = end_before_secret(self._line, min(word_start, end_before_growing_secret(self._line)))
        held = len(self._line) - end
        shown = self._let_through(self._line[:end])
        if held > _MOST_HELD:
            self._line = self._shown = ""
            self._is_closed = True
        return shown

    def rest(self) -> str:
        """Return the held text; a new text may begin."""
        shown = self._let_through(self._line)
        self._line = self._shown = ""
        self._waiting, self._is_closed = 0, False
        return shown

    def _let_through(self, text: str) -> str:
        masked = redact(text)
        if not masked.startswith(self._shown):
            return ""  # text that was shown belongs to a secret: the rest of the line is hidden
        new = masked[len(self._shown) :]
        line_end = text.rfind("\n") + 1
        if line_end:
            # A secret and its name are on one line.
            self._line = self._line[line_end:]
            self._shown = redact(text[line_end:])
        else:
            self._shown = masked
        return new
