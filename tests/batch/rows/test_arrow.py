"""Rows from what streams Arrow batches, and reports out again as Arrow."""

from __future__ import annotations

from contextlib import closing
from datetime import date

import polars as pl
import pyarrow as pa
import pytest

from SimpleLLMFunc import llm_function
from SimpleLLMFunc.batch.rows.rows import RowSource, read_rows
from SimpleLLMFunc.errors import ConfigError, UsageError
from SimpleLLMFunc.testing import ScriptedLLM, when

TABLE = pa.table({"text": ["a", "b", None], "on": [date(2026, 1, 2)] * 3, "n": [1.5, float("nan"), 2.0]})
ROWS = [{"text": text, "on": date(2026, 1, 2), "n": n} for text, n in (("a", 1.5), ("b", None), (None, 2.0))]


class OnlyTheProtocol:
    """What has nothing but the method, as other languages' libraries do."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


class DataSet:
    """The shape of Hugging Face's: iterable, but of decoded rows one by one."""

    num_rows = 3

    def with_format(self, name):
        assert name == "arrow"
        return self

    def iter(self, batch_size):
        return iter([TABLE.slice(0, 2), TABLE.slice(2)])

    def __iter__(self):
        raise AssertionError("batches are to be read")


def values(source):
    with closing(read_rows(source)) as rows:
        return [row.value for row in rows]


@pytest.mark.parametrize("source", [
    TABLE, TABLE.to_batches()[0], TABLE.to_reader(), OnlyTheProtocol(TABLE), DataSet(), pl.from_arrow(TABLE).lazy(),
], ids=lambda source: type(source).__name__)  # fmt: skip
def test_every_arrow_stream_gives_rows(source):
    assert values(RowSource(source, {"text": "text"})) == ROWS


def test_batches_are_read_as_they_are_wanted():
    read = []

    def batches():
        for number in range(100):
            read.append(number)
            yield pa.record_batch({"n": [number] * 300})

    reader = pa.RecordBatchReader.from_batches(pa.schema({"n": pa.int64()}), batches())
    rows = read_rows(reader)
    assert next(rows).value == {"n": 0}
    assert len(read) < 10
    rows.close()


def test_what_cannot_be_read_is_told():
    twice = pa.table([pa.array([1]), pa.array([2])], names=["n", "n"])
    with pytest.raises(ConfigError, match="two columns 'n'"):
        values(twice)

    def broken():
        yield pa.record_batch({"n": [1]})
        raise RuntimeError("the connection is gone")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"n": pa.int64()}), broken())
    with pytest.raises(
        UsageError, match=r"rows of the RecordBatchReader cannot be read: ArrowInvalid: .*connection is gone"
    ):
        values(reader)
    lazy = pl.LazyFrame({"n": [1]}).select(pl.col("n").cast(pl.Date).str.len_chars())
    with pytest.raises(UsageError, match="rows of the LazyFrame cannot be read"):
        values(lazy)


def asked(rows, **options):
    def size(text: str) -> int:
        """Count."""

    llm = ScriptedLLM(when("text: a", "1"), when("text: bb", "2"), when("text: ccc", "none"))
    return llm_function(llm_interface=llm, max_reasks=0)(size).map(rows, **options)


@pytest.mark.parametrize("is_read_once", [False, True])
def test_a_map_of_arrow_gives_arrow(is_read_once, tmp_path):
    table = pa.table({"id": [7, 8, 9], "text": ["a", "bb", "ccc"]})
    with asked(table.to_reader() if is_read_once else table, checkpoint=tmp_path / "c.sqlite") as report:
        for found in (pa.table(report), pl.DataFrame(report).to_arrow(), report.to_arrow().read_all()):
            rows = found.to_pylist()
            error = rows[2].pop("error")
            assert rows == [
                {"id": 7, "text": "a", "value": 1, "error": None}, {"id": 8, "text": "bb", "value": 2, "error": None},
                {"id": 9, "text": "ccc", "value": None},
            ]  # fmt: skip
            assert error.startswith("ResponseParseError")
