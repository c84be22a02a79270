"""Days as people say them, in Chinese and English: 明天, 下周六, tomorrow, next Saturday, 3 天后, 2026-11-25."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from datetime import date, timedelta
from typing import Final

__all__ = ["read_days"]

MOST_DAYS: Final = 16

_OFFSETS: Final = {
    0: "今天 今日 今儿 现在 当前 目前 今早 今晚 此刻 today now tonight currently current",
    1: "明天 明日 明儿 明早 明晚 tomorrow",
    2: "后天 後天 后日",
    3: "大后天",
    -1: "昨天 昨日 昨晚 yesterday",
    -2: "前天 前日",
    -3: "大前天",
}
_DAYS_AWAY: Final = {word: offset for offset, words in _OFFSETS.items() for word in words.split()} | {
    "": 0,
    "right now": 0,
    "this evening": 0,
    "this morning": 0,
    "this afternoon": 0,
    "tomorrow morning": 1,
    "tomorrow night": 1,
    "tomorrow evening": 1,
    "tomorrow afternoon": 1,
    "day after tomorrow": 2,
    "day before yesterday": -2,
}

_CHINESE_DIGITS: Final = {character: number for number, character in enumerate("零一二三四五六七八九十")} | {"两": 2}
_CHINESE_WEEKDAYS: Final = {character: number for number, character in enumerate("一二三四五六")} | {"日": 6, "天": 6}
_WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_WEEKDAY: Final = "mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun"
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEK_SHIFT: Final = {
    "上上": -2,
    "上": -1,
    "last": -1,
    "下": 1,
    "next": 1,
    "下下": 2,
    "本": 0,
    "这": 0,
    "": 0,
    "this": 0,
}
_NUMBER = r"(?P<count>\d{1,3}|[一二两三四五六七八九十]{1,3}|one|two|three|four|five|six|seven|ten)"
_WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "ten": 10}
_MONTH = r"(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_YEAR = r"(?:\s*,?\s+(?P<year>\d{4}))?"


def read_days(text: str, today: date) -> list[date]:
    """Return the days that a text means, in order; no text means today.

    A weekday alone is the next one that comes, today included; "下周六" and "next Saturday" are the Saturday of the week
    that begins next Monday. A date without a year is the nearest one.

    Raises:
        ValueError: it names no day.
    """
    said = _plain(text)
    if said in _DAYS_AWAY:
        return [today + timedelta(_DAYS_AWAY[said])]
    for pattern, read in _FORMS:
        match = pattern.fullmatch(said)
        if match is None:
            continue
        try:
            days = read(match, today)
        except OverflowError:
            break
        if days:
            return days[:MOST_DAYS]
    raise ValueError(f"{text[:60]!r} names no day")


def _plain(text: str) -> str:
    said = " ".join(unicodedata.normalize("NFKC", text[:100]).lower().split()).strip(" .,。，?!？！")
    said = re.sub(r"^(?:on|for|the weather|weather|the)\s+|(?:的)?(?:天气|天氣|气温)(?:预报)?$|\s+weather$", "", said)
    said = re.sub(r"^the\s+", "", said)
    return said.strip()


# --- the forms -----------------------------------------------------------------------------------------------


def _count(text: str) -> int:
    if text.isdigit():
        return int(text)
    if text in _WORDS:
        return _WORDS[text]
    tens, found, ones = text.partition("十")
    if not found:
        return _CHINESE_DIGITS[text] if len(text) == 1 else 0
    return _CHINESE_DIGITS.get(tens, 1 if not tens else 0) * 10 + (_CHINESE_DIGITS.get(ones, 0) if ones else 0)


def _week(shift: int, today: date) -> date:
    """Return the Monday of this week, or of one before or after it."""
    return today - timedelta(today.weekday()) + timedelta(weeks=shift)


def _days(first: date, count: int) -> list[date]:
    return [first + timedelta(number) for number in range(min(count, MOST_DAYS))]


def _weekday(match: re.Match[str], today: date) -> list[date]:
    name = match["day"]
    number = _CHINESE_WEEKDAYS[name] if name in _CHINESE_WEEKDAYS else _WEEKDAYS.index(name[:3])
    which = match["which"] or ""
    if which in {"", "this", "coming", "upcoming"}:
        return [today + timedelta((number - today.weekday()) % 7)]
    return [_week(_WEEK_SHIFT[which], today) + timedelta(number)]


def _weekend(match: re.Match[str], today: date) -> list[date]:
    shift = _WEEK_SHIFT[match["which"] or ""]
    saturday = _week(shift, today) + timedelta(5)
    return [day for day in _days(saturday, 2) if shift or day >= today]


def _whole_week(match: re.Match[str], today: date) -> list[date]:
    shift = _WEEK_SHIFT[match["which"] or ""]
    return _days(_week(shift, today), 7) if shift else _days(today, 7 - today.weekday())


def _in_days(match: re.Match[str], today: date) -> list[date]:
    return [today + timedelta(_count(match["count"]) * (7 if match["unit"] else 1))]


def _next_days(match: re.Match[str], today: date) -> list[date]:
    return _days(today, _count(match["count"]))


def _numbered(match: re.Match[str], today: date) -> list[date]:
    named = match.groupdict()
    month = named.get("month")
    number = today.month if month is None else _MONTHS.index(month) + 1 if month.isalpha() else int(month)
    return _dated(named.get("year"), number if month else None, int(match["day"]), today)


def _dated(year: str | None, month: int | None, day: int, today: date) -> list[date]:
    """Return the day; where the year or the month is not said, the nearest, for a day alone the next."""
    if year is not None:
        return _valid(int(year), month or today.month, day)
    if month is not None:
        found = [day_ for shift in (-1, 0, 1) for day_ in _valid(today.year + shift, month, day)]
        return sorted(found, key=lambda each: abs(each - today))[:1]
    later = today.replace(day=1) + timedelta(32)
    found = _valid(today.year, today.month, day) + _valid(later.year, later.month, day)
    return [each for each in found if each >= today][:1]


def _valid(year: int, month: int, day: int) -> list[date]:
    try:
        return [date(year, month, day)]
    except ValueError:
        return []


_FORMS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str], date], list[date]]], ...]] = tuple(
    (re.compile(pattern), read)
    for pattern, read in (
        (r"(?P<which>上上|上|下下|下|本|这)?个?(?:周|星期|礼拜)(?P<day>[一二三四五六日天])", _weekday),
        (rf"(?P<which>this|next|last|coming|upcoming)?\s*(?P<day>{_WEEKDAY})(?:day)?", _weekday),
        (r"(?P<which>上|下下|下|本|这)?个?周末", _weekend),
        (r"(?P<which>this|next|last)?\s*weekend", _weekend),
        (r"(?P<which>上|下下|下|本|这)个?(?:周|星期|礼拜)", _whole_week),
        (r"(?P<which>this|next|last) week", _whole_week),
        (_NUMBER + r"\s*(?:天|日)(?:之后|以后|后)(?P<unit>)", _in_days),
        (_NUMBER + r"\s*个?(?P<unit>周|星期|礼拜)(?:之后|以后|后)", _in_days),
        (r"in " + _NUMBER + r" days?(?P<unit>)", _in_days),
        (_NUMBER + r" days? (?:from now|later)(?P<unit>)", _in_days),
        (r"in " + _NUMBER + r" (?P<unit>weeks?)", _in_days),
        (r"(?:未来|接下来|今后|最近|近)?的?" + _NUMBER + r"\s*(?:天|日)(?:内|里)?", _next_days),
        (r"(?:the )?(?:next|coming) " + _NUMBER + r" days?", _next_days),
        (r"(?:未来|接下来)?(?P<which>)一个?(?:周|星期|礼拜)", lambda _match, today: _days(today, 7)),
        (r"(?P<year>\d{4})\s*[-/.年]\s*(?P<month>\d{1,2})\s*[-/.月]\s*(?P<day>\d{1,2})\s*[日号]?", _numbered),
        (r"(?P<month>\d{1,2})\s*[-/月]\s*(?P<day>\d{1,2})\s*[日号]?", _numbered),
        (r"(?P<day>\d{1,2})\s*[日号]", _numbered),
        (_MONTH + r"\s*(?P<day>\d{1,2})(?:st|nd|rd|th)?" + _YEAR, _numbered),
        (r"(?P<day>\d{1,2})(?:st|nd|rd|th)?\s*(?:of\s+)?" + _MONTH + _YEAR, _numbered),
    )
)
