"""Which of several answers to the same question is asked for: a cache keeps one for each, and joins no two of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_SAMPLE: ContextVar[int] = ContextVar("SimpleLLMFunc.sample", default=0)


@contextmanager
def sample_scope(number: int) -> Iterator[None]:
    """Ask inside for the answer `number` to each question; 0 is the one that everybody asks for.

    Scopes multiply: sample 1 inside sample 2 is neither.
    """
    before = _SAMPLE.get()
    _SAMPLE.set(before * 1_000_003 + number)
    try:
        yield
    finally:
        _SAMPLE.set(before)


def current_sample() -> int:
    """Return which answer is asked for."""
    return _SAMPLE.get()
