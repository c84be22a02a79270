"""The league: its data, how answers are judged, that it goes on where it broke off, its page, and its recordings."""

from __future__ import annotations

import argparse
import gzip
import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.league import __main__ as league
from benchmarks.league import contenders, improved, page, replay, sure
from benchmarks.league.reports import write_reports
from benchmarks.league.tasks import DATA, ORDER, Task, constant
from SimpleLLMFunc.evaluate import EvalReport
from tests.support.server import serving_in_thread, text_answer

CELLS = {"found": 0, "made_up": 0, "missed": 0, "seconds": 1.0, "cpu": 1.0, "in": 60.0, "out": 8.0}
HEAD = {"model": "smollm2-135m", "version": "1", "date": "2026-01-02", "task": "sentiment"}


def answered(who: str, row: dict[str, Any], kind: str) -> dict[str, Any]:
    """One answer as a run of the league keeps it."""
    told = {"contender": who, "id": row["id"], "kind": kind, "exact": kind == "right", "said": kind}
    return {**HEAD, **CELLS, **told}


@pytest.mark.parametrize("name", ORDER)
def test_the_expected_answer_of_every_row_is_right_and_a_task_says_whose_it_is(name: str) -> None:
    task = Task(name)
    assert [len(task.split(split)) for split in ("train", "dev", "test")] == [200, 60, 150]
    assert all(task.judged(row, {"value": row["expected"]})["kind"] == "right" for row in task.rows)
    told = json.loads((DATA / f"{name}.json").read_text("utf-8"))
    assert told["licence"].split(",")[0].split(" by ")[0] in (DATA / "LICENCES.txt").read_text("utf-8").replace(
        "see task.json for news_topic", "public domain"
    )
    assert told["attribution"]


@pytest.mark.parametrize(("name", "value", "kind"), [
    ("sentiment", "positive ", "type"), ("sentiment", None, "type"), ("word_problem", "12", "type"),
    ("word_problem", True, "type"), ("word_problem", 12.0, "type"), ("word_problem", -1, "wrong"),
    ("restaurant_record", {"city": "Ubly"}, "type"), ("restaurant_record", "Ubly", "type"),
    ("chinese_record", {"category": "店", "name": None, "price": None, "rating": None}, "type"),
    ("chinese_record", {"category": "酒店", "name": None, "price": None, "rating": None}, "wrong"),
    ("function_call", {"function": "f", "arguments": {"a": None}}, "type"),
    ("function_call", {"function": "f", "arguments": {}}, "wrong"),
])  # fmt: skip
def test_a_value_of_another_type_is_told_from_a_wrong_one(name: str, value: Any, kind: str) -> None:
    task = Task(name)
    assert task.judged(task.split("dev")[0], {"value": value})["kind"] == kind
    assert task.judged(task.split("dev")[0], {"problem": "TimeoutError"})["kind"] == "error"


@pytest.mark.local_model
def test_ours_asks_the_server_of_all_contenders() -> None:
    task = Task("sentiment")
    with serving_in_thread(text_answer("positive")) as server:
        ask = contenders.ours(contenders.Server(server.base_url, "sk-test", "smollm2-135m"), task)
        assert ask(task.split("dev")[0]["input"]) == "positive"
    assert len(server.requests) == 1


def test_a_call_is_right_with_every_accepted_value_and_with_nothing_else() -> None:
    task = Task("function_call")
    row = task.split("dev")[1]
    right = {"identifier": "achd", "include_images": True}
    wrong = [({key: value}, "wrong") for key, value in (("search_type", "SKU"), ("include_images", 1), ("unit", "kg"))]
    for more, kind in [({}, "right"), ({"search_type": "MPN"}, "right"), *wrong]:
        value = {"function": row["expected"]["function"], "arguments": {**right, **more}}
        assert task.judged(row, {"value": value})["kind"] == kind, more


def test_a_run_that_broke_off_goes_on_and_asks_nothing_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []

    class Breaks:
        def ask(self, name: str, task: Task, row: dict[str, Any]) -> dict[str, Any]:
            if len(asked) == 5:
                raise KeyboardInterrupt
            asked.append((name, row["id"]))
            return {**task.judged(row, {"value": row["expected"]}), "seconds": 1.0}

    @contextmanager
    def breaks(_: str) -> Iterator[Breaks]:
        yield Breaks()

    monkeypatch.setattr(league, "asked", breaks)
    monkeypatch.setattr(league, "prepare", lambda _: None)
    monkeypatch.setattr(league, "installed", lambda one: {"versions": {one.package: "1"}})
    given = {"split": "dev", "rows": 3, "tasks": ("sentiment",), "contenders": ("ours", "openai")}
    options = argparse.Namespace(**given, models=("smollm2-135m",), again=())
    path = tmp_path / "dev.jsonl"
    with pytest.raises(KeyboardInterrupt):
        league.run(options, path)
    with path.open("a", encoding="utf-8") as file:
        file.write('{"model": "smollm2-135m", "tas')  # the power went
    asked.append(("", ""))
    league.run(options, path)
    rows = [f"sentiment-dev-00{number}" for number in range(3)]
    assert sorted(asked[:5] + asked[6:]) == sorted((who, row) for who in ("ours", "openai") for row in rows)
    assert [each["kind"] for each in league.read(path)] == ["right"] * 6
    options.again = ("ours",)
    league.run(options, path)
    assert [who for who, _ in asked[-3:]] == ["ours"] * 3
    assert len(league.read(path)) == 6


def test_the_page_counts_and_compares() -> None:
    answers = [
        answered(who, row, kind)
        for number, row in enumerate(Task("sentiment").split("dev")[:20])
        for who, kind in [("ours", "right" if number else "error"), ("openai", "wrong"), ("dspy", "right")]
    ]
    answers[1]["kind"] = "type"
    text = page.page(answers, "dev", "A note.")
    assert "asked 2026-01-02" in text
    assert "A note." in text
    assert "| SimpleLLMFunc | **95%** (76–99%, n = 20) |" in text
    assert "| openai, JSON schema | **0%** ▼ (0–16%, n = 20) |" in text
    assert "| DSPy | **100%** (84–100%, n = 20) |" in text
    assert "| openai, JSON schema | 1 | 0 | 19 | 1 | 0 | 1.00 |" in text
    assert "| SimpleLLMFunc | 1 | 19 | 0 | 0 | 1 | 1.00 | 1.00 | 60 | 8 | 1 of 1 | 0 of 1 |" in text
    drawn = ET.fromstring(page.picture(answers))
    assert sum(each.tag.endswith("circle") for each in drawn.iter()) == 3


def test_records_have_the_f1_of_their_fields() -> None:
    task = Task("restaurant_record")
    row = next(row for row in task.rows if row["expected"]["city"] and row["expected"]["time"])
    half = {**row["expected"], "city": None, "state": "Nowhere" if row["expected"]["state"] is None else None}
    told = task.judged(row, {"value": half})
    wanted = sum(each is not None for each in row["expected"].values())
    assert (told["exact"], told["found"] < wanted, told["missed"] >= 1) == (False, True, True)
    cell = page.Cell({row["id"]: {**CELLS, **told}}, is_record=True)
    assert cell.figure == 2 * told["found"] / (2 * told["found"] + told["made_up"] + told["missed"])
    assert isinstance(constant(task), dict)


def test_the_page_in_the_tree_is_the_one_that_the_answers_make() -> None:
    there = (page.FOLDER / "LEAGUE.md").read_text("utf-8")
    split = there.partition("Split `")[2].partition("`")[0]
    kept = gzip.decompress((page.FOLDER / "league" / f"{split}.jsonl.gz").read_bytes())
    made = page.page([json.loads(line) for line in kept.splitlines()], split, "")
    tables = [[line for line in text.splitlines() if line.startswith("|")] for text in (made, there)]
    assert tables[0] == tables[1][: len(tables[0])] != []
    more = "\n".join([*sure.section(("sentiment",)), *improved.section()])
    assert {*more.split("\n")} <= {*there.split("\n")}


def test_the_page_compares_two_contenders_row_by_row(tmp_path: Path) -> None:
    kinds = {"ours": ("right", "right", "wrong"), "openai": ("wrong", "type", "error")}
    answers = [
        answered(name, row, kind)
        for name, told in kinds.items()
        for row, kind in zip(Task("sentiment").split("dev"), told, strict=False)
    ]
    openai, ours = (EvalReport.load(path) for path in sorted(write_reports(answers, tmp_path)))
    assert (ours.name, ours.scores["right"].mean, ours.input_tokens) == ("ours", 2 / 3, 180)
    assert ours.results[0].arguments == Task("sentiment").split("dev")[0]["input"]
    assert (openai.failed, openai.results[1].outcomes[0].notes["right"]) == (1, "a value of another type, silently")
    assert openai.compare(ours).differences["right"].difference == pytest.approx(2 / 3)
    assert set(ours.by_tag()) == {"sentiment"}


@pytest.mark.parametrize("model", replay.MODELS)
def test_the_recorded_replies_give_the_figures_that_they_gave(model: str) -> None:
    found, before = replay.replay(model)
    assert replay.figures(found) == before
    assert len(before) >= len(ORDER) - 1  # of the larger model one is still to be recorded
    assert all(each["kind"] != "type" for answers in found.values() for each in answers)
