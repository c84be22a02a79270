"""What the page shows of runs that wait for an answer, and the answers that it takes."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from SimpleLLMFunc.errors import CheckpointError, ConfigError, UsageError
from SimpleLLMFunc.journal import answer, paused, told_answer
from SimpleLLMFunc.viewer.responses import Refusal, body_of, clean, reason, reply_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


class WaitingPages:
    """Answers about journals that were named beforehand: the page names no file.

    Args:
        journals: paths; a file need not be there yet.
    """

    def __init__(self, journals: Iterable[str | os.PathLike[str]]) -> None:
        if isinstance(journals, (str, os.PathLike)):
            raise ConfigError("journals is a list of paths.")
        self._paths = [Path(each).expanduser() for each in journals]

    def __len__(self) -> int:
        return len(self._paths)

    async def waiting(self, _request: Request) -> Response:
        """Return what waits in each journal."""
        return await reply_of(lambda: {"journals": [_waiting(number, path) for number, path in enumerate(self._paths)]})

    async def answer(self, request: Request) -> Response:
        """Take an answer: ``{"key", "call_id", "answer" | "result" | "run_again"}``."""
        number = request.path_params["number"]
        if not number.isascii() or not number.isdecimal() or len(number) > 9 or int(number) >= len(self._paths):
            raise Refusal(404, "There is no such journal.")
        given = await body_of(request)
        return await reply_of(_answered, self._paths[int(number)], given)


def _waiting(number: int, path: Path) -> dict[str, Any]:
    found: dict[str, Any] = {
        "number": number,
        "name": path.name,
        "path": clean(str(path)),
        "problem": "",
        "waiting": [],
    }
    try:
        if path.exists():
            # By key and id it is answered, so these stay as they are.
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
