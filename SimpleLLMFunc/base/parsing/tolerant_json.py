"""Reads what a model meant as JSON: other quotes, missing commas, comments, Python literals, full-width punctuation.

One pass, left to right, in linear time. Nothing is dropped but comments, nothing is made up: where two readings
are possible the reader gives up (`AmbiguousError`), and a list that is not closed is `TruncatedError`.
"""

from __future__ import annotations

import re
from typing import Final

from SimpleLLMFunc.base.parsing.json_ahead import CLOSE, COLON, COMMA, LITERALS, LONGEST_KEY, WORD, Ahead
from SimpleLLMFunc.base.parsing.json_node import (
    TOO_DEEP,
    AmbiguousError,
    Bare,
    Braced,
    Node,
    Num,
    Open,
    TruncatedError,
    UnreadableError,
    decode_strictly,
)
from SimpleLLMFunc.base.parsing.parsed import Repair
from SimpleLLMFunc.utils import DuplicateKeyError, object_of, path_text

MAX_DEPTH: Final = 150
"""Nested containers of a damaged answer; deeper ones are read only if they are strict JSON."""

_CLOSERS: Final = {'"': '"', "'": "'", "“": '”“"', "”": '”"', "‘": "’‘'", "’": "’'", "＂": "＂", "「": "」", "`": "`"}
_ESCAPES: Final = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "'": "'"}
_UNICODE: Final = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")
_BARE_KEY: Final = re.compile(rf"[^:：\n]{{0,{LONGEST_KEY}}}")
_OPEN: Final = {"{": "}", "[": "]", "(": ")", "｛": "｝", "［": "］"}
_ELISION: Final = re.compile(
    r"\.\.\.|…|\b(?:more|rest|etc|remaining|omitted|truncated|and so on|continue[ds]?)\b|省略|其余|等等|更多",
    re.IGNORECASE,
)
_SCALAR: Final = re.compile(
    rf"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|(?P<named>NaN|-?Infinity)|(?P<word>{WORD.pattern})"
)
_GROUPED: Final = re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?(?=\s*(?:[}｝\n]|[,，]\s*[\"'“‘`\w]))")
_ONE_OR_TWO: Final = re.compile(r"\d{1,3}(?:,\d{3})*,0\d{2}(?!\d)")
_SWALLOWED_KEY: Final = re.compile(
    r"""[,{\n，]\s{0,40}["'“”‘’][^"'“”‘’\n]*["'“”‘’]\s*[:：]|["'“”‘’]\s{0,40}[:：]\s{0,40}["'“‘\[{]"""
    r"""|["'“”‘’]\s{0,40}[,，]\s{0,40}[^\s"'“”‘’,，:：]{1,100}\s{0,40}[:：]\s{0,40}["'“‘\[{]"""
)


class TolerantReader:
    """Reads the one value that begins at a position of the text."""

    _at: int
    _path: list[str | int]
    _repairs: dict[Repair, None]
    _has_progress: bool
    _reach: int

    def __init__(self, text: str) -> None:
        self._text = text
        self._ahead = Ahead(text)

    @property
    def reach(self) -> int:
        """How far the latest reading looked, also where it stopped earlier: what it cost."""
        return max(self._reach, self._at)

    @property
    def repairs(self) -> list[Repair]:
        """What was mended, in order."""
        return list(self._repairs)

    @property
    def end(self) -> int:
        """The position after the value."""
        return self._at

    @property
    def is_at_end(self) -> bool:
        """Whether nothing but space and comments follows the value; raises where a comment leaves something out."""
        self._skip()
        return self._at >= len(self._text)

    def read(self, start: int) -> Node:
        """Return the node at `start`.

        Raises:
            UnreadableError: or one of its kinds, `AmbiguousError` and `TruncatedError`.
        """
        self._at, self._path, self._repairs, self._has_progress = start, [], {}, False
        self._reach = start
        try:
            return self._value(0)
        except UnreadableError as error:
            error.is_json = self._has_progress
            raise
        except RecursionError:  # the stack was nearly used up already
            raise AmbiguousError(TOO_DEEP, start) from None

    # --- values ------------------------------------------------------------------------------------------

    def _value(self, depth: int, inside: str = "") -> Node:
        self._skip()
        if self._at >= len(self._text):
            raise TruncatedError("the text ends where a value should stand", self._at)
        char = self._text[self._at]
        if char in _OPEN:
            if depth >= MAX_DEPTH:
                raise AmbiguousError(TOO_DEEP, self._at)
            if char in "｛［":
                self._note("full-width brackets")
            return self._object(depth) if char in "{｛" else self._list(depth, _OPEN[char])
        if char in _CLOSERS or self._text.startswith(("u'", 'u"'), self._at):
            return self._string(inside)
        return self._scalar(inside)

    def _object(self, depth: int) -> Node:
        start = self._at
        self._at += 1
        pairs: list[tuple[str, Node]] = []
        while True:
            self._skip()
            if self._at >= len(self._text):
                return self._open_object(pairs, start)
            char = self._text[self._at]
            if char in "}｝":
                self._at += 1
                return self._closed_object(pairs)
            if char == "]" and pairs and depth:
                # the list around goes on here: the brace is missing
                return self._open_object(pairs, start)
            if char in CLOSE:
                raise UnreadableError(f"{char!r} closes an object", self._at)
            if not pairs and not self._ahead.is_key(self._at):
                return self._braced(depth, start)
            key = self._key()
            self._path.append(key)
            self._has_progress = True
            pairs.append((key, self._value(depth + 1, "object")))
            self._separator("object")
            self._path.pop()

    def _open_object(self, pairs: list[tuple[str, Node]], start: int) -> Node:
        if not pairs:
            raise TruncatedError("the text ends after an opening brace", start)
        self._note("closing brace missing, every field is there")
        return Open(self._closed_object(pairs))

    def _closed_object(self, pairs: list[tuple[str, Node]]) -> dict[str, Node]:
        try:
            return object_of(pairs)
        except DuplicateKeyError as error:
            raise AmbiguousError(str(error), self._at) from None

    def _braced(self, depth: int, start: int) -> Node:
        """Read ``{1, 2}``, a set as Python writes it."""
        self._at = start
        items = Braced(self._list(depth, "}"))
        if any(isinstance(item, Bare) for item in items):
            raise UnreadableError("braces around plain text", start)
        self._note("a set as Python writes it")
        return items

    def _list(self, depth: int, closer: str) -> Node:
        start = self._at
        self._at += 1
        items: list[Node] = []
        has_comma = False
        while True:
            self._skip()
            if self._at >= len(self._text):
                raise TruncatedError("the text ends inside a list", start)
            char = self._text[self._at]
            if char == closer:
                self._at += 1
                break
            if char in CLOSE:
                raise UnreadableError(f"{char!r} closes a list", self._at)
            self._path.append(len(items))
            items.append(self._value(depth + 1, "list"))
            has_comma = self._separator("list", closer) or has_comma
            self._has_progress = self._has_progress or (has_comma and not isinstance(items[-1], Bare))
            self._path.pop()
        if closer == ")":
            if len(items) == 1 and not has_comma:
                if not depth or isinstance(items[0], Bare):
                    raise UnreadableError("parentheses around one value", start)
                self._note("parentheses around one value")
                return items[0]
            self._note("a tuple as Python writes it")
        return items

    def _separator(self, inside: str, closer: str = "}") -> bool:
        """Step over the comma after a value; tell whether there was one."""
        before = self._at
        self._skip()
        if self._at >= len(self._text):
            if before == self._at and self._text[before - 1] not in "}]\"'”’`)」":
                raise TruncatedError("the text ends in the middle of a value", before)
            return False
        char = self._text[self._at]
        if char in COMMA:
            if char == "，":
                self._note("full-width comma")
            self._at += 1
            self._skip()
            following = self._text[self._at : self._at + 1]
            if following in COMMA:
                raise AmbiguousError("two commas with nothing between", self._at)
            if following in CLOSE:
                self._note("comma before the closing bracket")
            return True
        if char in CLOSE:
            return False
        is_item = inside == "list" and closer != ")" and char in '{["'
        # two strings side by side may be one string with quotes inside
        if is_item and char == '"' and "\n" not in self._text[before : self._at]:
            raise AmbiguousError("two strings without a comma", self._at)
        if is_item or (inside == "object" and self._ahead.is_key(self._at)):
            self._note("missing comma")
            return False
        raise UnreadableError("something stands where a comma should", self._at)

    # --- keys --------------------------------------------------------------------------------------------

    def _key(self) -> str:
        if self._text[self._at] in _CLOSERS or self._text.startswith(("u'", 'u"'), self._at):
            key = self._string("key")
        else:
            found = _BARE_KEY.match(self._text, self._at)
            assert found is not None, "it may be empty"
            key, self._at = found.group().strip().strip("\\\"'“”"), found.end()
            self._note("key without quotes")
        self._skip()
        if self._at >= len(self._text):
            raise TruncatedError("the text ends after a key", self._at)
        if self._text[self._at] not in COLON:
            raise UnreadableError("a key without a colon", self._at)
        if self._text[self._at] == "：":
            self._note("full-width colon")
        self._at += 1
        return key

    # --- strings -----------------------------------------------------------------------------------------

    def _string(self, inside: str) -> str:
        text = self._text
        if text[self._at] == "u":
            self._at += 1
            self._note("Python's u'…'")
        opener = text[self._at]
        triple = opener * 3
        if opener in "\"'" and text.startswith(triple, self._at):
            following = text[self._at + 3 : self._at + 4]
            if following and following not in ",}]:，":
                return self._triple(triple)
        closers = _CLOSERS[opener]
        if opener != '"':
            self._note({"'": "single quotes", "`": "backticks"}.get(opener, "typographic quotes"))
        start = self._at
        at = start + 1
        pieces: list[str] = []
        inner_quotes = 0
        stop = re.compile(f"[\\\\\x00-\x1f{re.escape(closers)}]")
        while True:
            found = stop.search(text, at)
            if found is None:
                self._reach = len(text)
                raise TruncatedError("the text ends inside a string", start)
            pieces.append(text[at : found.start()])
            at, char = found.end(), found.group()
            if char == "\\":
                char, at = self._escape(found.start())
            elif char not in closers:
                self._note("line break or control character inside a string")
            elif self._ahead.is_end_of_string(at, inside):
                break
            else:
                inner_quotes += 1
            pieces.append(char)
        value = "".join(pieces)
        self._reach = max(self._reach, found.start())
        if inner_quotes:
            self._check_inner_quotes(value, inner_quotes, opener, inside, start)
            self._note("quotes inside a string were not escaped")
        self._at = at
        return value

    def _check_inner_quotes(self, value: str, inner_quotes: int, opener: str, inside: str, start: int) -> None:
        # several strings side by side, or one that swallowed the next key
        is_several = re.search(rf"{opener}[\s,;:+|&.{{}}\[\]'\"]*{opener}", value) or _SWALLOWED_KEY.search(value)
        # half of a quoted pair, unless it stands for inches or is an apostrophe
        lone = rf"\d{opener}" if opener == '"' else rf"\w{opener}(?!\s*,)"
        is_half = inner_quotes % 2 and not (re.search(lone, value) and (inside == "object" or opener == "'"))
        if inside == "key" or is_several or is_half:
            raise AmbiguousError("a string whose end cannot be told", start)

    def _triple(self, triple: str) -> str:
        end = self._text.find(triple, self._at + 3)
        if end < 0:
            self._reach = len(self._text)
            raise TruncatedError("the text ends inside a string", self._at)
        value = self._text[self._at + 3 : end]
        self._at = end + 3
        self._note("triple quotes")
        return value

    def _escape(self, at: int) -> tuple[str, int]:
        text = self._text
        char = text[at + 1 : at + 2]
        if char in _ESCAPES:
            if char == "'":
                self._note("escape that JSON does not know")
            return _ESCAPES[char], at + 2
        if code := _UNICODE.match(text, at):
            return str(decode_strictly(f'"{code.group()}"')), code.end()
        # LaTeX, regular expressions, Windows paths: the backslash is meant
        self._note("backslash was not escaped")
        return "\\", at + 1

    # --- what has no quotes ------------------------------------------------------------------------------

    def _scalar(self, inside: str) -> Node:
        text, start = self._text, self._at
        if inside == "object":
            grouped = _GROUPED.match(text, start)
            if grouped:
                self._at = grouped.end()
                return Bare(grouped.group())
        elif _ONE_OR_TWO.match(text, start):
            raise AmbiguousError("1,000 in a list is one number or two", start)
        token = _SCALAR.match(text, start)
        is_text = token is None or (token["word"] is not None and token["word"] not in LITERALS)
        if token is None or is_text or not self._ahead.is_end_of_scalar(token.end(), inside):
            return self._bare(inside)
        self._at, written = token.end(), token.group()
        number = Num(written), f"{written} is not JSON" if token["named"] else None
        value, note = LITERALS.get(written, number)
        if note:
            self._note(note)
        return value

    def _bare(self, inside: str) -> Node:
        """Read text without quotes, whole, up to where the container goes on."""
        text, start = self._text, self._at
        at = start
        while at < len(text):
            char = text[at]
            if char in "}]｝］\n":
                break
            if char in COMMA and (inside != "object" or self._ahead.is_key(at + 1) or self._ahead.is_close(at + 1)):
                break
            if char in '{["“”｛［' or (
                char == ":"
                and inside == "object"
                and text[at : at + 3] != "://"
                and not (text[at - 1 : at].isdigit() and text[at + 1 : at + 2].isdigit())
            ):
                raise UnreadableError("text without quotes that runs into JSON", at)
            at += 1
        self._reach = max(self._reach, at)
        words = text[start:at].rstrip()
        comment = re.search(r"\s(?://|#|/\*)", words)
        if comment:
            at = start + comment.start()
            words = words[: comment.start()].rstrip()
        if words in {"", "undefined", "nan", "inf"} or re.search(r"\.\.\.|…|^<.*>$", words):
            raise AmbiguousError("a placeholder where a value should stand", start)
        if at >= len(text):
            raise TruncatedError("the text ends inside a text without quotes", start)
        self._at = start + len(words)
        self._note("text without quotes")
        return Bare(words)

    # --- between values ----------------------------------------------------------------------------------

    def _skip(self) -> None:
        """Step over space and comments."""
        while True:
            self._at = self._ahead.space(self._at)
            if self._text[self._at : self._at + 1] not in {"/", "#", "<"}:
                return
            comment = self._ahead.comment(self._at)
            if comment is None:
                return
            if _ELISION.search(comment.group()):
                raise AmbiguousError("a comment says that something is left out", self._at)
            self._note("comment")
            self._at = comment.end()

    def _note(self, what: str) -> None:
        self._repairs[path_text(tuple(self._path)), what] = None
