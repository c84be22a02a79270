"""Secrets that nobody told us, known by their looks.

Every pattern here takes time linear in the text: none starts with an unbounded repetition, and a match that fails
has read a bounded piece or one that no other start reads again.
"""

from __future__ import annotations

import re

from SimpleLLMFunc.logger.known import MASK

__all__ = ["is_secret_name", "mask_looks"]

_NAMES = (
    r"(?:api[_-]?keys?|(?:access|auth|refresh|id|session|bearer)[_-]?token|client[_-]?secret"
    r"|(?:secret|private)[_-]?(?:access[_-]?)?key|password|passwd|passphrase|pwd)"
)
_SECRET_NAME = re.compile(
    rf"{_NAMES}|^(?:.*[_-])?(?:token|secret|secrets|auth|authorization|credentials?|cookie)$",
    re.IGNORECASE | re.ASCII,
)

# A value behind a name: a list, a quoted text with the backslashes that JSON inside JSON brings, or a bare word.
_VALUE = (
    r"(?:\[[^\]]*\]?"
    r'|[bru]?"(?:[^"\\]|\\.)*"?'
    r"|[bru]?'(?:[^'\\]|\\.)*'?"
    r'|\\+"[^"]*"?'
    r"|\\+'[^']*'?"
    r"|[^\s\"'&,;)}\]<>\[]+)"
)
_FIELD = re.compile(
    rf"({_NAMES}\\*[\"']?\s{{0,8}}(?:=>|[:=])\s{{0,8}})({_VALUE})", re.IGNORECASE | re.ASCII | re.DOTALL
)
# These two are everyday words: only where code or JSON assigns to them.
_WORD = re.compile(
    rf"((?:token|secret)(?:=|\\*[\"']\s{{0,8}}[:=]\s{{0,8}}))({_VALUE})", re.IGNORECASE | re.ASCII | re.DOTALL
)
# A header as Python shows it: ('x-api-key', 'value').
_PAIR = re.compile(
    rf"(\([bru]?[\"'][a-z0-9-]{{0,24}}?(?:{_NAMES}|authorization|cookie)[\"'],\s{{0,4}})({_VALUE})",
    re.IGNORECASE | re.ASCII | re.DOTALL,
)
_AUTHORIZATION = re.compile(
    r"(authorization\\*[\"']?\s{0,8}[:=,]\s{0,8}[bru]?\\*[\"']?(?:[a-z]{1,20}\s{1,8})?)([^\s\"',;)}\]\\]+)",
    re.IGNORECASE | re.ASCII,
)
_BEARER = re.compile(
    r"(bearer(?:\s{1,8}|\s{0,8}[:=]\s{0,8}|%20|\+))(?!(?:authentication|authorization|credentials?|tokens?)\b)"
    r"([A-Za-z0-9._~+/=*-]{6,})",
    re.IGNORECASE | re.ASCII,
)
# fmt: off
_PREFIXES = (
    "sk-", "sk_live_", "sk_test_", "rk_live_", "gsk_", "xai-", "hf_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_",
    "glpat-", "AIza", "AKIA", "ASIA", "xoxa-", "xoxb-", "xoxp-", "xoxs-", "pplx-", "nvapi-", "tvly-", "npm_", "pypi-",
    "lsv2_", "jina_", "r8_",
)
# fmt: on
_PREFIXED = re.compile(f"({'|'.join(map(re.escape, _PREFIXES))})([A-Za-z0-9_*-]{{8,}})")
_JWT = re.compile(
    r"(?:(?<![A-Za-z0-9_-])|(?<=\\[abfnrtv]))eyJ[A-Za-z0-9_-]{6,}+\.[A-Za-z0-9_-]{6,}+(?:\.[A-Za-z0-9_-]*+)?"
)
# Up to the last @ before the next slash; a password with a slash in it is taken too, unless the text before the slash
# is a port.
_USERINFO = re.compile(r"(?<=://)(?:[^\s/?#\"'<>]{0,512}@|[^\s/?#\"'<>:@]{0,128}:(?!\d{1,5}/)[^\s\"'<>@]{0,512}@)")
_QUERY = re.compile(
    r"((?:[?&;]|%3F|%26)(?:[a-z0-9_.-]{0,24}?(?:key|token|secret|signature|credential|password)|sig|auth|pwd)"
    r"(?:=|%3D))([^&\s\"'<>#]+)",
    re.IGNORECASE | re.ASCII,
)
_PEM = re.compile(r"(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----)[^-]*")


def _masked_field(match: re.Match[str]) -> str:
    name, value = match.groups()
    bare = value.strip("\\\"'")
    if not bare or bare.lower() in {"none", "null", "true", "false", "…", "...", MASK}:
        return match.group()
    opening = re.match(r"[bru]?\\*[\"']|\[", value)
    if opening is None:
        return name + MASK
    start = opening.group()
    closing = "]" if start == "[" else start.lstrip("bru")
    return name + start + MASK + closing


def _masked_key(match: re.Match[str]) -> str:
    prefix, rest = match.groups()
    before = match.string[max(match.start() - 2, 0) : match.start()]
    digit, upper, lower = (any(map(test, rest)) for test in (str.isdigit, str.isupper, str.islower))
    if before[-1:].isalnum() and not re.fullmatch(r"\\[abfnrtv]", before):
        # "risk-assessment" holds "sk-" too: inside a word only what looks random is a key.
        is_key = len(rest) >= 16 and upper and (lower or digit)
    else:
        is_key = prefix == "sk-" or (len(rest) >= 16 and (upper or digit))
    return prefix + MASK if is_key else match.group()


# What tells at little cost that a pattern cannot match. All of it looks at the text in lower case; each search goes from
# one occurrence of its first letters to the next, and says no more than what the pattern asks for at that place.
_ASSIGNED = r"\\*[\"']?\s{0,8}[:=]"
_ASSIGNED_NAMES: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "key",
        re.compile(
            r"key(?:(?<=apikey)|(?<=api[_-]key)|(?<=secretkey)|(?<=secret[_-]key)|(?<=privatekey)|(?<=private[_-]key)"
            rf"|(?<=accesskey)|(?<=access[_-]key))s?{_ASSIGNED}"
        ),
    ),
    ("token", re.compile(f"token{_ASSIGNED}")),
    ("secret", re.compile(f"secret{_ASSIGNED}")),
    ("pass", re.compile(f"pass(?:word|wd|phrase){_ASSIGNED}")),
    ("pwd", re.compile(f"pwd{_ASSIGNED}")),
)


def _ends_of_prefixes(last: str) -> re.Pattern[str]:
    """Return a pattern that finds the end of a prefix of a key, and enough of the key behind it."""
    ends = "|".join(f"(?<={re.escape(prefix)})" for prefix in _PREFIXES if prefix.endswith(last))
    return re.compile(f"{last}(?=[A-Za-z0-9_*-]{{8}})(?:{ends})")


_ENDS = (("-", _ends_of_prefixes("-")), ("_", _ends_of_prefixes("_")))
_OTHER_PREFIXES = re.compile("A(?:Iza|KIA|SIA)")
_OPENED = re.compile(r"\([bru]?[\"']", re.IGNORECASE)


def _has_assigned_name(text: str, lowered: str) -> bool:
    if ":" not in text and "=" not in text:
        return False
    for word, pattern in _ASSIGNED_NAMES:  # noqa: SIM110 - a generator takes several times as long
        if word in lowered and pattern.search(lowered):
            return True
    return False


def _has_query(text: str, lowered: str) -> bool:
    is_quoted = "%" in text
    if "=" not in text and not (is_quoted and "%3d" in lowered):
        return False
    return "?" in text or "&" in text or ";" in text or (is_quoted and ("%3f" in lowered or "%26" in lowered))


def _has_prefix(text: str) -> bool:
    for last, pattern in _ENDS:
        if last in text and pattern.search(text):
            return True
    return "A" in text and _OTHER_PREFIXES.search(text) is not None


def mask_looks(text: str) -> str:
    """Return `text` without what looks like a secret.

    Every error, log line and trace passes through here, and nearly none holds a secret: what follows is written out, for
    a loop over rules would take longer than the rules.
    """
    # A mask brings no character that a later rule begins with, so all of them may ask what the text was before.
    lowered = text.lower()
    has_name = _has_assigned_name(text, lowered)
    if "PRIVATE KEY-----" in text:
        text = _PEM.sub(rf"\1{MASK}", text)
    if "(" in text and _OPENED.search(text):
        text = _PAIR.sub(_masked_field, text)
    if "authorization" in lowered:
        text = _AUTHORIZATION.sub(rf"\1{MASK}", text)
    if has_name:
        text = _WORD.sub(_masked_field, _FIELD.sub(_masked_field, text))
    if "bearer" in lowered:
        text = _BEARER.sub(rf"\1{MASK}", text)
    if "://" in text:
        text = _USERINFO.sub(f"{MASK}@", text)
    if _has_query(text, lowered):
        text = _QUERY.sub(rf"\1{MASK}", text)
    if _has_prefix(text):
        text = _PREFIXED.sub(_masked_key, text)
    if "eyJ" in text:
        text = _JWT.sub(MASK, text)
    return text


def is_secret_name(name: str) -> bool:
    """Say whether what stands behind this name, in data, is a secret."""
    return _SECRET_NAME.search(name) is not None
