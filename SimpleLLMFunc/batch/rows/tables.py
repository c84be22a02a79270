"""Rows as tables: the columns of a report as plain data, and data frames in and out.

Reading a frame imports no package; a report is written as the kind of frame that was given.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import sys
import types
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time
from functools import cached_property
from typing import Any, Literal, Protocol, TypeAlias, Union, get_args, get_origin

from pydantic import BaseModel, TypeAdapter
from pydantic_core import to_jsonable_python
from typing_extensions import is_typeddict

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.extras import install_line, load_extra
from SimpleLLMFunc.logger import shown_error
from SimpleLLMFunc.type import mend

VALUE, ERROR, ROW = "value", "error", "row"

FrameKind: TypeAlias = Literal["pandas", "polars"]
_KINDS: tuple[FrameKind, ...] = ("pandas", "polars")

WHOLE = range(-(2**63), 2**63)
"""Numbers that a column of whole numbers holds."""


class Reported(Protocol):
    """A report that can be written."""

    @property
    def rows(self) -> Sequence[Any]:
        """In input order, each with `index`, `row`, `value` and `error`."""
        ...

    @property
    def return_type(self) -> Any:
        """Of the function."""
        ...


def plain(value: Any) -> Any:
    """Return `value` as JSON data: other objects become text, NaN and infinity become None."""
    return to_jsonable_python(value, fallback=str, inf_nan_mode="null", bytes_mode="base64")


def cell_text(cell: Any) -> str | None:
    """Return a cell as text: a date or time in ISO form, what is no text as JSON; None stays None."""
    if isinstance(cell, (date, time)):
        return cell.isoformat()
    return cell if cell is None or isinstance(cell, str) else json.dumps(plain(cell), ensure_ascii=False)


def error_text(error: Exception | None) -> str | None:
    """Return what an error is called and says, without secrets; None for none."""
    return None if error is None else shown_error(error)


def check_columns(names: Sequence[str], what: str) -> None:
    """Return if no two columns of `what` have one name.

    Raises:
        ConfigError: two have.
    """
    if len(set(names)) < len(names):
        raise ConfigError(f"{what} has two columns {max(names, key=names.count)!r}. Rename one of them.")


class Table:
    """Names the columns of a function's results and fills them.

    Args:
        return_type: of the function.
        taken: names that the input has; a result's column of such a name is called ``result_…``.

    Attributes:
        columns: the names of the result's columns, the error's last.
    """

    def __init__(self, return_type: Any, taken: Iterable[str] = ()) -> None:
        self._type = return_type
        self._fields = fields_of(return_type)
        taken = set(taken)
        self.columns = [_free(name, taken) for name in (*(self._fields or (VALUE,)), ERROR)]

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        return TypeAdapter(Any if self._type is None else self._type)

    def data(self, value: Any) -> Any:
        """Return a value of the function as JSON data, under the names of its fields."""
        if value is None:
            return None
        return plain(self._adapter.dump_python(value, by_alias=False, warnings=False))

    def cells(self, row: Any) -> dict[str, Any]:
        """Return the cells of a row with `value` and `error`, by column; None where there is nothing."""
        error = row.error
        data = None if error is not None else self.data(row.value)
        if self._fields is None:
            cells = [data]
        elif isinstance(data, Mapping):
            cells = [data.get(name) for name in self._fields]
        else:
            cells = list(data or ())  # a NamedTuple
        found = dict(zip(self.columns, cells, strict=False))
        return {**dict.fromkeys(self.columns), **found, self.columns[-1]: error_text(error)}


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name = f"result_{name}"
    taken.add(name)
    return name


def json_lines(report: Reported) -> Generator[str, None, None]:
    """Yield a report as JSONL, line by line."""
    table = Table(report.return_type)
    for row in report.rows:
        error = row.error
        value = None if error is not None else table.data(row.value)
        record = {"index": row.index, ROW: plain(row.row), VALUE: value, ERROR: error_text(error)}
        line = json.dumps(record, ensure_ascii=False)
        if not line.isascii() and any("\ud800" <= character <= "\udfff" for character in line):
            line = json.dumps(record)  # escaped, a lone surrogate stays what it is
        yield f"{line}\n"


def fields_of(annotation: Any) -> tuple[str, ...] | None:
    """Return the names of a model's fields; None for what is no model."""
    annotation = _without_none(annotation)
    kind = get_origin(annotation) or annotation
    if not isinstance(kind, type):
        return None
    if issubclass(kind, BaseModel):
        # A root model is what it holds.
        return None if "root" in kind.model_fields else tuple(kind.model_fields)
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    if is_typeddict(kind):
        return tuple(kind.__annotations__)
    names = getattr(kind, "_fields", None)
    return tuple(names) if issubclass(kind, tuple) and names is not None else None


def _without_none(annotation: Any) -> Any:
    while hasattr(annotation, "__metadata__"):
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, types.UnionType):
        others = [part for part in get_args(annotation) if part is not type(None)]
        return _without_none(others[0]) if len(others) == 1 else annotation
    return annotation


# --- frames in --------------------------------------------------------------------------------------------------


def frame_kind(source: Any) -> FrameKind | None:
    """Say whose frame `source` is, None for what is no frame; imports nothing."""
    for name in _KINDS:
        if isinstance(source, getattr(sys.modules.get(name), "DataFrame", ())):
            return name
    return None


def frame_records(frame: Any) -> Iterator[dict[str, Any]]:
    """Return the rows of a frame as dicts of plain Python values; what is missing is None.

    Raises:
        ConfigError: two columns have one name.
    """
    columns = [str(name) for name in frame.columns]
    check_columns(columns, "the frame")
    rows = frame.itertuples(index=False, name=None) if frame_kind(frame) == "pandas" else frame.iter_rows()
    return (dict(zip(columns, map(plain_cell, row), strict=True)) for row in rows)


def plain_cell(cell: Any) -> Any:
    """Return a cell as a plain Python value; NaN, NA and NaT become None."""
    if cell is None or type(cell) in (str, int, bool):
        return cell
    if isinstance(cell, float):
        return None if cell != cell else float(cell)  # noqa: PLR0124 - only NaN differs from itself
    if type(cell).__name__ in ("NAType", "NaTType"):
        return None
    for name in ("to_pydatetime", "to_pytimedelta", "to_list", "tolist"):
        if hasattr(cell, name):
            return getattr(cell, name)()
    return cell


# --- frames out -------------------------------------------------------------------------------------------------


def to_frame(report: Reported, source: Any = None) -> Any:
    """Return a report as a frame: the columns of the input, those of the results, and ``error``.

    It is of the kind of `source` where that is a frame, which then keeps its own columns and index; else pandas where
    it is installed, else polars.

    Raises:
        ConfigError: neither is installed.
    """
    kind = frame_kind(source) or _installed()
    has_frame = frame_kind(source) is not None and len(source) >= len(report.rows)
    if has_frame:
        table = Table(report.return_type, map(str, source.columns))
        names, records = table.columns, [table.cells(row) for row in report.rows]
    else:
        names, again = table_of(report)
        records = list(again())
    columns = {name: [mend(record.get(name)) for record in records] for name in names}
    module = load_extra(kind, "frames", purpose="A frame")
    if kind == "pandas":
        index = source.index[: len(records)] if has_frame else None
        series = {name: _pandas_column(module, cells, index) for name, cells in columns.items()}
        made = module.DataFrame(series, index=index)
        return module.concat([source.iloc[: len(records)], made], axis=1) if has_frame else made
    made = [_polars_column(module, name, cells) for name, cells in columns.items()]
    return source.head(len(records)).with_columns(made) if has_frame else module.DataFrame(made)


def _installed() -> FrameKind:
    for name in _KINDS:
        with suppress(ImportError):
            importlib.import_module(name)
            return name
    raise ConfigError(f"A frame needs pandas or polars, and neither is installed: {install_line('frames')}")


def table_of(report: Reported) -> tuple[list[str], Callable[[], Iterator[dict[str, Any]]]]:
    """Return the columns of a report as a table, and what yields its rows by column.

    The columns of the input come first; which there are shows only when all rows were gone through.
    """
    inputs = dict.fromkeys(name for row in report.rows for name in _input_record(row.row))
    table = Table(report.return_type, inputs)
    return [*inputs, *table.columns], lambda: ({**_input_record(row.row), **table.cells(row)} for row in report.rows)


def _input_record(given: Any) -> dict[str, Any]:
    """Return what a row was given as, by column: a dict under its own names, everything else as ``row``."""
    if isinstance(given, dict) and given and all(isinstance(name, str) for name in given):
        return {name: _cell(cell) for name, cell in given.items()}
    return {} if given is None else {ROW: _cell(given)}


def _cell(value: Any) -> Any:
    return value if isinstance(value, (str, int, float, bool, date, datetime, time)) else plain(value)


def _pandas_column(pandas: Any, cells: list[Any], index: Any) -> Any:
    kinds = {type(cell) for cell in cells}
    if kinds == {int, type(None)} and all(cell is None or cell in WHOLE for cell in cells):
        return pandas.Series(cells, index=index, dtype="Int64")  # pandas would turn the numbers into floats
    return pandas.Series(cells, index=index, dtype="object" if kinds == {type(None)} else None)


def _polars_column(polars: Any, name: str, cells: list[Any]) -> Any:
    kinds = {type(cell) for cell in cells} - {type(None)}
    if not kinds:
        return polars.Series(name, cells, dtype=polars.String)
    if len(kinds) == 1:
        try:
            return polars.Series(name, cells)
        except Exception:  # noqa: BLE001 - polars refuses a mixed column in many ways
            kinds = set()
    if kinds and kinds <= {int, float}:
        return polars.Series(name, [None if cell is None else float(cell) for cell in cells])
    return polars.Series(name, [cell_text(cell) for cell in cells], dtype=polars.String)
