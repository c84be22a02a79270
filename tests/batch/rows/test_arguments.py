"""What a row is for a function."""

import inspect
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Annotated, Any, NewType, TypedDict, get_type_hints

import pytest
from pydantic import BaseModel, RootModel

from SimpleLLMFunc.batch.rows.arguments import RowArguments
from SimpleLLMFunc.batch.rows.rows import InputRow
from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.type import ImgUrl


class Order(BaseModel):
    item: str


class Orders(RootModel[dict[str, int]]):
    pass


class Told(TypedDict):
    item: str


Mapped = NewType("Mapped", dict[str, int])


def rows_of(function, column=None):
    asked: Any = SimpleNamespace(
        name=function.__name__,
        signature=inspect.signature(function),
        type_hints=get_type_hints(function, None, None, True),
    )
    return RowArguments(asked, column)


def arguments(function, value, column=None, **row):
    return rows_of(function, column).of(InputRow(0, value, **row))


def none(): ...
def one(text: str): ...
def anything(text): ...
def two(text: str, lang: str, strict: bool = False): ...


def test_tuples_dicts_and_values():
    assert arguments(two, ("a", "b")) == (("a", "b"), {})
    assert arguments(two, {"text": "a", "lang": "b"}) == ((), {"text": "a", "lang": "b"})
    assert arguments(two, {"text": "a", "lang": "b", "id": 1}) == ((), {"text": "a", "lang": "b"})
    assert arguments(one, "a") == (("a",), {})
    assert arguments(one, ["a"]) == ((["a"],), {})
    assert arguments(one, None) == ((None,), {})
    assert arguments(one, {"text": "a", "other": 1}) == ((), {"text": "a"})
    # Its keys are parameters, so it is a call; that one is missing, the call says.
    assert arguments(two, {"lang": "b"}) == ((), {"lang": "b"})
    with pytest.raises(UsageError, match="line 3"):
        arguments(one, None, error=UsageError("line 3: broken"))


@pytest.mark.parametrize(
    ("value", "which"), [({"other": 1}, "other"), ({}, "…"), ({1: 2}, "1"), ({"other": 1, "note": 2}, "…")]
)
def test_a_dict_with_other_keys_is_refused(value, which):
    said = rf"row 0: no column for 'text'; .*, and one\(\) takes 'text'. Rename it, or name it: column='{which}'"
    for is_record in (False, True):
        with pytest.raises(UsageError, match=said):
            arguments(one, value, is_record=is_record)
        with pytest.raises(UsageError, match=r"none\(\) takes nothing"):
            arguments(none, value, is_record=is_record)


MAY_BE_A_DICT = [
    *(dict, dict[str, int], Mapping[str, Any], Order, Orders, Told, Any, object, Order | None, str | dict[str, int]),
    *(Annotated[Order, "the order"], Mapped),
]


@pytest.mark.parametrize("hint", MAY_BE_A_DICT)
def test_a_dict_is_the_value_of_a_parameter_that_may_be_one(hint):
    def named(order): ...

    named.__annotations__ = {"order": hint}
    assert arguments(named, {"item": "a", "number": 1}) == (({"item": "a", "number": 1},), {})
    assert arguments(named, {"item": "a", "order": 1}) == (({"item": "a", "order": 1},), {})
    assert arguments(named, {"order": {"item": "a"}}) == ((), {"order": {"item": "a"}})
    assert arguments(named, {"item": "a", "n": 1}, is_record=True) == (({"item": "a", "n": 1},), {})
    assert arguments(named, {"order": "a", "n": 1}, is_record=True) == ((), {"order": "a"})
    alone = "a" if hint in (Any, object) else {"item": "a"}
    assert arguments(named, {"item": "a"}, is_record=True) == ((alone,), {})


@pytest.mark.parametrize("hint", [str, int, list[dict[str, int]], ImgUrl, bytes | None])
def test_a_dict_is_not_the_value_of_any_other(hint):
    def named(order): ...

    named.__annotations__ = {"order": hint}

    def both(order: Order, lang: str): ...

    for function in (named, both):
        with pytest.raises(UsageError, match="no column for 'order'"):
            arguments(function, {"item": "a"})


def test_without_annotation_a_dict_is_the_value_and_one_column_a_list_of_values():
    assert arguments(anything, {"other": 1}) == (({"other": 1},), {})
    assert arguments(anything, {}) == (({},), {})
    assert arguments(anything, {"comment": "a"}, is_record=True) == (("a",), {})
    assert arguments(anything, {"id": "1", "note": "a"}, is_record=True) == (({"id": "1", "note": "a"},), {})


def test_a_function_that_takes_any_keyword():
    def known(text, **fields): ...
    def strict(text: str, **fields): ...
    def free(**fields): ...

    assert arguments(known, {"text": "a", "other": 1}) == ((), {"text": "a", "other": 1})
    assert arguments(known, {"other": 1}) == (({"other": 1},), {})
    assert arguments(free, {"other": 1}, is_record=True) == ((), {"other": 1})
    with pytest.raises(UsageError, match="no column for 'text'"):
        arguments(strict, {"other": 1})


def test_parameters_without_a_keyword_are_given_by_place():
    def placed(text: str, lang: str = "en", /, strict: bool = False): ...

    assert arguments(placed, {"strict": True, "text": "a"}) == (("a",), {"strict": True})
    assert arguments(placed, {"lang": "b", "text": "a"}, is_record=True) == (("a", "b"), {})
    assert arguments(placed, {"note": "a"}, column="note") == (("a",), {})


def test_a_line_of_a_table_may_have_more_columns():
    record = {"id": "1", "text": "a", "lang": "b"}
    assert arguments(one, record, is_record=True) == ((), {"text": "a"})
    assert arguments(two, record, is_record=True) == ((), {"text": "a", "lang": "b"})
    with pytest.raises(UsageError) as refused:
        arguments(two, {"id": "1", "text": "a", "langg": "x"}, is_record=True, line=3)
    assert str(refused.value) == (
        "line 3: no column for 'lang'; the columns are 'id', 'text', 'langg', and two() takes 'text', 'lang', 'strict'. "
        "Rename the columns, or name them: RowSource(rows, columns={'langg': 'lang'})."
    )
    with pytest.raises(UsageError, match=r"Rename it, or name it: column='txt' \(--column txt\)"):
        arguments(one, {"id": "1", "txt": "a"}, is_record=True)


def test_one_column_is_named():
    assert arguments(one, {"id": "1", "txt": "a"}, column="txt") == ((), {"text": "a"})
    assert arguments(one, {"text": "1", "txt": "a"}, column="txt") == ((), {"text": "a"})

    def other(text: str, *, strict: bool = False): ...

    assert arguments(other, {"strict": True, "txt": "a", "id": 1}, column="txt") == ((), {"strict": True, "text": "a"})
    with pytest.raises(UsageError, match="Rename it, or name it: column='id'"):
        arguments(other, {"id": 1}, is_record=True)
    for value, said in (({"id": 1}, "there is no column 'txt'; the columns are 'id'"), ("a", "a str has no columns")):
        with pytest.raises(UsageError, match=said):
            arguments(one, value, column="txt")
    with pytest.raises(UsageError, match=r"one required parameter, and two\(\) takes 'text', 'lang', 'strict'"):
        rows_of(two, "txt")
