"""The known words about time, in Chinese and English, and the patterns that use them: those of ``vocabulary.json``.

A pattern names a piece or a list of words in braces. A group name that two branches of a pattern use has a number: `count`
and `count2` are one.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable
from importlib.resources import files
from itertools import pairwise
from typing import Any, Final

from SimpleLLMFunc.base.parsing.alignment import MONTHS

_DATA: Final[dict[str, Any]] = json.loads(
    files("SimpleLLMFunc.calls.slot.time_words").joinpath("vocabulary.json").read_text("utf-8")
)
RELATIVE: Final[dict[str, int]] = _DATA["relative"]
DAYS: Final[dict[str, int]] = _DATA["days"]
YEARS: Final[dict[str, int]] = _DATA["years"]
WEEKDAYS: Final[dict[str, int]] = _DATA["weekdays"]
UNITS: Final[dict[str, str]] = _DATA["units"]
PARTS: Final[dict[str, str]] = _DATA["parts"]
HOURS: Final[dict[str, list[int]]] = _DATA["hours"]
"""The first and the last hour of a part of the day."""

_TRADITIONAL: Final = str.maketrans("後號個週點這兩時間內過來鐘禮從爲為", "后号个周点这两时间内过来钟礼从为为")
_SPACE_BY_CJK: Final = re.compile(r"(?<=[\u3400-\u9fff〇])\s+|\s+(?=[\u3400-\u9fff〇])")
_NUMERAL: Final = re.compile("[零〇一二两三四五六七八九十百]+")
_DIGITS: Final = {"〇": "0", "零": "0", "两": "2"} | {char: str(n) for n, char in enumerate("一二三四五六七八九", 1)}
_WORD_NUMBERS: Final[dict[str, str]] = _DATA["numbers"]
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
        digits = "".join(_DIGITS[char] for char in text)
        before, rest = found.string[: found.start()], found.string[found.end() :]
        # 五月二三日, 八点三五
        is_by_digit = "两" not in text and (re.match("[日月号]|分(?!钟)", rest) or (before.endswith("点") and not rest))
        rises = 1 < len(text) < 4 and digits[0] != "0" and all(0 < int(b) - int(a) < 3 for a, b in pairwise(digits))
        return text if rises and not is_by_digit else digits  # 两三天: two or three days
    parts = re.fullmatch(
        "(?:([一二两三四五六七八九])百)?零?(?:([一二三四五六七八九]?)(十))?([一二三四五六七八九]?)", text
    )
    if parts is None:
        return text
    hundreds, tens, has_tens, ones = parts.groups()
    total = 100 * int(_DIGITS[hundreds] if hundreds else 0) + int(_DIGITS[ones] if ones else 0)
    return str(total + (10 * int(_DIGITS[tens] if tens else 1) if has_tens else 0))


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_NAMED: Final[dict[str, str]] = {
    **_DATA["pieces"],  # first: they name lists of words themselves
    "days": _any(DAYS),
    "years": _any(YEARS),
    "months": _any(MONTHS),
    "relative_en": _any(each for each in RELATIVE if each.isascii()),
    "weekday_en": _any(each for each in WEEKDAYS if each.isascii() and len(each) > 1),
    "part_zh": _any(each for each in PARTS if not each.isascii()),
}


def _pattern(text: str) -> re.Pattern[str]:
    for name, part in _NAMED.items():
        text = text.replace(f"{{{name}}}", part)
    return re.compile(text)


RULES: Final = tuple((_pattern(text), meaning) for meaning, text in _DATA["rules"])
TIMES: Final = tuple(map(_pattern, _DATA["times"]))
INSTANT: Final = _pattern(_DATA["instant"])
BETWEEN: Final = _pattern(_DATA["between"])
OPENING: Final = _pattern(_DATA["opening"])
