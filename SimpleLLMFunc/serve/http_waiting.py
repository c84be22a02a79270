"""The waiting calls of a journal, over HTTP: a list, and the answers, for the callers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from SimpleLLMFunc.errors import SimpleLLMFuncError, UsageError
from SimpleLLMFunc.journal import answer, paused, told_answer
from SimpleLLMFunc.logger import push_info
from SimpleLLMFunc.runtime import in_thread
from SimpleLLMFunc.serve.http_api import Api
from SimpleLLMFunc.serve.http_events import json_response
from SimpleLLMFunc.serve.http_problem import Problem

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

PATH: Final = "/waiting"

_ANSWER: Final = {
    "type": "object",
    "properties": {
        "key": {"type": "string"},
        "call_id": {"type": "string"},
        "answer": {"type": ["boolean", "string"], "description": "Whether the tool may run, or a text for the model."},
        "result": {"description": "Where the outcome of a tool is unknown: its result, any JSON but null."},
        "run_again": {"const": True, "description": "The same, where it is known that it has done nothing."},
    },
    "required": ["key", "call_id"],
}
_CALL: Final = {
    "type": "object",
    "properties": {
        **{name: {"type": "string"} for name in ("key", "call_id", "tool")},
        "arguments": {"type": "object"},
        "why": {"enum": ["confirm", "outcome"]},
        "since": {"type": "number", "description": "Seconds since the epoch."},
    },
}
_LIST: Final = {"type": "object", "properties": {"waiting": {"type": "array", "items": _CALL}}}
OPERATIONS: Final[dict[str, Any]] = {
    "get": {
        "operationId": "waiting",
        "summary": "Say what waits for an answer, the oldest first.",
        "responses": {"200": {"description": "The calls.", "content": {"application/json": {"schema": _LIST}}}},
    },
    "post": {
        "operationId": "answer",
        "summary": "Answer one call; its run goes on when its program runs the block again.",
        "requestBody": {"required": True, "content": {"application/json": {"schema": _ANSWER}}},
        "responses": {
            "200": {"description": "It is answered."},
            "409": {"description": "Nothing waits under this id."},
        },
    },
}
"""Of the OpenAPI document."""


class WaitingDoor:
    """Answers the requests about one journal.

    Args:
        api: checks the callers.
        journal: path of the file; it need not be there yet.
    """

    def __init__(self, api: Api, journal: Path) -> None:
        self._api = api
        self._journal = journal

    async def waiting(self, request: Request) -> Response:
        """Return the waiting calls."""
        await self._api.admit(request)
        found = await in_thread(paused, self._journal) if self._journal.exists() else []
        return json_response(json.dumps({"waiting": found}))

    async def answer(self, request: Request) -> Response:
        """Store an answer."""
        caller = await self._api.admit(request)
        try:
            given = json.loads(await self._api.body(request))
        except (ValueError, RecursionError):
            raise Problem(400, "The body is no JSON.") from None
        if not isinstance(given, dict):
            raise Problem(422, "The body must be a JSON object.")
        key, call_id = str(given.get("key", "")), str(given.get("call_id", ""))
        try:
            await in_thread(answer, self._journal, key, call_id, told_answer(given))
        except UsageError as error:
            raise Problem(409, str(error), "UsageError") from None
        except SimpleLLMFuncError as error:
            raise Problem(
                500, "The journal cannot be written; the server's log says more.", type(error).__name__
            ) from error
        push_info(f"{caller.name} answered {call_id} of {key!r}")
        return json_response(json.dumps({"answered": True}))
