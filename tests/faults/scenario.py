"""What a scenario is: what the server does, and the one thing that must then happen."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel

from SimpleLLMFunc import Tool
from tests.faults.replies import JSON_TEXT, TEXT, good
from tests.faults.server import Act, FaultServer
from tests.faults.speech import SPEECHES, WIRES, wire_of
from tests.support.connections import Recorded

Kind: TypeAlias = Literal["function", "chat"]
Form: TypeAlias = Literal["whole", "stream"]

Check: TypeAlias = Callable[[Any, list[Recorded], list[Any]], None]
"""``check(error or None, requests, notes of the tools)`` raises AssertionError where a further fact is missing."""


class Weather(BaseModel, frozen=True):
    """What the typed function under test returns."""

    city: str
    celsius: int


WEATHER = Weather.model_validate_json(JSON_TEXT)


@dataclass(frozen=True)
class Expected:
    """What must come of a fault.

    Attributes:
        outcome: "exact", or the name of the error.
        requests: exactly as many reach the server.
        why: for the table, where it differs from the library's own way.
    """

    outcome: str = "exact"
    requests: int = 1
    why: str = ""


@dataclass(frozen=True)
class Scenario:
    """One fault and what must come of it.

    Attributes:
        row: of the table of faults; "also" for the line below it.
        acts: what the server does, request after request.
        expected: in general; `streamed` and `through_client` where a stream, or a client of the openai package, differs.
        deadline: seconds for the call; it takes `least` to `most`, or to half a second after the deadline.
        idle: seconds that a stream may pause; None leaves the library's limit.
        partial: how much of the text the error carries, in pieces; None says nothing about it.
        usage: tokens that must be counted for the run; None says nothing about it.
        check: further facts.
        llm, options: arguments of the model and of the decorator.
        argument: what the function or the chat is given.
        value, text: what the function returns, and what the chat says.
        toolkit: makes the tools, which note what they are called with in the list that it is given.
        calls, rest: how many calls are made, one after the other, and the seconds of `rest` between them.
        address: where the model is told to be, from the server and the play; None is the usual address.
        elsewhere: another play of the same server; no request may reach it.
        tls: the server speaks TLS, with a certificate that nobody trusts.
        elsewise: what differs on a wire, by its name: other fields of the scenario.
        not_on: the wires where it is not played, each with the reason.
    """

    name: str
    row: str
    fault: str
    acts: Sequence[Act] = ()
    kinds: tuple[Kind, ...] = ("function", "chat")
    forms: tuple[Form, ...] = ("whole", "stream")
    expected: Expected = Expected()
    streamed: Expected | None = None
    through_client: Expected | None = None
    deadline: float = 5.0
    least: float = 0.0
    most: float | None = None
    idle: float | None = None
    partial: int | None = None
    usage: int | None = None
    check: Check | None = None
    llm: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    argument: str = "Köln"
    returns: Any = Weather
    value: Any = WEATHER
    text: str = TEXT
    toolkit: Callable[[list[Any]], list[Any]] | None = None
    calls: int = 1
    rest: float = 0.0
    address: Callable[[FaultServer, str], str] | None = None
    elsewhere: Sequence[Act] = ()
    tls: bool = False
    elsewise: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    not_on: Mapping[str, str] = field(default_factory=dict)

    def only(self, *what: Kind | Form) -> Scenario:
        """Restrict the scenario to functions or chats, or to whole or streamed replies."""
        kinds: tuple[Kind, ...] = tuple(kind for kind in self.kinds if kind in what)
        forms: tuple[Form, ...] = tuple(form for form in self.forms if form in what)
        return replace(self, kinds=kinds or self.kinds, forms=forms or self.forms)

    def using(self, **how: Any) -> Scenario:
        """Say how the call is made."""
        return replace(self, **how)

    def then(self, outcome: str = "", *, requests: int | None = None, **facts: Any) -> Scenario:
        """Say what must happen."""
        known = self.expected
        return replace(
            self, expected=Expected(outcome or known.outcome, known.requests if requests is None else requests), **facts
        )

    def when_streamed(self, outcome: str, *, requests: int | None = None) -> Scenario:
        """Say what must happen when the reply is streamed, where that differs."""
        return replace(self, streamed=Expected(outcome, self.expected.requests if requests is None else requests))

    def on(self, wire: str, outcome: str = "", *, requests: int | None = None, **facts: Any) -> Scenario:
        """Say what is otherwise on a wire: what must happen there, and other fields of the scenario."""
        known = self.expected
        expected = Expected(outcome or known.outcome, known.requests if requests is None else requests)
        return replace(self, elsewise={**self.elsewise, wire: {"expected": expected, **facts}})

    def without(self, why: str, *wires: str) -> Scenario:
        """Say on which wires it is not played (all but chat completions where none is named), and why."""
        return replace(self, not_on={**self.not_on, **dict.fromkeys(wires or WIRES[1:], why)})

    def of(self, wire: str) -> Scenario:
        """Return the scenario as it is on a wire."""
        return replace(self, **self.elsewise.get(wire, {}))

    def client_sees(self, outcome: str, *, requests: int | None = None, why: str) -> Scenario:
        """Say what must happen through a client of the openai package, where that differs, and why."""
        seen = Expected(outcome, self.expected.requests if requests is None else requests, why)
        return replace(self, through_client=seen)

    def expects(self, form: Form, *, client: bool) -> Expected:
        """Return what must happen."""
        if client and self.through_client is not None:
            return self.through_client
        return self.streamed if form == "stream" and self.streamed is not None else self.expected


def once(name: str, row: str, fault: str, act: Act, **facts: Any) -> Scenario:
    """A fault that happens to the first request; the next one is answered."""
    return Scenario(name, row, fault, [act, good]).then(requests=2, **facts)


# --- further facts ---------------------------------------------------------------------------------------


def has(**facts: Any) -> Check:
    """Check attributes of the error."""

    def check(error: Any, requests: list[Recorded], notes: list[Any]) -> None:
        for name, value in facts.items():
            assert getattr(error, name) == value, f"{name} is {getattr(error, name)!r}"

    return check


def tells(text: str) -> Check:
    """Check that the error's text names the cause."""

    def check(error: Any, requests: list[Recorded], notes: list[Any]) -> None:
        assert text in str(error), f"the error says {error}"

    return check


def short_body(error: Any, requests: list[Recorded], notes: list[Any]) -> None:
    """Check that no more than 500 characters of a body are kept."""
    assert 0 < len(error.body) <= 500


def no_tool_ran(error: Any, requests: list[Recorded], notes: list[Any]) -> None:
    """Check that no tool ran."""
    assert notes == []


# --- tools -----------------------------------------------------------------------------------------------

TOOL_TEXT = "7 degrees, dry"


def forecast_tool(notes: list[Any]) -> list[Any]:
    """A tool that notes what it was called with."""

    def forecast(city: str, day: str = "today") -> str:
        """Look the forecast up."""
        notes.append((city, day))
        return TOOL_TEXT

    return [forecast]


def tool_that(run: Callable[[], Any], **options: Any) -> Callable[[list[Any]], list[Any]]:
    """A tool that does what it should not."""

    def make(notes: list[Any]) -> list[Any]:
        def forecast(city: str, day: str = "today") -> Any:
            """Look the forecast up."""
            notes.append((city, day))
            return run()

        return [Tool(func=forecast, **options)]

    return make


def answered(*contents: str | None, called: Sequence[tuple[str, str]] | None = None) -> Check:
    """Check that every call was answered exactly once in the next request, and what with; None is any text."""

    def check(error: Any, requests: list[Recorded], notes: list[Any]) -> None:
        speech = SPEECHES[wire_of(requests[1].path)]()
        ids, results = speech.calls(requests[1].body), speech.results(requests[1].body)
        assert len(set(ids)) == len(ids) == len(contents), ids
        assert [call for call, _ in results] == ids
        for (_, said), content in zip(results, contents, strict=True):
            assert said, "an empty tool result"
            assert content is None or content in said, said[:500]
            assert len(said) < 70_000, f"{len(said)} characters"
        if called is not None:
            assert sorted(notes) == sorted(called), notes  # the calls of one reply run at the same time

    return check


def sent_back(**extra: Any) -> Check:
    """Check that what a provider adds to its tool call goes back to it."""

    def check(error: Any, requests: list[Recorded], notes: list[Any]) -> None:
        messages = requests[1].body["messages"]
        sent = next(message for message in messages if message["role"] == "assistant")["tool_calls"][0]
        for name, value in extra.items():
            assert sent.get(name) == value, sent

    return check


def both(*checks: Check) -> Check:
    """Check one thing after the other."""

    def check(error: Any, requests: list[Recorded], notes: list[Any]) -> None:
        for each in checks:
            each(error, requests, notes)

    return check


def sends_json(error: Any, requests: list[Recorded], notes: list[Any]) -> None:
    """Check that what was sent is JSON that a strict reader takes."""
    for request in requests:
        assert request.body is not None
        json.dumps(request.body, ensure_ascii=False).encode()
