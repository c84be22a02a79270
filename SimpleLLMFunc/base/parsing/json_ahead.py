"""What follows a place in a text that is nearly JSON: whether a key, a value or an end comes next."""

from __future__ import annotations

import re
from typing import Final

LONGEST_KEY: Final = 200
CLOSE: Final = frozenset("}])｝］")
COMMA: Final = frozenset(",，")
COLON: Final = frozenset(":：")
_SPACE: Final = re.compile(r"[\s\ufeff\u200b\u2060]*")
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/|(?:^|(?<=[\s,\[{]))#[^\n]*|<!--.*?-->", re.DOTALL)
WORD: Final = re.compile(r"[^\W\d][\w$-]*")
LITERALS: Final = {
    "true": (True, None), "false": (False, None), "null": (None, None),
    "True": (True, "Python's True"), "False": (False, "Python's False"), "None": (None, "Python's None"),
    "TRUE": (True, "TRUE"), "FALSE": (False, "FALSE"), "NULL": (None, "NULL"), "Null": (None, "Null"),
}  # fmt: skip
NAMED_NUMBERS: Final = frozenset({"NaN", "Infinity", "-Infinity"})
_KEY_AHEAD: Final = re.compile(
    r"""[\s\ufeff\u200b]*(?:u?"(?:[^"\\\n]|\\.){0,150}"|u?'(?:[^'\\\n]|\\.){0,150}'|[“”][^“”\n]{0,100}[“”"]|[‘’][^‘’\n]{0,100}[‘’]|`[^`\n]{0,100}`|[\w$-]{1,100}(?:\ [\w$-]{1,40}){0,4})[\s]*[:：](?![/]{2})""",
    re.VERBOSE,
)


class Ahead:
    """Answers questions about the text at and after a place, without reading it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._last_ends = [(opening, text.rfind(end)) for opening, end in (("/*", "*/"), ("<!--", "-->"))]

    def is_key(self, at: int) -> bool:
        """Tell whether a key and its colon come next."""
        at = self.after_space(at)
        return _KEY_AHEAD.match(self._text, at, min(len(self._text), at + LONGEST_KEY + 100)) is not None

    def is_end_of_string(self, at: int, inside: str) -> bool:
        """Tell whether a quote before `at` ends a string: what follows must go on as JSON."""
        text = self._text
        after = self.space(at)
        if after >= len(text):
            return True
        char = text[after]
        if inside == "key":
            return char in COLON
        if inside == "":
            return False
        if char in "/#":
            return self.comment(after) is not None
        if inside == "list":
            if char in "]］)}｝":
                return True
            if char in COMMA:
                return self._is_item(after + 1)
            return "\n" in text[at:after] and char in "\"'“"
        if char in "}｝":
            # not where a plain letter follows, as in ``"a "}b" c"``
            following = text[after + 1 : after + 2]
            return not (following.isalnum() or following in {'"', "'"})
        if char == "]":
            return True
        if char in COMMA:
            return self.is_key(after + 1) or self.is_close(after + 1)
        return self.is_key(after) and ("\n" in text[at:after] or (after > at and char in "\"'“"))

    def is_close(self, at: int) -> bool:
        """Tell whether the end of an object, or of the text, comes next."""
        at = self.after_space(at)
        return at >= len(self._text) or self._text[at] in "}｝"

    def _is_item(self, at: int) -> bool:
        at = self.after_space(at)
        if at >= len(self._text):
            return True
        char = self._text[at]
        if char in "\"'“‘`[{(]］)）｛［-+." or char.isdigit():
            return True
        word = WORD.match(self._text, at)
        return word is not None and (word.group() in LITERALS or word.group() in NAMED_NUMBERS)

    def space(self, at: int) -> int:
        """Return the place after the space at `at`."""
        found = _SPACE.match(self._text, at)
        return found.end() if found else at

    def after_space(self, at: int) -> int:
        """Return the place after space and comments at `at`."""
        while (comment := self.comment(at := self.space(at))) is not None:
            at = comment.end()
        return at

    def is_end_of_scalar(self, at: int, inside: str) -> bool:
        """Tell whether a number or literal ends before `at`."""
        end = self.after_space(at)
        if end >= len(self._text):
            return True
        if self._text[end] in CLOSE | COMMA:
            return True
        if end == at or (inside == "object" and not self.is_key(end)):
            return False
        return "\n" in self._text[at:end] or (inside == "object" and self._text[end] in "\"'“")

    def comment(self, at: int) -> re.Match[str] | None:
        """Return the comment that begins at `at`, if there is one."""
        # An opening behind the last end opens nothing; looking for that end again and again would take for ever.
        if any(last < at and self._text.startswith(opening, at) for opening, last in self._last_ends):
            return None
        return _COMMENT.match(self._text, at)
