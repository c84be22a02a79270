"""A block that was broken off goes on: nothing is paid twice, no tool that had finished runs again, nothing is mixed up."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing, contextmanager
from contextvars import copy_context
from dataclasses import replace
from datetime import timedelta
from typing import Literal

import pytest

from SimpleLLMFunc import (
    ABSTAIN,
    AIAssistant,
    CheckpointError,
    Confident,
    FallbackLLM,
    ModelRetry,
    OpenAICompatible,
    OutcomeUnknown,
    ResponseParseError,
    RunPaused,
    ToolContext,
    ToolFailed,
    TraceStore,
    UsageError,
    budget,
    durable,
    forget,
    llm_chat,
    llm_function,
    pause_run,
    paused,
    tool,
    use_llm,
    watching,
)
from SimpleLLMFunc.assistant import SqliteMemory
from SimpleLLMFunc.assistant.caller import LLMCaller
from SimpleLLMFunc.base.ReAct import execute_llm
from SimpleLLMFunc.calls import LLM, RunTool, Step, StepExecutor, Task
from SimpleLLMFunc.errors import BadRequest
from SimpleLLMFunc.interface.profile import GENERIC
from SimpleLLMFunc.journal import RUN_AGAIN, answer, prune, told_answer
from SimpleLLMFunc.journal.log_file import JournalFile
from SimpleLLMFunc.observability.store import RunQuery
from SimpleLLMFunc.storage import transaction
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls
from SimpleLLMFunc.testing import answer as says
from tests.support.functions import async_decorated
from tests.support.processes import forks, in_child


class Dying:
    """Answers by what is asked, and dies at some requests; counts what was answered."""

    def __init__(self, reply, *, every=2):
        self.answered = []
        self._reply = reply
        self._every = every
        self._asked = 0

    def llm(self, **options):
        return ScriptedLLM(self._next, repeat=True, **options)

    def _next(self, request):
        self._asked += 1
        if self._every and self._asked % self._every == 0:
            raise asyncio.CancelledError  # what no tool reports to its model
        self.answered.append(str([message.get("content") for message in request.messages]))
        return self._reply(request)


async def stepped(task, step):
    executor = StepExecutor(task, step)
    await executor.init()
    return [chunk.content async for chunk in executor.run()]


class Shop:
    """Work of all kinds; each kind gives a value and leaves a trace of what its tools did."""

    def __init__(self):
        self.done = []
        self.keys = {}

        @tool
        async def look(thing: str, context: ToolContext) -> str:
            """Look."""
            self.did(f"look {thing}", context)
            return f"saw {thing}"

        @tool
        def buy(thing: str, context: ToolContext) -> str:
            """Buy."""
            self.did(f"buy {thing}", context)
            return f"bought {thing}"

        @tool
        def break_(thing: str) -> str:
            """Fail."""
            self.done.append(f"break {thing}")
            raise ModelRetry(f"{thing} is broken")

        self.look, self.buy, self.break_ = look, buy, break_

    def did(self, what, context):
        self.done.append(what)
        self.keys.setdefault(what, set()).add(context.idempotency_key)

    async def rounds(self):
        @llm_function(toolkit=[self.look, self.buy, self.break_])
        async def shop(order: str) -> str:
            """Shop."""

        return await shop("tea")

    async def agents(self):
        @llm_function(toolkit=[self.buy])
        async def clerk(order: str) -> str:
            """Serve."""

        @llm_function(toolkit=[clerk])
        def boss(order: str) -> str:
            """Lead."""

        @tool
        def desk(order: str) -> str:
            """A sync tool that asks a model itself."""
            return boss(order)

        @llm_function(toolkit=[desk])
        async def house(order: str) -> str:
            """Run."""

        return [await house(order) for order in ("tea", "tea", "ham")]

    async def chat(self):
        @llm_chat(toolkit=[self.look], stream=True)
        async def talk(history: list, message: str):
            """Talk."""

        found, history = [], []
        for message in ("one", "two"):
            text = ""
            async for piece, history in talk(history, message):
                text += piece
            found.append(text)
        return found, history[-1]["content"]

    async def votes(self):
        @llm_function(votes=3)
        async def sort(thing: str) -> Confident[Literal["a", "b"]]:
            """Sort."""

        return (await sort("x")).value

    async def streams(self):
        @llm_function
        async def listed(thing: str) -> list[int]:
            """List."""

        values = [value async for value in listed.stream("numbers")]
        texts = [str(event) async for event in listed.events("numbers") if type(event).__name__ == "RunFinished"]
        return values[-1], len(texts)

    async def calls(self):
        def buy(thing: str):
            self.done.append(f"buy {thing}")
            return {"bought": thing}

        task = Task("tea?")
        await stepped(task, Step("ask", call=LLM, params={"user_prompt": "{{question}} at {{time}}"}))
        await stepped(task, Step("buy", call=RunTool, params={"func": buy, "thing": "tea"}))
        await stepped(task, Step("end", call=LLM, params={"user_prompt": "end of {{question}}"}))
        return [step.data for step in task.history]

    async def assistant(self):
        helper = AIAssistant(tools=[self.look], language="en")
        return (await helper.process_query("tea", "s", "u"))["response"]

    async def reasks(self):
        @llm_function
        async def count(thing: str) -> int:
            """Count."""

        return await count("sheep")


def replies(request):
    """What the model says, by what it is asked."""
    told = [str(message["content"]) for message in request.messages if message["role"] == "tool"]
    asked = str(request.messages)
    names = [spec["function"]["name"] for spec in request.tools or ()]
    if "break_" in names and len(told) < 3:
        if not told:
            return tool_calls(("look", {"thing": "tea"}), ("look", {"thing": "tea"}), ("break_", {"thing": "cup"}))
        return tool_calls(("buy", {"thing": "tea"}))
    if names in (["clerk"], ["desk"]) and not told:
        return tool_calls((names[0], {"order": "some tea"}))
    if names == ["buy"] and not told:
        return tool_calls(("buy", {"thing": "tea"}), ("buy", {"thing": "milk"}))
    if names == ["look"] and not told:
        return tool_calls(("look", {"thing": asked[-9:-3]}))
    if "Sort" in asked or "numbers" in asked:
        return says("a" if "Sort" in asked else [1, 2, 3])
    if "sheep" in asked:
        return "7" if "many" in asked else "many"
    return f"answer to {request.text[-30:]}"


KINDS = ["rounds", "agents", "chat", "votes", "streams", "calls", "assistant", "reasks"]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_block_that_is_broken_off_at_each_request_comes_to_the_same(tmp_path, kind):
    calm, shop = Dying(replies, every=0), Shop()
    with use_llm(calm.llm()):
        wanted = await getattr(shop, kind)()
    dying, again, deaths = Dying(replies), Shop(), 0
    while True:
        try:
            with use_llm(FallbackLLM(dying.llm(), dying.llm())), durable(tmp_path / "runs.sqlite", "k"):
                found = await getattr(again, kind)()
            break
        except asyncio.CancelledError:
            deaths += 1
            assert deaths < 60
    if kind != "calls":  # whose prompt has the time in it
        assert found == wanted
        assert sorted(dying.answered) == sorted(calm.answered)
    assert len(dying.answered) == len(calm.answered)
    assert deaths
    assert sorted(again.done) == sorted(shop.done)
    silent = Dying(replies, every=1)
    with use_llm(silent.llm()), durable(tmp_path / "runs.sqlite", "k"):
        assert await getattr(again, kind)() == found
    assert len(again.done) == len(shop.done)
    assert "" not in set().union(*again.keys.values(), set())


# --- one call, in all its ways -------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path):
    return tmp_path / "made" / "here" / "runs.sqlite"


class Till:
    """A function with a till for a tool; `sell` runs it in a block."""

    asked_before = 0

    def __init__(self, path, work=None, *, confirm=None, policy="report", **options):
        self.path = path
        self.runs = []

        @tool(confirm=confirm is not None, **options)
        def pay(amount: int, context: ToolContext) -> str:
            """Pay."""
            self.runs.append(context.idempotency_key)
            return work(len(self.paid)) if work else f"paid {amount}"

        @tool
        def look() -> str:
            """Look."""
            self.runs.append("look")
            return "seen"

        @llm_function(toolkit=[pay, look], toolkit_confirm=confirm, on_tool_error=policy)
        async def sell(order: str) -> str:
            """Sell."""

        self.function = sell

    @property
    def paid(self):
        return [run for run in self.runs if run != "look"]

    async def sell(self, *, order="tea", key="k", **options):
        replies = [tool_calls(("pay", {"amount": 3}), ("look", {})), self.said]
        with use_llm(ScriptedLLM(*replies[self.asked_before :])), durable(self.path, key, **options):
            return await self.function.call(order)

    @staticmethod
    def said(request):
        return next(message["content"] for message in request.messages if message["role"] == "tool")


def killed(_):
    raise asyncio.CancelledError  # as if the process had died while the tool was at work


async def interrupted(till, **options):
    with pytest.raises(asyncio.CancelledError):
        await till.sell(**options)
    till.asked_before = 1


async def test_a_result_tells_what_was_given_again_and_costs_what_was_paid(path):
    till = Till(path)
    with budget(requests=2):
        first = await till.sell()
    with budget(requests=0):
        again = await till.sell()
    assert (first.value, first.replayed) == (again.value, []) == ("paid 3", [])
    assert again.replayed == ["reply 1", "tool pay", "tool look", "reply 2"]
    assert (again.cost, again.tries, again.usage.input_tokens) == (0.0, 0, first.usage.input_tokens)
    assert (again.trace_id, again.text, again.messages[-1]) == (first.trace_id, first.text, first.messages[-1])
    assert (await till.sell(key="other")).replayed == []
    assert (len(till.runs), len(set(till.paid))) == (4, 2)


async def test_changed_arguments_and_options_are_asked_again(path):
    asked = ScriptedLLM(lambda _: str(len(asked.calls)), repeat=True)

    @llm_function
    async def count(thing: str) -> int:
        """Count {what}."""

    async def counted():
        with use_llm(asked), durable(path, "k"):
            found = [await count("a"), await count("a"), await count("b")]
            found.append(await count.with_options(temperature=0.5)("a"))
            return [*found, await count("a", _template_params={"what": "sheep"})]

    assert await counted() == await counted() == [1, 2, 3, 4, 5]
    with use_llm(asked), durable(path, "k"):
        assert [await count("b"), await count("c"), await count("b"), await count("a")] == [3, 6, 7, 1]


@llm_function
async def ask(thing: str) -> str:
    """Ask."""


@llm_function(max_reasks=0)
async def count(thing: str) -> int:
    """Count."""


async def test_concurrent_calls_come_in_any_order(path):
    model = ScriptedLLM(lambda request: request.text, repeat=True)

    async def one(thing, wait):
        await asyncio.sleep(wait)
        return await ask(thing)

    found, told = [], []
    for waits in ((0.0, 0.0, 0.0), (0.02, 0.01, 0.0)):
        with use_llm(model), watching(lambda _, event: told.append(event)), durable(path, "k"):
            found.append(await asyncio.gather(*(one(name, wait) for name, wait in zip("abc", waits, strict=True))))
    assert found[0] == found[1]
    assert len(model.calls) == len(set(found[0])) == 3
    assert [event.run.restarts for event in told if hasattr(event, "run")] == [0, 0, 0, 1, 1, 1]


async def test_an_unreadable_answer_is_asked_for_again_only_where_it_ended_the_block(path):
    model = ScriptedLLM("many", "8", "9")

    async def caught():
        with use_llm(model), durable(path, "caught"):
            try:
                return await count("a")
            except ResponseParseError:
                return await count("b")

    assert [await caught(), await caught()] == [8, 8]
    with pytest.raises(ResponseParseError), use_llm(ScriptedLLM("many")), durable(path, "left"):
        await count("a")
    with use_llm(model), durable(path, "left"):
        assert await count("a") == 9


async def test_a_form_that_was_refused_is_not_asked_for_again(path):
    refusal = BadRequest("m", status=400, body="response_format is not supported", param="response_format")
    profile = replace(GENERIC, native=True)
    with use_llm(ScriptedLLM(refusal, says(7), profile=profile)), durable(path, "k"):
        first = await count.call("a")
    with use_llm(ScriptedLLM(profile=profile)), durable(path, "k"):
        again = await count.call("a")
    assert first.value == again.value == 7
    assert (again.output_mode, again.downgrades) == (first.output_mode, first.downgrades)
    assert first.downgrades


# --- once ----------------------------------------------------------------------------------------------------


def killed_once(runs):
    return killed(runs) if runs == 1 else "paid"


async def test_a_tool_that_had_begun_is_run_again_under_the_same_key(path):
    till = Till(path, killed_once)
    await interrupted(till)
    assert (await till.sell()).value == "paid"
    assert (len(till.paid), len(set(till.paid))) == (2, 1)


@pytest.mark.parametrize(("result", "told", "runs"), [("receipt 7", "receipt 7", 1), (RUN_AGAIN, "paid", 2)])
async def test_a_once_tool_is_not_run_again_before_an_answer(path, result, told, runs):
    till = Till(path, killed_once, once=True)
    await interrupted(till)
    for _ in range(2):
        with pytest.raises(OutcomeUnknown, match="answer") as caught:
            await till.sell()
    (waits,) = paused(path)
    error = caught.value
    assert (error.key, error.tool, error.arguments) == ("k", "pay", {"amount": 3})
    facts = {"key": "k", "call_id": error.call_id, "tool": "pay", "arguments": {"amount": 3}, "why": "outcome"}
    assert waits == {**facts, "since": waits["since"]}
    assert len(till.paid) == 1
    answer(path, "k", error.call_id, result)
    assert paused(path) == []
    with pytest.raises(UsageError, match="has been answered"):
        answer(path, "k", error.call_id, result)
    assert (await till.sell()).value == told
    till.asked_before = 2
    assert (await till.sell()).value == told
    assert len(till.paid) == runs
    with pytest.raises(UsageError, match="nothing waits"):
        answer(path, "k", error.call_id, result)


async def test_what_is_known_never_to_have_run_may_be_lost_again(path):
    till = Till(path, killed, once=True)
    await interrupted(till)
    for runs in (1, 2):
        with pytest.raises(OutcomeUnknown) as caught:
            await till.sell()
        assert len(till.paid) == runs
        answer(path, "k", caught.value.call_id, RUN_AGAIN)
        await interrupted(till)


def found_sync(amount: int, context: ToolContext) -> str:
    return f"found {amount} {context.idempotency_key != ''}"


async def found_async(amount: int) -> str:
    return f"found {amount} True"


def found_trouble(amount: int) -> str:
    raise OSError("no bank")


@pytest.mark.parametrize("recover", [found_sync, found_async, lambda: ABSTAIN, found_trouble])
async def test_recover_finds_out_what_a_once_tool_has_done(path, recover):
    till = Till(path, killed, once=True, recover=recover)
    await interrupted(till)
    if recover in {found_sync, found_async}:
        for till.asked_before in (1, 2):
            assert (await till.sell()).value == "found 3 True"
    else:
        with pytest.raises(OutcomeUnknown) as caught:
            await till.sell()
        assert (type(caught.value.__cause__) is OSError) == (recover is found_trouble)
    assert len(till.paid) == 1


async def test_a_tool_that_raised_has_finished(path):
    def work(_):
        raise ModelRetry("closed")

    reported, raising = Till(path, work, once=True), Till(path, lambda _: 1 // 0, policy="raise")
    for reported.asked_before, raising.asked_before in ((0, 0), (2, 1)):
        assert (await reported.sell()).value == "closed"
        with pytest.raises(ToolFailed, match="ZeroDivision"):
            await raising.sell(key="raising")
    assert len(raising.paid) == len(reported.paid) == 1


# --- pauses --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "told"), [(True, "paid 3"), (False, "was not run"), ("Give a voucher.", "Give a voucher.")]
)
async def test_a_run_waits_for_an_answer_from_elsewhere(path, said, told):
    till = Till(path, confirm=lambda name, arguments: arguments["amount"] < 3 or pause_run(name, arguments))
    for till.asked_before in (0, 1):
        with pytest.raises(RunPaused, match="pay") as caught:
            await till.sell()
        assert till.runs == ["look"]
    assert caught.value.pending == paused(path)
    (waits,) = paused(path)
    assert (waits["tool"], waits["arguments"], waits["why"]) == ("pay", {"amount": 3}, "confirm")
    for wrong in (RUN_AGAIN, 3, None):
        with pytest.raises(UsageError, match="True, False or a text"):
            answer(path, "k", waits["call_id"], wrong)
    answer(path, "k", waits["call_id"], said)
    found = await till.sell()
    assert told in found.value
    till.asked_before = 2
    assert (await till.sell()).value == found.value
    assert len(till.paid) == (said is True)


@pytest.mark.parametrize(
    ("data", "told"),
    [({"answer": False, "result": None}, False), ({"result": 0}, 0), ({"result": None}, None), ({"run_again": True}, RUN_AGAIN),
     *[(wrong, UsageError) for wrong in ({}, {"answer": None}, {"answer": True, "result": 1}, {"run_again": []})]],
)  # fmt: skip
def test_an_answer_in_json_says_one_thing(data, told):
    if told is not UsageError:
        assert told_answer(data) == told
        return
    with pytest.raises(UsageError, match="give one of"):
        told_answer(data)


async def test_an_approval_is_no_result(path):
    till = Till(path, killed_once, confirm=pause_run, once=True)
    with pytest.raises(RunPaused) as caught:
        await till.sell()
    (waits,) = caught.value.pending
    answer(path, "k", waits["call_id"], True)
    till.asked_before = 1
    with pytest.raises(asyncio.CancelledError):
        await till.sell()
    with pytest.raises(OutcomeUnknown):
        await till.sell()
    answer(path, "k", waits["call_id"], RUN_AGAIN)
    assert (await till.sell()).value == "paid"


async def test_without_a_block_there_is_no_pause(path):
    with use_llm(ScriptedLLM(tool_calls(("pay", {"amount": 3})))), pytest.raises(UsageError, match="durable"):
        await Till(path, confirm=pause_run).function("tea")


@pytest.mark.parametrize("is_caught", [False, True])
async def test_a_pause_passes_through_outer_tools_which_count_as_not_begun(path, is_caught):
    till = Till(path, confirm=pause_run)
    outer = []

    @tool(once=True, confirm=True)
    async def agent(order: str) -> str:
        """Hand over."""
        outer.append(order)
        try:
            return await till.function(order)
        except RunPaused:
            if is_caught:
                return "it failed"
            raise

    @llm_function(toolkit=[agent, till.function.as_tool("helper")], toolkit_confirm=pause_run)
    async def boss(order: str) -> str:
        """Lead."""

    async def led(*replies):
        with use_llm(ScriptedLLM(*replies)), durable(path, "k"):
            return await boss("tea")

    pay = tool_calls(("pay", {"amount": 3}))
    with pytest.raises(RunPaused) as caught:
        await led(tool_calls(("agent", {"order": "tea"}), ("helper", {"order": "ham"})), pay)
    assert sorted(each["tool"] for each in caught.value.pending) == ["agent", "pay"]
    assert outer == []
    answer(path, "k", next(each["call_id"] for each in paused(path) if each["tool"] == "agent"), True)
    with pytest.raises(RunPaused) as caught:
        await led(pay)
    assert len(caught.value.pending) == 2
    for waits in paused(path):
        answer(path, "k", waits["call_id"], True)
    assert await led("done", "done", "all done") == "all done"
    assert outer == ["tea", "tea"]
    assert len(till.paid) == 2


# --- what no decorator stands around -------------------------------------------------------------------------


async def test_the_raw_loop_and_the_callers_of_the_assistant_are_kept_too(path, monkeypatch):
    monkeypatch.setattr("SimpleLLMFunc.journal.log_file.token_bytes", bytes)
    shop, model = Shop(), ScriptedLLM(tool_calls(("look", {"thing": "tea"})), "one", "two")
    for _ in range(2):
        with durable(path, "k"):
            messages = [{"role": "user", "content": "hello"}]
            said = [raw.text async for raw in execute_llm(model, messages, None, {"look": shop.look}, 1)]
            told = await LLMCaller(model).invoke([{"role": "user", "content": "again"}])
            assert (said, told["content"]) == (["", "one"], "two")
    assert shop.keys == {"look tea": {"c59ff4f3ae94f7e72588e7cdd8b17250"}}  # so that a later version finds it


async def test_the_memory_of_the_assistant_keeps_an_exchange_once(path, tmp_path):
    memory = SqliteMemory(tmp_path / "memory.sqlite")
    for _ in range(2):  # as after a crash: the assistant is another one, the block the same
        helper = AIAssistant(llm=ScriptedLLM("black", repeat=True), memory=memory, language="en")
        with durable(path, "k"):
            for _ in range(2):  # said twice is kept twice
                await helper.process_query("Which tea?", "s", "ann")
    assert [message["content"] for message in await memory.history("ann", "s")] == ["Which tea?", "black"] * 2


async def test_no_key_that_the_library_knows_is_in_the_file(path):
    key = "canary-7f3e9a1c5d"
    model = OpenAICompatible("m", api_key=key, base_url="http://127.0.0.1:9/v1")
    till = Till(path, lambda _: f"the key is {key}")
    assert model.model_name
    await till.sell()
    with closing(sqlite3.connect(path)) as connection, connection:
        kept = str(connection.execute("SELECT * FROM steps").fetchall())
    assert "the key is" in kept
    assert key not in kept
    shown = []

    @tool(once=True)
    def show(text: str) -> None:
        shown.append(text)

    @llm_function(toolkit=[show])
    async def tell(order: str) -> str:
        """Tell."""

    for replies in ([tool_calls(("show", {"text": key})), "end"], []):
        with use_llm(ScriptedLLM(*replies)), durable(path, "shown"):
            assert await tell("all") == "end"
    assert shown == [key]


# --- the block itself ----------------------------------------------------------------------------------------


async def test_a_key_is_run_by_one_at_a_time_and_another_beside_it(path):
    failures = []

    def elsewhere(key):
        try:
            with durable(path, key):
                pass
        except CheckpointError as error:
            failures.append((key, str(error)))

    with durable(path, "a"):
        with pytest.raises(UsageError, match="inside another"), durable(path, "b"):
            pass
        for key in ("a", "b"):
            thread = threading.Thread(target=elsewhere, args=(key,))  # it carries no context
            thread.start()
            await asyncio.to_thread(thread.join)
        with pytest.raises(CheckpointError, match="goes on already"):
            forget(path, "a")
    assert [key for key, _ in failures] == ["a"]
    assert "goes on already" in failures[0][1]


@contextmanager
def full(connection):
    with transaction(connection):
        yield
        raise sqlite3.OperationalError("the disk is full")


async def test_a_block_goes_on_where_a_step_did_not_fit_on_the_disk(path, monkeypatch):
    ask = async_decorated(str, ScriptedLLM("lost", "kept"))
    for error in (CheckpointError, None):
        with durable(path, "k"), monkeypatch.context() as patch:
            if error is not None:
                patch.setattr("SimpleLLMFunc.journal.log_file.transaction", full)
                with pytest.raises(error, match="the disk is full"):
                    await ask("a")
                patch.undo()
            assert await ask("b") == "kept"


def test_arguments_that_cannot_be(path):
    for wrong in ({"key": ""}, {"key": 3}, {"key": "k", "sync": {}}, {"key": "k", "on_change": ["ignore"]}):
        with pytest.raises(UsageError):
            durable(path, **wrong)
    with durable(path, "k"):
        next(path.parent.glob("*.sqlite.*.lock")).unlink()  # a lock that is gone already is no error
    for use in (durable(path, "\ud800").__enter__, lambda: forget(path, "\ud800"), lambda: prune(path, "7d")):
        with pytest.raises(UsageError):
            use()
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(CheckpointError, match="Restore a copy"):
        forget(path, "k")


async def test_calls_that_are_left_behind_are_told(path):
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def late(_):
        begun.set()
        await may_end.wait()
        return "late"

    with use_llm(ScriptedLLM(late)), durable(path, "k"):
        task = asyncio.create_task(ask("a"))
        await begun.wait()
    may_end.set()
    with pytest.raises(UsageError, match="was left"):
        await task


def test_sync_code_and_what_carries_the_context(path):
    @llm_function
    def told(thing: str) -> str:
        """Tell."""

    model = ScriptedLLM(lambda request: request.text, repeat=True)
    for _ in range(2):
        with use_llm(model), durable(path, "k", sync="full"):
            found = [told("a"), copy_context().run(told, "b"), "".join(told.stream("c"))]
    assert len(model.calls) == 3
    assert len(set(found)) == 3
    for sync, level in {"normal": 1, "full": 2}.items():
        with closing(JournalFile(path, sync=sync)) as file, file.connection() as opened:
            assert opened.execute("PRAGMA synchronous").fetchone() == (level,)


@forks
def test_a_forked_process_is_outside_of_the_block(path):
    @llm_function
    def told(thing: str) -> str:
        """Tell."""

    block = durable(path, "k")

    def asked():
        with pytest.raises(UsageError, match="forked inside the durable block 'k'"):
            told("b")
        with durable(path, "own"):
            told("b")
        block.__exit__(None, None, None)
        with pytest.raises(CheckpointError, match="goes on already"), durable(path, "k"):
            raise AssertionError("the parent still runs it")

    with use_llm(ScriptedLLM("said", repeat=True)):
        for _ in range(2):
            with block:
                told("a")
                assert in_child(asked) == "None"
                result = told.call("c")
    assert result.replayed == ["reply 1"]
    assert {path.with_name(name).stat().st_mode & 0o777 for name in (path.name, f"{path.name}.steps")} == {0o600}
    with use_llm(ScriptedLLM("said")), block, pytest.raises(CheckpointError, match="was taken away"):
        path.rename(path.with_name("elsewhere"))  # where processes fork, an open file may be moved
        told("d")


async def test_a_map_needs_a_checkpoint_of_its_own(path, tmp_path):
    with use_llm(ScriptedLLM("said", repeat=True)) as model, durable(path, "k"):
        with pytest.raises(UsageError, match="checkpoint"):
            await ask.map(["a"])
        report = await ask.map(["a", "b"], checkpoint=tmp_path / "rows.sqlite")
        assert await ask("a") == "said"
    assert [row.value for row in report.rows] == ["said", "said"]
    assert len(model.calls) == 3


def version(docstring):
    space = {"llm_function": llm_function, "__name__": "shop"}
    exec(f"@llm_function\nasync def ask(thing: str) -> str:\n    '''{docstring}'''", space)
    return space["ask"]


async def test_a_function_that_has_changed_is_not_mixed_up_with_what_it_was(path):
    with use_llm(ScriptedLLM("old")), durable(path, "k"):
        await version("Ask.")("a")
    with use_llm(ScriptedLLM("new")) as model:
        words = r"'ask' has changed.* was version [0-9a-f]{16} and is [0-9a-f]{16}"
        with pytest.raises(CheckpointError, match=words), durable(path, "k"):
            await version("Ask again.")("b")
        assert model.calls == []
        with durable(path, "k"):
            assert await version("Ask.").with_options(toolkit=[killed_tool])("a") == "new"
        with durable(path, "k", on_change="restart"):
            assert await version("Ask.")("a") == "old"
    for model in (ScriptedLLM("newest", "newest too"), ScriptedLLM()):
        with use_llm(model), durable(path, "k", on_change="restart"):
            assert [await version("Ask again.")("a") for _ in range(2)] == ["newest", "newest too"]


@tool
def killed_tool() -> str:
    """Do nothing."""


async def test_what_has_finished_may_be_forgotten(path):
    till = Till(path)
    await till.sell()
    assert prune(path, older_than=3600) == 0
    await till.sell(key="other")
    assert (forget(path, "other"), forget(path, "other")) == (True, False)
    assert (await till.sell(key="other")).replayed == []
    assert prune(path, older_than=timedelta(0)) == 2
    assert (await till.sell()).replayed == []
    assert not list(path.parent.glob("*.sqlite.*.lock"))
    with use_llm(ScriptedLLM("said")), pytest.raises(ZeroDivisionError), durable(path, "left"):
        print(await ask("a") * (1 // 0))
    assert prune(path, older_than=0) == 1  # not the one that was left
    with use_llm(ScriptedLLM()), durable(path, "left"):
        assert await ask("a") == "said"
    assert prune(path, older_than=0) == 1
    for use in (paused, lambda at: answer(at, "k", "1", True), lambda at: forget(at, "k"), lambda at: prune(at, 0)):
        with pytest.raises(CheckpointError, match="there is no journal"):
            use(path.with_name("none.sqlite"))
    lock = path.with_name(f"{path.name}.lock")
    lock.unlink(missing_ok=True)
    lock.mkdir()  # as where the folder may only be read
    with pytest.raises(CheckpointError, match="mind the rights"):
        paused(path)


async def test_a_run_that_goes_on_is_one_run_in_a_trace_store_with_what_it_has_cost(path, tmp_path, monkeypatch):
    monkeypatch.setattr(ScriptedLLM, "price", lambda *_: 0.5)
    store = TraceStore(tmp_path / "traces.sqlite", interval=0.01)
    with store:
        for times in range(3):
            till, told = Till(path, killed if times == 0 else None), []
            till.asked_before = times
            with watching(store), watching(lambda _, event, told=told: told.append(event)):
                if times == 0:
                    await interrupted(till)
                else:
                    await till.sell()
            assert store.flush()
            (run,) = store.reader.runs(RunQuery()).runs
            assert (run.status, run.turns, run.cost) == (("ok", 2, 1.0) if times else ("cancelled", 1, 0.5))
        replayed = [type(event).__name__ for event in told if getattr(event, "replayed", False)]
        assert [event.reply.usage.cost for event in told if hasattr(event, "usage")] == [0.5] * 3  # as it was paid
        assert replayed == ["ReplyReceived", "ToolCallFinished", "ToolCallFinished", "ReplyReceived"]
        detail = store.reader.run(run.id)
        assert detail.restarts == 2
        assert [turn.turn for turn in detail.turns] == [1, 2]
        assert [call.name for call in detail.tool_calls] == ["pay", "look"]
