"""`simplellmfunc traces`: what is kept, on the terminal."""

import json
import sys
from functools import partial

import pytest

from SimpleLLMFunc import llm_function, watching
from SimpleLLMFunc.cli.output import show_table
from SimpleLLMFunc.observability.store.trace_store import TraceStore
from SimpleLLMFunc.testing import ScriptedLLM
from tests.support.command_line import typed


@pytest.fixture
def store(tmp_path, monkeypatch):
    llm = ScriptedLLM("no", '{"stars": "5"}', RuntimeError("broken \x1b[31m"), repeat=True)

    @llm_function(llm_interface=llm)
    def grade(text: str) -> dict[str, int]:
        """Grade."""

    with TraceStore(tmp_path / "t.sqlite") as store, watching(store):
        grade("first text")
        with pytest.raises(RuntimeError):
            grade("second [red]text[/red]")
    monkeypatch.setenv("SIMPLELLMFUNC_TRACE", str(store.path))
    return store.path


run = partial(typed, "traces")


def test_a_list(store):
    lines = run("list").stdout.splitlines()
    assert len(lines) == 3
    assert lines[1].split()[0] == "2"
    assert "error" in lines[1]
    assert "[red]text[/red]" in lines[1]
    assert "ok" in lines[2]
    assert "first text" in lines[2]
    assert run("list", "--status", "error", "--function", "grade").stdout.count("\n") == 2
    assert run("list", "--text", "nothing of the kind").stdout == "No such runs.\n"
    assert run("list", "--since", "1h").stdout.count("\n") == 3
    assert run("list", "--until", "2020-01-01").stdout == "No such runs.\n"


def test_a_list_as_json_and_its_pages(store):
    page = json.loads(run("list", "--json", "--limit", "1").stdout)
    assert [each["id"] for each in page["runs"]] == [2]
    rest = json.loads(run("list", "--json", "--after", page["next"]).stdout)
    assert ([each["id"] for each in rest["runs"]], rest["next"]) == ([1], None)
    assert "--after" in run("list", "--limit", "1").stderr


def test_one_run(store):
    shown = run("show", "1").stdout
    assert "grade ok" in shown
    assert "first text" in shown
    assert "1 violation: where, expected, got\nthe answer  object, as JSON  'no'" in shown
    assert "1 repair: where, what\nstars  number taken from '5'" in shown
    assert "\x1b" not in run("show", "2").stdout
    detail = json.loads(run("show", "1", "--json").stdout)
    assert detail["value"] == {"stars": 5}
    assert run("show", detail["summary"]["trace_id"]).stdout == shown
    assert "t.sqlite. List them: simplellmfunc traces list " in run("show", "77", code=1).stderr
    assert "There is no run" in run("show", "9" * 30, code=1).stderr


def test_a_run_is_marked_and_found_by_it(store):
    said = run(
        "mark", "1", "--thumb", "up", "--tag", "good", "--tag", "short", "--score", "0.5", "--comment", "\x1b[31m"
    ).stdout
    assert said.startswith("run 1 grade: thumb up, score 0.5, good, short, ")
    assert "\x1b" not in said
    assert "mark      thumb up" in run("show", "1").stdout
    assert run("list", "--tag", "good").stdout.count("\n") == run("list", "--not-marked").stdout.count("\n") == 2
    marked = json.loads(run("mark", "1", "--forget", "--json").stdout)
    assert (marked["thumb"], marked["tags"]) == ("", [])
    assert "There is no run" not in run("mark", "1", code=1).stderr
    assert "no run '77'" in run("mark", "77", "--thumb", "up", code=1).stderr


def test_runs_are_exported_as_they_are_listed(store, tmp_path):
    run("export", "--to", str(tmp_path / "o.jsonl"), "--sort", "tokens", "--ascending")
    rows = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text(encoding="utf-8").splitlines()]
    listed = json.loads(run("list", "--sort", "tokens", "--ascending", "--json").stdout)["runs"]
    assert [row["id"] for row in rows] == [each["id"] for each in listed]
    run("export", "--to", str(tmp_path / "o.csv"), "--asked-again", "--status", "ok")
    assert (tmp_path / "o.csv").read_text(encoding="utf-8-sig").count("grade_") == 1
    assert "ends with none of" in run("export", "--to", "o.xls", code=2).stderr


def test_metrics(store):
    shown = run("metrics").stdout
    assert "50.0%" in shown
    (row,) = json.loads(run("metrics", "--json").stdout)
    assert (row["function"], row["runs"], row["errors"], row["reasks"]) == ("grade", 2, 1, 1)
    rows = json.loads(run("metrics", "--json", "--by", "model", "--by", "version", "--bucket", "1d").stdout)
    assert rows[0]["model"] == "scripted"
    assert rows[0]["bucket"] % 86_400 == 0
    assert run("metrics", "--bucket", "1d").stdout.startswith("from ")
    assert run("metrics", "--function", "none").stdout == "No such runs.\n"


def test_functions(store):
    lines = run("functions").stdout.splitlines()
    assert len(lines) == 2
    assert lines[1].split()[0] == "grade"
    assert lines[1].endswith("Grade.")
    (version,) = json.loads(run("functions", "--json").stdout)
    assert (version["function"], version["runs"], version["errors"]) == ("grade", 2, 1)


def test_old_runs_go(store):
    assert run("prune", "--older-than", "1h").stdout == "0 runs deleted.\n"
    assert run("prune", "--max-size", "1MB").stdout == "0 runs deleted.\n"
    assert json.loads(run("prune", "--older-than", "0s", "--json").stdout) == {"deleted": 2}
    assert run("list").stdout == "No such runs.\n"
    assert "--older-than" in run("prune", code=2).stderr


def test_a_place_that_is_none(store):
    assert "not a place" in run("list", "--after", "x", code=1).stderr


def test_a_table_on_a_terminal_is_text(monkeypatch, capsys):
    rows = [("1", "[red]x[/red]", "ok"), ("22", "人", "error")]
    show_table(("run", "text", "status"), rows)
    assert capsys.readouterr().out == "run  text          status\n1    [red]x[/red]  ok\n22   人            error\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    show_table(("run", "text", "status"), rows)
    out = capsys.readouterr().out
    assert "[red]x[/red]" in out
    assert "status" in out


def test_the_file_is_named_in_any_of_three_ways(store, monkeypatch):
    listed = run("list").stdout
    monkeypatch.delenv("SIMPLELLMFUNC_TRACE")
    path = str(store)
    for arguments in ([path], ["list", path], ["list", "--store", path]):
        assert run(*arguments).stdout == listed
    assert run(path, "--status", "error").stdout.count("\n") == 2
    assert "first text" in run("show", "1", path).stdout
    assert "grade" in run("functions", path).stdout
    assert "grade" in run("metrics", path).stdout
    assert run("prune", path, "--older-than", "1d").stdout == "0 runs deleted.\n"
    assert "Give one of them" in run("list", path, "--store", path, code=2).stderr
    missing = store.with_name("typo.sqlite")
    assert "there is no trace store" in run(str(missing), code=1).stderr
    assert not missing.exists()
