"""The next model when one is down, over real servers on loopback and doubles."""

import asyncio
import copy
import pickle
import time

import pytest

from SimpleLLMFunc import BadRequest, BudgetExceeded, ConfigError
from SimpleLLMFunc.errors import DeadlineExceeded, RateLimited, ServerUnavailable, StreamInterrupted, UsageError
from SimpleLLMFunc.interface.anthropic import Anthropic
from SimpleLLMFunc.interface.attempts.guard import forbid_real_calls
from SimpleLLMFunc.interface.attempts.listener import LISTENER, Downgrades
from SimpleLLMFunc.interface.composite import fallback as module
from SimpleLLMFunc.interface.composite.fallback import FallbackLLM
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from SimpleLLMFunc.interface.profile import PROFILES, Profile
from SimpleLLMFunc.interface.spending.budget import budget
from SimpleLLMFunc.interface.wires.streams.delta_assembly import ReplyAssembler
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.type import ChatCompletionChunk, Usage
from tests.support.asking import HELLO, ask_either, both_ways, streamed
from tests.support.functions import async_function_of as function_of
from tests.support.server import Answer, LoopbackServer, chunk, sse, text_answer


@pytest.fixture
async def other():
    async with LoopbackServer(text_answer("from the other")) as server:
        yield server


def model(server, name="first", **options):
    options = {"retry_delay": 0.001, "max_retries": 0, **options}
    return OpenAICompatible(name, base_url=server.base_url, **options)


def pair(server, other, **options):
    return FallbackLLM(model(server), model(other, "second"), **options)


# --- who answers -----------------------------------------------------------------------------------------


@both_ways
@pytest.mark.parametrize("status", [401, 403, 408, 409, 429, 500, 503, 529])
async def test_the_first_answers_while_it_is_up_and_the_next_when_it_is_down(server, other, is_streamed, status):
    llm = pair(server, other)
    reply = await ask_either(llm, is_streamed)
    assert (reply.text, reply.tries, len(other.requests)) == ("hello", 1, 0)
    server.reply_status(status)
    reply = await ask_either(llm, is_streamed)
    assert (reply.text, reply.tries, len(server.requests), len(other.requests)) == ("from the other", 2, 2, 1)


@both_ways
async def test_the_next_answers_after_a_reply_that_is_none(server, other, is_streamed):
    server.answer(Answer(body=b"<html>sorry</html>"))
    llm = pair(server, other)
    assert (await ask_either(llm, is_streamed)).text == "from the other"
    # One broken reply is no reason to leave a service out.
    assert (await ask_either(llm, is_streamed)).text == "hello"


@both_ways
async def test_what_is_wrong_with_the_request_is_told(server, other, is_streamed):
    server.reply_status(400, message="no such parameter")
    with pytest.raises(BadRequest, match="no such parameter"):
        await ask_either(pair(server, other), is_streamed)
    assert other.requests == []


@both_ways
async def test_a_request_too_long_goes_to_a_larger_window_only(server, other, is_streamed):
    async with LoopbackServer() as largest:
        llm = FallbackLLM(
            model(server, context_window=1000),
            model(other, "as small", context_window=1000),
            model(largest, "large", context_window=9000),
        )
        server.reply_status(400, code="context_length_exceeded")
        assert (await ask_either(llm, is_streamed)).text == "hello"
        assert (len(server.requests), len(other.requests), len(largest.requests)) == (1, 0, 1)
        # It is not down for that.
        await ask_either(llm, is_streamed)
        assert len(server.requests) == 2


async def test_each_member_makes_its_own_tries_and_they_add_up(server, other):
    for _ in range(3):
        server.reply_status(503)
    other.reply_status(500)
    heard = []

    class Listener(Downgrades):
        def try_failed(self, error, **told):
            heard.append((told["model"], told["next_model"]))

    llm = FallbackLLM(model(server, max_retries=2), model(other, "second", max_retries=2))
    with LISTENER.within(Listener()):
        reply = await llm.chat(HELLO)
    assert heard == [*[("first", "first")] * 2, ("first", "second"), ("second", "second")]
    assert (reply.text, reply.tries, reply.model) == ("from the other", 5, "loopback")
    assert len(server.requests) + len(other.requests) == 5


async def test_the_last_error_is_raised_and_tells_of_the_others(server, other):
    server.reply_status(503, message="under repair")
    other.reply_status(429, message="slow down")
    with pytest.raises(RateLimited) as caught:
        await pair(server, other).chat(HELLO)
    error = caught.value
    assert error.model == "second"
    assert error.tries == 2
    (note,) = error.__notes__
    assert "first" in note
    assert "under repair" in note


async def test_foreign_errors_and_our_own_mistakes_pass(other):
    with pytest.raises(ZeroDivisionError):
        await FallbackLLM(ScriptedLLM(ZeroDivisionError()), model(other)).chat(HELLO)
    with pytest.raises(ZeroDivisionError):
        await FallbackLLM(ScriptedLLM(ZeroDivisionError()), model(other), hedge_after=9).chat(HELLO)
    with pytest.raises(UsageError):
        await FallbackLLM(ScriptedLLM(), model(other)).chat(HELLO)
    with pytest.raises(ServerUnavailable):
        await streamed(FallbackLLM(ScriptedLLM(ServerUnavailable("m"))))
    with forbid_real_calls(), pytest.raises(UsageError):
        await FallbackLLM(model(other), ScriptedLLM("x")).chat(HELLO)
    assert other.requests == []


async def test_the_reply_says_which_model_answered():
    llm = FallbackLLM(ScriptedLLM(ServerUnavailable("a")), ScriptedLLM("x", model_name="b"))
    assert (await llm.chat(HELLO)).model == "b"
    nameless = [ChatCompletionChunk.from_dict({"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]})]
    llm = FallbackLLM(ScriptedLLM(ServerUnavailable("a")), ScriptedLLM(nameless, model_name="c"))
    assert ((reply := await streamed(llm)).model, reply.tries) == ("c", 1)


# --- streams ---------------------------------------------------------------------------------------------


async def test_thinking_is_shown_as_it_comes_and_is_void_where_the_stream_breaks_then(server, other):
    go_on = asyncio.Event()
    thinking = sse(chunk({"reasoning_content": "hm"}), done=False)
    server.reply_sse([thinking, thinking], hold=go_on, hold_after=1, cut=True)
    stream = pair(server, other).chat_stream(HELLO)
    assert (await asyncio.wait_for(anext(stream), 5)).tries == 1
    go_on.set()
    assembler = ReplyAssembler()
    async for piece in stream:
        assembler.add(piece)
    assert (assembler.completion().text, assembler.completion().tries) == ("from the other", 2)


async def test_after_the_first_text_there_is_no_other(server, other):
    server.reply_sse(sse(chunk({"content": "It will"}), done=False), cut=True)
    with pytest.raises(StreamInterrupted) as caught:
        await streamed(pair(server, other))
    assert caught.value.partial == "It will"

    class Breaks(ScriptedLLM):
        async def chat_stream(self, messages, **options):
            async for piece in super().chat_stream(messages, **options):
                yield piece
            raise ServerUnavailable("m")

    with pytest.raises(ServerUnavailable):
        await streamed(FallbackLLM(Breaks("x"), model(other)))
    assert other.requests == []


# --- who is left out -------------------------------------------------------------------------------------


async def test_a_member_that_is_down_is_left_out_for_a_while(server, other, monkeypatch):
    now = time.monotonic()
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    llm = pair(server, other, cool_down=30)
    server.reply_status(503)
    for _ in range(3):
        assert (await llm.chat(HELLO)).text == "from the other"
    assert len(server.requests) == 1
    now += 31
    # One call finds out whether it is up again; the others do not wait for that.
    held = asyncio.Event()
    server.answer(Answer(503, body=b"", hold=held))
    probe = asyncio.create_task(llm.chat(HELLO))
    await server.received(2)
    assert (await llm.chat(HELLO)).text == "from the other"
    held.set()
    assert (await probe).text == "from the other"
    assert len(server.requests) == 2
    now += 31
    server.reply_status(409)  # it is up
    assert [(await llm.chat(HELLO)).text for _ in range(3)] == ["from the other", "hello", "hello"]
    server.reply_status(503)
    await llm.chat(HELLO)
    now += 31
    assert [(await streamed(llm)).text for _ in range(2)] == ["hello", "hello"]


async def test_a_limited_member_is_left_out_for_as_long_as_its_service_asked(other, monkeypatch):
    now = time.monotonic()
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    llm = FallbackLLM(ScriptedLLM(RateLimited("m", retry_after=300), "hello"), model(other))
    await llm.chat(HELLO)
    now += 200
    assert (await llm.chat(HELLO)).text == "from the other"
    now += 101
    assert (await llm.chat(HELLO)).text == "hello"


async def test_when_all_are_down_all_are_asked(server, other):
    llm = pair(server, other)
    server.reply_status(503)
    other.reply_status(503)
    with pytest.raises(ServerUnavailable):
        await llm.chat(HELLO)
    assert (await llm.chat(HELLO)).text == "hello"


# --- limits ----------------------------------------------------------------------------------------------


@both_ways
async def test_the_deadline_is_shared(server, other, is_streamed):
    for slow in (server, other):
        slow.answer(Answer(body=b"", hold=asyncio.Event()))
    llm = FallbackLLM(model(server, deadline=0.5), model(other))
    start = time.monotonic()
    with pytest.raises(DeadlineExceeded) as caught:
        await ask_either(llm, is_streamed, deadline=1.0)
    assert 0.95 < time.monotonic() - start < 6
    assert caught.value.seconds == 1.0
    assert len(server.requests) == len(other.requests) == 1


async def test_budgets_count_every_request(server, other):
    server.reply_status(503)
    ask = function_of(pair(server, other))
    with budget() as spent:
        result = await ask.call("hello")
    assert spent.requests == result.tries == 2
    server.reply_status(503)
    with budget(requests=1) as spent, pytest.raises(BudgetExceeded):
        await function_of(pair(server, other))("hello")
    assert spent.requests == 1
    assert len(other.requests) == 1


# --- hedging ---------------------------------------------------------------------------------------------


@both_ways
async def test_a_late_answer_is_asked_for_elsewhere_as_well(server, other, is_streamed):
    server.answer(Answer(body=b"", hold=asyncio.Event()))
    llm = pair(server, other, hedge_after=0.05)
    reply = await ask_either(llm, is_streamed)
    assert (reply.text, reply.tries) == ("from the other", 2)
    await server.all_closed()
    # To be late is not to be down.
    assert (await ask_either(llm, is_streamed)).text == "hello"


@both_ways
async def test_the_first_answer_counts_also_when_it_is_that_of_the_first_request(server, other, is_streamed):
    held = asyncio.Event()
    server.reply("late, but here", hold=held)
    other.answer(Answer(body=b"", hold=asyncio.Event()))
    llm = pair(server, other, hedge_after=0.02)
    asking = asyncio.create_task(ask_either(llm, is_streamed))
    await other.received()
    held.set()
    reply = await asking
    assert (reply.text, reply.tries) == ("late, but here", 2)
    await other.all_closed()


async def test_one_member_is_asked_twice(server):
    server.answer(Answer(body=b"", hold=asyncio.Event()))
    reply = await FallbackLLM(model(server), hedge_after=0.02).chat(HELLO)
    assert (reply.text, reply.tries, len(server.requests)) == ("hello", 2, 2)


async def test_a_hedged_stream_that_breaks_after_a_tool_call_goes_on_elsewhere(server, other):
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{"}}
    server.reply_sse(sse(chunk({"tool_calls": [call]}), done=False), cut=True)
    reply = await streamed(pair(server, other, hedge_after=30))
    assert (reply.text, reply.tool_calls, reply.tries) == ("from the other", [], 2)


async def test_a_hedged_stream_closed_early_leaves_nothing(server, other):
    server.reply_sse([sse(chunk({"content": "a"}), done=False)] * 9, hold=asyncio.Event(), hold_after=3)
    stream = pair(server, other, hedge_after=30).chat_stream(HELLO)
    assert (await anext(stream)).text == "a"
    await stream.aclose()
    await server.all_closed()
    assert asyncio.all_tasks() - {asyncio.current_task()} == _server_tasks(server)


def _server_tasks(*servers):
    return {task for server in servers for task in server.tasks if not task.done()}


async def test_a_cancelled_race_leaves_nothing(server, other):
    for slow in (server, other):
        slow.answer(Answer(body=b"", hold=asyncio.Event()))
    task = asyncio.create_task(pair(server, other, hedge_after=0.01).chat(HELLO))
    await other.received()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await server.all_closed()
    await other.all_closed()


async def test_what_no_one_waited_for_counts_in_budgets(server, other):
    server.answer(Answer(body=b"", hold=asyncio.Event()))
    ask = function_of(pair(server, other, hedge_after=0.02))
    with budget() as spent:
        result = await ask.call("hello")
    assert spent.requests == 2
    assert spent.tokens > result.usage.total_tokens


async def test_a_hedged_stream_that_is_cancelled_while_the_other_is_counted_leaves_nothing(server, other, monkeypatch):
    counting = asyncio.Event()

    async def count(*parts):
        counting.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(module, "count_request", count)
    server.answer(Answer(body=b"", hold=asyncio.Event()))
    other.reply_sse([sse(chunk({"content": "a"}), done=False)] * 9, hold=asyncio.Event(), hold_after=3)
    with budget():
        task = asyncio.create_task(streamed(pair(server, other, hedge_after=0.02)))
        await counting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    async with asyncio.timeout(10):
        await other.all_closed()


async def test_a_budget_without_room_for_two_lets_the_first_go_on(server, other):
    held = asyncio.Event()
    server.reply("alone", hold=held)
    ask = function_of(pair(server, other, hedge_after=0.02))
    with budget(requests=1) as spent:
        asking = asyncio.create_task(ask("hello"))
        await server.received()
        await asyncio.sleep(0.1)  # the second request has been refused meanwhile
        held.set()
        assert await asking == "alone"
    assert (spent.requests, other.requests) == (1, [])


async def test_p95_learns_from_the_answers(server, other):
    llm = pair(server, other, hedge_after="p95")
    server.answer(Answer(body=b"", hold=asyncio.Event()))
    given_up = asyncio.create_task(llm.chat(HELLO))
    await server.received()
    given_up.cancel()  # it counts too
    for _ in range(19):
        await llm.chat(HELLO)
    assert other.requests == []
    server.answer(Answer(body=b"", hold=asyncio.Event()))
    assert (await llm.chat(HELLO, deadline=30)).text == "from the other"


# --- as a model, and as an object ------------------------------------------------------------------------


def test_it_has_the_features_that_all_members_share():
    openai = ScriptedLLM(profile=PROFILES["openai"], model_name="a")
    deepseek = ScriptedLLM(profile=PROFILES["deepseek"])
    local = ScriptedLLM(profile=PROFILES["local"])
    assert FallbackLLM(openai).profile == PROFILES["openai"]
    profile = FallbackLLM(openai, deepseek, local).profile
    assert (profile.native, profile.strict, profile.tools, profile.tool_choice) == (False, True, "json", False)
    assert (profile.keep_reasoning, profile.name) == (True, "fallback")
    profile = FallbackLLM(local, ScriptedLLM(profile=Profile(schema_with_tools=False))).profile
    assert (profile.logprobs, profile.grammar, profile.schema_with_tools) == (0, False, False)


def test_it_looks_like_its_first_member(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-CANARY0123456789")
    first = OpenAICompatible("gpt-5-mini", wire="chat", context_window=4000, api_params={"seed": 1})
    llm = FallbackLLM([first, ScriptedLLM("x")])
    assert (llm.model_name, llm.provider, llm.base_url) == ("gpt-5-mini", "openai", first.base_url)
    assert llm.render(HELLO, stream=True, temperature=0) == first.render(HELLO, stream=True, temperature=0)
    assert (llm.context_window, llm.url(), llm.wire_name) == (4000, first.url(), "chat")
    other = FallbackLLM(ScriptedLLM("x"), Anthropic("claude-opus-5"))
    assert other.render(HELLO, extra_body={"k": 1}, n=2) == ScriptedLLM().render(HELLO, k=1, n=2)
    assert other.render(HELLO, extra_body=None) == ScriptedLLM().render(HELLO)
    assert "x-api-key" in FallbackLLM(*other.members[::-1]).shown_headers(HELLO)
    assert FallbackLLM(ScriptedLLM("x")).context_window is None
    smaller = OpenAICompatible("m", context_window=1000)
    assert FallbackLLM(first, smaller, ScriptedLLM()).context_window == 1000
    assert repr(llm) == f"FallbackLLM({first!r}, {llm.members[1]!r})"
    assert "CANARY" not in repr(llm)


def test_a_pickle_holds_all_but_keys_and_health(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-CANARY0123456789")
    llm = FallbackLLM(
        OpenAICompatible("a", api_key="sk-CANARY0123456789"), ScriptedLLM("x"), hedge_after="p95", cool_down=0
    )
    data = pickle.dumps(llm)
    assert b"CANARY" not in data
    again = pickle.loads(data)
    assert (again.hedge_after, again.cool_down) == ("p95", 0)
    assert [member.model_name for member in again.members] == ["a", "scripted"]
    assert copy.copy(llm) is copy.deepcopy(llm) is llm


@pytest.mark.parametrize("members", [(), ([],), ("gpt-5",), (ScriptedLLM(), 3), ([ScriptedLLM(), None],), (5,)])
def test_what_is_no_model_is_refused(members):
    with pytest.raises(ConfigError, match=r"takes models .* not (none|str|int|NoneType)\.$"):
        FallbackLLM(*members)


@pytest.mark.parametrize("after", [0, -1, float("inf"), float("nan"), True, "p50", "1"])
def test_options_that_cannot_be_are_refused(after):
    for name, value in (("hedge_after", after), ("cool_down", -1)):
        with pytest.raises(ConfigError, match=name):
            FallbackLLM(ScriptedLLM(), **{name: value})


async def test_a_fallback_may_be_a_member(server, other):
    server.reply_status(503)
    inner = FallbackLLM(model(server))
    assert (await FallbackLLM(inner, model(other)).chat(HELLO)).text == "from the other"


async def test_usages_are_priced_by_who_answered():
    pytest.importorskip("genai_prices")
    down = ScriptedLLM(ServerUnavailable("gpt-4o"), model_name="gpt-4o", repeat=True)
    llm = FallbackLLM(down, ScriptedLLM("x", "y", model_name="gpt-4o-mini"))
    whole, pieces = await llm.chat(HELLO), await streamed(llm)
    expected = ScriptedLLM(model_name="gpt-4o-mini").price(whole.usage.tokens)
    assert whole.usage.cost == pieces.usage.cost == expected > 0
    assert llm.price(Usage(1000)) == down.price(Usage(1000))
    unknown = FallbackLLM(down, ScriptedLLM("x", model_name="qwen"))
    assert (await function_of(unknown).call("x")).cost is None
