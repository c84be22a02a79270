"""Who is told of failed tries and of downgrades; this room does not know the events of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from SimpleLLMFunc.errors import SimpleLLMFuncError
from SimpleLLMFunc.utils import ScopedVar


class Downgrades:
    """Listens to failed tries and downgrades, and notes each downgrade once: for a run, or for a part of one.

    The observer of a run is a subclass. None holds the run: a task that outlives the run keeps the listener that was
    current when the task began.

    Args:
        around: is told of the same; None where there is no other listener.
    """

    __slots__ = ("_around", "told")

    def __init__(self, around: Downgrades | None = None) -> None:
        self._around = around
        self.told: dict[tuple[str, str], None] = {}

    def try_failed(self, error: SimpleLLMFuncError, *, tries: int, pause: float, model: str, next_model: str) -> None:
        """Hand on a failed try that another one follows; the arguments are the fields of the event `TryFailed`."""
        if self._around is not None:
            self._around.try_failed(error, tries=tries, pause=pause, model=model, next_model=next_model)

    def downgraded(self, what: str, said: str) -> None:
        """Note a downgrade, and hand it on; the arguments are an entry of `Result.downgrades`."""
        self.told[what, said] = None
        if self._around is not None:
            self._around.downgraded(what, said)


LISTENER: ScopedVar[Downgrades | None] = ScopedVar("SimpleLLMFunc.try_listener", None)
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
    if (listener := LISTENER.get()) is not None:
        listener.try_failed(error, tries=tries, pause=pause, model=model, next_model=next_model or model)


def tell_downgrade(what: str, said: str) -> None:
    """Tell the run that goes on here that something is asked for in another way, and why."""
    if (listener := LISTENER.get()) is not None:
        listener.downgraded(what, said)
