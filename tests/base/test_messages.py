"""Messages built for the wire, read from replies, copied at the borders."""

from __future__ import annotations

import datetime
import enum
import math
import types
from collections import deque
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter

from SimpleLLMFunc.base.messages import (
    as_data,
    build_assistant_response_message,
    build_assistant_tool_message,
    build_multimodal_content,
    copied,
    extract_usage_from_response,
    render_value,
)
from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.type import (
    Audio,
    ChatCompletion,
    ChatMessage,
    File,
    FunctionCall,
    ImgPath,
    ImgUrl,
    Text,
    ToolCall,
    Usage,
)
from tests.support.referees import is_of_today

CALL = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q": 1}'}}
GEMINI = {**CALL, "extra_content": {"google": {"thought_signature": "sig"}}}


def reply(message: dict[str, Any], **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    return {"id": "r", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], **more}


def openai_reply(message: dict[str, Any], **more: Any) -> Any:
    from openai.types.chat import ChatCompletion as Theirs

    return Theirs.model_validate(reply(message, **more))


MAKES = (reply, lambda m, **more: ChatCompletion.from_dict(reply(m, **more)), openai_reply)


# --- copied ------------------------------------------------------------------------------------------------


def test_a_copy_shares_what_is_inside():
    image = object()
    assert copied([{"role": "user", "content": [{"type": "text", "x": image}]}])[0]["content"][0]["x"] is image


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(st.lists(st.dictionaries(st.text(max_size=5), JSON, max_size=3), max_size=3))
def test_a_copy_is_equal_and_its_own(messages):
    def containers(value: Any) -> list[int]:
        if not isinstance(value, dict | list):
            return []
        items = value.values() if isinstance(value, dict) else value
        return [id(value), *(each for item in items for each in containers(item))]

    copy = copied(messages)
    assert copy == messages
    assert not set(containers(copy)) & set(containers(messages))


# --- multimodal content ------------------------------------------------------------------------------------


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


@pytest.fixture
def png(tmp_path) -> ImgPath:
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 9)
    return ImgPath(tmp_path / "a.png")


def test_arguments_keep_their_order(png):
    url = ImgUrl("https://e.org/b.png", detail="low")
    arguments = {"before": "x", "picture": url, "between": 3, "more": [png, url], "text": Text("alone"), "last": [1]}
    pictures = [png.to_part(), url.to_part()]
    assert build_multimodal_content(arguments, {"picture": ImgUrl}) == [
        *(text("before: x"), url.to_part(), text("between: 3")), *pictures, text("alone"), text("last: [1]")
    ]  # fmt: skip


def test_none_and_excluded_arguments_are_left_out(png):
    arguments = {"history": [{"role": "user"}], "a": None, "picture": png, "b": "x", "many": (png, None, "and text")}
    parts = build_multimodal_content(arguments, {}, exclude_params=["history", "b"])
    assert parts == [png.to_part(), png.to_part(), text("many: and text")]


def test_pictures_in_lists_of_lists_and_pairs_are_shown(png):
    parts = build_multimodal_content({"named": [("left", png), ["right", [png]]], "nothing": [["x"]]}, {})
    shown = [text("named: left"), png.to_part(), text("named: right"), png.to_part()]
    assert parts == [*shown, text('nothing: [["x"]]')]


@dataclass
class Offer:
    name: str
    picture: Any


class Shelf(BaseModel):
    offers: dict[str, Offer] = Field(serialization_alias="byPlace")
    note: Text | None = None
    secret: str = Field("hush", exclude=True)
    model_config = {"extra": "allow"}


def test_a_picture_in_a_dict_or_an_object_is_named_in_its_place_and_follows_the_text(png):
    shelf = Shelf(offers={"top": Offer("cup", png)}, note=Text("new"), more=[1])
    parts = build_multimodal_content({"shelf": shelf, "more": {"all": [png, {png}], 1: "x"}}, {})
    assert parts == [
        text('shelf: {"byPlace": {"top": {"name": "cup", "picture": "[ImgPath 1]"}}, "note": "new", "more": [1]}'), png.to_part(),
        text('more: {"all": ["[ImgPath 1]", ["[ImgPath 2]"]], "1": "x"}'), png.to_part(), png.to_part()
    ]  # fmt: skip
    assert build_multimodal_content({"x": Shelf.model_construct()}, {})[0]["type"] == "text"
    around: dict[str, Any] = {"picture": png}
    around["self"] = around
    with pytest.raises(UsageError, match="too deep"):
        build_multimodal_content({"x": around}, {})
    schema = TypeAdapter(dict[str, ImgPath | Audio | File | ImgUrl]).json_schema()
    kinds = [kind["description"] for kind in schema["$defs"].values()]
    assert kinds == ["a sound", "a document", "an image", "an image"]


def test_attack_14_a_text_is_never_a_path(png):
    parts = build_multimodal_content({"p": str(png.path), "q": ["/etc/passwd"]}, {"p": ImgPath, "q": list[ImgPath]})
    assert parts == [text(f"p: {png.path}"), text('q: ["/etc/passwd"]')]


# --- values as a model reads them ---------------------------------------------------------------------------

WITH_DEQUES = pytest.mark.skipif(not is_of_today("pydantic", 2, 13), reason="older ones write a deque's repr")


class Colour(enum.Enum):
    RED = "red"
    PAIR = (1, "two")


@dataclass
class Spot:
    x: float


class Price(BaseModel):
    amount: Decimal = Field(serialization_alias="sum")


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("as it is {x}\n", "as it is {x}\n"), (True, "True"), (None, "None"), (1.5, "1.5"), (Decimal("1.50"), "1.50"),
        (datetime.date(2026, 1, 2), "2026-01-02"), (b"x", "b'x'"), (range(3), "range(0, 3)"), (Colour.RED, "red"),
        (Colour.PAIR, '[1, "two"]'), (["雨", 1, None], '["雨", 1, null]'), ((1, 2), "[1, 2]"), ({20, 3}, "[3, 20]"),
        pytest.param(deque([1]), "[1]", marks=WITH_DEQUES), ({"a": {"b": True}}, '{"a": {"b": true}}'), (MappingProxyType({"a": 1}), '{"a": 1}'),
        (Price(amount=Decimal("2.5")), '{"sum": "2.5"}'), ([Price(amount=Decimal(1))], '[{"sum": "1"}]'),
        (Spot(1.5), '{"x": 1.5}'), ({"x": set("dcba")}, '{"x": ["a", "b", "c", "d"]}'),
        ([object], "[<class 'object'>]"), ([math.nan, Spot(-math.inf)], '[NaN, {"x": -Infinity}]'),
    ],
)  # fmt: skip
def test_text_stands_as_it_is_a_scalar_as_python_writes_it_and_the_rest_as_json(value, written):
    assert render_value(value) == written


def test_a_value_that_holds_itself_or_goes_very_deep():
    around: list[Any] = []
    around.append(around)
    assert build_multimodal_content({"x": around}, {}) == [text("x: [[...]]")]
    deep: list[Any] = []
    for _ in range(20_000):
        deep = [deep]
    for value, told in ((deep, "Give a flatter one"), (map(str, [1]), "a map, whose items no")):
        with pytest.raises(UsageError, match=told):
            build_multimodal_content({"x": value}, {})


# --- assistant messages ------------------------------------------------------------------------------------


def test_a_text_becomes_a_message():
    assert build_assistant_response_message("hello") == {"role": "assistant", "content": "hello"}
    assert build_assistant_response_message(None) == {"role": "assistant", "content": ""}


@pytest.mark.parametrize("make", MAKES, ids=["dict", "ours", "openai"])
@pytest.mark.parametrize(
    "message",
    [
        {"content": "hi"}, {"content": None, "tool_calls": [GEMINI]}, {"content": "no", "refusal": "I will not"},
        {"content": "4", "reasoning_content": "2 and 2", "extra_content": {"a": [1]}},  # what the provider added
    ],
)  # fmt: skip
def test_a_reply_of_any_make_becomes_the_same_message(make, message):
    assert build_assistant_response_message(make(message)) == {"role": "assistant", **message}


def test_a_message_by_itself_will_do():
    message = ChatMessage(content="x", extra={"a": 1, "b": None, "c": {"refusal": None}})
    assert build_assistant_response_message(message) == {"role": "assistant", "content": "x", "a": 1}
    assert build_assistant_response_message({"role": "assistant", "content": "x"})["content"] == "x"
    assert build_assistant_response_message(types.SimpleNamespace(role="assistant", content="x"))["content"] == "x"


def test_the_message_shares_nothing_with_the_reply():
    extra = {"extra_content": {"a": [1]}}
    message: Any = build_assistant_response_message(reply({"content": "x", **extra}))
    message["extra_content"]["a"].append(2)
    assert extra == {"extra_content": {"a": [1]}}


def test_a_message_that_calls_tools():
    ours = ToolCall("c1", FunctionCall("search", '{"q": 1}'))
    theirs = openai_reply({"content": None, "tool_calls": [CALL]}).choices[0].message.tool_calls[0]
    for call in (ours, theirs, CALL):
        assert build_assistant_tool_message([call]) == {"role": "assistant", "content": None, "tool_calls": [CALL]}
    message = build_assistant_tool_message([GEMINI], "so", reasoning_content="why", extra={"x": 1})
    told = {"content": "so", "tool_calls": [GEMINI], "reasoning_content": "why", "x": 1}
    assert message == {"role": "assistant", **told}


# --- usage -------------------------------------------------------------------------------------------------

USAGE = {
    "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 2},
}  # fmt: skip


@pytest.mark.parametrize("make", MAKES, ids=["dict", "ours", "openai"])
def test_usage_of_a_reply_of_any_make(make):
    assert extract_usage_from_response(make({"content": "x"}, usage=USAGE)) == Usage(10, 5, 4, 2)
    assert extract_usage_from_response(make({"content": "x"})) is None


def test_usage_of_odd_things():
    for nothing in (None, {"usage": None}, {"usage": {}}, {"usage": "none"}):
        assert extract_usage_from_response(nothing) is None
    assert extract_usage_from_response(types.SimpleNamespace(usage=Usage(1, 2))) == Usage(1, 2)
    assert extract_usage_from_response({"usage": {"prompt_tokens": "many"}}) == Usage()


def test_as_data_reads_our_own_types_as_they_stand_on_the_wire():
    whole = reply({"content": "4", "reasoning_content": "why", "tool_calls": [GEMINI], "x": [1]}, usage=USAGE)
    data = as_data(ChatCompletion.from_dict(whole))
    assert build_assistant_response_message(data) == build_assistant_response_message(whole)
    assert data["usage"]["prompt_tokens"] == 10


def test_as_data_keeps_what_is_data():
    assert as_data({"a": (1, None, [True])}) == {"a": [1, None, [True]]}
    call = ToolCall("i", FunctionCall("n", "{}"), extra={"x": 1})
    assert as_data(call) == {"id": "i", "type": "function", "function": {"name": "n", "arguments": "{}"}, "x": 1}
