"""What the page is answered with."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from SimpleLLMFunc.errors import RateLimited
from SimpleLLMFunc.logger import remember_secret
from SimpleLLMFunc.logger.redact import MASK, redact
from SimpleLLMFunc.viewer.responses import Veil, clean, error_facts, json_text, reason

KEYS = ["q7Zr2LmVx9TbK4nWc8YpD1sGh6JfAe3u", "two words of a secret", "a\"b\\c'd<e>#f&g=h", "密钥密钥密钥密钥密钥"]


@pytest.mark.parametrize("value", [math.nan, math.inf, [1, -math.inf], {"a": {"b": (math.nan,)}}], ids=str)
def test_numbers_json_does_not_have_are_null(value):
    text = json_text([value, "a\ud800"])
    assert "null" in text
    assert "a\\ud800" in text, "half a character is escaped"
    json.loads(text, parse_constant=pytest.fail)


def veiled(text, size=1):
    """Return what is shown of a text that arrives in pieces."""
    veil = Veil()
    return "".join([veil.add(text[at : at + size]) for at in range(0, len(text), size)]) + veil.rest()


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_a_secret_that_arrives_in_pieces_never_shows(key, size):
    remember_secret(key)
    text = f"First line, all well.\nThe key {key}, again {key}! And on we go: {key}"
    shown = veiled(text, size)
    assert key not in shown
    assert key[:9] not in shown
    assert shown == text.replace(key, MASK)


def test_a_secret_by_its_looks_never_shows():
    text = 'Use sk-abcdefghijklmnop0123 or {"api_key": "hidden words here"} or\nBearer abcdefghijklmnop\nnow.'
    shown = veiled(text)
    for part in ("abcdefghij", "hidden"):
        assert part not in shown
    assert shown.endswith("now.")


def test_a_new_text_begins_after_the_rest():
    veil = Veil()
    assert veil.add("one two") + veil.rest() == "one two"
    assert veil.add("three four") + veil.rest() == "three four"
    assert veil.rest() == ""


@given(st.lists(st.text(alphabet='ab \n,.:你{}"', max_size=8), max_size=20))
def test_a_text_without_secrets_is_shown_whole_and_in_order(pieces):
    veil = Veil()
    shown = "".join(map(veil.add, pieces)) + veil.rest()
    assert shown == redact("".join(pieces)) == "".join(pieces)


def test_most_of_a_text_shows_as_it_comes():
    veil = Veil()
    veil.add("The teapot holds one litre and keeps ")
    assert len(veil.add("tea warm for an ho")) > 10
    chinese = Veil()
    assert chinese.add("茶壶可以装一升") == "茶壶可以装一升"


@pytest.mark.parametrize("text", [
    json.dumps([{"name": f"Item {number}", "price": number * 1.5} for number in range(3000)]),
    "abcdefgh01" * 10_000, "好" * 100_000,
], ids=["JSON", "one word", "Chinese"])  # fmt: skip
def test_the_work_on_a_long_line_is_proportional_to_it(text, monkeypatch):
    looked_at = 0

    def counted(part):
        nonlocal looked_at
        looked_at += len(part)
        return redact(part)

    monkeypatch.setattr("SimpleLLMFunc.viewer.responses.redact", counted)
    assert veiled(text, 4) == text
    assert looked_at < 150 * len(text)


@pytest.mark.parametrize("size", [5, 61, 4000])
@pytest.mark.parametrize("before", [0, 990, 1990, 2003, 7777])
def test_a_secret_in_a_long_line_never_shows(size, before):
    key = KEYS[0]
    remember_secret(key)
    filler = ("lorem, ipsum dolor " * 500)[:before]
    secrets = f'{key} {{"api_key": "hidden words here, and more"}} sk-abcdefghijklmnop0123 Bearer abcdefghijklmnop '
    text = f"{filler}{secrets}{filler}{key}{filler}"
    shown = veiled(text, size)
    assert shown == redact(text)
    for part in (key[:9], "hidden", "abcdefghij"):
        assert part not in shown


def test_a_value_without_end_behind_the_name_of_a_secret_closes_its_line():
    veil = Veil()
    shown = veil.add('{"api_key": "')
    shown += "".join(veil.add("hidden words " * 100) for _ in range(100))
    shown += veil.add('"}\nThe next line.\n') + veil.rest()
    assert "hidden" not in shown
    assert shown.endswith("\nThe next line.\n")


def test_values_are_cleaned_to_their_depth():
    remember_secret("a-secret-of-ours-42")
    deep: object = "a-secret-of-ours-42"
    for _ in range(100):
        deep = [deep]
    value = {"a-secret-of-ours-42": ("x a-secret-of-ours-42", 3, None, True, 1.5)}
    assert clean(value) == {MASK: [f"x {MASK}", 3, None, True, 1.5]}
    assert "secret" not in json_text(clean(deep))
    assert clean(object()).startswith("<object")


def test_errors_are_told_without_secrets():
    remember_secret("a-secret-of-ours-43")
    assert reason(ValueError("no a-secret-of-ours-43")) == f"ValueError: no {MASK}"
    facts = error_facts(RateLimited("m", retry_after=2.5))
    assert facts["error"] == "RateLimited"
    assert "2.5 s" in facts["message"]
    assert len(reason(ValueError("x" * 100_000))) < 5000
