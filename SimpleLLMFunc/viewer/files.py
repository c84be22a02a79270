"""The page's view of the files that the program names: checkpoints of maps, reports of `evaluate`, journals.

Each is read when it is asked for, also while a map writes it; none is made.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from SimpleLLMFunc.batch.checkpoint.checkpoint import VersionStatus, versions_of
from SimpleLLMFunc.batch.checkpoint.codec import decode_error, decode_given, decode_usage
from SimpleLLMFunc.batch.checkpoint.row_file import RowFile
from SimpleLLMFunc.batch.checkpoint.writer_lock import WriterLock
from SimpleLLMFunc.config import file_path
from SimpleLLMFunc.errors import CheckpointError, ConfigError, SimpleLLMFuncError, UsageError
from SimpleLLMFunc.evaluate import CaseResult, EvalReport
from SimpleLLMFunc.journal import answer, paused, told_answer
from SimpleLLMFunc.viewer.responses import Refusal, body_of, clean, number_of, reason, reply_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_ROWS: Final = 50


class NamedFiles:
    """Files that the program named; the page knows only their numbers, so that it can name no file.

    Args:
        paths: a file need not be there yet.
    """

    option: ClassVar[str]
    one: ClassVar[str]

    def __init__(self, paths: Iterable[str | os.PathLike[str]]) -> None:
        if isinstance(paths, (str, os.PathLike)):
            raise ConfigError(f"{self.option} is a list of paths.")
        self.paths = [file_path(each) for each in paths]

    def __len__(self) -> int:
        return len(self.paths)

    def path(self, number: int) -> Path:
        """Return the path of a number.

        Raises:
            Refusal: no file has it.
        """
        if not number < len(self.paths):
            raise Refusal(404, f"There is no such {self.one}.")
        return self.paths[number]

    async def all(self, _request: Request) -> Response:
        """Return every file in short."""
        return await reply_of(
            lambda: {f"{self.one}s": [{"number": number, **self.told(path)} for number, path in enumerate(self.paths)]}
        )

    def told(self, path: Path) -> dict[str, Any]:
        """Return a file in short."""
        raise NotImplementedError


# --- checkpoints of maps ---


class MapPages(NamedFiles):
    """Answers about checkpoints."""

    option, one = "checkpoints", "map"

    def told(self, path: Path) -> dict[str, Any]:
        """Return a checkpoint in short."""
        short: dict[str, Any] = {"name": path.name, "path": clean(str(path)), "problem": "", "values": 0, "errors": 0}
        short |= {"functions": [], "writer": None, "latest": None, "began": None, "progress": None}
        try:
            with _opened(path) as rows:
                short["writer"] = WriterLock(path.resolve()).owner()
                ((values, errors, began, latest),) = rows.query(
                    "SELECT coalesce(sum(error IS NULL), 0), coalesce(sum(error IS NOT NULL), 0), min(at), max(at) FROM rows"
                )
                names = rows.query("SELECT DISTINCT name FROM versions ORDER BY id DESC")
                short |= {"values": values, "errors": errors, "latest": latest, "began": began}
                short["functions"] = [clean(name) for (name,) in names]
                short["progress"] = _progress(rows, is_written=short["writer"] is not None)
        except (SimpleLLMFuncError, OSError) as error:
            short["problem"] = reason(error)
        return short

    async def map(self, request: Request) -> Response:
        """Return one checkpoint: its versions and its failures by kind."""
        return await reply_of(self._at_length, self.path(request.path_params["number"]))

    async def rows(self, request: Request) -> Response:
        """Return a page of rows, the latest first."""
        path, before = self.path(request.path_params["number"]), number_of(request, "before", 2**62, 0, 2**62)
        return await reply_of(_rows, path, request.query_params.get("error", ""), before)

    def _at_length(self, path: Path) -> dict[str, Any]:
        found = self.told(path)
        if found["problem"]:
            return {**found, "versions": [], "kinds": []}
        with _opened(path) as rows:
            versions = versions_of(rows, is_written=False)
        kinds = Counter[str]()
        for version in versions.values():
            kinds.update(version.error_kinds)
        ordered = sorted(kinds.items(), key=lambda kind: (-kind[1], kind[0]))
        found["versions"] = [_version(number, version) for number, version in versions.items()]
        found["kinds"] = [{"kind": clean(kind), "count": count} for kind, count in ordered]
        return found


@contextmanager
def _opened(path: Path) -> Iterator[RowFile]:
    """Open a checkpoint for reading; never makes a file."""
    rows = RowFile(path.resolve(), None, "coerce", f"the checkpoint {str(path)!r}")
    try:
        if not path.is_file() or not path.stat().st_size:
            raise CheckpointError("there is nothing in it yet; it fills as the map goes on.")
        if not rows.file.is_ours():
            raise CheckpointError("it is not a checkpoint, or its beginning was cut off.")
        rows.check_format()
        yield rows
    finally:
        rows.file.close()


def _progress(rows: RowFile, *, is_written: bool) -> dict[str, Any] | None:
    """Return the progress of the latest map, with the time left while it runs; None where the number of rows is unknown."""
    latest, _ = max(rows.progress().values(), key=lambda told: told[1], default=(None, 0.0))
    if latest is None or latest.share is None:
        return None
    left = latest.seconds_left if is_written else None
    return {"done": latest.done, "total": latest.total, "share": latest.share, "seconds_left": left}


def _version(number: int, version: VersionStatus) -> dict[str, Any]:
    model = ", ".join(map(str, version.definition.get("model", [])))
    names = ("began", "values", "errors", "input_tokens", "output_tokens", "cost")
    shown = {name: getattr(version, name) for name in names}
    return {"number": number, "name": clean(version.name), "model": clean(model), **shown}


def _rows(path: Path, error: str, before: int) -> dict[str, Any]:
    """Return a page of rows; `error` is the name of an error type, or "*" for all failed rows."""
    statement = """
        SELECT id, version, error, answer, usage, given, at FROM rows
        WHERE id < :before AND (:error = '' OR :error = error OR :error = '*' AND error IS NOT NULL)
        ORDER BY id DESC LIMIT :most
    """
    try:
        with _opened(path) as rows:
            found = rows.query(statement, {"before": before, "error": error, "most": _ROWS + 1})
    except (SimpleLLMFuncError, OSError) as problem:
        raise Refusal(409, reason(problem)) from None
    shown = [_row(row) for row in found[:_ROWS]]
    return {"rows": shown, "next": shown[-1]["id"] if len(found) > _ROWS else None}


def _row(row: tuple[Any, ...]) -> dict[str, Any]:
    number, version, error, answer, usage_text, given, at = row
    shown: dict[str, Any] = {"id": number, "version": version, "error": clean(error), "at": at, "value": None}
    shown |= {"message": "", "given": None, "damaged": False, "cost": None, "input_tokens": 0, "output_tokens": 0}
    try:
        usage = decode_usage(usage_text)
        shown |= {"cost": usage.cost, "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
        shown["given"] = clean(decode_given(given))
        if error is None:
            shown["value"] = clean(_value(answer))
        else:
            shown["message"] = clean(str(decode_error(answer, usage)))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        shown["damaged"] = True
    return shown


def _value(answer: bytes) -> Any:
    """Return a value as data; where the checkpoint keeps the model's answer, that answer."""
    kind, data = answer[:1], json.loads(answer[1:])
    return data[2] if kind == b"t" else data


# --- reports of `evaluate` ---


class ReportPages(NamedFiles):
    """Answers about files that `EvalReport.save` wrote; each is read when it is asked for."""

    option, one = "reports", "report"

    def told(self, path: Path) -> dict[str, Any]:
        """Return a report in short."""
        try:
            return {"file": path.name, "problem": "", **_facts(EvalReport.load(path))}
        except SimpleLLMFuncError as error:
            return {"file": path.name, "problem": reason(error)}

    async def report(self, request: Request) -> Response:
        """Return one report; with the parameter `with`, its differences from another one, case by case."""
        first = self.path(request.path_params["number"])
        second = self.path(number_of(request, "with", 0, 0, 10**9)) if request.query_params.get("with") else None
        return await reply_of(_report, first, second)


def _facts(report: EvalReport) -> dict[str, Any]:
    names = "name model version created seconds input_tokens output_tokens cost stopped failed"
    facts = {name: getattr(report, name) for name in names.split()}
    scores = {name: asdict(score) for name, score in report.scores.items()}
    told: dict[str, Any] = clean({**facts, "cases": len(report.results), "scores": scores})
    return told


def _report(path: Path, other: Path | None) -> dict[str, Any]:
    try:
        first = EvalReport.load(path)
        second = first if other is None else EvalReport.load(other)
        compared = {} if other is None else first.compare(second).differences
    except UsageError as error:
        raise Refusal(409, str(error)) from None
    theirs = {result.id: result for result in second.results}
    names = list(compared or first.scores)
    cases = [_case(result, theirs[result.id], names) for result in first.results if result.id in theirs]
    return {
        "first": {"file": path.name, **_facts(first)},
        "second": None if other is None else {"file": other.name, **_facts(second)},
        "differences": dict(compared),
        # Worse cases first, then better ones, then equal ones.
        "cases": sorted(cases, key=lambda case: (case["change"] == 0, case["change"])),
    }


def _case(one: CaseResult, two: CaseResult, names: list[str]) -> dict[str, Any]:
    scores = [[result.score(name) for name in names] for result in (one, two)]
    change = sum((b or 0.0) - (a or 0.0) for a, b in zip(*scores, strict=True))
    shown = {"id": one.id, "arguments": one.arguments, "expected": one.expected, "tags": list(one.tags)}
    outcomes = [
        [{"value": each.value, "error": each.error, "notes": dict(each.notes)} for each in result.outcomes]
        for result in (one, two)
    ]
    found: dict[str, Any] = clean({**shown, "outcomes": outcomes, "scores": scores, "change": change})
    return found


# --- journals ---


class WaitingPages(NamedFiles):
    """Answers about journals."""

    option, one = "journals", "journal"

    def told(self, path: Path) -> dict[str, Any]:
        """Return the waiting calls of a journal."""
        found: dict[str, Any] = {"name": path.name, "path": clean(str(path)), "problem": "", "waiting": []}
        try:
            if path.exists():
                # The answer names key and id, so these are not redacted.
                waits = paused(path)
                found["waiting"] = [{**clean(each), "key": each["key"], "call_id": each["call_id"]} for each in waits]
        except CheckpointError as error:
            found["problem"] = reason(error)
        return found

    async def answer(self, request: Request) -> Response:
        """Take an answer: ``{"key", "call_id", "answer" | "result" | "run_again"}``."""
        return await reply_of(_answered, self.path(request.path_params["number"]), await body_of(request))


def _answered(path: Path, given: dict[str, Any]) -> dict[str, Any]:
    try:
        answer(path, str(given.get("key", "")), str(given.get("call_id", "")), told_answer(given))
    except (UsageError, CheckpointError) as error:
        raise Refusal(409, reason(error)) from None
    return {"answered": True}
