"""Arguments that are not quite JSON: mended without a guess, or not at all."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from SimpleLLMFunc.base.parsing import mended_arguments

MENDED = [
    ("{'a': 'b'}", {"a": "b"}), ('{"a": 1,}', {"a": 1}), ('{"a": [1, 2,], }', {"a": [1, 2]}), ("{a: 1}", {"a": 1}),
    ('```json\n{"a": 1}\n```', {"a": 1}), ("```\n{'a': 1}\n```", {"a": 1}),
    ('{"a": True, "b": None, "c": False}', {"a": True, "b": None, "c": False}),
    ('{"a": "line\nbreak\tand tab"}', {"a": "line\nbreak\tand tab"}), ('{"a": 1} // why', {"a": 1}),
    ('{"a": 1, # first\n "b": 2}', {"a": 1, "b": 2}), ('{"a": /* so */ 1}', {"a": 1}),
    ('{"url": "http://x.y/z#top",}', {"url": "http://x.y/z#top"}), ("{'a': \"don't\"}", {"a": "don't"}),
    ("{'a': 'don\\'t'}", {"a": "don't"}), ("{“a”: “b”}", {"a": "b"}),
    ('{"a": -5.50, "b": 1e5,}', {"a": -5.5, "b": 100000.0}), ("{‘a’：1，‘b’：2}", {"a": 1, "b": 2}),
    ("{'a': 'say \"hi\" \\\\ '}", {"a": 'say "hi" \\ '}), ("{'a b': {\"c\": [1, 'x',]}}", {"a b": {"c": [1, "x"]}}),
    ('{"a": "\\u4f60\\n",}', {"a": "你\n"}), ('{"a": 1 "b": 2}', {"a": 1, "b": 2}),
    ('{"a": ("x"), "b": [(1)]}', {"a": "x", "b": [1]}),
    ('{"a": "x # no comment", "b": "/* nor this */",}', {"a": "x # no comment", "b": "/* nor this */"}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), MENDED)
def test_syntax_is_mended(text, value):
    assert mended_arguments(text) == value


REFUSED = [
    '{"a": 1',  # perhaps 10, or 1000
    '{"a": "x', '{"a": "x"', '{"a": ["x", "y"', '{"to": ["a", "b"}', '{"a": 1}}', '{"a": 1} {"a": 2}', '{"a": 1,234}',
    '{"a": 1_000,}', '{"a": 0x10,}', '{"a": 1.}', '{"a": NaN,}', '{"a": tell me}', '{"a": ...}', '{"a":,}', '{"a": [1 2]}',
    '{"a": ["b" "c"]}', '{"a": [,1]}', '{"a": "c:\\dir",}', "{'a': '\\x41'}", '{"a": 00123,}', "{'a': 'don't'}",
    'call it with {"a": 1}', '{"a": "x", "b"}', '{"a": 1,} and then some', "[1, 2,]", "I am sorry",
    '{"a": "x",, "a": "y"}', "{" * 50_000,
    # quotes inside a text are no reason to cut it
    '{"a": "he said "hi" to me"}', '{"a": "he said "hi", to me"}', '{"a": "1" + "2"}', '{"a": "b" "c"}',
]  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_would_take_a_guess_is_refused(text):
    assert mended_arguments(text) is None


def test_a_long_text_takes_linear_time():
    assert mended_arguments('{"a": "' + "x\n" * 500_000 + '",}') == {"a": "x\n" * 500_000}
    assert mended_arguments('{"a": "' + '\\"' * 500_000) is None


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=6), JSON_VALUES, max_size=4)


@given(OBJECTS.filter(bool), st.data())
def test_a_cut_text_never_becomes_a_call(value, data):
    # Side effects are at stake: what was cut off can have been anything.
    text = json.dumps(value)
    assert mended_arguments(text[: data.draw(st.integers(1, len(text) - 1))]) is None


@given(OBJECTS)
def test_what_is_mended_is_what_was_meant_or_nothing(value):
    # A trailing comma is the commonest slip; whatever stands inside, the value may not change.
    for broken in (json.dumps(value)[:-1] + ",}", repr(value)):
        assert mended_arguments(broken) in (None, value)
