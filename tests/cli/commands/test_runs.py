"""`simplellmfunc runs`: what waits, the answer, what is forgotten."""

import json

import pytest

from SimpleLLMFunc import paused
from tests.support.command_line import typed
from tests.support.waiting import sell, waiting


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs.sqlite"


def run(*arguments, code=0):
    return typed("runs", *arguments, code=code).output


@pytest.mark.parametrize(
    ("asks", "lost"),
    [
        ((["--yes"], "paid 3"), (["--result", '"receipt 7"'], "receipt 7")),
        ((["--no"], "was not run"), (["--run-again"], "paid 3")),
        ((["--text", "Give a voucher."], "Give a voucher."), (["--result", "[1, 2]"], "[1, 2]")),
    ],
)
def test_answers(path, asks, lost):
    waits = waiting(path)
    assert json.loads(run(path, "--json")) == waits
    lines = run(path).splitlines()
    assert [line.split()[0] for line in lines] == ["key", "asks", "lost"]
    assert '{"amount": 3}' in lines[1]
    for each, (said, told) in zip(waits, (asks, lost), strict=True):
        run(path, "answer", each["key"], each["call_id"], *said)
        assert told in sell(path, each["key"], confirm=each["why"] == "confirm")
    assert run(path) == "Nothing waits for an answer.\n"
    assert "2 runs forgotten" in run(path, "prune", "--older-than", "0s")


def test_what_cannot_be(path):
    assert "there is no journal" in run(path, code=1)
    asks, _ = waiting(path)
    where = (path, "answer", "asks", asks["call_id"])
    assert "one answer" in run(*where, code=2)
    assert "one answer" in run(*where, "--yes", "--no", code=2)
    for text in ("{", "[" * 20_000):
        assert "is not JSON" in run(*where, "--result", text, code=2)
    assert "True, False or a text" in run(*where, "--result", "3", code=1)
    assert "nothing waits" in run(path, "answer", "asks", "x", "--yes", code=1)
    assert run(path, "forget", "asks") == "Forgotten.\n"
    assert "no run" in run(path, "forget", "asks", code=1)
    assert [each["key"] for each in paused(path)] == ["lost"]
