"""What a store keeps of a value."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass

import pytest
from pydantic import BaseModel

from SimpleLLMFunc import File, ImgUrl
from SimpleLLMFunc.observability.store.content import Content, pack, unpack

CONTENT = Content(keep=True, max_text=10_000)


@pytest.mark.parametrize("text", ["ACGT" * 1000, "0123456789abcdef" * 300, "word " * 1000, "长" * 5000, "a" * 5000])
def test_long_texts_are_no_files(text):
    assert CONTENT.kept(text) == text


def test_files_are_named_by_their_size(tmp_path):
    data = base64.b64encode(os.urandom(9000)).decode()
    assert CONTENT.kept({"data": data}) == {"data": "<base64 9 kB>"}
    assert CONTENT.kept(f"data:audio/wav;base64,{data}") == "<audio 9 kB>"
    assert CONTENT.kept(ImgUrl(f"data:image/png;base64,{data}")) == "<image 9 kB>"
    (tmp_path / "letter.pdf").write_bytes(b"%PDF-1.4" + bytes(2492))
    assert CONTENT.kept([File(tmp_path / "letter.pdf")]) == ["<file 2 kB>"]
    assert CONTENT.kept(bytes(500)) == "<bytes 500 B>"


@dataclass
class Place:
    street: str
    api_key: str = "hush"


class Person(BaseModel):
    name: str
    place: Place


def test_objects_are_kept_as_data():
    person = Person(name="Anna", place=Place("Main Street"))
    assert CONTENT.kept(person) == {"name": "Anna", "place": {"street": "Main Street", "api_key": "***"}}
    assert CONTENT.kept({1: (1, 2.5, None, True)}) == {"1": [1, 2.5, None, True]}


def test_a_snapshot_does_not_change_any_more():
    rows = {"a": [1, {"b": 2}], "c": Person(name="Anna", place=Place("Main Street"))}
    taken = CONTENT.snapshot(rows)
    rows["a"][1]["b"] = 3
    rows["a"].append(4)
    rows["c"].name = "Bert"
    rows["c"].place.street = "Side Street"
    kept = {"name": "Anna", "place": {"street": "Main Street", "api_key": "***"}}
    assert CONTENT.kept(taken) == {"a": [1, {"b": 2}], "c": kept}


def test_a_snapshot_of_much_costs_little():
    much = [[0] * 1000 for _ in range(1000)]
    taken = CONTENT.snapshot(much)
    assert sum(each is not original for each, original in zip(taken, much, strict=True)) < 10


@pytest.mark.parametrize("value", ["x", "x" * 5000, {"a": [1, None]}, "\udc80", "人" * 2000, 1.5, None])
def test_what_is_packed_comes_back(value):
    packed = pack(value)
    assert unpack(packed) == value
    assert isinstance(packed, bytes) == (len(str(value).encode("utf-8", "replace")) >= 1024)


def test_without_content_the_same_text_has_the_same_hash():
    nothing = Content(keep=False, max_text=100)
    assert nothing.kept("a") == nothing.kept("a") != nothing.kept("b")
    assert nothing.kept({"a": 1, "b": 2}) == nothing.kept({"b": 2, "a": 1})
    assert nothing.kept(None) is None
    assert nothing.head("text", 10) == ""
    assert nothing.text("a name") == "a name"
