"""Reports out: files and frames, with one column for each field of a model."""

import csv
import gzip
import json
import os
import re
import sys
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, NamedTuple

import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from pydantic import BaseModel, Field, PlainSerializer, RootModel
from typing_extensions import TypedDict

from SimpleLLMFunc.batch.report import check_output_path, write_rows
from SimpleLLMFunc.batch.rows.tables import json_lines, to_frame
from SimpleLLMFunc.errors import ConfigError, ServerUnavailable
from SimpleLLMFunc.evaluate import EvalReport
from SimpleLLMFunc.extras import install_line


@dataclass
class Row:
    index: int
    row: Any
    value: Any = None
    error: Exception | None = None


@dataclass
class Report:
    return_type: Any
    rows: list[Row] = field(default_factory=list)


class Mood(Enum):
    GOOD = "good"


class Person(BaseModel):
    name: str
    born: date | None = None


class Review(BaseModel):
    title: str = Field(alias="t")
    stars: int
    mood: Mood = Mood.GOOD
    people: list[Person] = []


REVIEW = Review(t="Rain", stars=4, people=[Person(name="安", born=date(2000, 1, 2))])
FLAT = {"title": "Rain", "stars": 4, "mood": "good", "people": [{"name": "安", "born": "2000-01-02"}]}
FAILED = ServerUnavailable("m", status=503)


@pytest.fixture
def report():
    return Report(Review, [Row(0, {"id": 1, "text": "好"}, REVIEW), Row(1, {"id": 2, "text": "b"}, error=FAILED)])


def test_jsonl(report, tmp_path):
    write_rows(report, tmp_path / "out.jsonl")
    text = (tmp_path / "out.jsonl").read_text("utf-8")
    assert "好" in text
    first, second = map(json.loads, text.splitlines())
    assert first == {"index": 0, "row": {"id": 1, "text": "好"}, "value": FLAT, "error": None}
    assert second["value"] is None
    assert second["error"].startswith("ServerUnavailable: m: ")
    assert "".join(json_lines(report)) == text
    write_rows(report, tmp_path / "out.ndjson.gz")
    packed = (tmp_path / "out.ndjson.gz").read_bytes()
    assert (gzip.decompress(packed).decode(), packed[4:8]) == (text, bytes(4))  # no time stands in it


def test_csv_has_the_columns_of_the_input_and_of_the_fields(report, tmp_path):
    report.rows[0].row["seen"] = True
    write_rows(report, str(tmp_path / "out.csv"))
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        first, second = csv.DictReader(file)
    people = json.loads(first.pop("people"))
    texts = {"id": "1", "text": "好", "seen": "true"}
    assert first == {**texts, "title": "Rain", "stars": "4", "mood": "good", "error": ""}
    assert people == FLAT["people"]
    assert "安" in (tmp_path / "out.csv").read_text("utf-8")
    assert (second["id"], second["title"]) == ("2", "")
    assert second["error"].startswith("ServerUnavailable")
    write_rows(report, tmp_path / "out.tsv")
    assert (tmp_path / "out.tsv").read_text("utf-8").startswith("id\ttext\tseen\ttitle\t")


def test_parquet(report, tmp_path):
    report.rows[0].row["at"] = datetime(2026, 1, 2, 3, 4)  # only in one row
    write_rows(report, tmp_path / "out.parquet")
    first, second = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert (first["id"], first["stars"], first["at"]) == (1, 4, "2026-01-02T03:04:00")
    assert json.loads(first["people"]) == FLAT["people"]
    assert second["at"] is second["stars"] is second["title"] is None


def test_parquet_of_many_rows_of_none_and_of_mixed_and_large_numbers(tmp_path):
    write_rows(Report(int, [Row(n, n, n * 2) for n in range(3000)]), tmp_path / "many.parquet")
    table = pq.read_table(tmp_path / "many.parquet")
    assert table.column("value").to_pylist() == [n * 2 for n in range(3000)]
    assert table.column("row").to_pylist() == list(range(3000))
    write_rows(Report(Review), tmp_path / "none.parquet")
    assert pq.read_table(tmp_path / "none.parquet").column_names == ["title", "stars", "mood", "people", "error"]
    write_rows(Report(Any, [Row(0, 1, 1), Row(1, 2.5, "x"), Row(2, True, [1])]), tmp_path / "mixed.parquet")
    table = pq.read_table(tmp_path / "mixed.parquet")
    assert table.column("value").to_pylist() == ["1", "x", "[1]"]
    write_rows(Report(float, [Row(0, 1, 2**60 + 1), Row(1, 2, 0.5)]), tmp_path / "floats.parquet")
    assert pq.read_table(tmp_path / "floats.parquet").column("value").to_pylist() == [2.0**60, 0.5]
    with pytest.raises(ConfigError, match=r"Write the rows as \.jsonl"):
        write_rows(Report(int, [Row(0, "a", 2**70)]), tmp_path / "large.parquet")
    assert not (tmp_path / "large.parquet").exists()


class Pair(NamedTuple):
    left: int
    right: str


class Bag(TypedDict):
    left: int


@dataclass
class Box:
    left: int
    price: Decimal = Decimal("1.10")


class Root(RootModel[list[int]]):
    pass


@pytest.mark.parametrize(("return_type", "value", "wanted"), [
    (str, "a", {"value": "a"}), (list[int], [1, 2], {"value": [1, 2]}), (None, None, {"value": None}),
    (Pair, Pair(1, "b"), {"left": 1, "right": "b"}), (Bag, {"left": 1}, {"left": 1}),
    (Box, Box(1), {"left": 1, "price": "1.10"}), (Root, Root([1]), {"value": [1]}),
    (Box | None, None, {"left": None, "price": None}),
    (list[Annotated[int, PlainSerializer(str)]], [1], {"value": ["1"]}),
    (Annotated[int, PlainSerializer(str)], 1, {"value": "1"}),
    (Annotated[Box | None, "x"], Box("no number"), {"left": "no number", "price": "1.10"}),
    (Box | Bag, Box(2), {"value": {"left": 2, "price": "1.10"}}), (float, float("nan"), {"value": None}),
    (list[Box], [Box(2)], {"value": [{"left": 2, "price": "1.10"}]}), (tuple[int], (1,), {"value": [1]}),
])  # fmt: skip
def test_types(return_type, value, wanted):
    frame = to_frame(Report(return_type, [Row(0, "x", value)]), pl.DataFrame({"x": ["x"]}))
    got = {name: frame[name].to_list()[0] for name in frame.columns if name not in {"x", "error"}}
    assert got == wanted


def test_nothing_is_left_where_writing_fails(report, tmp_path):
    with pytest.raises(ConfigError, match=r"out\.jsonl' cannot be written: [A-Z]"):
        write_rows(report, "/proc/out.jsonl")
    target = tmp_path / "out.jsonl"
    target.write_text("old")
    report.rows.append(object())
    with pytest.raises(AttributeError):
        write_rows(report, target)
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.jsonl")
        with pytest.raises(ConfigError, match="a device or a pipe"):
            EvalReport("n", "f", "v", "m", ()).save(tmp_path / "pipe.jsonl")
        assert (tmp_path / "pipe.jsonl").is_fifo()


def test_the_file_behind_a_link_is_written(report, tmp_path):
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "real.jsonl")
    write_rows(report, tmp_path / "link.jsonl")
    assert (tmp_path / "link.jsonl").is_symlink()
    assert len((tmp_path / "real.jsonl").read_text("utf-8").splitlines()) == 2


def test_strange_characters_survive(tmp_path):
    report = Report(str, [Row(0, "a\ud800b", "c\0\udfff\u2028d")])
    write_rows(report, tmp_path / "out.jsonl")
    (line,) = (tmp_path / "out.jsonl").read_text("ascii").splitlines()
    assert (json.loads(line)["row"], json.loads(line)["value"]) == ("a\ud800b", "c\0\udfff\u2028d")
    for name in ("out.csv", "out.parquet"):
        write_rows(report, tmp_path / name)
    assert pq.read_table(tmp_path / "out.parquet").column("row").to_pylist() == ["a?b"]
    assert b"a?b" in (tmp_path / "out.csv").read_bytes()
    assert to_frame(report)["row"].tolist() == ["a\ufffdb"]


def test_secrets_in_errors_are_masked(tmp_path):
    key = "sk-proj-" + "Ab3" * 16
    write_rows(Report(str, [Row(0, "a", error=ValueError(f"the key {key} is bad"))]), tmp_path / "out.jsonl")
    assert key not in (tmp_path / "out.jsonl").read_text()


def test_paths_are_looked_at_before_anything_is_asked(tmp_path):
    (tmp_path / "dir.csv").mkdir()
    kinds = dict.fromkeys(("out.txt", "out", "a.parquet.gz"), "rows are written as")
    for name, said in (kinds | {"no/out.csv": "there is no folder", "dir.csv": "is a folder"}).items():
        with pytest.raises(ConfigError, match=said):
            check_output_path(tmp_path / name)


def test_a_pandas_frame_keeps_its_columns_and_its_index(report):
    source = pd.DataFrame({"id": [1, 2], "text": pd.Categorical(["a", "b"])}, index=["x", "y"])
    frame = to_frame(report, source)
    assert list(frame.columns) == ["id", "text", "title", "stars", "mood", "people", "error"]
    assert list(frame.index) == ["x", "y"]
    assert frame["text"].dtype == "category"
    assert frame.loc["x", "people"] == FLAT["people"]
    assert frame["stars"].tolist() == [4, pd.NA]  # not 4.0
    assert list(source.columns) == ["id", "text"]


def test_a_polars_frame_in_and_out(report):
    frame = to_frame(report, pl.DataFrame({"id": [1, 2], "text": ["a", "b"]}))
    assert frame.columns == ["id", "text", "title", "stars", "mood", "people", "error"]
    assert frame["stars"].to_list() == [4, None]
    assert frame.schema["error"] == pl.String
    assert frame["people"].to_list()[0] == FLAT["people"]
    assert to_frame(Report(Review), pl.DataFrame({"id": []})).height == 0


def test_what_polars_cannot_mix_becomes_text():
    for values, column in (([1, "x", {"k": [1]}, None], ["1", "x", '{"k": [1]}', None]), ([1, 2.5], [1.0, 2.5])):
        rows = [Row(place, str(place), value) for place, value in enumerate(values)]
        assert to_frame(Report(Any, rows), pl.DataFrame({"t": values}, strict=False))["value"].to_list() == column


def test_a_column_that_is_there_already_stays(report):
    source = pd.DataFrame({"title": ["old", "old"], "error": [0, 0]})
    frame = to_frame(report, source)
    assert (frame["title"].tolist(), frame["result_title"].tolist()[0]) == (["old", "old"], "Rain")
    assert frame["result_error"].isna().tolist() == [True, False]
    longer = pd.DataFrame({"id": [1, 2, 3]})  # the map ended before its last row
    assert to_frame(report, longer)["id"].tolist() == [1, 2]


def test_rows_that_were_no_frame_become_one(report):
    assert ((numbers := to_frame(report)["id"]).tolist(), numbers.dtype) == ([1, 2], "int64")
    frame = to_frame(Report(str, [Row(0, ("a", 1), "x"), Row(1, "b", "y")]))
    assert (frame["row"].tolist(), frame["value"].tolist()) == ([["a", 1], "b"], ["x", "y"])


def test_without_pandas_it_is_polars_and_without_both_an_error(report, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert isinstance(to_frame(report), pl.DataFrame)
    monkeypatch.setitem(sys.modules, "polars", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for work in (lambda: to_frame(report), lambda: check_output_path("out.parquet")):
        with pytest.raises(ConfigError, match=re.escape(install_line("frames"))):
            work()
