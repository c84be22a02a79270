"""The reasoning that a model writes around its answer: found, and left out, with the control marks of chat templates.

A tag inside a JSON value is part of its text. Everything runs in time linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from SimpleLLMFunc.base.parsing.json_node import UnreadableError, decode_at
from SimpleLLMFunc.base.parsing.parsed import Repair
from SimpleLLMFunc.base.parsing.tolerant_json import TolerantReader

MAX_LOOKS: Final = 50
"""How many brackets are looked at to tell a tag from a tag inside a string."""

LOOK_FACTOR: Final = 2
"""How often, on average, those looks may read a character: each that is in vain may read to the end."""

_TAGS: Final = "think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis|chain_of_thought"
REASONING_OPENS: Final = re.compile(rf"\s*<(?:{_TAGS})\b", re.IGNORECASE)
_REASONING: Final = (
    (re.compile(rf"<({_TAGS})\b[^<>]*>", re.IGNORECASE), re.compile(rf"</({_TAGS})\s*>", re.IGNORECASE)),
    (re.compile(r"\[THINK\]"), re.compile(r"\[/THINK\]")),
    (re.compile("◁think▷"), re.compile("◁/think▷")),
    (re.compile(r"<\|begin_of_thought\|>"), re.compile(r"<\|end_of_thought\|>")),
    (re.compile(r"<\|channel\|>(?:analysis|commentary)\b[^<]*<\|message\|>"), re.compile(r"<\|end\|>")),
)
_MARKERS: Final = (
    *("<|start|>assistant", "<|channel|>final", "<|im_start|>assistant", "<|message|>", "<|end|>", "<|return|>"),
    *("<|im_end|>", "<|eot_id|>", "<|begin_of_solution|>", "<|end_of_solution|>", "</s>"),
)
_FIRST_MARKERS: Final = re.compile(rf"(?:\s*(?:{'|'.join(map(re.escape, _MARKERS))}))+")
_ORPHAN_END: Final = re.compile(r"</(?:think|thinking|reasoning)>[ \t]*\n", re.IGNORECASE)


def without_reasoning(text: str) -> tuple[str, list[Repair]]:
    """Return the text without its reasoning blocks, and a line where there were some.

    An opening tag that is never closed hides all that follows; a closing tag alone hides all that went before.
    """
    source = text
    for opening, closing in _REASONING:
        if closing.search(text) or opening.search(text):
            text = _cut_blocks(text, opening, closing)
    repairs = [] if text == source else [("", "reasoning left out")]
    if "<|" in text or "</s>" in text:
        cleaned = _without_edge_markers(text)
        repairs += [] if cleaned == text else [("", "the model's control marks left out")]
        text = cleaned
    return text, repairs


def _without_edge_markers(text: str) -> str:
    """Return the text without the control marks that it begins and ends with."""
    first = _FIRST_MARKERS.match(text)
    start, end = first.end() if first else 0, len(text)
    # Step by step from the end: a pattern for a run of marks would be tried again at each mark, in quadratic time.
    while True:
        stop = end
        while stop > start and text[stop - 1].isspace():
            stop -= 1
        mark = next((mark for mark in _MARKERS if text.endswith(mark, start, stop)), "")
        if not mark:
            return text[start:end]
        end = stop - len(mark)


def without_leading_reasoning(text: str) -> tuple[str, list[Repair]]:
    """Return a plain text without the reasoning block it begins with; later tags are part of the text.

    A closing tag alone counts once, outside of code: its opening tag was part of the prompt.
    """
    start = len(text) - len(text.lstrip())
    for opening, closing in _REASONING:
        if opening.match(text, start):
            depth = 0
            for _, end, step in _marks(text, opening, closing):
                depth += step
                if depth == 0:
                    return _without_edge_markers(text[end:]).strip(), [("", "reasoning left out")]
            return "", [("", "reasoning left out")]
    orphans = list(_ORPHAN_END.finditer(text))
    if len(orphans) == 1 and "`" not in text[: orphans[0].start()] and not _REASONING[0][0].search(text):
        return text[orphans[0].end() :].strip(), [("", "reasoning left out")]
    return text, []


def _cut_blocks(text: str, opening: re.Pattern[str], closing: re.Pattern[str]) -> str:
    kept: list[str] = []
    depth = position = 0
    for start, end, step in _marks(text, opening, closing):
        if step > 0:
            if depth == 0:
                kept.append(text[position:start])
            depth += 1
        elif depth == 0:
            # the opening tag was part of the prompt: all so far was reasoning
            kept.clear()
        else:
            depth -= 1
        position = end
    if depth == 0:
        kept.append(text[position:])
    return "".join(kept)


def _marks(text: str, opening: re.Pattern[str], closing: re.Pattern[str]) -> Iterator[tuple[int, int, int]]:
    """Yield start, end and direction of every tag; a tag inside a JSON value is part of its text."""
    pattern = re.compile(f"(?P<in>{opening.pattern})|(?P<out>{closing.pattern})|[{{\\[]", opening.flags)
    position = depth = 0
    looks, work = MAX_LOOKS, LOOK_FACTOR * len(text) + 10_000
    while found := pattern.search(text, position):
        position = found.end()
        if found["in"] is not None:
            depth += 1
            yield found.start(), position, 1
        elif found["out"] is not None:
            depth = max(0, depth - 1)
            yield found.start(), position, -1
        elif depth == 0 and looks > 0 and work > 0:
            looks -= 1
            end, reach = _end_of_value(text, found.start())
            work -= reach - found.start()
            position = max(position, end)


def _end_of_value(text: str, start: int) -> tuple[int, int]:
    """Return where the JSON value at `start` ends, -1 if there is no value, and how far that was looked for."""
    try:
        end = decode_at(text, start)[1]
    except ValueError:
        reader = TolerantReader(text)
    else:
        return end, end
    try:
        reader.read(start)
    except UnreadableError:
        return -1, reader.reach
    return reader.end, reader.reach
