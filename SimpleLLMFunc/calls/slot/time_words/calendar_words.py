"""Natural Chinese and English words about time → a start and an end in a time zone.

A narrow reader of our own: of the libraries that are kept, dateparser reads points in time only and little Chinese,
and jionlp reads Chinese only. Every word of a text must be understood, else nothing is read. What it reads:

* digits: 2024-05-01, 2024/5/1, 20240501, 2024-05, 2024, with a time (and a zone) behind the day;
* days, weeks (from Monday), weekends, months, thirds of months, quarters, half years and years, named or counted from
  now: 后天, 下周一, 本月下旬, last month, Q1 2024, May 1st; weekdays with 下/next or 上/last are those of that week, alone
  the next ones;
* 三天后, in two weeks, 最近7天 and "the last 7 days" (with today), 未来三天 and "the next 3 days" (from tomorrow);
* a time or a part of the day behind any of these: 明天下午三点, tomorrow at 3pm; without 上午/下午 an hour is one of 24;
* two of them as a range: 5月1日到3日, from May 1 to May 3, 2024.

What names no year is of this year, what names no month of this month. It does not read: feasts and lunar dates, vague
words (月底, 年初, soon, 三天内), an hour in English that does not say which half of the day (at 3), midnight, day and month
both as bare numbers (05/01), numbers beyond the hundreds in characters.
"""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from SimpleLLMFunc.calls.slot.time_words import spans
from SimpleLLMFunc.calls.slot.time_words.dates_en import read_english
from SimpleLLMFunc.calls.slot.time_words.dates_zh import read_chinese
from SimpleLLMFunc.calls.slot.time_words.spans import Anchor, Stretch
from SimpleLLMFunc.calls.zone import zone_of

__all__ = ["Calendar", "Span"]

_LONGEST: Final = 80
_TRADITIONAL: Final = str.maketrans("後號個週點這兩時間內過來鐘禮從爲為", "后号个周点这两时间内过来钟礼从为为")
_CJK: Final = "\u3400-\u9fff〇"
_HAN: Final = re.compile(rf"[{_CJK}]")
_SPACE_BY_CJK: Final = re.compile(rf"(?<=[{_CJK}])\s+|\s+(?=[{_CJK}])")
_BETWEEN: Final = re.compile(r" ?(?:到|至) ?| (?:to|until|till|through) |\s*[~—–-]\s*")
_UNIT_ENDS: Final = frozenset("日号月点时")
"""What 5月1-3日 says once for both ends."""
_CLOCK_FIRST: Final = re.compile(r"\d{1,2}(?::\d{2})? ?(?:[ap]\.?m\.?)?,? (?:on )?[a-z]")
"""An end such as "5pm tomorrow", whose day is that of "3pm to" too."""
_HALF_YEAR: Final = dt.timedelta(days=184)
_OPENING: Final = re.compile(r"^(?:从|自|from |between )")

_MONTH: Final = re.compile(r"(\d{4})[-/](\d{1,2})")
_YEAR: Final = re.compile(r"(?:19|20|21)\d{2}")
_INSTANT: Final = re.compile(
    r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})[t ](\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)? ?(z|utc|[+-]\d{2}:?\d{2})?"
)


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
        return self._seconds(self.stretch.start)

    @property
    def last_second(self) -> int:
        """The last second in it, from 1970 in UTC."""
        return self._seconds(self._last)

    @property
    def moment(self) -> str:
        """The instant it begins, with its offset from UTC."""
        return self.stretch.start.replace(tzinfo=self.zone).isoformat()

    @property
    def _last(self) -> dt.datetime:
        return self.stretch.start if self.is_moment else self.stretch.end - dt.timedelta(seconds=1)

    def _seconds(self, local: dt.datetime) -> int:
        return int(local.replace(tzinfo=self.zone).timestamp())


class Calendar:
    """Reads words about time in one zone, wherever the host stands.

    Raises:
        CallError: there is no such zone.
    """

    def __init__(self, time_zone: str, now: dt.datetime | Callable[[], dt.datetime] | None = None) -> None:
        self._zone = zone_of(time_zone)
        self._now = now

    def read(self, text: str) -> Span | None:
        """Return what the words mean; None where that is not certain."""
        if len(text) > _LONGEST:
            return None
        words = _plain_words(text)
        if not words:
            return None
        anchor = Anchor(self._local_now())
        stretch = self._one(words, anchor) or self._range(words, anchor)
        return None if stretch is None else Span(stretch, self._zone)

    def _local_now(self) -> dt.datetime:
        now = self._now() if callable(self._now) else self._now
        if now is None:
            now = dt.datetime.now(self._zone)
        return now.replace(tzinfo=None) if now.tzinfo is None else now.astimezone(self._zone).replace(tzinfo=None)

    def _one(self, words: str, anchor: Anchor) -> Stretch | None:
        try:
            return self._digits(words) or read_chinese(words, anchor) or read_english(words, anchor)
        except (ValueError, OverflowError):
            return None

    def _digits(self, words: str) -> Stretch | None:
        numbered = spans.numbered_day(words)
        if numbered:
            return numbered
        found = _MONTH.fullmatch(words)
        if found:
            return spans.month(int(found[1]), int(found[2])) if 1 <= int(found[2]) <= 12 else None
        if _YEAR.fullmatch(words):
            return spans.year(int(words))
        found = _INSTANT.fullmatch(words)
        return self._instant(found) if found else None

    def _instant(self, found: re.Match[str]) -> Stretch:
        year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
        instant = dt.datetime(year, month, day, hour, minute, second)  # noqa: DTZ001 - local time, as all stretches are
        if found[7]:
            offset = "+00:00" if found[7] in {"z", "utc"} else found[7]
            aware = dt.datetime.fromisoformat(f"{instant.isoformat()}{offset}")
            instant = aware.astimezone(self._zone).replace(tzinfo=None)
        return spans.moment(instant)

    def _range(self, words: str, anchor: Anchor) -> Stretch | None:
        opening = _OPENING.match(words)
        body = words[opening.end() :].removesuffix("之间") if opening else words
        if opening and opening[0] == "between ":
            body = body.replace(" and ", " to ")
        found = [
            read
            for split in _BETWEEN.finditer(body)
            if (read := self._from_to(body[: split.start()], body[split.end() :], anchor)) is not None
        ]
        return found[0] if found and all(read == found[0] for read in found) else None

    def _from_to(self, left: str, right: str, anchor: Anchor) -> Stretch | None:
        first = self._one(left, anchor) or (self._one(left + right[-1], anchor) if right[-1:] in _UNIT_ENDS else None)
        if first is None:
            return self._left_by_right(left, right, anchor)
        second = self._one(right, Anchor(anchor.now, first))
        if second is None:
            return None
        if second.has_day and not first.has_day:
            if not _CLOCK_FIRST.match(right):
                # 8点到明天10点 begins today; "3pm to tomorrow" may begin on either day
                return _spanned(first, second) if _HAN.search(right) else None
            first = self._one(left, Anchor(anchor.now, second)) or first
        if second.has_year and not first.has_year:
            first = self._one(left, Anchor(anchor.now, second)) or first
        if not first.has_year and not second.has_year and second.start < first.start:
            second = self._in_next_year(first, right, anchor) or second
        return _spanned(first, second)

    def _in_next_year(self, first: Stretch, right: str, anchor: Anchor) -> Stretch | None:
        """Read the right end of "Dec 30 to Jan 2"; a range of more than half a year is rather a slip."""
        later = spans.year(first.start.year + 1)
        second = self._one(right, Anchor(anchor.now, later))
        return second if second and second.end - first.start < _HALF_YEAR else None

    def _left_by_right(self, left: str, right: str, anchor: Anchor) -> Stretch | None:
        """Read a left end that only the right one explains: "3 to 5pm", "1 to 3 May 2024"."""
        second = self._one(right, anchor)
        first = None if second is None else self._one(left, Anchor(anchor.now, second))
        return None if first is None or second is None else _spanned(first, second)


def _spanned(first: Stretch, second: Stretch) -> Stretch | None:
    end = max(first.end, second.end)
    return Stretch(first.start, end) if first.start <= second.start and end > first.start else None


def _plain_words(text: str) -> str:
    words = unicodedata.normalize("NFKC", text).translate(_TRADITIONAL).casefold()
    words = re.sub(r"\s+", " ", words).strip(" .,。，!！;；'\"“”()（）")
    return _SPACE_BY_CJK.sub("", words)
