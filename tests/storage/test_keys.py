"""Keys: the same for the same row in every process, another one for another row."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel, create_model

from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.storage.keys import canonical, key_of, plain_text, version_of
from SimpleLLMFunc.type import ImgPath
from tests.support.processes import run_script


class Color(Enum):
    RED = "red"


class Model(BaseModel):
    a: int = 1


@dataclass
class Data:
    a: int = 1


THINGS = [
    1, 1.0, True, "1", "", None, [], {}, [1], {"a": 1}, {(1, 2): 3}, Color.RED, "red", Model(), Data(),
    date(2024, 2, 29), "2024-02-29", Decimal("1.0"), Decimal("1.00"), UUID(int=1), b"1", {1, 2}, frozenset({1, 2}),
    Path("a"), "\ud800", "\x00", float("nan"), 1 << 80, {"a": {("x", 1): Model()}},
]  # fmt: skip


def test_what_differs_has_another_key() -> None:
    version = version_of({"prompt": "a"})
    keys = [key_of(version, {"thing": thing}) for thing in THINGS]
    assert len(set(keys)) == len(THINGS)
    assert keys == [key_of(version, {"thing": thing}) for thing in THINGS]
    assert not {*keys} & {key_of(version_of({"prompt": "b"}), {"thing": thing}) for thing in THINGS}


@pytest.mark.parametrize(
    "kind", [dataclass(type("Seen", (), {"__annotations__": {"it": Any}})), create_model("Seen", it=Any)]
)
def test_a_picture_within_counts_by_what_it_shows(kind, tmp_path) -> None:
    path = tmp_path / "a.png"
    keys = []
    for shown in (b"0", b"1", b"0"):
        path.write_bytes(b"\x89PNG\r\n\x1a\n" + shown)
        keys.append(key_of(b"", {"x": [kind(it={"b": ImgPath(path)})]}))
    assert keys[0] == keys[2] != keys[1]


def test_keys_are_the_same_in_another_process(monkeypatch) -> None:
    code = (
        "from SimpleLLMFunc.storage.keys import *\n"
        "print(key_of(version_of({'p': 1}), {'x': [{'b', 'a', 'c', 'd'}, 'text', 1.5, {'k': frozenset({3, 1})}]}).hex())"
    )
    told = set()
    for seed in "12":
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        told.add(run_script(code).stdout)
    assert [len(key) for key in told] == [33]


def test_what_is_only_a_place_in_memory_has_no_key() -> None:
    class Thing:
        pass

    class Shown(Thing):
        def __str__(self) -> str:
            return "shown"

    with pytest.raises(UsageError, match="Thing"):
        canonical({"a": Thing()})
    assert canonical(Shown()) == canonical(Shown())
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(UsageError):
        canonical({"a": endless})


def test_text_to_look_at_takes_anything() -> None:
    class Thing:
        def __str__(self) -> str:
            return "a thing"

    assert plain_text([Thing(), Model(), {1, 2}, b"\x01"]) == '["a thing",{"a":1},["1","2"],"01"]'
