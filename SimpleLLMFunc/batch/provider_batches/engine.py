"""The engine "openai-batch": the rows of a map as batches of the service, at half the price.

First every row that needs an answer is written into files, and these are sent as batches; then the map goes over the
rows as it always does, and finds the answers here. A row that a batch did not answer, or not so that it fits, is asked
live. A file lists the batches under way, so that a restart waits for them and sends nothing twice.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from SimpleLLMFunc.base.run import Answer
from SimpleLLMFunc.batch.checkpoint.row_file import RowFile
from SimpleLLMFunc.batch.options import MapOptions
from SimpleLLMFunc.batch.progress import Progress, progress_view
from SimpleLLMFunc.batch.provider_batches.answer_store import AnswerStore
from SimpleLLMFunc.batch.provider_batches.lines import answer_of, check_single_shot, endpoint_of, problem_code
from SimpleLLMFunc.batch.provider_batches.run import LEFT, BatchRun
from SimpleLLMFunc.batch.provider_batches.service import BatchService
from SimpleLLMFunc.batch.relayed import Decorated, Relayed
from SimpleLLMFunc.batch.rows.feed import Feed, can_read_again
from SimpleLLMFunc.batch.rows.rows import Rows, RowSource
from SimpleLLMFunc.errors import (
    BadReply,
    BadRequest,
    EmptyResponseError,
    RateLimited,
    ResponseParseError,
    ServerUnavailable,
    SimpleLLMFuncError,
    ToolCallLimitExceeded,
    UsageError,
)
from SimpleLLMFunc.interface.spending import time_limits
from SimpleLLMFunc.logger import escape_control, push_info, push_warning
from SimpleLLMFunc.runtime import in_thread
from SimpleLLMFunc.type import NO_USAGE

R = TypeVar("R")

_ASKED_LIVE = (
    ResponseParseError, EmptyResponseError, ToolCallLimitExceeded, RateLimited, ServerUnavailable, BadReply, BadRequest,
)  # fmt: skip
"""What another try may cure; a refusal, a cut answer and a refused key come again."""


@asynccontextmanager
async def answered_in_batches(
    function: Decorated[R], rows: Rows, options: MapOptions
) -> AsyncGenerator[tuple[_Answered[R], Rows], None]:
    """Give the function, whose rows are answered by batches, and the rows; the map calls `gather` before it asks.

    Cancelling leaves the batches to the service; the next call with the same checkpoint finds them.

    Args:
        function: of one request a row.
        rows: as `read_rows` takes them; those that can be read only once are held in memory.
        options: of the map. Rows with a value in its checkpoint are not sent, nor are those with an error that are
            not asked again. What is under way is kept there too.

    Raises:
        UsageError: the function has tools, or its model is no service.
        CheckpointError: the checkpoint cannot be trusted.
        ProviderError: the service failed, or has no batches.
    """
    check_single_shot(function)
    endpoint_of(function.llm)
    service = BatchService(function.llm)
    rows = await _readable_again(rows)
    with tempfile.TemporaryDirectory(prefix="simplellmfunc-batch-") as folder:
        async with aclosing(_Answered(function, rows, service, Path(folder), options)) as asked:
            yield asked, rows


def _how_to_go_on(store: AnswerStore, service: BatchService, kept: RowFile | None) -> str:
    names = ", ".join(batch.id for batch in store.open_batches(service.address, True) if batch.id) or "none"
    if kept is None:
        return f"stopped. Batches under way at the service: {names}. Without a checkpoint the next call does not know them."
    return f"stopped. Batches under way at the service: {names}. The same call with {str(kept.path)!r} waits for them."


def _teller(progress: Progress) -> Callable[[str], object]:
    """Return the receiver of progress messages: the log, and a terminal if the progress is shown on one."""
    if callable(progress) or progress_view(progress) is None:
        return push_info
    return lambda text: sys.stderr.write(f"{escape_control(text)}\n")


async def _readable_again(rows: Rows) -> Rows:
    if can_read_again(rows):
        return rows
    if isinstance(rows, RowSource):
        return replace(rows, source=await _readable_again(rows.source))
    async with aclosing(Feed(rows).pieces()) as pieces:
        return [row.value async for piece in pieces for row in piece]


# --- what the map asks -----------------------------------------------------------------------------------


class _Answered(Relayed[R], Generic[R]):
    """The function, with most rows answered by a batch."""

    def __init__(
        self, function: Decorated[R], rows: Rows, service: BatchService, folder: Path, options: MapOptions
    ) -> None:
        super().__init__(function)
        self._rows = rows
        self._service = service
        self._folder = folder
        self._options = options
        self._store: AnswerStore | None = None

    async def gather(self, kept: RowFile | None) -> None:
        """Send what needs an answer, and wait until the answers are here.

        Args:
            kept: the file of the checkpoint, or None.
        """
        self._store = store = await in_thread(self._opened, kept)
        tell = _teller(self._options.get("progress"))
        self._run = run = BatchRun(self._function, self._service, store, self._folder, tell, kept, self._options)
        try:
            with time_limits():
                async with self._service.opened():
                    await run.gather(self._rows)
        except asyncio.CancelledError:
            push_warning(await in_thread(_how_to_go_on, store, self._service, kept))
            raise
        finally:
            run.give_back()

    async def aclose(self) -> None:
        """Close the file of the answers."""
        if self._store is not None:
            await in_thread(self._store.close)

    def _opened(self, kept: RowFile | None) -> AnswerStore:
        if kept is None:
            return AnswerStore.temporary(self._folder)
        store = AnswerStore(kept)
        store.take_over(kept.path.with_name(f"{kept.path.name}-batches"))  # of 1.0
        return store

    async def ask(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Answer[R]:
        assert self._store is not None, "the answers were gathered"
        try:
            line = await in_thread(self._store.line, self._run.key(args, kwargs))
        except (UsageError, OSError, ValueError):
            line = None  # arguments that are never recognised again were not sent
        if line is None:
            if self._run.stopped is not None:
                raise self._run.stopped
            return await self._function.ask(args, kwargs)
        try:
            return await answer_of(self._function, line)
        except _ASKED_LIVE as error:
            if problem_code(line.line) in LEFT or (isinstance(error, RateLimited) and error.kind == "quota"):
                raise
            spent = error.usage or NO_USAGE
            push_warning(
                f"{self.name!r}: the batch's answer to a row cannot be used, and it is asked directly: {error}"
            )
        try:
            answer = await self._function.ask(args, kwargs)
        except SimpleLLMFuncError as error:
            error.usage = spent + (error.usage or NO_USAGE)
            raise
        return replace(answer, usage=spent + answer.usage)
