"""Chinese words about time."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from SimpleLLMFunc.calls.slot.time_words import spans
from SimpleLLMFunc.calls.slot.time_words.spans import Anchor, Stretch

__all__ = ["read_chinese"]

_DIGITS: Final = {
    char: number
    for number, chars in enumerate(("零〇", "一", "二两", "三", "四", "五", "六", "七", "八", "九"))
    for char in chars
}
_N: Final = r"(?:\d{1,4}|[零〇一二两三四五六七八九十百]{1,7})"
_WEEK: Final = r"个?(?:周|星期|礼拜)"
_RELATIVE: Final = {"上上": -2, "上": -1, "本": 0, "这": 0, "这一": 0, "当": 0, "下": 1, "下下": 2}
_THIS_OR_NEXT: Final = r"(?P<which>上上|上|本|这一|这|当|下下|下)"
_DAYS: Final = {
    "今天": 0, "今日": 0, "今": 0, "明天": 1, "明日": 1, "明": 1, "后天": 2, "大后天": 3,
    "昨天": -1, "昨日": -1, "昨": -1, "前天": -2, "大前天": -3,
}  # fmt: skip
_YEARS: Final = {"大前": -3, "前": -2, "去": -1, "今": 0, "本": 0, "明": 1, "后": 2, "大后": 3}
_UNITS: Final = {
    "天": "day", "日": "day", "周": "week", "星期": "week", "礼拜": "week", "月": "month", "年": "year",
    "小时": "hour", "钟头": "hour", "分钟": "minute",
}  # fmt: skip
_UNIT: Final = f"(?P<unit>{'|'.join(_UNITS)})"
_COUNT: Final = rf"(?P<count>{_N}|半)个?{_UNIT}"
_PARTS: Final = {
    "凌晨": "before dawn", "清晨": "morning", "早晨": "morning", "早上": "morning", "上午": "morning",
    "早": "morning", "中午": "noon", "下午": "afternoon", "傍晚": "evening", "晚上": "evening", "晚间": "evening", "夜里": "evening",
    "晚": "evening",
}  # fmt: skip
_TIMES: Final = re.compile(
    rf"(?P<day>.*?)(?P<part>{'|'.join(_PARTS)})?"
    rf"(?:(?P<hour>{_N})(?:点钟?整?|时)(?:(?P<half>半)|(?P<quarters>[一三])刻|(?P<minute>{_N})分?)?"
    r"|(?P<clock>\d{1,2}):(?P<of>\d{2})(?::(?P<second>\d{2}))?)?"
)

_WEEKDAY: Final = re.compile(rf"(?:{_THIS_OR_NEXT})?{_WEEK}(?:周|星期)?(?P<day>[一二三四五六日天末1-7])")
_WITH_WEEKDAY: Final = re.compile(r"(?P<rest>.+?\d.*|.+[日号][,(]?)(?:周|星期|礼拜)(?P<day>[一二三四五六日天])\)?")
_WHOLE_WEEK: Final = re.compile(_THIS_OR_NEXT + _WEEK)
_MONTH: Final = re.compile(_THIS_OR_NEXT + r"个?月(?P<rest>.*)")
_YEAR: Final = re.compile(
    rf"(?:(?P<which>{'|'.join(_YEARS)})|(?P<year>\d{{4}}|[零〇一二三四五六七八九]{{4}}))年(?P<rest>.*)"
)
_OF_YEAR: Final = re.compile(rf"(?P<month>{_N})月份?(?P<rest>.*)")
_QUARTER: Final = re.compile(r"(?:第?(?P<number>[1-4一二三四])个?季度|[qQ](?P<q>[1-4])|(?P<half>[上下])半年)")
_SOME_QUARTER: Final = re.compile(_THIS_OR_NEXT + r"个?季度")
_OF_MONTH: Final = re.compile(rf"(?P<day>{_N})[日号]|(?P<tenth>[上中下])旬")
_WINDOW: Final = re.compile(rf"(?:(?P<past>最近|过去|近)|(?:未来|接下来|今后))的?{_COUNT}")
_SHIFT: Final = re.compile(rf"{_COUNT}(?:之|以|过)?(?P<where>后|前)")


def read_chinese(text: str, anchor: Anchor) -> Stretch | None:
    """Return what Chinese words mean; None where they are not all understood.

    Args:
        text: simplified characters, without spaces around them.
        anchor: what they are counted from.

    Raises:
        ValueError: there is no such date.
        OverflowError: it lies outside the years that can be counted.
    """
    return _read_days(text, anchor) or _read_time(text, anchor)


def _read_days(text: str, anchor: Anchor) -> Stretch | None:
    if text in {"现在", "此刻"}:
        return spans.moment(anchor.now)
    if text in _DAYS and len(text) > 1:
        return spans.day(anchor.today + dt.timedelta(days=_DAYS[text]))
    for pattern, meant in _READERS:
        found = pattern.fullmatch(text)
        if found:
            return meant(found, anchor)
    return None


# --- times of day ----------------------------------------------------------------------------------------


def _read_time(text: str, anchor: Anchor) -> Stretch | None:
    found = _TIMES.fullmatch(text)
    if found is None or not (found["part"] or found["hour"] or found["clock"]):
        return None
    part = _PARTS.get(found["part"] or "", "")
    whole = _day_of(found["day"], anchor, has_part=bool(part))
    if whole is None:
        return None
    if not found["hour"] and not found["clock"]:
        read = spans.part_of(whole, part)
    else:
        hour, minute, second = _clock(found)
        read = spans.timed(whole, hour, minute, second, part)
        around = anchor.beside.part if anchor.beside and not part and not found["day"] else ""
        if read and anchor.beside and around and read.start < anchor.beside.start:
            read = spans.timed(whole, hour, minute, second, around)
    return read and replace(read, has_day=bool(found["day"]))


def _clock(found: re.Match[str]) -> tuple[int, int, int]:
    if found["clock"]:
        return int(found["clock"]), int(found["of"]), int(found["second"] or 0)
    minute = 30 if found["half"] else 15 * _number(found["quarters"]) if found["quarters"] else 0
    return _number(found["hour"]), _number(found["minute"]) if found["minute"] else minute, 0


def _day_of(text: str, anchor: Anchor, *, has_part: bool) -> Stretch | None:
    text = text.removesuffix("的")
    if not text:
        return spans.day(anchor.default_day)
    if text in _DAYS and (has_part or len(text) > 1):
        return spans.day(anchor.today + dt.timedelta(days=_DAYS[text]))
    return _read_days(text, anchor) or spans.numbered_day(text)


# --- days, weeks, months, years --------------------------------------------------------------------------


def _weekday(found: re.Match[str], anchor: Anchor) -> Stretch | None:
    weeks = None if found["which"] is None else _RELATIVE[found["which"]]
    if found["day"] == "末":
        return spans.weekend(anchor.default_day if weeks is None else anchor.today, weeks or 0)
    number = 6 if found["day"] in "日天" else _number(found["day"]) - 1
    return spans.weekday(anchor.default_day if weeks is None else anchor.today, number, weeks)


def _with_weekday(found: re.Match[str], anchor: Anchor) -> Stretch | None:
    """Return the day in front of the name of its weekday, if it is one."""
    rest = found["rest"].rstrip(",( ")
    read = _read_days(rest, anchor) or spans.numbered_day(rest)
    number = 6 if found["day"] in "日天" else _number(found["day"]) - 1
    return read if read and read.is_one_day and read.start.weekday() == number else None


def _whole_week(found: re.Match[str], anchor: Anchor) -> Stretch | None:
    return spans.week(anchor.today, _RELATIVE[found["which"]])


def _month(found: re.Match[str], anchor: Anchor) -> Stretch | None:
    whole = spans.month(anchor.today.year, anchor.today.month + _RELATIVE[found["which"]])
    return _of_month(found["rest"], whole)


def _year(found: re.Match[str], anchor: Anchor) -> Stretch | None:
    number = anchor.today.year + _YEARS[found["which"]] if found["which"] else _number(found["year"])
    if not found["rest"]:
        return spans.year(number)
    part = _QUARTER.fullmatch(found["rest"])
    if part:
        return _part_of_year(part, number, has_year=True)
    inside = _OF_YEAR.fullmatch(found["rest"])
    return None if inside is None else _of_month(inside["rest"], _month_of(number, inside, has_year=True))


def _of_year(found: re.Match[str], anchor: Anchor) -> Stretch | None:
    return _of_month(found["rest"], _month_of(anchor.default_day.year, found, has_year=False))


def _month_of(year: int, found: re.Match[str], *, has_year: bool) -> Stretch | None:
    number = _number(found["month"])
    return spans.month(year, number, has_year=has_year) if 1 <= number <= 12 else None


def _day_of_month(found: re.Match[str], anchor: Anchor) -> Stretch | None:
    first = anchor.default_day
    return _of_month(found[0], spans.month(first.year, first.month, has_year=False))


def _of_month(text: str, whole: Stretch | None) -> Stretch | None:
    """Return the day or the ten days of a month that the rest of the words name; the month where there is none."""
    if whole is None or not text:
        return whole
    found = _OF_MONTH.fullmatch(text)
    if found is None:
        return None
    first = whole.start
    if found["day"]:
        return spans.day(first.date().replace(day=_number(found["day"])), has_year=whole.has_year)
    start = first + dt.timedelta(days=10 * "上中下".index(found["tenth"]))
    end = whole.end if found["tenth"] == "下" else start + dt.timedelta(days=10)
    return Stretch(start, end, whole.has_year)


def _quarter(found: re.Match[str], anchor: Anchor) -> Stretch | None:
    return _part_of_year(found, anchor.default_day.year, has_year=False)


def _part_of_year(found: re.Match[str], year: int, *, has_year: bool) -> Stretch:
    if found["half"]:
        return spans.half_year(year, 1 if found["half"] == "上" else 2, has_year=has_year)
    return spans.quarter(year, _number(found["number"] or found["q"]), has_year=has_year)


def _some_quarter(found: re.Match[str], anchor: Anchor) -> Stretch | None:
    return spans.quarter(anchor.today.year, (anchor.today.month + 2) // 3 + _RELATIVE[found["which"]])


# --- counted from now ------------------------------------------------------------------------------------


def _window(found: re.Match[str], anchor: Anchor) -> Stretch | None:
    counted = _counted(found)
    if counted is None:
        return None
    count, unit = counted
    return spans.window(anchor.now, -count if found["past"] else count, unit)


def _shift(found: re.Match[str], anchor: Anchor) -> Stretch | None:
    counted = _counted(found)
    if counted is None:
        return None
    count, unit = counted
    return spans.shifted(anchor.now, -count if found["where"] == "前" else count, unit)


def _counted(found: re.Match[str]) -> tuple[int, str] | None:
    unit = _UNITS[found["unit"]]
    if found["count"] == "半":
        return {"year": (6, "month"), "hour": (30, "minute")}.get(unit)
    return _number(found["count"]), unit


_READERS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str], Anchor], Stretch | None]], ...]] = (
    (_WEEKDAY, _weekday),
    (_WITH_WEEKDAY, _with_weekday),
    (_WHOLE_WEEK, _whole_week),
    (_MONTH, _month),
    (_YEAR, _year),
    (_OF_YEAR, _of_year),
    (_OF_MONTH, _day_of_month),
    (_QUARTER, _quarter),
    (_SOME_QUARTER, _some_quarter),
    (_WINDOW, _window),
    (_SHIFT, _shift),
)


def _number(text: str) -> int:
    """Return the number that digits or Chinese numerals say.

    Raises:
        ValueError: they say none.
    """
    if text.isdecimal():
        return int(text)
    if "十" not in text and "百" not in text:
        return int("".join(str(_DIGITS[char]) for char in text))
    hundreds, _, rest = text.rpartition("百")
    tens, has_tens, ones = rest.rpartition("十")
    total = 100 * _digit(hundreds, 1) if "百" in text else 0
    if has_tens:
        total += 10 * _digit(tens.lstrip("零〇"), 1)
    return total + _digit(ones.lstrip("零〇"), 0)


def _digit(text: str, otherwise: int) -> int:
    if not text:
        return otherwise
    if text not in _DIGITS:  # 百百, 十百: numerals, and no number
        raise ValueError(text)
    return _DIGITS[text]
