import datetime as dt
import json
import uuid
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.interface.body_json import decode, encode, head_of, text_size
from SimpleLLMFunc.runtime import LARGE
from SimpleLLMFunc.type.usage import Usage
from SimpleLLMFunc.type.wire import without_surrogates

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


def deep(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


@given(value=JSON, text=st.text(st.characters()))
def test_what_is_encoded_decodes_to_itself_and_any_text_can_be_sent(value, text):
    assert decode(encode(value)) == value
    assert json.loads(encode(text).decode()) == without_surrogates(text)


def test_text_stays_readable_on_the_wire_and_lone_surrogates_are_replaced():
    assert encode({"a": "中文 é"}) == '{"a":"中文 é"}'.encode()
    assert encode("a\ud800b").decode() == '"a\ufffdb"'
    assert head_of("é".encode(), "latin-1") == head_of("é".encode("latin-1"), "latin-1") == "é"


@pytest.mark.parametrize(
    "value",
    [
        dt.date(2026, 1, 2), {"a": dt.timedelta(1)}, {1, 2}, b"x", Decimal(1), uuid.UUID(int=1), Path("x"), object(),
        iter([]), Usage(),
    ],
)  # fmt: skip
def test_what_goes_beyond_json_is_refused(value):
    with pytest.raises(UsageError, match="cannot be written as JSON"):
        encode({"messages": [{"content": value}]})


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'"a\\ud800b"', "a\ufffdb"), (b'"\\ud83d\\ude00"', "\U0001f600"), (b'"a\xffb"', "a\ufffdb"),
        (b'{"k\\udc00": ["\\ud800"]}', {"k\ufffd": ["\ufffd"]}), (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        (b'"\\u0000"', "\x00"), (b'{"a": 1, "a": 2}', {"a": 2}), (b"[" * 201 + b"]" * 201, deep(200)),
        (b'["\\ud800",' + b"[" * 190 + b"]" * 190 + b"]", ["\ufffd", deep(189)]),
    ],
)  # fmt: skip
def test_what_models_and_servers_write_is_read(data, expected):
    assert decode(data) == expected


@pytest.mark.parametrize(
    "data", [b"", b"{", b"<html>", b'{"a": 1} x', b"[" * 202 + b"]" * 202, b"[" * 100_000, b'{"a":' * 100_000, b"\xff"]
)
def test_what_is_no_json_is_a_value_error(data):
    with pytest.raises(ValueError):
        decode(data)


def test_long_messages_and_many_are_seen_without_writing_them():
    long = "a" * 300_000
    for content in (long, [{"type": "text", "text": long}], [{"image_url": {"url": "data:" + long}}]):
        assert text_size([{"content": content}]) > LARGE
    assert text_size([{"role": "user", "content": "?"}] * 10_000) > LARGE
    assert text_size(deep(100_000)) >= LARGE


@pytest.mark.parametrize("content", ["a" * 1000, None, [{"type": "text", "text": "a"}, "odd", 3]])
def test_short_messages_take_about_what_is_written(content):
    messages = [{"content": "a"}, {"content": content}]
    written = len(encode(messages))
    assert written / 3 <= text_size(messages) <= written * 3
