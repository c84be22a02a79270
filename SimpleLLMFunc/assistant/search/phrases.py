"""Phrases by which a model says that it does not know: a file of them, and what becomes of it.

`phrase_pattern` says how they are written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from SimpleLLMFunc.assistant.search.phrase_pattern import CLAUSE_ENDS, compile_phrase, expanded
from SimpleLLMFunc.errors import ConfigError

__all__ = ["Language", "Phrase", "built_in_languages", "compile_phrase", "read_languages"]


_PUNCTUATION = re.compile(r"([,.;:!?…，。；：！？、()\[\]])")
_NO_SPACES = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\u0e00-\u0eff]")


@dataclass(frozen=True, slots=True)
class Phrase:
    """One phrase.

    Attributes:
        text: as it was written.
        says: what it says about the model, in a few words.
        weight: how much it counts; an answer is uncertain from 1 on.
        pattern: finds it in a normalised sentence.
    """

    text: str
    says: str
    weight: float
    pattern: re.Pattern[str]


@dataclass(frozen=True)
class Language:
    """The phrases of one language, and what is needed to read them.

    Attributes:
        selves: how the speaker speaks of itself; without such a word a question asks the reader.
        words: whether its words are set apart by spaces.
        fillers: words that say nothing, taken out before anything is compared.
        lead_ins: what may stand at the beginning of a clause before a phrase that is to begin it.
        conditions: words before a phrase in its clause that make it mean something else ("if").
        introducers: parts of words before a colon that announce somebody else's words ("translat", "意思").
        sets: names of lists of words, for the phrases.
        idioms: phrases that only look like uncertainty; they are taken out first.
        aliases: what is read as something else ("本助手" as "我").
        phrases, softeners, other_matters: what counts, what adds to what counts, what takes from it.
    """

    name: str
    words: bool = True
    fillers: tuple[str, ...] = ()
    lead_ins: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    idioms: tuple[str, ...] = ()
    introducers: tuple[str, ...] = ()
    selves: tuple[str, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()
    sets: tuple[tuple[str, str], ...] = ()
    phrases: tuple[Phrase, ...] = ()
    softeners: tuple[Phrase, ...] = ()
    other_matters: tuple[Phrase, ...] = ()

    def normalized(self, sentence: str) -> str:
        """Return a sentence as the phrases want it: one spelling, fillers and idioms taken out."""
        text = sentence.replace("’", "'").replace("‘", "'").lower()
        if self.words:
            text = " ".join(_PUNCTUATION.sub(r" \1 ", expanded(text)).split())
            text = " ".join(self._filler_pattern.sub(" ", text).split())
            text = re.sub(r"(?:, )+,", ",", text)
            return " ".join(self._idiom_pattern.sub(" … ", text).split()).strip(" ,")
        text = "".join(text.split())
        for written, read in self.aliases:
            text = text.replace(written, read)
        return self._idiom_pattern.sub("…", text).strip(" ,")

    def is_conditional(self, before: str) -> bool:
        """Whether what stands before a phrase makes it mean something else."""
        return self._condition_pattern.search(_CLAUSES.split(before)[-1]) is not None

    def is_about_itself(self, words: str) -> bool:
        """Whether the speaker is meant by the words."""
        return self._self_pattern.search(words) is not None

    def introduces(self, before: str) -> bool:
        """Whether what stands before a colon announces somebody else's words."""
        return self._introducer_pattern.search(before) is not None

    def compiled(self, phrase: str) -> re.Pattern[str]:
        """Return the pattern of a phrase of this language.

        Raises:
            ConfigError: the marks in it make no sense.
        """
        return compile_phrase(phrase, words=self.words, lead_ins=self.lead_ins, sets=dict(self.sets))

    def with_phrases(self, phrases: Iterable[Phrase]) -> Language:
        """Return the language with more phrases."""
        return replace(self, phrases=(*self.phrases, *phrases))

    @cached_property
    def _filler_pattern(self) -> re.Pattern[str]:
        return _any_of(self.fillers, words=self.words)

    @cached_property
    def _condition_pattern(self) -> re.Pattern[str]:
        return _any_of(self.conditions, words=self.words)

    @cached_property
    def _self_pattern(self) -> re.Pattern[str]:
        return _any_of(self.selves, words=self.words)

    @cached_property
    def _introducer_pattern(self) -> re.Pattern[str]:
        return _any_of(self.introducers, words=False)

    @cached_property
    def _idiom_pattern(self) -> re.Pattern[str]:
        if not self.idioms:
            return _NEVER
        return re.compile("|".join(self.compiled(idiom).pattern for idiom in self.idioms))


_NEVER: Final = re.compile(r"(?!)")
_CLAUSES: Final = re.compile(f"[{CLAUSE_ENDS}]")


def _any_of(texts: Iterable[str], *, words: bool) -> re.Pattern[str]:
    alternatives = "|".join(re.escape(text) for text in sorted(texts, key=len, reverse=True))
    if not alternatives:
        return _NEVER
    return re.compile(rf"(?<!\S)(?:{alternatives})(?!\S)" if words else f"(?:{alternatives})")


# --- the file ------------------------------------------------------------------------------------------------


def built_in_languages() -> dict[str, Language]:
    """Return the languages that come with the library."""
    return languages_of(json.loads(files("SimpleLLMFunc.assistant.search").joinpath("phrases.json").read_text("utf-8")))


def read_languages(path: str | Path) -> dict[str, Language]:
    """Return the languages of a file of the same form as the library's own.

    Raises:
        FileNotFoundError: there is none.
        ConfigError: it is no such file.
    """
    try:
        data = json.loads(Path(path).read_text("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{str(path)!r} is no file of phrases: {type(error).__name__}: {error}") from None
    return languages_of(data, where=str(path))


def languages_of(data: Any, where: str = "phrases.json") -> dict[str, Language]:
    """Return the languages in decoded data.

    Raises:
        ConfigError: the data are of another form; names the place.
    """
    if not isinstance(data, Mapping):
        raise ConfigError(f"{where}: an object is wanted, with a language in each field.")
    return {str(name): _language(str(name), entry, f"{where}: {name}") for name, entry in data.items()}


def _language(name: str, entry: Any, where: str) -> Language:
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{where}: an object is wanted.")
    known = set(Language.__dataclass_fields__) - {"name"}
    if unknown := sorted(set(entry) - known):
        raise ConfigError(f"{where}: unknown {', '.join(unknown)}. Known: {', '.join(sorted(known))}.")
    bare = Language(
        name,
        entry.get("words", True) is not False,
        fillers=_texts(entry, "fillers", where),
        lead_ins=_texts(entry, "lead_ins", where),
        conditions=_texts(entry, "conditions", where),
        idioms=_texts(entry, "idioms", where),
        introducers=_texts(entry, "introducers", where),
        selves=_texts(entry, "selves", where),
        aliases=_pairs(entry, "aliases", where),
        sets=_pairs(entry, "sets", where),
    )
    for idiom in bare.idioms:
        bare.compiled(idiom)
    return replace(
        bare,
        phrases=tuple(_phrases(entry, "phrases", where, bare)),
        softeners=tuple(_phrases(entry, "softeners", where, bare)),
        other_matters=tuple(_phrases(entry, "other_matters", where, bare)),
    )


def _phrases(entry: Mapping[str, Any], field: str, where: str, language: Language) -> Iterator[Phrase]:
    groups = entry.get(field, [])
    if not isinstance(groups, list):
        raise ConfigError(f"{where}.{field}: a list is wanted.")
    for number, group in enumerate(groups):
        place = f"{where}.{field}[{number}]"
        if not isinstance(group, Mapping):
            raise ConfigError(f'{place}: an object is wanted, such as {{"weight": 1, "any": ["beats me"]}}.')
        weight = group.get("weight", 1.0)
        if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not abs(weight) <= 100:
            raise ConfigError(f"{place}: its weight is a number, not {weight!r}.")
        says = str(group.get("says") or "is uncertain")
        for text in _texts(group, "any", place):
            yield Phrase(text, says, float(weight), language.compiled(text))


def _pairs(entry: Mapping[str, Any], field: str, where: str) -> tuple[tuple[str, str], ...]:
    pairs = entry.get(field, {})
    if not isinstance(pairs, Mapping) or not all(isinstance(text, str) for text in pairs.values()):
        raise ConfigError(f"{where}.{field}: an object of texts is wanted.")
    return tuple((str(name), text) for name, text in pairs.items())


def _texts(entry: Mapping[str, Any], field: str, where: str) -> tuple[str, ...]:
    texts = entry.get(field, [])
    if not isinstance(texts, list) or not all(isinstance(text, str) and text.strip() for text in texts):
        raise ConfigError(f"{where}.{field}: a list of texts is wanted.")
    return tuple(texts)


def is_without_spaces(text: str) -> bool:
    """Whether a text is of a language that sets no spaces between its words."""
    return _NO_SPACES.search(text) is not None
