"""Texts that match a regular expression, for `SchemaLLM`.

The expression is read by Python's own parser, so what Python cannot read (a few classes of Rust's and ECMAScript's
dialects) cannot be made; every text is checked against the expression before it is given out.
"""

from __future__ import annotations

import importlib
import random
import re
import string
from collections.abc import Iterable, Sequence
from typing import Any, Final

from SimpleLLMFunc.errors import UsageError, cut

__all__ = ["text_matching"]

_TRIES: Final = 200
_MORE: Final = 4
"""How many more than it must a repetition has, mostly."""

_LETTERS: Final = string.ascii_lowercase
_PRINTABLE: Final = string.ascii_letters + string.digits + " .,-_!?:;@#%&/()[]{}+*='\"<>|~^$\\`"
_CATEGORIES: Final = {
    "CATEGORY_DIGIT": string.digits,
    "CATEGORY_NOT_DIGIT": string.ascii_letters + " -_",
    "CATEGORY_SPACE": " ",
    "CATEGORY_NOT_SPACE": string.ascii_letters + string.digits,
    "CATEGORY_WORD": string.ascii_letters + string.digits + "_",
    "CATEGORY_NOT_WORD": " -.,!",
}


def text_matching(pattern: str, rng: random.Random, *, least: int = 0, most: int | None = None) -> str:
    """Return a text in which `pattern` is found, of `least` to `most` characters.

    Raises:
        UsageError: the pattern cannot be read, or no such text was found.
    """
    try:
        compiled = re.compile(_for_python(pattern))
        tree = importlib.import_module("re._parser").parse(compiled.pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(
            f"SchemaLLM cannot read the pattern {cut(pattern, 100)!r} ({error}). Give the field examples=[…]."
        ) from error
    for attempt in range(_TRIES):
        # Longer and longer, and now and then as short as the pattern allows.
        maker = _Maker(rng, more=rng.choice((0, 1, _MORE)) * (1 + attempt // 8), least=least)
        text = _padded(maker.of(tree), rng, compiled, least)
        if len(text) >= least and (most is None or len(text) <= most) and compiled.search(text):
            return text
    room = f"{least} to {most} characters" if most is not None else f"at least {least} characters"
    raise UsageError(
        f"SchemaLLM found no text of {room} that matches {cut(pattern, 100)!r}. Give the field examples=[…]."
    )


def _for_python(pattern: str) -> str:
    # The end of the text in Rust's dialect; classes of Unicode properties that Python's lacks, by their common members.
    pattern = pattern.replace(r"\z", r"\Z")
    for name, members in (("L", "a-zA-Z"), ("Lu", "A-Z"), ("Ll", "a-z"), ("N", "0-9"), ("Nd", "0-9")):
        pattern = re.sub(rf"(\[[^\]]*)\\p\{{{name}\}}", rf"\g<1>{members}", pattern)
        pattern = pattern.replace(rf"\p{{{name}}}", f"[{members}]")
    return pattern


def _padded(text: str, rng: random.Random, pattern: re.Pattern[str], least: int) -> str:
    """Return the text made longer where the pattern lets it be: it need not match from end to end."""
    if len(text) >= least:
        return text
    padding = "".join(rng.choices(_LETTERS, k=least - len(text)))
    return next((long for long in (text + padding, padding + text) if pattern.search(long)), text)


class _Maker:
    def __init__(self, rng: random.Random, *, more: int, least: int) -> None:
        self._rng = rng
        self._more = more
        self._least = least
        self._groups: dict[int, str] = {}

    def of(self, tree: Iterable[tuple[Any, Any]]) -> str:
        return "".join(self._one(str(operation), argument) for operation, argument in tree)

    def _one(self, operation: str, argument: Any) -> str:
        match operation:
            case "LITERAL":
                return chr(argument)
            case "NOT_LITERAL":
                return self._rng.choice([each for each in _PRINTABLE if each != chr(argument)])
            case "ANY":
                return self._rng.choice(_LETTERS)
            case "IN":
                return self._of_class(argument)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                return self._repeated(*argument)
            case "SUBPATTERN":
                number, *_, inner = argument
                text = self.of(inner)
                if number is not None:
                    self._groups[number] = text
                return text
            case "ATOMIC_GROUP":
                return self.of(argument)
            case "BRANCH":
                return self.of(self._rng.choice(argument[1]))
            case "GROUPREF":
                return self._groups.get(argument, "")
            case "GROUPREF_EXISTS":
                number, there, else_ = argument
                return self.of(there if number in self._groups else else_ or ())
            case _:
                # Anchors and looks to the side take no room; whether they hold is seen in the end.
                return ""

    def _repeated(self, least: int, most: Any, inner: Sequence[tuple[Any, Any]]) -> str:
        most = int(most)
        highest = min(most, least + self._more)
        if self._least and self._more:
            highest = min(most, max(highest, self._least))
        return "".join(self.of(inner) for _ in range(self._rng.randint(least, highest)))

    def _of_class(self, members: Sequence[tuple[Any, Any]]) -> str:
        is_negated = str(members[0][0]) == "NEGATE"
        known: list[str] = []
        for operation, argument in members:
            match str(operation):
                case "LITERAL":
                    known.append(chr(argument))
                case "RANGE":
                    first, last = argument
                    known += map(chr, range(first, min(last, first + 255) + 1))
                case "CATEGORY":
                    known += _CATEGORIES.get(str(argument), "")
                case _:
                    pass
        if is_negated:
            known = [each for each in _PRINTABLE if each not in known]
        return self._rng.choice(known) if known else ""
