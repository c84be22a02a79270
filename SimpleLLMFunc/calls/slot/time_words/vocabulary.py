"""The known words about time, in Chinese and English, and the patterns that use them.

A group name that two branches of a pattern use has a number: `count` and `count2` are one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

from SimpleLLMFunc.base.parsing.alignment import MONTHS

_TRADITIONAL: Final = str.maketrans("後號個週點這兩時間內過來鐘禮從爲為", "后号个周点这两时间内过来钟礼从为为")
_SPACE_BY_CJK: Final = re.compile(r"(?<=[\u3400-\u9fff〇])\s+|\s+(?=[\u3400-\u9fff〇])")
_NUMERAL: Final = re.compile("[零〇一二两三四五六七八九十百]+")
_DIGITS: Final = {"〇": "0", "零": "0", "两": "2"} | {char: str(n) for n, char in enumerate("一二三四五六七八九", 1)}
_WORD_NUMBERS: Final = {
    word: str(number)
    for number, words in enumerate(["a|an|one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"], 1)
    for word in words.split("|")
} | {
    "fourteen": "14", "fifteen": "15", "twenty": "20", "thirty": "30", "sixty": "60", "ninety": "90",
    "first": "1st", "second": "2nd", "third": "3rd", "fourth": "4th",
}  # fmt: skip
_WORD_NUMBER: Final = re.compile(rf"\b(?:{'|'.join(_WORD_NUMBERS)})\b")


def plain_words(text: str) -> str:
    """Return the words in one spelling, their numbers in digits."""
    words = unicodedata.normalize("NFKC", text).translate(_TRADITIONAL).casefold()
    words = re.sub(r"\s+", " ", words).strip(" .,。，!！;；'\"“”()（）")
    words = _NUMERAL.sub(_in_digits, _SPACE_BY_CJK.sub("", words))
    words = _WORD_NUMBER.sub(lambda found: _WORD_NUMBERS[found[0]], words)
    return "this evening" if words == "tonight" else words


def _in_digits(found: re.Match[str]) -> str:
    """Return the number that Chinese numerals say; themselves where they say none."""
    text = found[0]
    if "十" not in text and "百" not in text:
        return "".join(_DIGITS[char] for char in text)
    parts = re.fullmatch(
        "(?:([一二两三四五六七八九])百)?零?(?:([一二三四五六七八九]?)(十))?([一二三四五六七八九]?)", text
    )
    if parts is None:
        return text
    hundreds, tens, has_tens, ones = parts.groups()
    total = 100 * int(_DIGITS[hundreds] if hundreds else 0) + int(_DIGITS[ones] if ones else 0)
    return str(total + (10 * int(_DIGITS[tens] if tens else 1) if has_tens else 0))


RELATIVE: Final = {
    "上上": -2, "上": -1, "本": 0, "这": 0, "这1": 0, "当": 0, "下": 1, "下下": 2,
    "last": -1, "previous": -1, "this": 0, "the current": 0, "current": 0, "next": 1, "the next": 1, "the last": -1,
}  # fmt: skip
DAYS: Final = {
    "今天": 0, "今日": 0, "今": 0, "明天": 1, "明日": 1, "明": 1, "后天": 2, "大后天": 3, "昨天": -1, "昨日": -1, "昨": -1,
    "前天": -2, "大前天": -3, "today": 0, "tomorrow": 1, "yesterday": -1, "the day after tomorrow": 2,
    "day after tomorrow": 2, "the day before yesterday": -2, "day before yesterday": -2,
}  # fmt: skip
YEARS: Final = {"大前": -3, "前": -2, "去": -1, "今": 0, "本": 0, "明": 1, "后": 2, "大后": 3}
WEEKDAYS: Final = {
    name: number
    for number, names in enumerate(["1 monday mon", "2 tuesday tue tues", "3 wednesday wed", "4 thursday thu thur thurs", "5 friday fri", "6 saturday sat", "7 日 天 sunday sun"])
    for name in names.split()
}  # fmt: skip
UNITS: Final = {
    "天": "day", "日": "day", "周": "week", "星期": "week", "礼拜": "week", "月": "month", "年": "year", "季度": "quarter",
    "小时": "hour", "钟头": "hour", "分钟": "minute", "周末": "weekend",
}  # fmt: skip
PARTS: Final = {
    "凌晨": "dawn", "清晨": "morning", "早晨": "morning", "早上": "morning", "上午": "morning", "早": "morning",
    "中午": "noon", "下午": "afternoon", "傍晚": "evening", "晚上": "evening", "晚间": "evening", "夜里": "evening",
    "晚": "evening", "morning": "morning", "afternoon": "afternoon", "evening": "evening", "night": "evening",
}  # fmt: skip
HOURS: Final = {"dawn": (0, 6), "morning": (6, 12), "noon": (11, 13), "afternoon": (12, 18), "evening": (18, 24)}


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_WHICH_ZH: Final = "(?P<which>上上|上|本|这1|这|当|下下|下)"
_WHICH: Final = rf"(?P<which>{_any(each for each in RELATIVE if each.isascii())})"
_WEEKDAY: Final = rf"(?P<weekday>{_any(each for each in WEEKDAYS if each.isascii() and len(each) > 1)})\.?"
_MONTH: Final = rf"(?P<name>{_any(MONTHS)})\.?"
_NTH: Final = "(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?"
_YEAR: Final = "(?P<year>[0-9]{4})"
_COUNT: Final = "(?P<count>[0-9]{1,4}) (?P<unit>day|week|month|year|hour|minute)s?"
_COUNT_ZH: Final = "(?P<count>[0-9]{1,4})个?(?P<unit>天|日|周|星期|礼拜|月|年|小时|钟头|分钟)"
_IN_YEAR: Final = "(?:(?P<month>[0-9]{1,2})月份?(?:(?P<day>[0-9]{1,2})[日号])?)"
_QUARTER: Final = "(?:第?(?P<quarter>[1-4])个?季度)"

RULES: Final = tuple(
    (re.compile(pattern), meaning)
    for meaning, pattern in (
        ("day", _any(DAYS)),
        ("now", "现在|此刻|now|right now"),
        ("numbered", r"(?P<year>[0-9]{4})(?P<sign>[-/.])(?P<month>[0-9]{1,2})(?P=sign)(?P<day>[0-9]{1,2})"),
        ("numbered", r"(?P<year>[0-9]{4})(?P<month>[0-9]{2})(?P<day>[0-9]{2})"),
        ("numbered", r"(?P<year>(?:19|20|21)[0-9]{2})|(?:in |the year )(?P<year2>[0-9]{4})"),
        ("numbered", r"(?P<year>[0-9]{4})[-/](?P<month>[0-9]{1,2})"),
        ("weekday", f"{_WHICH_ZH}?个?(?:周|星期|礼拜)(?:周|星期)?(?P<weekday>[日天1-7])"),
        ("weekday", f"(?:on )?(?:{_WHICH} )?{_WEEKDAY}"),
        ("checked", r"(?P<rest>.+?[0-9].*|.+[日号][,(]?)(?:周|星期|礼拜)(?P<weekday>[日天1-6])\)?"),
        ("checked", rf"(?:on )?{_WEEKDAY},? (?P<rest>.*[0-9].*)"),
        ("unit", f"{_WHICH_ZH}?个?(?P<unit>(?:周|星期|礼拜)(?:末)?|季度|月)"),
        ("unit", rf"{_WHICH} (?P<unit>weekend|week|month|quarter|year)|(?:on )?(?:the )?(?P<unit2>weekend)"),
        ("numbered", rf"{_WHICH_ZH}个?月(?P<day>[0-9]{{1,2}})[日号]"),
        ("numbered", rf"(?:(?P<which_year>{_any(YEARS)})|{_YEAR})年(?:{_IN_YEAR}|{_QUARTER}|q(?P<q>[1-4]))?"),
        ("numbered", rf"{_IN_YEAR}|{_QUARTER}|(?P<day2>[0-9]{{1,2}})[日号]"),
        ("numbered", rf"(?:in )?{_MONTH}(?:,? (?:of )?{_YEAR})?"),
        ("numbered", rf"(?:on )?{_MONTH} {_NTH}(?:,? {_YEAR})?"),
        ("numbered", rf"(?:on )?(?:the )?{_NTH}(?: of)? {_MONTH}(?:,? {_YEAR})?"),
        ("numbered", rf"q(?P<q>[1-4])(?:[ ,]* ?{_YEAR})?|(?P<year2>[0-9]{{4}}) ?q(?P<q2>[1-4])"),
        ("numbered", rf"(?:the )?(?P<q>[1-4])(?:st|nd|rd|th) quarter(?: of {_YEAR})?"),
        ("window", f"(?:(?P<past>最近|过去|近)|未来|接下来|今后)的?{_COUNT_ZH}"),
        ("window", rf"(?:the |in the )?(?:(?P<past>last|past|previous)|next|coming|following) {_COUNT}"),
        ("shift", f"{_COUNT_ZH}(?:之|以|过)?(?:后|(?P<past>前))"),
        ("shift", rf"(?:in {_COUNT}|{_COUNT.replace('count', 'count2').replace('<unit', '<unit2')} (?:from now|later|(?P<past>ago)))"),
    )
)  # fmt: skip
_CLOCK_ZH: Final = (
    "(?P<hour>[0-9]{1,2})(?:点钟?整?|时)(?:(?P<half>半)|(?P<quarters>[13])刻|(?P<minute>[0-9]{1,2})分?)?"
    "|(?P<hour2>[0-9]{1,2}):(?P<minute2>[0-9]{2})(?::(?P<second>[0-9]{2}))?"
)
_CLOCK: Final = r"(?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2}))?)? ?(?P<ampm>[ap]\.?m\.?)?|(?P<noon>noon|midday)"
TIMES: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?P<when>.*?)的?(?P<part>{_any(each for each in PARTS if not each.isascii())})?(?:{_CLOCK_ZH})?",
        rf"(?:at )?(?:{_CLOCK})",
        rf"(?P<when>.+?),? (?:at )?(?:{_CLOCK})",
        rf"(?:at )?(?:{_CLOCK}),? (?:on )?(?P<when>.+)",
        r"(?:(?P<when>.+?) )?(?:in the |at )?(?P<part>morning|afternoon|evening|night)",
    )
)
INSTANT: Final = re.compile(
    r"([0-9]{4})[-/.]([0-9]{1,2})[-/.]([0-9]{1,2})[t ]([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.[0-9]+)?)? ?(z|utc|[+-][0-9]{2}:?[0-9]{2})?"
)
BETWEEN: Final = re.compile(r" ?(?:到|至) ?| (?:to|until|till|through) |\s*[~—–-]\s*")
OPENING: Final = re.compile(r"^(?:从|自|from |between )")
