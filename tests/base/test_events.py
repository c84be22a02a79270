"""The facts of a run: a closed union of frozen classes, all of them on the page that tells of them."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import get_args

import pytest

from SimpleLLMFunc.base import events
from SimpleLLMFunc.base.events import ReActEvent

PAGE = Path(__file__).parents[2] / "docs/how-to/react-events.md"
KINDS = get_args(ReActEvent)


def test_the_union_holds_every_event():
    assert {kind.__name__ for kind in KINDS} == set(events.__all__) - {"Attempt", "ReActEvent"}


@pytest.mark.parametrize("kind", KINDS)
def test_an_event_is_frozen(kind):
    assert dataclasses.fields(kind)
    assert kind.__dataclass_params__.frozen
    assert hasattr(kind, "__slots__")


def test_the_page_tells_of_every_event_and_its_fields():
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    told = {name: set(re.findall(r"`(\w+)`", fields)) for name, fields in rows.items()}
    assert told == {kind.__name__: {field.name for field in dataclasses.fields(kind)} for kind in KINDS}
