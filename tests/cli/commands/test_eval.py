"""`simplellmfunc eval` and `improve`: scores on the terminal, files, an exit code for CI; a better form, and its patch."""

import json
import subprocess
import sys
import textwrap

import pytest

from SimpleLLMFunc.cli.load import load_object
from SimpleLLMFunc.evaluate import EvalReport
from tests.support.command_line import typed

MODULE = """
import json, re
from typing import Literal
from SimpleLLMFunc import llm_function
from SimpleLLMFunc.testing import ScriptedLLM

WRONG = {wrong!r}

def said(asked):
    number = int(re.search("number: (.*)", asked.text)[1])
    return json.dumps("odd" if (number % 2) != (number in WRONG) else "even")

@llm_function(ScriptedLLM(said, repeat=True))
async def parity(number: int) -> Literal["even", "odd"]:
    "Even or odd?"

def learned(asked):
    number = int(re.search("number: (.*)", asked.text)[1])
    return json.dumps("odd" if number % 2 or len(asked.messages) < 8 else "even")

@llm_function(ScriptedLLM(learned, repeat=True))
async def learner(number: int) -> Literal["even", "odd"]:
    "Even or odd?"

def right(value, expected):
    return value == expected

def is_text(value, expected):
    return isinstance(value, str)

nothing = 3
"""


@pytest.fixture
def run(folder):
    def invoke(*args, words=("eval", "shop.py:parity"), cases=20, wrong=(), code=0):
        lines = [{"args": number, "expected": "odd" if number % 2 else "even"} for number in range(cases)]
        (folder / "cases.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        (folder / "shop.py").write_text(textwrap.dedent(MODULE.format(wrong=list(wrong))), encoding="utf-8")
        sys.modules.pop("shop", None)  # the file may have changed
        return typed(*words, "cases.jsonl", *args, code=code)

    return invoke


def test_good_enough_ends_with_0(run, tmp_path):
    result = run("--min", "exact=0.9", "--report", "new.json", "--svg", "new.svg", wrong=[3])
    assert "0.950" in result.output
    report = EvalReport.load(tmp_path / "new.json")
    assert (report.name, len(report.results), report.function) == ("parity", 20, report.function)
    assert (tmp_path / "new.svg").read_text(encoding="utf-8").startswith("<svg")


def test_not_good_enough_ends_with_1_and_says_why(run):
    result = run("--min", "exact=0.99", wrong=[3], code=1)
    assert "exact is 0.950, required 0.990" in result.output
    run("--min", "exact=0.9", "--at", "low", wrong=[3], code=1)
    run("--min", "other=0.9", code=1)
    assert "is not SCORE=NUMBER" in run("--min", "exact=nan", code=2).output


def test_worse_than_before_beyond_chance_ends_with_1(run):
    run("--report", "agreed.json")
    worse = run("--compare", "agreed.json", wrong=range(8), code=1)
    assert "Lower than before beyond chance: exact" in worse.output
    chance = run("--compare", "agreed.json", wrong=[1])
    assert "mcnemar" in chance.output
    run("--report", "agreed.json", "--scorer", "shop.py:is_text")
    assert "exact" in run("--compare", "agreed.json", code=1).output  # paid for, and shown


def test_scorers_of_the_users_own_and_several(run):
    result = run("--scorer", "exact", "--scorer", "shop.py:is_text", "--min", "is_text=1", wrong=[3])
    assert "is_text" in result.output
    run("--scorer", "close", code=1)
    run("--scorer", "shop.py:nothing", code=1)


def test_repeats_checkpoint_and_quiet(run, tmp_path):
    result = run("--repeats", "2", "--checkpoint", "run.sqlite", "--quiet")
    assert (result.exit_code, result.output) == (0, "")
    assert (tmp_path / "run.sqlite").exists()


def test_what_cannot_be(run):
    run("--report", "no/such/folder/x.json", code=1)
    run("--compare", "none.json", code=1)


def test_improve_searches_tells_and_writes(run, tmp_path):
    improve = ("improve", "shop.py:learner")
    result = run("--budget", "100", "--scorer", "shop.py:right", "--diff", "--quiet", words=improve, cases=40)
    assert "accepted: better on cases that the search never saw" in result.output
    assert "held out    16 cases" in result.output
    patch = result.output[result.output.index("--- a/shop.py") :]
    subprocess.run(["git", "apply", "--check", "-"], input=patch.encode(), cwd=tmp_path, check=True)
    better = load_object("shop.py:learner").with_options(improvement="learner.improved.json")
    assert len(better.preview(3).messages) > 8
    few = run("--budget", "20", words=improve, cases=40, code=1)
    assert "the budget is too small" in few.output
