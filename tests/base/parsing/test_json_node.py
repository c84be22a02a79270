"""JSON as it was written."""

from __future__ import annotations

import pytest

from SimpleLLMFunc.base.parsing.json_node import (
    Bare,
    DuplicateKeyError,
    Num,
    decode_at,
    decode_strictly,
    is_same,
    path_text,
    plain_value,
    shown,
)


def test_numbers_keep_their_characters() -> None:
    assert decode_strictly("[1.50, -0, 1e5]") == [Num("1.50"), Num("-0"), Num("1e5")]
    assert plain_value(decode_strictly('{"a": [1, 2.5, null, true, "x"]}')) == {"a": [1, 2.5, None, True, "x"]}


@pytest.mark.parametrize("text", ["1e999", "9" * 5000])
def test_numbers_that_python_cannot_hold(text: str) -> None:
    with pytest.raises(ValueError, match="number"):
        plain_value(Num(text))


def test_a_key_twice() -> None:
    assert decode_strictly('{"a": 1, "a": 1}') == {"a": Num("1")}
    with pytest.raises(DuplicateKeyError) as caught:
        decode_strictly('{"a": 1, "a": 1.0}')
    assert caught.value.key == "a"


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [(Num("1"), Num("1"), True), (Num("1"), "1", False), (True, Num("1"), False), (Bare("a"), "a", False), ([1], [1], True),
     ({"a": True}, {"a": 1}, False), (None, False, False)],
)  # fmt: skip
def test_sameness_is_strict(left: object, right: object, same: bool) -> None:
    assert is_same(left, right) is same


def test_paths() -> None:
    assert path_text(()) == ""
    assert path_text(("items", 2, "price")) == "items[2].price"
    assert path_text((0, "a")) == "[0].a"


def test_shown_is_short() -> None:
    assert shown("x" * 1000) == repr("x" * 60 + "…")
    assert shown(Num("1.50")) == "1.50"
    assert shown({"a": 1, "b": 2}) == "an object with a, b"
    assert shown([1, 2]) == "a list of 2"
    assert shown(None) == "null"


def test_a_value_in_the_middle() -> None:
    assert decode_at('x {"a": 1} y', 2) == ({"a": Num("1")}, 10)
