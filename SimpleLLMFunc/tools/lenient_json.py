"""JSON with slips in its syntax, read without a guess.

Taken: other quotes, trailing and missing commas, keys without quotes, comments, Python's literals, full-width
punctuation, line breaks inside strings, code fences. Every string and every number is the one that was
written. What is left open, cut off, or would have to be made up is refused: the reader is for tool calls,
which have side effects.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

__all__ = ["mended"]

MAX_DEPTH: Final = 100

_FENCE = re.compile(r"\s*```[a-zA-Z0-9]*[ \t]*\n(.*?)\n?[ \t]*```\s*", re.DOTALL)
_TOKEN = re.compile(
    r"""
      (?P<skip>    \s+ | //[^\n]* | \#[^\n]* | /\*.*?\*/ )
    | (?P<string>  "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' | “[^“”\\]*” | ‘[^‘’\\]*’ )
    | (?P<number>  -?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.]) )
    | (?P<word>    [^\W\d]\w* )
    | (?P<mark>    [{}\[\]:,：，] )
    """,
    re.VERBOSE | re.DOTALL,
)
_LITERALS: Final = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
_HALF_WIDTH: Final = {"：": ":", "，": ","}

Token = tuple[str, str]
MakeObject = Callable[[list[tuple[str, Any]]], dict[str, Any]]


def mended(text: str, make_object: MakeObject = dict) -> Any:
    """Return the value that the text stands for.

    Args:
        text: one value, in a code fence or not.
        make_object: makes an object of its keys and values in their order.

    Raises:
        ValueError: that would take a guess.
    """
    fenced = _FENCE.fullmatch(text)
    reader = _Reader(_tokens(fenced[1] if fenced else text), make_object)
    value = reader.value(0)
    reader.expect("end")
    return value


def _tokens(text: str) -> Iterator[Token]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ValueError(f"nothing known begins at character {position}")
        position = match.end()
        kind, token = match.lastgroup or "", match[0]
        if kind == "mark":
            token = _HALF_WIDTH.get(token, token)
            yield token, token
        elif kind != "skip":
            yield kind, token
    yield "end", ""


class _Reader:
    def __init__(self, tokens: Iterator[Token], make_object: MakeObject) -> None:
        self._tokens = tokens
        self._make_object = make_object
        self._next = next(tokens)

    def take(self) -> Token:
        token = self._next
        self._next = next(self._tokens, ("end", ""))
        return token

    def expect(self, *kinds: str) -> Token:
        token = self.take()
        if token[0] not in kinds:
            raise ValueError(f"{token[1] or 'the end'!r} where {' or '.join(kinds)} belongs")
        return token

    def value(self, depth: int) -> Any:
        kind, token = self.expect("{", "[", "string", "number", "word")
        if depth > MAX_DEPTH:
            raise ValueError("nested too deeply")
        if kind == "{":
            return self._make_object(list(self._items("}", lambda: self._pair(depth + 1))))
        if kind == "[":
            return list(self._items("]", lambda: self.value(depth + 1)))
        if kind == "string":
            return _string(token)
        if kind == "number":
            return json.loads(token)
        if token not in _LITERALS:
            raise ValueError(f"{token!r} stands without quotes")
        return _LITERALS[token]

    def _items(self, end: str, item: Callable[[], Any]) -> Iterator[Any]:
        while self._next[0] != end:
            yield item()
            # Between the pairs of an object the next key shows where a comma is missing; in a list nothing does.
            if self._next[0] == ",":
                self.take()
            elif end == "]" and self._next[0] != end:
                raise ValueError("two items without a comma between them")
        self.take()

    def _pair(self, depth: int) -> tuple[str, Any]:
        kind, token = self.expect("string", "word")
        self.expect(":")
        return _string(token) if kind == "string" else token, self.value(depth)


def _string(token: str) -> str:
    inner = token[1:-1]
    if token[0] in "“‘":
        return inner
    if token[0] == "'":
        # As a JSON string: its own quote needs no escape there, the other one does.
        inner = re.sub(r'\\.|"', lambda match: {"\\'": "'", '"': '\\"'}.get(match[0], match[0]), inner, flags=re.DOTALL)
    text: str = json.loads(f'"{inner}"', strict=False)
    return text
