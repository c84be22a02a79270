"""Unknown secrets, recognised by their form.

Every pattern takes time linear in the text: none starts with an unbounded repetition, and a failed match has read a
bounded piece, or one that no other start reads again.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from SimpleLLMFunc.logger.known import MASK

_NAMES = (
    r"(?:api[_-]?keys?|(?:access|auth|refresh|id|session|bearer)[_-]?token|client[_-]?secret"
    r"|(?:secret|private)[_-]?(?:access[_-]?)?key|password|passwd|passphrase|pwd)"
)
_SECRET_NAME = re.compile(
    rf"{_NAMES}|^(?:.*[_-])?(?:token|secret|secrets|auth|authorization|credentials?|cookie)$", re.IGNORECASE | re.ASCII
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
    return name + start + MASK + ("]" if start == "[" else start.lstrip("bru"))


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


# A cheap test on the text in lower case: `_FIELD` takes fifteen times as long, and few texts match.
_ASSIGNED = re.compile(r"(?:keys?|token|secret|pass(?:word|wd|phrase)|pwd)\\*[\"']?\s{0,8}[:=]")

# In order; each rule has strings, one of which the text in lower case must contain.
_RULES: tuple[tuple[tuple[str, ...], re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (("private key-----",), _PEM, rf"\1{MASK}"),
    (("(",), _PAIR, _masked_field),
    (("authorization",), _AUTHORIZATION, rf"\1{MASK}"),
    (("bearer",), _BEARER, rf"\1{MASK}"),
    (("://",), _USERINFO, f"{MASK}@"),
    (("=", "%3d"), _QUERY, rf"\1{MASK}"),
    (tuple(prefix.lower() for prefix in _PREFIXES), _PREFIXED, _masked_key),
    (("eyj",), _JWT, MASK),
)


def mask_looks(text: str) -> str:
    """Return `text` with everything masked that looks like a secret."""
    lowered = text.lower()
    if _ASSIGNED.search(lowered):
        text = _WORD.sub(_masked_field, _FIELD.sub(_masked_field, text))
    # A mask holds no first character of a later rule, so all rules may test the original text.
    for signs, pattern, replacement in _RULES:
        if any(sign in lowered for sign in signs):
            text = pattern.sub(replacement, text)
    return text


def is_secret_name(name: str) -> bool:
    """Say whether the value of this name, in data, is a secret."""
    return _SECRET_NAME.search(name) is not None
