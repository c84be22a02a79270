"""`fill_slots`: a Slot without a scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel, Field

from SimpleLLMFunc import CallError, ConfigError, LocalModel, SchemaError, SignatureError, use_llm
from SimpleLLMFunc.calls.call_data import ExecutorHistory, LanguageType
from SimpleLLMFunc.calls.slot import SlotOutput, fill_slots
from SimpleLLMFunc.runtime.sync import run_sync
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


async def test_both_phases_through_the_same_slot() -> None:
    llm = ScriptedLLM('{"/city": "杭州"}', tool_calls(("answer", {"/days": "3"})))
    found = await fill_slots(WEATHER, "杭州三天的天气", llm=llm)
    assert found == SlotOutput(slot_data={"city": "杭州", "days": 3}, remaining_schema={})
    assert "杭州三天的天气" in llm.requests[0][-1]["content"]
    assert list(llm.calls[1].tools[0]["function"]["parameters"]["properties"]) == ["/days"]


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


async def test_the_schema_names_the_tool_by_default() -> None:
    llm = ScriptedLLM('{"/city": "杭州", "/days": 3}')
    await fill_slots(WEATHER, "q", llm=llm)
    prompt = llm.requests[0][-1]["content"]
    assert "<name>get_weather</name>" in prompt
    assert "<description>The weather of a day.</description>" in prompt


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


async def test_a_dataclass_is_a_schema() -> None:
    @dataclass
    class Point:
        x: float
        y: float

    found = await fill_slots(Point, "x is one", llm=ScriptedLLM('{"x": 1, "y": 2}'), data={"y": 0.5})
    assert Point(**found.slot_data) == Point(1, 0.5)


async def test_what_is_complete_needs_no_model() -> None:
    found = await fill_slots(WEATHER, "q", data={"city": "杭州", "/days": 1})
    assert found == SlotOutput(slot_data={"city": "杭州", "days": 1}, remaining_schema={})


async def test_the_model_is_that_of_use_llm_where_none_is_given() -> None:
    with use_llm(ScriptedLLM('{"city": "杭州", "days": 1}')):
        assert (await fill_slots(WEATHER, "q")).remaining_schema == {}


async def test_no_model_at_all() -> None:
    with pytest.raises(CallError) as caught:
        await fill_slots(WEATHER, "q")
    assert isinstance(caught.value.__cause__, ConfigError)


def test_from_code_that_is_not_async() -> None:
    found = run_sync(fill_slots(WEATHER, "q", llm=ScriptedLLM('{"city": "杭州", "days": 1}')))
    assert found.slot_data == {"city": "杭州", "days": 1}


async def test_what_remains_can_be_given_later() -> None:
    llm = ScriptedLLM('{"/city": "杭州"}', tool_calls(("answer", {"/days": None})))
    found = await fill_slots(WEATHER, "杭州", llm=llm)
    assert list(found.remaining_schema["properties"]) == ["/days"]
    again = await fill_slots(WEATHER, "杭州", data={**found.slot_data, "/days": 2})
    assert again == SlotOutput(slot_data={"city": "杭州", "days": 2}, remaining_schema={})


async def test_an_unknown_language_is_chinese() -> None:
    llm = ScriptedLLM('{"city": "杭州", "days": 1}')
    await fill_slots(WEATHER, "q", llm=llm, language="fr")
    assert "要求" in llm.requests[0][-1]["content"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"history": [{"name": "x"}]},
        {"history": ["x"]},
        {"history": 5},
        {"data": {"/city/x": 1}},
        {"data": 5},
        {"facts": [1]},
        {"facts": 5},
        {"time_zone": "nowhere"},
    ],
)
async def test_arguments_that_do_not_fit_are_a_call_error(wrong: dict[str, Any]) -> None:
    with pytest.raises(CallError):
        await fill_slots(WEATHER, "q", **wrong)


@pytest.mark.parametrize("schema", [{"type": "string"}, {"type": "object", "properties": 5}, list[int], int])
async def test_a_schema_of_no_object(schema: Any) -> None:
    with pytest.raises(CallError) as caught:
        await fill_slots(schema, "q")
    assert isinstance(caught.value.__cause__, SchemaError)


async def test_a_class_that_no_schema_can_be_made_of() -> None:
    class Plain: ...

    with pytest.raises(SignatureError, match="Plain"):
        await fill_slots(Plain, "q")


@pytest.mark.heavy
@pytest.mark.local_model
@pytest.mark.timeout(120)
async def test_the_real_model_fills_and_what_it_fills_is_valid() -> None:
    schema = {
        "type": "object",
        "properties": {
            "city": {"type": "string", "maxLength": 30},
            "unit": {"enum": ["celsius", "fahrenheit"]},
            "days": {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 7}, "maxItems": 3},
        },
        "required": ["city", "unit", "days"],
    }
    llm = LocalModel(seed=1, threads=1)
    found = await fill_slots(
        schema, "The weather in Paris, in celsius?", llm=llm, data={"/days/0": 2}, language="en", tool_name="weather"
    )
    assert found.slot_data["days"] == [2]  # what was given stays
    assert set(found.slot_data) | {pointer[1:] for pointer in found.remaining_schema.get("properties", {})} == {
        "city",
        "unit",
        "days",
    }
    everything = {"city": "Paris", "/unit": "celsius", "/days/0": 2}
    again = await fill_slots(schema, "", data=everything)  # nothing is left to ask, so no model is needed
    assert again.slot_data == {"city": "Paris", "unit": "celsius", "days": [2]}


async def test_one_fact_as_a_text_is_one_fact() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    llm = ScriptedLLM('{"/city": "Bern"}')
    await fill_slots(schema, "q", llm=llm, facts="The user lives in Bern")
    assert '["The user lives in Bern"]' in llm.requests[0][-1]["content"]
