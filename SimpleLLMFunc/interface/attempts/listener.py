"""Who is told of failed tries and of downgrades; this room does not know the events of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from SimpleLLMFunc.errors import SimpleLLMFuncError
from SimpleLLMFunc.utils import ScopedVar


class AttemptListener(Protocol):
    """Is told of each failed try that another one follows, and of each downgrade."""

    def try_failed(self, error: SimpleLLMFuncError, *, tries: int, pause: float, model: str, next_model: str) -> None:
        """Take in one failed try; the arguments are the fields of the event `TryFailed`."""

    def downgraded(self, what: str, said: str) -> None:
        """Take in what was asked for in another way; the arguments are an entry of `Result.downgrades`."""


class Downgrades:
    """Notes the downgrades, each once: for a run without an observer, or for a part of a run.

    It does not hold the run: a task that outlives the run keeps what was current when the task began.

    Args:
        around: is told of the same; None where there is no other listener.
    """

    __slots__ = ("_around", "told")

    def __init__(self, around: AttemptListener | None = None) -> None:
        self._around = around
        self.told: dict[tuple[str, str], None] = {}

    def try_failed(self, error: SimpleLLMFuncError, *, tries: int, pause: float, model: str, next_model: str) -> None:
        """Hand on a failed try."""
        if self._around is not None:
            self._around.try_failed(error, tries=tries, pause=pause, model=model, next_model=next_model)

    def downgraded(self, what: str, said: str) -> None:
        """Note a downgrade, and hand it on."""
        self.told[what, said] = None
        if self._around is not None:
            self._around.downgraded(what, said)


LISTENER: ScopedVar[AttemptListener | None] = ScopedVar("SimpleLLMFunc.try_listener")
"""The current run, or its observer; only it is told."""


@contextmanager
def noting_downgrades() -> Iterator[Downgrades]:
    """Note the downgrades of what is asked inside the block; the listener around it is told of them too."""
    noted = Downgrades(LISTENER.get())
    with LISTENER.within(noted):
        yield noted


def tell_failed_try(
    error: SimpleLLMFuncError, *, tries: int, pause: float, model: str, next_model: str | None = None
) -> None:
    """Tell the listener that a try failed, and that another one follows after `pause` seconds."""
    listener = LISTENER.get()
    if listener is not None:
        listener.try_failed(error, tries=tries, pause=pause, model=model, next_model=next_model or model)


def tell_downgrade(what: str, said: str) -> None:
    """Tell the run that goes on here that something is asked for in another way, and why."""
    listener = LISTENER.get()
    if listener is not None:
        listener.downgraded(what, said)
