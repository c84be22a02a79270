"""What a service wants back goes to the same wire and service, and to no other."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from SimpleLLMFunc.errors import BadRequest
from SimpleLLMFunc.interface.wires import provider_state
from SimpleLLMFunc.interface.wires.provider_state import Prefix, refuses_state, state_in, state_of
from SimpleLLMFunc.type import Message

ASKED: Message = {"role": "user", "content": "b"}
ITEMS = [{"type": "thinking", "thinking": "hm", "signature": "sig"}]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def test_a_state_goes_back_to_its_own_service():
    message = json.loads(json.dumps({"role": "assistant", "content": "a", "provider_state": state_of("w", "h", ITEMS)}))
    assert state_in(message, "w", "h") == (ITEMS, "")
    assert state_in(message, "other", "h") is state_in(message, "w", "other") is None
    assert state_in({"provider_state": state_of("w", "h", ITEMS, "abc")}, "w", "h") == (ITEMS, "abc")
    key = provider_state.state_key(message)
    assert provider_state.without_state([message, ASKED], [key]) == [{"role": "assistant", "content": "a"}, ASKED]


@pytest.mark.parametrize(
    "state", [None, "text", [], {}, {"wire": "w"}, {"wire": "w", "service": "h", "items": "no"}, state_of("w", "h", [])]
)
def test_a_state_that_is_none_is_left_out(state):
    assert state_in({"role": "assistant", "content": "a", "provider_state": state}, "w", "h") is None


@given(parts=st.lists(JSON, max_size=4), other=JSON)
def test_a_prefix_is_of_all_its_parts_in_their_order(parts, other):
    grown = Prefix()
    for part in parts:
        grown.add(part)
    assert grown.value() == Prefix(*parts).value() != Prefix(*parts, other).value()


@pytest.mark.parametrize(
    ("status", "body", "refused"),
    [(400, "Corrupted thought signature.", True), (400, "max_tokens is too large", False), (422, "corrupted thought signature", False)],
)  # fmt: skip
def test_only_a_refusal_that_speaks_of_it_is_one_of_the_state(status, body, refused):
    assert refuses_state(BadRequest("m", status=status, body=body)) is refused
