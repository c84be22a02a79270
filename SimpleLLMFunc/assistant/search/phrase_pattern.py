r"""The marks that phrases are written with, and the patterns that become of them.

A phrase is written as plain words with a few marks, and never as a regular expression, so that whatever a user adds
takes linear time:

| mark | stands for |
|---|---|
| ``(say\|tell)`` | one of these |
| ``(you)?`` | this, or nothing |
| ``...4`` | at most so many words (characters where a language has no spaces), 6 without a number, inside a clause |
| ``^`` at the beginning | the clause begins here, a lead-in such as "sorry" aside |
| ``$`` at the end | the clause ends here |
| ``{tell}`` | one of the words of that name in the language's `sets` |

English is compared in lower case, without contractions ("can't" is "can not") and without filler words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from SimpleLLMFunc.errors import ConfigError, cut

__all__ = ["CLAUSE_ENDS", "compile_phrase", "expanded"]

MAX_PHRASE_CHARS: Final = 2000
MAX_GAPS: Final = 4
MAX_GAP: Final = 30
_DEFAULT_GAP = 6

_PIECE = re.compile(r"\.{3}\d{0,2}|\([^()]*\)\??|\s+|.", re.DOTALL)
_SET = re.compile(r"\{(\w+)\}")
CLAUSE_ENDS = re.escape(",.;:!?…，。；：！？、")
"""For a class of characters in a pattern."""

_CONTRACTIONS: Final = (
    (re.compile(r"\bcannot\b"), "can not"),
    (re.compile(r"\bcan't\b"), "can not"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"\b(do|does|did|is|are|was|were|have|has|had|could|would|should|must|need)n't\b"), r"\1 not"),
    (re.compile(r"\bi'm\b"), "i am"),
    (re.compile(r"\b(i|you|we|they)'ve\b"), r"\1 have"),
    (re.compile(r"\b(i|you|he|she|we|they|it)'d\b"), r"\1 would"),
    (re.compile(r"\b(i|you|he|she|we|they|it)'ll\b"), r"\1 will"),
    (re.compile(r"\b(you|we|they)'re\b"), r"\1 are"),
    (re.compile(r"\b(it|that|there|what|here)'s\b"), r"\1 is"),
)


def expanded(text: str) -> str:
    """Return English without contractions; in lower case."""
    for pattern, full in _CONTRACTIONS:
        text = pattern.sub(full, text)
    return text


def compile_phrase(
    text: str, *, words: bool, lead_ins: Iterable[str] = (), sets: Mapping[str, str] | None = None
) -> re.Pattern[str]:
    """Return the pattern that finds a phrase in a normalised sentence; its time is linear in the sentence.

    Raises:
        ConfigError: the marks in it make no sense.
    """
    if len(text) > MAX_PHRASE_CHARS:
        raise _unusable(text, f"it is longer than {MAX_PHRASE_CHARS} characters")
    written = _with_sets(" ".join(text.lower().replace("’", "'").split()), sets or {}, text)
    pieces = _PIECE.findall(expanded(written) if words else written)
    gaps = [_gap_size(piece) for piece in pieces if piece.startswith("...")]
    first, last = pieces[:1] == ["^"], pieces[-1:] == ["$"]
    inner = pieces[first : len(pieces) - last]
    if not any(piece.isalnum() or piece.startswith("(") for piece in inner):
        raise _unusable(text, "it holds no words")
    if any(piece in {"(", ")", "?", "^", "$", "{", "}"} for piece in inner) or any(
        mark in piece.removesuffix("?") for piece in inner if len(piece) > 1 for mark in "?^${}"
    ):
        raise _unusable(text, "one of the marks ( ) ? ^ $ { } stands where it cannot stand")
    if len(gaps) > MAX_GAPS or max(gaps, default=0) > MAX_GAP:
        raise _unusable(text, f"it may have {MAX_GAPS} gaps at most, of at most {MAX_GAP} each")
    inner = _stripped(inner)
    if inner[0].startswith("..."):
        raise _unusable(text, "it begins with a gap")
    opening = list(lead_ins) if first else None
    return re.compile((_of_words if words else _of_characters)(inner, opening, ends=last))


def _with_sets(written: str, sets: Mapping[str, str], text: str) -> str:
    """Return a phrase with its sets written out, as groups or as part of the group they stand in."""

    def words_of(match: re.Match[str]) -> str:
        if match[1] not in sets:
            raise _unusable(text, f"there is no set {match[0]}; there are: {', '.join(sets) or 'none'}")
        before = written[: match.start()]
        is_inside = before.count("(") > before.count(")")
        return sets[match[1]] if is_inside else f"({sets[match[1]]})"

    return _SET.sub(words_of, written)


def _stripped(pieces: list[str]) -> list[str]:
    start = next(number for number, piece in enumerate(pieces) if not piece.isspace())
    return pieces[start:]


def _of_words(pieces: list[str], lead_ins: list[str] | None, *, ends: bool) -> str:
    made = ["(?<!\\S)"]
    if lead_ins is not None:
        opening = "|".join(re.escape(each) for each in lead_ins) or "(?!)"
        made = [f"(?:^|(?<=[{CLAUSE_ENDS}] ))(?:(?:{opening}) (?:, )?){{0,4}}"]
    space = ""
    for token in _tokens(pieces):
        if token.startswith("..."):
            made.append(f"(?: [^\\s{CLAUSE_ENDS}]+){{0,{_gap_size(token)}}}")
            continue
        group = _group(token)
        if token.endswith(")?") and not space:
            made.append(f"(?:{group} )?")  # at the very beginning it brings the space behind it
            continue
        made.append(f"(?:{space}{group})?" if token.endswith(")?") else space + group)
        space = " "
    return "".join(made) + (f"(?= [{CLAUSE_ENDS}]|$)" if ends else "(?!\\S)")


def _group(token: str) -> str:
    """Return the pattern of a word, or of a group of which one is meant."""
    if not token.startswith("("):
        return re.escape(token)
    return "(?:" + "|".join(re.escape(each.strip()) for each in token.removesuffix("?")[1:-1].split("|")) + ")"


def _tokens(pieces: Iterable[str]) -> Iterator[str]:
    """Yield groups, gaps and words; letters that stand together are a word."""
    word = ""
    for piece in pieces:
        if piece.isspace() or piece.startswith(("(", "...")):
            if word:
                yield word
            word = ""
            if not piece.isspace():
                yield piece
        else:
            word += piece
    if word:
        yield word


def _of_characters(pieces: list[str], lead_ins: list[str] | None, *, ends: bool) -> str:
    made = []
    if lead_ins is not None:
        opening = "|".join(re.escape(each) for each in sorted(lead_ins, key=len, reverse=True)) or "(?!)"
        made.append(f"(?:^|(?<=[{CLAUSE_ENDS}]))(?:(?:{opening})，?){{0,4}}")
    for number, piece in enumerate(pieces):
        if piece.startswith("..."):
            # Between "I" and what I do not know no other person may step.
            others = "我你您他她它" if pieces[number - 1] == "我" else ""
            made.append(f"[^{others}{CLAUSE_ENDS}]{{0,{_gap_size(piece)}}}")
        elif not piece.isspace():
            made.append(_group(piece) + "?" * piece.endswith(")?") + "(?!们)" * (piece == "我"))
    return "".join(made) + (f"(?=[{CLAUSE_ENDS}]|$)" if ends else "")


def _gap_size(piece: str) -> int:
    return int(piece[3:] or _DEFAULT_GAP)


def _unusable(text: str, problem: str) -> ConfigError:
    return ConfigError(f"the phrase {cut(text, 80)!r} cannot be used: {problem}.")
