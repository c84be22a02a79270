"""`durable`, a block of code whose runs cannot be lost; and the calls that wait for an answer, from any process."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping
from contextlib import ExitStack, closing, suppress
from typing import Any, Literal, Self

from pydantic_core import PydanticSerializationError, to_jsonable_python

from SimpleLLMFunc.base.run import JOURNAL, Journal
from SimpleLLMFunc.errors import CheckpointError, UsageError
from SimpleLLMFunc.journal.log_file import JournalFile, KeyLog
from SimpleLLMFunc.journal.scopes import RUN_AGAIN, CallScope, Scope
from SimpleLLMFunc.journal.steps import Steps, pending_in
from SimpleLLMFunc.logger import border
from SimpleLLMFunc.tools import NobodyToAsk
from SimpleLLMFunc.utils import Block, is_number


class durable:  # noqa: N801 - used like a function
    """Keep the runs of a block in a journal: ``with durable("runs.sqlite", key="order-17"): …``, in async code too.

    Every reply of a model and every result of a tool inside is written before it is used. After a crash, run the same
    block with the same key again: it continues. Written replies and results are replayed, without a request and without a
    second run of a tool. Once the block has ended without an exception, its key replays all of them for ever.

    Args:
        path: of the journal, a SQLite file; made with its folders. Many keys may share it, also at the same time.
        key: names the work of the block, such as the number of an order.
        on_change: what happens when a called function has another docstring, signature, other types or tools than
            when the block ran before: "error", or "restart": the key's journal is forgotten, and the block starts over.
        sync: "normal" survives the death of the process, "full" a power failure too.

    Raises:
        UsageError: an argument is invalid.

    Entering it raises:
        CheckpointError: the key is running already, here or elsewhere; or the file is damaged or cannot be read or written.
        UsageError: there is a durable block around it.
    """

    @border
    def __init__(
        self,
        path: str | os.PathLike[str],
        key: str,
        *,
        on_change: Literal["error", "restart"] = "error",
        sync: Literal["normal", "full"] = "normal",
    ) -> None:
        given: Any = key
        if not isinstance(given, str) or not given:
            raise UsageError(f"key is a text that names the work, such as 'order-17', not {key!r}.")
        if on_change not in ("error", "restart"):
            raise UsageError(f'on_change is "error" or "restart", not {on_change!r}.')
        if sync not in ("normal", "full"):
            raise UsageError(f'sync is "normal" or "full", not {sync!r}.')
        self.path = path
        self.key = key
        self._on_change = on_change
        self._sync = sync
        self._entered: tuple[ExitStack, Steps, Scope, Block[Journal | None]] | None = None

    @border
    def __enter__(self) -> Self:
        around = JOURNAL.get()
        if self._entered is not None or (isinstance(around, Scope) and not around.steps.is_inherited):
            raise UsageError("a durable block is inside another one. Give the outer one the key of the whole work.")
        with ExitStack() as stack:
            file = JournalFile(self.path, sync=self._sync)
            stack.enter_context(file.lock(self.key))
            stack.enter_context(closing(file))
            steps = Steps(KeyLog(file, self.key).read(), restarts=self._on_change == "restart")
            scope = Scope(steps)
            self._entered = stack.pop_all(), steps, scope, JOURNAL.enter(scope)
        return self

    @border
    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        assert self._entered is not None, "it was entered"
        stack, steps, scope, block = self._entered
        JOURNAL.leave(block)
        self._entered = None
        if steps.is_inherited:
            return
        with stack:
            steps.close(error, is_interrupted=scope.interrupted is not None)


# --- waiting calls and finished keys --------------------------------------------------------------------


def pause_run(tool: str, arguments: dict[str, Any]) -> bool:
    """Pause the run until `answer` is called, also days later in another process: ``toolkit_confirm=pause_run``.

    Once the other tools of the turn have finished, the run ends with `RunPaused`. After `answer` the same block goes on.
    Your own confirmation may call `pause_run` for some calls.

    Raises:
        RunPaused: there is no answer yet.
        UsageError: there is no `durable` block around the call.
    """
    call = JOURNAL.get()
    if not isinstance(call, CallScope):
        raise NobodyToAsk(
            f"no block can wait for the answer whether {tool!r} may run: toolkit_confirm=pause_run needs one around the call, "
            'with durable("runs.sqlite", key=...).'
        )
    return call.confirmed(arguments)


@border
def paused(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Return the calls that wait for an answer, the oldest first.

    Each is ``{"key", "call_id", "tool", "arguments", "why", "since"}``: `why` is "confirm", or "outcome" where a once-tool
    had begun and its outcome is unknown; `since` is in seconds since the epoch.

    Raises:
        CheckpointError: there is no such journal, or it cannot be trusted or read.
    """
    found: list[dict[str, Any]] = []
    with closing(JournalFile(path, must_exist=True)) as file:
        for key in file.all_keys():
            log = KeyLog(file, key).read()
            found += [each for call_id, each in pending_in(log).items() if call_id not in log.answers]
    return sorted(found, key=lambda each: each["since"])


@border
def answer(path: str | os.PathLike[str], key: str, call_id: str, result: Any) -> None:
    """Answer a waiting call; its block goes on with the answer when it runs again.

    Args:
        path: of the journal.
        key: of the run.
        call_id: of the call, as `paused` shows it.
        result: for a confirmation True, False, or a text that the model reads as the tool's result. For an unknown
            outcome the result of the tool, as JSON data, or `RUN_AGAIN` if the tool has done nothing.

    Raises:
        UsageError: no call waits under this id, it has been answered, or the result has the wrong type.
        CheckpointError: as in `paused`.
    """
    with closing(JournalFile(path, must_exist=True)) as file:
        log = KeyLog(file, key).read()
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
    """Forget a key, so that its block starts over the next time; say whether the key existed.

    Raises:
        CheckpointError: the key is running; or as in `paused`.
    """
    with closing(JournalFile(path, must_exist=True)) as file:
        return _forgotten(file, key)


@border
def prune(path: str | os.PathLike[str], older_than: float | dt.timedelta) -> int:
    """Forget the keys whose block has finished, and return how many; unfinished and running keys stay.

    Args:
        path: of the journal.
        older_than: least seconds since the end of the block, or a timedelta.

    Raises:
        UsageError: `older_than` is neither.
        CheckpointError: as in `paused`.
    """
    seconds: Any = older_than.total_seconds() if isinstance(older_than, dt.timedelta) else older_than
    if not is_number(seconds):
        raise UsageError(f"older_than is a number of seconds or a timedelta, not {older_than!r}.")
    gone = 0
    with closing(JournalFile(path, must_exist=True)) as file:
        for key in file.finished_before(seconds):
            with suppress(CheckpointError):  # the key is running again
                gone += _forgotten(file, key)
    return gone


def _forgotten(file: JournalFile, key: str) -> bool:
    with file.lock(key):
        return KeyLog(file, key).forget()


def told_answer(data: Mapping[str, Any]) -> Any:
    """Return the result for `answer` that a JSON object names: ``answer`` (true, false, a text), ``result``, or ``run_again``.

    Raises:
        UsageError: it names none, or several.
    """
    named = [name for name in ("answer", "result", "run_again") if data.get(name) is not None]
    named = named or [*data.keys() & {"result"}]  # null alone: a tool may have returned it
    if len(named) != 1 or data.get("run_again") not in (None, True):
        raise UsageError('give one of "answer": true, false or a text; "result": JSON; "run_again": true.')
    return RUN_AGAIN if named == ["run_again"] else data[named[0]]
