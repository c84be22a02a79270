"""Named fields and nothing else."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from SimpleLLMFunc.base.templates.template import fill_fields
from SimpleLLMFunc.errors import TemplateError


class Secret:
    api_key = "sk-LEAK-0123456789"

    def __str__(self):
        return "a secret"


@pytest.mark.parametrize(
    "text",
    [
        "{u.api_key}", "{u.__init__.__globals__}", "{u[0]}", "{u:>1000000000}", "{u!r}", '{"a": 1}', "{{u}}", "{ u }",
        "{}", "{0}",
    ],
)  # fmt: skip
def test_everything_but_an_identifier_is_text(text):
    assert fill_fields(text, {"u": Secret()}) == text


def test_a_field_may_have_any_identifier_and_its_value_is_never_looked_at_again():
    assert fill_fields('{"k": {x}} {y}', {"x": "{y}", "y": "{x}"}) == '{"k": {y}} {x}'
    filled = fill_fields("{主题} and {_a1} and {主题} and {1a}", {"主题": "雨", "_a1": 2})
    assert filled == "雨 and 2 and 雨 and {1a}"


def test_a_missing_value_names_the_field_and_what_is_known():
    with pytest.raises(TemplateError, match=r"\{missing\}.*\{known\}") as caught:
        fill_fields("{known} {missing}", {"known": 1}, name="system_prompt_template")
    assert caught.value.field == "missing"
    assert "system_prompt_template" in str(caught.value)


@given(st.text())
def test_text_without_fields_is_left_alone(text):
    if not re.search(r"\{[^\W\d]\w*\}", text):
        assert fill_fields(text, {}) == text


@given(st.text(), st.text(), st.text())
def test_values_enter_as_they_are(before, value, after):
    before, after = before.replace("{", ""), after.replace("{", "")
    assert fill_fields(f"{before}{{x}}{after}", {"x": value}) == before + value + after
