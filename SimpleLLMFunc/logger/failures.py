"""Errors without secrets: their texts, their tracebacks, and themselves as a cause."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator
from itertools import islice

from SimpleLLMFunc.errors import BODY_LIMIT
from SimpleLLMFunc.logger.redact import BEYOND, holds_little, redact, shown_data, shown_text


class RedactedCause(Exception):
    """The text of a foreign exception, without its secrets."""


_LONGEST_CAUSE = 2000
_MOST_NOTES = 10
_MUCH = 200_000
"""Characters of an exception; the text of a larger one is not made whole, since that would block the event loop."""


def redacted_cause(error: BaseException) -> BaseException:
    """Return `error`, or a copy without secrets if the error or one of its causes holds one.

    A traceback prints causes, and programs keep them. An error that is too large to search counts as one with a secret.
    """
    parts = list(with_causes(error))
    if not any(_holds_secret(each) for each in parts):
        return error
    return RedactedCause("; after ".join(map(_with_notes, parts)))


def _with_notes(error: BaseException) -> str:
    notes = islice(getattr(error, "__notes__", ()), _MOST_NOTES)
    return "\n".join([shown_error(error, _LONGEST_CAUSE), *(shown_text(str(note), _LONGEST_CAUSE) for note in notes)])


def with_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield `error`, those in its group, and all that led to them, each once."""
    waiting, seen = [error], set[int]()
    while waiting:
        part = waiting.pop()
        if id(part) not in seen:
            seen.add(id(part))
            yield part
            groups = part.exceptions if isinstance(part, BaseExceptionGroup) else ()
            waiting += [each for each in (*groups, part.__context__, part.__cause__) if each is not None]


def shown_error(error: BaseException, limit: int = BODY_LIMIT) -> str:
    """Return type and text of `error`, as `shown_text` does; only the type if giving the text fails."""
    return shown_text(_said(error, limit + BEYOND), limit)


def shown_traceback(error: BaseException, limit: int = 10_000) -> str:
    """Return `error` with its traceback, in Python's form unless the error is too long; redacted as by `shown_text`."""
    if not any(map(_is_large, with_causes(error))):
        return shown_text("".join(traceback.format_exception(error)), limit)
    return "".join(traceback.format_tb(error.__traceback__)) + shown_error(error, limit)


def _said(error: BaseException, room: int) -> str:
    """Return type and text of an error; of a large error about the first `room` characters."""
    try:
        if not _is_large(error):
            said = str(error)[:room]
        elif len(error.args) == 1 and isinstance(error.args[0], str):
            said = error.args[0][:room]
        else:
            said = json.dumps(shown_data(error.args, room), ensure_ascii=False)
    except Exception:  # noqa: BLE001 - a user's exception may fail in its `__str__`
        return type(error).__name__
    return f"{type(error).__name__}: {said}".removesuffix(": ")


def _is_large(error: BaseException) -> bool:
    return not holds_little((error.args, vars(error)), _MUCH)


def _holds_secret(error: BaseException) -> bool:
    try:
        texts = [_said(error, _MUCH), repr(error.args), repr(vars(error))] if not _is_large(error) else []
    except Exception:  # noqa: BLE001 - as above; an error that cannot be shown may hold a secret
        return True
    return not texts or any(redact(text) != text for text in texts)
