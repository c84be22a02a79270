"""Every row of the table of attacks has its tests; they bear its number."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

ATTACKS = {
    1: "templates with named fields read attributes",
    2: "data with type tags becomes objects",
    3: "a second, unsafe format",
    4: "SQL and paths out of names",
    5: "code in an answer or an argument",
    6: "templates of Jinja2 leave the sandbox",
    7: "the sandbox's own escapes",
    8: "the sandbox limits nothing",
    9: "a user's text is a template",
    10: "a schema fetches its references",
    11: "a schema or a pattern that never ends",
    12: "deep and odd JSON",
    13: "addresses of images are fetched",
    14: "paths of images are read",
    15: "arguments of a call change where the key goes",
    16: "instructions in what a tool returns",
    17: "roles in a history",
    18: "arguments of tools",
    19: "keys in any output",
    20: "what a failing tool says",
    21: "lines and escapes in a log",
    22: "the page",
    23: "the supply chain",
    24: "a model that never ends",
}


def found() -> dict[int, list[str]]:
    tests: dict[int, list[str]] = {number: [] for number in ATTACKS}
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                named = re.match(r"test_attack_(\d+)_", node.name)
                if named:
                    tests.setdefault(int(named.group(1)), []).append(f"{path.relative_to(TESTS)}::{node.name}")
    return tests


TESTS_OF = found()


@pytest.mark.parametrize("number", ATTACKS, ids=lambda number: f"{number:02} {ATTACKS[number]}")
def test_every_attack_has_a_test_of_its_number(number):
    assert TESTS_OF[number], f"attack {number}, {ATTACKS[number]}, has no test"


def test_no_test_bears_the_number_of_an_attack_that_is_not_there():
    assert set(TESTS_OF) == set(ATTACKS)
