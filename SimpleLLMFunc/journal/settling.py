"""From outside of a block, from any process: what waits for an answer, the answer, and what may be forgotten."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from pydantic_core import PydanticSerializationError, to_jsonable_python

from SimpleLLMFunc.base.run import JOURNAL
from SimpleLLMFunc.errors import CheckpointError, UsageError
from SimpleLLMFunc.journal.log_file import JournalFile, KeyLog
from SimpleLLMFunc.journal.scopes import RUN_AGAIN, CallScope
from SimpleLLMFunc.journal.steps import pending_in
from SimpleLLMFunc.logger import border
from SimpleLLMFunc.tools import NobodyToAsk


def pause_run(tool: str, arguments: dict[str, Any]) -> bool:
    """Wait for an answer that comes later and from elsewhere: ``toolkit_confirm=pause_run``.

    Once the other tools of the turn have finished, the run ends with `RunPaused`. `answer` says whether the tool may run,
    also days later; then the same block goes on. A confirmation of your own may call it for the calls that matter.

    Raises:
        RunPaused: nothing was answered so far.
        UsageError: there is no `durable` block around the call.
    """
    call = JOURNAL.get()
    if not isinstance(call, CallScope):
        raise NobodyToAsk(
            f"nobody can be asked whether {tool!r} may run: toolkit_confirm=pause_run needs a block around the call, "
            'with durable("runs.sqlite", key=...).'
        )
    return call.confirmed(arguments)


@border
def paused(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Return what waits for an answer, the oldest first.

    Each is ``{"key", "call_id", "tool", "arguments", "why", "since"}``: `why` is "confirm", or "outcome" where a once-tool
    had begun and nobody knows how far it came; `since` is in seconds since the epoch.

    Raises:
        CheckpointError: there is no such journal, or it cannot be trusted or read.
    """
    found: list[dict[str, Any]] = []
    with _opened(path) as file:
        for key in file.all_keys():
            with _read(file, key) as log:
                found += [each for call_id, each in pending_in(log).items() if call_id not in log.answers]
    return sorted(found, key=lambda each: each["since"])


@border
def answer(path: str | os.PathLike[str], key: str, call_id: str, result: Any) -> None:
    """Say what a paused run waits for; the same block goes on with it when it runs again.

    Args:
        path: of the journal.
        key: of the run.
        call_id: of the call, as `paused` shows it.
        result: whether the tool may run, True or False, or a text that the model reads in its place. Where the outcome is
            unknown: the result of the tool, as JSON data, or `RUN_AGAIN` where it is known that it has done nothing.

    Raises:
        UsageError: nothing waits under this id, it has been answered, or the result cannot be one.
        CheckpointError: as in `paused`.
    """
    with _opened(path) as file, _read(file, key) as log:
        waits = pending_in(log).get(call_id)
        if waits is None:
            raise UsageError(f"nothing waits under the id {call_id!r} of {key!r}. paused(path) lists what does.")
        if waits["why"] == "confirm" and (not isinstance(result, (bool, str)) or result == RUN_AGAIN):
            raise UsageError(f"whether {waits['tool']!r} may run is answered by True, False or a text, not {result!r}.")
        try:
            log.answer(call_id, to_jsonable_python(result, bytes_mode="base64"))
        except PydanticSerializationError as error:
            raise UsageError(f"the result of {waits['tool']!r} is not plain data ({error}).") from None


@border
def forget(path: str | os.PathLike[str], key: str) -> bool:
    """Forget a key, and say whether there was one: its block begins anew the next time.

    Raises:
        CheckpointError: the key runs just now; or as in `paused`.
    """
    with _opened(path) as file:
        return _forgotten(file, key)


@border
def prune(path: str | os.PathLike[str], older_than: float | dt.timedelta) -> int:
    """Forget the keys whose block has finished, and return how many there were; what is unfinished or runs stays.

    Args:
        path: of the journal.
        older_than: how long ago they have finished at least, in seconds.

    Raises:
        CheckpointError: as in `paused`.
    """
    seconds = older_than.total_seconds() if isinstance(older_than, dt.timedelta) else older_than
    gone = 0
    with _opened(path) as file:
        for key in file.finished_before(seconds):
            with suppress(CheckpointError):  # it is run again just now
                gone += _forgotten(file, key)
    return gone


def _forgotten(file: JournalFile, key: str) -> bool:
    with file.lock(key), ExitStack() as stack:
        log = KeyLog(file, key)
        stack.callback(log.close)
        return log.forget()


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[JournalFile]:
    file = JournalFile(path, must_exist=True)
    try:
        yield file
    finally:
        file.close()


@contextmanager
def _read(file: JournalFile, key: str) -> Iterator[KeyLog]:
    log = KeyLog(file, key)
    try:
        log.read()
        yield log
    finally:
        log.close()


def told_answer(data: Mapping[str, Any]) -> Any:
    """Return the result for `answer` that a JSON object names: ``answer`` (true, false, a text), ``result``, or ``run_again``.

    Raises:
        UsageError: it names none, or several.
    """
    named = [name for name in ("answer", "result", "run_again") if data.get(name) is not None]
    if len(named) != 1 or data.get("run_again") not in {None, True}:
        raise UsageError('give one of "answer": true, false or a text; "result": JSON; "run_again": true.')
    return RUN_AGAIN if named == ["run_again"] else data[named[0]]
