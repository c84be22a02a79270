"""An enum's or a literal's value in the model's words: exact, folded, or the only one that a short text names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final

from SimpleLLMFunc.base.parsing.alignment.scalar_coercion import EXACT_STRING, LeafFit
from SimpleLLMFunc.base.parsing.alignment.scalars import read_bool, read_number
from SimpleLLMFunc.base.parsing.alignment.shape import ChoiceShape
from SimpleLLMFunc.base.parsing.json_node import Node, Num, is_number_of, is_same_value, plain_value, quoted

_LONGEST: Final = 600
_MAX_WORDS: Final = 12
_CJK: Final = "\u3400-\u9fff\uf900-\ufaff\u3040-\u30ff\uac00-\ud7af"
_WORD: Final = re.compile(rf"[{_CJK}]{{1,2}}|[^\W{_CJK}]+(?:['’][^\W{_CJK}]+)?")
_DENIAL: Final = re.compile(
    r"n['’]t\b|\b(?:not|no|never|none|neither|nor|without|cannot|isnt|rather\s+than|instead|except|but|unlike|"
    r"far\s+from|hardly|barely|scarcely|opposite|fails?|failed|lacks?|less|excluding|excludes?|rules?\s+out|ruled\s+out|"
    r"or|either|both|versus|vs|between|maybe|perhaps|possibly|might|may|could|would|unless|if|unclear|unsure|uncertain|"
    r"unknown|sorry|depends?|almost|nearly|options|choices|categories|"
    r"nicht|kein\w*|pas|ni|sin|nunca)\b|(?<![A-Za-z])non[-\s]|[不没沒无無非未别別勿]|或|可能|也许|大概|[?？]",
    re.IGNORECASE,
)
_SOFT_START: Final = re.compile(
    r"\s*(?:\W*\s)?(?:\w+\s+){0,2}(?:not|no|never|or|nor|but|n['’]t)\b|\s*[?？/|]", re.IGNORECASE
)
_LEAD: Final = re.compile(
    r"\s*[*_`\"'“”‘’\[(]*(.+?)[*_`\"'“”‘’\])]*\s*(?:[.,;:!。，；：！\n()（）]|\s[—–-]\s)(.*)", re.DOTALL
)
_FINAL: Final = re.compile(
    r"(?:^|[\n.!:]\s*)[\s*_#]*(?:the\s+)?(?:final\s+|correct\s+|best\s+|my\s+)?(?:answer|label|category|sentiment|classification|verdict|"
    r"result|choice|class|value|output|rating|status|type)\s*(?:is|=|:|：)?[\s*_:`\"'“]*([^\n]+?)[\s*_`\"'”.!]*$",
    re.IGNORECASE,
)
_BEFORE_ANSWER: Final = r"(?:\b(?i:is|as|answer|option|choice|grade|choose|chose|pick|letter|say|be|was|a|an|it)\b|[:=：是为])[\s*_`\"'“(\[]*"
_EDGES: Final = " \t\r\n*_`\"'“”‘’.。!！,，;；:：()（）[]<>"


class AmbiguousChoiceError(ValueError):
    """More than one member is named."""

    def __init__(self, wires: Sequence[Any]) -> None:
        super().__init__(" and ".join(repr(wire) for wire in wires))


def find_choice(shape: ChoiceShape, text: str, *, in_quotes: bool = True) -> LeafFit | None:
    """Return the member that the text names; None if none.

    Args:
        shape: of the enum or literal.
        text: as the model wrote it.
        in_quotes: it stood in quotes, so the enum itself may be asked for what it does not list.

    Raises:
        AmbiguousChoiceError: more than one member is named the same way.
    """
    for value, wire, _ in shape.members:
        if isinstance(wire, str) and wire == text:
            return LeafFit(value, 1)
    if not text.strip() or len(text) > _LONGEST:
        return None
    named = text.strip().removeprefix(f"{shape.cls.__name__}." if shape.cls else "")
    for value, wire, name in shape.members:
        if name and name == named:
            return LeafFit(value, 1, f"{plain_value(wire)!r} taken by its name {text.strip()!r}")
    is_question = text.rstrip(_EDGES).endswith(("?", "？"))
    found = None if is_question else _folded(shape, named) or _folded(shape, text.strip(_EDGES))
    if found is not None:
        return LeafFit(found[0], 3, f"{plain_value(found[1])!r} taken from {quoted(text)}")
    meant = _other_kinds(shape, text) or _in_sentence(shape, text) or _prefix(shape, text)
    return _missing(shape, text) if meant is None and in_quotes else meant


def find_unquoted(shape: ChoiceShape, node: Num | bool) -> LeafFit | None:
    """Return the member that is a text and is written like this number or truth value: ``1`` for ``Literal["1", "2"]``."""
    written = node.text if isinstance(node, Num) else str(node).lower()
    found = (value for value, wire, _ in shape.members if wire == written)
    known = next((LeafFit(value, EXACT_STRING, f"{written} kept as a text") for value in found), None)
    return known or _missing(shape, node)


def _missing(shape: ChoiceShape, node: Node) -> LeafFit | None:
    """Return the member that the enum itself finds for a value it does not list; it is not asked about bare prose."""
    try:
        member = shape.cls._missing_(plain_value(node)) if shape.cls and not isinstance(node, bool) else None
    except Exception:  # noqa: BLE001 - it is the user's code
        member = None
    return None if member is None else LeafFit(member, EXACT_STRING, f"{member!r} found by the enum itself")


def _labels(shape: ChoiceShape) -> list[tuple[str, tuple[Any, Any, str]]]:
    labels = [(member[1], member) for member in shape.members if isinstance(member[1], str)]
    return labels + [(member[2], member) for member in shape.members if member[2]]


# --- folding ---------------------------------------------------------------------------------------------


@lru_cache(4096)  # the same labels for each item of a list
def _without_accents(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFC", "".join(char for char in decomposed if not unicodedata.combining(char)))


@lru_cache(4096)
def _words_only(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+(?:[+#]+|-(?!\s*\w))?", _without_accents(text)))


def _joined(text: str) -> str:
    return _words_only(text).replace(" ", "")


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", _without_accents(text))


_SIGN: Final = re.compile(r"[+#\u207a\u207b\u2212\u2010-\u2014-]")
_FOLDS: Final[tuple[Callable[[str], str], ...]] = (str.strip, str.casefold, _without_accents, _words_only, _joined)


def _folded(shape: ChoiceShape, text: str) -> tuple[Any, Any] | None:
    """Compare the whole text, ever more loosely; the first fold under which members match decides."""
    labels = _labels(shape)
    for fold in _FOLDS:
        wanted = fold(text)
        if not wanted:
            return None
        matches = _distinct([member for label, member in labels if fold(label) == wanted])
        if fold in _FOLDS[3:] and matches and _SIGN.search(text) and not _SIGN.search(str(matches[0][1])):
            # Not "A" where there is an "A-": the sign is written in another way.
            matches = _distinct([member for label, member in labels if _letters(label) == _letters(text)])
        if len(matches) > 1:
            raise AmbiguousChoiceError([wire for _, wire, _ in matches])
        if matches:
            return matches[0][0], matches[0][1]
    return None


def _distinct(members: list[tuple[Any, Any, str]]) -> list[tuple[Any, Any, str]]:
    kept: list[tuple[Any, Any, str]] = []
    for member in members:
        if not any(is_same_value(member[0], other[0]) for other in kept):
            kept.append(member)
    return kept


# --- numbers and truth values ----------------------------------------------------------------------------


def _other_kinds(shape: ChoiceShape, text: str) -> LeafFit | None:
    numbers = [m for m in shape.members if isinstance(m[1], int | float) and not isinstance(m[1], bool)]
    literal = read_number(text) if numbers else None
    if literal is not None and len(literal) < 30:
        matches = [member for member in numbers if is_number_of(literal, member[1])]
        named = _distinct([*matches, *(member for member, _ in _named_in(shape, text))])
        if matches and len(named) > 1:
            raise AmbiguousChoiceError([member[1] for member in named])
        if matches:
            return LeafFit(matches[0][0], 4, f"number taken from {quoted(text)}")
    said = read_bool(text)
    for value, wire, _ in shape.members:
        if said is not None and wire is said:
            return LeafFit(value, 4, f"{wire!r} taken from {quoted(text)}")
    return None


# --- sentences -------------------------------------------------------------------------------------------


def _in_sentence(shape: ChoiceShape, text: str) -> LeafFit | None:
    """Return the only member that the text names by whole words."""
    named = _named_in(shape, text)
    if len(named) > 1:
        raise AmbiguousChoiceError([member[1] for member, _ in named])
    if not named:
        return None
    (value, wire, _), label = named[0]
    number = re.match(r"\d+(?:[.,:]\d+)*", label)
    if number and not re.search(rf"(?<!\d)(?<!\d[.,:]){re.escape(number[0])}(?!\d|[.,:]\d)", text):
        return None  # "3" in "$3.50"
    if not (_is_plain_sentence(text, label) or _leads(shape, text) or _concludes(shape, text)):
        return None
    return LeafFit(value, 4, f"{wire!r} taken from {quoted(text)}")


def _named_in(shape: ChoiceShape, text: str) -> list[tuple[tuple[Any, Any, str], str]]:
    """Return the members named in the text with the label that names them; a longer label hides those inside it."""
    folded = _without_accents(text)
    found = [
        (start, end, member, label)
        for label, member in _labels(shape)
        for form in dict.fromkeys((_without_accents(label), _words_only(label)))
        if _words_only(label)
        for start, end in _places(form, folded)
        if len(form) > 1 or _is_cjk(form) or text[start:end] == label
    ]
    named: list[tuple[tuple[Any, Any, str], str]] = []
    for start, end, member, label in sorted(found, key=itemgetter(0)):
        is_hidden = any(begin <= start and end <= stop and stop - begin > end - start for begin, stop, *_ in found)
        if not is_hidden and not any(is_same_value(member[0], known[0]) for known, _ in named):
            named.append((member, label))
    return named


def _places(label: str, text: str) -> list[tuple[int, int]]:
    """Return where the label stands as whole words; Chinese has no spaces to tell words by."""
    parts = [part for part in re.split(r"[\s_-]+", label.strip()) if part] or [label]
    # Most of a hundred labels end here: a pattern of each would take longer than all the rest.
    if not all(part in text for part in parts):
        return []
    words = r"[\s_-]+".join(map(re.escape, parts))
    return [place.span(1) for place in re.finditer(f"(?=({words}))", text) if _is_whole(text, *place.span(1))]


def _is_whole(text: str, start: int, end: int) -> bool:
    before, after, following = text[start - 1 : start], text[end : end + 1], text[end + 1 : end + 2]
    if not _is_cjk(text[start]) and (_is_letter(before) or before in {"-", "+", "#"}):
        return False
    goes_on = _is_letter(after) or after in {"+", "#"} or (after in {"-", "'", "’"} and _is_letter(following))
    return _is_cjk(text[end - 1]) or not goes_on


def _is_letter(char: str) -> bool:
    return (char.isalnum() or char == "_") and not _is_cjk(char)


def _is_cjk(text: str) -> bool:
    return bool(re.match(rf"[{_CJK}]", text))


def _is_plain_sentence(text: str, label: str) -> bool:
    """Tell whether the text is one short sentence without a denial, in which the label can only be the answer."""
    rest, at = "", 0
    folded = _without_accents(text)
    for start, end in _places(_without_accents(label), folded):
        rest, at = f"{rest}{folded[at:start]} ", max(at, end)
    rest += folded[at:]
    if len(_WORD.findall(text)) > _MAX_WORDS or _DENIAL.search(rest):
        return False
    # one letter, or a word that every sentence has, must stand where an answer stands
    at_the_end = rf"{_BEFORE_ANSWER}{re.escape(label)}[\s*_`\"'”)\].!]*$"
    return len(label) > 2 or _is_cjk(label) or re.search(at_the_end, text) is not None


def _leads(shape: ChoiceShape, text: str) -> bool:
    """Tell whether the text begins with the label and goes on to explain it: ``Positive - because …``."""
    lead = _LEAD.match(text)
    if lead is None or _SOFT_START.match(lead.group(2)):
        return False
    return _is_folded(shape, lead.group(1))


def _concludes(shape: ChoiceShape, text: str) -> bool:
    """Tell whether the text ends with the label as its conclusion: ``… Final answer: positive``."""
    final = _FINAL.search(text.strip())
    return final is not None and _is_folded(shape, final.group(1))


def _is_folded(shape: ChoiceShape, text: str) -> bool:
    try:
        return _folded(shape, text.strip(_EDGES)) is not None
    except AmbiguousChoiceError:
        return False


def _prefix(shape: ChoiceShape, text: str) -> LeafFit | None:
    """Return the only member that begins with the text, a single word of three letters or more."""
    word = _without_accents(text.strip(_EDGES))
    if len(word) < 3 or not word.isalnum() or _is_cjk(word):
        return None
    matches = _distinct([member for label, member in _labels(shape) if _without_accents(label).startswith(word)])
    if len(matches) != 1:
        return None
    return LeafFit(matches[0][0], 5, f"{matches[0][1]!r} taken from its beginning {text.strip()!r}")
