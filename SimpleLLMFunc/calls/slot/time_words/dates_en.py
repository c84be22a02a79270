"""English words about time."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from SimpleLLMFunc.base.parsing.alignment import MONTHS
from SimpleLLMFunc.calls.slot.time_words import spans
from SimpleLLMFunc.calls.slot.time_words.spans import Anchor, Stretch

__all__ = ["read_english"]

_WEEKDAYS: Final = {
    name: number
    for number, names in enumerate(
        (
            "monday mon",
            "tuesday tue tues",
            "wednesday wed",
            "thursday thu thur thurs",
            "friday fri",
            "saturday sat",
            "sunday sun",
        )
    )
    for name in names.split()
}
_NUMBERS: Final = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "fourteen": 14, "fifteen": 15, "twenty": 20, "thirty": 30, "sixty": 60, "ninety": 90,
}  # fmt: skip
_ORDINALS: Final = {"first": 1, "second": 2, "third": 3, "fourth": 4, "1st": 1, "2nd": 2, "3rd": 3, "4th": 4}
_DAYS: Final = {
    "today": 0, "tomorrow": 1, "yesterday": -1, "the day after tomorrow": 2, "day after tomorrow": 2,
    "the day before yesterday": -2, "day before yesterday": -2,
}  # fmt: skip
_RELATIVE: Final = {
    "last": -1,
    "previous": -1,
    "this": 0,
    "the current": 0,
    "current": 0,
    "next": 1,
    "the next": 1,
    "the last": -1,
}

_WHICH: Final = rf"(?P<which>{'|'.join(sorted(_RELATIVE, key=len, reverse=True))})"
_MONTH: Final = rf"(?P<month>{'|'.join(sorted(MONTHS, key=len, reverse=True))})\.?"
_WEEKDAY_NAME: Final = rf"(?P<day>{'|'.join(sorted(_WEEKDAYS, key=len, reverse=True))})\.?"
_DAY: Final = r"(?P<day>\d{1,2})(?P<ending>st|nd|rd|th)?"
_YEAR: Final = r"(?P<year>\d{4})"
_COUNT: Final = rf"(?P<count>\d{{1,4}}|{'|'.join(sorted(_NUMBERS, key=len, reverse=True))}) (?P<unit>day|week|month|year|hour|minute)s?"
_CLOCK: Final = (
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2})(?::(?P<second>\d{2}))?)? ?(?P<half>[ap]\.?m\.?)?"
    r"|(?P<word>noon|midday)"
)
_PART: Final = r"(?P<part>morning|afternoon|evening|night)"


def read_english(text: str, anchor: Anchor) -> Stretch | None:
    """Return what English words mean; None where they are not all understood.

    Args:
        text: lower-case words, one space between them.
        anchor: what they are counted from.

    Raises:
        ValueError: there is no such date.
        OverflowError: it lies outside the years that can be counted.
    """
    return _read_days(text, anchor) or _read_time(text, anchor)


def _read_days(text: str, anchor: Anchor) -> Stretch | None:
    if text in _DAYS:
        return spans.day(anchor.today + dt.timedelta(days=_DAYS[text]))
    for pattern, meant in _READERS:
        found = re.fullmatch(pattern, text)
        if found:
            return meant(found, anchor)
    return None


# --- times of day ----------------------------------------------------------------------------------------


def _read_time(text: str, anchor: Anchor) -> Stretch | None:
    if text == "tonight":
        return spans.part_of(spans.day(anchor.today), "evening")
    if text in {"now", "right now"}:
        return spans.moment(anchor.now)
    for pattern in _TIMED:
        found = re.fullmatch(pattern, text)
        if found is None:
            continue
        groups = found.groupdict()
        whole = _day_of(groups.get("when") or "", anchor)
        if whole is None:
            continue
        if groups.get("part"):
            read = spans.part_of(whole, "evening" if found["part"] == "night" else found["part"])
        else:
            read = _at(whole, found, anchor)
        return read and replace(read, has_day=bool(groups.get("when")))
    return None


def _day_of(text: str, anchor: Anchor) -> Stretch | None:
    if text in {"", "this", "tonight"}:
        return spans.day(anchor.today if text else anchor.default_day)
    return spans.numbered_day(text) or _read_days(text, anchor)


def _at(whole: Stretch, found: re.Match[str], anchor: Anchor) -> Stretch | None:
    if found["word"]:
        return spans.timed(whole, 12, 0, 0, "")
    half = (found["half"] or "").replace(".", "")
    hour, minute, second = int(found["hour"]), int(found["minute"] or 0), int(found["second"] or 0)
    if not half and found["minute"] is None:
        half = _half_around(found, anchor)
        if not half:
            return None  # "at 3" could be either
    if half and not 1 <= hour <= 12:
        return None
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    read = spans.timed(whole, hour, minute, second, "")
    part = {"am": "morning", "pm": "afternoon"}.get(half, "")
    return read and replace(read, part=part)


def _half_around(found: re.Match[str], anchor: Anchor) -> str:
    """Return the half of the day that the words around an hour say: "tonight at 8", "3 to 5pm"."""
    if found.groupdict().get("when") == "tonight":
        return "pm"
    part = anchor.beside.part if anchor.beside else ""
    return {"morning": "am", "afternoon": "pm"}.get(part, "")


_TIMED: Final = (
    rf"(?:at )?(?:{_CLOCK})",
    rf"(?P<when>.+?),? (?:at )?(?:{_CLOCK})",
    rf"(?:at )?(?:{_CLOCK}),? (?:on )?(?P<when>.+)",
    rf"(?:in the )?{_PART}",
    rf"(?P<when>.+?) (?:in the |at )?{_PART}",
)


# --- days, weeks, months, years --------------------------------------------------------------------------


def _weekday(found: re.Match[str], anchor: Anchor) -> Stretch | None:
    which = found["which"]
    weeks = None if which in {None, "this"} else _RELATIVE[which]
    return spans.weekday(anchor.default_day if weeks is None else anchor.today, _WEEKDAYS[found["day"]], weeks)


def _some(found: re.Match[str], anchor: Anchor) -> Stretch | None:
    offset, today = _RELATIVE[found["which"]], anchor.today
    match found["unit"]:
        case "week":
            return spans.week(today, offset)
        case "weekend":
            return spans.weekend(today, offset)
        case "month":
            return spans.month(today.year, today.month + offset)
        case "quarter":
            return spans.quarter(today.year, (today.month + 2) // 3 + offset)
        case _:
            return spans.year(today.year + offset)


def _month(found: re.Match[str], anchor: Anchor) -> Stretch | None:
    return spans.month(_year_in(found, anchor), MONTHS[found["month"]], has_year=bool(found["year"]))


def _month_day(found: re.Match[str], anchor: Anchor) -> Stretch | None:
    date = dt.date(_year_in(found, anchor), MONTHS[found["month"]], int(found["day"]))
    return spans.day(date, has_year=bool(found["year"]))


def _day_only(found: re.Match[str], anchor: Anchor) -> Stretch | None:
    """Return the day of a month that only the other end of the range names: "May 1 to 3"; of this one: "the 5th"."""
    if anchor.beside is None and found["ending"] and not found["year"]:
        return spans.day(anchor.today.replace(day=int(found["day"])), has_year=False)
    if anchor.beside is None or not anchor.beside.is_one_day:
        return None
    beside = anchor.beside.start
    date = dt.date(int(found["year"] or beside.year), beside.month, int(found["day"]))
    return spans.day(date, has_year=bool(found["year"]))


def _with_weekday(found: re.Match[str], anchor: Anchor) -> Stretch | None:
    """Return the day behind the name of its weekday, if it is one."""
    read = _read_days(found["rest"], anchor)
    return read if read and read.is_one_day and read.start.weekday() == _WEEKDAYS[found["day"]] else None


def _bare_weekend(found: re.Match[str], anchor: Anchor) -> Stretch | None:  # noqa: ARG001 - one signature for all
    return spans.weekend(anchor.default_day)


def _quarter(found: re.Match[str], anchor: Anchor) -> Stretch | None:
    groups = found.groupdict()
    number = int(groups["q"]) if groups.get("q") else _ORDINALS[groups["ordinal"]]
    kind = groups.get("kind") or groups.get("word") or "q"
    year, has_year = _year_in(found, anchor), bool(found["year"])
    if kind in {"h", "half"}:
        return spans.half_year(year, number, has_year=has_year) if number < 3 else None
    return spans.quarter(year, number, has_year=has_year)


def _year(found: re.Match[str], anchor: Anchor) -> Stretch | None:  # noqa: ARG001 - one signature for all
    return spans.year(int(found["year"]))


def _year_in(found: re.Match[str], anchor: Anchor) -> int:
    return int(found["year"]) if found["year"] else anchor.default_day.year


# --- counted from now ------------------------------------------------------------------------------------


def _window(found: re.Match[str], anchor: Anchor) -> Stretch | None:
    count = _count(found)
    return spans.window(
        anchor.now, count if found["where"] in {"next", "coming", "following"} else -count, found["unit"]
    )


def _ago(found: re.Match[str], anchor: Anchor) -> Stretch | None:
    return spans.shifted(anchor.now, -_count(found), found["unit"])


def _ahead(found: re.Match[str], anchor: Anchor) -> Stretch | None:
    return spans.shifted(anchor.now, _count(found), found["unit"])


def _count(found: re.Match[str]) -> int:
    return _NUMBERS.get(found["count"]) or int(found["count"])


_READERS: Final[tuple[tuple[str, Callable[[re.Match[str], Anchor], Stretch | None]], ...]] = (
    (rf"(?:on )?(?:{_WHICH} )?{_WEEKDAY_NAME}", _weekday),
    (r"(?:on )?(?:the )?weekend", _bare_weekend),
    (rf"{_WHICH} (?P<unit>weekend|week|month|quarter|year)", _some),
    (rf"(?:in )?{_MONTH}(?:,? (?:of )?{_YEAR})?", _month),
    (rf"(?:on )?{_MONTH} {_DAY}(?:,? {_YEAR})?", _month_day),
    (rf"(?:on )?(?:the )?{_DAY}(?: of)? {_MONTH}(?:,? {_YEAR})?", _month_day),
    (rf"(?:the )?{_DAY}(?:,? {_YEAR})?", _day_only),
    (rf"(?P<kind>[qh])(?P<q>[1-4])(?:[ ,]* ?{_YEAR})?", _quarter),
    (rf"{_YEAR} ?(?P<kind>[qh])(?P<q>[1-4])", _quarter),
    (rf"(?:the )?(?P<ordinal>{'|'.join(_ORDINALS)}) (?P<word>quarter|half)(?: of {_YEAR})?", _quarter),
    (rf"(?:in |the year ){_YEAR}", _year),
    (rf"(?:the |in the )?(?P<where>last|past|previous|next|coming|following) {_COUNT}", _window),
    (rf"{_WEEKDAY_NAME},? (?P<rest>.*\d.*)", _with_weekday),
    (rf"{_COUNT} ago", _ago),
    (rf"in {_COUNT}", _ahead),
    (rf"{_COUNT} (?:from now|later|from today|hence)", _ahead),
)
