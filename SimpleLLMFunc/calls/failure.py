"""Errors inside a Call become `CallError`, the one error that schedulers know."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from SimpleLLMFunc.errors import CallError, DeadlineExceeded, OutcomeUnknown, RunAborted, RunPaused, SimpleLLMFuncError
from SimpleLLMFunc.logger import redact, redacted_cause, shown_text, shown_value

_FACTS = (
    "status", "retry_after", "kind", "limit", "spent", "unit", "partial", "reason", "violations", "field", "trace_id",
)  # fmt: skip
"""Attributes of our errors that tell a scheduler what to do next; empty ones are left out."""


@contextmanager
def call_errors(name: str) -> Iterator[None]:
    """Turn every error raised inside into a `CallError` that begins with `name`; an abort or a pause passes unchanged."""
    try:
        yield
    except (CallError, RunAborted, RunPaused, OutcomeUnknown):
        raise
    except Exception as error:  # noqa: BLE001 - a Call promises one error; the original is its cause
        failure = as_call_error(error, f"{name}: " if name else "")
    else:
        return
    # Not inside the block above: the original would stay as the context, secrets and all.
    raise failure


def as_call_error(error: Exception, before: str = "") -> CallError:
    """Return `error` as a `CallError`, with `error` (or a copy without secrets) as its cause.

    Its `data` is `{"error": <class name>, …}` with what the error knew, as JSON data: of a refused request `status` and
    `retry_after`, of a budget `unit`, `limit` and `spent`, of a deadline `seconds`, of a cut answer `partial`, of data
    that does not fit `violations`.

    Args:
        error: what was raised; a `CallError` is returned as it is.
        before: precedes the error's own text.
    """
    if isinstance(error, CallError):
        return error
    said = f"{type(error).__name__}: {error}".removesuffix(": ")
    data: dict[str, Any] = {"error": type(error).__name__}
    if isinstance(error, SimpleLLMFuncError):
        said = str(error)
        for name in _FACTS:
            fact = getattr(error, name, None)
            if fact not in (None, "", [], ()):
                data[name] = _without_secrets(fact)
        if isinstance(error, DeadlineExceeded):
            data["seconds"] = error.seconds  # what it was given; elsewhere it is how long the run took
    elif isinstance(error, ValidationError):
        data["violations"] = violations = [_violation(each) for each in error.errors(include_url=False)]
        said = "; ".join(f"{path or 'the input'}: {wanted}, got {got}" for path, wanted, got in violations)
    failure = CallError(f"{before}{shown_text(said, 2000)}", data)
    failure.__cause__ = redacted_cause(error)
    if isinstance(error, SimpleLLMFuncError):
        failure.with_run(trace_id=error.trace_id, func_name=error.func_name, usage=error.usage, attempts=error.attempts)
    return failure


def _violation(problem: ErrorDetails) -> list[str]:
    """Return where a value does not fit, what was wanted there, and what it is."""
    got = "nothing" if problem["type"] == "missing" else shown_value(problem["input"], 200)
    return [".".join(map(str, problem["loc"])), problem["msg"], got]


def _without_secrets(fact: Any) -> Any:
    if isinstance(fact, str):
        return redact(fact)
    if isinstance(fact, (list, tuple)):
        return [_without_secrets(part) for part in fact]
    return fact if isinstance(fact, (int, float)) else redact(str(fact))
