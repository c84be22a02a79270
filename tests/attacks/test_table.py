"""Every row of the table of attacks has its tests; they bear its number, or the title of their section does."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]

ATTACKS = {
    1: "templates with named fields read attributes", 2: "data with type tags becomes objects",
    3: "a second, unsafe format", 4: "SQL and paths out of names", 5: "code in an answer or an argument",
    6: "templates of Jinja2 leave the sandbox", 7: "the sandbox's own escapes", 8: "the sandbox limits nothing",
    9: "a user's text is a template", 10: "a schema fetches its references",
    11: "a schema or a pattern that never ends", 12: "deep and odd JSON", 13: "addresses of images are fetched",
    14: "paths of images are read", 15: "arguments of a call change where the key goes",
    16: "instructions in what a tool returns", 17: "roles in a history", 18: "arguments of tools",
    19: "keys in any output", 20: "what a failing tool says", 21: "lines and escapes in a log", 22: "the page",
    23: "the supply chain", 24: "a model that never ends",
}  # fmt: skip

NUMBERS = re.compile(r"^ *(?:async )?def test_attack_(\d+)_|^# --- .*\(attacks? (\d+)(?: and (\d+))?\) -", re.MULTILINE)


def test_every_attack_has_a_test_of_its_number_and_no_other_number_has_one():
    texts = [path.read_text("utf-8") for path in TESTS.rglob("test_*.py")]
    tested = {int(number) for text in texts for found in NUMBERS.findall(text) for number in found if number}
    assert tested == ATTACKS.keys()
