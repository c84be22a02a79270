"""The arguments of a row: its columns by the names of the parameters."""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel

from SimpleLLMFunc.base.run import Mappable
from SimpleLLMFunc.base.type_resolve import is_multimodal_type
from SimpleLLMFunc.batch.rows.rows import InputRow
from SimpleLLMFunc.batch.rows.tables import fields_of
from SimpleLLMFunc.errors import UsageError, cut

_KIND = inspect.Parameter


class RowArguments:
    """Turns rows into the arguments of one function.

    Args:
        function: that is asked.
        column: whose cell goes to the one parameter that must be given; None goes by the names.

    Raises:
        UsageError: a column is named, and the function has not exactly one such parameter.
    """

    def __init__(self, function: Mappable[Any], column: str | None = None) -> None:
        parameters = function.signature.parameters
        self._function = function
        self._column = column
        self._takes_others = any(each.kind is _KIND.VAR_KEYWORD for each in parameters.values())
        single = [each for each in parameters.values() if each.kind not in (_KIND.VAR_KEYWORD, _KIND.VAR_POSITIONAL)]
        self._names = [each.name for each in single]
        self._by_place = [each.name for each in single if each.kind is _KIND.POSITIONAL_ONLY]
        self._required = [each.name for each in single if each.default is _KIND.empty]
        first = next((each for each in parameters.values() if each.kind not in _BY_NAME), None)
        hint = _KIND.empty if first is None else function.type_hints.get(first.name, Any)
        self._takes_any = hint in (Any, object)
        self._takes_a_dict = len(self._required) <= 1 and first is not None and _takes_a_dict(hint)
        if column is not None:
            if len(self._required or self._names) != 1:
                raise UsageError(
                    f"column={column!r} is the name of the column for a function with one required parameter, and "
                    f"{function.name}() takes {_listed(self._names)}. Rename the columns: "
                    "RowSource(rows, columns={'column': 'parameter'})."
                )
            (self._target,) = self._required or self._names

    def of(self, row: InputRow) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments that a row is.

        A tuple is positional arguments. Of a dict, the columns that are parameters are keywords where they cover all
        that must be given, and the others are left out; a parameter that may be a dict is given a dict with other keys
        as it is. Everything else is the single value.

        Raises:
            UsageError: the row could not be read, or its columns are not the parameters.
        """
        if row.error is not None:
            raise row.error
        value = row.value
        if self._column is not None:
            if not isinstance(value, dict) or self._column not in value:
                raise self._misfit(row)
            others = {name: cell for name, cell in value.items() if name != self._column and name in self._names}
            return self._called(others | {self._target: value[self._column]})
        if isinstance(value, tuple):
            return tuple(value), {}
        if not isinstance(value, dict):
            return (value,), {}
        columns = {name: cell for name, cell in value.items() if name in self._names}
        extras = [name for name in value if name not in columns]
        takes_extras = not extras or (self._takes_others and all(isinstance(name, str) for name in extras))
        is_call = takes_extras and bool(columns or (value and not self._names))
        if not row.is_record:  # a dict in a list may be the value itself; a line of a file or a frame names columns
            if is_call:
                return self._called(dict(value))
            if self._takes_a_dict:
                return (value,), {}
        if (columns or is_call) and columns.keys() >= {*self._required}:
            return self._called(dict(value) if takes_extras else columns)
        if is_call or not self._takes_a_dict:
            raise self._misfit(row)
        # A table of one column is a list of values where the parameter takes any.
        is_list = len(value) == 1 and self._takes_any
        return (next(iter(value.values())) if is_list else value,), {}

    def _called(self, found: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return tuple(found.pop(name) for name in self._by_place if name in found), found

    def _misfit(self, row: InputRow) -> UsageError:
        place = f"row {row.index}" if row.line is None else f"line {row.line}"
        takes = f"{self._function.name}() takes {_listed(self._names)}"
        if not isinstance(row.value, dict):
            return UsageError(f"{place}: column={self._column!r}, and a {type(row.value).__name__} has no columns.")
        columns = [str(name) for name in row.value]
        if self._column is not None:
            return UsageError(f"{place}: there is no column {self._column!r}; the columns are {_listed(columns)}.")
        missing = [name for name in self._required if name not in row.value] or self._names or ["…"]
        others = [name for name in columns if name not in self._names]
        close = get_close_matches(missing[0], others)
        which = close[0] if close else others[0] if len(others) == 1 else "…"
        how = (
            f"Rename it, or name it: column={which!r} (--column {which})."
            if len(self._required or self._names) == 1
            else f"Rename the columns, or name them: RowSource(rows, columns={{{which!r}: {missing[0]!r}}})."
        )
        return UsageError(
            f"{place}: no column for {_listed(missing)}; the columns are {_listed(columns)}, and {takes}. {how}"
        )


_BY_NAME = (_KIND.KEYWORD_ONLY, _KIND.VAR_KEYWORD)


def _listed(names: list[str]) -> str:
    return cut(", ".join(map(repr, names)), 300) or "nothing"


def _takes_a_dict(hint: Any) -> bool:
    """Whether a parameter of this type may be given a dict: a mapping, a model, or anything at all."""
    while hasattr(hint, "__metadata__") or hasattr(hint, "__value__") or hasattr(hint, "__supertype__"):
        hint = getattr(hint, "__value__", None) or getattr(hint, "__supertype__", None) or get_args(hint)[0]
    if hint in (Any, object) or isinstance(hint, TypeVar):
        return True
    if get_origin(hint) in (Union, types.UnionType):
        return any(map(_takes_a_dict, get_args(hint)))
    kind = get_origin(hint) or hint
    if not isinstance(kind, type) or is_multimodal_type(kind):
        return False
    return issubclass(kind, (Mapping, BaseModel)) or fields_of(kind) is not None
