"""The one loop: events, rounds, limits, review, refusal, deadline, both modes."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from SimpleLLMFunc.base.events import (
    MessageAppended,
    ReplyDelta,
    ReplyReceived,
    RunFinished,
    RunStarted,
    ToolCallFinished,
    ToolCallStarted,
    TurnStarted,
)
from SimpleLLMFunc.base.ReAct import execute_llm, react_events
from SimpleLLMFunc.base.request import ModelRequest, ToolPolicy, Toolset
from SimpleLLMFunc.base.run import Run
from SimpleLLMFunc.errors import (
    BadRequest,
    ContentBlocked,
    DeadlineExceeded,
    OutputTruncated,
    ToolCallLimitExceeded,
    UsageError,
)
from SimpleLLMFunc.interface import LLM_Interface
from SimpleLLMFunc.interface.wires import chunk_of_reply
from SimpleLLMFunc.journal import durable
from SimpleLLMFunc.llm_decorator.utils.tools import process_tools
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls
from SimpleLLMFunc.tools import tool
from SimpleLLMFunc.type import ChatCompletion, Usage

MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello?"}]


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def reply_cut(text=None, calls=None, finish="length"):
    message = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = tool_calls(*calls)["tool_calls"]
    return {**message, "finish_reason": finish}


async def read(events):
    async with aclosing(events):
        return [event async for event in events]


async def run(llm, *, tools=(), max_rounds=5, policy=None, review=None, stream=False, deadline=None, **asked):
    specs, tool_map = process_tools(list(tools), "f")
    toolset = Toolset(tool_map, specs, max_rounds=max_rounds, policy=policy or ToolPolicy())
    async with Run("f", stream=stream, deadline=deadline) as state:
        return await read(react_events(ModelRequest(llm, MESSAGES, specs, **asked), toolset, review, state))


@pytest.mark.parametrize("stream", [False, True])
async def test_a_plain_answer_is_one_turn(stream):
    events = await run(ScriptedLLM("Good day to you."), stream=stream)
    kinds = [type(event) for event in events if not isinstance(event, ReplyDelta)]
    assert kinds == [RunStarted, TurnStarted, ReplyReceived, MessageAppended, RunFinished]
    assert "".join(event.text for event in events if isinstance(event, ReplyDelta)) == (
        "Good day to you." if stream else ""
    )
    finished = events[-1]
    assert finished.reply.text == "Good day to you."
    assert finished.messages == [*MESSAGES, {"role": "assistant", "content": "Good day to you."}]
    assert finished.turns == 1
    assert finished.usage.output_tokens > 0


@pytest.mark.parametrize("stream", [False, True])
async def test_tools_run_and_their_results_go_back_in_call_order(stream):
    order = []

    @tool
    async def slow(name: str) -> str:
        """Wait."""
        if name == "first":
            await asyncio.sleep(0.05)
        order.append(name)
        return f"done {name}"

    llm = ScriptedLLM(tool_calls(("slow", {"name": "first"}), ("slow", {"name": "second"})), "Both done.")
    events = await run(llm, tools=[slow], stream=stream)
    assert order == ["second", "first"]
    assert [e.content for e in events if isinstance(e, ToolCallFinished)] == ["done first", "done second"]
    assert [m["role"] for m in llm.requests[1]] == ["system", "user", "assistant", "tool", "tool"]
    assert [m["content"] for m in llm.requests[1][3:]] == ["done first", "done second"]
    ids = [call["id"] for call in llm.requests[1][2]["tool_calls"]]
    assert [m["tool_call_id"] for m in llm.requests[1][3:]] == ids
    assert len(set(ids)) == 2
    assert events[-1].turns == 2
    appended = [e.message for e in events if isinstance(e, MessageAppended)]
    assert events[-1].messages == [*MESSAGES, *appended]


async def test_the_callers_list_and_the_events_are_separate_copies():
    llm = ScriptedLLM(tool_calls(("add", {"a": 1, "b": 2})), "3")
    specs, tool_map = process_tools([add], "f")
    mine = [dict(message) for message in MESSAGES]
    async for event in react_events(ModelRequest(llm, mine, specs), Toolset(tool_map, specs)):
        if isinstance(event, (RunStarted, RunFinished)):
            event.messages[0]["content"] = "changed by a consumer"
        if isinstance(event, MessageAppended):
            event.message["content"] = "changed by a consumer"
    assert mine == MESSAGES
    assert llm.requests[1][0]["content"] == "Be brief."
    assert llm.requests[1][3]["content"] == "3"


async def test_after_the_last_round_the_model_answers_without_tools():
    llm = ScriptedLLM(tool_calls(("add", {"a": 1, "b": 1})), tool_calls(("add", {"a": 2, "b": 2})), "Four.")
    events = await run(llm, tools=[add], max_rounds=2)
    assert [bool(call.tools) for call in llm.calls] == [True, True, False]
    assert events[-1].reply.text == "Four."
    await run(none := ScriptedLLM("No tools here."), tools=[add], max_rounds=0)
    assert none.calls[0].tools is None


async def test_a_tool_called_in_the_turn_without_tools_is_the_limit():
    llm = ScriptedLLM(*[tool_calls(("add", {"a": 1, "b": 1}))] * 3)
    with pytest.raises(ToolCallLimitExceeded) as caught:
        await run(llm, tools=[add], max_rounds=1)
    assert (caught.value.limit, caught.value.repeated) == (1, 0)
    assert len(llm.calls) == 2


async def test_the_review_sends_back_without_running_tools_again():
    runs = []

    @tool
    def once() -> str:
        """Count."""
        runs.append(1)
        return "counted"

    async def review(reply, messages):
        if reply.text == "good":
            return None
        return [*messages, {"role": "assistant", "content": reply.text}, {"role": "user", "content": "Again."}]

    llm = ScriptedLLM(tool_calls(("once", {})), "bad", "worse", "good")
    events = await run(llm, tools=[once], review=review)
    assert runs == [1]
    assert [m["content"] for m in llm.requests[2][-2:]] == ["bad", "Again."]
    # only the latest bad answer is shown, and the history holds none of them
    assert [m["content"] for m in llm.requests[3][-2:]] == ["worse", "Again."]
    assert len(llm.requests[3]) == len(llm.requests[2])
    assert [m["role"] for m in events[-1].messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert events[-1].messages[-1]["content"] == "good"
    assert events[-1].turns == 4
    assert events[-1].usage == sum((e.usage for e in events if isinstance(e, ReplyReceived)), Usage())


class Refusing:
    """A review that accepts every reply, and asks otherwise where a request is refused."""

    def __init__(self, instead):
        self.instead = instead
        self.refused_requests = []

    async def __call__(self, reply, messages):
        return None

    def refused(self, error, request):
        self.refused_requests.append(request)
        return ModelRequest(request.llm, [*request.messages, {"role": "user", "content": self.instead}])


async def test_a_refused_request_is_asked_otherwise_in_the_same_turn():
    llm = ScriptedLLM(BadRequest("m", status=400, body="response_format is not supported"), "fine")
    events = await run(llm, response_format={"type": "json_object"}, review=Refusing("In JSON, please."))
    assert [e.turn for e in events if isinstance(e, TurnStarted)] == [1, 1]
    assert llm.calls[0].response_format == {"type": "json_object"}
    assert llm.calls[1].response_format is None
    assert llm.requests[1][-1]["content"] == "In JSON, please."
    assert events[-1].turns == 1


async def test_what_has_come_since_follows_another_first_request():
    review = Refusing("In JSON, please.")
    llm = ScriptedLLM(
        tool_calls(("add", {"a": 1, "b": 2})), BadRequest("m", status=400, body="no tools after all"), "3"
    )
    events = await run(llm, tools=[add], review=review)
    assert [request.messages for request in review.refused_requests] == [MESSAGES]
    assert [m["role"] for m in llm.requests[2]] == ["system", "user", "user", "assistant", "tool"]
    assert [m["role"] for m in events[-1].messages] == ["system", "user", "user", "assistant", "tool", "assistant"]


ANSWER_TOOL = {"type": "function", "function": {"name": "answer", "parameters": {"type": "object"}}}


async def test_the_answer_tool_is_never_run_and_its_arguments_are_the_answer():
    llm = ScriptedLLM(tool_calls(("add", {"a": 1, "b": 2})), tool_calls(("answer", '{"value": 3}')))
    events = await run(llm, tools=[add], answer_tool=ANSWER_TOOL)
    assert [t["function"]["name"] for t in llm.calls[0].tools] == ["add", "answer"]
    assert llm.calls[0].params["tool_choice"] == "required"
    assert events[-1].reply.text == '{"value": 3}'
    assert [e.call.function.name for e in events if isinstance(e, ToolCallStarted)] == ["add"]


async def test_an_answer_next_to_other_calls_waits_for_their_results():
    llm = ScriptedLLM(
        tool_calls(("answer", '{"value": 0}'), ("add", {"a": 1, "b": 2})), tool_calls(("answer", '{"value": 3}'))
    )
    events = await run(llm, tools=[add], answer_tool=ANSWER_TOOL)
    results = [m for m in llm.requests[1] if m["role"] == "tool"]
    assert [m["tool_call_id"] for m in results] == [c["id"] for c in llm.requests[1][2]["tool_calls"]]
    assert "Not accepted yet" in results[0]["content"]
    assert (results[0]["is_error"], results[1]["content"]) == (True, "3")
    assert events[-1].reply.text == '{"value": 3}'


async def test_in_the_last_turn_the_answer_tool_alone_is_offered():
    llm = ScriptedLLM(tool_calls(("add", {"a": 1, "b": 2})), tool_calls(("answer", "{}")))
    await run(llm, tools=[add], answer_tool=ANSWER_TOOL, max_rounds=1)
    assert [t["function"]["name"] for t in llm.calls[1].tools] == ["answer"]
    assert llm.calls[1].params["tool_choice"] == {"type": "function", "function": {"name": "answer"}}


@pytest.mark.parametrize("stream", [False, True])
async def test_no_tool_of_a_cut_reply_runs(stream):
    with pytest.raises(OutputTruncated) as caught:
        await run(ScriptedLLM(reply_cut(calls=[("add", "{}"), ("add", '{"a": 1, "b"')])), tools=[add], stream=stream)
    assert caught.value.partial == '{"a": 1, "b"'
    events = await run(ScriptedLLM(reply_cut("Let me see", [("add", {"a": 1, "b": 2})])), tools=[add], stream=stream)
    assert not [e for e in events if isinstance(e, ToolCallStarted)]
    assert events[-1].reply.text == "Let me see"
    assert "tool_calls" not in events[-1].messages[-1]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_blocked_answer_raises_with_what_came(stream):
    with pytest.raises(ContentBlocked) as caught:
        await run(ScriptedLLM(reply_cut("Half of", finish="content_filter")), stream=stream)
    assert caught.value.partial == "Half of"
    with pytest.raises(ContentBlocked, match="I will not"):
        await run(ScriptedLLM({"role": "assistant", "content": None, "refusal": "I will not"}))


async def test_the_loop_keeps_the_deadline_for_an_interface_that_does_not():
    class Sleeper(ScriptedLLM):
        async def chat(self, messages, **options):
            await asyncio.sleep(30)

    with pytest.raises(DeadlineExceeded):
        await run(Sleeper(), deadline=0.2)


async def test_a_deadline_ends_a_hanging_tool():
    @tool
    async def hangs() -> str:
        """Hang."""
        await asyncio.sleep(30)
        return ""

    with pytest.raises(DeadlineExceeded, match="running a tool"):
        await run(ScriptedLLM(tool_calls(("hangs", {}))), tools=[hangs], deadline=0.2)
    assert len(asyncio.all_tasks()) == 1


async def test_a_stalled_stream_gives_up_with_what_had_arrived():
    class Staller(ScriptedLLM):
        async def chat_stream(self, messages, **options):
            async for chunk in super().chat_stream(messages, **{**options, "deadline": None}):
                yield chunk
                if chunk.text:
                    await asyncio.sleep(30)

    with pytest.raises(DeadlineExceeded) as caught:
        await run(Staller("One two three"), stream=True, deadline=0.2)
    assert caught.value.partial


@pytest.mark.parametrize("stream", [False, True])
async def test_execute_llm_yields_raw_responses_and_grows_the_list(stream):
    llm = ScriptedLLM(tool_calls(("add", {"a": 1, "b": 2})), "It is 3.")
    specs, tool_map = process_tools([add], "f")
    messages = [dict(message) for message in MESSAGES]
    responses = [r async for r in execute_llm(llm, messages, specs, tool_map, 5, stream=stream, temperature=0.5)]
    assert [m["role"] for m in messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert {r.object for r in responses} == {"chat.completion.chunk" if stream else "chat.completion"}
    assert "".join(r.text for r in responses) == "It is 3."
    assert llm.calls[0].params == {"temperature": 0.5}


@pytest.mark.parametrize("stream", [False, True])
async def test_a_run_of_no_function_is_known_to_a_journal_by_its_request(stream, tmp_path):
    llm, told = ScriptedLLM("fine", "other"), []
    for said in ("Hello?", "Hello?", "Bye?"):
        with durable(tmp_path / "runs.sqlite", "k"):
            request = ModelRequest(llm, [{"role": "user", "content": said}])
            *_, received, _, finished = await read(react_events(request, run=Run(stream=stream)))
        assert received.usage.total_tokens > 0
        told.append((finished.reply.text, received.usage.cost, received.replayed and [received.seconds]))
    assert told == [("fine", None, False), ("fine", 0.0, [0.0]), ("other", None, False)]


class Own(LLM_Interface):
    """A user's own interface: it hands over what its service sent, as it came."""

    def __init__(self, *messages):
        self.messages = list(messages)
        self.seen = []

    def _next(self, messages):
        self.seen.append(list(messages))
        message = self.messages.pop(0)
        data = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "model": "own"}
        return ChatCompletion.from_dict(data)

    async def chat(self, messages, **_):
        return self._next(messages)

    async def chat_stream(self, messages, **_):
        yield chunk_of_reply(self._next(messages))


@pytest.mark.parametrize("stream", [False, True])
async def test_a_reply_of_another_make_is_told_with_how_to_read_it(stream, monkeypatch):
    own = Own()
    monkeypatch.setattr(own, "_next", lambda messages: {"choices": []})
    monkeypatch.setattr("tests.base.test_ReAct.chunk_of_reply", lambda reply: reply)
    with pytest.raises(UsageError, match=r"Own gave builtins.dict, not ChatCompletion.*from_dict"):
        [r async for r in execute_llm(own, [], None, {}, 5, stream=stream)]


@pytest.mark.parametrize("stream", [False, True])
async def test_two_calls_of_one_reply_with_the_same_id_keep_both_results(stream):
    both = [
        {"id": "same", "type": "function", "function": {"name": "add", "arguments": f'{{"a": 1, "b": {number}}}'}}
        for number in (1, 2)
    ]
    llm = Own({"role": "assistant", "content": None, "tool_calls": both}, {"role": "assistant", "content": "2 and 3"})
    events = await run(llm, tools=[add], stream=stream)
    asked = llm.seen[1]
    assert [message["content"] for message in asked if message["role"] == "tool"] == ["2", "3"]
    called = next(message["tool_calls"] for message in asked if message.get("tool_calls"))
    assert [message["tool_call_id"] for message in asked if message["role"] == "tool"] == [
        call["id"] for call in called
    ]
    assert len({call["id"] for call in called}) == 2
    assert events[-1].reply.text == "2 and 3"
