import random
import re

import pytest

from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.testing.patterns import text_matching

PATTERNS = [
    r"^[A-Z]{3}-\d{4}$", r"abc", r"^(\w+)@x\.com$", r"^[^a-z]+$", r"(a|b|cd)+", r"^\+?[1-9]\d{1,14}$", r"^(?P<q>['\"]).*(?P=q)$",
    r"^#(?:[0-9a-fA-F]{3}){1,2}$", r"^(?!0)\d{3}$", r"\S+\s\S+", r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}$", r"^$", r"a?b*c+", r"^.{5}$",
    r"^[äöü]+$", r"^\p{Lu}[\p{L}]+\z", r"\D\W", r"^(a)?(?(1)b|c)$",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_what_is_made_matches(pattern):
    seen = set()
    for seed in range(30):
        text = text_matching(pattern, random.Random(seed))
        plain = pattern.replace(r"\p{Lu}", "[A-Z]").replace(r"[\p{L}]", "[A-Za-z]").replace(r"\z", r"\Z")
        assert re.search(plain, text)
        seen.add(text)
    assert len(seen) > 1 or pattern in {"abc", "^$"}


@pytest.mark.parametrize(
    ("pattern", "least", "most"),
    [
        (r"^[a-z]+$", 30, 40),
        (r"x", 10, 10),
        (r"^\d*$", 7, 7),
        (r"[abc]+", 0, 3),
        (r"^a*b*$", 12, None),
        (r"^(ab)*$", 8, 8),
    ],
)
def test_lengths_hold(pattern, least, most):
    for seed in range(20):
        text = text_matching(pattern, random.Random(seed), least=least, most=most)
        assert re.search(pattern, text)
        assert least <= len(text) <= (most or 1000)


@pytest.mark.parametrize(
    ("pattern", "least", "most", "said"),
    [
        (r"^\d{3}$", 5, None, "at least 5"),
        (r"(", 0, None, "cannot read"),
        (r"a(?=b)c", 0, 9, "0 to 9"),
        (r"^a$", 0, 0, "0 to 0"),
    ],
)
def test_what_cannot_be_is_said(pattern, least, most, said):
    with pytest.raises(UsageError, match=said) as caught:
        text_matching(pattern, random.Random(1), least=least, most=most)
    assert "examples=" in str(caught.value)
