"""Cases: the arguments of a call, and what should come of it."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final, Literal, TypeAlias

from SimpleLLMFunc.errors import UsageError, cut
from SimpleLLMFunc.llm_decorator.steps.function.answers import as_answer
from SimpleLLMFunc.llm_decorator.steps.function.examples import ExampleReader, recorded_lines
from SimpleLLMFunc.storage import canonical


class Unknown(Enum):
    """The type of `UNKNOWN`."""

    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        return self.name


UNKNOWN: Final[Literal[Unknown.UNKNOWN]] = Unknown.UNKNOWN
"""A case without an expectation: only a scorer that needs none can judge it."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case.

    Attributes:
        args: a tuple is positional arguments, a dict whose keys are parameters is keywords, anything else the single one.
        expected: the expected value; `UNKNOWN` where there is no expectation.
        id: by which two reports are compared; made of the arguments where it is empty.
        tags: groups it belongs to.
    """

    args: Any
    expected: Any = UNKNOWN
    id: str = ""
    tags: tuple[str, ...] = ()
    where: str = field(default="", compare=False)
    is_json: bool = field(default=False, compare=False, repr=False)


Cases: TypeAlias = Iterable[Case | tuple[Any, Any] | Mapping[str, Any]] | str | os.PathLike[str]
"""Cases, pairs ``(args, expected)``, dicts as the lines of a file are, or the path of a JSONL file."""


@dataclass(frozen=True, slots=True)
class CheckedCase:
    """A case that fits the function.

    Attributes:
        arguments: by parameter name.
        expected: of the return type, or `UNKNOWN`.
        wanted: `expected` as JSON data.
    """

    id: str
    arguments: dict[str, Any]
    expected: Any
    wanted: Any
    tags: tuple[str, ...]


def read_cases(path: str | os.PathLike[str]) -> list[Case]:
    """Return the cases of a JSONL file: lines ``{"args": …, "expected": …, "id": …, "tags": […]}``; all but args may lack.

    Raises:
        ConfigError: there is no such file.
        UsageError: a line is no case.
    """
    return [_of_record(record, where) for where, record in recorded_lines(path)]


def checked_cases(cases: Cases, reader: ExampleReader) -> list[CheckedCase]:
    """Return the cases with their arguments and expectations as the function's types have them.

    Raises:
        SignatureError: one does not fit the function; says which and why.
        UsageError: there are no cases, or two have the same id.
    """
    found = [_checked(case, reader) for case in _listed(cases)]
    if not found:
        raise UsageError("there are no cases. Give at least one: [(arguments, expected)], or a file with lines.")
    seen: Counter[str] = Counter()
    numbered: list[CheckedCase] = []
    for case, is_own in found:
        seen[case.id] += 1
        if seen[case.id] > 1 and is_own:
            raise UsageError(f"two cases have the id {case.id!r}.")
        number = f"#{seen[case.id]}" if seen[case.id] > 1 else ""
        numbered.append(CheckedCase(case.id + number, case.arguments, case.expected, case.wanted, case.tags))
    return numbered


def _listed(cases: Cases) -> list[Case]:
    if isinstance(cases, (str, os.PathLike)):
        return read_cases(cases)
    if isinstance(cases, Mapping) or not isinstance(cases, Iterable):
        raise UsageError(f"cases is a {type(cases).__name__}. Give a list of (arguments, expected), or a path.")
    return [_case(given, f"cases[{number}]") for number, given in enumerate(cases)]


def _case(given: Any, where: str) -> Case:
    if isinstance(given, Case):
        return replace(given, where=given.where or where)
    if isinstance(given, tuple) and len(given) == 2:
        return Case(given[0], given[1], where=where)
    if isinstance(given, Mapping):
        return _of_record(given, where, is_json=False)
    raise UsageError(f"{where} is {cut(repr(given), 120)}. A case is a pair: (arguments, expected).")


def _of_record(record: Mapping[str, Any], where: str, *, is_json: bool = True) -> Case:
    if "args" not in record:
        raise UsageError(f'{where} has no "args". A line is {{"args": …, "expected": …}}.')
    expected = next((record[name] for name in ("expected", "value") if name in record), UNKNOWN)
    tags = record.get("tags") or ()
    if isinstance(tags, str) or not isinstance(tags, Sequence):
        raise UsageError(f"{where}: tags is a list of texts, not {cut(repr(tags), 60)}.")
    args = record["args"]
    # As in a line: a list is the arguments one by one.
    args = tuple(args) if isinstance(args, list) else args
    return Case(args, expected, str(record.get("id") or ""), tuple(map(str, tags)), where, is_json)


def _checked(case: Case, reader: ExampleReader) -> tuple[CheckedCase, bool]:
    arguments = reader.arguments(case.args, case.where, is_json=case.is_json)
    expected, wanted, is_none = case.expected, None, reader.output.is_none
    if expected is not UNKNOWN:
        expected, wanted = (None, None) if is_none else reader.value(expected, case.where, is_json=case.is_json)
        reader.check_quotes(expected, arguments, case.where)
    name = case.id or hashlib.blake2b(canonical(arguments), digest_size=6).hexdigest()
    return CheckedCase(name, arguments, expected, wanted, case.tags), bool(case.id)


def json_of(output: Any, value: Any) -> Any:
    """Return a value of the return type as JSON data; its `repr` where it has none."""
    try:
        return as_answer(output, value)
    except Exception:  # noqa: BLE001 - a serializer of the user's own runs here; what is shown need not be exact
        return repr(value)
