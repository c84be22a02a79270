"""Errors as others may see them: no secret in them, and no more of them looked at than is shown."""

from __future__ import annotations

from collections import OrderedDict, UserDict, deque

import pytest

from SimpleLLMFunc.errors import RunError
from SimpleLLMFunc.logger import remember_secret
from SimpleLLMFunc.logger.failures import RedactedCause, redacted_cause, shown_error, shown_traceback
from SimpleLLMFunc.logger.redact import holds_little, render_arguments, shown_text, shown_value

pytestmark = pytest.mark.usefixtures("no_secrets")
KEY = "correct-Horse/battery+staple=="


class Heavy:
    """A megabyte whose repr must not be made."""

    def __init__(self) -> None:
        self.held = "x" * 1_000_000

    def __repr__(self) -> str:
        raise AssertionError("its repr takes too long")


class NoRepr(dict):
    """Nothing may read all of it."""

    def __repr__(self) -> str:
        raise AssertionError("its repr takes too long")


MUCH = {str(number): "text " * 100 for number in range(1000)}


class Odd(Exception):
    def __str__(self):
        raise ValueError("no text")


def test_a_cause_without_a_secret_is_itself_and_one_with_a_secret_a_copy():
    remember_secret(KEY)
    plain = ValueError("plain")
    assert redacted_cause(plain) is plain
    assert redacted_cause(odd := Odd()) is odd
    inner = OSError(f"with {KEY}")
    for outer in (RuntimeError("outer"), ExceptionGroup("several", [plain, inner])):
        if isinstance(outer, RuntimeError):
            outer.__context__ = inner
        copy = redacted_cause(outer)
        assert isinstance(copy, RedactedCause)
        assert type(outer).__name__ in str(copy)
        assert "OSError: with ***" in str(copy)
        assert copy.__cause__ is copy.__context__ is None
    noted = ValueError("plain")
    noted.add_note(f"see {KEY}")
    assert "see ***" in str(redacted_cause(noted))
    circle = ValueError("a")
    circle.__context__ = other = ValueError("b")
    other.__context__ = circle
    assert redacted_cause(circle) is circle


def test_what_holds_much_is_no_cause_unread():
    long = ValueError("x" * 1_000_000 + KEY)
    cause = redacted_cause(long)
    assert isinstance(cause, RedactedCause)
    assert str(cause).startswith("ValueError: xxx")
    assert len(str(cause)) < 3000


def test_an_error_is_shown_as_python_says_it():
    assert shown_error(ValueError("a", 1)) == "ValueError: ('a', 1)"
    assert shown_error(KeyError("name")) == "KeyError: 'name'"
    assert shown_error(ValueError()) == "ValueError"
    assert shown_error(RunError("ours")) == "RunError: ours"
    assert shown_error(Odd()) == "Odd"


def test_an_error_is_shown_without_secrets_and_cut():
    remember_secret(KEY)
    assert shown_error(ValueError(f"with {KEY}")) == "ValueError: with ***"
    text = shown_error(ValueError("x" * 490 + KEY))
    assert len(text) <= 500
    assert "battery" not in text


@pytest.mark.parametrize(
    "error",
    [ValueError("x" * 1_000_000), ValueError(MUCH), KeyError(NoRepr(MUCH)), ValueError(NoRepr(MUCH), "and more")],
)
def test_of_a_long_error_only_the_beginning_is_read(error):
    text = shown_error(error)
    assert text.startswith(f"{type(error).__name__}: ")
    assert len(text) <= 500
    assert len(shown_traceback(error)) < 11_000


class Fields(UserDict):
    """A mapping that is no dict, as an HTTP client's header fields are."""

    def __repr__(self) -> str:
        raise AssertionError("its repr takes too long")


class Unreadable(UserDict):
    def items(self):
        raise OSError("its database is closed")


def test_an_error_with_a_large_mapping_is_large():
    error = ValueError("odd fields")
    error.headers = Fields(MUCH)
    assert str(redacted_cause(error)) == shown_error(error) == "ValueError: odd fields"


def test_an_error_with_a_mapping_that_cannot_be_read_is_shown():
    error = ValueError("odd", Unreadable())
    assert shown_error(error) == 'ValueError: ["odd", "<Unreadable>"]'


def raised(error):
    try:
        raise error
    except type(error) as caught:
        return caught


def test_a_traceback_is_that_of_python_and_of_a_long_error_its_frames():
    short = raised(ValueError("wrong"))
    assert shown_traceback(short).startswith("Traceback (most recent call last):")
    assert shown_traceback(short).endswith("ValueError: wrong\n")
    long = shown_traceback(raised(KeyError(NoRepr(MUCH))))
    assert "in raised" in long
    assert "KeyError: [{" in long
    assert "\n" in long


def test_what_holds_much_is_known_without_reading_it():
    assert holds_little({"a": [1, "text", ("b", {"c"})]})
    assert not holds_little("x" * 20_000)
    assert not holds_little(list(range(5000)))
    told = [{"role": "user", "content": "x" * 30}] * 20
    assert holds_little(told)
    assert not holds_little(told, 100)
    assert not holds_little([{"role": "user", "content": "x" * 20_000}])
    assert not holds_little({"x" * 20_000: 1})
    assert not holds_little(dict.fromkeys(range(5000), 0))
    assert holds_little(OrderedDict(a=1))
    assert not holds_little(OrderedDict(a="x" * 20_000))
    circle: list[object] = []
    circle.append(circle)
    assert not holds_little(circle)


def test_a_value_is_shown_as_python_shows_it_or_as_far_as_it_goes():
    assert shown_value({"a": (1, 2)}, 100) == "{'a': (1, 2)}"
    assert shown_value({"api_key": "sk-abcdefghijkl"}, 100).count("***") == 1
    assert len(shown_value(NoRepr(MUCH), 100)) <= 100


def test_arguments_of_any_kind_are_shown_without_their_whole_repr():
    text = render_arguments(
        {"heavy": Heavy(), "queue": deque(["a"] * 100_000), "values": MUCH.values(), "small": deque([1, 2])}, 50_000
    )
    assert '"heavy": "<Heavy>"' in text
    assert '"queue": ["a", "a"' in text
    assert render_arguments({"small": deque([1, 2])}) == '{"small": [1, 2]}'


def test_an_array_is_named_by_its_size():
    numpy = pytest.importorskip("numpy")
    assert render_arguments({"grid": numpy.zeros((100, 20))}) == '{"grid": "<ndarray 100x20>"}'
    assert "1" in render_arguments({"few": numpy.ones(3)})


def test_a_text_is_cut_behind_its_secrets():
    remember_secret(KEY)
    for size in range(1, 60):
        shown = shown_text(f"some words {KEY} and more " * 1000, size)
        assert len(shown) <= size
        assert not any(KEY[:length] in shown for length in range(3, len(KEY)))
