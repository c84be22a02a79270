"""Stretches of time: as words name them, and in a time zone."""

from __future__ import annotations

import calendar
import datetime as dt
from dataclasses import dataclass
from typing import Final, NamedTuple

DAY: Final = dt.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of local time.

    Attributes:
        start, end: naive; the end is the first instant behind it. A moment begins where it ends.
        part: the part of the day that the words named.
        has_day: the words named the day, or more of them; else it was taken from around them.
    """

    start: dt.datetime
    end: dt.datetime
    part: str = ""
    has_day: bool = True

    @property
    def is_one_day(self) -> bool:
        """Whether it is exactly one day."""
        return self.end - self.start == DAY and self.start.time() == dt.time()


class Span(NamedTuple):
    """A stretch of time: its first and its last second. Both are the same for one moment."""

    start: dt.datetime
    last: dt.datetime

    @property
    def days(self) -> tuple[str, str]:
        """The first and the last day, as YYYY-MM-DD."""
        return self.start.date().isoformat(), self.last.date().isoformat()

    @property
    def seconds(self) -> tuple[int, int]:
        """The first and the last second, counted from 1970 in UTC."""
        return int(self.start.timestamp()), int(self.last.timestamp())


def days(first: dt.date, last: dt.date) -> Stretch:
    """Return the stretch from the first day to the last, both in it."""
    start, end = (dt.datetime.combine(date, dt.time()) for date in (first, last))
    return Stretch(start, end + DAY)


def months(year: int, number: int, count: int = 1) -> Stretch:
    """Return some months; the number of the first may lie outside 1 to 12 and then counts into other years."""
    (year, month), (last_year, last) = (divmod(12 * year + each - 1, 12) for each in (number, number + count - 1))
    end = dt.date(last_year, last + 1, calendar.monthrange(last_year, last + 1)[1])
    return days(dt.date(year, month + 1, 1), end)


def moment(instant: dt.datetime) -> Stretch:
    """Return an instant, to the second."""
    instant = instant.replace(microsecond=0)
    return Stretch(instant, instant)
