"""What a server on the official package asks while its tool runs: a model's answer, a person's."""

import asyncio
from typing import Any

import pytest

from SimpleLLMFunc import BudgetExceeded, budget, llm_function
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls
from SimpleLLMFunc.tools.mcp import tools_from_mcp
from SimpleLLMFunc.tools.mcp.messages import MAX_SAMPLINGS, CallAsked, RefusedError
from tests.tools.mcp.test_client import SERVER, by_name

SAMPLE = tool_calls(("sample", {"text": "name a colour", "times": 1}))
BOOK = tool_calls(("book", {}))


def read_by_model(result: Any) -> str:
    return "\n".join(str(message["content"]) for message in result.messages if message["role"] == "tool")


def asker(llm: ScriptedLLM, tools: Any, **options: Any) -> Any:
    @llm_function(llm, toolkit=[*tools], **options)
    async def ask(question: str) -> str:
        """Answer."""

    return ask


async def test_the_function_s_own_model_answers_within_its_traces() -> None:
    llm = ScriptedLLM(SAMPLE, "blue", "done")
    async with tools_from_mcp(command=SERVER) as tools:
        result = await asker(llm, tools).call("?")
    assert "it said blue; scripted, assistant" in read_by_model(result)
    asked = llm.calls[1]
    assert [(each["role"], each["content"]) for each in asked.messages] == [
        ("system", "Be short."),
        ("user", "name a colour"),
    ]
    assert {name: asked.params[name] for name in ("max_tokens", "temperature")} == {
        "max_tokens": 50,
        "temperature": 0.5,
    }


async def test_a_budget_of_the_caller_holds_for_what_the_server_asks() -> None:
    llm = ScriptedLLM(SAMPLE, *["blue"] * 9)
    async with tools_from_mcp(command=SERVER) as tools:
        with budget(requests=1) as spent, pytest.raises(BudgetExceeded):
            await asker(llm, tools)("?")
    assert (spent.requests, len(llm.calls)) == (1, 1)


async def test_a_server_asks_so_often_and_no_more() -> None:
    often = tool_calls(("sample", {"text": "x", "times": MAX_SAMPLINGS + 1}))
    llm = ScriptedLLM(often, *["blue"] * MAX_SAMPLINGS, "done")
    async with tools_from_mcp(command=SERVER) as tools:
        result = await asker(llm, tools).call("?")
    assert f"at most {MAX_SAMPLINGS} requests" in read_by_model(result)


async def test_without_a_function_there_is_no_model_and_without_toolkit_confirm_no_person() -> None:
    async with tools_from_mcp(command=SERVER) as tools:
        with pytest.raises(Exception, match="no model to ask"):
            await by_name(tools)["sample"](text="x", times=1)
        result = await asker(ScriptedLLM(BOOK, "done"), tools).call("?")
    assert "no person can be asked here" in read_by_model(result)


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ({"row": 7}, "accept row=7 by_window=True"),
        ({"row": 7, "by_window": False}, "accept row=7 by_window=False"),
        ({"row": "seven"}, "decline None"),
        (True, "decline None"),  # nobody said which row
        (False, "decline None"),
        ("7", "decline None"),
        (ValueError("gone"), "decline None"),
    ],
)
async def test_a_person_fills_in_what_the_server_asks(said: Any, read: str) -> None:
    seen: list[Any] = []
    loop = asyncio.get_running_loop()

    async def confirm(tool: str, form: dict[str, Any]) -> Any:
        assert asyncio.get_running_loop() is loop
        seen.append((tool, form["message"], list(form["requestedSchema"]["properties"])))
        await asyncio.sleep(5.5 if said == {"row": 7} else 0)  # longer than the call may take
        if isinstance(said, Exception):
            raise said
        return said

    async with tools_from_mcp(command=SERVER, only=["book"], prefix="my_", timeout=5) as tools:
        llm = ScriptedLLM(tool_calls(("my_book", {})), "done")
        result = await asker(llm, tools, toolkit_confirm=confirm).call("?")
    assert read in read_by_model(result)
    assert seen == [("my_book", "Which seat?", ["row", "by_window"])]


async def test_who_is_asked_is_the_one_who_called() -> None:
    llm, other = (ScriptedLLM(SAMPLE, "blue", "done", model_name=name) for name in ("one", "two"))
    async with tools_from_mcp(
        command=SERVER, confirm=lambda _, given: {"row": 3} if "message" in given else True
    ) as tools:
        for each in (llm, other):
            assert f"blue; {each.model_name}" in read_by_model(await asker(each, tools).call("?"))
        # The callable of the connection goes before that of the function.
        result = await asker(ScriptedLLM(BOOK, "done"), tools, toolkit_confirm=lambda *_: False).call("?")
        assert "accept row=3" in read_by_model(result)


async def test_a_cancelled_call_takes_its_question_along() -> None:
    answered = asyncio.Event()

    async def thinks(*_: Any) -> bool:
        answered.set()
        try:
            await asyncio.sleep(60)
        finally:
            answered.clear()
        return True

    async with tools_from_mcp(command=SERVER) as tools:
        task = asyncio.create_task(asker(ScriptedLLM(BOOK, "done"), tools, toolkit_confirm=thinks)("?"))
        async with asyncio.timeout(30):
            await answered.wait()
            task.cancel()
            while answered.is_set():
                await asyncio.sleep(0.02)
        assert await by_name(tools)["hello"](name="x") == "hello x"


async def test_a_question_that_is_noted_after_its_call_has_ended_is_given_up() -> None:
    class Late(set[Any]):
        def add(self, question: Any) -> None:
            call.end()  # in the time between asking and noting
            super().add(question)

    async def thinks(*_: Any) -> bool:
        return await asyncio.sleep(60, True)

    async with asyncio.timeout(30) as limit:
        call = CallAsked("ask", thinks, limit)
        call._under_way = Late()
        with pytest.raises(RefusedError, match="over"):
            await call.answer("elicitation", {"message": "?", "requestedSchema": {"type": "object", "properties": {}}})
