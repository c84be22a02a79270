"""Days as people ask for a forecast: 明天, 下周六, tomorrow, next Saturday, 3 天后, 2026-11-25.

The words are read by the calendar of a `Slot`; what is particular to a forecast is that it looks ahead: of this week
only the days that are still to come are meant, "the next three days" begin today, and a day without a month or a year
is the next or the nearest one.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import date, datetime, time, timedelta
from typing import Final, TypeAlias

from SimpleLLMFunc.calls.slot.time_words import Calendar, Stretch

Days: TypeAlias = tuple[date, date]
"""The first and the last of some days."""

MOST_DAYS: Final = 16
_LONGEST: Final = 31
"""Days of the longest stretch that is one of days: a month, and no year."""

_NOW: Final = frozenset(["", "现在", "当前", "目前", "此刻", "now", "right now", "currently", "current"])
_SPOKEN: Final = {"今儿": "今天", "明儿": "明天", "后日": "后天", "前日": "前天"}
_ABOUT: Final = re.compile(
    r"^(?:on|for|the weather|weather|the)\s+|(?:的)?(?:天气|天氣|气温)(?:预报)?$|\s+weather$|^(?:up)?coming\s+(?=[a-z])"
)
_NUMBER: Final = r"(?P<count>\d{1,3}|[一二两三四五六七八九十]{1,3}|[a-z]{3,5})"
_AHEAD: Final = (
    re.compile(rf"(?:未来|接下来|今后|最近|近)?的?{_NUMBER}\s*(?P<unit>天|个?(?:周|星期|礼拜))(?:之内|以内|内|里)?"),
    # Without a word before it, "30日" is the thirtieth.
    re.compile(rf"(?:未来|接下来|今后|最近|近)的?{_NUMBER}\s*(?P<unit>日)(?:之内|以内|内|里)?"),
    re.compile(rf"(?:next|coming) {_NUMBER} (?P<unit>days?|weeks?)"),
)
_PAST: Final = re.compile(r"过去|past |last ")
_MONTH_AND_DAY: Final = re.compile(r"(\d{1,2})\s*[-/月]\s*(\d{1,2})")


def read_days(text: str, today: date) -> list[date]:
    """Return the days that a text means, in order; no text means today.

    A weekday alone is the next one that comes, today included; "下周六" and "next Saturday" are the Saturday of the week
    that begins next Monday. A date without a year is the nearest one, a day without a month the next.

    Raises:
        ValueError: it names no day.
    """
    said = _plain(text)
    if said in _NOW:
        return [today]
    stretch = _ahead(said, today) or _meant(said, today)
    if stretch is None or (count := (stretch[1] - stretch[0]).days + 1) > _LONGEST:
        raise ValueError(f"{text[:60]!r} names no day")
    return [stretch[0] + timedelta(number) for number in range(min(count, MOST_DAYS))]


def _plain(text: str) -> str:
    said = " ".join(unicodedata.normalize("NFKC", text[:100]).lower().split()).strip(" .,。，?!？！")
    said = re.sub(r"^the\s+", "", _ABOUT.sub("", said)).strip()
    said = re.sub(r"(?<=\d)\s*([-/.])\s*(?=\d)", r"\1", said)
    if found := _MONTH_AND_DAY.fullmatch(said):
        return f"{found[1]}月{found[2]}日"
    return _SPOKEN.get(said, said)


def _ahead(said: str, today: date) -> Days | None:
    """Return a number of days from today on; None where the words do not say so."""
    found = next((found for pattern in _AHEAD if (found := pattern.fullmatch(said))), None)
    if found is None:
        return None
    count, unit = found["count"], found["unit"]
    span = _read(f"next {count} {unit}" if said.isascii() else f"未来{count}{unit}", today)
    if span is None:
        return None
    first, last = span
    return today, today + (last - first)


def _meant(said: str, today: date) -> Days | None:
    """Return the first and the last day of what words name; of a week that has begun, only what is left of it."""
    found = _nearest(said, today)
    if found is None:
        return None
    first, last = found
    return (today if first < today <= last and not _PAST.match(said) else first), last


def _nearest(said: str, today: date) -> Days | None:
    """Return what words name; where they leave the year or the month open, the one that is meant."""
    here = _stretch(said, today)
    if here is not None and here.has_year:
        return _days(here)
    month = today.replace(day=1)
    later = _stretch(said, month + timedelta(32))
    if later is None or later.has_year:
        return None if here is None else _days(here)
    if here is None or here.start.month != later.start.month:  # a day alone: the next one
        return _days(here if here is not None and here.start.date() >= today else later)
    others = [_stretch(said, month.replace(year=month.year + shift)) for shift in (-1, 1)]
    named = [here, *(stretch for stretch in others if stretch is not None)]
    return _days(min(named, key=lambda stretch: abs(stretch.start.date() - today)))


def _read(said: str, today: date) -> Days | None:
    stretch = _stretch(said, today)
    return None if stretch is None else _days(stretch)


def _stretch(said: str, today: date) -> Stretch | None:
    span = Calendar("UTC", datetime.combine(today, time())).read(said)
    return None if span is None else span.stretch


def _days(stretch: Stretch) -> Days:
    first = stretch.start.date()
    return first, max(first, (stretch.end - timedelta(microseconds=1)).date())
