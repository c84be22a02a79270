"""`simplellmfunc map`, as it is typed."""

import json
import signal
import sys
from functools import partial

import pytest

from tests.support.command_line import begun, typed

SHOP = '''
import asyncio
from pydantic import BaseModel
from SimpleLLMFunc import llm_chat, llm_function
from SimpleLLMFunc.testing import ScriptedLLM


class Label(BaseModel):
    label: str
    sure: float


async def answer(request):
    if "bad" in request.text.rpartition("text: ")[2]:
        return "I cannot say."
    if "slow" in request.text.rpartition("text: ")[2]:
        print("ASKED", flush=True)
        await asyncio.Event().wait()
    return '{"label": "good", "sure": 0.5}'


llm = ScriptedLLM(answer, repeat=True)


@llm_function(llm_interface=llm, max_reasks=0)
async def classify(text: str) -> Label:
    """Classify."""


@llm_function(llm_interface=llm, max_reasks=0)
def classify_now(text: str) -> Label:
    """Classify."""


@llm_function
def without_model(text: str) -> str:
    """Say it."""
'''


@pytest.fixture
def shop(folder):
    (folder / "map_shop.py").write_text(SHOP)
    (folder / "rows.csv").write_text("id,text\n1,a\n2,b\n")
    return "map_shop"


run = partial(typed, "map")


@pytest.mark.parametrize("function", ["classify", "classify_now"])
def test_a_file_in_and_a_file_out(shop, tmp_path, function):
    done = run(f"{shop}:{function}", "rows.csv", "--out", "out.csv")
    assert (tmp_path / "out.csv").read_text() == "id,text,label,sure,error\n1,a,good,0.5,\n2,b,good,0.5,\n"
    assert f"{function}: 2 rows" in done.stderr
    assert "Written to out.csv." in done.stderr


def test_without_out_the_rows_go_to_stdout(shop):
    done = run(f"{shop}:classify", "rows.csv", "--limit", 1, "--concurrency", 3)
    (line,) = done.stdout.splitlines()
    assert json.loads(line) == {
        "index": 0, "row": {"id": "1", "text": "a"}, "value": {"label": "good", "sure": 0.5}, "error": None,
    }  # fmt: skip
    assert run(f"{shop}:classify", "rows.csv", "--quiet").stderr == ""


def test_rows_without_a_value_are_told_and_written(shop, tmp_path):
    (tmp_path / "rows.jsonl").write_text(
        '{"text": "bad"}\nbroken\n{"text": "a"}\n{"text": "bad \x1b too"}\n{"text": "bad 3"}\n'
    )
    done = run(f"{shop}:classify", "rows.jsonl", "--out", "out.jsonl", code=1)
    assert "row 0: ResponseParseError" in done.stderr
    assert "row 1: UsageError: rows.jsonl, line 2: it is not JSON" in done.stderr
    assert "and 1 more" in done.stderr
    assert "\x1b" not in done.stderr
    records = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [record["error"] is None for record in records] == [False, False, True, False, False]
    stopped = run(f"{shop}:classify", "rows.jsonl", "--out", "none.jsonl", "--on-error", "raise", code=1)
    assert stopped.stderr.startswith("Error: ")
    assert not (tmp_path / "none.jsonl").exists()


def test_columns_of_another_name(shop, tmp_path):
    (tmp_path / "other.csv").write_text("id,comment=\n1,a\n")
    run(f"{shop}:classify", "other.csv", "--column", "comment==text")
    done = run(f"{shop}:classify", "other.csv", "--column", "cmt=text", code=1)
    assert "line 2: there is no column 'cmt'" in done.stderr
    for wrong in (["=text"], ["a="], ["a=b c"], ["a", "--column", "b=text"]):
        run(f"{shop}:classify", "other.csv", "--column", *wrong, code=2)


def test_the_column_for_a_function_of_one_parameter(shop, tmp_path):
    (tmp_path / "other.csv").write_text("id,comment\n1,a\n")
    refused = run(f"{shop}:classify", "other.csv", code=1)
    assert "no column for 'text'; the columns are 'id', 'comment', and classify() takes 'text'" in refused.stderr
    run(f"{shop}:classify", "other.csv", "--column", "comment", "--out", "out.csv")
    assert (tmp_path / "out.csv").read_text() == "id,comment,label,sure,error\n1,a,good,0.5,\n"


def test_a_checkpoint_and_its_status(shop, tmp_path):
    (tmp_path / "rows.csv").write_text("text\na\nbad\n")
    arguments = (f"{shop}:classify", "rows.csv", "--checkpoint", "run.sqlite")
    run(*arguments, code=1)
    status = run("--status", "run.sqlite")
    assert "1 row with a value, 1 with an error (1 x ResponseParseError)" in status.output
    (tmp_path / "rows.csv").write_text("text\na\nbad\nc\n")
    assert "1 asked, 2 restored" in run(*arguments, code=1).stderr
    assert "1 asked, 2 restored" in run(*arguments, "--retry-errors", code=1).stderr
    run("--status", "nope.sqlite", code=1)
    (tmp_path / "text.sqlite").write_text("no database" * 100)
    broken = run("--status", "text.sqlite", code=1)
    assert broken.stderr.startswith("Error: ")


def test_a_budget_and_a_deadline_stop_it(shop):
    for limit in (("--budget-tokens", 0), ("--deadline", 0.000001)):
        done = run(f"{shop}:classify", "rows.csv", "--out", "out.csv", *limit, code=1)
        assert "stopped before the end of the rows: the " in done.stderr


def test_nothing_is_asked_where_the_answers_would_have_no_place(shop, tmp_path):
    for arguments, said in (
        (("nope.csv",), "there is no file 'nope.csv'"),
        (("rows.csv", "--out", "out.txt"), "rows are written as"),
        (("rows.csv", "--out", "no/out.csv"), "there is no folder"),
        (("rows.csv", "--out", "rows.csv"), "ROWS and --out are the same file"),
        (("rows.csv", "--out", "x.csv", "--checkpoint", "./x.csv"), "--out and --checkpoint are the same file"),
    ):
        done = run(f"{shop}:classify", *arguments, code=1)
        assert said in done.stderr
    assert sorted(path.suffix for path in tmp_path.iterdir() if path.is_file()) == [".csv", ".py"]


def test_what_cannot_be_mapped(shop):
    assert "Name a function under @llm_function" in run(f"{shop}:Label", "rows.csv", code=1).stderr
    assert "has no 'nope'" in run(f"{shop}:nope", "rows.csv", code=1).stderr


def test_the_engine_is_handed_on(shop):
    done = run(f"{shop}:classify", "rows.csv", "--engine", "openai-batch", code=1)
    assert "a service runs batches, and ScriptedLLM is not asked over HTTP" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("function", ["classify", "classify_now"])
def test_ctrl_c_says_how_to_go_on(shop, tmp_path, function):
    (tmp_path / "rows.csv").write_text("text\na\nslow\n")
    words = ("map", f"{shop}:{function}", "rows.csv", "--concurrency", "1")

    def interrupted(*more):
        process = begun(*words, *more, cwd=tmp_path)
        assert process.stdout.readline() == "ASKED\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
        assert process.returncode == 130
        assert "Traceback" not in err
        return err

    assert "With --checkpoint run.sqlite the same command goes on" in interrupted()
    said = interrupted("--checkpoint", "run.sqlite")
    assert f"simplellmfunc map {shop}:{function} rows.csv --concurrency 1 --checkpoint run.sqlite" in said
    assert "1 row with a value" in run("--status", "run.sqlite").output
