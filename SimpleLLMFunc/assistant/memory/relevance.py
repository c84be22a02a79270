"""How much a remembered text has to do with a question: shared pieces, age, and closeness of vectors. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

__all__ = ["cosine", "freshness", "normalized", "overlap", "pieces", "same"]

_WORD = re.compile(r"[a-z0-9_]+|[^\W\d_a-z]+", re.IGNORECASE)
_CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
_HALF_LIFE = 30 * 86_400.0
"""Seconds after which a memory counts half."""

_COMMON = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "but",
        "by",
        "can",
        "do",
        "does",
        "for",
        "from",
        "has",
        "have",
        "he",
        "how",
        "i",
        "in",
        "is",
        "it",
        "me",
        "my",
        "of",
        "on",
        "or",
        "our",
        "she",
        "so",
        "that",
        "the",
        "their",
        "they",
        "this",
        "to",
        "was",
        "we",
        "what",
        "when",
        "where",
        "which",
        "who",
        "why",
        "will",
        "with",
        "you",
        "your",
        "的",
        "了",
        "是",
        "我",
        "你",
        "他",
        "她",
        "它",
        "在",
        "和",
        "吗",
        "呢",
        "什么",
        "怎么",
        "怎样",
        "多少",
        "哪里",
        "请问",
        "我的",
        "你的",
        "一下",
        "可以",
        "这个",
        "那个",
    ]
)


def pieces(text: str) -> set[str]:
    """Return what two texts can share: words, and pairs of characters where a script has no spaces."""
    found: set[str] = set()
    for word in _WORD.findall(text.casefold()):
        if not _CJK.search(word) or len(word) == 1:
            found.add(word)
        else:
            found.update(word[start : start + 2] for start in range(len(word) - 1))
    return found - _COMMON


def overlap(asked: set[str], text: str) -> float:
    """Return how much of a question's pieces a text has, 0 to 1; long texts gain little by their length."""
    if not asked:
        return 0.0
    own = pieces(text)
    shared = len(asked & own)
    return shared / math.sqrt(len(asked) * max(len(own), 1))


def freshness(age_seconds: float) -> float:
    """Return 1 for a memory of now, halved every thirty days."""
    return float(0.5 ** (max(age_seconds, 0.0) / _HALF_LIFE))


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the cosine of the angle between two vectors; 0 where they cannot be compared."""
    if len(one) != len(other):
        return 0.0
    lengths = math.hypot(*one) * math.hypot(*other)
    return sum(a * b for a, b in zip(one, other, strict=True)) / lengths if lengths else 0.0


def normalized(text: str) -> str:
    """Return the text without case, spaces and punctuation: what two memories of the same thing share."""
    return "".join(_WORD.findall(text.casefold()))


def same(text: str, known: Iterable[str]) -> str | None:
    """Return the first known text that says the same in nearly the same words, None where there is none."""
    own, own_pieces = normalized(text), pieces(text)
    for each in known:
        if normalized(each) == own:
            return each
        others = pieces(each)
        # Digits decide: "lives at number 5" and "lives at number 6" are two facts.
        if _digits(each) == _digits(text) and len(own_pieces & others) >= 0.85 * max(len(own_pieces | others), 1):
            return each
    return None


def _digits(text: str) -> list[str]:
    return re.findall(r"\d+", text)
