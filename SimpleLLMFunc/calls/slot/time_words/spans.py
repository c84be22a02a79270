"""Stretches of local time: days, weeks, months, quarters, and what words make of them."""

from __future__ import annotations

import calendar
import datetime as dt
import re
from dataclasses import dataclass, replace
from typing import Final

__all__ = [
    "DAY_PARTS",
    "Anchor",
    "Stretch",
    "day",
    "days",
    "half_year",
    "moment",
    "month",
    "numbered_day",
    "part_of",
    "quarter",
    "shifted",
    "timed",
    "week",
    "weekday",
    "weekend",
    "window",
    "year",
]

_DAY: Final = dt.timedelta(days=1)
_NUMBERED: Final = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})|(\d{4})(\d{2})(\d{2})")
_EVENING: Final = 5
"""The first hour that may be called one of the evening."""

DAY_PARTS: Final = {
    "before dawn": (0, 6),
    "morning": (6, 12),
    "noon": (11, 13),
    "afternoon": (12, 18),
    "evening": (18, 24),
}
"""Hours from and to; a noon with an hour is the hours around it."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of local time.

    Attributes:
        start, end: naive; the end is the first instant behind it. A moment begins where it ends.
        has_year: the words named the year, or counted from today; else the year was taken from around them.
        part: the part of the day that the words named.
        has_day: the words named the day, or more of them; else it was taken from around them.
    """

    start: dt.datetime
    end: dt.datetime
    has_year: bool = True
    part: str = ""
    has_day: bool = True

    @property
    def is_one_day(self) -> bool:
        """Whether it is exactly one day."""
        return self.end - self.start == _DAY and self.start.time() == dt.time()


@dataclass(frozen=True, slots=True)
class Anchor:
    """What words are counted from.

    Attributes:
        now: naive local time.
        beside: the other end of a range, which lends its year, month and day.
    """

    now: dt.datetime
    beside: Stretch | None = None

    @property
    def today(self) -> dt.date:
        """The day it is."""
        return self.now.date()

    @property
    def default_day(self) -> dt.date:
        """The day that words without one are about."""
        return self.now.date() if self.beside is None else self.beside.start.date()


def day(date: dt.date, *, has_year: bool = True) -> Stretch:
    """Return one day."""
    start = dt.datetime.combine(date, dt.time())
    return Stretch(start, start + _DAY, has_year)


def numbered_day(text: str) -> Stretch | None:
    """Return the day that is written in digits, the year first; None where none is.

    Raises:
        ValueError: there is no such day.
    """
    found = _NUMBERED.fullmatch(text)
    if found is None:
        return None
    year_, _, month_, day_ = found.groups()[:4] if found[1] else (found[5], "", found[6], found[7])
    return day(dt.date(int(year_), int(month_), int(day_)))


def days(first: dt.date, last: dt.date) -> Stretch:
    """Return the days from the first to the last, both in it."""
    return Stretch(day(first).start, day(last).end)


def week(date: dt.date, weeks: int = 0) -> Stretch:
    """Return the week (Monday to Sunday) of a day, or one some weeks from it."""
    monday = date - dt.timedelta(days=date.weekday()) + dt.timedelta(weeks=weeks)
    return days(monday, monday + dt.timedelta(days=6))


def weekday(date: dt.date, number: int, weeks: int | None = None) -> Stretch:
    """Return a weekday (0 is Monday) of a week counted from that of the day; without weeks the next one, or that day."""
    if weeks is None:
        return day(date + dt.timedelta(days=(number - date.weekday()) % 7))
    return day(week(date, weeks).start.date() + dt.timedelta(days=number))


def weekend(date: dt.date, weeks: int = 0) -> Stretch:
    """Return Saturday and Sunday of the week of a day, or of one some weeks from it."""
    monday = week(date, weeks).start.date()
    return days(monday + dt.timedelta(days=5), monday + dt.timedelta(days=6))


def month(year_number: int, number: int, *, has_year: bool = True) -> Stretch:
    """Return a month; its number may lie outside 1 to 12 and then counts into other years."""
    year_number, number = year_number + (number - 1) // 12, (number - 1) % 12 + 1
    last = calendar.monthrange(year_number, number)[1]
    return replace(
        days(dt.date(year_number, number, 1), dt.date(year_number, number, last)),
        has_year=has_year,
    )


def quarter(year_number: int, number: int, *, has_year: bool = True) -> Stretch:
    """Return a quarter; its number may lie outside 1 to 4 and then counts into other years."""
    first = month(year_number, 3 * number - 2)
    return Stretch(first.start, month(year_number, 3 * number).end, has_year)


def half_year(year_number: int, number: int, *, has_year: bool = True) -> Stretch:
    """Return the first or second half of a year."""
    return Stretch(month(year_number, 6 * number - 5).start, month(year_number, 6 * number).end, has_year)


def year(number: int) -> Stretch:
    """Return a year."""
    return days(dt.date(number, 1, 1), dt.date(number, 12, 31))


def moment(instant: dt.datetime, *, has_year: bool = True, part: str = "") -> Stretch:
    """Return an instant, to the second."""
    instant = instant.replace(microsecond=0)
    return Stretch(instant, instant, has_year, part)


def part_of(whole: Stretch, part: str) -> Stretch | None:
    """Return a part of a day, None where it is no day."""
    if not whole.is_one_day:
        return None
    first, last = DAY_PARTS[part]
    start = whole.start
    return Stretch(start + dt.timedelta(hours=first), start + dt.timedelta(hours=last), whole.has_year, part)


def timed(whole: Stretch, hour: int, minute: int, second: int, part: str) -> Stretch | None:
    """Return a time of a day; None where it is no day, or there is no such time in that part of it.

    Args:
        whole: the day.
        hour: as it was said: 3 in the afternoon is 15, 12 at night the midnight that follows.
        minute: of the hour.
        second: of the minute.
        part: a name of `DAY_PARTS`; without one the hour is one of 24.
    """
    if not whole.is_one_day or minute > 59 or second > 59 or hour > 24 or (hour == 24 and (minute or second)):
        return None
    if part and hour <= 12:
        if part in {"before dawn", "morning"}:
            hour = 0 if hour == 12 and part == "before dawn" else hour
        elif part == "noon":
            hour += 12 if hour < 3 else 0
        elif part == "afternoon":
            hour += 12 if hour < 12 else 0
        elif hour < _EVENING:
            return None
        else:
            hour = 24 if hour == 12 else hour + 12
    elif part in {"before dawn", "morning"}:
        return None
    start = whole.start + dt.timedelta(hours=hour, minutes=minute, seconds=second)
    return moment(start, has_year=whole.has_year, part=part)


def shifted(now: dt.datetime, count: int, unit: str) -> Stretch | None:
    """Return the day or the moment that is some units from now; the last of a month where the other has no such day."""
    match unit:
        case "day":
            return day(now.date() + dt.timedelta(days=count))
        case "week":
            return day(now.date() + dt.timedelta(weeks=count))
        case "month" | "year":
            return day(_months_from(now.date(), count * (12 if unit == "year" else 1)))
        case "hour":
            return moment(now + dt.timedelta(hours=count))
        case "minute":
            return moment(now + dt.timedelta(minutes=count))
        case _:
            return None


def window(now: dt.datetime, count: int, unit: str) -> Stretch | None:
    """Return the last units up to today (a negative count), or the next ones from tomorrow; hours run from now."""
    if not count:
        return None
    other = shifted(now, count, unit)
    if other is None:
        return None
    if unit in {"hour", "minute"}:
        here = moment(now).start
        return Stretch(min(here, other.start), max(here, other.start))
    if count < 0:
        return days(other.start.date() + _DAY, now.date())
    return days(now.date() + _DAY, other.start.date())


def _months_from(date: dt.date, count: int) -> dt.date:
    target = month(date.year, date.month + count)
    last = target.end - _DAY
    return target.start.date().replace(day=min(date.day, last.day))
