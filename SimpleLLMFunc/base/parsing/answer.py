"""Text → a value of the wanted type, or a `ResponseParseError` that says what a model can do better.

The order: strict JSON; else the JSON in fences, prose and tags, after the reasoning; else what can be mended; and
each of these aligned to the type. Everything in the text that fits is a candidate: two that differ are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias, TypeGuard

from pydantic import TypeAdapter

from SimpleLLMFunc.base.parsing.alignment.align import Aligner
from SimpleLLMFunc.base.parsing.alignment.alignment import Fit, Misfit, is_refusal, violations_of
from SimpleLLMFunc.base.parsing.alignment.scalar_coercion import digit_truth
from SimpleLLMFunc.base.parsing.alignment.shape import (
    AnyShape,
    ChoiceShape,
    ListShape,
    MappingShape,
    ObjectShape,
    OpaqueShape,
    TaggedShape,
    choices_of,
    leaf_kinds,
    resolved,
)
from SimpleLLMFunc.base.parsing.alignment.shape_builder import shape_of
from SimpleLLMFunc.base.parsing.json_node import (
    Bare,
    Node,
    TruncatedError,
    decode_strictly,
    is_same_value,
    plain_value,
    shown,
)
from SimpleLLMFunc.base.parsing.json_text import Candidate, Finding, bare_text, find_json
from SimpleLLMFunc.base.parsing.parsed import Parsed, Repair, RepairLevel
from SimpleLLMFunc.base.parsing.reasoning import without_leading_reasoning, without_reasoning
from SimpleLLMFunc.errors import ResponseParseError, Violation
from SimpleLLMFunc.type import without_surrogates

_Judged: TypeAlias = list[tuple[Candidate, Parsed[Any] | Misfit]]

_WRAPPER_KEY: Final = "value"
_BOXED: Final = re.compile(r"\\boxed\{([^{}]*)\}")  # LaTeX's way of marking the answer
_PLACEHOLDER: Final = re.compile(r"<[\w ,|/-]+>|\.\.\.|…")
# Possessive, and no two branches begin alike: a page of empty bullets is told apart in one go.
_BETWEEN: Final = re.compile(r"(?:^[^\S\n]*+(?:[-*•]|\d++[.)])\s|\s|[,，;；]|```\w*+|~~~\w*+)*+", re.MULTILINE)
_BULLET: Final = re.compile(r"([-*•])\s+(.*)")
_NUMBERED: Final = re.compile(r"(\d+)[.)]\s+(.*)")
_ITEM: Final = r"(?:\"[^\"\n]*+\"|'[^'\n]*+'|[\d.-][\w.+-]*+|[Tt]rue|[Ff]alse|null|None)"
# A key with its value; items up to a bracket that nothing opened; items behind a bracket that nothing closed.
_LOOSE: Final = re.compile(
    rf"[\"'”]\s*[:：]\s*{_ITEM}\s*[,，}}\]]|\A[\s,，]*+(?:{_ITEM}[\s,，]*+)++[}}\]]|[{{\[]\s*+(?:{_ITEM}[\s,，]*+)++\Z"
)
_GROUPED: Final = re.compile(r"\s*\d{1,3}(?:,\d{3})+\s*")


class AnswerReader:
    """Reads the answers for one type; made once per type.

    Attributes:
        shape: the type as the aligner sees it.
        has_hooks: code of the user's reads values before pydantic does.
    """

    def __init__(self, return_type: Any, adapter: TypeAdapter[Any], *, is_wrapped: bool) -> None:
        self._return_type = return_type
        self._adapter = adapter
        self._is_wrapped = is_wrapped
        self.shape, self.has_hooks = shape_of(adapter)

    # --- the two ways in ---------------------------------------------------------------------------------

    def read_text(self, text: str) -> Parsed[str]:
        """Return the text as it stands, without the reasoning in front of it."""
        clean = without_surrogates(text)
        repairs: list[Repair] = [] if clean == text else [("", "half a character replaced")]
        clean, notes = without_leading_reasoning(clean)
        repairs += notes
        if notes and not clean:
            raise self._refusal(text, [("", "an answer", "nothing but reasoning")])
        return Parsed(clean, repairs)

    def read(self, text: str, repair: RepairLevel, *, prefers_wrapper: bool) -> Parsed[Any]:
        """Return the value in the text.

        Args:
            text: as the model wrote it.
            repair: as in `OutputSpec.parse`.
            prefers_wrapper: the answer was asked for as ``{"value": …}``, where the value is no object.

        Raises:
            ResponseParseError: no one value fits.
        """
        try:
            found = _Attempt(self, text, repair, prefers_wrapper=prefers_wrapper).run()
        except RecursionError:
            found = Misfit([("", resolved(self.shape).name, "JSON nested too deep")])
        if isinstance(found, Misfit):
            raise self._refusal(text, found.violations)
        return Parsed(found.value, list(dict.fromkeys(found.repairs)))

    def _refusal(self, text: str, violations: Sequence[Violation]) -> ResponseParseError:
        return ResponseParseError(without_surrogates(text), self._return_type, violations)

    # --- what a candidate is worth -----------------------------------------------------------------------

    def judged(
        self, node: Node, repairs: Sequence[Repair], aligner: Aligner, *, prefers_wrapper: bool
    ) -> Parsed[Any] | Misfit:
        """Return the value that the node is, taken as the value or as its wrapper; pydantic has the last word."""
        found = aligner.align(self.shape, node)
        if self.is_wrapper(node):
            # A type that only pydantic knows, such as bytes, takes any node here; an object can only be the wrapper.
            prefers_wrapper = prefers_wrapper or isinstance(resolved(self.shape), OpaqueShape)
            inside = aligner.align(self.shape, node[_WRAPPER_KEY], is_inner=True)
            if isinstance(found, Misfit) or (
                isinstance(inside, Fit) and (prefers_wrapper or inside.rank < found.rank - 1e-9)
            ):
                found = inside
        if isinstance(found, Misfit):
            return found
        try:
            value = self._adapter.validator.validate_python(found.value)
        except Exception as error:  # noqa: BLE001 - a validator of the user's own may raise anything
            violations = violations_of(error)
            # A check behind pydantic's own has seen the value: to ask it again may cost a request, and another answer.
            value = None if is_refusal(error) and not self.has_hooks else self._built_from_json(node)
            if value is None:
                return Misfit(violations)
        return Parsed(value, [*repairs, *found.repairs])

    def is_wrapper(self, node: Node) -> TypeGuard[dict[str, Node]]:
        """Tell whether the node is ``{"value": …}`` around a value that is no object."""
        return self._is_wrapped and isinstance(node, dict) and list(node) == [_WRAPPER_KEY]

    def _built_from_json(self, node: Node) -> Any:
        """Validate as JSON what a strict type does not take as Python data, such as a dataclass in a strict model."""
        try:
            return self._adapter.validator.validate_json(json.dumps(plain_value(node)), strict=True)
        except Exception:  # noqa: BLE001 - as above
            return None


class _Attempt:
    """One text being read."""

    def __init__(self, reader: AnswerReader, text: str, repair: RepairLevel, *, prefers_wrapper: bool) -> None:
        self._reader = reader
        self._shape = resolved(reader.shape)
        self._shape_is_scalar = not isinstance(self._shape, ObjectShape | ListShape | MappingShape | TaggedShape)
        lists = [part for part in choices_of(self._shape) if isinstance(part, ListShape)]
        self._list_shape = lists[0] if len(lists) == 1 else None
        self._level = repair
        self._may_coerce = repair == "coerce"
        self._takes_text = self._may_coerce and "str" in leaf_kinds(self._shape)
        self._prefers_wrapper = prefers_wrapper
        self._repairs: list[Repair] = []
        self._text = text

    def run(self) -> Parsed[Any] | Misfit:
        if self._level == "off":
            return self._strict_only()
        text = without_surrogates(self._text)
        if text != self._text:
            self._repairs.append(("", "half a character replaced"))
        body, notes = without_reasoning(text)
        self._repairs += notes
        if not body.strip():
            return Misfit([("", self._shape.name, "nothing but reasoning" if text.strip() else "an empty answer")])
        if self._shape_is_scalar and "\\boxed{" in body:
            boxed, body = body, _BOXED.sub(r"\1", body)
            self._repairs += [("", "taken out of \\boxed{}")] if body != boxed else []
        found = self._from_json(find_json(body))
        if isinstance(found, Parsed):
            found.repairs[:0] = self._repairs
        return found

    def _strict_only(self) -> Parsed[Any] | Misfit:
        try:
            node = decode_strictly(self._text.strip())
        except ValueError as error:
            return Misfit([("", f"{self._shape.name}, as strict JSON", str(error))])
        return self._reader.judged(node, (), Aligner(may_coerce=False), prefers_wrapper=self._prefers_wrapper)

    def _judged(self, node: Node, repairs: Sequence[Repair], *, is_whole: bool) -> Parsed[Any] | Misfit:
        aligner = Aligner(may_coerce=self._may_coerce)
        found = self._reader.judged(node, repairs, aligner, prefers_wrapper=self._prefers_wrapper)
        if isinstance(found, Misfit) and self._may_coerce and self._reader.has_hooks:
            # a user's validator did not take it as it was written; perhaps it takes it mended
            mended = Aligner(may_coerce=True, reads_hooked=True)
            again = self._reader.judged(node, repairs, mended, prefers_wrapper=self._prefers_wrapper)
            found = again if isinstance(again, Parsed) else found
        if isinstance(found, Misfit) and self._may_coerce and is_whole:
            truth = digit_truth(self._shape, node[_WRAPPER_KEY] if self._reader.is_wrapper(node) else node)
            if truth is not None:
                return Parsed(truth.value, [*repairs, ("", truth.note)])
        return found

    # --- JSON --------------------------------------------------------------------------------------------

    def _from_json(self, finding: Finding) -> Parsed[Any] | Misfit:
        if not finding.candidates and not finding.damaged:
            return self._from_words(finding)
        judged = [(each, self._judged(each.node, each.repairs, is_whole=each.is_whole)) for each in finding.candidates]
        # Text without quotes decides only where nothing else stands around it.
        known = [(each, found) for each, found in judged if each.is_whole or not _holds_bare(each.node)]
        fits = [(each, found) for each, found in known if isinstance(found, Parsed)]
        series = self._series(finding)
        lists = [[what for _, what in found.repairs] for each, found in fits if isinstance(each.node, list)]
        if series is not None and all("one item taken as a list" in repairs for repairs in lists):
            return series
        if fits:
            return self._only_one(finding, judged, fits)
        if self._takes_text and not any(candidate.is_whole for candidate in finding.candidates):
            return self._from_words(finding)
        return self._best_reason(finding, judged)

    def _only_one(
        self, finding: Finding, judged: _Judged, fits: list[tuple[Candidate, Parsed[Any]]]
    ) -> Parsed[Any] | Misfit:
        candidate, first = fits[0]
        # An empty value says less than what stands before it.
        end = 0 if candidate.node in ([], {}) else fits[-1][0].end
        later = [each for each, found in judged if isinstance(found, Misfit) and each.start >= end]
        damage = [(start, finding.text[start:stop]) for start, stop, _ in finding.damaged]
        got = ""
        if any(not is_same_value(first.value, other.value) for _, other in fits[1:]):
            got = f"{len(fits)} JSON values that all fit and differ"
        elif any(self._is_alike(finding.text[each.start : each.end]) for each in later) or any(
            self._is_alike(piece) and (start >= end or not _PLACEHOLDER.search(piece)) for start, piece in damage
        ):
            got = "a JSON value that fits, and another like it that does not"
        elif _holds_pieces(finding):
            got = "JSON that fits, and pieces of JSON around it that cannot be read"
        elif self._takes_text and not candidate.is_whole:
            got = "text with JSON in it, which fits as text and as JSON"
        elif self._says_otherwise(finding, first):
            got = "JSON that fits, and another value in the words around it"
        if got:
            return Misfit([("", f"one {self._shape.name}", got)])
        if finding.text[: candidate.start].strip() or finding.text[candidate.end :].strip():
            first.repairs.insert(0, ("", "JSON found in the text"))
        return first

    def _says_otherwise(self, finding: Finding, found: Parsed[Any]) -> bool:
        """Tell whether the words around the JSON name another scalar."""
        may_say = self._may_coerce and self._shape_is_scalar and not isinstance(self._shape, AnyShape)
        if not may_say or finding.candidates[0].is_whole:
            return False
        words = bare_text("".join(_around(finding))).strip(" \n`")
        said = words and self._judged(Bare(words), (), is_whole=False)
        return isinstance(said, Parsed) and not is_same_value(said.value, found.value)

    def _is_alike(self, piece: str) -> bool:
        """Tell whether a piece of text looks like another try at the same value."""
        shape = self._shape
        if isinstance(shape, ObjectShape):
            return any(re.search(rf"\b{re.escape(name)}\b", piece) for name in shape.by_name)
        return True

    def _best_reason(self, finding: Finding, judged: _Judged) -> Misfit:
        misfits = [found for candidate, found in judged if isinstance(found, Misfit) and found.violations]
        if len(misfits) == 1 and not finding.damaged:
            return misfits[0]
        if finding.damaged:
            problem = finding.damaged[-1][2]
            what = "JSON that is cut off" if isinstance(problem, TruncatedError) else "JSON that cannot be read"
            damage: Violation = ("", self._shape.name, f"{what}: {problem}")
            return Misfit([damage, *(misfits[-1].violations if misfits else [])])
        return misfits[-1] if misfits else Misfit([("", self._shape.name, "text without such a value")])

    # --- several values one after the other ----------------------------------------------------------------

    def _series(self, finding: Finding) -> Parsed[Any] | Misfit | None:
        """Read JSON values that stand one after the other as the items of a wanted list."""
        if self._list_shape is None or not self._may_coerce or len(finding.candidates) < 2 or finding.damaged:
            return None
        if not _are_adjacent(finding) or _holds_pieces(finding):
            return None
        repairs = [repair for candidate in finding.candidates for repair in candidate.repairs]
        return self._items([candidate.node for candidate in finding.candidates], repairs)

    def _items(self, nodes: list[Node], repairs: list[Repair]) -> Parsed[Any] | Misfit | None:
        assert self._list_shape is not None
        aligner = Aligner(may_coerce=True)
        for node in nodes:
            found = aligner.align(self._list_shape.item, node, is_inner=True)
            if isinstance(found, Misfit) or found.cost > 3:
                return None
        told = ("", f"{len(nodes)} values taken as the items of the list")
        return self._reader.judged(nodes, [*repairs, told], aligner, prefers_wrapper=False)

    # --- words -------------------------------------------------------------------------------------------

    def _from_words(self, finding: Finding) -> Parsed[Any] | Misfit:
        """Read a text without JSON."""
        text = bare_text(finding.text)
        if not self._may_coerce or not text:
            return Misfit([("", f"{self._shape.name}, as JSON", shown(text))])
        if self._list_shape is not None:
            nodes = _bare_items(text, self._list_shape)
            found = self._items(nodes, []) if nodes else None
            if found is not None:
                return found
        if self._takes_text:
            text = text if len(text) < 64 else finding.text.strip()
        node: Node = text if isinstance(self._shape, AnyShape) else Bare(text)
        found = self._judged(node, (), is_whole=True)
        if isinstance(found, Misfit):
            if self._shape_is_scalar:
                return found
            return Misfit([("", f"{self._shape.name}, as JSON", shown(text))])
        if not found.repairs:
            found.repairs.append(("", f"{shown(text)} taken from plain text"))
        return found


def _around(finding: Finding) -> Iterator[str]:
    """Yield the pieces of the text that are no JSON, also none that is damaged."""
    position, found = 0, [(each.start, each.end) for each in finding.candidates]
    for start, end in sorted([*found, *(each[:2] for each in finding.damaged)]):
        yield finding.text[position:start]
        position = end
    yield finding.text[position:]


def _holds_pieces(finding: Finding) -> bool:
    """Tell whether pieces of JSON stand outside of all JSON: a bracket or a quote of theirs is missing or in the way."""
    return any(map(_LOOSE.search, _around(finding)))


def _holds_bare(node: Node) -> bool:
    return isinstance(node, Bare) or (isinstance(node, list) and any(map(_holds_bare, node)))


# --- values that stand one after the other -----------------------------------------------------------------


def _are_adjacent(finding: Finding) -> bool:
    """Tell whether nothing but space, commas, fences and bullets stands between the JSON values."""
    pairs = zip(finding.candidates, finding.candidates[1:], strict=False)
    return all(_BETWEEN.fullmatch(finding.text[left.end : right.start]) for left, right in pairs)


def _bare_items(text: str, shape: ListShape) -> list[Node]:
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
            return nodes if len(nodes) > 1 else []
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
    if is_marked and re.search(r"^[^\S\n]+\S", text.split("\n", 1)[1], re.MULTILINE):
        return []
    nodes: list[Node] = []
    kinds = leaf_kinds(shape.item)
    takes_text = "str" in kinds or any(isinstance(choice, AnyShape) for choice in choices_of(shape.item))
    for line in unmarked:
        try:
            nodes.append(decode_strictly(line.rstrip(",，;")))
        except (ValueError, RecursionError):
            if takes_text and not is_marked:
                return []
            nodes.append(line if kinds == ["str"] else Bare(line.rstrip(",，;")))
    return nodes


def _without_marks(lines: list[str]) -> list[str]:
    """Take away bullets or numbers from 1 on, if every line has one."""
    found = [bullet for bullet in [_BULLET.fullmatch(line) for line in lines] if bullet]
    if len(found) == len(lines) and len({bullet.group(1) for bullet in found}) == 1:
        return [bullet.group(2) for bullet in found]
    numbers = [number for number in map(_NUMBERED.fullmatch, lines) if number]
    if [number.group(1) for number in numbers] == [str(count) for count in range(1, len(lines) + 1)]:
        return [number.group(2) for number in numbers]
    return lines
