"""Numbers, truth values, dates and durations in words; the corpus has most of the cases."""

from __future__ import annotations

import datetime as dt

from SimpleLLMFunc.base.parsing.alignment.scalars import (
    read_bool,
    read_date,
    read_datetime,
    read_duration,
    read_number,
    read_time,
    read_uuid,
)


def test_a_number_keeps_its_digits() -> None:
    numbers = {"42": "42", "−5": "-5", "1.234,50 €": "1234.50", ".5": "0.5", "007": "007", "1e5": "1e5", "GPT-4": None}
    assert {text: read_number(text) for text in numbers} == numbers


def test_digits_and_long_texts_are_no_yes_or_no_and_no_date() -> None:
    assert [read_bool(text) for text in ("1", "0", "x" * 400, "Yes, it is.", "No.")] == [None, None, None, True, False]
    assert [read_date(text) for text in ("14 March 2026", "20260314", "x" * 400)] == ["2026-03-14", None, None]


def test_times_uuids_and_durations() -> None:
    assert read_datetime("It starts at 2026-03-14 09:30 UTC.") == "2026-03-14 09:30Z"
    assert read_datetime("2026-03-14") is None
    assert read_time("at 9:05") == "09:05"
    assert read_time("9:05 pm") is None
    assert read_time("25:00") is None
    assert read_time("9:05 or 9:10") is None
    one = "123e4567-e89b-12d3-a456-426614174000"
    assert read_uuid(f"The id is {one}.") == one
    assert read_uuid(f"{one} {one}") is None
    assert read_duration("1h 30min") == dt.timedelta(minutes=90)
    assert read_duration("") is None
