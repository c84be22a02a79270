"""The engine "openai-batch": the rows of a map as batches of the service, at half the price.

First every row that needs an answer is written into files, and these are sent as batches; then the map goes over the
rows as it always does, and finds the answers here. A row that a batch did not answer, or not so that it fits, is asked
live. Which batches are under way stands in a file, so that whoever starts again waits for them and sends nothing twice.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import AsyncExitStack, ExitStack, aclosing, asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Generic, TypeVar

from SimpleLLMFunc.base.run import Answer, Mappable
from SimpleLLMFunc.batch.checkpoint import RowFile, WriterLock
from SimpleLLMFunc.batch.options import MapOptions
from SimpleLLMFunc.batch.progress import Progress, progress_view
from SimpleLLMFunc.batch.provider_batches.answer_store import AnswerStore
from SimpleLLMFunc.batch.provider_batches.lines import (
    BatchFunction,
    answer_of,
    check_single_shot,
    problem_code,
)
from SimpleLLMFunc.batch.provider_batches.run import LEFT, BatchRun
from SimpleLLMFunc.batch.provider_batches.service import BatchService
from SimpleLLMFunc.batch.relayed import Relayed
from SimpleLLMFunc.batch.rows import Feed, Rows, RowSource, can_read_again
from SimpleLLMFunc.errors import (
    BadReply,
    BadRequest,
    DeadlineExceeded,
    EmptyResponseError,
    RateLimited,
    ResponseParseError,
    ServerUnavailable,
    SimpleLLMFuncError,
    ToolCallLimitExceeded,
    UsageError,
)
from SimpleLLMFunc.interface.spending import deadline_scope, strictest_time_limit
from SimpleLLMFunc.logger import escape_control, push_info, push_warning
from SimpleLLMFunc.runtime import in_thread
from SimpleLLMFunc.type import NO_USAGE

__all__ = ["answered_in_batches"]

R = TypeVar("R")

_ASKED_LIVE = (
    ResponseParseError,
    EmptyResponseError,
    ToolCallLimitExceeded,
    RateLimited,
    ServerUnavailable,
    BadReply,
    BadRequest,
)
"""What another try may cure; a refusal, a cut answer and a refused key come again."""


@asynccontextmanager
async def answered_in_batches(
    function: BatchFunction[R],
    rows: Rows,
    options: MapOptions,
) -> AsyncGenerator[tuple[Mappable[R], Rows], None]:
    """Have the rows answered by batches, and give the function and the rows to map over with the local engine.

    Cancelling leaves the batches to the service; the next call with the same checkpoint finds them.

    Args:
        function: of one request a row.
        rows: as `read_rows` takes them; those that can be read only once are held in memory.
        options: of the map. Rows with a value in its checkpoint are not sent, nor are those with an error without
            `retry_errors`; beside it, in ``<name>-batches``, stands what is under way, until all is done.

    Raises:
        UsageError: the function has tools, or its model is no service.
        CheckpointError: the checkpoint cannot be trusted, or another map is at work on it.
        ProviderError: the service failed, or has no batches.
    """
    check_single_shot(function)
    service = BatchService(function.llm)
    rows = await _readable_again(rows)
    place = _place_of(options.get("checkpoint"))
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="simplellmfunc-batch-"))
        kept = Path(folder, "batches.sqlite") if place is None else place.with_name(f"{place.name}-batches")
        await stack.enter_async_context(_locked(kept))
        store = AnswerStore(kept)
        run = BatchRun(function, service, store, Path(folder), _teller(options.get("progress")))
        is_done = False
        try:
            # Closed before the map opens its checkpoint, which it wants for itself.
            with ExitStack() as reading, _within_the_budget_of_time():
                finished = None if place is None else await in_thread(_finished_rows, place)
                if finished is not None:
                    reading.callback(finished.file.close)
                async with service:
                    await run.gather(rows, finished, retry_errors=options.get("retry_errors", False))
            yield _Answered(function, store, run), rows
            is_done = await in_thread(store.is_empty)
        except asyncio.CancelledError:
            push_warning(await in_thread(_how_to_go_on, store, service, place))
            raise
        finally:
            run.give_back()
            # What stands in the log goes into the file, which takes the time of the disk; in any case before the lock goes.
            await in_thread(partial(store.close, remove=is_done))


def _how_to_go_on(store: AnswerStore, service: BatchService, checkpoint: Path | None) -> str:
    names = ", ".join(batch.id for batch in store.open_batches(service.address) if batch.id) or "none"
    if checkpoint is None:
        return f"stopped. Batches under way at the service: {names}. Without a checkpoint the next call does not know them."
    return f"stopped. Batches under way at the service: {names}. The same call with {str(checkpoint)!r} waits for them."


@contextmanager
def _within_the_budget_of_time() -> Generator[None, None, None]:
    limit = strictest_time_limit()
    try:
        with deadline_scope(limit.left() if limit is not None else None):
            yield
    except DeadlineExceeded as error:
        if limit is not None and limit.left() == 0:
            raise limit.out_of_time() from error
        raise


def _teller(progress: Progress) -> Callable[[str], object]:
    """Return what is told how the batches go: the log, and the terminal where somebody watches it."""
    if callable(progress) or progress_view(progress) is None or sys.stderr is None:
        return push_info
    return lambda text: sys.stderr.write(f"{escape_control(text)}\n")


def _place_of(checkpoint: str | PathLike[str] | None) -> Path | None:
    return None if checkpoint is None else Path(checkpoint).expanduser().absolute()


@asynccontextmanager
async def _locked(path: Path) -> AsyncGenerator[None, None]:
    """Let one map at a time send batches."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = WriterLock(path)
    taking = asyncio.ensure_future(in_thread(lock.acquire))  # it waits a moment for whoever has it
    try:
        await asyncio.shield(taking)
        yield
    finally:
        await asyncio.gather(taking, return_exceptions=True)  # a cancelled map does not leave it to be taken by nobody
        lock.release(ended_well=True)


def _finished_rows(path: Path) -> RowFile | None:
    """Return what the checkpoint holds, None where there is none yet."""
    if not path.exists() or path.stat().st_size == 0:
        return None
    rows = RowFile(path, None, "coerce", f"the checkpoint {str(path)!r}")
    try:
        rows.open()
    except BaseException:
        rows.file.close()
        raise
    return rows


async def _readable_again(rows: Rows) -> Rows:
    if can_read_again(rows):
        return rows
    if isinstance(rows, RowSource):
        return replace(rows, source=await _readable_again(rows.source))
    async with aclosing(Feed(rows).pieces()) as pieces:
        return [row.value async for piece in pieces for row in piece]


# --- what the map asks -----------------------------------------------------------------------------------


class _Answered(Relayed[R], Generic[R]):
    """The function, but that most rows are answered already."""

    def __init__(self, function: BatchFunction[R], store: AnswerStore, run: BatchRun) -> None:
        super().__init__(function)
        self._asked = function
        self._store = store
        self._run = run

    async def ask(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Answer[R]:
        try:
            line = await in_thread(self._store.line, self._run.key(args, kwargs))
        except (UsageError, OSError, ValueError):
            line = None  # arguments that are never recognised again were not sent
        if line is None:
            if self._run.stopped is not None:
                raise self._run.stopped
            return await self._function.ask(args, kwargs)
        try:
            return await answer_of(self._asked, line.mode, line.line, self._asked.llm)
        except _ASKED_LIVE as error:
            if problem_code(line.line) in LEFT or (isinstance(error, RateLimited) and error.kind == "quota"):
                raise
            spent = error.usage or NO_USAGE
            push_warning(f"{self.name!r}: the batch's answer to a row is of no use, so it is asked live: {error}")
        try:
            answer = await self._function.ask(args, kwargs)
        except SimpleLLMFuncError as error:
            error.usage = spent + (error.usage or NO_USAGE)
            raise
        return replace(answer, usage=spent + answer.usage)
