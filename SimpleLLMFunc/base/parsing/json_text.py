"""Finds the JSON in what a model wrote, its reasoning apart (`base/parsing/reasoning.py`): in fences, in prose, inside tags.

Pure text work: nothing here knows the wanted type. Everything runs in time linear in the length of the text;
`WORK_FACTOR` bounds the second looks.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Final

from SimpleLLMFunc.base.parsing.json_node import (
    TOO_DEEP,
    AmbiguousError,
    Bare,
    Node,
    TruncatedError,
    UnreadableError,
    decode_at,
    decode_strictly,
)
from SimpleLLMFunc.base.parsing.parsed import Repair
from SimpleLLMFunc.base.parsing.tolerant_json import TolerantReader
from SimpleLLMFunc.utils import DuplicateKeyError

WORK_FACTOR: Final = 8
"""How often, on average, a character may be looked at before the search gives up."""

LONG: Final = 256 * 1024
"""A text longer than this is mended only if it ends as JSON does."""

_KNOWN_TAGS: Final = "answer|final_answer|final|json|output|result|response|solution|value|tool_call|data"
_WRAPPER_BEGIN: Final = re.compile(rf"<({_KNOWN_TAGS})\b[^<>]*>", re.IGNORECASE)
_WRAPPER_END: Final = re.compile(rf"</({_KNOWN_TAGS})\s*>", re.IGNORECASE)
_WRAPPER: Final = re.compile(rf"{_WRAPPER_BEGIN.pattern}(.*?)</\1\s*>", re.IGNORECASE | re.DOTALL)
_FENCE: Final = re.compile(r"^[ \t>]*(`{3,}|~{3,})[ \t]*([\w+.#-]*)[^\n`]*$", re.MULTILINE)
_INLINE_FENCE: Final = re.compile(r"^```(?:json[c5]?\b)?(.*?)```$", re.DOTALL | re.IGNORECASE)
_BRACKET: Final = re.compile(r"[{\[｛［]")
_STRICT_START: Final = re.compile(r"\{\s*[\"}]|\[\s*[\[{\"\-\dtfn\]]")
# An escaped quote begins no string: one without an end would be looked for again at each of them, in quadratic time.
_STRING_OR_BRACKET: Final = re.compile(r'\\[\\"]|"(?:[^"\\\n]|\\.)*"|[{}\[\]]')
_GOES_ON: Final = re.compile(r"\s*[,，]\s*[\"'“][^\"'“”\n]{1,100}[\"'”]\s*[:：]")
_HAS_ESCAPED_QUOTES: Final = re.compile(r"^\s*[{\[]\s*(?:[{\[]\s*)*\\+\"")
_MISSING_BRACES: Final = re.compile(r"\s*\"[^\"\n]{1,100}\"\s*:")
_BOM: Final = "\ufeff\u200b\u2060"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A JSON value found in the text.

    Attributes:
        node: the value as it was written.
        start, end: its place in the searched text.
        repairs: what was mended to read it.
        is_whole: nothing but space and fences stands around it.
    """

    node: Node
    start: int
    end: int
    repairs: list[Repair]
    is_whole: bool


@dataclass(slots=True)
class Finding:
    """All that was found in one text.

    Attributes:
        text: what was searched; the candidates' positions are positions in it.
        candidates: in the order in which they stand.
        damaged: start, end and reason of every place where JSON was meant but cannot be read.
    """

    text: str
    candidates: list[Candidate] = field(default_factory=list)
    damaged: list[tuple[int, int, UnreadableError]] = field(default_factory=list)


def find_json(text: str) -> Finding:
    """Return every JSON object and list in the text, and the one JSON value that the whole text or its fence is.

    Args:
        text: without reasoning blocks.
    """
    finding = Finding(text)
    body, was_wrapped = _unwrapped(text.strip().strip(_BOM).strip())
    # mending a long text is slow, and in vain where it was cut
    mend = len(body) <= LONG or body.rstrip()[-1] in "}])｝］"
    if _find_whole(finding, body, was_wrapped=was_wrapped, mend=mend):
        return finding
    _Search(finding, mend=mend).run()
    if not finding.candidates and mend:
        _find_escaped(finding, body)
    return finding


def bare_text(text: str) -> str:
    """Return the text without what only decorates it as a whole: fences, known tags, emphasis, backticks."""
    body = _unwrapped(text.strip().strip(_BOM).strip())[0].strip()
    tagged = _only_tagged(body)
    if tagged is not None:
        body = _unwrapped(tagged.strip())[0].strip()
    for mark in ("**", "__", "`", "*", "_"):
        inner = body[len(mark) : -len(mark)]
        if body.startswith(mark) and body.endswith(mark) and inner.strip() and mark not in inner:
            body = inner.strip()
    return body


def _only_tagged(text: str) -> str | None:
    """Return the content of the one known tag of the text; None without such a tag, or with several."""
    ends: dict[str, list[tuple[int, int]]] = {}
    for found in _WRAPPER_END.finditer(text):
        ends.setdefault(found.group(1).lower(), []).append(found.span())
    inside, position = None, 0
    for found in _WRAPPER_BEGIN.finditer(text):
        mine = ends.get(found.group(1).lower(), [])
        number = bisect_left(mine, (found.end(), 0))
        if found.start() < position or number == len(mine):
            continue
        if inside is not None:
            return None
        start, position = mine[number]
        inside = text[found.end() : start]
    return inside


def _unwrapped(text: str) -> tuple[str, bool]:
    """Take away one tag and then fences that stand around the whole text; tell whether there was one."""
    was_wrapped, ending = False, ""
    for _ in range(4):
        inner = _inside_whole(text)
        if inner is None:
            break
        # the line break before a closing fence ends a number that stands there
        ending = "\n" if inner.rstrip(" \t").endswith("\n") else ""
        text, was_wrapped = inner.strip(), True
    return text + ending, was_wrapped


def _inside_whole(text: str) -> str | None:
    tag = _WRAPPER.match(text)
    if tag and tag.end() == len(text):
        return tag.group(2)
    fence = _FENCE.match(text)
    if fence:
        mark = fence.group(1)
        rest = text[fence.end() + 1 :]
        stripped = rest.rstrip()
        inner = stripped.rstrip(mark) if stripped.endswith(mark[:3]) else rest
        return None if any(set(found.group(1)) == set(mark) for found in _FENCE.finditer(inner)) else inner
    inline = _INLINE_FENCE.match(text)
    if inline and "```" not in inline.group(1):
        return inline.group(1)
    return None


def _find_whole(finding: Finding, body: str, *, was_wrapped: bool, mend: bool) -> bool:
    """Read the whole text as one value, strictly."""
    repairs = [("", "JSON taken out of a fence or tag")] if was_wrapped else []
    try:
        node = decode_strictly(body)
    except (DuplicateKeyError, RecursionError) as error:
        problem = str(error) if isinstance(error, DuplicateKeyError) else TOO_DEEP
        finding.damaged.append((0, len(finding.text), AmbiguousError(problem, 0)))
        return True
    except ValueError:
        pass
    else:
        finding.candidates.append(Candidate(node, 0, len(finding.text), repairs, is_whole=True))
        return True
    if not mend or not body:
        return False
    if body.startswith("{{") and body.endswith("}}"):
        # a template's way of writing one brace
        body, repairs = body[1:-1], [*repairs, ("", "doubled braces")]
    return _mend_whole(finding, body, repairs)


def _mend_whole(finding: Finding, body: str, repairs: list[Repair]) -> bool:
    """Read the whole text as one value that is not quite JSON."""
    if body[0] not in "{[(｛［\"'“":
        return False
    reader = TolerantReader(body)
    try:
        node = reader.read(0)
    except UnreadableError:
        # the search says what is wrong with it
        return False
    if body[reader.end :].strip():
        return False
    if isinstance(node, str) and (body[0] != '"' or re.search(r'"\s*[,，\n]\s*"', node)):
        # several strings, or prose that begins with one
        return False
    finding.candidates.append(Candidate(node, 0, len(finding.text), [*repairs, *reader.repairs], is_whole=True))
    return True


def _find_escaped(finding: Finding, body: str) -> None:
    """Read JSON whose quotes were escaped once too often or written as HTML entities, or without its braces."""
    try:
        if _HAS_ESCAPED_QUOTES.match(body):
            text = decode_strictly(f'"{body}"'.replace("\n", "\\n").replace("\t", "\\t"))
            what = "quotes were escaped"
        elif "&quot;" in body and '"' not in body:
            from html import unescape

            text, what = unescape(body), "HTML entities"
        elif _MISSING_BRACES.match(body):
            text, what = f"{{{body.rstrip(',')}}}", "braces around the object missing"
        else:
            return
        node = decode_strictly(text)
    except (ValueError, RecursionError):
        return
    finding.damaged.clear()
    finding.candidates.append(Candidate(node, 0, len(finding.text), [("", what)], is_whole=True))


class _Search:
    """Goes through the text from bracket to bracket."""

    def __init__(self, finding: Finding, *, mend: bool) -> None:
        self._finding = finding
        self._text = finding.text
        self._reader = TolerantReader(finding.text)
        self._mend = mend
        self._work = WORK_FACTOR * len(finding.text) + 10_000

    def run(self) -> None:
        position = 0
        while found := _BRACKET.search(self._text, position):
            start = found.start()
            if self._work < 0:
                self._damage(start, len(self._text), AmbiguousError("too many brackets that are no JSON", start))
                return
            position = self._read_at(start)

    def _read_at(self, start: int) -> int:
        """Read the value at a bracket, or note the damage; return where to go on."""
        if not _STRICT_START.match(self._text, start):
            return self._mended_at(start)
        try:
            node, end = decode_at(self._text, start)
        except AmbiguousError as error:
            return self._failed_at(start, error)
        except ValueError as error:
            # the error counts the lines from the start of the text
            self._work -= getattr(error, "pos", start) - start + start // 32
            return self._mended_at(start)
        return self._take(start, end, node, [])

    def _mended_at(self, start: int) -> int:
        if not self._mend:
            # what stands inside a broken container is part of it, and no candidate
            is_json = self._is_json_like(start)
            problem = UnreadableError("JSON too long to be mended", start)
            return self._damage(start, len(self._text), problem) if is_json else start + 1
        try:
            node = self._reader.read(start)
        except UnreadableError as error:
            self._work -= max(error.position, self._reader.reach) - start
            return self._failed_at(start, error)
        return self._take(start, self._reader.end, node, self._reader.repairs)

    def _failed_at(self, start: int, error: UnreadableError) -> int:
        if error.problem == TOO_DEEP or (isinstance(error, TruncatedError) and self._is_json_like(start)):
            return self._damage(start, len(self._text), error)
        if error.is_json:
            return self._damage(start, self._end_of_damage(start), error)
        return start + 1

    def _is_json_like(self, start: int) -> bool:
        following = self._text[start + 1 : start + 40].lstrip()
        return following[:1] in set("\"'{[}]-0123456789“‘") or not following

    def _take(self, start: int, end: int, node: Node, repairs: list[Repair]) -> int:
        self._work -= end - start
        goes_on = _GOES_ON.match(self._text, end)
        if goes_on and isinstance(node, dict):
            # a brace too many in the middle: what follows belongs to the object
            stop = self._end_of_damage(goes_on.end())
            return self._damage(start, stop, AmbiguousError("an object goes on after its end", end))
        if not _is_prose(node):
            self._finding.candidates.append(Candidate(node, start, end, repairs, self._is_alone(start, end)))
        return end

    def _is_alone(self, start: int, end: int) -> bool:
        """Tell whether the value fills its line or its fence: text without quotes counts only there."""
        before = self._text[max(start - 200, 0) : start].rstrip(" \t")[-1:]
        after = self._text[end : end + 200].lstrip(" \t")[:1]
        return before in {"", "\n"} and after in {"", "\n", "`"}

    def _damage(self, start: int, end: int, error: UnreadableError) -> int:
        self._finding.damaged.append((start, end, error))
        return max(end, start + 1)

    def _end_of_damage(self, start: int) -> int:
        """Return where the brackets opened at `start` are closed again, strings left aside as far as can be told."""
        depth = 0
        position = start
        for found in _STRING_OR_BRACKET.finditer(self._text, start):
            char = found.group()
            if char in "{[":
                depth += 1
            elif char in "}]":
                depth -= 1
            position = found.end()
            if depth <= 0:
                break
        else:
            position = len(self._text)
        self._work -= position - start
        return position


def _is_prose(node: Node) -> bool:
    """Tell whether the brackets hold nothing but words, as ``[see below]`` does."""
    return isinstance(node, list) and len(node) == 1 and isinstance(node[0], Bare) and " " in node[0].text
