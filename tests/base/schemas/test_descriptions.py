"""Descriptions of fields by path, and the same return type in other words."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from SimpleLLMFunc.base.schemas import compile_output, field_descriptions, with_descriptions


class Line(BaseModel):
    price: float = Field(description="in euro")
    parts: list[Line] = []


class Bill(BaseModel):
    lines: Annotated[list[Line], Field(description="all of them")]
    best: Line | None = None
    notes: dict[str, Line] = {}


class Sale(BaseModel):
    price: float


def test_each_member_of_a_union_takes_the_description():
    output = with_descriptions(compile_output(Line | Sale), {"price": "in cents"})
    assert str(output.schema).count("in cents") == 2


def test_every_field_has_a_path_once_and_takes_another_description():
    output = compile_output(Bill)
    before = {"lines": "all of them", "lines[].price": "in euro", "lines[].parts": "", "best": "", "notes": ""}
    assert field_descriptions(output.schema) == before
    after = with_descriptions(output, {"lines[].price": "in cents", "best": "the cheapest", "no": "such field"})
    assert field_descriptions(after.schema) == {**before, "lines[].price": "in cents", "best": "the cheapest"}
    assert field_descriptions(output.schema) == before
    assert "in cents" in str(after.native_format)
    assert after.parse('{"lines": [{"price": 3}]}').value == Bill(lines=[Line(price=3)])
    assert field_descriptions(compile_output(list[int]).schema) == {}
