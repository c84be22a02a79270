"""Brackets of a text that comes in pieces."""

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from SimpleLLMFunc.interface.wires.streams.nesting import Nesting

VALUES = st.recursive(
    st.one_of(st.none(), st.integers(), st.text(alphabet='ab"\\{}[]\n', max_size=8)),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='a"\\{}', max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no fault of the code
@given(st.dictionaries(st.text(alphabet='a"\\{}', max_size=4), VALUES, max_size=3), st.data())
def test_a_value_is_closed_at_its_end_and_not_before(value, data):
    text = json.dumps(value)
    nesting = Nesting()
    at = 0
    while at < len(text):
        assert not nesting.is_closed
        size = data.draw(st.integers(1, 5))
        nesting.feed(text[at : at + size])
        at += size
    assert nesting.is_closed
    nesting.feed("")
    nesting.feed(" \n")
    assert nesting.is_closed


def test_an_escape_cut_in_two():
    nesting = Nesting()
    for piece in ('{"a": "\\', '"}', '"', "}"):
        assert not nesting.is_closed
        nesting.feed(piece)
    assert nesting.is_closed
