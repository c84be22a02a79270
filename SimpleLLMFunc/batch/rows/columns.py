"""A row of a report as plain data, by column, for tables of every kind."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol, Union, get_args, get_origin

from pydantic import BaseModel, TypeAdapter
from pydantic_core import to_jsonable_python
from typing_extensions import is_typeddict

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.logger import shown_error

VALUE, ERROR, ROW = "value", "error", "row"


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
        if value is None or type(value) in (str, int, bool):
            return value
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
