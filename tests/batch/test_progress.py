"""Progress: what it says, and where."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest

from SimpleLLMFunc.batch import progress as module
from SimpleLLMFunc.batch.progress import MapProgress, progress_view


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def state(**changed) -> MapProgress:
    facts = {"name": "grade", "done": 30, "asked": 20, "failed": 2, "total": 90, "cost": 0.5, "seconds": 10.0}
    return MapProgress(**{**facts, **changed})


@pytest.fixture
def _no_tqdm(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)


def test_it_tells_rate_cost_failures_and_time_left() -> None:
    assert str(state()) == "grade: 30 of 90 rows (33 %), 2.0 a second, 2 failed, 0.5000 USD, 0:30 left"
    assert str(state(total=None, cost=None)) == "grade: 30 rows, 2.0 a second, 2 failed"
    assert str(state(total=72_030)).endswith("10:00:00 left")
    assert "91 of 90 rows (100 %)" in str(state(done=91))
    assert state(asked=0).seconds_left is None
    assert (state(seconds=0.5).rate, state(seconds=0.0).rate, state(done=91).seconds_left) == (40.0, 0.0, 0.0)


def test_a_bar_where_tqdm_is(monkeypatch) -> None:
    monkeypatch.setattr(sys, "stderr", screen := Screen())
    view = progress_view(None)
    view(state(), None)
    view(state(done=60, asked=50), None)
    view(state(done=90, asked=80), "how to go on")
    shown = screen.getvalue()
    assert all(said in shown for said in ("grade", "10/90", "90/90", "failed=2", "USD=0.5000"))
    assert shown.endswith("how to go on\n")


@pytest.mark.usefixtures("_no_tqdm")
def test_a_line_on_a_terminal_is_written_again(monkeypatch) -> None:
    monkeypatch.setattr(sys, "stderr", screen := Screen())
    view = progress_view(None)
    view(state(), None)
    view(state(total=None, cost=None), None)
    view(state(done=90), "how to go on")
    first, second, third = screen.getvalue().split("\r")[1:]
    assert len(first) == len(second)  # the shorter one leaves nothing of the longer one
    assert third == f"{state(done=90)}\nhow to go on\n"


@pytest.mark.usefixtures("_no_tqdm")
def test_lines_elsewhere_are_few(monkeypatch, capsys) -> None:
    now = 0.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    view = progress_view(True)
    view(state(), None)
    view(state(done=31), None)
    now = 10.0
    for done, note in ((32, None), (33, None), (90, "")):
        view(state(done=done), note)
    assert capsys.readouterr().err.splitlines() == [str(state(done=done)) for done in (30, 32, 90)]


def test_without_a_terminal_nothing_is_shown_but_in_a_notebook(monkeypatch) -> None:
    assert [progress_view(False), progress_view(None)] == [None, None]
    monkeypatch.setattr(sys, "stderr", None)
    assert [progress_view(None), progress_view(True)] == [None, None]
    monkeypatch.undo()
    shell = type("ZMQInteractiveShell", (), {})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=shell))
    assert progress_view(None) is not None
