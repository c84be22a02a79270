"""`simplellmfunc improve`: a table, a file that the function takes, a patch."""

import json
import subprocess

from click.testing import CliRunner

from SimpleLLMFunc.cli.load import load_object
from SimpleLLMFunc.cli.main import main

MODULE = '''
import json, re
from typing import Literal
from SimpleLLMFunc import llm_function
from SimpleLLMFunc.testing import ScriptedLLM

def said(asked):
    number = int(re.search("number: (.*)", asked.text)[1])
    return json.dumps("odd" if number % 2 or len(asked.messages) < 8 else "even")

@llm_function(ScriptedLLM(said, repeat=True))
async def parity(number: int) -> Literal["even", "odd"]:
    """Even or odd?"""

def right(value, expected):
    return value == expected
'''


def test_it_searches_tells_and_writes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text(MODULE, encoding="utf-8")
    lines = [{"args": number, "expected": "odd" if number % 2 else "even"} for number in range(40)]
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")

    def invoke(*args):
        return CliRunner().invoke(main, ["improve", "shop.py:parity", "cases.jsonl", *args], catch_exceptions=False)

    result = invoke("--budget", "100", "--scorer", "shop.py:right", "--diff", "--quiet")
    assert result.exit_code == 0, result.output
    assert "accepted: better on cases that the search never saw" in result.output
    assert "held out    16 cases" in result.output
    patch = result.output[result.output.index("--- a/shop.py") :]
    assert (
        subprocess.run(["git", "apply", "--check", "-"], input=patch.encode(), cwd=tmp_path, check=False).returncode
        == 0
    )
    better = load_object("shop.py:parity").with_options(improvement="parity.improved.json")
    assert len(better.preview(3).messages) > 8
    few = invoke("--budget", "20")
    assert few.exit_code == 1
    assert "the budget is too small" in few.output
