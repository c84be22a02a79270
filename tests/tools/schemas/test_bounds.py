"""What a JSON Schema from outside may hold, before anything is checked against it."""

import pytest

from SimpleLLMFunc.errors import SchemaError
from SimpleLLMFunc.tools.schemas.bounds import check_bounds, pattern_matches


def test_a_pattern_is_looked_for_in_linear_time():
    assert pattern_matches(r"^\p{Han}+$", "杭州")
    assert not pattern_matches("^(a+)+$", "a" * 28 + "!")
    for pattern in ("(", "(?=a)", "a" * 257):
        with pytest.raises(SchemaError, match="pattern"):
            pattern_matches(pattern, "a")


def test_values_are_not_searched_for_references_and_patterns():
    for keyword in ("const", "default"):
        check_bounds({keyword: {"$ref": "http://127.0.0.1:1/", "pattern": "("}})
    check_bounds({"enum": [{"$ref": "x"}], "examples": [{"pattern": "("}]})
    with pytest.raises(SchemaError, match=r"at /x-own/0/y is remote"):
        check_bounds({"x-own": [{"y": {"$ref": "x"}}]})
