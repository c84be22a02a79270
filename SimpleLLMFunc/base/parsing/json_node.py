"""JSON as it was written: numbers keep their digits, and what was not quite JSON says so.

A node is `str` (it stood in quotes), `bool`, None, `Num`, `Bare`, a list of nodes or a dict of nodes.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, TypeAlias

from SimpleLLMFunc.errors import cut
from SimpleLLMFunc.type import without_surrogates
from SimpleLLMFunc.utils import DuplicateKeyError, object_of, refuse_constant

MAX_DIGITS = 4300
"""Digits of the longest integer; Python refuses to print a longer one."""

TOO_DEEP: Final = "nested too deep"

Node: TypeAlias = Any
Path: TypeAlias = tuple[str | int, ...]


@dataclass(slots=True)
class Num:
    """A number, as its characters."""

    text: str


@dataclass(slots=True)
class Bare:
    """Text that stood without quotes."""

    text: str


class Open(dict[str, Any]):
    """An object whose closing brace is missing, after a complete value."""


class Braced(list[Any]):
    """Values between braces, as Python writes a set."""


class UnreadableError(ValueError):
    """What stands here is not JSON, not even nearly.

    Attributes:
        position: in the text, where reading stopped.
        is_json: enough was read to know that JSON was meant.
    """

    def __init__(self, problem: str, position: int, *, is_json: bool = False) -> None:
        self.problem = problem
        self.position = position
        self.is_json = is_json
        super().__init__(f"{problem} at character {position}")


class AmbiguousError(UnreadableError):
    """It can be read in more than one way, or says itself that something is left out."""


class TruncatedError(UnreadableError):
    """The text ends inside a list, a string or a number."""


_DECODER = json.JSONDecoder(parse_float=Num, parse_int=Num, parse_constant=refuse_constant, object_pairs_hook=object_of)


def decode_strictly(text: str) -> Node:
    """Read strict JSON.

    Raises:
        ValueError: it is not strict JSON, or a key stands twice with different values (`DuplicateKeyError`).
        RecursionError: it is nested too deep.
    """
    return _DECODER.decode(text)


def decode_at(text: str, start: int) -> tuple[Node, int]:
    """Read the strict JSON value that begins at `start`; return it and where it ends.

    Raises:
        AmbiguousError: a key stands twice with different values, or it is nested too deep.
        ValueError: it is not strict JSON.
    """
    try:
        return _DECODER.raw_decode(text, start)
    except DuplicateKeyError as error:
        raise AmbiguousError(str(error), start, is_json=True) from None
    except RecursionError:
        raise AmbiguousError(TOO_DEEP, start) from None


def is_same(left: Node, right: Node) -> bool:
    """Tell whether two nodes are the same value, written the same way; True is not 1."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(is_same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(is_same(value, right[key]) for key, value in left.items())
    return bool(left == right)


def is_same_value(left: Any, right: Any) -> bool:
    """Tell whether two values are the same and of one type; True is not 1."""
    return type(left) is type(right) and bool(left == right)


def plain_value(node: Node) -> Any:
    """Return the node as JSON data of Python, as `json.loads` gives it.

    Raises:
        ValueError: a number that is too large.
    """
    if isinstance(node, Num):
        return number_value(node.text)
    if isinstance(node, Bare):
        return node.text
    if isinstance(node, list):
        return [plain_value(item) for item in node]
    if isinstance(node, dict):
        return {without_surrogates(key): plain_value(value) for key, value in node.items()}
    return without_surrogates(node) if isinstance(node, str) else node


def number_value(text: str) -> int | float:
    """Return the number that the JSON literal `text` means.

    Raises:
        ValueError: it is too large for Python to write out, or for a float to hold.
    """
    if text.lstrip("-+").isdigit():
        if len(text) > MAX_DIGITS:
            raise ValueError(f"a number of {len(text)} digits")
        return int(text)
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"a number too large: {text[:40]}")
    return value


def is_number_of(text: str, wanted: float) -> bool:
    """Tell whether the JSON literal `text` is the number `wanted`; whole ones are compared digit by digit."""
    try:
        return len(text) < 40 and number_value(text) == wanted
    except ValueError:
        return False


def shown(node: Node) -> str:
    """Return a node for a message, shortened."""
    if isinstance(node, dict):
        return cut(f"an object with {', '.join(islice(node, 5)) or 'no keys'}", 60)
    if isinstance(node, list):
        return f"a list of {len(node)}"
    if node is None or isinstance(node, bool):
        return json.dumps(node)
    text = cut(node.text if isinstance(node, Num | Bare) else str(node), 61)
    return text if isinstance(node, Num) else repr(text)


def quoted(text: str) -> str:
    """Return a text in quotes for a message, shortened."""
    return repr(cut(text.strip(), 61))


def is_wire(wire: Any, node: Node) -> bool:
    """Tell whether a node is exactly the wire form of a choice."""
    if isinstance(node, Num):
        return isinstance(wire, int | float) and not isinstance(wire, bool) and is_number_of(node.text, wire)
    return is_same(node, wire)


def holds(node: Node, *kinds: type) -> bool:
    """Tell whether the node, or one inside of it, is of one of the kinds."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, kinds):
            return True
        waiting += part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return False
