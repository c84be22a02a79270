"""Numbers, truth values, dates and durations in words: read where exactly one reading is possible, else refused.

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
_SPACES: Final = "     "
_TOKEN: Final = re.compile(
    rf"\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?"  # 1,234.50
    rf"|\d{{1,3}}(?:\.\d{{3}}){{2,}}(?:,\d+)?|\d{{1,3}}\.\d{{3}},\d+"  # 1.234.567 and 1.234,50
    rf"|\d{{1,3}}(?:['’]\d{{3}})+(?:\.\d+)?"  # 1'234
    rf"|\d{{1,3}}(?:[{_SPACES}]\d{{3}})+(?:[.,]\d+)?"  # 1 234,50
    r"|\d+(?:_\d+)+"  # 1_234
    r"|\d+,\d{1,2}(?![\d,])|\d+\.\d+(?:[eE][+-]?\d{1,4})?|(?<![A-Za-z])\.\d+|\d+(?:[eE][+-]?\d{1,4})?"
)
_CURRENCY: Final = "$€£¥￥₹₽₩₿¢฿₺₫"
_CURRENCY_CODES: Final = re.compile(
    r"(?:US|CA|AU|HK|NT|R|A|C|S)?\$$|(?:USD|EUR|GBP|JPY|CNY|RMB|CHF|INR|Rs\.?|CAD|AUD|SEK|NOK|DKK)$"
)
_MULTIPLIER: Final = re.compile(
    r"^\s?(?:[kKMBT](?=EUR|USD|GBP|CHF|[^A-Za-z]|$)|(?i:mn|mln|bn|bln|tn|score|gross|crs?|grand)\b"
    r"|个?[万萬亿億千百十兆仟佰拾만억천成折割几幾来來]|[\u3400-\u9fff]{0,2}半)"
)
_BAD_WORDS: Final = re.compile(
    r"n['’]t\b|\b(?:not|no|never|none|neither|nor|without|cannot|unable|sorry|apolog\w*|unknown|unsure|unclear|"
    r"uncertain|missing|error|invalid|null|undefined|true|false|than|least|most|over|under|above|below|between|exceeds?|exceeding|beyond|"
    r"nearly|almost|minimum|maximum|min|max|up\s+to|upto|until|till|or|either|if|unless|minus|negative|plus|times|"
    r"half|quarter|third|double|twice|triple|hundreds?|thousands?|mill(?:ion|iard|ard)\w*|[bt]illion\w*|dozens?|lakhs?|crores?|"
    r"mil(?:le|a|h(?:ão|ões)|j(?:oen|on\w*|ard\w*)|y(?:on|ar)|ion\w*|iard\w*)?|mill(?:ón|ones)|mio|mrd|tausend|tsd|tys|"
    r"tusen|duizend|[tm]eur|тыс\w*|милли(?:он|ард)\w*|млн|млрд|более|менее|больше|меньше|"
    r"mindestens|höchstens|mehr|weniger|über|unter|bis|oder|knapp|zwischen|halb\w*|moins|ou|entre|presque|demie?|"
    r"más|menos|casi|hasta|mais|più|meno|almeno|oltre|more|less|fewer|down|loss(?:es)?|decreased?|fell|squared|cubed|root|"
    r"one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|"
    r"eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|zero|a\.?m|p\.?m|"
    r"nicht|kein\w*|pas|aucun\w*|environ|question|step|version|chapter|section|page|note|example|option)\b"
    r"|[不没沒无無非未负負超至低高少多余餘或]|以上|以下|以内|分之|零|两|[〇一二三四五六七八九]成",
    re.IGNORECASE,
)
_BAD_SIGNS: Final = re.compile(
    r"0[xX]\w|[<>≤≥±×÷√▼▽↓^½⅓⅔¼¾⅛²³¹⁰-⁹∞?？]|\+\s*$|\d\s*\+(?!\d)|\.\.\.|…"
    rf"|\((?:[{_CURRENCY}]\s?0(?:\W0)*|0(?:[,'’{_SPACES}]0)+(?:\.0)?)\s?[{_CURRENCY}]?\)"
)
_COPULA: Final = re.compile(
    r"(?:\b(?:is|are|was|were|be|equals?|total(?:s|ing)?|of|gives?|scored?|rate|rated|answer|result|value|got|costs?|"
    r"(?:comes?|came|amounts?)\s+to|about|approximately|roughly|around|exactly|circa|have|has|had|found|count(?:ed)?|say|with)|[:=：≈~为為是共约約计計得有])"
    r"[\s*_`\"'“”($€£¥￥~≈-]*$",
    re.IGNORECASE,
)
# Marks around a number, and never between two: 2*3 is not 23.
_EMPHASIS: Final = re.compile(r"(?<![\w.*`])[*`]+|[*`]+(?!\.?\w|[*`])")
_WORDS: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")


def read_number(text: str) -> str | None:
    """Return the one number in the text as a JSON-like literal, thousands separators taken out; else None.

    Units, currency and percent signs are left aside: ``42 %`` is 42. A word that changes the number (million,
    minus, 万), compares it (at least, over, 不到), denies it or stands for another number makes it None.
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
    token = tokens[0]
    before, after = text[: token.start()], text[token.end() :]
    signs = before + re.sub(r"\d+", "0", token.group()) + after
    if any(char.isdigit() for char in before + after) or _BAD_SIGNS.search(signs):
        return None
    is_million = _is_money(before, after) and re.match(r"\s?mm?\b", after)
    if is_million or _MULTIPLIER.match(after) or _BAD_WORDS.search(before) or _BAD_WORDS.search(after):
        return None
    sign = _sign(before, after)
    if sign is None or not _is_presented(before, after):
        return None
    return _with_plain_separators(sign, token.group(), before, after)


def _without_odd_digits(text: str) -> str:
    # NFKC turns ½ into 1/2 and 10² into 102; the exponent of a unit (m²) may go
    text = re.sub(r"(?<=[a-zA-Z])[²³]", "", text)
    return "".join("?" if unicodedata.category(char) in {"No", "Nl"} else char for char in text)


def _sign(before: str, after: str) -> str | None:
    """Return the sign in front of the number; None where the number is part of a word or another notation."""
    if re.match(r"[-–—]|[/~]\w|[_:]\S", after) and not re.match(r"[-/][^\W\d_]{2,}", after):
        return None
    if re.search(rf"[-–—][{_SPACES}]+[{_CURRENCY}]?$|\w\($", before):
        # a bullet, a dash, or a minus sign; the argument of a call
        return None
    head = before.rstrip(_SPACES + "*`\"'“”(")
    currency = head.rstrip(_CURRENCY)
    if currency != head:
        head = _CURRENCY_CODES.sub("", currency + "$") if currency[-1:].isalpha() else currency
        head = head.rstrip()
    elif head == before:
        head = _CURRENCY_CODES.sub("", head)
    if head.endswith("-"):
        previous = head[:-1][-1:]
        return "-" if not previous or previous in _SPACES + ":=：(" or previous in _CURRENCY else None
    if head.endswith("+"):
        return "" if not head[:-1].strip() else None
    attached = head[-1:]
    if head == before and attached and (attached in "._/–—#@" or (attached.isalpha() and not _is_cjk(attached))):
        # GPT4, Q3, .5.6, a_1: a name, not an amount; "#3" is a rank, and so it stays
        return "" if attached == "#" else None
    return ""


def _is_presented(before: str, after: str) -> bool:
    """Tell whether the text is about this number: a few words, or a sentence that leads up to it."""
    words = len(_WORDS.findall(before)) + len(_WORDS.findall(after)) + sum(map(_is_cjk, before + after)) // 2
    return words <= 4 or (words <= 14 and _COPULA.search(before) is not None)


def _is_cjk(char: str) -> bool:
    return "\u3400" <= char <= "\u9fff" or "\uf900" <= char <= "\ufaff"


def _with_plain_separators(sign: str, token: str, before: str, after: str) -> str | None:
    if re.fullmatch(r"\d{1,3}(?:\.\d{3}){2,}(?:,\d+)?|\d{1,3}\.\d{3},\d+", token):
        token = token.replace(".", "").replace(",", ".")
    elif re.match(r"0[,'’]\d{3}", token) or (re.fullmatch(r"\d{1,3}\.\d{3}", token) and _is_money(before, after)):
        # 0,234 is no thousands; "€1.234" is one euro and a bit, or a thousand
        return None
    elif re.fullmatch(r"\d+,\d{1,2}", token):
        # "3,50 €" is a decimal comma; "1,2" alone could be two numbers
        if not (_is_money(before, after) or re.match(r"\s?[%A-Za-z]", after)):
            return None
        token = token.replace(",", ".")
    elif re.search(rf"[{_SPACES}]", token) and "," in token:
        token = re.sub(rf"[{_SPACES}]", "", token).replace(",", ".")
    else:
        token = re.sub(rf"[,'’_{_SPACES}]", "", token)
    return _literal(sign + token)


def _is_money(before: str, after: str) -> bool:
    return bool(
        re.match(rf"\s?(?:[{_CURRENCY}]|EUR|USD|GBP|CHF)", after)
        or re.search(rf"(?:[{_CURRENCY}]|EUR|USD|GBP|CHF)\s?$", before)
    )


def _literal(text: str) -> str:
    return re.sub(r"^(-?)\.", r"\g<1>0.", text.removeprefix("+"))


# --- yes and no ------------------------------------------------------------------------------------------

_YES: Final = frozenset(
    {"yes", "y", "true", "yeah", "yep", "是", "是的", "对", "对的", "真", "正确", "對", "對的", "正確", "真的", "没错"}
)
_NO: Final = frozenset({
    "no", "n", "false", "nope", "否", "不是", "不", "不对", "错",
    "错的", "假", "错误", "不正确", "不對", "錯", "錯誤", "假的", "并非",
})  # fmt: skip
_YES_WORD: Final = re.compile(r"\b(?:yes|true|yeah|yep)\b", re.IGNORECASE)
_NO_WORD: Final = re.compile(r"\b(?:no|false|nope)\b", re.IGNORECASE)
_HEDGE: Final = re.compile(
    r"\b(?:but|however|although|though|except|or|either|if|unless|maybe|perhaps|possibly|might|could|both|depends?|"
    r"unclear|unsure|uncertain|unknown|half|partly|partially|sometimes)\b|但|或|可能",
    re.IGNORECASE,
)
_DENIAL: Final = re.compile(
    rf"{_HEDGE.pattern}|n['’]t\b|\b(?:not|never|neither|nor|none|cannot|without|hardly|barely|sort\s+of|kind\s+of|mostly|"
    r"untrue|incorrect|wrong)\b|[不没沒无無非未否错錯假]",
    re.IGNORECASE,
)
_LAST_WORD: Final = re.compile(
    r"(?:\b(?:is|was|says?|say|said|answer|answered|be|as)|[:=：])[\s*_`\"'“”]*(?:yes|true|yeah|yep|no|false|nope)[*_`\"'”.!\s]*$",
    re.IGNORECASE,
)
_LEAD: Final = re.compile(r"[\s*_`\"'“”]*([^\W\d_]+)[*_`\"'”]*\s*[.,;:!。，；：！\n—–-](.*)", re.DOTALL)
_EDGES: Final = " \t\r\n*_`\"'“”‘’.。!！,，;；:：()（）[]"


def read_bool(text: str) -> bool | None:
    """Return the truth value that a yes/no word of the closed list says; None where none, or more than one, does."""
    if len(text) > _LONGEST or "?" in text or "？" in text:
        return None
    word = text.strip(_EDGES).casefold()
    if word in _YES | _NO:
        return word in _YES
    lead = _LEAD.match(text)
    if lead and (said := lead.group(1).casefold()) in _YES | _NO and len(said) > (0 if _is_cjk(said[0]) else 1):
        return _confirmed(said in _YES, lead.group(2))
    return _said_in_sentence(text)


def _confirmed(value: bool, rest: str) -> bool | None:
    """Return the leading word's value if nothing after it says otherwise."""
    if value:
        return None if _NO_WORD.search(rest) or _DENIAL.search(rest) else True
    return None if _YES_WORD.search(rest) or _HEDGE.search(rest) or re.search(r"[是对對真](?!不)", rest) else False


def _said_in_sentence(text: str) -> bool | None:
    # "no" before a noun denies the noun, and a true story is no answer: the word must end the sentence
    if len(_WORDS.findall(text)) > 12 or _DENIAL.search(text) or not _LAST_WORD.search(text):
        return None
    says_yes, says_no = len(_YES_WORD.findall(text)), len(_NO_WORD.findall(text))
    return says_yes == 1 if says_yes + says_no == 1 else None


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
_MONTH: Final = "|".join(MONTHS)
_DAY: Final = r"(?P<d>\d{1,2})(?:st|nd|rd|th)?"
_DATES: Final = (
    re.compile(r"(?<![\d-])(?P<y>\d{4})(?P<sign>[-/.])(?P<m>\d{1,2})(?P=sign)(?P<d>\d{1,2})(?![\dT:-])(?!\s+\d{1,2}:)"),
    re.compile(r"(?<!\d)(?P<y>\d{4})年(?P<m>\d{1,2})月(?P<d>\d{1,2})[日号號]"),
    re.compile(rf"\b(?P<m>{_MONTH})\.?\s+{_DAY},?\s+(?P<y>\d{{4}})\b", re.IGNORECASE),
    re.compile(rf"\b{_DAY}\.?\s+(?:of\s+)?(?P<m>{_MONTH})\.?,?\s+(?P<y>\d{{4}})\b", re.IGNORECASE),
)
# What changes a time where it follows: the half of the day, or a time zone that is no offset.
_NOT_CHANGED: Final = r"(?!\s*[(\[]?(?:[aApP]\.?[mM]\b|[A-Z]{2,5}\b|[A-Z]\w+/|Eastern|Central|Mountain|Pacific))"
_DATE_TIME: Final = re.compile(
    r"(?<![\d-])\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:\s?(?:Z|UTC|GMT)|[+-]\d{2}:?\d{2})?(?![\d:])"
    + _NOT_CHANGED
)
_TIME: Final = re.compile(
    r"(?<![\d:.])([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})?(?![\d:.]\d)" + _NOT_CHANGED
)
_UUID: Final = re.compile(r"(?<![0-9a-fA-F-])[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}(?![0-9a-fA-F-])")
_UNCERTAIN: Final = re.compile(
    r"n['’]t\b|\b(?:not|no|never|or|either|before|after|between|until|till|since|by|from|to|if|unless|maybe|perhaps|"
    r"possibly|might|could|unknown|unsure|unclear|around|about|circa|approximately|except|instead|through|p\.?m|noon|"
    r"afternoon|evening|night|tonight|abends?|nachmittags?|nachts|soir|tarde|noche|sera|bc|bce|half|quarter)\b|[不没非未或到至前后後约約午晚夜]|오후|[?？]",
    re.IGNORECASE,
)


def read_date(text: str) -> str | None:
    """Return the one date in a short text in ISO form: ISO, year first, or with the month by name; else None."""
    found = _only(text, *_DATES)
    if found is None:
        return None
    month = found["m"].casefold()
    try:
        return dt.date(int(found["y"]), MONTHS.get(month) or int(month), int(found["d"])).isoformat()
    except ValueError:
        return None


def read_datetime(text: str) -> str | None:
    """Return the one ISO date with time in a short text; else None."""
    found = _only(text, _DATE_TIME)
    return re.sub(r"\s?(?:UTC|GMT|Z)$", "Z", found[0]) if found else None


def read_time(text: str) -> str | None:
    """Return the one time of day (24 hours) in a short text; else None."""
    found = _only(text, _TIME)
    return None if found is None else f"0{found[0]}" if found[0][1] == ":" else found[0]


def read_uuid(text: str) -> str | None:
    """Return the one UUID in a short text; else None."""
    found = _only(text, _UUID)
    return found[0] if found else None


_UNITS: Final = {
    "second": 1.0, "sec": 1.0, "s": 1.0, "秒": 1.0, "minute": 60.0, "min": 60.0, "分钟": 60.0, "hour": 3600.0, "hr": 3600.0,
    "h": 3600.0, "小时": 3600.0, "day": 86400.0, "天": 86400.0, "week": 604800.0, "周": 604800.0,
    "millisecond": 0.001, "ms": 0.001,
}  # fmt: skip
_DURATION: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]+|秒|分钟|小时|天|周)\.?\s*")


def read_duration(text: str) -> dt.timedelta | None:
    """Return the duration that numbers with units say, such as ``1 hour 30 minutes``; else None."""
    seconds, position, smallest = 0.0, 0, float("inf")
    text = text.strip().replace(" and ", " ").replace(",", " ")
    while position < len(text):
        part = _DURATION.match(text, position)
        word = part.group(2).lower() if part else ""
        unit = _UNITS.get(word) or _UNITS.get(word.removesuffix("s"))
        if part is None or unit is None or unit >= smallest or len(text) > 100:
            return None
        seconds += float(part.group(1)) * unit
        position, smallest = part.end(), unit
    try:
        return dt.timedelta(seconds=seconds) if position else None
    except OverflowError:
        return None


def _only(text: str, *patterns: re.Pattern[str]) -> re.Match[str] | None:
    """Return the only match in a short text that says nothing against it and has no other digit."""
    if len(text) > _LONGEST or len(_WORDS.findall(text)) > 12 or _UNCERTAIN.search(text):
        return None
    found = [match for pattern in patterns for match in pattern.finditer(text)]
    if len(found) != 1 or re.search(r"\d", text[: found[0].start()] + text[found[0].end() :]):
        return None
    return found[0]
