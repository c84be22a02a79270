"""The engine "local": one event loop, one task that reads rows, and a task for each row that is asked."""

from __future__ import annotations

import asyncio
import os
import sys
from array import array
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from typing import Any, Generic, TypeVar

from SimpleLLMFunc.base.run import Mappable
from SimpleLLMFunc.batch.checkpoint.codec import Finished, Record, asks_again, encode_given
from SimpleLLMFunc.batch.checkpoint.row_file import RowFile
from SimpleLLMFunc.batch.checkpoint.store import Store
from SimpleLLMFunc.batch.options import MOST_AT_A_TIME, Concurrency, MapOptions, concurrency_of
from SimpleLLMFunc.batch.progress import MapProgress, progress_view
from SimpleLLMFunc.batch.relayed import asked
from SimpleLLMFunc.batch.report import MapCounts, MapReport, MapRows
from SimpleLLMFunc.batch.rows.arguments import RowArguments
from SimpleLLMFunc.batch.rows.feed import PIECE, Feed
from SimpleLLMFunc.batch.rows.rows import InputRow, Rows
from SimpleLLMFunc.errors import (
    BudgetExceeded,
    CheckpointError,
    ConfigError,
    ConnectionFailed,
    DeadlineExceeded,
    RateLimited,
    RunAborted,
    ServerUnavailable,
    SimpleLLMFuncError,
    UsageError,
    counted,
)
from SimpleLLMFunc.interface.http import without_frames
from SimpleLLMFunc.interface.spending import Deadline, strictest_time_limit
from SimpleLLMFunc.logger import push_warning, shown_error
from SimpleLLMFunc.runtime import in_thread
from SimpleLLMFunc.storage import KEY_BYTES, key_of
from SimpleLLMFunc.type import NO_USAGE, Usage

R = TypeVar("R")

_TICK_SECONDS = 0.5


class LocalMap(Generic[R]):
    """One map under way: one task reads rows, each row is asked in a task.

    Args:
        pace: how many places; None is what the options say, as far as this process may open sockets.
        prepare: awaited before the rows are read, with the file of the checkpoint, or None.
    """

    def __init__(
        self,
        function: Mappable[R],
        rows: Rows,
        options: MapOptions,
        clock: Deadline,
        pace: Concurrency | None = None,
        prepare: Callable[[RowFile | None], Awaitable[None]] | None = None,
    ) -> None:
        self._function = function
        self._raises = options.get("on_error") == "raise"
        self._retry_errors = options.get("retry_errors")
        self._clock = clock
        self._prepare = prepare
        self._arguments = RowArguments(function, options.get("column"))
        self._feed = Feed(rows, self._arguments)
        self._store = Store(function, options.get("checkpoint"), self._state)
        self._pace = concurrency_of(options.get("concurrency", "auto"), _most_sockets()) if pace is None else pace
        self._view = progress_view(options.get("progress"))
        self._ids: array[int] = array("q")
        self._ready: deque[Record] = deque()
        self._pending: dict[bytes, Record] = {}
        self._given: dict[int, Any] = {}
        self._taken: Sequence[Record] = ()
        self._has_room = asyncio.Event()
        self._workers: set[asyncio.Task[None]] = set()
        self._has_ended = asyncio.Event()
        self._is_fed = False
        self._has_asked = False
        self._failure: BaseException | None = None
        self._stopped: SimpleLLMFuncError | None = None
        self._reader: asyncio.Task[None]
        self._note = ""
        self._helpers: list[asyncio.Task[None]] = []
        self._total = self._feed.total
        self._counts: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()
        self._retried: set[int] = set()
        self._usage = Usage(cost=0.0)
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()

    async def result(self) -> MapReport[R]:
        """Ask for all rows, and return the report."""
        try:
            version = await self._store.open()
            if self._prepare is not None:
                await self._prepare(self._store.file)
            self._reader = asyncio.create_task(self._read(version))
            others = [asyncio.create_task(self._count_rows()), asyncio.create_task(self._watch())]
            self._helpers = [self._reader, *others]
            await self._has_ended.wait()
            if self._stopped is not None:
                self._say_how_to_go_on(f"stopped ({self._stopped})")
        except asyncio.CancelledError:
            self._say_how_to_go_on("stopped")
            raise
        finally:
            await self._end()
        if self._failure is not None:
            raise self._failure
        return self._report()

    # --- rows in -----------------------------------------------------------------------------------------------

    async def _read(self, version: bytes) -> None:
        try:
            async with aclosing(self._feed.pieces()) as pieces:
                async for piece in pieces:
                    await self._take(piece, version)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError):
                if self._stopped is not None:
                    raise
                error = RunAborted("the source of the rows was cancelled")
            if isinstance(error, CheckpointError):
                self._fail(error)
            self._failure = self._failure or error
        else:
            self._total = len(self._ids)
        finally:
            self._is_fed = True
            self._look_whether_done()

    async def _count_rows(self) -> None:
        """Find out of how many rows a file is, for those who want to know how long it takes."""
        if self._total is None and (self._view is not None or self._store.path is not None):
            counted = await self._feed.counted()
            if not self._is_fed:
                self._total = counted

    async def _take(self, piece: Sequence[InputRow], version: bytes) -> None:
        """Look what is known of some rows, and queue the others."""
        first = len(self._ids)
        # In a thread, which reads their files and their long texts.
        rows = await in_thread(lambda: [self._record(each, place, version) for place, each in enumerate(piece, first)])
        self._taken = rows
        self._ids.extend([0] * len(piece))
        fresh: list[Record] = []
        shared: list[tuple[Record, Finished]] = []
        for row in rows:
            if (same := self._pending.setdefault(row.key, row)) is row:
                fresh.append(row)
            else:
                same.also.append(row.place)
                shared.append((row, same))
        found = await self._store.find([row.key for row in fresh])
        shared += [(row, found[row.key]) for row in rows if row.key in found]
        if shared and self._feed.rows is None:  # rows that are read once and ask the same may have other columns
            self._given |= await in_thread(_differing, shared)
        self._ready.extend([row for row in fresh if not await self._is_known(row, found.get(row.key))])
        self._fill_places()
        await asyncio.sleep(0)  # rows at hand must not hold up those that are under way
        while len(self._ready) >= 2 * max(self._pace.limit, PIECE):
            self._has_room.clear()
            await self._has_room.wait()

    def _record(self, given: InputRow, place: int, version: bytes) -> Record:
        """Return a row with its arguments and its key, or with the reason why it cannot be asked."""
        is_kept = self._store.path is not None
        kept = given.value if is_kept or self._feed.rows is None else None
        try:
            args, kwargs = self._arguments.of(given)
            bound = self._function.bind(args, kwargs)
        except UsageError as error:
            failure = error
        else:
            try:
                return Record(place, key_of(version, bound), args, kwargs, kept)
            except (UsageError, OSError, ValueError) as error:
                if not is_kept:
                    return Record(place, os.urandom(KEY_BYTES), args, kwargs, kept)  # like no other row
                failure = error if isinstance(error, UsageError) else UsageError(str(error))
        return Record(place, key_of(version, ["invalid", place, str(failure)]), given=kept, failure=failure)

    async def _is_known(self, row: Record, found: Finished | None) -> bool:
        """Whether the result of a row is known before it is asked; it is counted then."""
        if found is not None and not found.is_sound:
            raise CheckpointError(
                f"what {str(self._store.path)!r} holds of it is damaged. Nothing more is asked, so that nothing is paid "
                "twice: put a copy of the checkpoint in its place, or give another path.",
                row=row.place,
            )
        if found is not None:
            is_own = found.id > self._store.first_new_id or found.id in self._retried
            if is_own or not asks_again(found.error_name, self._retry_errors):
                if self._raises and (error := found.error(row.place)) is not None:
                    self._fail(error)
                self._settle(row, found.id, found.error_name, "duplicates" if is_own else "restored")
                return True
            row.id = found.id
            self._retried.add(found.id)
        if row.failure is not None and self._raises:
            self._fail(row.failure)
        elif row.failure is not None:
            await self._finish(row, "invalid")
        return row.failure is not None

    # --- rows asked ----------------------------------------------------------------------------------------------

    def _fill_places(self) -> None:
        while self._ready and len(self._workers) < self._pace.limit:
            worker = self._loop.create_task(self._ask(self._ready.popleft()))
            self._workers.add(worker)
            worker.add_done_callback(self._left)
            self._has_room.set()

    def _left(self, worker: asyncio.Task[None]) -> None:
        self._workers.discard(worker)
        if not worker.cancelled() and (error := worker.exception()) is not None:
            self._fail(error)
        if not self._has_ended.is_set():
            self._fill_places()
        self._look_whether_done()

    async def _ask(self, row: Record) -> None:
        began = self._loop.time()
        is_full = len(self._workers) >= self._pace.limit
        row.answer, row.failure = answer, error = await asked(self._function, row.args, row.kwargs)
        row.usage = answer.usage if answer is not None else getattr(error, "usage", None) or NO_USAGE
        self._usage += row.usage
        # Every further row would end in the same way; this one counts as not asked.
        if isinstance(error, (BudgetExceeded, RunAborted, DeadlineExceeded)) and (
            self._clock.is_over or not isinstance(error, DeadlineExceeded)
        ):
            self._stop(error)
            return
        # The service turned a try of the row away, for good or for a while.
        tries = answer.tries if answer is not None else getattr(error, "tries", 0)
        is_refused = tries > 1 or isinstance(error, (RateLimited, ServerUnavailable, ConnectionFailed))
        self._pace.finished(began, self._loop.time(), is_refused=is_refused, is_full=is_full)
        # As things are, no row can be asked: no key, no price, real calls forbidden.
        is_hopeless = not self._has_asked and (isinstance(error, ConfigError) or type(error) is UsageError)
        if error is not None and (self._raises or is_hopeless):
            raise error
        await self._finish(row, "asked")
        self._has_asked = self._has_asked or error is None

    async def _finish(self, row: Record, way: str) -> None:
        """Commit a row, and then count it."""
        if row.failure is not None:
            without_frames(row.failure)
        self._settle(row, await self._store.keep(row), row.error_name, way)

    def _settle(self, row: Record, number: int, error: str | None, way: str) -> None:
        self._pending.pop(row.key, None)
        self._ids[row.place] = number
        self._counts[way] += 1
        for place in row.also:
            self._ids[place] = number
        self._counts["duplicates" if way == "asked" else way] += len(row.also)
        if error is not None:
            self._errors[error] += 1 + len(row.also)

    # --- the end -------------------------------------------------------------------------------------------------

    def _look_whether_done(self) -> None:
        if self._is_fed and not self._workers and not self._ready:
            self._has_ended.set()

    def _fail(self, error: BaseException | None) -> None:
        """End the map at once with `error`."""
        self._failure = self._failure or error
        self._has_ended.set()

    def _stop(self, error: SimpleLLMFuncError) -> None:
        """Ask for no further row; those under way may end."""
        if self._stopped is None:
            without_frames(error)
            self._stopped = error
            unasked = {place: row.given for row in self._pending.values() for place in (row.place, *row.also)}
            self._given = unasked | {row.place: row.given for row in self._taken} | self._given
            self._ready.clear()
            self._reader.cancel()

    async def _watch(self) -> None:
        """Show the progress twice a second, and stop the map when its time is up."""
        limit = strictest_time_limit()
        while True:
            pauses = [_TICK_SECONDS, self._clock.left(), None if limit is None else limit.left_of("seconds")]
            await asyncio.sleep(min(seconds for seconds in pauses if seconds is not None))
            if self._clock.is_over:
                return self._stop(DeadlineExceeded(self._clock.seconds, doing="mapping"))
            if limit is not None and limit.left_of("seconds") == 0:
                return self._stop(limit.exceeded("seconds"))
            self._show(None)

    def _show(self, note: str | None) -> None:
        if self._view is None:
            return
        try:
            self._view(self._state(), note)
        except Exception as error:  # noqa: BLE001 - what only watches must not end what it watches
            push_warning(f"the progress of {self._function.name!r} cannot be shown: {shown_error(error)}")
            self._view = None

    def _state(self) -> MapProgress:
        return MapProgress(
            name=self._function.name,
            done=sum(self._counts.values()),
            asked=self._counts["asked"],
            failed=sum(self._errors.values()),
            total=self._total,
            cost=self._usage.cost,
            seconds=self._loop.time() - self._began,
            in_flight=len(self._workers),
        )

    async def _end(self) -> None:
        """Leave nothing behind: no task, no lock."""
        self._has_ended.set()  # first: a place that becomes free now stays empty
        tasks = [*self._workers, *self._helpers]
        for task in tasks:
            task.cancel()
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            await self._store.close()
        self._show(self._note)

    def _report(self) -> MapReport[R]:
        stopped = self._stopped
        if stopped is not None:
            if self._raises:
                raise stopped
            self._ids.extend([0] * ((self._feed.total or 0) - len(self._ids)))
        if unasked := self._ids.count(0):
            self._errors[type(stopped).__name__] += unasked
        counts = MapCounts(rows=len(self._ids), unasked=unasked, failed=sum(self._errors.values()), **self._counts)
        given = self._given if self._feed.rows is None else self._feed.rows
        return MapReport(
            rows=MapRows(self._ids, self._store, given, stopped, range(len(self._ids))),
            counts=counts,
            usage=self._usage,
            seconds=self._loop.time() - self._began,
            errors=dict(self._errors.most_common()),
            stopped=stopped,
            name=self._function.name,
            return_type=self._function.output.return_type,
            frame=self._feed.frame,
        )

    def _say_how_to_go_on(self, what: str) -> None:
        done = sum(self._counts.values())
        rows = counted(done, "row") if self._total is None else f"{done} of {counted(self._total, 'row')}"
        how = (
            "Give checkpoint='run.sqlite', and the same call again goes on from there."
            if self._store.path is None
            else f"They are kept in {str(self._store.path)!r}: the same call again goes on from there."
        )
        self._note = f"the map of {self._function.name!r} was {what} after {rows}. {how}"
        push_warning(self._note)


def _differing(shared: Sequence[tuple[Record, Finished]]) -> dict[int, Any]:
    """Return, by place, the rows that ask the same as another row and were given in another form."""
    held = {}
    for row, same in shared:
        with suppress(UsageError):  # a row that cannot be written down is held too
            if not same.is_sound or encode_given(row.given) == encode_given(same.given):
                continue
        held[row.place] = row.given
    return held


def _most_sockets() -> int:
    """Return how many calls may be on their way: each takes a descriptor."""
    if sys.platform == "win32":
        return MOST_AT_A_TIME
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_AT_A_TIME if soft == resource.RLIM_INFINITY else max(1, min(MOST_AT_A_TIME, soft // 2))
