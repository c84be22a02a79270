"""`simplellmfunc eval`: scores on the terminal, files, and an exit code for CI."""

import json
import textwrap

import pytest
from click.testing import CliRunner

from SimpleLLMFunc.cli.main import main
from SimpleLLMFunc.evaluate import EvalReport

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

def is_text(value, expected):
    return isinstance(value, str)

nothing = 3
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [{"args": number, "expected": "odd" if number % 2 else "even"} for number in range(20)]
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")

    def invoke(*args, wrong=()):
        (tmp_path / "shop.py").write_text(textwrap.dedent(MODULE.format(wrong=list(wrong))), encoding="utf-8")
        return CliRunner().invoke(main, ["eval", "shop.py:parity", "cases.jsonl", *args], catch_exceptions=False)

    return invoke


def test_good_enough_ends_with_0(run, tmp_path):
    result = run("--min", "exact=0.9", "--report", "new.json", "--svg", "new.svg", wrong=[3])
    assert result.exit_code == 0
    assert "0.950" in result.output
    report = EvalReport.load(tmp_path / "new.json")
    assert (report.name, len(report.results), report.function) == ("parity", 20, report.function)
    assert (tmp_path / "new.svg").read_text(encoding="utf-8").startswith("<svg")


def test_not_good_enough_ends_with_1_and_says_why(run):
    result = run("--min", "exact=0.99", wrong=[3])
    assert result.exit_code == 1
    assert "exact is 0.950, required 0.990" in result.output
    assert run("--min", "exact=0.9", "--at", "low", wrong=[3]).exit_code == 1
    assert run("--min", "other=0.9").exit_code == 1


def test_worse_than_before_beyond_chance_ends_with_1(run):
    assert run("--report", "agreed.json").exit_code == 0
    worse = run("--compare", "agreed.json", wrong=range(8))
    assert worse.exit_code == 1
    assert "Lower than before beyond chance: exact" in worse.output
    chance = run("--compare", "agreed.json", wrong=[1])
    assert chance.exit_code == 0
    assert "mcnemar" in chance.output


def test_scorers_of_the_users_own_and_several(run):
    result = run("--scorer", "exact", "--scorer", "shop.py:is_text", "--min", "is_text=1", wrong=[3])
    assert result.exit_code == 0
    assert "is_text" in result.output
    assert run("--scorer", "close").exit_code == 1
    assert run("--scorer", "shop.py:nothing").exit_code == 1


def test_repeats_checkpoint_and_quiet(run, tmp_path):
    result = run("--repeats", "2", "--checkpoint", "run.sqlite", "--quiet")
    assert (result.exit_code, result.output) == (0, "")
    assert (tmp_path / "run.sqlite").exists()


def test_what_cannot_be(run):
    assert run("--min", "exact").exit_code == 2
    assert run("--report", "no/such/folder/x.json").exit_code == 1
    assert run("--compare", "none.json").exit_code == 1
    assert run("--repeats", "0").exit_code == 2
