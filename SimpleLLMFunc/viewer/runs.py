"""The page's requests to the store: lists, one run, functions and their versions."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, cast, get_args

from pydantic import TypeAdapter, ValidationError

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.observability.store import (
    RunDetail,
    RunFormat,
    RunOrder,
    RunQuery,
    RunStatus,
    TraceReader,
    exported_runs,
    metrics,
    place_of,
)
from SimpleLLMFunc.runtime import in_thread
from SimpleLLMFunc.viewer.exports import as_curl, as_html, as_test
from SimpleLLMFunc.viewer.responses import Refusal, number_of, reply_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


_MOST_BUCKETS = 60
_MOST_NAMES = 500
"""Most users and sessions that the filters offer; others can be typed."""

_BUCKETS = (1, 5, 15, 60, 300, 900, 3600, 6 * 3600, 86400, 7 * 86400)


class RunPages:
    """Answers about runs, from one store."""

    def __init__(self, reader: TraceReader) -> None:
        self._reader = reader

    async def runs(self, request: Request) -> Response:
        """Return a page of the list; the first page has the total number."""
        query, (sort, ascending) = query_of(request), order_of(request)
        after, limit = _after(request), number_of(request, "limit", 50, 1, 500)

        def read() -> dict[str, Any]:
            page = self._reader.runs(query, limit=limit, after=after, sort=sort, ascending=ascending)
            total = None if after else self._reader.count(query)
            return {"runs": page.runs, "next": page.next, "seq": page.seq, "total": total}

        return await reply_of(read)

    async def changes(self, request: Request) -> Response:
        """Return the runs that changed since a sequence number."""
        return await reply_of(self._reader.changes, number_of(request, "since", 0, 0, 2**62))

    async def filters(self, request: Request) -> Response:
        """Return the values that the filters offer."""
        function = request.query_params.get("function")

        def read() -> dict[str, Any]:
            return {
                "functions": [each.name for each in self._reader.functions()],
                "models": self._reader.models(),
                "errors": self._reader.errors(),
                "users": self._reader.users()[:_MOST_NAMES],
                "sessions": self._reader.sessions()[:_MOST_NAMES],
                "tags": self._reader.tags(),
                "versions": [each.version for each in self._reader.versions(function)] if function else [],
                "statuses": list(get_args(RunStatus)),
            }

        return await reply_of(read)

    async def run(self, request: Request) -> Response:
        """Return one run."""
        return await reply_of(self._detail, request)

    async def curl(self, request: Request) -> Response:
        """Return a request of a run as a shell command."""
        number = number_of(request, "number", 1, 1, 2**31)

        def read() -> dict[str, Any]:
            turn = next((each for each in self._detail(request).turns if each.number == number), None)
            if turn is None:
                raise Refusal(404, f"The run has no request {number}.")
            return {"text": as_curl(turn)}

        return await reply_of(read)

    async def test(self, request: Request) -> Response:
        """Return a run as a test for pytest."""
        return await reply_of(lambda: {"text": as_test(self._detail(request))})

    async def tree(self, request: Request) -> Response:
        """Return the runs inside a run, at every depth."""
        return await reply_of(lambda: {"runs": self._reader.tree(self._detail(request).summary.trace_id)})

    async def sessions(self, request: Request) -> Response:
        """Return a page of conversations."""
        try:
            before = float(request.query_params.get("before") or "inf")
        except ValueError:
            raise Refusal(400, "before is a number.") from None
        return await reply_of(lambda: {"sessions": self._reader.conversations(before=before)})

    async def session(self, request: Request) -> Response:
        """Return a page of the runs of a conversation with their contents, the oldest first."""
        query, after = RunQuery(session=request.path_params["name"]), _after(request)

        def read() -> dict[str, Any]:
            page, contents = self._reader.runs_with_content(
                query, limit=100, after=after, sort="started", ascending=True
            )
            if not page.runs:
                raise Refusal(404, "No run of such a session is kept.")
            runs = [
                {"summary": run, **dict(zip(("arguments", "value", "text"), content, strict=True))}
                for run, content in zip(page.runs, contents, strict=True)
            ]
            return {"runs": runs, "next": page.next}

        return await reply_of(read)

    async def html(self, request: Request) -> Response:
        """Return a run as one HTML file, to send by mail."""
        return await reply_of(lambda: {"text": as_html(self._detail(request))})

    async def export(self, request: Request) -> Response:
        """Return all runs of a filter as a file."""
        from starlette.responses import StreamingResponse

        form = request.path_params["form"]
        if form not in get_args(RunFormat):
            raise Refusal(404, "Runs are exported as csv, jsonl and parquet.")
        query, (sort, ascending) = query_of(request), order_of(request)
        rows = await in_thread(
            lambda: exported_runs(self._reader, cast("RunFormat", form), query, sort=sort, ascending=ascending)
        )
        return StreamingResponse(rows, media_type="application/octet-stream")

    async def functions(self, _request: Request) -> Response:
        """Return all functions with their metrics."""

        def read() -> list[dict[str, Any]]:
            rows = {row.function: row for row in metrics(self._reader, by=("function",))}
            return [{**dataclasses.asdict(each), "metrics": rows.get(each.name)} for each in self._reader.functions()]

        return await reply_of(lambda: {"functions": read()})

    async def function(self, request: Request) -> Response:
        """Return the versions of one function, and their metrics over time."""
        name = request.path_params["name"]

        def read() -> dict[str, Any]:
            versions = self._reader.versions(name)
            if not versions:
                raise Refusal(404, "No run of such a function is kept.")
            query = RunQuery(function=name)
            span = max(each.last_seen for each in versions) - min(each.first_seen for each in versions)
            # So many seconds that the time axis has few points.
            bucket = next((size for size in _BUCKETS if span / size <= _MOST_BUCKETS), _BUCKETS[-1])
            return {
                "name": name,
                "versions": versions,
                "metrics": metrics(self._reader, by=("version",), query=query),
                "series": metrics(self._reader, by=("version",), bucket=bucket, query=query),
                "bucket": bucket,
            }

        return await reply_of(read)

    async def same(self, request: Request) -> Response:
        """Return the runs in which two versions of a function had the same arguments."""
        name, given = request.path_params["name"], request.query_params
        versions = given.get("before", ""), given.get("after", "")
        return await reply_of(lambda: {"pairs": self._reader.same_arguments(name, *versions)})

    def _detail(self, request: Request) -> RunDetail:
        detail = self._reader.run(request.path_params["run"])
        if detail is None:
            raise Refusal(404, "There is no such run. It may have been removed for its age.")
        return detail


_QUERY = TypeAdapter(RunQuery)
_OF_A_LIST = {"limit", "after", "sort", "ascending"}
"""Parameters of a list that are no fields of `RunQuery`."""


def query_of(request: Request) -> RunQuery:
    """Return the filter of a request; its parameters have the names of `RunQuery`'s fields.

    Raises:
        Refusal: a parameter has an impossible value.
    """
    given = {name: text for name, text in request.query_params.items() if text and name not in _OF_A_LIST}
    try:
        query = _QUERY.validate_python({**given, "text": given.get("text", "").strip()[:500] or None})
    except ValidationError as error:
        (problem, *_) = error.errors()
        raise Refusal(400, f"{problem['loc'][0]}: {problem['msg']}.") from None
    if not all(math.isfinite(value) for value in dataclasses.astuple(query) if isinstance(value, float)):
        raise Refusal(400, "A number is finite.")
    return query


def order_of(request: Request) -> tuple[RunOrder, bool]:
    """Return the sort key of a request, and whether the smallest come first.

    Raises:
        Refusal: runs cannot be sorted by it.
    """
    sort = request.query_params.get("sort") or "started"
    if sort not in get_args(RunOrder):
        raise Refusal(400, "Runs are not sorted by that.")
    return cast("RunOrder", sort), request.query_params.get("ascending") == "1"


def _after(request: Request) -> str | None:
    """Return where the page before this one ended, None for the first page."""
    after = request.query_params.get("after") or None
    if after is not None:
        try:
            place_of(after)
        except ConfigError as error:
            raise Refusal(400, str(error)) from None
    return after
