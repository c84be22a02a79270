"""Rows in: every kind of source, and what a row is for a function."""

import gzip
import json
import os
from contextlib import aclosing

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tqdm import tqdm

from SimpleLLMFunc import llm_function
from SimpleLLMFunc.batch.rows.feed import Feed, RowsAgain, can_read_again, count_rows
from SimpleLLMFunc.batch.rows.rows import RowSource, csv_records, json_lines, read_rows
from SimpleLLMFunc.errors import ConfigError, UsageError
from SimpleLLMFunc.testing import ScriptedLLM


async def values(source):
    async with aclosing(Feed(source).pieces()) as pieces:
        return [row.value async for piece in pieces for row in piece]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("id,text\n1,a\n2,b\n3,c\n")
    return path


async def test_iterables_of_every_kind():
    assert await values(["a", ("b", 1), {"text": "c"}, None]) == ["a", ("b", 1), {"text": "c"}, None]
    assert await values(x for x in "ab") == ["a", "b"]
    assert await values(()) == []
    # One of the methods that a data set has makes none.
    assert await values(type("Rows", (list,), {"iter": list.__iter__})("ab")) == ["a", "b"]


async def test_an_async_iterable_is_closed_when_the_map_needs_no_more():
    closed = []

    async def source():
        try:
            for number in range(100):
                yield number
        finally:
            closed.append(True)

    pieces = Feed(source()).pieces()
    assert (await anext(pieces))[0].value == 0
    await pieces.aclose()
    assert closed == [True]
    assert await values(source()) == list(range(100))
    for limit in (0, 1, 7):
        assert await values(RowSource(source(), limit=limit)) == list(range(limit))
    with pytest.raises(ConfigError, match="it has no columns"):
        await values(RowSource(source(), {"a": "x"}))
    assert closed == [True] * 5


def test_rows_are_read_as_they_are_wanted():
    numbers = iter(range(100))
    rows = read_rows(numbers)
    assert [next(rows).index for _ in range(2)] == [0, 1]
    rows.close()
    assert next(numbers) == 2


async def test_files_by_their_ending(tmp_path, table):
    lines = tmp_path / "rows.2026.jsonl"
    lines.write_text('{"text": "a"}\n\nbroken\n')
    pq.write_table(pa.table({"text": ["a", None], "n": [1, 2]}), tmp_path / "rows.parquet")
    assert await values(table) == [{"id": str(n), "text": t} for n, t in ((1, "a"), (2, "b"), (3, "c"))]
    assert await values(str(tmp_path / "rows.parquet")) == [{"text": "a", "n": 1}, {"text": None, "n": 2}]
    good, bad = [*read_rows(lines)]
    assert (good.index, good.line, good.value, good.error, good.is_record) == (0, 1, {"text": "a"}, None, True)
    assert (bad.index, bad.line) == (1, 3)
    assert str(bad.error).startswith("rows.2026.jsonl, line 3: it is not JSON")


async def test_what_holds_no_rows_is_refused(tmp_path):
    for name in ("rows.json", "rows.xlsx", "rows", "rows.parquet.gz"):
        (tmp_path / name).write_text("x")
        with pytest.raises(ConfigError, match="one JSON value a line" if name == "rows.json" else "rows are read from"):
            read_rows(tmp_path / name)
    with pytest.raises(FileNotFoundError, match="a str are the path of a file"):
        read_rows(str(tmp_path / "nope.csv"))
    for source in ({"text": "a"}, b"abc", 3, None):
        with pytest.raises(UsageError, match="rows is a"):
            read_rows(source)
    (tmp_path / "bad.parquet").write_text("no parquet")
    with pytest.raises(ConfigError, match="cannot be read as Parquet"):
        await values(tmp_path / "bad.parquet")


async def test_frames_give_plain_values():
    moment = pd.Timestamp("2026-01-02 03:04:05")
    frame = pd.DataFrame({"n": [1, 2], "text": ["a", None], "x": [0.5, float("nan")], "at": [moment, pd.NaT]}, [7, 9])
    assert next(read_rows(frame)).is_record
    first, second = await values(frame)
    assert first == {"n": 1, "text": "a", "x": 0.5, "at": moment.to_pydatetime()}
    assert second == {"n": 2, "text": None, "x": None, "at": None}
    assert [type(value) for value in first.values()] == [int, str, float, type(moment.to_pydatetime())]
    assert await values(pl.DataFrame({"n": [1], "tags": [["a", "b"]]})) == [{"n": 1, "tags": ["a", "b"]}]
    assert await values(pl.Series("n", [1, 2])) == [1, 2]  # a column alone is its values
    json.dumps([second, (await values(pd.DataFrame({"n": pd.array([1, None], dtype="Int64")})))])
    with pytest.raises(ConfigError, match="two columns 'a'"):
        read_rows(pd.DataFrame([[1, 2]], columns=["a", "a"]))


async def test_columns_are_renamed_and_rows_counted(table, tmp_path):
    renamed = [{"id": "1", "review": "a"}, {"id": "2", "review": "b"}]
    assert await values(RowSource(table, {"text": "review"}, limit=2)) == renamed
    # The column that had the parameter's name before gives way.
    assert await values(source := RowSource([{"a": 1, "b": 2}], {"a": "b"})) == [{"b": 1}]
    assert Feed(source).rows[0] == {"b": 1}
    assert await values(RowSource(table, limit=0)) == []
    with pytest.raises(ConfigError, match="line 2: there is no column 'txt'; the columns are 'id', 'text'"):
        await values(RowSource(table, {"txt": "review"}))
    with pytest.raises(ConfigError, match="line 1: there is no column 'txt'"):
        await values(RowSource(pl.DataFrame({"text": ["a"]}), {"txt": "review"}))
    with pytest.raises(ConfigError, match="limit is -1"):
        RowSource(table, limit=-1)
    with pytest.raises(ConfigError, match="cannot be the source of another one"):
        RowSource(RowSource(table))
    path = tmp_path / "rows.jsonl"  # a later row without the column is a bad row
    path.write_text('{"a": 1}\n{"b": 1}\n2\n')
    _, second, third = [*read_rows(RowSource(path, {"a": "x"}))]
    assert "line 2: there is no column 'a'" in str(second.error)
    assert "line 3: it has no columns" in str(third.error)


def test_what_can_be_read_twice(table):
    async def source():
        yield 1

    arrow = pa.table({"n": [1]})
    for again in ([1], "rows.csv", table, pd.DataFrame(), pl.DataFrame(), arrow, range(3), RowSource([1])):
        assert can_read_again(again), again
    shuffled = type("Shuffled", (), {"__iter__": lambda self: iter("ab")})()  # nothing says that it repeats itself
    for once in (iter([1]), source(), arrow.to_reader(), RowSource(tqdm(iter([1]), disable=True)), shuffled):
        assert not can_read_again(once), once


def test_rows_of_a_file_are_read_again_where_they_are_looked_at(table):
    rows = RowsAgain(table)
    assert [rows[place]["id"] for place in (0, 1, 1, 2, 0, 2)] == ["1", "2", "2", "3", "1", "3"]
    assert rows[7] is None
    rows.close()
    assert rows[1] == {"id": "2", "text": "b"}
    rows.close()
    rows.close()  # a second time
    named = RowsAgain(RowSource(table, {"text": "review"}, limit=2))
    assert (named[1], named[2]) == ({"id": "2", "review": "b"}, None)
    assert RowsAgain(pl.DataFrame({"a": [1, 2]}))[1] == {"a": 2}
    assert RowsAgain(RowSource([{"a": 1}, 2], {"a": "x"}))[0] == {"x": 1}
    assert RowsAgain(RowSource([{"a": 1}, 2], {"a": "x"}))[1] is None


def test_forwards_each_row_is_read_once_and_backwards_a_few_times_only():
    read = 0

    class Source:
        def __iter__(self):
            nonlocal read
            for number in range(5_000):
                read += 1
                yield {"n": number}

    rows = RowsAgain(RowSource(Source(), {"n": "m"}))
    assert [rows[place] for place in reversed(range(5_010))] == [None] * 10 + [{"m": n} for n in reversed(range(5_000))]
    assert read < 20 * 5_000
    rows.close()
    read = 0
    assert [rows[twice // 2]["m"] for twice in range(9_980, 10_000)] == [n // 2 for n in range(9_980, 10_000)]
    assert read <= 5_000
    assert [rows[place]["m"] for place in (7, 8, 25, 3, 4_000, 3_999, 3_800)] == [7, 8, 25, 3, 4_000, 3_999, 3_800]


def test_a_file_that_grew_is_the_same_and_another_one_is_not(table, caplog):
    rows, cut_off, gone = RowsAgain(table), RowsAgain(table), RowsAgain(table)
    with table.open("a") as file:
        file.write("4,d\n")
    assert rows[1]["id"] == "2"
    rows.close()
    table.write_text("id,text\n9,x\n")
    assert (cut_off[1], cut_off[0]) == (None, None)
    table.unlink()
    assert gone[0] is None
    assert caplog.text.count("rows.csv has changed since the map") == 2


def test_rows_that_ask_the_same_keep_their_own_columns(tmp_path):
    (tmp_path / "rows.csv").write_text("id,text\n1,same\n2,same\n3,other\n")

    @llm_function(llm_interface=ScriptedLLM("yes", repeat=True))
    def say(text: str) -> str:
        """Say it."""

    def ids(report):
        report.write(tmp_path / "out.csv")
        report.close()
        return [line.partition(",")[0] for line in (tmp_path / "out.csv").read_text().splitlines()[1:]]

    report = say.map(tmp_path / "rows.csv", checkpoint=tmp_path / "run.sqlite", progress=False)
    assert report.counts.asked == 2
    assert ids(report) == ["1", "2", "3"]
    # The same rows under other numbers: nothing is asked, and the numbers are the new ones.
    (tmp_path / "rows.csv").write_text("id,text\n7,other\n8,same\n9,same\n")
    report = say.map(tmp_path / "rows.csv", checkpoint=tmp_path / "run.sqlite", progress=False)
    assert (report.counts.asked, ids(report)) == (0, ["7", "8", "9"])
    frame = pd.DataFrame({"id": [4, 5], "text": ["same", "same"]}, ["x", "y"])
    report = say.map(frame, checkpoint=tmp_path / "run.sqlite", progress=False)
    assert [row.row["id"] for row in report.rows] == report.to_frame()["id"].tolist() == [4, 5]
    assert [*report.to_frame().index] == ["x", "y"]
    for kept in (None, tmp_path / "run.sqlite"):
        report = say.map(iter(frame.to_dict("records")), checkpoint=kept)
        assert [row.row["id"] for row in report.rows] == [4, 5]
    report.close()


async def test_rows_are_counted_where_a_look_tells(tmp_path):
    lines, packed, table = tmp_path / "a.jsonl", tmp_path / "a.csv.gz", tmp_path / "a.parquet"
    lines.write_text('{"a": 1}\n\nno json\n3\n')
    with gzip.open(packed, "wt") as file:
        file.write('a,b\n1,"two\nlines"\n3,4\n')
    pd.DataFrame({"a": range(5)}).to_parquet(table)
    assert count_rows(lines) == 3  # blank lines do not count, bad ones do
    assert count_rows(packed) == 2
    assert count_rows(table) == 5
    assert (await Feed(table).counted(), await Feed(RowSource(str(table), limit=2)).counted()) == (5, 2)
    frames = pd.DataFrame({"a": [1, 2]}), pl.DataFrame({"a": [1]}), pa.table({"a": [1, 2, 3]})
    assert [Feed(frame).total for frame in frames] == [2, 1, 3]
    assert (Feed(RowSource([1, 2, 3])).total, Feed(RowSource([1, 2, 3], limit=2)).total) == (3, 2)
    sources = (RowSource(iter([1]), limit=1), iter([1]), tqdm((x for x in "a"), disable=True))
    assert [await Feed(each).counted() for each in sources] == [None] * 3
    if hasattr(os, "mkfifo"):  # a pipe is not read, which would wait for ever
        os.mkfifo(tmp_path / "pipe.jsonl")
    for broken in (tmp_path / "none.csv", tmp_path / "a.txt", tmp_path, tmp_path / "pipe.jsonl"):
        assert count_rows(broken) is None
    packed.write_bytes(packed.read_bytes()[:-9])
    assert count_rows(packed) is None


# --- files of text: encodings, delimiters, bad lines named by their number ------------------------------------------


@pytest.fixture
def written(tmp_path):
    def write(data, name):
        path = tmp_path / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    return write


def lines(path, read=json_lines):
    return [(line, problem or value) for line, value, problem in read(path)]


def cells(path):
    return lines(path, csv_records)


def test_a_value_a_line_and_blank_lines_are_counted(written):
    path = written('{"a": 1}\n\n  \n"text"\r\n[1, 2]\nnull', "rows.jsonl")
    assert lines(path) == [(1, {"a": 1}), (4, "text"), (5, [1, 2]), (6, None)]


def test_a_bad_line_is_named_and_the_next_one_is_read(written):
    path = written(b'{"a": 1}\n{"a": \n{"a": "\xff"}\n{"a": 2}\n' + b"[" * 100_000 + b"\n3\n", "rows.jsonl")
    rows = lines(path)
    assert [line for line, _ in rows] == [1, 2, 3, 4, 5, 6]
    assert "not JSON" in rows[1][1]
    assert "not UTF-8 (byte 8)" in rows[2][1]
    assert rows[3][1] == {"a": 2}
    assert "not JSON: nested too deep" in rows[4][1]
    assert rows[5][1] == 3


def test_a_mark_at_the_beginning_and_strange_characters(written):
    path = written(b'\xef\xbb\xbf{"a": "\\u0000\\ud83d\\ude00"}\n{"a": "x\\ud800y"}\n', "rows.jsonl")
    assert lines(path) == [(1, {"a": "\0\U0001f600"}), (2, {"a": "x�y"})]


def test_packed_files_and_broken_ones(written):
    assert lines(written(gzip.compress(b"1\n2\n"), "rows.jsonl.gz")) == [(1, 1), (2, 2)]
    for data in (b"no gzip", gzip.compress(b"1\n" * 1000)[:-12]):
        with pytest.raises(ConfigError, match=r"rows\.jsonl\.gz' cannot be read: (Not a gzip|Compressed file end)"):
            lines(written(data, "rows.jsonl.gz"))


def test_rows_are_dicts_of_text(written):
    path = written('id,text\n1,"a, b"\n2,"two\nlines"\n""\n3,"say ""hi"""\n', "rows.csv")
    assert cells(path) == [
        (2, {"id": "1", "text": "a, b"}), (3, {"id": "2", "text": "two\nlines"}), (6, {"id": "3", "text": 'say "hi"'}),
    ]  # fmt: skip
    assert cells(written('text\n \n""\n', "rows.csv")) == [(3, {"text": ""})]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(written, delimiter):
    data = 'id~text~n\n1~"a, b; c"~2\n2~"x|y"~3'.replace("~", delimiter)
    found = [row for _, row in cells(written(data, "rows.csv"))]
    assert found == [{"id": "1", "text": "a, b; c", "n": "2"}, {"id": "2", "text": "x|y", "n": "3"}]


def test_commas_in_the_text_of_one_column_are_text_where_no_row_agrees(written):
    found = cells(written("text\nfine\nwet, but fun\n", "rows.csv"))
    assert found == [(2, {"text": "fine"}), (3, "it has 2 cells for 1 column")]
    assert cells(written("a,b;c\n1,2;3\n", "rows.csv")) == [(2, {"a": "1", "b;c": "2;3"})]
    assert cells(written("a, b;n\nwet, but fun;1\nfine;2\n", "rows.csv"))[0][1] == {"a, b": "wet, but fun", "n": "1"}
    # No row agrees with the names of the columns, which decide.
    assert cells(written("text;n\nwet, but fun;1\nfine;2;3\n", "rows.csv"))[0][1] == {"text": "wet, but fun", "n": "1"}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
def test_encodings_of_chinese_spreadsheets(written, encoding):
    path = written("编号,评论\n1,味道很好，下次还来。\n2,一般\n".encode(encoding), "rows.csv")
    assert [row["评论"] for _, row in cells(path)] == ["味道很好，下次还来。", "一般"]


def test_another_encoding_is_refused_instead_of_read_as_other_characters(written):
    for text, encoding in (("id,text\n1,très bon café à Orléans\n", "cp1252"), ("\n1,たのしい\n", "shift_jis")):
        with pytest.raises(ConfigError, match=r"not UTF-8 \(line 2\)"):
            cells(written(text.encode(encoding), "rows.csv"))
    broken = "编号,文\n1,".encode() + b"\xff\n"
    assert "not UTF-8" in cells(written(broken, "rows.csv"))[0][1]
    with pytest.raises(ConfigError, match=r"not UTF-8 \(line 1\)"):
        cells(written(broken.replace(b"\n", b" "), "rows.csv"))


def test_a_bad_row_is_named_and_the_next_one_is_read(written):
    data = "id,text\n1,好\n2\n3,a,b\n4,".encode() + b"\xff\xfe" + b'\n5,"a"b\n6,fine\n'
    rows = cells(written(data, "rows.csv"))
    assert [line for line, _ in rows] == [2, 3, 4, 5, 6, 7]
    assert [text for _, text in rows[1:3]] == ["it has 1 cell for 2 columns", "it has 3 cells for 2 columns"]
    assert "not UTF-8" in rows[3][1]
    assert "not CSV" in rows[4][1]
    assert rows[5][1] == {"id": "6", "text": "fine"}


def test_a_quote_that_is_never_closed_is_a_bad_row(written):
    ((line, problem),) = cells(written('id,text\n1,"open\n2,x\n', "rows.csv"))
    assert (line, "not CSV" in problem, "The row goes on to line 3" in problem) == (2, True, True)


def test_columns_without_name_and_with_one_name_and_large_or_strange_cells(written):
    # What a data frame's index is written as.
    assert cells(written(",text\n0,a\n", "rows.csv")) == [(2, {"column_1": "0", "text": "a"})]
    with pytest.raises(ConfigError, match="two columns 'a'"):
        cells(written("a,a\n1,2\n", "rows.csv"))
    text = "x" * 1_048_570 + "好"  # where the first look at the file ends, there is half a character
    assert cells(written(f"text\n{text}\n", "rows.csv")) == [(2, {"text": text})]
    assert cells(written("a,b\n1,x\0y\n", "rows.csv")) == [(2, {"a": "1", "b": "x\0y"})]


def test_empty_files_have_no_rows_and_packed_ones_and_tabs_are_known_by_name(written):
    found = [cells(written("", "rows.csv")), cells(written("\n\na,b\n", "rows.csv")), lines(written("", "rows.jsonl"))]
    assert [*found, lines(written(b"\xef\xbb\xbf\n", "rows.jsonl"))] == [[]] * 4

    assert cells(written(gzip.compress(b"a,b\n1,2\n"), "rows.csv.gz")) == [(2, {"a": "1", "b": "2"})]
    assert cells(written("a\tb\n1,5\t2\n", "rows.tsv")) == [(2, {"a": "1,5", "b": "2"})]
