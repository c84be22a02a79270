"""json-repair is believed only where nothing was made up, cut or left out."""

from __future__ import annotations

import pytest

from SimpleLLMFunc.base.parsing.json_node import plain_value
from SimpleLLMFunc.base.parsing.outside_repair import LONGEST, repair_outside


@pytest.mark.parametrize(
    ("text", "value"),
    [('{"a": ("x"), "b": 2}', {"a": "x", "b": 2}), ('{"a": "x", b: "y"}', {"a": "x", "b": "y"})],
)
def test_a_repair_that_keeps_everything(text: str, value: object) -> None:
    assert plain_value(repair_outside(text)) == value


@pytest.mark.parametrize(
    "text",
    [
        "I am sorry",
        "",
        "{}",
        '{"a": 1',  # would be closed
        '{"a": [1, 2}',
        '{"a": "x", ...}',
        '{"a": "x" // gone\n}',
        '{"a": "he said "hi" to", "b": 1}',
        '{"a": 1, "a": 2}',
        "[" * 2000,
        '{"a": "' + "x" * LONGEST + '"}',
    ],
)
def test_a_repair_that_may_lose_or_guess_is_not_believed(text: str) -> None:
    assert repair_outside(text) is None
