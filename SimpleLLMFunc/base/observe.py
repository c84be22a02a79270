"""Who else may see a run: sinks on the event stream."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol

from SimpleLLMFunc.base.events import ReActEvent
from SimpleLLMFunc.logger import push_warning

__all__ = ["EventSink", "current_sinks", "show", "watching"]


class EventSink(Protocol):
    """Sees every event of a run, in order. What it raises is logged, never passed on."""

    def __call__(self, trace_id: str, event: ReActEvent, /) -> object:
        """Take in one event of the run `trace_id`."""


_SINKS: ContextVar[tuple[EventSink, ...]] = ContextVar("SimpleLLMFunc.sinks", default=())


class watching:  # noqa: N801 - used like a keyword
    """Show every run inside to `sinks`: ``with watching(print): …``.

    A sink is called as ``sink(trace_id, event)``, in the thread of the run. Scopes add up.
    """

    def __init__(self, *sinks: EventSink) -> None:
        self._sinks = sinks
        self._entered: list[tuple[EventSink, ...]] = []

    def __enter__(self) -> None:
        self._entered.append(_SINKS.get())
        _SINKS.set((*_SINKS.get(), *self._sinks))

    def __exit__(self, *_: object) -> None:
        _SINKS.set(self._entered.pop())


def current_sinks() -> tuple[EventSink, ...]:
    """Return who watches the caller's runs."""
    return _SINKS.get()


def show(sinks: tuple[EventSink, ...], trace_id: str, event: ReActEvent) -> None:
    """Hand `event` to each sink; what one raises is logged."""
    for sink in sinks:
        try:
            sink(trace_id, event)
        except Exception as error:  # noqa: BLE001 - whoever watches a run must not be able to break it
            push_warning(f"an event sink failed and was passed over: {type(error).__name__}: {error}")
