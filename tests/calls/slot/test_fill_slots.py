"""`fill_slots`: a Slot without a scheduler."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel, Field

from SimpleLLMFunc import CallError, SignatureError, use_llm
from SimpleLLMFunc.calls.call_data import ExecutorHistory, LanguageType
from SimpleLLMFunc.calls.slot import fill_slots
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls

WEATHER: dict[str, Any] = {
    "type": "object",
    "title": "get_weather",
    "description": "The weather of a day.",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
}


class Table(BaseModel):
    """Book a table."""

    people: int = Field(ge=1)
    day: date
    window: bool = False


async def test_everything_that_can_be_told_reaches_the_prompt() -> None:
    llm = ScriptedLLM('{"/city": "杭州", "/days": 3}')
    await fill_slots(
        WEATHER,
        "the question",
        llm=llm,
        facts=("first fact", "second fact"),
        history=[
            ExecutorHistory("search", "Search the web", {"hits": 2}),
            {"step_name": "read", "step_description": "Read a page", "output_data": "a page"},
        ],
        language=LanguageType.ENGLISH,
        summary="the summary",
        tool_name="forecast",
        tool_description="Tell the weather",
    )
    prompt = llm.requests[0][-1]["content"]
    told = (
        "the question",
        '["first fact", "second fact"]',
        "<name>search</name>",
        '<data>{"hits": 2}</data>',
        '<data>{"text": "a page"}</data>',
        "the summary",
        "<name>forecast</name>",
        "<description>Tell the weather</description>",
        "Demands:",
    )
    for text in told:
        assert text in prompt


async def test_a_pydantic_model_is_a_schema() -> None:
    llm = ScriptedLLM(
        '{"/people": "two", "/day": "2026年5月3日", "/window": true}', tool_calls(("answer", {"/people": 2}))
    )
    found = await fill_slots(Table, "Ein Tisch für zwei, am Fenster", llm=llm)
    assert found.remaining_schema == {}
    assert Table.model_validate(found.slot_data) == Table(people=2, day=date(2026, 5, 3), window=True)
    prompt = llm.requests[0][-1]["content"]
    assert "<name>Table</name>" in prompt
    assert "<description>Book a table.</description>" in prompt


async def test_the_model_is_that_of_use_llm_where_none_is_given() -> None:
    with use_llm(ScriptedLLM('{"city": "杭州", "days": 1}')):
        assert (await fill_slots(WEATHER, "q")).remaining_schema == {}


@pytest.mark.parametrize(
    "wrong",
    [
        {"history": [{"name": "x"}]}, {"history": ["x"]}, {"history": 5}, {"data": {"/city/x": 1}}, {"data": 5},
        {"facts": [1]}, {"facts": 5}, {"time_zone": "nowhere"},
    ],
)  # fmt: skip
async def test_arguments_that_do_not_fit_are_a_call_error(wrong: dict[str, Any]) -> None:
    with pytest.raises(CallError):
        await fill_slots(WEATHER, "q", **wrong)


async def test_a_class_that_no_schema_can_be_made_of() -> None:
    class Plain: ...

    with pytest.raises(SignatureError, match="Plain"):
        await fill_slots(Plain, "q")
