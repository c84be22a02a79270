"""Files of rows: encodings, delimiters, bad lines named by their number, and nothing read that need not be."""

import gzip

import pytest

from SimpleLLMFunc.batch.rows.rows import csv_records, json_lines
from SimpleLLMFunc.errors import ConfigError


@pytest.fixture
def written(tmp_path):
    def write(data, name):
        path = tmp_path / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    return write


def lines(path, read=json_lines):
    return [(row.line, row.problem or row.value) for row in read(path)]


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
        with pytest.raises(ConfigError, match=r"rows\.jsonl\.gz"):
            lines(written(data, "rows.jsonl.gz"))


def test_rows_are_dicts_of_text(written):
    path = written('id,text\n1,"a, b"\n2,"two\nlines"\n\n3,"say ""hi"""\n', "rows.csv")
    assert cells(path) == [
        (2, {"id": "1", "text": "a, b"}),
        (3, {"id": "2", "text": "two\nlines"}),
        (6, {"id": "3", "text": 'say "hi"'}),
    ]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(written, delimiter):
    data = 'id~text~n\n1~"a, b; c"~2\n2~"x|y"~3'.replace("~", delimiter)
    found = [row for _, row in cells(written(data, "rows.csv"))]
    assert found == [{"id": "1", "text": "a, b; c", "n": "2"}, {"id": "2", "text": "x|y", "n": "3"}]


def test_commas_in_the_text_of_one_column_are_text_where_no_row_agrees(written):
    assert cells(written("text\nfine\nwet, but fun\n", "rows.csv"))[0] == (2, {"text": "fine"})
    assert cells(written("text;n\nwet, but fun;1\nfine;2\n", "rows.csv"))[0][1] == {"text": "wet, but fun", "n": "1"}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
def test_encodings_of_chinese_spreadsheets(written, encoding):
    path = written("编号,评论\n1,味道很好，下次还来。\n2,一般\n".encode(encoding), "rows.csv")
    assert [row["评论"] for _, row in cells(path)] == ["味道很好，下次还来。", "一般"]


def test_another_encoding_is_refused_instead_of_read_as_other_characters(written):
    for text, encoding in (("id,text\n1,très bon café à Orléans\n", "cp1252"), ("id,text\n1,たのしい\n", "shift_jis")):
        with pytest.raises(ConfigError, match=r"not UTF-8 \(line 2\)"):
            cells(written(text.encode(encoding), "rows.csv"))


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
    assert (line, "not CSV" in problem) == (2, True)


def test_columns_without_name_and_with_one_name_and_large_or_strange_cells(written):
    # What a data frame's index is written as.
    assert cells(written(",text\n0,a\n", "rows.csv")) == [(2, {"column_1": "0", "text": "a"})]
    with pytest.raises(ConfigError, match="two columns 'a'"):
        cells(written("a,a\n1,2\n", "rows.csv"))
    text = "x" * 300_000
    assert cells(written(f"text\n{text}\n", "rows.csv")) == [(2, {"text": text})]
    assert cells(written("a,b\n1,x\0y\n", "rows.csv")) == [(2, {"a": "1", "b": "x\0y"})]


def test_empty_files_have_no_rows_and_packed_ones_and_tabs_are_known_by_name(written):
    found = [cells(written("", "rows.csv")), cells(written("\n\na,b\n", "rows.csv")), lines(written("", "rows.jsonl"))]
    assert found == [[], [], []]

    assert cells(written(gzip.compress(b"a,b\n1,2\n"), "rows.csv.gz")) == [(2, {"a": "1", "b": "2"})]
    assert cells(written("a\tb\n1,5\t2\n", "rows.tsv")) == [(2, {"a": "1,5", "b": "2"})]
