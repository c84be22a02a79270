"""Errors as they may be seen by others: what they say, their traceback, and themselves as a cause."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator
from itertools import islice

from SimpleLLMFunc.errors import BODY_LIMIT, SimpleLLMFuncError
from SimpleLLMFunc.logger.redact import BEYOND, holds_little, redact, shown_data, shown_text


class RedactedCause(Exception):
    """What a foreign exception said, without the secret that it held."""


_LONGEST_CAUSE = 2000
_MOST_NOTES = 10
_LOOKED_THROUGH = 200_000
"""Characters and values of an exception that are searched for a secret; more would hold up an event loop."""


def redacted_cause(error: BaseException) -> BaseException:
    """Return `error`, or a copy without secrets if it holds one, itself or in what led to it.

    A cause is printed with the traceback, and kept by whoever keeps errors. One that holds too much to be looked
    through counts as one that holds a secret.
    """
    parts = list(_with_causes(error))
    if not any(_holds_secret(each) for each in parts):
        return error
    return RedactedCause("; after ".join(map(_with_notes, parts)))


def _with_notes(error: BaseException) -> str:
    notes = islice(getattr(error, "__notes__", ()), _MOST_NOTES)
    return "\n".join([shown_error(error, _LONGEST_CAUSE), *(shown_text(str(note), _LONGEST_CAUSE) for note in notes)])


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield `error` and whatever is printed with it."""
    waiting, seen = [error], set[int]()
    while waiting:
        part = waiting.pop()
        if id(part) not in seen:
            seen.add(id(part))
            yield part
            groups = part.exceptions if isinstance(part, BaseExceptionGroup) else ()
            waiting += [each for each in (*groups, part.__context__, part.__cause__) if each is not None]


def shown_error(error: BaseException, limit: int = BODY_LIMIT) -> str:
    """Return the type of `error` and what it says; as `shown_text` otherwise, and an odd error is shown by its type."""
    return shown_text(_said(error, limit + BEYOND), limit)


def shown_traceback(error: BaseException, limit: int = 10_000) -> str:
    """Return `error` with its traceback, as Python prints it where it is not too long; as `shown_text` otherwise."""
    if all(_says_little(each) for each in _with_causes(error)):
        return shown_text("".join(traceback.format_exception(error)), limit)
    return "".join(traceback.format_tb(error.__traceback__)) + shown_error(error, limit)


def _said(error: BaseException, room: int) -> str:
    """Return the type of an error and what it says; where that is long, about its first `room` characters."""
    try:
        if isinstance(error, SimpleLLMFuncError) or _says_little(error):
            said = str(error)[:room]
        elif len(error.args) == 1 and isinstance(error.args[0], str):
            said = error.args[0][:room]
        else:
            said = json.dumps(shown_data(error.args, room), ensure_ascii=False)
    except Exception:  # noqa: BLE001 - an exception of the user's may fail at showing itself, and then shows nothing
        return type(error).__name__
    return f"{type(error).__name__}: {said}".removesuffix(": ")


def _says_little(error: BaseException) -> bool:
    """Say whether the text of an error can be had at little cost."""
    # What Python's own exceptions say, they say of their arguments; others may show whatever they hold.
    own = next(kind for kind in type(error).__mro__ if "__str__" in vars(kind)).__module__ == "builtins"
    return holds_little(error.args) and (own or holds_little(vars(error)))


def _holds_secret(error: BaseException) -> bool:
    try:
        if not holds_little((error.args, vars(error)), _LOOKED_THROUGH):
            return True
        texts = [_said(error, _LOOKED_THROUGH), repr(error.args), repr(vars(error))]
    except Exception:  # noqa: BLE001 - as above, and what cannot be shown is not known to be harmless
        return True
    return any(redact(text) != text for text in texts)
