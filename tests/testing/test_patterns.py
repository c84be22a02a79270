"""Texts that match a pattern: made by rstr where it is installed; else the error says both ways."""

import random
import re
import sys

import pytest

from SimpleLLMFunc.errors import ConfigError, UsageError
from SimpleLLMFunc.testing.patterns import text_matching
from SimpleLLMFunc.testing.schema_values import value_of

PATTERNS = [
    r"^[A-Z]{3}-\d{4}$", r"abc", r"^(\w+)@x\.com$", r"^[^a-z]+$", r"(a|b|cd)+", r"^\+?[1-9]\d{1,14}$", r"^(?P<q>['\"]).*(?P=q)$",
    r"^#(?:[0-9a-fA-F]{3}){1,2}$", r"\S+\s\S+", r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}$", r"^$", r"a?b*c+", r"^.{5}$", r"^[äöü]+$",
]  # fmt: skip


def test_without_rstr_the_examples_of_the_schema_are_taken_or_both_ways_are_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "rstr", None)
    schema = {"type": "string", "pattern": "^[A-Z]{2}$", "examples": ["AB", "XY"]}
    assert {value_of(schema, random.Random(seed)) for seed in range(20)} == {"AB", "XY"}
    del schema["examples"]
    with pytest.raises(ConfigError, match=r"examples=\[…\], or run: pip install rstr") as caught:
        value_of(schema, random.Random(1))
    assert "^[A-Z]{2}$" in str(caught.value)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_what_is_made_matches(pattern):
    pytest.importorskip("rstr")
    seen = set()
    for seed in range(10):
        text = text_matching(pattern, random.Random(seed))
        assert text == text_matching(pattern, random.Random(seed))
        assert re.search(pattern, text)
        seen.add(text)
    assert len(seen) > 1 or pattern in {"abc", "^$"}


@pytest.mark.parametrize(
    ("pattern", "least", "most"),
    [(r"^[a-z]+$", 30, 40), (r"x", 10, 10), (r"^\d*$", 7, 7), (r"[abc]+", 0, 3), (r"^(ab)*$", 8, 8)],
)
def test_lengths_hold(pattern, least, most):
    pytest.importorskip("rstr")
    for seed in range(5):
        text = text_matching(pattern, random.Random(seed), least=least, most=most)
        assert re.search(pattern, text)
        assert least <= len(text) <= most


@pytest.mark.parametrize(
    ("pattern", "least", "most", "said"),
    [
        (r"^\d{3}$", 5, None, "at least 5"),
        (r"(", 0, None, "cannot read"),
        (r"a(?=b)c", 0, 9, "0 to 9|cannot read"),
        (r"^a$", 0, 0, "0 to 0"),
    ],
)
def test_what_cannot_be_is_said(pattern, least, most, said):
    pytest.importorskip("rstr")
    with pytest.raises(UsageError, match=said) as caught:
        text_matching(pattern, random.Random(1), least=least, most=most)
    assert "examples=" in str(caught.value)
