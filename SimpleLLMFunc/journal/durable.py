"""`durable`: a block of code whose runs cannot be lost."""

from __future__ import annotations

import os
from contextlib import ExitStack, closing
from types import TracebackType
from typing import Any, Literal, Self

from SimpleLLMFunc.base.run import JOURNAL, Journal
from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.journal.log_file import JournalFile, KeyLog
from SimpleLLMFunc.journal.scopes import Scope
from SimpleLLMFunc.journal.steps import Steps
from SimpleLLMFunc.logger import border
from SimpleLLMFunc.utils import Block


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
        if on_change not in {"error", "restart"}:
            raise UsageError(f'on_change is "error" or "restart", not {on_change!r}.')
        if sync not in {"normal", "full"}:
            raise UsageError(f'sync is "normal" or "full", not {sync!r}.')
        self.path = path
        self.key = key
        self._on_change = on_change
        self._sync = sync
        self._entered: tuple[ExitStack, Steps, Scope, Block[Journal | None]] | None = None

    @border
    def __enter__(self) -> Self:
        if self._entered is not None or JOURNAL.get() is not None:
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
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._entered is not None, "it was entered"
        stack, steps, scope, block = self._entered
        JOURNAL.leave(block)
        self._entered = None
        with stack:
            steps.close(error, is_interrupted=scope.interrupted is not None)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)
