"""The words by which remembered texts are found, and whether two of them say the same. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from SimpleLLMFunc.assistant.words import WORDS

_WORD: Final = re.compile(r"[a-z0-9_]+|[^\W\d_a-z]+", re.IGNORECASE)
_CJK: Final = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
_COMMON: Final = frozenset(" ".join(WORDS["common words"]).split())


def words_of(text: str) -> list[str]:
    """Return what two texts can share: words, and pairs of characters where a script has no spaces."""
    found: dict[str, None] = {}
    for word in _WORD.findall(text.casefold()):
        if len(word) == 1 or not _CJK.search(word):
            found[word] = None
        else:
            found |= dict.fromkeys(word[start : start + 2] for start in range(len(word) - 1))
    return [word for word in found if word not in _COMMON]


def same(text: str, known: Iterable[str]) -> str | None:
    """Return the first known text that says the same in nearly the same words, None if no text does."""
    own, own_words = _normalized(text), set(words_of(text))
    for each in known:
        if _normalized(each) == own:
            return each
        others = set(words_of(each))
        # Digits decide: "lives at number 5" and "lives at number 6" are two facts.
        if _digits(each) == _digits(text) and len(own_words & others) >= 0.85 * max(len(own_words | others), 1):
            return each
    return None


def _normalized(text: str) -> str:
    return "".join(_WORD.findall(text.casefold()))


def _digits(text: str) -> list[str]:
    return re.findall(r"\d+", text)
