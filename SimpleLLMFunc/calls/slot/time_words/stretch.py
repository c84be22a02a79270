"""A stretch of local time, and the same in a time zone."""

from __future__ import annotations

import calendar
import datetime as dt
from dataclasses import dataclass
from typing import Final

DAY: Final = dt.timedelta(days=1)


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
        return self.end - self.start == DAY and self.start.time() == dt.time()


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time in a zone."""

    stretch: Stretch
    zone: dt.tzinfo

    @property
    def is_moment(self) -> bool:
        """Whether it is one instant."""
        return self.stretch.start == self.stretch.end

    @property
    def first_day(self) -> str:
        """The day it begins, as YYYY-MM-DD."""
        return self.stretch.start.date().isoformat()

    @property
    def last_day(self) -> str:
        """The last day of which some is in it, as YYYY-MM-DD."""
        return self._last.date().isoformat()

    @property
    def first_second(self) -> int:
        """The second it begins, from 1970 in UTC."""
        return int(self.stretch.start.replace(tzinfo=self.zone).timestamp())

    @property
    def last_second(self) -> int:
        """The last second in it, from 1970 in UTC."""
        return int(self._last.replace(tzinfo=self.zone).timestamp())

    @property
    def moment(self) -> str:
        """The instant it begins, with its offset from UTC."""
        return self.stretch.start.replace(tzinfo=self.zone).isoformat()

    @property
    def _last(self) -> dt.datetime:
        return self.stretch.start if self.is_moment else self.stretch.end - dt.timedelta(seconds=1)


def days(first: dt.date, last: dt.date, *, has_year: bool = True) -> Stretch:
    """Return the stretch from the first day to the last, both in it."""
    start, end = (dt.datetime.combine(date, dt.time()) for date in (first, last))
    return Stretch(start, end + DAY, has_year)


def months(year: int, number: int, count: int = 1, *, has_year: bool = True) -> Stretch:
    """Return some months; the number of the first may lie outside 1 to 12 and then counts into other years."""
    (year, month), (last_year, last) = (divmod(12 * year + each - 1, 12) for each in (number, number + count - 1))
    end = dt.date(last_year, last + 1, calendar.monthrange(last_year, last + 1)[1])
    return days(dt.date(year, month + 1, 1), end, has_year=has_year)


def moment(instant: dt.datetime) -> Stretch:
    """Return an instant, to the second."""
    instant = instant.replace(microsecond=0)
    return Stretch(instant, instant)
