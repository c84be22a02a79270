"""The batches of a map: send rows, wait, and keep the answers."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from SimpleLLMFunc.batch.checkpoint.codec import asks_again
from SimpleLLMFunc.batch.checkpoint.row_file import RowFile
from SimpleLLMFunc.batch.options import MapOptions
from SimpleLLMFunc.batch.provider_batches import lines
from SimpleLLMFunc.batch.provider_batches.answer_store import AnswerStore, KeptLine, OpenBatch
from SimpleLLMFunc.batch.provider_batches.service import BatchService, BatchState
from SimpleLLMFunc.batch.relayed import Decorated
from SimpleLLMFunc.batch.rows.arguments import RowArguments
from SimpleLLMFunc.batch.rows.feed import Feed
from SimpleLLMFunc.batch.rows.rows import InputRow, Rows
from SimpleLLMFunc.errors import (
    AuthenticationError,
    BadRequest,
    BudgetExceeded,
    ConnectionFailed,
    RateLimited,
    ServerUnavailable,
    SimpleLLMFuncError,
    UsageError,
    counted,
)
from SimpleLLMFunc.interface.llm_interface import require_prices
from SimpleLLMFunc.interface.spending import (
    Charge,
    Deadline,
    charge_lost,
    charge_question,
    current_deadline,
    is_limited,
)
from SimpleLLMFunc.logger import push_warning
from SimpleLLMFunc.runtime import in_thread
from SimpleLLMFunc.storage import key_of, version_of
from SimpleLLMFunc.type import NO_USAGE, Usage

FIRST_POLL = 5.0
LONGEST_POLL = 300.0
"""Seconds between two looks at the batches; the pause grows."""

LONGEST_OUTAGE = 3600.0
"""Seconds for which the service may be away while its batches are waited for."""

_ROUNDS = 4
"""How often what a batch left unanswered (it expired, or there was no room for it) goes into a further one."""

_NO_ROOM = frozenset({"token_limit_exceeded", "rate_limit_exceeded"})
"""Why a batch is refused for now: too much is waiting already."""

LEFT = frozenset({"batch_failed", "batch_expired", "batch_cancelled"})
"""Codes of a whole batch that failed: asking all of it live, at twice the price, is the user's decision."""


@dataclass(eq=False)
class BatchRun:
    """One map's batches.

    Attributes:
        store: of batches and answers.
        folder: for files of requests and answers.
        tell: is told what happens.
        finished: the rows that need no answer, but for errors that are asked again; None without a checkpoint.
        options: of the map.
        stopped: the budget that kept rows from being sent; None where none did.
    """

    function: Decorated[Any]
    service: BatchService
    store: AnswerStore
    folder: Path
    tell: Callable[[str], object]
    finished: RowFile | None
    options: MapOptions
    stopped: BudgetExceeded | None = None

    def __post_init__(self) -> None:
        self._version = version_of(self.function.definition())
        self._arguments = RowArguments(self.function, self.options.get("column"))
        self._charges: dict[str, Charge] = {}
        self._out_since: float | None = None

    def key(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bytes:
        """Return the key of a row."""
        return key_of(self._version, self.function.bind(args, kwargs))

    def give_back(self) -> None:
        """Give back what budgets hold for batches whose answers were not waited for."""
        while self._charges:
            self._charges.popitem()[1].settle(None)

    async def gather(self, rows: Rows) -> None:
        """Send what needs an answer, and wait until the answers are here; `rows` can be read again."""
        await in_thread(self.store.forget_used)
        await self._adopt()
        for left in reversed(range(_ROUNDS)):
            await self._send_missing(rows)
            if not await self._collect(is_last=not left) or self.stopped is not None:
                return

    async def _adopt(self) -> None:
        """Find out what became of batches that were being sent when an earlier run ended."""
        for batch in await in_thread(self.store.open_batches, self.service.address, False):
            try:
                found = await self.service.find(batch.tag)
            except BadRequest as error:
                push_warning(f"the service does not list its batches, so one that may be under way is lost: {error}")
                await in_thread(self.store.end, batch.tag)
                continue
            if found is not None:
                await in_thread(self.store.sent, batch.tag, found.id, None)
                continue
            if batch.file is not None:
                await self._take_away(batch.file)
            await in_thread(self.store.end, batch.tag)

    # --- out ---------------------------------------------------------------------------------------------

    async def _send_missing(self, rows: Rows) -> None:
        try:
            async with aclosing(lines.request_files(Feed(rows, self._arguments), self._lines, self.folder)) as parts:
                async for part in parts:
                    await self._send(part)
        except BudgetExceeded as error:
            self.stopped = error  # what is under way is paid: it is waited for all the same

    def _lines(self, piece: Sequence[InputRow], under_way: Collection[bytes]) -> Sequence[lines.RequestLine]:
        """Return the requests of those rows that need one."""
        rows: dict[bytes, tuple[InputRow, tuple[Any, ...], dict[str, Any]]] = {}
        for row in piece:
            try:
                args, kwargs = self._arguments.of(row)
                key = self.key(args, kwargs)
            except (UsageError, OSError, ValueError):
                continue  # the map says of it what is wrong
            if key not in under_way:
                rows.setdefault(key, (row, args, kwargs))
        known = self.store.known(list(rows))
        keys = [key for key in rows if key not in known]
        if self.finished is not None:
            found = self.finished.find(keys)
            retry_errors = self.options.get("retry_errors")
            keys = [key for key in keys if key not in found or asks_again(found[key].error_name, retry_errors)]
        requests = []
        for key in keys:
            row, args, kwargs = rows[key]
            with suppress(SimpleLLMFuncError, OSError, ValueError):  # the map says of it what is wrong
                requests.append(lines.request_line(self.function, key, row.index, args, kwargs))
        return requests

    async def _send(self, part: lines.RequestFile) -> None:
        """Send a file of requests as a batch.

        Raises:
            BudgetExceeded: it would break a budget; nothing was sent.
            ProviderError: the service failed or refused.
        """
        usd = 0.0
        if is_limited("usd"):
            await require_prices(self.function.llm)
            usd = lines.batch_price(self.function.llm, Usage(input_tokens=part.tokens)) or 0.0
        tag = secrets.token_hex(16)
        with charge_question(part.tokens, usd) as charge:
            try:
                await in_thread(self.store.begin, tag, self.service.address, list(part.modes.items()))
                file_id = await self.service.upload(part.path, f"simplellmfunc-{tag}.jsonl")
                await in_thread(self.store.sent, tag, None, file_id)
                state = await self._begun(file_id, tag)
                await in_thread(self.store.sent, tag, state.id, file_id)
            except BaseException:
                charge.settle(None)
                raise
            self._charges[tag] = charge
        part.path.unlink()
        self.tell(f"{state.id}: {counted(len(part.modes), 'request')} sent")

    async def _begun(self, file_id: str, tag: str) -> BatchState:
        """Begin a batch; where the service refuses, its file is not left there."""
        try:
            return await self.service.create(file_id, lines.endpoint_of(self.function.llm), tag)
        except (AuthenticationError, BadRequest, RateLimited):
            await self._take_away(file_id)
            raise
        except SimpleLLMFuncError as error:
            error.add_note(
                f"The batch may have begun all the same, so the file {file_id} stays at the service. The same call with "
                "the same checkpoint finds out, and takes it away or waits for the answers."
            )
            raise

    async def _take_away(self, file_id: str) -> None:
        try:
            await self.service.remove(file_id)
        except SimpleLLMFuncError as error:
            push_warning(
                f"the file {file_id} with the requests of a batch that never began stays at the service: {error}"
            )

    # --- back --------------------------------------------------------------------------------------------

    async def _collect(self, *, is_last: bool) -> bool:
        """Wait for the batches under way and keep their answers; return whether some rows should be sent again."""
        pause, is_unfinished = FIRST_POLL, False
        while batches := await in_thread(self.store.open_batches, self.service.address, True):
            waiting: list[BatchState] = []
            for batch in batches:
                try:
                    state = await self._state_of(batch)
                    if state is None:
                        is_unfinished = True
                    elif state.has_ended:
                        is_unfinished |= await self._take(batch, state, is_last=is_last)
                    else:
                        waiting.append(state)
                    self._out_since = None
                except (ConnectionFailed, RateLimited, ServerUnavailable) as error:
                    self._bear_outage(error)
                    waiting.append(BatchState(batch.id or "", "unknown"))
            if waiting:
                told = ", ".join(f"{state.id} {state.status} {state.done}/{state.total}" for state in waiting)
                self.tell(f"waiting for {counted(len(waiting), 'batch', 'batches')}: {told}")
                await asyncio.sleep(Deadline.after(pause).stricter(current_deadline()).left() or 0.0)
                pause = min(pause * 1.5, LONGEST_POLL)
        return is_unfinished

    async def _state_of(self, batch: OpenBatch) -> BatchState | None:
        """Return how far a batch is; None if the service no longer knows it, and then it is forgotten here too."""
        assert batch.id is not None, "a batch without an id was adopted or ended"
        try:
            return await self.service.retrieve(batch.id)
        except BadRequest as error:
            if error.status != 404:
                raise
            push_warning(f"the service does not know {batch.id} any more; its rows are sent again: {error}")
        await in_thread(self.store.end, batch.tag)
        return None

    def _bear_outage(self, error: SimpleLLMFuncError) -> None:
        """Note that the service is away; raise `error` once it has been away for `LONGEST_OUTAGE`."""
        now = asyncio.get_running_loop().time()
        self._out_since = self._out_since or now
        if now - self._out_since >= LONGEST_OUTAGE:
            raise error
        push_warning(f"the state of the batches could not be read; it is asked for again later: {error}")

    async def _take(self, batch: OpenBatch, state: BatchState, *, is_last: bool) -> bool:
        """Keep the answers of a batch that has ended; return whether the rest should be sent again."""
        answered = [self.folder / f"{batch.tag}.{number}" for number in range(len(state.files))]
        for file_id, path in zip(state.files, answered, strict=True):
            await self.service.download(file_id, path)
        may_go_again = state.status == "expired" or (state.status == "failed" and bool(state.codes & _NO_ROOM))
        is_again = may_go_again and not is_last
        usage = await in_thread(self._keep, batch, state, answered, is_again)
        charge = self._charges.pop(batch.tag, None)
        # What an earlier run sent is paid now, as far as this budget knows.
        (charge_lost if charge is None else charge.settle)(usage)
        for each in answered:
            each.unlink()
        why = f": {state.problem}" if state.problem else ""
        (self.tell if state.status == "completed" else push_warning)(f"{state.id}: {state.status}{why}")
        return is_again

    def _keep(self, batch: OpenBatch, state: BatchState, files: Iterable[Path], is_again: bool) -> Usage:
        """Keep the lines of a batch, and lines that say what became of the rest; return what it took."""
        requests = self.store.requests_of(batch.tag)
        counted = is_limited()
        total = NO_USAGE

        def kept() -> Generator[KeptLine, None, None]:
            nonlocal total
            for line in _lines_of(files):
                if line.key in requests and lines.problem_code(line.line) not in LEFT:
                    if line.is_good:
                        requests.pop(line.key)
                        if counted:
                            total = total + lines.usage_in(line.line, self.function.llm)
                    yield line
            if not is_again and state.status != "completed":
                said = state.problem or f"the batch {state.id} is {state.status}"
                for key, mode in requests.items():
                    data = {"error": {"code": f"batch_{state.status}", "message": said}, "response": None}
                    yield KeptLine(key, mode, 0, is_good=False, line=to_json(data))

        self.store.end(batch.tag, kept())
        return total


def _lines_of(files: Iterable[Path]) -> Iterator[KeptLine]:
    for path in files:
        with path.open("rb") as file:
            yield from filter(None, lines.answers_in(file, "the service's file"))
