import pytest

from SimpleLLMFunc.errors import ConfigError, UsageError
from SimpleLLMFunc.interface.wires.request_body import check_base_url, endpoint, number, taken_apart


def test_extra_body_and_timeout_are_taken_apart():
    given = {"a": 1, "b": None, "extra_body": {"c": 2, "a": None}, "timeout": 5}
    assert taken_apart(given, {}) == ({"a": 1}, {"c": 2, "a": None}, 5)
    assert taken_apart({}, {}) == ({}, {}, None)
    # What goes out always stands under what a call gives.
    always = {"a": 1, "b": 2, "extra_body": {"c": 3, "d": 4}}
    assert taken_apart({"a": None, "extra_body": {"d": 5}}, always) == ({"b": 2}, {"c": 3, "d": 5}, None)


@pytest.mark.parametrize("params", [{"timeout": 0}, {"timeout": "5"}, {"timeout": True}])
def test_what_cannot_be_taken_apart_is_refused(params):
    with pytest.raises(UsageError):
        taken_apart(params, {})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("https://x.example/v1", "https://x.example/v1"), (" https://x.example/v1/// ", "https://x.example/v1"),
        ("http://localhost:80/", "http://localhost:80"), ("http://[::1]:8000/v1#frag", "http://[::1]:8000/v1"),
        ("https://x.example/v1/?api-version=1", "https://x.example/v1?api-version=1"),
    ],
)  # fmt: skip
def test_an_address_is_tidied(given, expected):
    assert check_base_url(given) == expected


@pytest.mark.parametrize(
    "given",
    [
        "", "x.example/v1", "ftp://x.example", "https://", "http://x:99999", "http://x:0", "http://me@x", "http://[::1", None, 3,
        "https://user:hunter2secret@x.example/v1",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused_and_a_password_not_shown(given):
    with pytest.raises(ConfigError) as caught:
        check_base_url(given)
    assert "hunter2" not in str(caught.value)


def test_the_endpoint_keeps_the_query():
    assert endpoint("https://x.example/v1?a=1", "/chat/completions") == "https://x.example/v1/chat/completions?a=1"
    assert endpoint("https://x.example?a=1", "/m:stream?alt=sse") == "https://x.example/m:stream?alt=sse&a=1"


def test_numbers_are_checked():
    assert number("n", 0, least=0) == 0
    assert number("n", 1.5, above=0) == 1.5
    for value in (-1, float("nan"), float("inf"), "1", True, None):
        with pytest.raises(ConfigError, match="at least 0"):
            number("n", value, least=0)
    with pytest.raises(ConfigError, match="above 0"):
        number("n", 0, above=0)
