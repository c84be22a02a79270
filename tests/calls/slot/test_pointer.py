"""JSON Pointers: the forms of RFC 6901, and other texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from SimpleLLMFunc.calls.slot.pointer import MAX_STEPS, index_of, pointer_path, pointer_text
from SimpleLLMFunc.errors import CallError


@pytest.mark.parametrize(
    ("pointer", "path"),
    [
        ("", ()), ("/", ("",)), ("/foo", ("foo",)), ("/foo/0", ("foo", "0")), ("/a~1b", ("a/b",)),
        ("/m~0n", ("m~n",)), ("/~01", ("~1",)), ("/c%d", ("c%d",)), ("/ ", (" ",)), ("//", ("", "")),
        ("/城市", ("城市",)), ("/a" * MAX_STEPS, ("a",) * MAX_STEPS),
    ],
)  # fmt: skip
def test_pointers_and_paths(pointer, path):
    assert pointer_path(pointer) == path
    assert pointer_text(path) == pointer


@given(st.lists(st.text(max_size=5), max_size=8))
def test_every_path_has_a_pointer(path):
    assert pointer_path(pointer_text(path)) == tuple(path)


@pytest.mark.parametrize(
    ("pointer", "problem"),
    [
        ("a", "must begin with '/'"), ("a/~2", "must begin with '/'"), ("/a/~2", "'~' must be written '~0'"),
        ("/a~", "'~' must be written '~0'"), ("/a" * (MAX_STEPS + 1), f"more than {MAX_STEPS} steps"),
    ],
)  # fmt: skip
def test_what_is_no_pointer(pointer, problem):
    with pytest.raises(CallError, match=problem) as caught:
        pointer_path(pointer)
    assert caught.value.data["pointer"] == pointer
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("step", "index"),
    [("0", 0), ("10", 10), ("01", None), ("-1", None), ("+1", None), ("1.0", None), ("", None), ("²", None),
     ("１", None), ("9" * 30, None), ("-", None)],
)  # fmt: skip
def test_what_is_an_index(step, index):
    assert index_of(step) == index
