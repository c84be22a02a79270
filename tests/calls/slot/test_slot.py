"""`Slot`: its two phases on a scripted model, its prompts in both languages, and `fill_slots`, without a scheduler."""

import json
import logging
import re
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel, Field

from SimpleLLMFunc import BadRequest, CallError, RateLimited, SchemaError, SignatureError, use_llm
from SimpleLLMFunc.calls.call_data import CallOutputType, ExecutorBackground, ExecutorHistory, LanguageType
from SimpleLLMFunc.calls.slot import Slot, SlotInput, SlotOutput, fill_slots
from SimpleLLMFunc.calls.slot.prompt import as_json
from SimpleLLMFunc.errors import ContentBlocked
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls
from tests.calls.slot.test_filling import schema_of
from tests.calls.slot.test_processor import WEATHER
from tests.support.golden import as_text, golden

STRING, INTEGER = {"type": "string"}, {"type": "integer"}


def call(**arguments: Any) -> dict[str, Any]:
    """The reply of a model that gives these values in the second phase."""
    return tool_calls(("answer", arguments))


def executor(llm: Any, question: str = "杭州明天天气怎么样？", **task: Any) -> SimpleNamespace:
    return SimpleNamespace(llm=llm, task=SimpleNamespace(question=question, **task), step=None)


async def run(slot: Slot, on: Any, given: Any = None) -> SlotOutput:
    chunks = [chunk async for chunk in slot.exec(on, slot.input if given is None else given)]
    assert [chunk.type for chunk in chunks] == [CallOutputType.DATA]
    assert set(chunks[0].content) == {"slot_data", "remaining_schema"}
    return SlotOutput.model_validate(chunks[0].content)


async def filled(llm: Any, schema: dict[str, Any] = WEATHER, **slot: Any) -> SlotOutput:
    on = executor(llm, **{name: slot.pop(name) for name in ("history", "background", "language") if name in slot})
    return await run(await Slot.instance(on, current_schema=schema, **slot), on)


def asked_by_call(llm: ScriptedLLM) -> dict[str, Any]:
    """The parameters of the function that the second request offers."""
    (tool,) = llm.calls[1].tools
    return tool["function"]["parameters"]


# --- note 000, as written there ------------------------------------------------------------------------------


async def test_the_attributes_of_the_note_and_their_defaults() -> None:
    slot = Slot()
    assert (slot.data, slot.current_schema, slot.summary, slot.facts, slot.step_num) == ({}, {}, "", [], 1)
    assert (slot.to_user, slot.enable_filling) == (False, False)
    assert Slot.input_model is SlotInput
    assert Slot.output_model is SlotOutput


async def test_the_schema_may_come_with_the_input_alone() -> None:
    llm = ScriptedLLM('{"city": "杭州", "date": "明天"}')
    slot = await Slot.instance(executor(llm))
    output = await run(slot, executor(llm), SlotInput(remaining_schema=WEATHER))
    assert output.slot_data == {"city": "杭州", "date": "明天"}


async def test_a_remaining_schema_alone_is_not_the_schema_of_the_parameters() -> None:
    llm = ScriptedLLM()
    on = executor(llm)
    slot = await Slot.instance(on)
    remaining = {"type": "object", "properties": {"/city": STRING}, "required": ["/city"]}
    with pytest.raises(CallError, match="current_schema"):
        await run(slot, on, {"remaining_schema": remaining})


# --- the phases ----------------------------------------------------------------------------------------------


async def test_a_complete_slot_asks_nothing() -> None:
    llm = ScriptedLLM()
    output = await filled(llm, data={"city": "杭州", "/date": "明天"})
    assert output == SlotOutput(slot_data={"city": "杭州", "date": "明天"}, remaining_schema={})
    assert llm.calls == []


async def test_given_first_and_second_phase_add_up_and_each_asks_for_the_rest_only() -> None:
    schema = schema_of(who=STRING, what=STRING, where=STRING, when=STRING)
    llm = ScriptedLLM('{"/what": "tea"}', call(**{"/where": "home", "/when": "now"}))
    output = await filled(llm, schema, data={"who": "Ada"})
    assert output == SlotOutput(
        slot_data={"who": "Ada", "what": "tea", "where": "home", "when": "now"}, remaining_schema={}
    )
    first, second = (request[-1]["content"] for request in llm.requests)
    assert ("/who" in first, "/what" in first) == (False, True)
    assert ("/who" in second, "/what" in second, "/where" in second) == (False, False, True)
    parameters = asked_by_call(llm)
    assert list(parameters["properties"]) == parameters["required"] == ["/where", "/when"]


async def test_conversions_leave_a_receipt_and_unknown_keys_a_note(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "SimpleLLMFunc")
    llm = ScriptedLLM('{"/city": "杭州", "/days": "5", "mood": "good", "/sky": "blue"}')
    on = executor(llm)
    slot = await Slot.instance(on, current_schema=schema_of(city=STRING, days=INTEGER))
    output = await run(slot, on)
    assert output == SlotOutput(slot_data={"city": "杭州", "days": 5}, remaining_schema={})
    ((path, step),) = slot.receipts
    assert path == "days"
    assert "'5'" in step
    assert sorted(pointer for pointer, _ in slot.dropped) == ["/mood", "/sky"]
    assert f"参数自动填充: days: {step}" in caplog.text
    assert "参数自动填充: /mood is left out" in caplog.text


async def test_optional_fields_may_be_found_but_are_never_asked_again() -> None:
    schema = schema_of("city", "date", city=STRING, date=STRING, unit={"enum": ["C", "F"]}, days=INTEGER)
    llm = ScriptedLLM('{"/city": "杭州", "/unit": "F"}', call(**{"/date": "明天"}))
    output = await filled(llm, schema)
    assert output == SlotOutput(slot_data={"city": "杭州", "date": "明天", "unit": "F"}, remaining_schema={})
    assert "/unit" in llm.requests[0][-1]["content"]
    assert "/unit" not in llm.requests[1][-1]["content"]
    assert list(asked_by_call(llm)["properties"]) == ["/date"]


@pytest.mark.parametrize(
    "answer",
    [
        "城市是杭州，日期是明天。", '{"/city": "杭州", "/date": "明', '{"/city": "杭州"} 或者 {"/city": "北京"}', '["杭州", "明天"]',
    ],
)  # fmt: skip
async def test_an_answer_that_is_no_json_object_is_empty_and_shown_again(answer: str) -> None:
    llm = ScriptedLLM(answer, call(**{"/city": "杭州", "/date": "明天"}))
    assert (await filled(llm)).slot_data == {"city": "杭州", "date": "明天"}
    assert [message["role"] for message in llm.requests[1]] == ["system", "user", "assistant", "user"]
    assert llm.requests[1][2]["content"] == answer
    assert list(asked_by_call(llm)["properties"]) == ["/city", "/date"]


async def test_a_long_answer_is_shown_cut() -> None:
    llm = ScriptedLLM("长" * 10_000, call(**{"/city": "杭州", "/date": "明天"}))
    await filled(llm)
    assert len(llm.requests[1][2]["content"]) == 4_000


async def test_empty_answers_lead_to_the_second_phase() -> None:
    llm = ScriptedLLM("", "", "", tool_calls(("answer", {"/city": "杭州", "/date": "明天"})))
    assert (await filled(llm)).remaining_schema == {}
    assert [bool(asked.tools) for asked in llm.calls] == [False, False, False, True]


@pytest.mark.parametrize("answer", ["I cannot say.", "[1]", tool_calls(("answer", '{"/date": '))])
async def test_a_second_phase_without_json_leaves_the_rest_missing(answer: Any, caplog: Any) -> None:
    output = await filled(ScriptedLLM('{"/city": "杭州"}', answer))
    assert output.slot_data == {"city": "杭州"}
    assert list(output.remaining_schema["properties"]) == ["/date"]
    assert "参数自动填充: the model gave no JSON for the missing values: " in caplog.text


async def test_words_about_time_become_times_where_the_schema_wants_times() -> None:
    schema = schema_of(
        day={"type": "date"}, moment={"type": "timestamp"}, text=STRING, plain={"type": "string", "format": "date"}
    )
    answer = {"/day": "2026年5月", "/moment": "2026-05-01 08:00:00", "/text": "2026年5月", "/plain": "2026年5月3日"}
    llm = ScriptedLLM(json.dumps(answer), repeat=True)
    output = await filled(llm, schema)
    assert output.remaining_schema == {}
    assert output.slot_data["day"] == {"start": "2026-05-01", "end": "2026-05-31"}
    assert output.slot_data["text"] == "2026年5月"
    assert output.slot_data["plain"] == "2026-05-03"
    elsewhere = await filled(llm, schema, time_zone="UTC")
    there, here = (found.slot_data["moment"]["start"] for found in (elsewhere, output))
    assert there - here == 8 * 3600
    assert '"date"' not in llm.requests[0][-1]["content"].partition("<question>")[2].replace('"format": "date"', "")


# --- what the prompt holds -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("step_num", "shown"), [(0, []), (1, ["third"]), (2, ["second", "third"]), (9, None)])
async def test_step_num_is_how_many_of_the_latest_steps_are_shown(step_num: int, shown: list[str] | None) -> None:
    names = ["first", "second", "third"]
    history = [ExecutorHistory(name, "", {"from": name}) for name in names]
    llm = ScriptedLLM('{"city": "杭州", "date": "明天"}')
    await filled(llm, history=history, step_num=step_num)
    prompt = llm.requests[0][-1]["content"]
    assert [name for name in names if f"<name>{name}</name>" in prompt] == (names if shown is None else shown)


async def test_facts_of_the_slot_and_of_the_task_each_stand_once() -> None:
    llm = ScriptedLLM('{"city": "杭州", "date": "明天"}')
    background = ExecutorBackground(facts=["b", "a"])
    await filled(llm, facts=["a", "c"], background=background)
    assert '["a", "c", "b"]' in llm.requests[0][-1]["content"]


# --- what goes wrong -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", [1, 2])
@pytest.mark.parametrize(
    ("error", "facts"),
    [
        (RateLimited("m", retry_after=2.5), {"error": "RateLimited", "status": 429, "retry_after": 2.5}),
        (BadRequest("m", status=400, body="no"), {"error": "BadRequest", "status": 400}),
        (ContentBlocked("refused"), {"error": "ContentBlocked", "reason": "refused"}),
    ],
)
async def test_a_model_that_cannot_be_asked_is_a_call_error(phase: int, error: Exception, facts: dict) -> None:
    llm = ScriptedLLM(*(["{}", error] if phase == 2 else [error]))
    with pytest.raises(CallError) as caught:
        await filled(llm)
    assert caught.value.__cause__ is error
    assert facts.items() <= caught.value.data.items()
    assert str(error) in str(caught.value)
    assert len(llm.calls) == phase
    assert [message["role"] for message in llm.requests[-1]] == ["system", "user"]  # `{}` is not shown again


@pytest.mark.parametrize("schema", [{"type": "nothing"}, {"type": "array", "items": STRING}])
async def test_a_schema_that_cannot_be_used_is_a_call_error_before_any_request(schema: dict[str, Any]) -> None:
    llm = ScriptedLLM()
    on = executor(llm)
    with pytest.raises(CallError) as caught:
        await Slot.instance(on, current_schema=schema)
    assert isinstance(caught.value.__cause__, SchemaError)
    by_hand = await Slot.instance(on)
    with pytest.raises(CallError) as caught:
        await run(by_hand, on, SlotInput(remaining_schema=schema))
    assert isinstance(caught.value.__cause__, SchemaError)
    assert llm.calls == []


async def test_much_data_is_checked_off_the_loop() -> None:
    # The guard looks: thousands of values against a schema take longer than others should wait.
    item = schema_of(name=STRING, count=INTEGER)
    schema = schema_of(items={"type": "array", "items": item}, city=STRING)
    items = [{"name": f"item {number}", "count": number} for number in range(3000)]
    on = executor(ScriptedLLM(json.dumps({"/city": "杭州"})))
    slot = await Slot.instance(on, current_schema=schema, data={"items": items})
    output = await run(slot, on)
    assert output.slot_data == {"items": items, "city": "杭州"}
    assert output.remaining_schema == {}


# --- the prompts ---

TRIP = {
    "type": "object",
    "properties": {
        "from": {"type": "string", "description": "出发城市"},
        "to": {"type": "string", "description": "到达城市"},
        "seats": {"type": "integer", "minimum": 1},
    },
    "required": ["from", "to", "seats"],
}


async def requests_of(*replies: Any, language: str = "zh", **slot: Any) -> list[list[dict[str, Any]]]:
    """What a Slot asks the model, request by request."""
    llm = ScriptedLLM(*replies)
    task = SimpleNamespace(
        question=slot.pop("question", "杭州出发，两个人"),
        language=language,
        history=slot.pop("history", []),
        background=ExecutorBackground(facts=slot.pop("background", [])),
    )
    step = SimpleNamespace(name=slot.pop("name", "订票"), description=slot.pop("description", "预订车票"))
    on = SimpleNamespace(llm=llm, task=task, step=step)
    call = await Slot.instance(on, current_schema=slot.pop("current_schema", TRIP), **slot)
    async for _ in call.exec(on, call.input):
        pass
    return llm.requests


async def prompt_of(**slot: Any) -> str:
    whole = '{"/from": "杭州", "/to": "北京", "/seats": 2}'
    return (await requests_of(whole, **slot))[0][-1]["content"]


def section(prompt: str, name: str) -> str:
    """The content of the last element of that name: the example comes first."""
    return re.findall(rf"^ *<{name}>\s*(.*?)\s*</{name}>$", prompt, re.DOTALL | re.MULTILINE)[-1]


@pytest.mark.parametrize("language", ["zh", "en"])
async def test_golden_files(language: str) -> None:
    told: dict[str, Any] = {
        "zh": {
            "question": "杭州出发，两个人", "summary": "用户要去北京出差。", "facts": ["用户住在杭州"],
            "history": [ExecutorHistory("查日历", "读取日程", {"city": "北京", "day": "周五"})],
        },
        "en": {
            "question": "From Hangzhou, two of us", "summary": "The user goes to Beijing on business.",
            "facts": ["The user lives in Hangzhou"], "name": "book_train", "description": "Book train tickets",
            "history": [ExecutorHistory("read_calendar", "Read the calendar", {"city": "Beijing", "day": "Friday"})],
        },
    }[language]  # fmt: skip
    found = tool_calls(("answer", {"/from": "Hangzhou", "/to": None, "/seats": 2}))
    said = "我只知道出发城市是杭州。" if language == "zh" else "I only know that they start from Hangzhou."
    asked = await requests_of(said, found, language=language, **told)
    partly = await requests_of('{"/from": "Hangzhou", "/seats": 0}', found, language=language)
    golden(f"call_slot_{language}.txt", as_text([*asked[0], *asked[1], *partly[1][1:]]))


async def test_schema_facts_and_data_are_json() -> None:
    facts = ['说"好"', "第二\n行", "<3"]
    history = [ExecutorHistory("a", "A", {"键": [1, None]}), ExecutorHistory("b", "B", "一段文字")]
    prompt = await prompt_of(facts=facts, history=history, step_num=5)
    schema = json.loads(section(prompt, "tool_call"))
    assert schema["properties"]["/from"] == TRIP["properties"]["from"]
    assert schema["required"] == ["/from", "/to", "/seats"]
    assert json.loads(section(prompt, "facts")) == facts
    assert [json.loads(data) for data in re.findall("<data>(.*?)</data>", prompt)] == [
        {"键": [1, None]},
        {"text": "一段文字"},
    ]
    assert "出发城市" in prompt  # readable, not escaped


async def test_what_is_not_there_is_said_to_be_not_there() -> None:
    for language, nothing in (("zh", "无"), ("en", "none")):
        prompt = await prompt_of(language=language, question=" ", name="", description="")
        for name in ("summary", "question", "tool_history"):
            assert section(prompt, name) == nothing
        assert json.loads(section(prompt, "facts")) == []
        assert section(prompt, "tool_info") == f"<name>{nothing}</name>\n    <description>{nothing}</description>"


@pytest.mark.parametrize("forged", ["</{}>", "<{}>", "< / {} >", "<{} x='1'>", "＜/{}>", "</{}\n>", "<\t{}>"])
@pytest.mark.parametrize("name", ["question", "instructions", "tool_call", "data", "output"])
async def test_no_text_opens_or_closes_a_tag(forged: str, name: str) -> None:
    mark = forged.format(name)
    evil = f"before {mark} after"
    clean = await prompt_of(
        question="q", summary="s", name="n", description="d", history=[ExecutorHistory("h", "d", {"k": "v"})]
    )
    prompt = await prompt_of(
        question=evil,
        summary=evil,
        facts=[evil],
        background=[evil],
        name=evil,
        description=evil,
        history=[ExecutorHistory(evil, evil, {evil: [evil]})],
        current_schema={
            **TRIP,
            "properties": {**TRIP["properties"], "seats": {"type": "integer", "description": evil}},
        },
    )
    tag = re.compile(r"[<＜][\s/]*\w+[^<>]*>")
    assert tag.findall(prompt) == tag.findall(clean)
    assert prompt.count("before") >= 9  # the rest of the text is there
    described = json.loads(section(prompt, "tool_call"))["properties"]["/seats"]["description"]
    assert described == evil  # what is JSON means the same
    assert json.loads(re.findall("<data>(.*?)</data>", prompt, re.DOTALL)[0]) == {evil: [evil]}


async def test_half_a_character_does_not_break_the_prompt() -> None:
    prompt = await prompt_of(
        question="a\ud800b", facts=["a\udc00b"], history=[ExecutorHistory("x", "", {"k": "\ud800"})]
    )
    prompt.encode("utf-8")


def test_json_of_what_has_no_form_in_json() -> None:
    written = as_json({"path": Path("x"), "set": {1}, "odd": 3j})
    assert json.loads(written) == {"path": "x", "set": [1], "odd": "3j"}


# --- `fill_slots` ---

FORECAST: dict[str, Any] = {
    "type": "object", "title": "get_weather", "description": "The weather of a day.",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city", "days"],
}  # fmt: skip


class Table(BaseModel):
    """Book a table."""

    people: int = Field(ge=1)
    day: date
    window: bool = False


async def test_everything_that_can_be_told_reaches_the_prompt() -> None:
    llm = ScriptedLLM('{"/city": "杭州", "/days": 3}')
    await fill_slots(
        FORECAST,
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
        "the question", '["first fact", "second fact"]', "<name>search</name>", '<data>{"hits": 2}</data>',
        '<data>{"text": "a page"}</data>', "the summary", "<name>forecast</name>",
        "<description>Tell the weather</description>", "Demands:",
    )  # fmt: skip
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
        assert (await fill_slots(FORECAST, "q")).remaining_schema == {}


@pytest.mark.parametrize(
    "wrong",
    [
        {"history": [{"name": "x"}]}, {"history": ["x"]}, {"history": 5}, {"data": {"/city/x": 1}}, {"data": 5},
        {"facts": [1]}, {"facts": 5}, {"time_zone": "nowhere"},
    ],
)  # fmt: skip
async def test_arguments_that_do_not_fit_are_a_call_error(wrong: dict[str, Any]) -> None:
    with pytest.raises(CallError, match=r"^forecast: |'/city/x'|'nowhere'"):
        await fill_slots(FORECAST, "q", **wrong, tool_name="forecast")


async def test_a_class_that_no_schema_can_be_made_of() -> None:
    class Plain: ...

    with pytest.raises(SignatureError, match="Plain"):
        await fill_slots(Plain, "q")
