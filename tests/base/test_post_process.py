"""The public doors: parse_text, process_response, and the text of a reply."""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from SimpleLLMFunc.base.post_process import (
    extract_content_from_response,
    extract_content_from_stream_response,
    parse_text,
    process_response,
)
from SimpleLLMFunc.errors import ConfigError, OutputTruncated, ResponseParseError, SignatureError
from SimpleLLMFunc.type.completion import ChatCompletion, ChatCompletionChunk


class Item(BaseModel):
    name: str
    price: float


def completion(*texts: str | None) -> dict[str, Any]:
    messages = ({"role": "assistant", "content": text} for text in texts)
    return {"choices": [{"index": index, "message": message} for index, message in enumerate(messages)]}


def as_object(data: Any) -> Any:
    if isinstance(data, dict):
        return SimpleNamespace(**{key: as_object(value) for key, value in data.items()})
    return [as_object(item) for item in data] if isinstance(data, list) else data


@pytest.mark.parametrize(
    ("text", "wanted", "value"),
    [
        ('{"value": "red"}', bytes, b"red"), ("1.50", Decimal, Decimal("1.50")), ("true", bool | int, True),
        ('{"value": [1, 2]}', list[int], [1, 2]), ("2", float, 2.0), ('"5"', int | str, "5"), ('[1, "a"]', tuple[int, str], (1, "a")),
        ('{"a": 1, "a": 1}', dict[str, int], {"a": 1}), ('{"name": "x", "price": 1}', Item | None, Item(name="x", price=1)),
    ],
)  # fmt: skip
def test_strict_json_of_the_type_takes_no_repair(text: str, wanted: Any, value: Any) -> None:
    parsed = parse_text(text, wanted)
    assert (repr(parsed.value), parsed.repairs) == (repr(value), [])


def test_content_of_every_shape_of_reply() -> None:
    data = completion("x")
    for reply in (data, ChatCompletion.from_dict(data), as_object(data)):
        assert extract_content_from_response(reply, "f") == "x"
    for reply in (completion(None), {"choices": []}, {"choices": None}, {}, None):
        assert extract_content_from_response(reply, "f") == ""


def test_only_the_choice_with_the_lowest_index_is_read() -> None:
    data = {"choices": list(reversed(completion("first", "second")["choices"]))}
    assert extract_content_from_response(data, "f") == "first"
    assert process_response(completion('{"name": "a", "price": 1}', "not this"), Item) == Item(name="a", price=1)


def test_content_of_a_chunk() -> None:
    data = {"choices": [{"index": 1, "delta": {"content": "b"}}, {"index": 0, "delta": {"content": "a"}}]}
    for chunk in (data, ChatCompletionChunk.from_dict(data), as_object(data)):
        assert extract_content_from_stream_response(chunk, "f") == "a"
    for choices in ([], [{"index": 0, "delta": None}], [{"index": 0, "delta": {}}], None):
        assert extract_content_from_stream_response({"choices": choices}, "f") == ""
    assert extract_content_from_stream_response({}, "f") == ""


def test_process_response_takes_replies_and_texts() -> None:
    assert process_response(completion("42"), int) == 42
    assert process_response("42", int) == 42
    cut = {"choices": [{**completion("[1, 2]")["choices"][0], "finish_reason": "length"}]}
    assert process_response(cut, str) == "[1, 2]"
    with pytest.raises(OutputTruncated):
        process_response(cut, list[int])
    with pytest.raises(ValueError, match="does not fit int"):
        process_response(completion("none"), int)


def test_an_error_carries_text_type_and_violations() -> None:
    with pytest.raises(ResponseParseError) as caught:
        parse_text('{"name": "x", "price": "cheap"}', Item)
    error = caught.value
    assert (error.text, error.expected_type) == ('{"name": "x", "price": "cheap"}', Item)
    assert error.violations == [("price", "float", "'cheap'")]
    assert error.__cause__ is None
    with pytest.raises(SignatureError):
        parse_text("x", object().__class__.__class__)


@pytest.mark.heavy
def test_three_megabytes_of_a_good_answer() -> None:
    text = "[" + ",".join(['{"name": "x", "price": 1.5}'] * 100_000) + "]"
    assert len(parse_text(text, list[Item]).value) == 100_000
    assert len(parse_text(f"Here:\n```json\n{text}\n```\nDone.", list[Item]).value) == 100_000


def test_a_level_of_repair_that_there_is_not():
    with pytest.raises(ConfigError, match="repair must be one of 'off', 'syntax', 'coerce', not 'none'"):
        parse_text("5", int, repair="none")
