"""The data that Calls pass around; the outputs of earlier steps, and conversations, read."""

import logging

import pytest
from pydantic import Field, ValidationError

from SimpleLLMFunc.calls.call_data import (
    CallInfo,
    CallOutputChunk,
    CallOutputType,
    CallVars,
    DataBase,
    ExecutorHistory,
    LanguageType,
    conversation_messages,
    read_history,
)


def test_the_values_are_the_contracts():
    assert [kind.value for kind in CallOutputType] == ["text", "data", "error"]
    assert [language.value for language in LanguageType] == ["zh", "en"]


@pytest.mark.parametrize(
    ("given", "language"),
    [
        ("zh", LanguageType.CHINESE), ("zh-Hans-CN", LanguageType.CHINESE), ("zh_TW", LanguageType.CHINESE),
        ("中文", LanguageType.CHINESE), ("en", LanguageType.ENGLISH), ("en_US.UTF-8", LanguageType.ENGLISH),
        (" English ", LanguageType.ENGLISH), (LanguageType.ENGLISH, LanguageType.ENGLISH),
    ],
)  # fmt: skip
def test_a_language_is_known_by_its_spellings(given, language, caplog):
    caplog.set_level(logging.WARNING, "SimpleLLMFunc")
    assert LanguageType.of(given) is language
    assert not caplog.records


def test_fields_take_the_spellings_too(caplog):
    caplog.set_level(logging.WARNING, "SimpleLLMFunc")
    assert CallVars(language="en-GB").language is LanguageType.ENGLISH
    assert CallVars(language="eo").language is LanguageType.CHINESE
    assert "'eo'" in caplog.text


def test_positions_serve_as_well_as_names():
    assert CallInfo("大模型", "问") == CallInfo(name="大模型", description="问")
    assert CallOutputChunk("text", "a") == CallOutputChunk(type=CallOutputType.TEXT, content="a")
    assert ExecutorHistory("s", "d", {"a": 1}) == ExecutorHistory(
        step_name="s", step_description="d", output_data={"a": 1}
    )
    assert ExecutorHistory("s").output_data == ""


def test_more_values_than_fields_are_an_error():
    with pytest.raises(TypeError, match="CallInfo takes name, description; 3 values"):
        CallInfo("n", "d", "more")
    with pytest.raises(TypeError, match="name"):
        CallInfo("n", name="m")
    with pytest.raises(ValidationError, match="description"):
        CallInfo("n")


@pytest.mark.parametrize(
    "made",
    [
        CallInfo("n", "d"),
        CallOutputChunk("data", {"a": [1]}),
        ExecutorHistory("s", "d", "text"),
        ExecutorHistory("s", "", {}),
    ],
    ids=lambda made: type(made).__name__,
)
def test_json_and_back(made):
    assert type(made).model_validate_json(made.model_dump_json()) == made
    assert type(made).model_validate({**made.model_dump(), "of a later version": 1}) == made


def test_a_text_step_is_its_text_and_can_be_read_as_data():
    assert ExecutorHistory("s", "", "whole text").output_data == "whole text"
    assert ExecutorHistory("s", "", "whole text").data == {"text": "whole text"}
    assert ExecutorHistory("s", "", {"k": 1}).data == {"k": 1}


# --- steps by name -------------------------------------------------------------------------------------------


def test_the_latest_of_a_name_has_it_and_order_is_kept():
    history = [ExecutorHistory("search", "", "1"), ExecutorHistory("llm"), ExecutorHistory("search", "", "2")]
    steps = CallVars.steps_of(history)
    assert list(steps) == ["search#1", "llm", "search"]
    assert steps["search"].output_data == "2"
    assert steps["search#1"].output_data == "1"


def test_no_step_is_lost_to_another_whose_name_looks_like_a_number():
    history = [ExecutorHistory("a", "", "1"), ExecutorHistory("a#1", "", "2"), ExecutorHistory("a", "", "3")]
    assert sorted(step.output_data for step in CallVars.steps_of(history).values()) == ["1", "2", "3"]
    assert CallVars.steps_of(history)["a#1"].output_data == "2"


@pytest.mark.parametrize(("number", "names"), [(0, []), (-1, []), (2, ["b", "c"]), (9, ["a", "b", "c"])])
def test_latest_steps(number, names):
    steps = {name: ExecutorHistory(name) for name in "abc"}
    latest = CallVars(step_data=steps, step_order=["a", "gone", "b", "c"]).latest(number)
    assert [step.step_name for step in latest] == names


# --- the schema of a model -----------------------------------------------------------------------------------


class Weather(DataBase):
    city: str = Field(description="城市名称")
    day: str = "today"


def test_override_replaces_and_adds_for_that_call_only():
    plain = Weather.model_json_schema()
    override = {"city": {"enum": ["Rome"]}, "unit": {"type": "string"}}
    schema = Weather.model_json_schema(override=override)
    assert schema["properties"] == {
        "city": {"enum": ["Rome"]},
        "day": plain["properties"]["day"],
        "unit": {"type": "string"},
    }
    assert schema["required"] == ["city"]
    assert Weather.model_json_schema() == plain
    schema["properties"]["city"]["enum"].append("Oslo")
    assert override["city"] == {"enum": ["Rome"]}


def test_the_other_arguments_are_pydantics():
    class Aliased(DataBase):
        city: str = Field(alias="城市")

    assert list(Aliased.model_json_schema()["properties"]) == ["城市"]
    assert list(Aliased.model_json_schema(by_alias=False)["properties"]) == ["city"]
    assert Aliased(city="a") == Aliased(城市="a")


# --- the outputs of earlier steps, by path ---


HISTORY = {
    "weather": ExecutorHistory("weather", "", {"city": "杭州", "days": [{"t": 31}, {"t": 28}], "a/b": 1, "m~n": 2, "": 3, "none": None}),
    "llm": ExecutorHistory("llm", "", "It is hot."),
    "io/read": ExecutorHistory("io/read", "", {"text": "of data"}),
}  # fmt: skip


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("weather/city", "杭州"), ("/weather/city", "杭州"), ("weather/days/1/t", 28), ("weather/days/2/t", None),
        ("weather/days/-1", None), ("weather/days/first", None), ("weather/days/²", None),
        ("weather/days/" + "9" * 5000, None), ("weather/a~1b", 1), ("weather/m~0n", 2), ("weather/m~n", 2),
        ("weather/", 3), ("weather/none", None), ("weather/none/deeper", None), ("weather/city/0", None),
        ("llm", "It is hot."), ("llm/text", "It is hot."), ("llm/text/more", None), ("llm/other", None),
        ("io~1read/text", "of data"), ("missing/key", None), ("", None), ("/", None),
    ],
)  # fmt: skip
def test_path(path, value):
    assert read_history(path, HISTORY) == value


def test_a_list_of_steps_serves_and_the_latest_of_a_name_counts():
    steps = [ExecutorHistory("a", "", {"n": 1}), ExecutorHistory("a", "", {"n": 2})]
    assert read_history("a/n", steps) == 2
    assert read_history("a#1/n", steps) == 1


@pytest.mark.parametrize("path", [None, 3, ["weather"], b"weather"])
@pytest.mark.parametrize("history", [HISTORY, None, 5, "text"])
def test_never_raises(path, history):
    assert read_history(path, history) is None
    assert read_history("weather/city/x", history) is None


# --- a conversation as messages ---


def said(role, content):
    return {"role": role, "content": content}


def test_messages_and_questions_with_answers_are_records():
    conversation = [said("user", "a"), {"question": "b", "answer": "c"}, said("assistant", "d"), {"question": "e"}]
    pairs = [("user", "a"), ("user", "b"), ("assistant", "c"), ("assistant", "d"), ("user", "e")]
    assert conversation_messages(conversation) == [said(*pair) for pair in pairs]


@pytest.mark.parametrize(
    ("latest", "kept"), [(1, "de"), (2, "bcde"), (3, "abcde"), (5, "abcde"), (0, "abcde"), (-1, "abcde")]
)
def test_the_latest_records_count_a_question_with_its_answer_as_one(latest, kept):
    conversation = [said("user", "a"), {"question": "b", "answer": "c"}, {"question": "d", "answer": "e"}]
    assert [each["content"] for each in conversation_messages(conversation, latest=latest)] == [*kept]


@pytest.mark.parametrize("role", ["system", "developer", "tool"])
def test_instructions_and_tools_do_not_come_out_of_a_history(role, caplog):
    with caplog.at_level(logging.WARNING, "SimpleLLMFunc"):
        assert conversation_messages([said(role, "obey"), said("user", "a")]) == [said("user", "a")]
    assert not caplog.records
    assert conversation_messages([said("tool", "x")], roles=("tool",)) == [said("tool", "x")]


@pytest.mark.parametrize(
    "item",
    [
        said("System", "x"), said("system ", "x"), said("USER", "x"), said("function", "x"), said('user"><x', "x"),
        {"role": None, "question": "x"}, {"role": ["user"], "content": "x"}, {"content": "x"}, {}, "text", None, 5, [said("user", "x")],
    ],
)  # fmt: skip
def test_what_is_no_record_is_left_out_with_a_warning(item, caplog):
    with caplog.at_level(logging.WARNING, "SimpleLLMFunc"):
        assert conversation_messages([item, said("user", "a"), item]) == [said("user", "a")]
    assert [record.getMessage() for record in caplog.records] == [
        "left out of the conversation: 2 items that cannot be read as messages."
    ]


def test_parts_of_a_message_are_joined_and_images_named():
    parts = [
        {"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "input_audio"}, {}, "there", 5,
    ]  # fmt: skip
    [message] = conversation_messages([said("user", parts)])
    assert message["content"] == "see\n[image]\n[input_audio]\n[part]\nthere\n"
    assert conversation_messages([said("user", 5), said("user", {"text": "x"})]) == []
