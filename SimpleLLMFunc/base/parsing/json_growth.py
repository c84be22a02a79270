"""JSON that is still arriving: what of it is complete, every character looked at once.

Strict JSON only (a line break in a string need not be escaped), found at the start of the text, of a line or of a fence,
after the reasoning. Anything else ends the growth without an error: the whole answer is read again when it is complete.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from SimpleLLMFunc.base.parsing.alignment.shape import Shape
from SimpleLLMFunc.base.parsing.json_node import Node, decode_strictly
from SimpleLLMFunc.base.parsing.reasoning import REASONING_OPENS
from SimpleLLMFunc.interface.wires import ReasoningSplitter

_PLAIN: Final = re.compile(r"[^\"\\]+")
_CONTROL: Final = re.compile(r"[\x00-\x1f]")
_SPACE: Final = re.compile(r"[ \t\r\n]+")
_TOKEN: Final = re.compile(r"[-+.\w]+")
_ENDINGS: Final = {dict: re.compile(r"\s*(?:\}|,\s*\")"), list: re.compile(r"\s*[\],]")}
_ESCAPE: Final = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[0-9a-fA-F]{4}|u(?![dD][89abAB])[0-9a-fA-F]{4}|[\"\\/bfnrt])"
)
_OPENERS: Final = r"\n|:|```\w*|~~~\w*|<\w+>"
_START: Final = re.compile(rf"(?:\A|{_OPENERS})[ \t\r]*(?=[{{\[])")
_LATER_START: Final = re.compile(rf"(?:{_OPENERS})[ \t\r]*(?=[{{\[])")
_TORN_START: Final = re.compile(r"(?:\n|:|`{1,3}\w*|~{1,3}\w*|<\w*>?)[ \t\r]*\Z")
_REASONING: Final = ("thinking", "reasoning")
_LONGEST_ESCAPE: Final = 12
_LONGEST_HEAD: Final = 40


@dataclass(slots=True)
class Frame:
    """A container that is still open, and what the reader of the growth knows of it.

    Attributes:
        node: the complete members.
        values: the validated ones, as the reader keeps them.
        key: of the member that is arriving, in an object.
        expects: what may stand next.
        shape: the wanted one, None where it is not known before the end.
        is_wrapper: it is ``{"value": …}``.
        has_gap: a member did not fit; items after it would have the wrong index.
    """

    node: dict[str, Node] | list[Node]
    values: Any
    key: str = ""
    expects: Literal["key", "colon", "value", "comma"] = "value"
    may_close: bool = True
    shape: Shape | None = None
    is_wrapper: bool = False
    has_gap: bool = False


@dataclass(slots=True)
class JsonGrowth:
    """Feeds on pieces of text.

    Attributes:
        on_open: told of every container that begins; it is the last one of `stack` then.
        on_add: told of every member that is complete, containers too, with the container it belongs to.
        takes_breaks: whether a string may hold line breaks and other control characters as they are.
        stack: the open containers, outermost first.
        string: the pieces of the string value that is arriving, None where none is.
        is_over: the root is complete, or the text is no strict JSON; nothing more will come.
        characters_read: how many characters were looked at, those looked at twice counted twice.
    """

    on_open: Callable[[Frame], None]
    on_add: Callable[[Frame, Node], None]
    takes_breaks: bool = True
    stack: list[Frame] = field(default_factory=list)
    string: list[str] | None = None
    is_over: bool = False
    characters_read: int = 0
    _rest: str = ""
    _has_begun: bool = False
    _has_text: bool = False
    _splitter: ReasoningSplitter = field(default_factory=lambda: ReasoningSplitter(_REASONING))
    _token: list[str] = field(default_factory=list)
    _is_key: bool = False

    def feed(self, text: str) -> None:
        """Take the next piece."""
        if self.is_over:
            return
        if not self._has_begun:
            _, text = self._splitter.feed(text)
        text = self._rest + text
        self._rest = ""
        self.characters_read += len(text)
        at = 0 if self._has_begun else self._begin(text)
        try:
            self._scan(text, at)
        except ValueError:
            self.is_over = True

    # --- the start ---------------------------------------------------------------------------------------

    def _begin(self, text: str) -> int:
        """Return where the JSON begins, or -1 while it has not."""
        # In a form that the splitter does not know: what it holds is no answer.
        self.is_over = not self._has_text and REASONING_OPENS.match(text) is not None
        if self.is_over:
            return -1
        found = (_LATER_START if self._has_text else _START).search(text)
        if found is None:
            torn = _TORN_START.search(text, max(0, len(text) - _LONGEST_HEAD))
            self._rest = torn.group() if torn else ""
            self._has_text = self._has_text or bool(text.removesuffix(self._rest).strip())
            return -1
        self._has_begun = True
        return found.end()

    # --- the scan ----------------------------------------------------------------------------------------

    def _scan(self, text: str, at: int) -> None:
        """Take in the text from a place on; a place below 0 is the end of what can be taken in now."""
        length = len(text)
        while 0 <= at < length and not self.is_over:
            if self.string is not None:
                at = self._scan_string(text, at)
            elif self._token:
                at = self._scan_token(text, at)
            elif space := _SPACE.match(text, at):
                at = space.end()
            else:
                at = self._scan_sign(text, at)

    def _scan_string(self, text: str, at: int) -> int:
        assert self.string is not None
        plain = _PLAIN.match(text, at)
        if plain:
            if not self.takes_breaks and _CONTROL.search(plain.group()):
                raise ValueError("a control character")
            self.string.append(plain.group())
            return plain.end()
        char = text[at]
        if char == '"':
            value = "".join(self.string)
            self.string = None
            if self._is_key:
                self.stack[-1].key, self.stack[-1].expects = value, "colon"
                if value in self.stack[-1].node:
                    raise ValueError("the same key twice")
            else:
                self._add(value)
            return at + 1
        escape = _ESCAPE.match(text, at)
        if escape:
            self.string.append(str(decode_strictly(f'"{escape.group()}"')))
            return escape.end()
        if len(text) - at >= _LONGEST_ESCAPE:
            raise ValueError("not an escape")
        self._rest = text[at:]
        return -1

    def _scan_token(self, text: str, at: int) -> int:
        token = _TOKEN.match(text, at)
        if token:
            self._token.append(token.group())
            return token.end()
        if not _ENDINGS[type(self.stack[-1].node)].match(text, at):
            after = text[at:].strip()
            if after not in {"", ","}:
                raise ValueError("a value that goes on")
            self._rest = after or " "  # it may go on, as in 1,000
            return -1
        value = decode_strictly("".join(self._token))
        self._token = []
        self._add(value)
        return at

    def _scan_sign(self, text: str, at: int) -> int:
        char = text[at]
        frame = self.stack[-1] if self.stack else None
        if char in "}]" and frame is not None:
            self._close(frame, char)
        elif frame is None or frame.expects == "value":
            self._begin_value(char)
            return at + 1 if char in '{["' else at
        elif char == '"' and frame.expects == "key":
            self.string, self._is_key = [], True
        elif char == ":" and frame.expects == "colon":
            frame.expects, frame.may_close = "value", False
        elif char == "," and frame.expects == "comma":
            frame.expects = "key" if isinstance(frame.node, dict) else "value"
            frame.may_close = False
        else:
            raise ValueError(f"unexpected {char!r}")
        return at + 1

    def _begin_value(self, char: str) -> None:
        if char == "{":
            self._open(Frame({}, {}, expects="key"))
        elif char == "[":
            self._open(Frame([], []))
        elif char == '"':
            self.string, self._is_key = [], False
        elif char.isalnum() or char == "-":
            self._token = [""]
        else:
            raise ValueError(f"unexpected {char!r}")

    def _open(self, frame: Frame) -> None:
        self.stack.append(frame)
        self.on_open(frame)

    def _add(self, node: Node) -> None:
        frame = self.stack[-1]
        if isinstance(frame.node, dict):
            frame.node[frame.key] = node
        else:
            frame.node.append(node)
        frame.expects, frame.may_close = "comma", True
        self.on_add(frame, node)

    def _close(self, frame: Frame, char: str) -> None:
        if char != ("}" if isinstance(frame.node, dict) else "]") or not frame.may_close:
            raise ValueError(f"unexpected {char!r}")
        self.stack.pop()
        if self.stack:
            self._add(frame.node)
        else:
            self.is_over = True
