import copy
import datetime as dt
import enum
import json
import math
import threading
import uuid
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic_core import to_json

from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.interface import body_json as wire_json
from SimpleLLMFunc.interface.body_json import decode, decode_large, encode, is_long, is_long_body, off_loop, plain_size
from SimpleLLMFunc.type.usage import Usage
from SimpleLLMFunc.type.wire import without_surrogates

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(value=JSON)
def test_what_is_encoded_decodes_to_itself(value):
    assert decode(encode(value)) == value


def test_text_stays_readable_on_the_wire():
    assert encode({"a": "中文 é"}) == '{"a":"中文 é"}'.encode()


class Kind(str, enum.Enum):
    FINE = "fine"


@pytest.mark.parametrize(
    "value",
    [
        {"a": Kind.FINE},
        {1: 2},
        {"a": (1, [2])},
        {"a": 1 << 80, "b": 1e22, "c": -0.0},
        {"a": '\x00\x7f\u2028\\"'},
        [None, True],
    ],
)
def test_what_is_almost_plain_data_is_written_as_json_does(value):
    assert json.loads(encode(value)) == json.loads(json.dumps(value))


@pytest.mark.parametrize(
    "value",
    [
        dt.date(2026, 1, 2),
        {"a": dt.timedelta(1)},
        {1, 2},
        b"x",
        Decimal(1),
        uuid.UUID(int=1),
        Path("x"),
        object(),
        iter([]),
        Usage(),
    ],
)
def test_what_the_fast_writer_would_take_beyond_json_is_refused(value):
    with pytest.raises(UsageError, match="cannot be written as JSON"):
        encode({"messages": [{"content": value}]})


class Text(str):
    __slots__ = ()


class Fields(dict):
    pass


def is_plain(value):
    """Whether a value is JSON data of the built-in types, said as simply as that goes."""
    if type(value) is dict:
        return all(type(key) is str and is_plain(item) for key, item in value.items())
    if type(value) is list:
        return all(map(is_plain, value))
    return type(value) in {str, int, bool, type(None)} or (type(value) is float and math.isfinite(value))


def written(value):
    """Return the bytes that the plain writer makes of a value, None where it refuses it."""
    try:
        if is_plain(value):
            return to_json(value)
    except ValueError:
        pass
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError):
        return None
    return without_surrogates(text).encode()


def sent(value):
    try:
        return encode(value)
    except UsageError:
        return None


TEXTS = st.sampled_from(["a", "1", "é", "\ud800"])
ODD = st.sampled_from(
    [True, False, 0, 1, 1.0, -0.0, None, b"a", (1,), {1}, math.nan, math.inf, 1j, Kind.FINE, Text("a")]
)
ALIKE = st.recursive(
    TEXTS | ODD,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.dictionaries(TEXTS | st.sampled_from([1, True, None, Text("a"), Text("b")]), inner, max_size=3)
        | st.dictionaries(TEXTS, inner, max_size=2).map(Fields)
    ),
    max_leaves=6,
)
"""Values that are equal to others, or look like them, and are written another way or not at all."""


def put(holder, place, value):
    """Change one thing somewhere in a value; `place` chooses where."""
    while True:
        places = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not places:
            return
        key = places[place % len(places)]
        if not isinstance(holder[key], (dict, list)) or not holder[key]:
            holder[key] = value
            return
        holder, place = holder[key], place // 2


def spec(**properties):
    return {"type": "function", "function": {"name": "a", "parameters": {"type": "object", "properties": properties}}}


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(ALIKE, max_size=2), st.dictionaries(TEXTS, ALIKE), st.lists(st.tuples(st.integers(0, 99), ALIKE)))
def test_a_tool_that_is_known_is_written_as_if_it_were_new_also_after_a_change_in_place(tools, shape, changes):
    body = {"model": "m", "messages": [{"role": "user", "content": "a"}]}
    body |= {"tools": [*tools, spec(n={"type": "integer", "default": 1})], "response_format": shape}
    for place, value in [(0, "a"), *changes]:
        assert sent(body) == sent(body) == written(body)
        put(body["tools"], place, copy.deepcopy(value))
        put(body["response_format"], place, copy.deepcopy(value))
    assert sent(body) == written(body)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(ALIKE, max_size=3))
def test_messages_are_written_as_the_plain_writer_does(messages):
    for body in ({"messages": messages}, {"messages": [{"role": "user", "content": one} for one in messages]}):
        assert sent(body) == written(body)


@pytest.mark.parametrize(("now", "then"), [(1, True), (1, 1.0), (True, 1), ("a", Text("a")), (0.0, -0.0), ([1], (1,))])
def test_what_is_equal_to_a_known_tool_is_not_taken_for_it(now, then):
    tool = spec(n={"default": now})
    for value in (now, then, now):
        tool["function"]["parameters"]["properties"]["n"]["default"] = value
        body = {"messages": [], "tools": [tool]}
        assert encode(body) == written(body)
        assert plain_size(body) == (-1 if type(value) in {Text, tuple} else plain_size(json.loads(encode(body))))


def test_a_field_of_a_body_that_is_named_by_something_like_a_text_is_written_all_the_same():
    body = {Text("tools"): [spec(n={})], "messages": []}
    assert plain_size(body) == -1
    assert encode(body) == written(body)


def test_the_order_of_the_fields_of_a_known_tool_counts():
    there, back = {"a": 1, "b": 2}, {"b": 2, "a": 1}
    assert encode({"tools": [there]}) != encode({"tools": [back]}) == b'{"tools":[{"b":2,"a":1}]}'


def test_only_so_many_tools_are_known_and_none_that_is_huge(monkeypatch):
    monkeypatch.setattr(wire_json, "_known", {})
    for number in range(200):
        encode({"tools": [spec(n={"default": number})]})
    assert 0 < len(wire_json._known) <= 64
    assert max(map(len, wire_json._known)) < 64 * 1024
    wire_json._known.clear()
    encode({"tools": [spec(n={"default": "a" * 100_000})]})
    assert not wire_json._known


def test_tools_nested_too_deep_are_refused_as_everything_is():
    with pytest.raises(UsageError, match="JSON"):
        encode({"tools": [deep(100_000)]})
    held = []
    held.append(held)
    with pytest.raises(UsageError, match="JSON"):
        encode({"tools": held})


@given(text=st.text(st.characters()))
def test_any_text_can_be_sent(text):
    sent = json.loads(encode(text).decode())
    assert sent == without_surrogates(text)


def test_lone_surrogates_are_replaced_and_pairs_joined():
    assert encode("a\ud800b").decode() == '"a\ufffdb"'


def deep(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("value", [{"a": {1, 2}}, float("nan"), {"x": object()}, deep(100_000)])
def test_what_json_cannot_say_is_refused_with_a_reason(value):
    with pytest.raises(UsageError, match="JSON"):
        encode(value)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'"a\\ud800b"', "a\ufffdb"),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'{"k\\udc00": ["\\ud800"]}', {"k\ufffd": ["\ufffd"]}),
        (b'"a\xffb"', "a\ufffdb"),
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        (b'"\\u0000"', "\x00"),
        (b'{"a": 1, "a": 2}', {"a": 2}),
        (b"[" * 150 + b"]" * 150, deep(149)),
        (b"[" * 400 + b"]" * 400, deep(399)),
    ],
)
def test_what_models_and_servers_write_is_read(data, expected):
    assert decode(data) == expected


@pytest.mark.parametrize("data", [b"", b"{", b"<html>", b'{"a": 1} x', b"[" * 100_000, b'{"a":' * 100_000, b"\xff"])
def test_what_is_no_json_is_a_value_error(data):
    with pytest.raises(ValueError):
        decode(data)


async def test_long_data_are_read_too():
    value = {"text": "x" * 1_000_000}
    assert await decode_large(encode(value)) == value
    assert await decode_large(b"[1]") == [1]
    with pytest.raises(ValueError):
        await decode_large(b"{" * 500_000)


async def test_large_data_are_read_in_a_thread_and_small_ones_at_once(monkeypatch):
    seen = []
    monkeypatch.setattr(wire_json, "decode", lambda data: seen.append(threading.get_ident()))
    await decode_large(b" " * 300_000)
    await decode_large(b" " * 1_000)
    assert seen[0] != threading.get_ident() == seen[1]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a" * 300_000, True),
        ("a" * 1000, False),
        (None, False),
        ([{"type": "text", "text": "a" * 300_000}], True),
        ([{"type": "image_url", "image_url": {"url": "data:" + "a" * 300_000}}], True),
        ([{"type": "input_audio", "input_audio": {"data": "a" * 300_000, "format": "wav"}}], True),
        ([{"type": "text", "text": "a"}, "odd", 3], False),
    ],
)
def test_how_long_messages_are_is_seen_without_writing_them(content, expected):
    assert is_long([{"role": "user", "content": "a"}, {"role": "user", "content": content}]) is expected


@pytest.mark.parametrize(
    "content", ["a" * 300_000, ["a" * 150_000, {"b": "a" * 150_000}], {"url": Text("a" * 300_000)}]
)
def test_a_body_is_long_that_holds_long_texts(content):
    body = {"messages": [{"role": "user", "content": [{"type": "text", "text": content}]}]}
    if isinstance(content, dict):
        body = {"messages": [{"role": "user", "content": [content]}]}
    assert is_long_body(body, plain_size(body))
    body["messages"] = [{"role": "user", "content": "a"}]
    assert not is_long_body(body, plain_size(body))


def test_many_short_messages_are_long_together():
    assert is_long([{"role": "user", "content": "a" * 1000}] * 300)
    assert not is_long([])


async def test_long_work_is_done_in_another_thread():
    assert await off_loop(threading.get_ident) != threading.get_ident()
