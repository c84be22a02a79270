"""Numbers, truth values and dates in words: read where exactly one reading is possible, else refused.

Every function takes the text as the model wrote it and returns None where it will not decide.
"""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from typing import Final

_LONGEST: Final = 300
"""Characters of the longest text that is searched for one number or word."""

# --- numbers ---------------------------------------------------------------------------------------------

_PLAIN: Final = re.compile(r"[+-]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d{1,4})?")
_TOKEN: Final = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?|(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d{1,4})?")
_CURRENCY: Final = "$€£¥￥₹₽₩₿¢฿₺₫"
# What may stand right before a number, with its sign before or after a currency.
_BEFORE: Final = re.compile(
    rf"(?:^\+?|(?<=[\s:=：~≈#\u3400-\u9fff]))[(（]?(?P<sign>-?)(?:[A-Z]{{0,3}}[{_CURRENCY}](?P<late>-?))?[*`\"'“”(]*$"
)
_BULLET_OR_CALL: Final = re.compile(rf"[-–—]\s[\s*`\"'“”({_CURRENCY}]*$|\w\($")
_AFTER: Final = re.compile(r"[_:–—~]\S|-(?![^\W\d_]{2})\S|/(?![^\W\d_]{2})\w")
"""What makes the number a part of something else: a range, a fraction, a time, a name."""

_MULTIPLIER: Final = re.compile(
    r"\s?(?:[kKMBT](?![A-Za-z])|(?i:mn|mln|bn|bln|tn|mio|mrd|score|gross)\b|[万萬亿億千百十兆仟佰拾])"
)
_BAD_WORDS: Final = re.compile(
    r"n['’]t\b|\b(?:not|no|never|none|neither|nor|without|cannot|unable|sorry|apolog\w*|unknown|unsure|unclear|"
    r"uncertain|missing|error|invalid|than|least|most|over|under|above|below|between|exceeds?|exceeding|beyond|"
    r"nearly|almost|minimum|maximum|min|max|up\s+to|upto|until|till|or|either|if|unless|minus|negative|plus|times|"
    r"half|quarter|third|double|twice|triple|hundreds?|thousands?|millions?|billions?|trillions?|dozens?|lakhs?|crores?|"
    r"one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|"
    r"eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|zero|a\.?m|p\.?m|"
    r"nicht|kein\w*|pas|aucun\w*|environ|question|step|version|chapter|section|page|note|example|option)\b"
    r"|[不没沒无無非未负負超至低高少多余餘或]|以上|以下|以内|分之|零|两|[〇一二三四五六七八九]成",
    re.IGNORECASE,
)
_BAD_SIGNS: Final = re.compile(r"[<>≤≥±×÷√^∞?？]|\.\.\.|…")
_COPULA: Final = re.compile(
    r"(?:\b(?:is|are|was|were|be|equals?|total(?:s|ing)?|of|gives?|scored?|rate|rated|answer|result|value|got|costs?|"
    r"(?:comes?|came|amounts?)\s+to|about|approximately|roughly|around|exactly|circa|have|has|had|found|count(?:ed)?|say|with)|[:=：≈~为為是共约約计計得有])"
    r"[\s*_`\"'“”($€£¥￥~≈-]*$",
    re.IGNORECASE,
)
# Marks around a number, and never between two: 2*3 is not 23.
_EMPHASIS: Final = re.compile(r"(?<![\w.*`])[*`]+|[*`]+(?!\.?\w|[*`])")
_WORDS: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_CJK: Final = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")


def read_number(text: str) -> str | None:
    """Return the one number in the text as a JSON-like literal, without the commas between thousands; else None.

    Units, currency and percent signs are left aside: ``42 %`` is 42. A word that changes the number (million,
    minus, 万), compares it (at least, over, 不到), denies it or is another number makes it None, and so do other
    ways to write one, such as ``1.234,50`` and ``1,5``.
    """
    if len(text) > _LONGEST:
        return None
    text = unicodedata.normalize("NFKC", _without_odd_digits(text)).replace("\u2212", "-").strip()
    plain = _EMPHASIS.sub("", text).strip().removesuffix(".").strip()
    if _PLAIN.fullmatch(plain):
        return _literal(plain)
    tokens = list(_TOKEN.finditer(text))
    if len(tokens) != 1:
        return None
    before, token, after = text[: tokens[0].start()], tokens[0].group(), text[tokens[0].end() :]
    is_money = re.search(rf"[{_CURRENCY}]\s?$", before) or re.match(rf"\s?(?:[{_CURRENCY}]|EUR|USD|GBP|CHF)", after)
    if is_money and (re.match(r"\s?mm?\b", after) or re.fullmatch(r"\d{1,3}\.\d{3}", token)):
        return None  # $5m; €1.234 is one euro and a bit, or a thousand
    if "+" in f"{before[1:]}{after}" or any(
        pattern.search(part) for pattern in (_BAD_WORDS, _BAD_SIGNS) for part in (before, after)
    ):
        return None
    head = _BEFORE.search(before)
    if head is None or _BULLET_OR_CALL.search(before) or _AFTER.match(after) or _MULTIPLIER.match(after):
        return None
    words = len(_WORDS.findall(before + after)) + len(_CJK.findall(before + after)) // 2
    if words > (14 if _COPULA.search(before) else 4):
        return None  # a text that is not about this number
    return _literal((head["sign"] or head["late"] or "") + token.replace(",", ""))


def _without_odd_digits(text: str) -> str:
    # NFKC turns ½ into 1/2 and 10² into 102; the exponent of a unit (m²) may go
    text = re.sub(r"(?<=[a-zA-Z])[²³]", "", text)
    return "".join("?" if unicodedata.category(char) in {"No", "Nl"} else char for char in text)


def _literal(text: str) -> str:
    return re.sub(r"^(-?)\.", r"\g<1>0.", text.removeprefix("+"))


# --- yes and no ------------------------------------------------------------------------------------------

_YES: Final = re.compile("yes|y|true|yeah|yep|是的?|对的?|真的?|正确|對的?|正確|没错")
_NO: Final = re.compile("no|n|false|nope|否|不是|不|不对|错的?|假的?|错误|不正确|不對|錯|錯誤|并非")
_YES_WORD: Final = re.compile(r"\b(?:yes|true|yeah|yep)\b|[是对對真](?!不)", re.IGNORECASE)
_NO_WORD: Final = re.compile(r"\b(?:no|false|nope)\b", re.IGNORECASE)
_HEDGE: Final = re.compile(
    r"\b(?:but|however|although|though|except|or|either|if|unless|maybe|perhaps|possibly|might|could|both|depends?|"
    r"unclear|unsure|uncertain|unknown|half|partly|partially|sometimes)\b|但|或|可能",
    re.IGNORECASE,
)
_DENIAL: Final = re.compile(
    r"n['’]t\b|\b(?:not|never|neither|nor|none|cannot|without|hardly|barely|sort\s+of|kind\s+of|mostly|untrue|incorrect|"
    r"wrong)\b|[不没沒无無非未否错錯假]",
    re.IGNORECASE,
)
_LEAD: Final = re.compile(
    r"[\s*_`\"'“”]*([^\W\d_]{2,}|[\u3400-\u9fff])[*_`\"'”]*\s*[.,;:!。，；：！\n—–-](.*)", re.DOTALL
)
# "no" before a noun denies the noun, and a true story is no answer: elsewhere the word must end the sentence.
_LAST: Final = re.compile(
    r"(.*(?:\b(?:is|was|says?|say|said|answer|answered|be|as)|[:=：])[\s*_`\"'“”]*)\b(yes|true|yeah|yep|no|false|nope)\b"
    r"[*_`\"'”.!\s]*",
    re.IGNORECASE | re.DOTALL,
)
_EDGES: Final = " \t\r\n*_`\"'“”‘’.。!！,，;；:：()（）[]"


def read_bool(text: str) -> bool | None:
    """Return the truth value that a yes/no word of the closed list says; None where none, or more than one, does."""
    if len(text) > _LONGEST or "?" in text or "？" in text:
        return None
    word, before, after = text.strip(_EDGES).casefold(), "", ""
    if not _is_known(word):
        lead, last = _LEAD.match(text), _LAST.fullmatch(text)
        if lead and _is_known(lead[1].casefold()):
            word, after = lead[1].casefold(), lead[2]
        elif last and len(_WORDS.findall(text)) <= 12:
            word, before = last[2].casefold(), last[1]
        else:
            return None
    says = _YES.fullmatch(word) is not None
    around = f"{before} {after}"
    contrary = [_HEDGE, _NO_WORD if says else _YES_WORD]
    if says or before:  # after a leading "no", "it is not" says the same again
        contrary.append(_DENIAL)
    if before:
        contrary += [_YES_WORD, _NO_WORD]
    return None if any(pattern.search(around) for pattern in contrary) else says


def _is_known(word: str) -> bool:
    return bool(_YES.fullmatch(word) or _NO.fullmatch(word))


# --- dates -----------------------------------------------------------------------------------------------

MONTHS: Final = {
    name: number
    for number, names in enumerate(
        ("january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
         "september sep sept", "october oct", "november nov", "december dec"), 1,
    )
    for name in names.split()
}  # fmt: skip
"""The number of a month by its English names, long and short."""
_MONTH: Final = "|".join(sorted(MONTHS, key=len, reverse=True))
_DAY: Final = r"(?P<d>\d{1,2})(?:st|nd|rd|th)?"
_DATES: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?<![\d-])(?P<y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})(?![\dT:-])(?!\s+\d{1,2}:)",
        r"(?<!\d)(?P<y>\d{4})[/.年](?P<m>\d{1,2})[/.月](?P<d>\d{1,2})(?!\d)",
        rf"\b(?P<m>{_MONTH})\.?\s+{_DAY},?\s+(?P<y>\d{{4}})\b",
        rf"\b{_DAY}\.?\s+(?:of\s+)?(?P<m>{_MONTH})\.?,?\s+(?P<y>\d{{4}})\b",
    )
)
_DATE_TIME: Final = re.compile(
    r"(?<![\d-])\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:\s?Z|\s?UTC|[+-]\d{2}:?\d{2})?(?![\d:])"
)
_TIME: Final = re.compile(
    r"(?<![\d:.])([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})?(?![\d:.]\d)(?!\s*[ap]\.?m)",
    re.IGNORECASE,
)
_UUID: Final = re.compile(r"(?<![0-9a-fA-F-])[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}(?![0-9a-fA-F-])")
_UNCERTAIN: Final = re.compile(
    r"n['’]t\b|\b(?:not|no|never|or|either|before|after|between|until|till|since|by|from|to|if|unless|maybe|perhaps|"
    r"possibly|might|could|unknown|unsure|unclear|around|about|circa|approximately|except|instead|through)\b"
    r"|[不没非未或到至前后後约約]|[?？]",
    re.IGNORECASE,
)


def read_date(text: str) -> str | None:
    """Return the one date in a short text in ISO form: ISO, year first, or with the month by name; else None."""
    found = _only(_DATES, text)
    if found is None:
        return None
    month = found["m"].casefold()
    try:
        return dt.date(int(found["y"]), MONTHS.get(month) or int(month), int(found["d"])).isoformat()
    except ValueError:
        return None


def read_datetime(text: str) -> str | None:
    """Return the one ISO date with time in a short text; else None."""
    found = _only((_DATE_TIME,), text)
    return re.sub(r"\s?(?:UTC|Z)$", "Z", found[0]) if found else None


def read_time(text: str) -> str | None:
    """Return the one time of day (24 hours) in a short text; else None."""
    found = _only((_TIME,), text)
    return None if found is None else found[0] if found[0][1] != ":" else f"0{found[0]}"


def read_uuid(text: str) -> str | None:
    """Return the one UUID in a short text; else None."""
    found = _only((_UUID,), text)
    return found[0] if found else None


def _only(patterns: tuple[re.Pattern[str], ...], text: str) -> re.Match[str] | None:
    """Return the only match in a short text that says nothing against it and has no other digit."""
    if len(text) > _LONGEST or len(_WORDS.findall(text)) > 12 or _UNCERTAIN.search(text):
        return None
    found = [match for pattern in patterns for match in pattern.finditer(text)]
    if len(found) != 1 or re.search(r"\d", text[: found[0].start()] + text[found[0].end() :]):
        return None
    return found[0]
