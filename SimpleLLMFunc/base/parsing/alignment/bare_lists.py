"""Values that stand one after the other, as the items of a wanted list."""

from __future__ import annotations

import re
from typing import Final

from SimpleLLMFunc.base.parsing.alignment.shape import ChoiceShape, ListShape, leaf_kinds, resolved
from SimpleLLMFunc.base.parsing.json_node import Bare, Node, decode_strictly
from SimpleLLMFunc.base.parsing.json_text import Finding

# Possessive, and no two branches begin alike: a page of empty bullets is told apart in one go.
_BETWEEN: Final = re.compile(r"(?:^[^\S\n]*+(?:[-*•]|\d++[.)])\s|\s|[,，;；]|```\w*+|~~~\w*+)*+", re.MULTILINE)
_BULLET: Final = re.compile(r"([-*•])\s+(.*)")
_NUMBERED: Final = re.compile(r"(\d+)[.)]\s+(.*)")
_GROUPED: Final = re.compile(r"\s*\d{1,3}(?:,\d{3})+\s*")


def adjacent_candidates(finding: Finding) -> bool:
    """Tell whether nothing but space, commas, fences and bullets stands between the JSON values."""
    pairs = zip(finding.candidates, finding.candidates[1:], strict=False)
    return all(_BETWEEN.fullmatch(finding.text[left.end : right.start]) for left, right in pairs)


def bare_items(text: str, shape: ListShape) -> list[Node]:
    """Return the items that a text without brackets lists, at least two; else an empty list.

    Separated by commas or one a line; as JSON, or words of an enum. Strings count only in quotes or as bullets:
    text of several lines may be one string.
    """
    if not _GROUPED.fullmatch(text):
        try:
            nodes = decode_strictly(f"[{text}]")
        except (ValueError, RecursionError):
            pass
        else:
            return nodes if len(nodes) > 1 and not any(isinstance(node, list | dict) for node in nodes) else []
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > 1:
        return _from_lines(lines, text, shape)
    if isinstance(resolved(shape.item), ChoiceShape):
        parts = [part.strip() for part in re.split(r"[,，、;；]", text) if part.strip()]
        return [Bare(part) for part in parts] if len(parts) > 1 else []
    return []


def _from_lines(lines: list[str], text: str, shape: ListShape) -> list[Node]:
    unmarked = _without_marks(lines)
    is_marked = unmarked is not lines
    if is_marked and re.search(r"^\s+\S", text.split("\n", 1)[1], re.MULTILINE):
        return []
    nodes: list[Node] = []
    is_text = leaf_kinds(shape.item) == ["str"]
    for line in unmarked:
        try:
            nodes.append(decode_strictly(line.rstrip(",，;")))
        except (ValueError, RecursionError):
            if is_text and not is_marked:
                return []
            nodes.append(line if is_text else Bare(line.rstrip(",，;")))
    return nodes


def _without_marks(lines: list[str]) -> list[str]:
    """Take away bullets or numbers from 1 on, if every line has one."""
    bullets = [_BULLET.fullmatch(line) for line in lines]
    found = [bullet for bullet in bullets if bullet]
    if len(found) == len(lines) and len({bullet.group(1) for bullet in found}) == 1:
        return [bullet.group(2) for bullet in found]
    numbers = [number for number in map(_NUMBERED.fullmatch, lines) if number]
    if [number.group(1) for number in numbers] == [str(count) for count in range(1, len(lines) + 1)]:
        return [number.group(2) for number in numbers]
    return lines
