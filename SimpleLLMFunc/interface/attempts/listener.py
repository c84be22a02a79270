"""Who is told of failed tries: they happen down here, where nobody knows the events of a run."""

from __future__ import annotations

from typing import Protocol

from SimpleLLMFunc.errors import SimpleLLMFuncError
from SimpleLLMFunc.utils import ScopedVar

__all__ = ["LISTENER", "AttemptListener", "tell_failed_try"]


class AttemptListener(Protocol):
    """Is told of each failed try that another one follows."""

    def try_failed(self, error: SimpleLLMFuncError, *, tries: int, pause: float, model: str, next_model: str) -> None:
        """Take in one failed try; the arguments are the fields of the event `TryFailed`."""


LISTENER: ScopedVar[AttemptListener | None] = ScopedVar("SimpleLLMFunc.try_listener")
"""Whoever watches the run that goes on here; nobody else is told."""


def tell_failed_try(
    error: SimpleLLMFuncError, *, tries: int, pause: float, model: str, next_model: str | None = None
) -> None:
    """Tell whoever watches that a try failed, and that another one is made after `pause` seconds."""
    listener = LISTENER.get()
    if listener is not None:
        listener.try_failed(error, tries=tries, pause=pause, model=model, next_model=next_model or model)
