"""The page's view of maps: progress, failures and rows of checkpoints, also while a map writes them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from SimpleLLMFunc.batch.checkpoint.checkpoint import VersionStatus, versions_of
from SimpleLLMFunc.batch.checkpoint.codec import decode_error, decode_given, decode_usage
from SimpleLLMFunc.batch.checkpoint.row_file import FORMAT, RowFile
from SimpleLLMFunc.batch.checkpoint.writer_lock import WriterLock
from SimpleLLMFunc.errors import CheckpointError, SimpleLLMFuncError
from SimpleLLMFunc.viewer.responses import NamedFiles, Refusal, clean, reason, reply_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_ROWS: Final = 50


class MapPages(NamedFiles):
    """Answers about checkpoints."""

    option, one = "checkpoints", "map"

    async def maps(self, _request: Request) -> Response:
        """Return every checkpoint in short."""
        return await self.told(_in_short)

    async def map(self, request: Request) -> Response:
        """Return one checkpoint: its versions and its failures by kind."""
        return await reply_of(_at_length, self.path(request.path_params["number"]))

    async def rows(self, request: Request) -> Response:
        """Return a page of rows, the latest first."""
        path, before = self.path(request.path_params["number"]), request.query_params.get("before", "")
        if before and not (before.isascii() and before.isdecimal() and len(before) <= 18):
            raise Refusal(400, "before is no number.")
        return await reply_of(_rows, path, request.query_params.get("error", ""), before)


@contextmanager
def _opened(path: Path) -> Iterator[RowFile]:
    """Open a checkpoint for reading; never makes a file."""
    rows = RowFile(path.resolve(), None, "coerce", f"the checkpoint {str(path)!r}")
    try:
        if not path.is_file() or not path.stat().st_size:
            raise CheckpointError("there is nothing in it yet; it fills as the map goes on.")
        if not rows.file.is_ours():
            raise CheckpointError("it is not a checkpoint, or its beginning was cut off.")
        ((format_,),) = rows.query("PRAGMA user_version")
        if not 1 <= format_ <= FORMAT:
            raise CheckpointError(f"it has format {format_}, and this version reads format {FORMAT} and older ones.")
        rows.format = format_
        yield rows
    finally:
        rows.file.close()


def _in_short(path: Path) -> dict[str, Any]:
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


def _progress(rows: RowFile, *, is_written: bool) -> dict[str, Any] | None:
    """Return the progress of the latest map, with the time left while it runs; None where the number of rows is unknown."""
    latest, _ = max(rows.progress().values(), key=lambda told: told[1], default=(None, 0.0))
    if latest is None or latest.share is None:
        return None
    left = latest.seconds_left if is_written else None
    return {"done": latest.done, "total": latest.total, "share": latest.share, "seconds_left": left}


def _at_length(path: Path) -> dict[str, Any]:
    found = _in_short(path)
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


def _version(number: int, version: VersionStatus) -> dict[str, Any]:
    model = ", ".join(map(str, version.definition.get("model", [])))
    names = ("began", "values", "errors", "input_tokens", "output_tokens", "cost")
    shown = {name: getattr(version, name) for name in names}
    return {"number": number, "name": clean(version.name), "model": clean(model), **shown}


def _rows(path: Path, error: str, before: str) -> dict[str, Any]:
    """Return a page of rows; `error` is the name of an error type, or "*" for all failed rows."""
    statement = """
        SELECT id, version, error, answer, usage, given, at FROM rows
        WHERE id < ?1 AND (?2 = '' OR ?2 = error OR ?2 = '*' AND error IS NOT NULL) ORDER BY id DESC LIMIT ?3
    """
    try:
        with _opened(path) as rows:
            found = rows.query(statement, (int(before or 2**62), error, _ROWS + 1))
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
