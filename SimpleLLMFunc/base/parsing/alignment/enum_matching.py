"""An enum's or a literal's value in the model's words: exact, folded, or the only one that a short text names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from SimpleLLMFunc.base.parsing.alignment.scalars import read_bool, read_number
from SimpleLLMFunc.base.parsing.alignment.shape import ChoiceShape
from SimpleLLMFunc.base.parsing.json_node import is_number_of, quoted

_LONGEST: Final = 600
_MAX_WORDS: Final = 12
_CJK: Final = "\u3400-\u9fff\uf900-\ufaff\u3040-\u30ff\uac00-\ud7af"
_WORD: Final = re.compile(rf"[{_CJK}]{{1,2}}|[^\W{_CJK}]+(?:['’][^\W{_CJK}]+)?")
_DENIAL: Final = re.compile(
    r"n['’]t\b|\b(?:not|no|never|none|neither|nor|without|cannot|isnt|rather\s+than|instead|except|but|unlike|"
    r"far\s+from|hardly|barely|scarcely|opposite|fails?|failed|lacks?|less|excluding|excludes?|rules?\s+out|ruled\s+out|"
    r"or|either|both|versus|vs|between|maybe|perhaps|possibly|might|may|could|would|unless|if|unclear|unsure|uncertain|"
    r"unknown|sorry|depends?|almost|nearly|options|choices|categories|"
    r"nicht|kein\w*|pas|ni|sin|nunca)\b|(?<![A-Za-z])non-|[不没沒无無非未别別勿]|或|可能|也许|大概|[?？]",
    re.IGNORECASE,
)
_MARKS: Final = r"[*_`\"'“”‘’\[\](]"
_GOES_ON: Final = re.compile(
    rf"{_MARKS}*\s*(?:[.,;:!。，；：！\n()（）]|\s[—–-]\s)"
    r"(?!\s*(?:\W*\s)?(?:\w+\s+){0,2}(?:not|no|never|or|nor|but|n['’]t)\b|\s*[?？/|])",
    re.IGNORECASE,
)
"""After a label that the text begins with: it is explained, and not taken back."""

_ANSWER_PLACE: Final = re.compile(
    rf"(?:\b(?:is|as|answer|option|choice|grade|choose|chose|pick|letter|say|be|was|a|an|it)\b|[:=：是为])(?:\s|{_MARKS})*$",
    re.IGNORECASE,
)
_EDGES: Final = " \t\r\n*_`\"'“”‘’.。!！,，;；:：()（）[]<>"

_Member = tuple[Any, Any, str]


class AmbiguousChoiceError(ValueError):
    """More than one member is named."""

    def __init__(self, wires: Sequence[Any]) -> None:
        super().__init__(" and ".join(repr(wire) for wire in wires))


def find_choice(shape: ChoiceShape, text: str, *, in_quotes: bool = True) -> tuple[Any, str, int] | None:
    """Return the member that the text names, how it was found (empty: exactly), and the cost; None if none.

    Args:
        shape: of the enum or literal.
        text: as the model wrote it.
        in_quotes: it stood in quotes, so it can be the exact value of a member that is a string.

    Raises:
        AmbiguousChoiceError: more than one member is named the same way.
    """
    for value, wire, _ in shape.members:
        if isinstance(wire, str) and wire == text:
            return value, "", 0 if in_quotes else 1
    named = text.strip().removeprefix(f"{shape.cls_name}.") if shape.cls_name else text.strip()
    if not named or len(text) > _LONGEST:
        return None
    for value, wire, name in shape.members:
        if name == named:
            return value, f"{wire!r} taken by its name {text.strip()!r}", 1
    bare = text.strip(_EDGES)
    if not text.rstrip(_EDGES).endswith(("?", "？")):
        for cost, found in ((3, _folded(shape, named)), (3, _folded(shape, bare)), (4, _number_or_truth(shape, text))):
            if found is not None:
                return found[0], f"{found[1]!r} taken from {quoted(text)}", cost
    if (found := _named(shape, text)) is not None:
        return found[0], f"{found[1]!r} taken from {quoted(text)}", 4
    if (found := _begun(shape, bare)) is not None:
        return found[0], f"{found[1]!r} taken from its beginning {text.strip()!r}", 5
    return None


def _labels(shape: ChoiceShape) -> list[tuple[str, _Member]]:
    labels = [(member[1], member) for member in shape.members if isinstance(member[1], str)]
    return labels + [(member[2], member) for member in shape.members if member[2]]


def _only(members: Iterable[_Member]) -> _Member | None:
    """Return the one member among these, which may come several times; None where no member is named."""
    kept: list[_Member] = []
    for member in members:
        if not any(type(member[0]) is type(other[0]) and member[0] == other[0] for other in kept):
            kept.append(member)
    if len(kept) > 1:
        raise AmbiguousChoiceError([wire for _, wire, _ in kept])
    return kept[0] if kept else None


# --- the whole text --------------------------------------------------------------------------------------


def _without_accents(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize("NFC", "".join(char for char in decomposed if not unicodedata.combining(char)))


def _plain(text: str) -> str:
    return _without_accents(text).casefold()


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", _plain(text))


_FOLDS: Final[tuple[Callable[[str], str], ...]] = (str.strip, str.casefold, _plain, _letters)


def _folded(shape: ChoiceShape, text: str) -> _Member | None:
    """Compare the whole text, ever more loosely; the first fold under which members match decides."""
    for fold in _FOLDS:
        wanted = fold(text)
        found = _only(member for label, member in _labels(shape) if wanted and fold(label.strip()) == wanted)
        if found is not None:
            return found
    return None


def _begun(shape: ChoiceShape, text: str) -> _Member | None:
    """Return the only member that begins with the text, a single word of three letters or more."""
    word = _plain(text)
    if len(word) < 3 or not word.isalnum() or _is_cjk(word):
        return None
    begun = [member for label, member in _labels(shape) if _plain(label).startswith(word)]
    try:
        return _only(begun)
    except AmbiguousChoiceError:
        return None


def _number_or_truth(shape: ChoiceShape, text: str) -> _Member | None:
    numbers = [m for m in shape.members if isinstance(m[1], int | float) and not isinstance(m[1], bool)]
    literal = read_number(text) if numbers else None
    if literal is not None:
        for member in numbers:
            if is_number_of(literal, member[1]):
                return member
    truths = [member for member in shape.members if isinstance(member[1], bool)]
    said = read_bool(text) if truths else None
    return next((member for member in truths if member[1] is said), None)


# --- sentences -------------------------------------------------------------------------------------------


class _Place(NamedTuple):
    """Where a text names a member."""

    start: int
    end: int
    member: _Member


def _named(shape: ChoiceShape, text: str) -> _Member | None:
    """Return the only member that the text names by whole words, where it can only be the answer."""
    text = _without_accents(text)
    places = _places(shape, text)
    member = _only(place.member for place in places)
    if member is None:
        return None
    first = places[0]
    before, label, after = text[: first.start], text[first.start : first.end], text[first.end :]
    if not before.strip(_EDGES) and _GOES_ON.match(after):
        return member
    rest, at = "", 0
    for place in places:
        rest, at = f"{rest}{text[at : place.start]} ", place.end
    if len(_WORD.findall(text)) > _MAX_WORDS or _DENIAL.search(rest + text[at:]):
        return None
    # One letter, or a word that every sentence has, must be where an answer is.
    is_short = len(label) <= 2 and not _is_cjk(label)
    return member if not is_short or (_ANSWER_PLACE.search(before) and not after.strip(_EDGES)) else None


def _places(shape: ChoiceShape, text: str) -> list[_Place]:
    """Return where members are named; a longer label hides those inside it. Chinese has no spaces to tell words by."""
    places: list[_Place] = []
    for label, member in _labels(shape):
        plain = _without_accents(label).strip()
        if not re.search(r"[^\W_]", plain):
            continue
        words = r"[\s_-]+".join(re.escape(part) for part in re.split(r"[\s_-]+", plain) if part)
        first = "" if _is_cjk(plain[0]) else rf"(?<![^\W{_CJK}])(?<![-+#])"
        last = "" if _is_cjk(plain[-1]) else rf"(?![^\W{_CJK}]|[+#]|[-'’][^\W{_CJK}])"
        flags = 0 if len(plain) == 1 else re.IGNORECASE
        places += [_Place(*found.span(1), member) for found in re.finditer(f"{first}(?=({words}){last})", text, flags)]
    return [
        place for place in sorted(places, key=lambda place: place[:2])
        if not any(other.start <= place.start and place.end <= other.end and other[:2] != place[:2] for other in places)
    ]  # fmt: skip


def _is_cjk(text: str) -> bool:
    return bool(re.match(rf"[{_CJK}]", text))
