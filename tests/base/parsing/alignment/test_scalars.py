"""Numbers, truth values, dates and durations in words."""

from __future__ import annotations

import datetime as dt

import pytest

from SimpleLLMFunc.base.parsing.alignment.scalars import (
    read_bool,
    read_date,
    read_datetime,
    read_duration,
    read_number,
    read_time,
    read_uuid,
)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("42", "42"), ("3 years", "3"), ("1,234", "1234"), ("1,234,567.89", "1234567.89"), ("42 %", "42"), ("42%", "42"),
        ("$1,234.50", "1234.50"), ("-$5", "-5"), ("$-5", "-5"), ("−5", "-5"), ("USD 42", "42"), ("US$42", "42"),
        ("42 EUR", "42"), ("3,50 €", "3.50"), ("1.234,56", "1234.56"), ("1 234", "1234"), ("1'234", "1234"),
        ("1_000", "1000"), ("１２３", "123"), ("42岁", "42"), ("共3个", "3"), ("about 42", "42"), ("~3", "3"),
        ("The answer is **42**.", "42"), ("There are 7 apples in the basket.", "7"), ("5-star", "5"), ("3rd", "3"),
        ("#3", "3"), ("25°C", "25"), ("-3.5 °C", "-3.5"), ("5 m²", "5"), ("1e5", "1e5"), (".5", "0.5"), ("5.", "5"),
        ("+5", "5"), ("007", "007"), ("(5)", "5"), ("score = 9.5", "9.5"), ("-**9**", "-9"), ("**`9`**", "9"), ("Age: 42 years old", "42"),
    ],
)  # fmt: skip
def test_one_number_is_read(text: str, number: str) -> None:
    assert read_number(text) == number


@pytest.mark.parametrize(
    "text",
    [
        "between 3 and 5", "3 of 5", "3-5", "3–5", "3 to 5", "3/5", "5_x", "4 out of 5", "5 or six", "12:30", "2024-05-01",
        "5k", "5K", "5 million", "$5m", "3万", "2 dozen", "half of 5", "5 x 10", "10^3", "10²", "½", "4½",
        "2*3", "9**9**9", "**2**3", "2`3", "9**.5", "5+", ">5", "< 5", "at least 5", "more than 5", "不到5", "超过5", "5以上", "up to 5", "max 5",
        "minus 5", "负5", "not 5", "isn't 5", "- 5", "no", "", "five",
        "GPT-4", "Q3", "v2", "H2O", "x-3", "0x1F", "a_1", "print(3)", "1,5", "12,34", "0,234", "€1.234", "3.5.2",
        "I cannot compute this since 2023 data is missing", "Question 3", "5 pm", "1" * 400,
        "The town has a long history and a church, a market and 3 bakeries that I liked a lot when I was there",
    ],
)  # fmt: skip
def test_what_is_not_exactly_one_number_is_left(text: str) -> None:
    assert read_number(text) is None


@pytest.mark.parametrize(
    ("truth", "texts"),
    [
        (True, ["yes", "Yes.", "YES", "true", "y", "**Yes**", "Yes, it is.", "The answer is yes.", "Yes — absolutely", "是",
                "是的", "对", "对的", "真", "正确", "Answer: true", "True: the text says so"]),
        (False, ["no", "No.", "false", "n", "否", "不", "不是", "错", "假", "不正确", "No, it is not.", "The answer is no",
                 "No. That's wrong"]),
        (None, ["", "maybe", "1", "0", "on", "off", "t", "Yes and no", "yes, but no", "not true", "It is not false", "yes?",
                "A true story", "No problem", "There is no issue", "Y, N", "no, that is true", "是不是", "yes yes", "correct",
                "x" * 400]),
    ],
)  # fmt: skip
def test_yes_no_and_neither(truth: bool | None, texts: list[str]) -> None:
    assert {text: read_bool(text) for text in texts} == dict.fromkeys(texts, truth)


@pytest.mark.parametrize(
    ("date", "texts"),
    [
        ("2026-03-14", ["2026-03-14", "The date is 2026-03-14.", "March 14, 2026", "Mar 14 2026", "14 March 2026",
                        "14th of March 2026", "2026/03/14", "2026.3.14", "2026年3月14日"]),
        (None, ["03/04/2026", "3.4.2026", "March 2026", "20260314", "2026-13-01", "2026-02-30", "before 2026-03-14",
                "not 2026-03-14", "2026-03-14 or 2026-03-15", "2026-03-14T10:00:00", "room 5 on 2026-03-14", "tomorrow"]),
    ],
)  # fmt: skip
def test_dates_and_what_is_not_clearly_one(date: str | None, texts: list[str]) -> None:
    assert {text: read_date(text) for text in texts} == dict.fromkeys(texts, date)


def test_times_and_uuids() -> None:
    assert read_datetime("It starts at 2026-03-14 09:30 UTC.") == "2026-03-14 09:30Z"
    assert read_datetime("2026-03-14") is None
    assert read_time("at 9:05") == "09:05"
    assert read_time("9:05 pm") is None
    assert read_time("25:00") is None
    assert read_time("9:05 or 9:10") is None
    one = "123e4567-e89b-12d3-a456-426614174000"
    assert read_uuid(f"The id is {one}.") == one
    assert read_uuid(f"{one} {one}") is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90 minutes", 5400), ("2 hours", 7200), ("1h 30min", 5400), ("1 hour and 30 minutes", 5400),
        ("3 days", 259200), ("2s", 2), ("5", None), ("5 m", None), ("5 months", None), ("", None),
        ("30 minutes 1 hour", None), ("9" * 90 + " days", None),
    ],
)  # fmt: skip
def test_durations(text: str, seconds: float | None) -> None:
    assert read_duration(text) == (None if seconds is None else dt.timedelta(seconds=seconds))
