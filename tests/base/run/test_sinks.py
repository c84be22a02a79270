"""`watching`: who sees a run, whose it is, and that nobody who looks on can break it."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from SimpleLLMFunc import TraceStore, UsageError, watching
from SimpleLLMFunc.base.events import ReActEvent, RunStarted
from SimpleLLMFunc.base.run import sinks as observe
from SimpleLLMFunc.base.run.sinks import Owner, current_owner, current_sinks, defaults
from SimpleLLMFunc.observability.store.reader import TraceReader
from SimpleLLMFunc.testing import ScriptedLLM
from tests.support.functions import async_function_of
from tests.support.seen import Seen


@pytest.fixture(autouse=True)
def own_defaults():
    defaults.forget()
    yield
    defaults.forget()


ask = async_function_of(ScriptedLLM("yes", repeat=True))


# --- scopes ---


async def test_scopes_add_up_and_end():
    outer, inner = Seen(), Seen()
    with watching(outer):
        with watching(inner):
            assert current_sinks() == (outer, inner)
            await ask("?")
        assert current_sinks() == (outer,)
    assert current_sinks() == ()
    assert len(outer) == len(inner) > 4
    await ask("?")
    assert len(outer) == len(inner)


async def test_a_scope_may_be_entered_inside_itself():
    scope = watching(seen := Seen(), user_id="u")
    with scope:
        with scope:
            assert current_sinks() == (seen,)
        assert current_sinks() == (seen,)
        assert current_owner() == Owner("", "u")
    assert current_sinks() == ()
    assert current_owner() == Owner()


async def test_tasks_that_share_a_scope_each_leave_their_own():
    scope = watching(Seen())

    async def inside(seconds):
        with scope:
            await asyncio.sleep(seconds)
        return current_sinks()

    assert await asyncio.gather(inside(0.0), inside(0.01)) == [(), ()]


async def test_a_sink_that_is_named_twice_sees_each_event_once():
    once, seen, everywhere = Seen(), Seen(), Seen()
    with watching(once):
        await ask("?")
    with watching(seen, seen), observe.watching_everywhere(everywhere), watching(seen, everywhere):
        assert current_sinks() == (seen, everywhere)
        assert [id(sink) for sink in current_sinks()] == [id(seen), id(everywhere)]  # equal, and yet two
        await ask("?")
    assert len(seen) == len(everywhere) == len(once)


async def test_a_method_that_is_named_twice_sees_each_event_once():
    class Counter:
        count = 0

        def note(self, trace_id: str, event: ReActEvent) -> None:
            self.count += 1

    one, other, seen = Counter(), Counter(), Seen()
    with watching(one.note, seen), watching(one.note, other.note):
        await ask("?")
    assert one.count == other.count == len(seen) > 4


async def test_of_sinks_that_write_to_the_same_place_the_last_one_sees_the_run():
    class Writer(Seen):
        def __init__(self, place: str) -> None:
            self.writes_to = place

    outer, elsewhere, inner = Writer("a"), Writer("b"), Writer("a")
    with watching(outer, elsewhere):
        with watching(inner):
            await ask("?")
        assert (len(outer), len(elsewhere)) == (0, len(inner))
        await ask("?")
    assert len(outer) == len(inner) > 4


def test_of_two_equal_sinks_the_one_whose_block_ends_goes():
    first, second = Seen(), Seen()
    with observe.watching_everywhere(first):
        with observe.watching_everywhere(second):
            pass
        [left] = current_sinks()
        assert left is first


async def test_whose_run_it_is():
    with watching(session_id="s1", user_id="u1"), watching(seen := Seen(), user_id="u2"):
        await ask("?")
    [run] = [event.run for event in seen.of(RunStarted)]
    assert (run.session_id, run.user_id) == ("s1", "u2")
    assert current_owner() == Owner()
    with watching(session_id="s1"), watching(session_id=""):
        assert current_owner() == Owner()


async def test_tasks_have_scopes_of_their_own():
    async def one(name: str) -> str:
        with watching(seen := Seen(), session_id=name):
            await asyncio.gather(*(ask("?") for _ in range(3)))
        names = {event.run.session_id for event in seen.of(RunStarted)}
        assert len(names) == 1
        return names.pop()

    assert await asyncio.gather(one("a"), one("b")) == ["a", "b"]


async def test_a_sink_that_fails_is_logged_and_passed_over(caplog):
    seen = Seen()

    def broken(trace_id: str, event: ReActEvent) -> None:
        raise ValueError("no room")

    with caplog.at_level(logging.WARNING, "SimpleLLMFunc"), watching(broken, seen):
        assert await ask("?") == "yes"
    assert len(seen) == len(caplog.records) > 4
    assert "an event sink raised an error, which is ignored: ValueError: no room" in caplog.text


@pytest.mark.parametrize("wrong", ["runs.sqlite", TraceStore, None, test_a_sink_that_fails_is_logged_and_passed_over])
def test_what_cannot_be_a_sink_is_told(wrong):
    with pytest.raises(UsageError, match=r"callables .*, not .*\. To keep runs in a file: watching\(TraceStore"):
        watching(print, wrong)


# --- sinks that nobody names ---


async def test_with_nothing_set_up_no_one_watches(monkeypatch):
    for name in ("trace", "metrics"):
        monkeypatch.delitem(sys.modules, f"opentelemetry.{name}", raising=False)
    await ask("?")
    assert defaults.are_settled()
    assert defaults.besides(()) == ()


async def test_a_default_sink_is_found_once_and_gives_way_to_one_of_its_kind(monkeypatch):
    default, asked = Seen(), []
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", object())
    monkeypatch.setattr(observe, "resolve_name", lambda name: asked.append(name) or (lambda: default))
    await ask("?")
    count = len(default)
    assert count > 4
    await ask("?")
    assert len(default) == 2 * count
    assert asked == ["SimpleLLMFunc.observability.otel.span_sink:default_sink"]
    with watching(named := Seen()):
        await ask("?")
    assert (len(default), len(named)) == (2 * count, count)


async def test_a_default_sink_is_asked_for_until_there_is_one(monkeypatch):
    found = []
    monkeypatch.delitem(sys.modules, "opentelemetry.trace", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.metrics", object())
    monkeypatch.setattr(observe, "resolve_name", lambda name: lambda: found[0] if found else None)
    await ask("?")
    assert not defaults.are_settled()
    found.append(Seen())
    await ask("?")
    assert defaults.are_settled()
    assert found[0]


async def test_runs_that_begin_at_the_same_time_share_one_default_sink(monkeypatch):
    made: list[Seen] = []

    def slow() -> Seen:
        time.sleep(0.05)  # in the thread that looks
        assert threading.current_thread() is not threading.main_thread()
        made.append(Seen())
        return made[-1]

    monkeypatch.setattr(observe, "_has_opentelemetry", lambda: False)
    defaults.forget()
    monkeypatch.setenv("SIMPLELLMFUNC_TRACE", "somewhere.sqlite")
    monkeypatch.setattr(observe, "resolve_name", lambda name: slow)
    await asyncio.gather(*(ask("?") for _ in range(10)))
    [sink] = made
    assert len(sink.of(RunStarted)) == 10


async def test_a_default_sink_that_cannot_be_made_is_told_once(monkeypatch, caplog):
    monkeypatch.setattr(observe, "_has_opentelemetry", lambda: False)
    defaults.forget()
    monkeypatch.setenv("SIMPLELLMFUNC_TRACE", "somewhere.sqlite")

    def fails() -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(observe, "resolve_name", lambda name: fails)
    with caplog.at_level(logging.WARNING, "SimpleLLMFunc"):
        assert await ask("?") == "yes"
        assert await ask("?") == "yes"
    [record] = caplog.records
    assert "observability.store.trace_store:from_environment cannot watch the runs of this process" in record.message
    assert "the disk is gone" in record.message


def test_the_store_named_by_the_environment_sees_every_run(tmp_path):
    path = tmp_path / "trace.sqlite"
    code = """
        import sqlite3, sys
        from SimpleLLMFunc import llm_function
        from SimpleLLMFunc.testing import ScriptedLLM

        @llm_function(llm_interface=ScriptedLLM("yes", repeat=True))
        def ask(question: str) -> str:
            "Answer."
            raise NotImplementedError

        ask("?"); ask("!")
    """
    environment = {"SIMPLELLMFUNC_TRACE": str(path), "PATH": ""}
    subprocess.run([sys.executable, "-W", "error", "-c", textwrap.dedent(code)], check=True, env=environment)
    reader = TraceReader(path)
    try:
        assert [run.function for run in reader.runs().runs] == ["ask", "ask"]
    finally:
        reader.close()


def test_a_call_that_no_one_watches_loads_no_sdk_and_runs_no_sink():
    code = """
        import sys
        from SimpleLLMFunc import llm_function, tool
        from SimpleLLMFunc.base import metadata
        from SimpleLLMFunc.base.run import observer
        from SimpleLLMFunc.testing import ScriptedLLM, tool_calls

        made = []
        for kind in (metadata.FunctionMetadata, metadata.RunMetadata, metadata.SentRequest, observer.Observer):
            def counting(self, *args, _init=kind.__init__, **kwargs):
                made.append(type(self).__name__)
                _init(self, *args, **kwargs)
            kind.__init__ = counting

        def clock() -> str:
            "Tell the time."
            return "noon"

        llm = ScriptedLLM(tool_calls(("clock", {})), "no number", "3")

        @llm_function(llm_interface=llm, toolkit=[clock])
        def ask(question: str) -> int:
            "Answer."
            raise NotImplementedError

        assert ask("?") == 3
        loaded = sorted(name for name in sys.modules if name.startswith(("opentelemetry", "sqlite3")))
        print(made, loaded, [name for name in sys.modules if "SimpleLLMFunc.observability" in name])
    """
    printed = subprocess.check_output([sys.executable, "-W", "error", "-c", textwrap.dedent(code)], text=True)
    assert printed == "[] [] []\n"
