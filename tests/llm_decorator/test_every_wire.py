"""What a function can do, it can do on each wire: the same function, only the model is another one."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from SimpleLLMFunc import Audio, ConfigError, File, ImgPath, ImgUrl, llm_function, tool
from tests.llm_decorator.golden_calls import PNG
from tests.support.functions import async_decorated, weather
from tests.support.referees import CHECKS
from tests.support.wires import MODELS, WIRES, has_results, wired


class Trip(BaseModel):
    city: str
    days: int


@tool(confirm=True)
def book(city: str) -> str:
    """Book a flight."""
    return f"booked {city}"


planner = partial(async_decorated, Trip)


TRIP = '{"city": "Rome", "days": 3}'


@pytest.mark.parametrize("mode", ["auto", "native", "tool", "prompt"])
@pytest.mark.parametrize("name", WIRES)
async def test_a_typed_answer_comes_in_every_mode(name, mode):
    def answer(body: dict[str, Any]) -> Any:
        names = json.dumps(body.get("tools") or [])
        if '"final_answer"' in names or mode == "tool":
            (tool_name,) = set(_tool_names(body))
            return {"calls": [(tool_name, json.loads(TRIP))]}
        return TRIP

    model = {"messages": "claude-sonnet-4-5"}.get(name, MODELS[name])  # which may be made to call a tool
    async with wired(name, answer=answer, model=model) as (llm, server):
        assert await planner(llm, output_mode=mode)("Rome, a weekend and a day") == Trip(city="Rome", days=3)
    _check(name, server)


def _tool_names(body: dict[str, Any]) -> list[str]:
    tools = [each for tool in body["tools"] for each in tool.get("functionDeclarations", [tool.get("function", tool)])]
    return [each["name"] for each in tools]


@pytest.mark.parametrize("name", WIRES)
async def test_values_grow_and_items_come_one_by_one(name):
    async with wired(name, {"texts": [TRIP]}, {"texts": ['["a", "b", "c"]']}) as (llm, _):
        values = [value async for value in planner(llm).stream("Rome")]
        assert values[-1] == Trip(city="Rome", days=3)
        assert len(values) > 1

        @llm_function(llm)
        async def letters(text: str) -> AsyncIterator[str]:
            """Give letters."""
            yield ""

        assert [each async for each in letters("x")] == ["a", "b", "c"]


@pytest.mark.parametrize("how", ["native", "json"])
@pytest.mark.parametrize("name", WIRES)
async def test_parallel_tools_their_errors_and_consent(name, how):
    calls = [("weather", {"city": "Rome"}), ("weather", {"city": "Atlantis"}), ("book", {"city": "Rome"})]

    def answer(body: dict[str, Any]) -> Any:
        if how == "json":
            if "Result of" in json.dumps(body):
                return json.dumps({"answer": json.loads(TRIP)})
            return json.dumps([{"tool": tool_name, "arguments": given} for tool_name, given in calls])
        return TRIP if has_results(body) else {"calls": calls}

    asked: list[Any] = []
    async with wired(name, answer=answer) as (llm, server):
        ask = planner(llm, toolkit=[weather, book], tools=how, toolkit_confirm=lambda *of: asked.append(of) or True)
        result = await ask.call("Rome?")
    assert (result.value.city, len(result.tool_calls)) == ("Rome", 3)
    assert asked == [("book", {"city": "Rome"})]
    last = json.dumps(server.requests[-1].body)
    for told in ("sun in Rome", "no such city", "booked Rome"):
        assert told in last
    _check(name, server)


DATA = {"png": PNG, "pdf": b"%PDF-1.4\n%%EOF\n", "txt": "naïve".encode(), "wav": b"RIFF\x24\0\0\0WAVEfmt "}
TAKES: dict[str, set[str]] = {
    "chat": {"png", "pdf", "txt", "wav", "url"}, "responses": {"png", "pdf", "txt", "url"},
    "messages": {"png", "pdf", "txt", "url"}, "gemini": {"png", "pdf", "txt", "wav"},
}  # fmt: skip


@pytest.mark.parametrize("kind", ["png", "pdf", "txt", "wav", "url"])
@pytest.mark.parametrize("name", WIRES)
async def test_what_is_seen_read_and_heard_where_the_service_takes_it(name, kind, tmp_path):
    path = tmp_path / f"given.{kind}"
    path.write_bytes(DATA.get(kind, b""))
    given = {"png": ImgPath, "pdf": File, "txt": File, "wav": Audio}.get(kind, lambda _: ImgUrl("https://a.b/c.png"))(
        path
    )
    async with wired(name, {"texts": ["a dot"]}) as (llm, server):

        @llm_function(llm)
        async def look(it: ImgPath | ImgUrl | File | Audio) -> str:
            """Say what it is."""

        if kind not in TAKES[name]:
            with pytest.raises(ConfigError):
                await look(given)
            assert server.requests == []
            return
        assert await look(given) == "a dot"
    sent = json.dumps(server.requests[0].body, ensure_ascii=False)
    plain = name == "messages" and kind == "txt"  # a document of text
    shown = {"url": "https://a.b/c.png"}.get(kind) or base64.b64encode(DATA[kind]).decode()
    assert ("naïve" if plain else shown) in sent
    _check(name, server)


@pytest.mark.parametrize("name", WIRES)
async def test_a_choice_and_a_map(name):
    async with wired(name, answer=lambda body: "sad" if "rain" in json.dumps(body) else "glad") as (llm, _):
        mood = async_decorated(Literal["glad", "sad"], llm, output_mode="choice")
        report = await mood.map(["sun", "rain"])
    assert [row.value for row in report.rows] == ["glad", "sad"]


def _check(name: str, server: Any) -> None:
    """The SDK's types take every request."""
    for request in server.requests:
        if name in CHECKS:
            CHECKS[name](request.body)
