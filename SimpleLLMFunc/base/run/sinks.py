"""Who else may see a run: sinks on the event stream."""

from __future__ import annotations

import os
import pkgutil
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import MethodType
from typing import Protocol

from SimpleLLMFunc.base.events import ReActEvent
from SimpleLLMFunc.logger import push_warning, shown_error
from SimpleLLMFunc.runtime import ForkSafeLock, importing

__all__ = [
    "EventSink",
    "Owner",
    "current_owner",
    "current_sinks",
    "defaults",
    "show",
    "watching",
    "watching_everywhere",
]


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
    """Whose runs those inside a `watching` are; empty texts where nobody said."""

    session_id: str = ""
    user_id: str = ""


_NOBODY = Owner()
_SINKS: ContextVar[tuple[EventSink, ...]] = ContextVar("SimpleLLMFunc.sinks", default=())
_OWNER: ContextVar[Owner] = ContextVar("SimpleLLMFunc.session", default=_NOBODY)


class watching:  # noqa: N801 - used like a keyword
    """Show every run inside to `sinks`: ``with watching(print): …``.

    A sink is called as ``sink(trace_id, event)``, in the thread of the run. Scopes add up; a sink that several of them
    name sees each event once.

    Args:
        *sinks: beside those of the scopes around; with none, only the names below are set.
        session_id: the conversation that the runs belong to, in traces; None keeps that of the scope around.
        user_id: whom they serve, the same way.
    """

    def __init__(self, *sinks: EventSink, session_id: str | None = None, user_id: str | None = None) -> None:
        self._sinks = sinks
        self._session_id = session_id
        self._user_id = user_id
        self._entered: list[tuple[tuple[EventSink, ...], Owner]] = []

    def __enter__(self) -> None:
        sinks, session = _SINKS.get(), _OWNER.get()
        self._entered.append((sinks, session))
        _SINKS.set(_each_once((*sinks, *self._sinks)))
        if self._session_id is not None or self._user_id is not None:
            _OWNER.set(
                Owner(
                    session.session_id if self._session_id is None else str(self._session_id),
                    session.user_id if self._user_id is None else str(self._user_id),
                )
            )

    def __exit__(self, *_: object) -> None:
        sinks, session = self._entered.pop()
        _SINKS.set(sinks)
        _OWNER.set(session)


def current_sinks() -> tuple[EventSink, ...]:
    """Return who watches the caller's runs."""
    return _each_once((*_SINKS.get(), *_everywhere)) if _everywhere else _SINKS.get()


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
    return _OWNER.get()


def show(sinks: tuple[EventSink, ...], trace_id: str, event: ReActEvent) -> None:
    """Hand `event` to each sink; what one raises is logged."""
    for sink in sinks:
        try:
            sink(trace_id, event)
        except Exception as error:  # noqa: BLE001 - whoever watches a run must not be able to break it
            push_warning(f"an event sink failed and was passed over: {shown_error(error)}")


# --- sinks that nobody has to name ---------------------------------------------------------------------------


def _has_opentelemetry() -> bool:
    # Whoever set up a provider has imported one of these. A look into a dict is all that it costs the others.
    return "opentelemetry.trace" in sys.modules or "opentelemetry.metrics" in sys.modules


def _has_trace_file() -> bool:
    return bool(os.environ.get("SIMPLELLMFUNC_TRACE"))


def _resolved(name: str) -> Callable[[], EventSink | None]:
    factory: Callable[[], EventSink | None] = pkgutil.resolve_name(name)
    return factory


class _Default:
    """A sink by its dotted name: looked for when something says that it is wanted, and asked for until there is one.

    Args:
        name: ``module:function``; the function returns a sink, or None as long as there is nothing to do for it.
        is_wanted: says, at no cost, whether it is worth asking.
        asks_once: what is said first stands; the function may take its time.

    Attributes:
        sink: None as long as there is none.
        is_settled: nothing will change any more.
    """

    def __init__(self, name: str, is_wanted: Callable[[], bool], *, asks_once: bool = False) -> None:
        self.name = name
        self.is_wanted = is_wanted
        self.asks_once = asks_once
        self.sink: EventSink | None = None
        self.is_settled = False
        self._factory: Callable[[], EventSink | None] | None = None
        self._lock = ForkSafeLock()

    async def look(self) -> None:
        """Find out what there is now."""
        if not self.is_wanted():
            self.is_settled = self.asks_once
        elif self._factory is None or self.asks_once:
            await importing(self._ask)
        else:
            self._ask()

    def _ask(self) -> None:
        with self._lock:  # runs that begin at the same time get the same sink
            if self.is_settled:
                return
            try:
                if self._factory is None:
                    self._factory = _resolved(self.name)
                self.sink = self._factory()
            except Exception as error:  # noqa: BLE001 - whoever watches a run must not be able to break it
                push_warning(f"{self.name} cannot watch the runs of this process: {shown_error(error)}")
                self.is_settled = True
            else:
                self.is_settled = self.asks_once or self.sink is not None


class _Defaults:
    """The sinks that watch every run of the process without being named."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew, as at the start of the process; for tests."""
        self._opentelemetry = _Default("SimpleLLMFunc.observability.otel.span_sink:default_sink", _has_opentelemetry)
        self._store = _Default(
            "SimpleLLMFunc.observability.store.trace_store:from_environment", _has_trace_file, asks_once=True
        )
        self._found: tuple[EventSink, ...] = ()

    def are_settled(self) -> bool:
        """Say whether all is known that there is to know, without `look`."""
        return self._store.is_settled and (self._opentelemetry.is_settled or not _has_opentelemetry())

    async def look(self) -> None:
        """Find out what has come up since the last time."""
        each = (self._opentelemetry, self._store)
        for default in each:
            if not default.is_settled:
                await default.look()
        self._found = tuple(default.sink for default in each if default.sink is not None)

    def beside(self, named: tuple[EventSink, ...]) -> tuple[EventSink, ...]:
        """Return `named`, each once, with the default sinks; one whose kind is among those named is left out."""
        named = _each_once(named)
        if not self._found:
            return named
        return (*named, *(sink for sink in self._found if not any(isinstance(each, type(sink)) for each in named)))


defaults = _Defaults()
"""Of this process."""
