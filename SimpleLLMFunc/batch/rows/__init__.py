"""Rows in: iterables, files, data frames; each with its place, in small pieces, no faster than they are used."""

from __future__ import annotations

from SimpleLLMFunc.batch.rows.arguments import RowArguments
from SimpleLLMFunc.batch.rows.arrow import PARQUET, arrow_reader, parquet_packages, write_parquet
from SimpleLLMFunc.batch.rows.columns import ERROR, ROW, VALUE, Reported, Table, error_text, plain
from SimpleLLMFunc.batch.rows.feed import PIECE, Feed
from SimpleLLMFunc.batch.rows.frames import input_record, to_frame
from SimpleLLMFunc.batch.rows.rows import InputRow, Rows, RowSource
from SimpleLLMFunc.batch.rows.rows_again import RowsAgain, can_read_again
from SimpleLLMFunc.batch.rows.text_files import is_packed, opened, suffix_of

__all__ = [
    "ERROR",
    "PARQUET",
    "PIECE",
    "ROW",
    "VALUE",
    "Feed",
    "InputRow",
    "Reported",
    "RowArguments",
    "RowSource",
    "Rows",
    "RowsAgain",
    "Table",
    "arrow_reader",
    "can_read_again",
    "error_text",
    "input_record",
    "is_packed",
    "opened",
    "parquet_packages",
    "plain",
    "suffix_of",
    "to_frame",
    "write_parquet",
]
