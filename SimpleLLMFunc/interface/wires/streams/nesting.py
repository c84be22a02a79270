"""Where the brackets of a growing JSON text stand: each character is looked at once."""

from __future__ import annotations

import re

_MARK = re.compile(r'\\.|["{}\[\]]', re.DOTALL)


class Nesting:
    """Knows whether every bracket that a text opened is closed again; strings count as strings.

    It does not know whether the text is JSON: only that it cannot be whole before.
    """

    __slots__ = ("_depth", "_has_begun", "_is_escaped", "_is_in_string")

    def __init__(self) -> None:
        self._depth = 0
        self._has_begun = False
        self._is_escaped = False
        self._is_in_string = False

    @property
    def is_closed(self) -> bool:
        """Whether something was opened, and nothing is open."""
        return self._has_begun and self._depth <= 0 and not self._is_in_string

    def feed(self, piece: str) -> None:
        """Take the next piece of the text, cut anywhere."""
        if not piece:
            return
        begin, self._is_escaped = int(self._is_escaped), False
        last = begin
        for found in _MARK.finditer(piece, begin):
            mark, last = found.group(), found.end()
            if mark == '"':
                self._is_in_string = not self._is_in_string
            elif not self._is_in_string and mark in "{[":
                self._depth += 1
                self._has_begun = True
            elif not self._is_in_string and mark in "}]":
                self._depth -= 1
        self._is_escaped = piece.endswith("\\") and last < len(piece)
