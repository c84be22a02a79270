"""Finding the JSON in a text."""

from __future__ import annotations

from typing import Any

import pytest

from SimpleLLMFunc.base.parsing.json_node import plain_value
from SimpleLLMFunc.base.parsing.json_text import bare_text, find_json


def found(text: str) -> list[Any]:
    return [plain_value(candidate.node) for candidate in find_json(text).candidates]


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}', '```json\n{"a": 1}\n```', '```\n{"a": 1}\n```', '~~~JSON\n{"a": 1}\n~~~', '```json\n{"a": 1}',
        '```json {"a": 1}```', '````md\n```json\n{"a": 1}\n```\n````', 'Sure! {"a": 1} Bye.',
        '<answer>{"a": 1}</answer>', '<json>\n```json\n{"a": 1}\n```\n</json>', '\ufeff{"a": 1}',
        "a [see below] b {'a': 1}", "f{x} and {'a': 1}", '{\\"a\\": 1}', "{&quot;a&quot;: 1}", '{{"a": 1}}',
        '"a": 1', 'text {"a": 1}]', '[1, "b" + "c"] {"a": 1}', '[see, this "x" + {"a": 1}]', "'It is {\"a\": 1}'",
        '{"a": 1}' + " and so on" * 30_000, "." * 300_000 + "{'a': 1}", '[1 a]{x}{"a":1,"a":2}' * 200 + '{"a": 1}',
    ],
)  # fmt: skip
def test_finds_the_one_object(text: str) -> None:
    assert found(text) == [{"a": 1}]


def test_finds_every_candidate_and_fences_inside_strings_are_text() -> None:
    assert found('{"a": 1} then [[2] [3] x] and {"b": [4]} and {[5] x') == [{"a": 1}, [2], [3], {"b": [4]}, [5]]
    assert found('"a": "&quot;"') == [{"a": "&quot;"}]
    longest = "{'a': 1}" + "." * (256 * 1024 - 8)
    assert (found(longest), found(longest + ".")) == ([{"a": 1}], [])
    assert found('```json\n{"a": "```x```", "b": "} ]"}\n```') == [{"a": "```x```", "b": "} ]"}]


@pytest.mark.parametrize(
    "text", ['[{"a": 1}, {"a": ', '{"a": 1}, "b": 2}', '{"a": 1, "a": 2}', "[" * 5000, '{"a": [[1]], "b": [[2]], "c": }',
             'so {"a": 1, "a": 2, "b": [3]}', '[1, "b" + "c", {"a": 1}]', "so [[1]", '[see, 5, x: {"a": 1}]'],
)  # fmt: skip
def test_damage_is_noted_and_nothing_inside_it_is_a_candidate(text: str) -> None:
    finding = find_json(text)
    assert finding.candidates == []
    assert len(finding.damaged) == 1


@pytest.mark.parametrize("text", ["{'a': 1}", "{'a': {\"b\": 1}}", "[{'a': [1]}]", '"a": "'])
def test_a_long_text_is_not_mended_and_nothing_inside_what_is_broken_is_a_candidate(text: str) -> None:
    assert find_json(text + " and so on" * 30_000 + '"').candidates == []


@pytest.mark.parametrize(
    ("text", "bare"),
    [("**x**", "x"), ("`x`", "x"), ("```\nx\n```", "x"), ("<answer>x</answer>", "x"), (" so <answer>x</answer>", "x"),
     ("a *b* c", "a *b* c"), ("x", "x"), ("```yes```", "yes"), ("```yes``` or ```no```", "```yes``` or ```no```"),
     ("<answer>x", "<answer>x"), ("````\nx\n```", "x"), ("<answer>a</answer><answer>b</answer>",) * 2, ("```\na\n```\nor\n```\nb\n```",) * 2, ("~~~\n```\nx\n```\n~~~", "x")],
)  # fmt: skip
def test_bare_text_loses_its_decoration(text: str, bare: str) -> None:
    assert bare_text(text) == bare


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"a":' * 100_000, "{" * 100_000, '{"' * 100_000, "{x} " * 20_000, '"' * 100_000, "[1," * 100_000,
     '[{"a": 1}, ' + '\\"a' * 50_000, "[1 a] " * 2000 + "[2]"],
)  # fmt: skip
def test_hostile_brackets_end_soon(text: str) -> None:
    # the time limit of the test is the assertion: anything worse than linear takes minutes
    assert find_json(text).candidates == []
