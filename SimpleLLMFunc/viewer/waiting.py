"""Calls that wait for an answer in journals, and their answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from SimpleLLMFunc.errors import CheckpointError, UsageError
from SimpleLLMFunc.journal import answer, paused, told_answer
from SimpleLLMFunc.viewer.responses import NamedFiles, Refusal, body_of, clean, reason, reply_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


class WaitingPages(NamedFiles):
    """Answers about journals."""

    option, one = "journals", "journal"

    async def waiting(self, _request: Request) -> Response:
        """Return the waiting calls of each journal."""
        return await self.told(_waiting)

    async def answer(self, request: Request) -> Response:
        """Take an answer: ``{"key", "call_id", "answer" | "result" | "run_again"}``."""
        path = self.path(request.path_params["number"])
        return await reply_of(_answered, path, await body_of(request))


def _waiting(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = {"name": path.name, "path": clean(str(path)), "problem": "", "waiting": []}
    try:
        if path.exists():
            # The answer names key and id, so these are not redacted.
            waits = paused(path)
            found["waiting"] = [{**clean(each), "key": each["key"], "call_id": each["call_id"]} for each in waits]
    except CheckpointError as error:
        found["problem"] = reason(error)
    return found


def _answered(path: Path, given: dict[str, Any]) -> dict[str, Any]:
    try:
        answer(path, str(given.get("key", "")), str(given.get("call_id", "")), told_answer(given))
    except (UsageError, CheckpointError) as error:
        raise Refusal(409, reason(error)) from None
    return {"answered": True}
