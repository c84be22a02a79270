"""Which of many texts are most like another one, without a model: for examples in the prompt, and for tools."""

from __future__ import annotations

import heapq
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property
from operator import mul
from typing import TypeAlias

from SimpleLLMFunc.runtime import in_thread, off_loop_if_large

_K1 = 1.2
_B = 0.75
_LONGEST = 5_000
"""Characters of a text that are looked at."""

_WORD = re.compile(r"[^\W_]+")
_CJK = re.compile(r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+)")


Embed: TypeAlias = Callable[[Sequence[str]], Awaitable[list[list[float]]]]
"""``await embed(texts)`` gives a vector for each."""


class TextIndex:
    """Texts, scored by how like another one they are: by their vectors where there is an `embed`, else by their words.

    Of words are compared the word and its three-letter pieces, so that endings matter little; of Chinese, Japanese and
    Korean text, which has no spaces, single characters and pairs. A piece that many of the texts have says little. The
    same texts and the same question always give the same order.

    Source: BM25, Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009), section 3.
    """

    def __init__(self, texts: Sequence[str], embed: Embed | None = None) -> None:
        self._texts = texts
        self._embed = embed
        self._vectors: list[list[float]] | None = None

    async def scores(self, text: str) -> list[float]:
        """Return a score for each of the texts, the higher the more alike; what is asked for first embeds them all."""
        size = sum(map(len, self._texts))
        if self._embed is None:
            return await off_loop_if_large(size, lambda: self.by_words(text))
        if self._vectors is None:
            self._vectors = [_unit(vector) for vector in await self._embed(self._texts)]
        (asked,) = await self._embed([text])
        vectors, unit = self._vectors, _unit(asked)
        return await in_thread(lambda: [sum(map(mul, unit, vector)) for vector in vectors])

    def by_words(self, text: str) -> list[float]:
        """Return the scores by BM25; 0 for nothing in common."""
        scores = [0.0] * len(self._texts)
        for piece in dict.fromkeys(_pieces(text)):
            for number, weight in self._weights.get(piece, ()):
                scores[number] += weight
        return scores

    @cached_property
    def _weights(self) -> dict[str, list[tuple[int, float]]]:
        """What each piece says for the texts that have it, by their numbers."""
        counted = [Counter(_pieces(text)) for text in self._texts]
        lengths = [sum(counts.values()) for counts in counted]
        mean = (sum(lengths) / len(lengths) if lengths else 0.0) or 1.0
        found_in = Counter(piece for counts in counted for piece in counts)
        weights: dict[str, list[tuple[int, float]]] = {}
        for number, counts in enumerate(counted):
            room = _K1 * (1 - _B + _B * lengths[number] / mean)
            for piece, times in counts.items():
                rarity = math.log(1 + (len(counted) - found_in[piece] + 0.5) / (found_in[piece] + 0.5))
                weights.setdefault(piece, []).append((number, rarity * times * (_K1 + 1) / (times + room)))
        return weights


def _unit(vector: list[float]) -> list[float]:
    length = math.hypot(*vector) or 1.0
    return [number / length for number in vector]


def best_of(scores: Sequence[float], count: int) -> list[int]:
    """Return the numbers of the `count` highest scores, the highest first; of equals the earlier one."""
    return heapq.nlargest(count, range(len(scores)), key=lambda number: (scores[number], -number))


def _pieces(text: str) -> list[str]:
    pieces: list[str] = []
    for word in _WORD.findall(unicodedata.normalize("NFKC", text[:_LONGEST]).casefold()):
        for number, part in enumerate(_CJK.split(word)):
            if number % 2:
                pieces += part
                pieces += (part[at : at + 2] for at in range(len(part) - 1))
            elif part:
                pieces.append(f" {part} ")
                framed = f" {part} "
                pieces += (framed[at : at + 3] for at in range(len(framed) - 2))
    return pieces
