"""Attack 24: a model that never comes to an end costs what the caller allowed, and the error says which limit it was."""

import pytest

from SimpleLLMFunc import OpenAICompatible, budget, llm_function
from SimpleLLMFunc.errors import (
    BudgetExceeded,
    DeadlineExceeded,
    EmptyResponseError,
    OutputTruncated,
    ResponseParseError,
    ServerUnavailable,
    SimpleLLMFuncError,
    ToolCallLimitExceeded,
)
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.testing import tool_calls as calling
from tests.support.functions import async_function_of, chat
from tests.support.server import LoopbackServer, completion, json_answer, text_answer, tool_calls_answer

FOREVER = {
    "calls a tool": calling(("look", {"where": "x"})),
    "calls many tools": calling(*[("look", {"where": str(number)}) for number in range(50)]),
    # Otherwise each time: the same calls with the same results are stopped sooner, see tests/base/run/test_repetition.py.
    "calls a tool that is none": lambda request: calling((f"nothing_{len(request.messages)}", {})),
    "calls with bad arguments": lambda request: calling(("look", "{" * len(request.messages))),
    "answers nonsense": "not a number",
    "answers nothing": "",
    "thinks": "<think>hm</think>",
    "cuts": {"content": "[1, 2", "finish_reason": "length"},
    "cuts a call": {**calling(("look", '{"where": "')), "finish_reason": "length"},
}


def with_tool(llm, **options):
    runs = []

    def look(where: str) -> str:
        """Look."""
        runs.append(where)
        return f"nothing, {len(runs)} times"

    ask = async_function_of(llm, list[int], toolkit=[look], **options)
    return ask, runs


@pytest.mark.parametrize(
    ("name", "options", "requests", "error"),
    [
        ("calls a tool", {}, 6, ToolCallLimitExceeded),
        ("calls a tool", {"max_tool_calls": 2}, 3, ToolCallLimitExceeded),
        ("calls a tool", {"max_tool_calls": 0}, 1, ToolCallLimitExceeded),
        ("calls many tools", {"max_tool_calls": 2}, 3, ToolCallLimitExceeded),
        ("calls a tool that is none", {}, 6, ToolCallLimitExceeded),
        ("calls with bad arguments", {}, 6, ToolCallLimitExceeded), ("answers nonsense", {}, 3, ResponseParseError),
        ("answers nonsense", {"max_reasks": 0}, 1, ResponseParseError), ("answers nothing", {}, 3, EmptyResponseError),
        ("answers nothing", {"retry_times": 0}, 1, EmptyResponseError), ("thinks", {}, 3, EmptyResponseError),
        ("cuts", {}, 1, OutputTruncated), ("cuts a call", {}, 1, OutputTruncated),
    ],
)  # fmt: skip
@pytest.mark.parametrize("view", ["call", "stream"])
async def test_attack_24_the_default_limits_hold_and_say_which_they_are(name, options, requests, error, view):
    llm = ScriptedLLM(FOREVER[name], repeat=True)
    ask, runs = with_tool(llm, **options)
    with pytest.raises(error) as caught:
        if view == "call":
            await ask.call("x")
        else:
            _ = [value async for value in ask.stream("x")]
    assert len(llm.calls) == requests
    limit = {ToolCallLimitExceeded: "max_tool_calls", OutputTruncated: "max_tokens"}.get(error)
    assert limit is None or limit in str(caught.value)
    assert len(runs) <= 50 * 2


@pytest.mark.parametrize("name", FOREVER)
@pytest.mark.parametrize(
    ("limits", "unit"), [({"requests": 2}, "requests"), ({"tokens": 200}, "tokens"), ({"usd": 0.000001}, "usd")]
)
async def test_attack_24_a_budget_holds_with_any_function(name, limits, unit, monkeypatch):
    llm = ScriptedLLM(FOREVER[name], repeat=True, model_name="gpt-4o-mini")
    monkeypatch.setattr(type(llm), "price", lambda self, usage, model="": usage.total_tokens * 1e-7)
    ask, _ = with_tool(llm, max_tool_calls=10**6, max_reasks=10**6, retry_times=10**6)
    with budget(**limits) as spent, pytest.raises((BudgetExceeded, OutputTruncated)) as caught:
        await ask("x")
    assert len(llm.calls) < 20
    if isinstance(caught.value, BudgetExceeded):
        assert caught.value.unit == unit
        assert unit in str(caught.value).lower()
        assert getattr(spent, unit) <= caught.value.limit * 20


@pytest.mark.parametrize("name", [name for name in FOREVER if not name.startswith("cuts")])
@pytest.mark.parametrize("by", ["deadline", "budget"])
async def test_attack_24_time_holds(name, by):
    llm = ScriptedLLM(FOREVER[name], repeat=True)
    options = {"deadline": 0.3} if by == "deadline" else {}
    ask, _ = with_tool(llm, max_tool_calls=10**6, max_reasks=10**6, retry_times=10**6, **options)
    with pytest.raises((DeadlineExceeded, BudgetExceeded)) as caught:
        if by == "budget":
            with budget(seconds=0.3):
                await ask("x")
        else:
            await ask("x")
    assert "0.3" in str(caught.value)


@pytest.mark.parametrize(
    "answer",
    [
        tool_calls_answer([("look", {"where": "x"})]),
        text_answer("not a number"),
        text_answer(""),
        lambda request: json_answer({"error": {"message": "busy"}}, status=503, headers={"retry-after": "0"}),
        lambda request: json_answer(
            completion(
                "x" * 10_000, usage={"prompt_tokens": 10**9, "completion_tokens": 10**9, "total_tokens": 2 * 10**9}
            )
        ),
    ],
    ids=["tools", "nonsense", "empty", "busy", "greedy"],
)
async def test_attack_24_every_request_on_the_wire_is_counted(answer):
    async with LoopbackServer(handler=answer) as server:
        llm = OpenAICompatible("m", base_url=server.base_url, max_retries=10**6, retry_delay=0.0001)
        ask, _ = with_tool(llm, max_tool_calls=10**6, max_reasks=10**6, retry_times=10**6, deadline=20)
        with budget(requests=7) as spent, pytest.raises(SimpleLLMFuncError) as caught:
            await ask("x")
        assert len(server.requests) <= 7
        assert spent.requests == len(server.requests)
        assert isinstance(caught.value, (BudgetExceeded, ServerUnavailable))


async def test_attack_24_a_chat_has_limits_too():
    llm = ScriptedLLM(calling(("look", {})), repeat=True)

    def look() -> str:
        """Look."""
        return "nothing"

    talk = chat(llm, toolkit=[look], max_tool_calls=3)
    with pytest.raises(ToolCallLimitExceeded):
        _ = [pair async for pair in talk([], "x")]
    assert len(llm.calls) == 4


async def test_attack_24_agents_of_agents_share_what_is_left():
    """Each asks the other for ever; the budget around the first holds for all of them."""
    llm = ScriptedLLM(calling(("helper", {"question": "x"})), repeat=True)

    @llm_function(llm, max_tool_calls=10**6)
    async def helper(question: str) -> str:
        """Help."""

    agent = helper.with_options(toolkit=[helper.as_tool()])
    for _ in range(3):
        agent = helper.with_options(toolkit=[agent.as_tool()])
    with budget(requests=25), pytest.raises(SimpleLLMFuncError):
        await agent("x")
    assert len(llm.calls) <= 25
