"""Write reports as JSONL, CSV and Parquet, row by row; a file is replaced only when it is complete."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import secrets
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO, cast

from SimpleLLMFunc.batch.rows.arrow import PARQUET, parquet_package, write_parquet
from SimpleLLMFunc.batch.rows.columns import ERROR, ROW, VALUE, Reported, Table, error_text, plain
from SimpleLLMFunc.batch.rows.frames import table_of
from SimpleLLMFunc.batch.rows.text_files import is_packed, suffix_of
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.logger import redacted_cause

_INDEX = "index"
_LINES, _CELLS = (".jsonl", ".ndjson"), (".csv", ".tsv")


def write_rows(report: Reported, path: str | os.PathLike[str]) -> None:
    """Write a report to a file: all of it, or nothing.

    JSONL holds one object a line: ``index``, ``row``, ``value`` and ``error``, where the value is None for a row with
    an error. CSV and Parquet hold the columns of the input (``row`` where the rows have none), one column for each
    field of a model result (``value`` for every other type), and ``error``; nested values are JSON.

    Raises:
        ConfigError: a file of another kind, pyarrow is missing, or the file cannot be written.
    """
    place = check_output_path(path)
    with replaced_whole(place) as part:
        if suffix_of(place) in PARQUET:
            write_parquet(report, part)
        elif suffix_of(place) in _LINES:
            with _text(part, place) as file:
                file.writelines(json_lines(report))
        else:
            _write_csv(report, part, place)


def check_output_path(path: str | os.PathLike[str]) -> Path:
    """Return the path if rows can be written there, as far as its name and its folder tell.

    Raises:
        ConfigError: it is of another kind, the folder is missing, or what writes it is not installed.
    """
    place = Path(path)
    suffix = suffix_of(place)
    if suffix not in (*_LINES, *_CELLS, *PARQUET) or (suffix in PARQUET and is_packed(place)):
        raise ConfigError(
            f"{place.name!r}: rows are written as .jsonl, .ndjson, .csv, .tsv (also with .gz) or .parquet."
        )
    if suffix in PARQUET:
        parquet_package("Writing Parquet")
    if place.is_dir():
        raise ConfigError(f"{str(place)!r} is a folder. Give the name of a file in it.")
    if not place.parent.is_dir():
        raise ConfigError(f"there is no folder {str(place.parent)!r}. Make it first.")
    return place


@contextmanager
def replaced_whole(path: Path) -> Generator[Path, None, None]:
    """Give the path of a new file in the same folder; it replaces `path` when the block ends without an error.

    Raises:
        ConfigError: it cannot be written.
    """
    target = path.resolve()  # the file behind a link, not the link
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    failure: ConfigError
    try:
        yield part
        descriptor = os.open(part, os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        part.replace(target)
    except OSError as error:
        failure = ConfigError(f"{str(path)!r} cannot be written: {error.strerror or error}.")
        cause = redacted_cause(error)
    else:
        return
    finally:
        with suppress(OSError):
            part.unlink()
    raise failure from cause


@contextmanager
def _text(part: Path, place: Path) -> Generator[TextIO, None, None]:
    with ExitStack() as stack:
        file: Any = stack.enter_context(part.open("xb"))
        if is_packed(place):
            # Without name and time: the same rows give the same file.
            file = stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0))
        # Lone surrogates, which UTF-8 does not have, become a question mark.
        yield stack.enter_context(io.TextIOWrapper(cast("io.BufferedWriter", file), "utf-8", "replace", newline=""))


def json_lines(report: Reported) -> Generator[str, None, None]:
    """Yield a report as JSONL, line by line."""
    table = Table(report.return_type)
    for row in report.rows:
        error = row.error
        yield _line(
            {
                _INDEX: row.index,
                ROW: plain(row.row),
                VALUE: None if error is not None else table.data(row.value),
                ERROR: error_text(error),
            }
        )


def _line(record: dict[str, Any]) -> str:
    line = json.dumps(record, ensure_ascii=False)
    if not line.isascii() and any("\ud800" <= character <= "\udfff" for character in line):
        line = json.dumps(record)  # escaped, a lone surrogate stays what it is
    return f"{line}\n"


def _write_csv(report: Reported, part: Path, place: Path) -> None:
    names, records = table_of(report)
    with _text(part, place) as file:
        writer = csv.writer(file, delimiter="\t" if suffix_of(place) == ".tsv" else ",", lineterminator="\n")
        writer.writerow(names)
        writer.writerows([_csv_cell(record.get(name)) for name in names] for record in records())


def _csv_cell(cell: Any) -> Any:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if cell is None or isinstance(cell, (str, int, float)):
        return cell
    return cell.isoformat() if hasattr(cell, "isoformat") else json.dumps(plain(cell), ensure_ascii=False)
