"""Marks of runs, and runs that become cases of an evaluation."""

from __future__ import annotations

import json
import keyword
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from SimpleLLMFunc.batch import replaced_whole
from SimpleLLMFunc.errors import ConfigError, UsageError
from SimpleLLMFunc.evaluate import is_changed, read_cases
from SimpleLLMFunc.observability.store import RunDetail, TraceReader, is_omitted, mark_run
from SimpleLLMFunc.runtime import ForkSafeLock
from SimpleLLMFunc.viewer.responses import Refusal, body_of, clean, reply_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


_MOST: Final = 500
"""Most runs that become cases in one request."""


class CaseFiles:
    """One JSONL file of cases for each function, in the form that `evaluate` reads.

    Args:
        folder: of the files ``function.jsonl``; made at the first write.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = ForkSafeLock()

    def path(self, function: str) -> Path:
        """Return the file of a function.

        Raises:
            Refusal: the name cannot be a file's name.
        """
        parts = function.split(".")
        if len(function) > 100 or not all(part.isidentifier() and not keyword.iskeyword(part) for part in parts):
            raise Refusal(409, "The function has no name that a file can have.")
        return self.folder / f"{function}.jsonl"

    def lines(self, function: str) -> list[dict[str, Any]]:
        """Return the cases of a function, as its file has them.

        Raises:
            Refusal: the file cannot be read.
        """
        path = self.path(function)
        if not path.is_file():
            return []
        try:
            read_cases(path)
            return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        except (OSError, ValueError, RecursionError, ConfigError, UsageError) as error:
            raise Refusal(409, f"{path.name} cannot be read: {error}") from None

    def add(self, function: str, cases: list[dict[str, Any]]) -> None:
        """Add cases to the file of a function; a case replaces one with the same id.

        Raises:
            Refusal: the file cannot be read, or written.
        """
        with self._lock:
            ids = {case["id"] for case in cases}
            kept = [case for case in self.lines(function) if case.get("id") not in ids]
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                with replaced_whole(self.path(function)) as part, part.open("w", encoding="utf-8") as file:
                    file.writelines(json.dumps(case, ensure_ascii=False) + "\n" for case in kept + cases)
            except (OSError, ConfigError) as error:
                raise Refusal(409, f"The cases cannot be written: {error}") from None


class VerdictPages:
    """Answers requests about marks and cases.

    Args:
        reader: of the store.
        files: of cases; None to write none.
    """

    def __init__(self, reader: TraceReader, files: CaseFiles | None) -> None:
        self._reader = reader
        self._files = files

    async def mark(self, request: Request) -> Response:
        """Mark a run: the request holds the whole mark, and replaces the earlier one."""
        body = await body_of(request)
        run = request.path_params["run"]
        names = ("thumb", "score", "comment", "tags")
        given = {name: body[name] for name in names if body.get(name) not in (None, "", [])}

        def write() -> dict[str, Any]:
            try:
                marked = mark_run(self._reader, run, forget=True, **given)
            except UsageError as error:
                raise Refusal(400, str(error)) from None
            return {name: getattr(marked, name) for name in ("thumb", "score", "comment", "tags", "seq")}

        return await reply_of(write)

    async def cases(self, request: Request) -> Response:
        """Return the cases of a function."""
        files, name = self._files, request.path_params["name"]
        return await reply_of(lambda: {"cases": clean(files.lines(name)) if files else []})

    async def add(self, request: Request) -> Response:
        """Make cases of runs: ``{"runs": [{"run": 17, "expected": …}]}``; the default of `expected` is the run's value."""
        files = self._files
        if files is None:
            raise Refusal(404, "No folder for cases was given.")
        runs = (await body_of(request)).get("runs")
        if not isinstance(runs, list) or not 0 < len(runs) <= _MOST or not all(isinstance(each, dict) for each in runs):
            raise Refusal(400, f"Give 1 to {_MOST} runs.")
        return await reply_of(self._added, files, runs)

    def _added(self, files: CaseFiles, runs: list[Mapping[str, Any]]) -> dict[str, Any]:
        found: dict[str, list[dict[str, Any]]] = {}
        skipped: list[dict[str, Any]] = []
        for each in runs:
            number = each.get("run")
            detail = self._reader.run(number) if isinstance(number, int) else None
            why = "There is no such run." if detail is None else self._problem(detail, each)
            if detail is None or why:
                skipped.append({"run": number, "why": why})
                continue
            case = {"args": detail.arguments, "expected": each.get("expected", detail.value)}
            tags = {"tags": detail.summary.tags} if detail.summary.tags else {}
            found.setdefault(detail.summary.function, []).append({**case, "id": detail.summary.trace_id, **tags})
        for function, cases in found.items():
            files.add(function, cases)
        written = [{"path": str(files.path(function)), "count": len(cases)} for function, cases in found.items()]
        return {"written": written, "skipped": skipped}

    @staticmethod
    def _problem(run: RunDetail, given: Mapping[str, Any]) -> str:
        """Return why a run cannot become a case; empty if it can."""
        expected = given.get("expected", run.value)
        if run.summary.kind != "function":
            return "Only runs of functions become cases."
        if "expected" not in given and run.summary.status != "ok":
            return "The run has no answer: write what it should have been."
        if not isinstance(run.arguments, dict) or is_omitted(run.arguments) or is_omitted(expected):
            return "The store was told to keep no content."
        if is_changed(run.arguments) or is_changed(expected):
            return "A text was cut or masked in the store."
        return ""
