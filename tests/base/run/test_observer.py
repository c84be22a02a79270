"""What those who watch a run are shown: facts, requests, failed tries, judged answers, and how it ended."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import pytest
from pydantic import BaseModel

from SimpleLLMFunc import (
    AbortSignal,
    BadRequest,
    ConfigError,
    FallbackLLM,
    OpenAICompatible,
    ResponseParseError,
    RunAborted,
    ServerUnavailable,
    watching,
)
from SimpleLLMFunc.assistant import AIAssistant
from SimpleLLMFunc.base.events import (
    AnswerReviewed,
    ReplyReceived,
    RunFailed,
    RunFinished,
    RunStarted,
    ToolCallFinished,
    TryFailed,
    TurnStarted,
)
from SimpleLLMFunc.base.metadata import RunMetadata
from SimpleLLMFunc.base.ReAct import react_events
from SimpleLLMFunc.base.request import ModelRequest
from SimpleLLMFunc.base.run.observer import current_observer
from SimpleLLMFunc.base.run.run import Run
from SimpleLLMFunc.calls import LLM, Step, StepExecutor, Task
from SimpleLLMFunc.interface.profile import PROFILES
from SimpleLLMFunc.logger import async_log_context, log_context
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls
from tests.support.functions import async_function_of as function
from tests.support.seen import Seen
from tests.support.server import LoopbackServer, chunk, completion, error_answer, sse


class Grade(BaseModel):
    points: int


async def shown(ask: Callable[[], Awaitable[Any]]) -> Seen:
    """Return what is shown of the runs of `ask`."""
    with watching(seen := Seen()):
        await ask()
    return seen


def clock() -> str:
    """Tell the time."""
    return "noon"


# --- the facts of a run ---


async def test_who_runs_and_with_what():
    seen, question = Seen(), "how?"
    llm = ScriptedLLM("good")
    with watching(seen):
        assert await function(llm, temperature=0.5)(question) == "good"
    assert seen.names == [
        *("RunStarted", "TurnStarted", "ReplyReceived", "AnswerReviewed", "MessageAppended", "RunFinished")
    ]
    run = seen.run("ask")
    assert dict(run.arguments) == {"text": question}
    assert run.arguments["text"] is question
    assert (run.parent_trace_id, run.parent_call_id, run.restarts) == ("", "", 0)
    [turn] = seen.of(TurnStarted)
    assert turn.sent.llm is llm
    assert (turn.sent.stream, turn.sent.is_last, turn.sent.output_mode) == (False, False, "text")
    assert turn.sent.wire()["messages"] == llm.requests[0]
    assert turn.sent.params() == {"temperature": 0.5}
    [finished] = seen.of(RunFinished)
    assert finished.value == "good"


async def test_the_value_is_what_the_caller_gets():
    with watching(seen := Seen()):
        value = await function(ScriptedLLM('{"points": 3}'), Grade)("?")
        assert await function(ScriptedLLM("done"), None)("?") is None
    first, second = seen.of(RunFinished)
    assert first.value is value
    assert second.value is None


async def test_the_reader_of_a_stream_is_told_the_facts_where_someone_observers():
    ask = function(ScriptedLLM("yes", "yes"))
    assert [event.run for event in [e async for e in ask.events("?")] if isinstance(event, RunStarted)] == [None]
    with watching(Seen()):
        events = [event async for event in ask.events("?")]
    [started] = [event for event in events if isinstance(event, RunStarted)]
    assert started.run.function.name == "ask"
    assert not [event for event in events if isinstance(event, (AnswerReviewed, RunFailed, TryFailed))]


async def test_a_run_inside_a_tool_belongs_to_the_call():
    inner = function(ScriptedLLM("in", "in"))

    async def first(question: str) -> str:
        """Ask."""
        return await inner(question)

    async def second(question: str) -> str:
        """Ask."""
        return await inner(question)

    calls = tool_calls(("first", {"question": "a"}), ("second", {"question": "b"}))
    seen = await shown(lambda: function(ScriptedLLM(calls, "done"), name="outer", toolkit=[first, second])("?"))
    outer, *inners = seen.of(RunStarted)
    ids = {call.call.function.name: call.call.id for call in seen.of(ToolCallFinished)}
    parents = {event.run.arguments["text"]: event.run.parent_call_id for event in inners}
    assert parents == {"a": ids["first"], "b": ids["second"]}
    assert {event.run.parent_trace_id for event in inners} == {outer.trace_id}


async def test_what_stands_between_two_runs_does_not_hide_the_one_around():
    inner = function(ScriptedLLM("in"))

    async def ask_inside(question: str) -> str:
        """Ask."""
        async with async_log_context("step_1", "step"):
            return await inner(question)

    llm = ScriptedLLM(tool_calls(("ask_inside", {"question": "a"})), "done")
    seen = await shown(lambda: function(llm, toolkit=[ask_inside])("?"))
    first, second = seen.of(RunStarted)
    [finished] = seen.of(ToolCallFinished)
    assert (second.run.parent_trace_id, second.run.parent_call_id) == (first.trace_id, finished.call.id)


async def test_a_run_that_no_one_observers_is_no_part_of_the_one_around_it():
    inner = function(ScriptedLLM("in"))
    observers = []

    async def helper(question: str) -> str:
        """Ask."""
        observers.append(current_observer())
        return await inner.with_options(toolkit=[inside])(question)

    def inside() -> str:
        """Do nothing."""
        return ""

    seen = Seen()
    outer = function(ScriptedLLM(tool_calls(("helper", {"question": "a"})), "done"), toolkit=[helper], watching=seen)
    async with LoopbackServer() as server:
        server.answer(error_answer(503))
        server.reply("in")
        inner = function(OpenAICompatible("m", base_url=server.base_url, retry_delay=0.001))
        await outer("?")
    assert len(seen.of(RunStarted)) == 1
    assert seen.of(TryFailed) == []
    assert observers[0] is not None
    assert current_observer() is None


async def test_what_cannot_be_described_runs_all_the_same(caplog):
    class Odd(Run):
        def metadata(self) -> RunMetadata:
            raise ValueError("no signature")

    seen, run = Seen(), Odd("odd", "odd_1")
    with watching(seen), caplog.at_level(logging.WARNING, "SimpleLLMFunc"):
        async with async_log_context("odd_1", "odd"), run:
            request = ModelRequest(ScriptedLLM("yes"), [{"role": "user", "content": "?"}])
            async for _ in react_events(request, run=run):
                pass
    assert seen.run("odd").function.version == ""
    assert "'odd' cannot be described: ValueError: no signature" in caplog.text


# --- all kinds of callers ---


async def test_a_call_shows_the_same():
    step = Step("reason", "think", call=LLM, params={"user_prompt": "2 + 2?"})
    executor = StepExecutor(Task("?"), step, llm=ScriptedLLM("4"))
    await executor.init()
    with watching(seen := Seen()):
        async for _ in executor.run():
            pass
    run = seen.run("reason")
    assert (run.function.kind, run.function.docstring) == ("call", "think")
    assert run.arguments
    assert seen.of(RunFinished)[0].value == "4"


async def test_the_assistant_shows_the_same():
    assistant = AIAssistant(llm=ScriptedLLM("hello"), language="en")
    with watching(seen := Seen(), session_id="of the scope", user_id="of the scope"):
        result = await assistant.process_query("hi", session_id="s1", user_id="u1")
    run = seen.run("assistant")
    assert (run.function.kind, run.session_id, run.user_id) == ("assistant", "s1", "u1")
    assert dict(run.arguments) == {"user_input": "hi"}
    assert run.function.docstring == assistant.system_prompt
    assert {tool["function"]["name"] for tool in run.function.tools}
    assert len(run.function.version) == 16
    assert seen.of(RunFinished)[0].value == result["response"] == "hello"


async def test_an_answer_from_a_batch_file_shows_the_same(tmp_path):
    ask = function(OpenAICompatible("m", api_key="not-used-here"), Grade)
    [path] = await ask.to_batch_file(["?"], tmp_path / "requests.jsonl")
    request = json.loads(path.read_text("utf-8"))
    response = {"status_code": 200, "body": completion('{"points": 3}')}
    line = json.dumps({"custom_id": request["custom_id"], "response": response, "error": None})
    (tmp_path / "answers.jsonl").write_text(line, "utf-8")
    with watching(seen := Seen()):
        report = await ask.read_batch_file(tmp_path / "answers.jsonl", rows=["?"])
    assert report.rows[0].value == Grade(points=3)
    assert seen.run("ask").function is ask._pipeline.metadata
    assert seen.of(RunFinished)[0].value == Grade(points=3)


# --- failed tries ---


async def test_failed_tries_are_told_with_their_pause():
    async with LoopbackServer() as server:
        server.answer(error_answer(503))
        server.answer(error_answer(429, headers={"retry-after-ms": "1"}))
        server.reply("good")
        llm = OpenAICompatible("m", base_url=server.base_url, retry_delay=0.001)
        with watching(seen := Seen()):
            assert await function(llm)("?") == "good"
    assert seen.names[:5] == ["RunStarted", "TurnStarted", "TryFailed", "TryFailed", "ReplyReceived"]
    first, second = seen.of(TryFailed)
    assert (first.turn, first.tries, second.tries) == (1, 1, 2)
    assert (type(first.error).__name__, type(second.error).__name__) == ("ServerUnavailable", "RateLimited")
    assert 0 < first.pause < 0.01
    assert (first.model, first.next_model) == ("m", "m")
    assert seen.of(ReplyReceived)[0].reply.tries == 3


async def test_a_stream_that_broke_is_asked_for_again():
    async with LoopbackServer() as server:
        server.reply_sse(sse(chunk({"role": "assistant", "content": ""}), done=False), cut=True)
        server.reply("good")
        llm = OpenAICompatible("m", base_url=server.base_url, retry_delay=0.001)
        with watching(seen := Seen()):
            assert [piece async for piece in function(llm).stream("?")]
    [failed] = seen.of(TryFailed)
    assert (failed.turn, failed.tries) == (1, 1)
    first, *again = seen.of(TurnStarted)
    assert first.sent is not None
    assert [(turn.turn, turn.sent) for turn in again] == [(1, None)]


async def test_a_model_that_failed_is_told_with_the_one_that_is_asked_next():
    big = ScriptedLLM(ServerUnavailable("big", status=503), model_name="big")
    seen = await shown(lambda: function(FallbackLLM(big, ScriptedLLM("good", model_name="small")))("?"))
    [failed] = seen.of(TryFailed)
    assert (failed.model, failed.next_model, failed.pause) == ("big", "small", 0.0)


async def test_a_mode_that_is_refused_is_told():
    def answer(request: Any) -> str:
        if request.response_format is not None:
            raise BadRequest("m", status=400, body="response_format is not supported")
        return '{"points": 3}'

    llm = ScriptedLLM(answer, repeat=True, profile=PROFILES["openai"])
    seen = await shown(lambda: function(llm, Grade)("?"))
    [failed] = seen.of(TryFailed)
    assert (type(failed.error), failed.turn, failed.pause) == (BadRequest, 1, 0.0)
    assert [(turn.turn, turn.sent.output_mode) for turn in seen.of(TurnStarted)] == [(1, "native"), (1, "tool")]


# --- judged answers ---


async def test_every_answer_is_shown_with_its_judgement():
    llm = ScriptedLLM("", '{"points": "many"}', '{"points": "3"}')
    seen = await shown(lambda: function(llm, Grade)("?"))
    empty, wrong, right = seen.of(AnswerReviewed)
    assert [event.accepted for event in (empty, wrong, right)] == [False, False, True]
    assert [event.turn for event in (empty, wrong, right)] == [1, 2, 3]
    assert (empty.attempt.text, empty.attempt.violations) == ("", [])
    assert wrong.attempt.violations == [("points", "int", "'many'")]
    assert right.attempt.repairs == [("points", "number taken from '3'")]


async def test_a_reply_that_only_calls_tools_is_no_answer():
    seen = await shown(lambda: function(ScriptedLLM(tool_calls(("clock", {})), "noon"), toolkit=[clock])("?"))
    assert [(event.turn, event.accepted) for event in seen.of(AnswerReviewed)] == [(2, True)]


# --- how a run ends without an answer ---


async def test_an_error_is_the_last_event():
    with watching(seen := Seen()), pytest.raises(ResponseParseError) as caught:
        await function(ScriptedLLM("no", repeat=True), int, max_reasks=1)("?")
    assert seen.names[-2:] == ["AnswerReviewed", "RunFailed"]
    [failed] = seen.of(RunFailed)
    assert failed.how == "error"
    assert failed.error is caught.value
    assert len(failed.error.attempts) == 2
    assert [event.accepted for event in seen.of(AnswerReviewed)] == [False, False]


async def test_a_run_that_never_began_is_shown_too(monkeypatch):
    with watching(seen := Seen()), pytest.raises(ConfigError):
        await function(None)("?")
    assert seen.names == ["RunStarted", "RunFailed"]
    assert seen.of(RunStarted)[0].messages == []
    assert seen.run("ask").arguments["text"] == "?"


@pytest.mark.parametrize("kind", [asyncio.CancelledError, RunAborted])
async def test_a_run_that_is_cancelled_or_aborted_is_shown(kind: Any):
    stop = AbortSignal()

    async def never(request: Any) -> str:
        stop.abort("enough") if kind is RunAborted else task.cancel()
        await asyncio.Event().wait()
        return ""

    with watching(seen := Seen()), pytest.raises(kind):
        task = asyncio.ensure_future(function(ScriptedLLM(never), abort_signal=stop)("?"))
        await task
    [failed] = seen.of(RunFailed)
    assert (failed.how, type(failed.error)) == ("cancelled", kind)


async def test_a_stream_that_was_left_is_shown():
    ask = function(ScriptedLLM("a long answer"))
    with watching(seen := Seen()):
        async with aclosing(ask.stream("?")) as pieces:
            async for _ in pieces:
                break
    [failed] = seen.of(RunFailed)
    assert (failed.how, type(failed.error)) == ("abandoned", GeneratorExit)
    assert seen.names[-1] == "RunFailed"


async def test_a_run_that_is_left_after_its_end_has_not_failed():
    with watching(seen := Seen()):
        async with aclosing(function(ScriptedLLM("yes")).events("?")) as events:
            async for event in events:
                if isinstance(event, RunFinished):
                    break
    assert seen.names[-1] == "RunFinished"


# --- tools ---


class Entered(Seen):
    def __init__(self, error: Exception | None = None) -> None:
        self.entered: list[tuple[str, str, Any]] = []
        self.error = error

    def enter_tool(self, trace_id: str, call: Any) -> None:
        self.entered.append((trace_id, call.function.name, asyncio.current_task()))
        if self.error is not None:
            raise self.error


async def test_a_sink_is_let_into_the_task_of_each_tool():
    tasks: list[Any] = []

    async def clock() -> str:
        """Tell the time."""
        tasks.append(asyncio.current_task())
        return "noon"

    seen = Entered()
    with watching(seen):
        await function(ScriptedLLM(tool_calls(("clock", {}), ("clock", {})), "noon"), toolkit=[clock])("?")
    assert [task for _, _, task in seen.entered] == tasks
    assert len(set(tasks)) == 2
    assert {trace_id for trace_id, _, _ in seen.entered} == {seen[0].trace_id}


async def test_a_sink_that_fails_there_is_passed_over(caplog):
    seen = Entered(ValueError("no room"))
    llm = ScriptedLLM(tool_calls(("clock", {})), "noon")
    with watching(seen), caplog.at_level(logging.WARNING, "SimpleLLMFunc"):
        assert await function(llm, toolkit=[clock])("?") == "noon"
    assert "no room" in caplog.text


async def test_why_a_tool_came_to_nothing():
    def broken() -> str:
        """Break."""
        raise KeyError("x")

    def strict(number: int) -> str:
        """Count."""
        return str(number)

    calls = tool_calls(("broken", {}), ("strict", {"number": "many"}), ("unknown", {}), ("strict", {"number": 1}))
    seen = await shown(lambda: function(ScriptedLLM(calls, "done"), toolkit=[broken, strict])("?"))
    problems = [(event.failed, event.error_type) for event in seen.of(ToolCallFinished)]
    assert problems == [(True, "KeyError"), (True, "invalid_arguments"), (True, "unknown_tool"), (False, "")]


async def test_only_a_run_is_the_parent_of_a_run():
    seen = Seen()
    inner = function(ScriptedLLM("inner", repeat=True), name="inner", watching=seen)
    outer = function(ScriptedLLM(tool_calls(("inner", {"text": "x"})), "done"), toolkit=[inner.as_tool()])
    with log_context("request-7"):
        await inner("x")
        result = await outer.call("x")
    assert [event.run.parent_trace_id for event in seen.of(RunStarted)] == ["", result.trace_id]
