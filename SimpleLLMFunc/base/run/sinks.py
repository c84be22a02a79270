"""Who else may see a run: sinks on the event stream."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from inspect import iscoroutinefunction
from pkgutil import resolve_name
from types import MethodType
from typing import Any, Protocol

from SimpleLLMFunc.base.events import ReActEvent
from SimpleLLMFunc.errors import UsageError, cut
from SimpleLLMFunc.logger import border, push_warning, shown_error
from SimpleLLMFunc.runtime import ForkSafeLock, importing
from SimpleLLMFunc.utils import Block, ScopedVar


class EventSink(Protocol):
    """Sees every event of a run, in order. What it raises is logged, never passed on.

    A sink may also have a method ``enter_tool(trace_id, call)``: it is called inside the task in which a tool is about to
    run, so that context variables that it sets are seen by the tool and by nothing else. And it may have a text
    ``writes_to``: of several sinks that write to the same place, a run is shown to one only, the one named last.
    """

    def __call__(self, trace_id: str, event: ReActEvent, /) -> object:
        """Take in one event of the run `trace_id`."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The session and user of the runs inside a `watching`; empty texts where not given."""

    session_id: str = ""
    user_id: str = ""


_AROUND: ScopedVar[tuple[tuple[EventSink, ...], Owner]] = ScopedVar("SimpleLLMFunc.watching", ((), Owner()))
"""Who watches, and whose the runs are."""


def is_sink(candidate: Any) -> bool:
    """Whether it can be called as a sink; the coroutine of an `async def` would not be awaited."""
    is_called = callable(candidate) and not isinstance(candidate, type)
    return is_called and not (iscoroutinefunction(candidate) or iscoroutinefunction(type(candidate).__call__))


class watching:  # noqa: N801 - used like a keyword
    """Show every run inside to `sinks`: ``with watching(print): …``.

    A sink is called as ``sink(trace_id, event)``, in the thread of the run. Scopes add up; a sink that several of them
    name sees each event once.

    Args:
        *sinks: in addition to those of the scopes around; with none, only the names below are set.
        session_id: the conversation that the runs belong to, in traces; None keeps that of the scope around.
        user_id: whom they serve, the same way.

    Raises:
        UsageError: a sink cannot be called so.
    """

    @border
    def __init__(self, *sinks: EventSink, session_id: str | None = None, user_id: str | None = None) -> None:
        if wrong := [sink for sink in sinks if not is_sink(sink)]:
            raise UsageError(
                f"watching() takes plain (not async) callables (trace_id, event), not {cut(repr(wrong[0]), 80)}. "
                'To keep runs in a file: watching(TraceStore("runs.sqlite")).'
            )
        self._sinks = sinks
        given = {"session_id": session_id, "user_id": user_id}
        self._given = {name: str(value) for name, value in given.items() if value is not None}
        self._entered: list[Block[tuple[tuple[EventSink, ...], Owner]]] = []  # may be entered again

    def __enter__(self) -> None:
        sinks, owner = _AROUND.get()
        around = _each_once((*sinks, *self._sinks)), replace(owner, **self._given)
        self._entered.append(_AROUND.enter(around))

    def __exit__(self, *_: object) -> None:
        _AROUND.leave_one(self._entered)


def current_sinks() -> tuple[EventSink, ...]:
    """Return who watches the caller's runs."""
    return _each_once((*_AROUND.get()[0], *_everywhere))


def _each_once(sinks: tuple[EventSink, ...]) -> tuple[EventSink, ...]:
    if len(sinks) < 2:
        return sinks
    # By identity: a sink that gathers events in a list equals every other one that is still empty.
    return tuple({_place(sink): sink for sink in sinks}.values())


def _place(sink: EventSink) -> object:
    place = getattr(sink, "writes_to", None)
    if isinstance(place, str):
        return place
    if isinstance(sink, MethodType):  # a new object each time that it is named
        return id(sink.__self__), id(sink.__func__)
    return id(sink)


_everywhere: list[EventSink] = []


@contextmanager
def watching_everywhere(sink: EventSink) -> Generator[None, None, None]:
    """Show `sink` every run that begins before the block ends, in all threads and tasks: for what records a whole test."""
    _everywhere.append(sink)
    try:
        yield
    finally:
        del _everywhere[max(place for place, each in enumerate(_everywhere) if each is sink)]


def current_owner() -> Owner:
    """Return whose runs the caller's are."""
    return _AROUND.get()[1]


def show(sinks: tuple[EventSink, ...], trace_id: str, event: ReActEvent) -> None:
    """Hand `event` to each sink; what one raises is logged."""
    for sink in sinks:
        hand(sink, trace_id, event)


def hand(sink: Callable[[str, Any], object], trace_id: str, told: Any) -> None:
    """Call a sink, or a method of it; what it raises is logged."""
    try:
        sink(trace_id, told)
    except Exception as error:  # noqa: BLE001 - a sink must not be able to break a run
        push_warning(f"an event sink raised an error, which is ignored: {shown_error(error)}")


# --- default sinks ---------------------------------------------------------------------------


def _has_opentelemetry() -> bool:
    # A program that set up a provider has imported one of these; for all others this is one look into a dict.
    return "opentelemetry.trace" in sys.modules or "opentelemetry.metrics" in sys.modules


def _has_trace_file() -> bool:
    return bool(os.environ.get("SIMPLELLMFUNC_TRACE"))


_SPANS = "SimpleLLMFunc.observability.otel.span_sink:default_sink"
_STORE = "SimpleLLMFunc.observability.store.trace_store:from_environment"


class _Defaults:
    """The sinks that watch every run of the process, by dotted names; each is made when something says that it is wanted.

    A name is that of a function, which returns the sink, or None as long as there is nothing to do for it. That of spans is
    asked until there is one. Whether there is a trace store is decided at the first look.
    """

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self.forget()

    def forget(self) -> None:
        """Begin again, as at the start of the process; for tests."""
        self._open: dict[str, Callable[[], bool]] = {_SPANS: _has_opentelemetry, _STORE: _has_trace_file}
        self._found: tuple[EventSink, ...] = ()

    def are_settled(self) -> bool:
        """Say whether all is known that there is to know, without `look`."""
        return not any(name == _STORE or is_wanted() for name, is_wanted in self._open.items())

    async def look(self) -> None:
        """Find out what has come up since the last time."""
        for name, is_wanted in tuple(self._open.items()):
            if not is_wanted():
                if name == _STORE:
                    self._open.pop(name, None)
            elif name == _SPANS and name.partition(":")[0] in sys.modules:
                self._ask(name)
            else:
                await importing(self._ask, name)

    def _ask(self, name: str) -> None:
        with self._lock:  # runs that begin at the same time get the same sink
            if name not in self._open:
                return
            try:
                sink: EventSink | None = resolve_name(name)()
            except Exception as error:  # noqa: BLE001 - a sink must not be able to break a run
                push_warning(f"{name} cannot watch the runs of this process: {shown_error(error)}")
                del self._open[name]
                return
            if sink is not None:
                self._found = (*self._found, sink)
            if sink is not None or name == _STORE:
                del self._open[name]

    def besides(self, named: tuple[EventSink, ...]) -> tuple[EventSink, ...]:
        """Return `named`, each once, with the default sinks; one whose kind is among those named is left out."""
        named = _each_once(named)
        if not self._found:
            return named
        return (*named, *(sink for sink in self._found if not any(isinstance(each, type(sink)) for each in named)))


defaults = _Defaults()
"""Of this process."""
