"""How a question ends before its time: cancelled in every phase, left at every item, out of time, out of money."""

import asyncio
import json
from typing import Any

import pytest

from SimpleLLMFunc.assistant.assistant import AIAssistant
from SimpleLLMFunc.assistant.memory.sqlite_memory import SqliteMemory
from SimpleLLMFunc.assistant.search.search import StaticSearch
from SimpleLLMFunc.base.events import ToolCallFinished, ToolCallStarted
from SimpleLLMFunc.errors import BudgetExceeded, DeadlineExceeded
from SimpleLLMFunc.interface.current import use_llm
from SimpleLLMFunc.interface.spending.budget import budget
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls
from SimpleLLMFunc.tools import tool
from tests.support.memories import Memories

FOUND = [{"title": "One", "url": "https://one.example", "content": "330 metres."}]
PHASES = ["history", "recall", "model", "detector", "search", "second model", "tool", "remember"]


class Staged:
    """An assistant that stops, for ever, in one phase of a question and tells when it is there."""

    def __init__(self, stops_in: str, **options: Any) -> None:
        self.stops_in = stops_in
        self.reached = asyncio.Event()
        self.kept: list[str] = []

        @tool
        async def look() -> str:
            """Look."""
            await self.phase("tool")
            return "seen"

        async def first(_: Any) -> Any:
            await self.phase("model")
            return tool_calls(("look", {})) if stops_in == "tool" else "I don't know."

        async def second(_: Any) -> str:
            await self.phase("second model")
            return "330 metres."

        async def detector(_: str) -> bool:
            await self.phase("detector")
            return True

        self.assistant = AIAssistant(
            ScriptedLLM(first, second), self, self, tools=[look], detector=detector, **{"memory_timeout": 60, **options}
        )

    async def phase(self, name: str) -> None:
        if name == self.stops_in:
            self.reached.set()
            await asyncio.Event().wait()

    async def history(self, user_id: str, session_id: str) -> list[Any]:
        await self.phase("history")
        return []

    async def recall(self, user_id: str, message: str, session_id: str) -> str:
        await self.phase("recall")
        return "- x"

    async def remember(self, user_id: str, message: str, answer: str, session_id: str) -> None:
        await self.phase("remember")
        self.kept.append(message)

    async def delete_user(self, user_id: str) -> None: ...

    async def search(self, query: str) -> dict[str, Any]:
        await self.phase("search")
        return {"answer": "", "results": FOUND}

    async def ask(self, *, stream: bool) -> None:
        if not stream:
            await self.assistant.process_query("Q?", session_id="s", user_id="u")
            return
        async for _ in self.assistant.stream_query("Q?", session_id="s", user_id="u"):
            pass

    def said(self) -> list[Any]:
        return [message["content"] for message in self.assistant.conversation("s", "u")[1:]]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("phase", PHASES)
async def test_cancelled_in_any_phase_no_task_is_left_and_no_half_of_a_turn(phase: str, stream: bool) -> None:
    staged = Staged(phase)
    question = asyncio.create_task(staged.ask(stream=stream))
    await staged.reached.wait()
    question.cancel()
    with pytest.raises(asyncio.CancelledError):
        await question
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert staged.kept == []
    # While the memory is writing, the answer stands already, and its turn is whole.
    assert staged.said() == (["Q?", "330 metres."] if phase == "remember" else [])


@pytest.mark.timeout(20)
@pytest.mark.parametrize("phase", PHASES)
async def test_the_deadline_covers_every_phase(phase: str) -> None:
    staged = Staged(phase, deadline=0.3, search_timeout=60)
    if phase in {"detector", "search", "remember"}:
        # There is an answer by then: it is given, without a second one, or without being remembered.
        await staged.ask(stream=True)
        assert staged.said() == ["Q?", "330 metres." if phase == "remember" else "I don't know."]
    else:
        with pytest.raises(DeadlineExceeded) as caught:
            await staged.ask(stream=True)
        assert caught.value.seconds == 0.3
        assert staged.said() == []
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_budget_of_requests_counts_the_second_answer() -> None:
    assistant = AIAssistant(ScriptedLLM("I don't know.", "unused"), StaticSearch(FOUND), tools=())
    with budget(requests=1) as spent, pytest.raises(BudgetExceeded):
        await assistant.process_query("Q?", session_id="s")
    assert spent.requests == 1
    assert assistant.conversation("s")[1:] == []


async def test_a_stream_may_be_left_at_every_item() -> None:
    @tool
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    def new() -> tuple[AIAssistant, Memories]:
        llm = ScriptedLLM(tool_calls(("add", {"a": 1, "b": 2}), content="Let me see."), "It is three.")
        memory = Memories()
        return AIAssistant(llm, memory=memory, tools=[add]), memory

    assistant, _ = new()
    whole = [item async for item in assistant.stream_query("Q?", session_id="s", user_id="u")]
    kinds = [type(item) for item in whole]
    assert ToolCallStarted in kinds
    assert ToolCallFinished in kinds
    for wanted in range(len(whole) + 1):
        assistant, memory = new()
        items = assistant.stream_query("Q?", session_id="s", user_id="u")
        seen = [await anext(items) for _ in range(wanted)]
        await items.aclose()
        assert [type(item) for item in seen] == kinds[:wanted]
        is_whole = wanted == len(whole)
        assert len(assistant.conversation("s", "u")) == (5 if is_whole else 1 if wanted else 0)
        assert memory.kept == ([("u", "Q?", "It is three.", "s")] if is_whole else [])
        assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_what_is_in_force_at_the_call_holds_for_the_stream_and_does_not_leak() -> None:
    with use_llm(ScriptedLLM("inner one", repeat=True)):
        items = AIAssistant(ScriptedLLM("own"), tools=(), deadline=5).stream_query("Q?")
    with use_llm(ScriptedLLM("outer")):
        first = await anext(items)
        assert (await AIAssistant(tools=()).process_query("Q?"))["response"] == "outer"
        rest = [item async for item in items if isinstance(item, str)]
    assert f"{first}{''.join(rest)}" == "inner one"


async def test_a_memory_asks_the_model_that_answered() -> None:
    own, current = ScriptedLLM("own"), ScriptedLLM("current", json.dumps([]))
    memory = SqliteMemory(":memory:", extract_every=2, summarize_every=0)
    with use_llm(current):
        result = await AIAssistant(own, memory=memory, tools=()).process_query("Q?", user_id="u")
    await memory.settle()
    memory.close()
    assert result["response"] == "current"
    assert (len(own.calls), len(current.calls)) == (0, 2)


# --- forgetting somebody who is asking -----------------------------------------------------------------------


async def test_a_user_who_goes_while_asking_is_answered_and_not_remembered() -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    async def slow(request: Any) -> str:
        started.set()
        await go_on.wait()
        return f"re: {request.text}"

    memory = SqliteMemory(":memory:")
    assistant = AIAssistant(ScriptedLLM(slow, repeat=True), memory=memory, tools=())
    going = asyncio.create_task(assistant.process_query("secret", session_id="s", user_id="u"))
    await started.wait()
    staying = asyncio.create_task(assistant.process_query("kept", session_id="s", user_id="v"))
    await asyncio.sleep(0)
    await assistant.delete_user("u")
    go_on.set()
    assert [(await task)["response"] for task in (going, staying)] == ["re: secret", "re: kept"]
    assert await memory.history("u", "s") == []
    assert len(await memory.history("v", "s")) == 2
    assert assistant.conversation("s", "u") == []
    await assistant.process_query("back again", session_id="s", user_id="u")
    assert len(await memory.history("u", "s")) == 2
    memory.close()


# --- two at once ---------------------------------------------------------------------------------------------


async def test_two_questions_at_once_in_one_session_are_both_kept_whole() -> None:
    llm = ScriptedLLM(lambda request: f"re: {request.text}", repeat=True)
    assistant = AIAssistant(llm, tools=())
    await asyncio.gather(*(assistant.process_query(f"q{number}", session_id="s") for number in range(5)))
    said = [str(message["content"]) for message in assistant.conversation("s")[1:]]
    assert sorted(said[::2]) == [f"q{number}" for number in range(5)]
    assert said[1::2] == [f"re: {question}" for question in said[::2]]
