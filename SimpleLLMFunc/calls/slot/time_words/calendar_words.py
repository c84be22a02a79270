"""Chinese and English words about time → a start and an end in a time zone.

A narrow reader of our own: of the libraries that are kept, dateparser reads points in time only and little Chinese,
and jionlp reads Chinese only. Numbers in words become digits first, then a table of patterns for both languages says what
is meant; every word of a text must be understood, else nothing is read. What it reads:

* digits: 2024-05-01, 2024/5/1, 20240501, 2024-05, 2024, with a time (and a zone) behind the day;
* days, weeks (from Monday), weekends, months, quarters and years, named or counted from now: 后天, 下周一, last month,
  Q1 2024, May 1st; weekdays with 下/next or 上/last are those of that week, alone the next ones;
* 三天后, in two weeks, 最近7天 and "the last 7 days" (with today), 未来三天 and "the next 3 days" (from tomorrow);
* a time or a part of the day behind any of these: 明天下午三点, tomorrow at 3pm; without 上午/下午 an hour is one of 24;
* two of them as a range: 5月1日到3日, from May 1 to May 3; what the second end leaves open is as in the first.

What names no year is of this year, what names no month of this month. It does not read: feasts and lunar dates, vague
words (月底, 年初, soon, 三天内, 两三天后), an hour in English that does not say which half of the day (at 3), midnight, day and month
both as bare numbers (05/01), numbers beyond the hundreds in characters, a range that goes over the end of a year.
"""

from __future__ import annotations

import calendar
import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from SimpleLLMFunc.base.parsing.alignment import MONTHS
from SimpleLLMFunc.calls.slot.time_words.vocabulary import (
    BETWEEN,
    DAYS,
    HOURS,
    INSTANT,
    OPENING,
    PARTS,
    RELATIVE,
    RULES,
    TIMES,
    UNITS,
    WEEKDAYS,
    YEARS,
    plain_words,
)
from SimpleLLMFunc.calls.zone import zone_of

DAY: Final = dt.timedelta(days=1)
_LONGEST: Final = 80
_YEAR: Final = re.compile("[0-9]{4}|年")


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


class Calendar:
    """Reads words about time in one zone, independent of the host's own.

    Raises:
        CallError: there is no such zone.
    """

    def __init__(self, time_zone: str, now: dt.datetime | Callable[[], dt.datetime] | None = None) -> None:
        self._zone = zone_of(time_zone)
        self._now = now

    def read(self, text: str) -> Span | None:
        """Return what the words mean; None where that is not certain."""
        words = plain_words(text) if len(text) <= _LONGEST else ""
        if not words:
            return None
        now = self._now() if callable(self._now) else self._now or dt.datetime.now(self._zone)
        local = now if now.tzinfo is None else now.astimezone(self._zone).replace(tzinfo=None)
        reader = _Reader(local, self._zone)
        stretch = reader.one(words) or reader.range(words)
        if stretch is None:
            return None
        last = stretch.end if stretch.end == stretch.start else stretch.end - dt.timedelta(seconds=1)
        return Span(stretch.start.replace(tzinfo=self._zone), last.replace(tzinfo=self._zone))


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads words at one moment of local time."""

    now: dt.datetime
    zone: dt.tzinfo

    def one(self, words: str, other: Stretch | None = None) -> Stretch | None:
        """Return what words mean that are no range; `other` is the other end of one, which lends year, month and day."""
        try:
            return self._instant(words) or self._days_of(words, other) or self._time(words, other)
        except (ValueError, OverflowError):
            return None

    def _instant(self, words: str) -> Stretch | None:
        found = INSTANT.fullmatch(words)
        if found is None:
            return None
        instant = dt.datetime(*(int(part or 0) for part in found.groups()[:6]))  # type: ignore[arg-type] # noqa: DTZ001
        if found[7]:
            offset = "+00:00" if found[7] in {"z", "utc"} else found[7]
            aware = dt.datetime.fromisoformat(f"{instant.isoformat()}{offset}")
            instant = aware.astimezone(self.zone).replace(tzinfo=None)
        return Stretch(instant, instant)

    # --- days, weeks, months, years ---

    def _days_of(self, words: str, other: Stretch | None, *, may_be_short: bool = False) -> Stretch | None:
        for pattern, meaning in RULES:
            found = pattern.fullmatch(words)
            if found is not None and (meaning != "day" or len(words) > 1 or may_be_short):
                said = {name.rstrip("2"): part for name, part in found.groupdict().items() if part is not None}
                return self._meant(meaning, words, said, other)
        return None

    def _meant(self, meaning: str, words: str, said: dict[str, str], other: Stretch | None) -> Stretch | None:
        today = self.now.date()
        default = other.start.date() if other is not None else today
        offset = RELATIVE.get(said.get("which", ""))
        match meaning:
            case "day":
                day = today + DAYS[words] * DAY
                return days(day, day)
            case "now":
                return moment(self.now)
            case "weekday":
                number = WEEKDAYS[said["weekday"]]
                if offset is None or said["which"] == "this":
                    day = default + (number - default.weekday()) % 7 * DAY
                else:
                    day = today + (number - today.weekday() + 7 * offset) * DAY
                return days(day, day)
            case "checked":
                read = self._days_of(said["rest"].rstrip(",( "), other)
                fits = read and read.is_one_day and read.start.weekday() == WEEKDAYS[said["weekday"]]
                return read if fits else None
            case "unit":
                return self._unit(said["unit"], offset, today, default)
            case "window" | "shift":
                return self._counted(meaning, said)
        return self._numbered(said, offset, today, default)

    def _unit(self, word: str, offset: int | None, today: dt.date, default: dt.date) -> Stretch | None:
        unit = UNITS.get(word.replace("星期", "周").replace("礼拜", "周"), word)
        if unit == "weekend":
            saturday = default if offset is None else today + 7 * offset * DAY
            saturday += (5 - saturday.weekday()) * DAY
            return days(saturday, saturday + DAY)
        if offset is None:
            return None
        match unit:
            case "week":
                monday = today + (7 * offset - today.weekday()) * DAY
                return days(monday, monday + 6 * DAY)
            case "month":
                return months(today.year, today.month + offset)
            case "quarter":
                return months(today.year, (today.month - 1) // 3 * 3 + 1 + 3 * offset, 3)
        return months(today.year + offset, 1, 12)

    def _counted(self, meaning: str, said: dict[str, str]) -> Stretch | None:
        unit, count = UNITS.get(said["unit"], said["unit"]), int(said["count"])
        count = -count if "past" in said else count
        today = self.now.date()
        if unit in {"hour", "minute"}:
            # Counted in UTC: the clocks may change in between.
            then = self.now.replace(tzinfo=self.zone).astimezone(dt.UTC) + dt.timedelta(**{f"{unit}s": count})
            return moment(then.astimezone(self.zone).replace(tzinfo=None)) if meaning == "shift" else None
        if unit in {"day", "week"}:
            day = today + (count * (7 if unit == "week" else 1)) * DAY
        else:
            month = months(today.year, today.month + count * (12 if unit == "year" else 1))
            day = month.start.date().replace(day=min(today.day, (month.end - DAY).day))
        if meaning == "shift":
            return days(day, day)
        if not count:
            return None
        return days(day + DAY, today) if count < 0 else days(today + DAY, day)

    def _numbered(self, said: dict[str, str], offset: int | None, today: dt.date, default: dt.date) -> Stretch | None:
        year = int(said["year"]) if "year" in said else default.year
        if "which_year" in said:
            year = today.year + YEARS[said["which_year"]]
        if quarter := said.get("quarter") or said.get("q"):
            return months(year, 3 * int(quarter) - 2, 3)
        month = MONTHS[said["name"]] if "name" in said else int(said.get("month", default.month))
        if offset is not None:
            year, month = divmod(12 * today.year + today.month - 1 + offset, 12)
            month += 1
        elif not said.keys() & {"month", "name", "day"}:
            return months(year, 1, 12)
        if "day" in said:
            day = dt.date(year, month, int(said["day"]))
            return days(day, day)
        return months(year, month) if 1 <= month <= 12 else None

    # --- times of day ---

    def _time(self, words: str, other: Stretch | None) -> Stretch | None:
        for pattern in TIMES:
            found = pattern.fullmatch(words)
            said = {} if found is None else {n.rstrip("2"): part for n, part in found.groupdict().items() if part}
            if not said.keys() & {"hour", "part", "noon"}:
                continue
            whole = self._day_of(said.get("when", ""), other, has_part="part" in said)
            if whole is None or not whole.is_one_day:
                continue
            part = PARTS.get(said.get("part", ""), "")
            if "hour" in said or "noon" in said:
                read = self._at(whole, said, part, other, is_chinese=pattern is TIMES[0])
            else:
                first, last = (whole.start + dt.timedelta(hours=hour) for hour in HOURS[part])
                read = Stretch(first, last, part)
            return read and replace(read, has_day="when" in said)
        return None

    def _day_of(self, words: str, other: Stretch | None, *, has_part: bool) -> Stretch | None:
        if words in {"this", "tonight"} or not words:
            day = self.now.date() if other is None or words else other.start.date()
            return days(day, day)
        return self._days_of(words, other, may_be_short=has_part)

    def _at(
        self, whole: Stretch, said: dict[str, str], part: str, other: Stretch | None, *, is_chinese: bool
    ) -> Stretch | None:
        """Return a time of a day; None where there is no such time in that part of it."""
        hour, minute, second = (int(said.get(name, 0)) for name in ("hour", "minute", "second"))
        minute = 30 if "half" in said else 15 * int(said["quarters"]) if "quarters" in said else minute
        if "noon" in said:
            return _clock(whole, 12, minute, second, part)
        if is_chinese:
            read = _clock(whole, _in_part(hour, part), minute, second, part)
            if part or "when" in said or other is None or not other.part or (read and read.start >= other.start):
                return read
            return _clock(whole, _in_part(hour, other.part), minute, second, other.part)  # 下午三点到五点
        half = said.get("ampm", "").replace(".", "")
        if half and not 1 <= hour <= 12:
            return None
        if not half:  # "at 3" may be either
            return _clock(whole, hour, minute, second, "") if "minute" in said else None
        return _clock(whole, hour % 12 + (12 if half == "pm" else 0), minute, second, "")

    # --- ranges ---

    def range(self, words: str) -> Stretch | None:
        """Return the stretch between two ends; None if there are no two ends, or several ways to read them."""
        opening = OPENING.match(words)
        body = words[opening.end() :].removesuffix("之间") if opening else words
        if opening and opening[0] == "between ":
            body = body.replace(" and ", " to ")
        splits = [(body[: each.start()], body[each.end() :]) for each in BETWEEN.finditer(body)]
        found = [read for left, right in splits if (read := self._from_to(left, right)) is not None]
        return found[0] if found and all(read == found[0] for read in found) else None

    def _from_to(self, left: str, right: str) -> Stretch | None:
        # 5月1-3日 says the unit once for both ends.
        first = self.one(left) or (self.one(left + right[-1]) if right[-1:] in set("日号月点时") else None)
        second = self.one(right, first)
        if first is None or second is None:
            return None
        if (second.has_day and not first.has_day) or (_YEAR.search(right) and not _YEAR.search(left)):
            return None  # "3pm to 5pm tomorrow", "May 1 to May 3, 2024": the first end may be of another day or year
        if first.start > second.start:
            return None
        end = max(first.end, second.end)
        return Stretch(first.start, end) if end > first.start else None


def _in_part(hour: int, part: str) -> int:
    """Return the hour of 24 for an hour in a part of the day; -1 if that part does not have it.

    3 in the afternoon is 15, 12 at night the midnight that follows; without a part it is one of 24 already.
    """
    if not part or (hour > 12 and part not in {"dawn", "morning"}):
        return hour
    if hour > 12 or (part == "evening" and hour < 5):
        return -1
    if part in {"dawn", "morning"}:
        return 0 if hour == 12 and part == "dawn" else hour
    if part == "noon":
        return hour + 12 if hour < 3 else hour if hour > 10 else -1
    return hour + 12 if hour < 12 or part == "evening" else hour


def _clock(whole: Stretch, hour: int, minute: int, second: int, part: str) -> Stretch | None:
    if not 0 <= hour <= 24 or minute > 59 or second > 59 or (hour == 24 and (minute or second)):
        return None
    start = whole.start + dt.timedelta(hours=hour, minutes=minute, seconds=second)
    return Stretch(start, start, part)


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
