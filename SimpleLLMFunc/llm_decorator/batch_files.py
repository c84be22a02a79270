"""The views of a decorated function that write and read a provider's batch files."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from SimpleLLMFunc.llm_decorator.batch_doors import read_batch_file, to_batch_file
from SimpleLLMFunc.llm_decorator.function_core import FunctionCore
from SimpleLLMFunc.llm_decorator.mapped import MappedFunction
from SimpleLLMFunc.sync import run_sync

if TYPE_CHECKING:
    from SimpleLLMFunc.batch.report import MapReport
    from SimpleLLMFunc.batch.rows import Rows

__all__ = ["AsyncBatchFiles", "BatchFiles"]

R = TypeVar("R")


class AsyncBatchFiles(Generic[R]):
    """Views of an async function whose answer is an `R`."""

    _core: FunctionCore

    def to_batch_file(
        self, rows: Rows, path: str | PathLike[str], *, on_error: Literal["raise", "skip"] = "raise"
    ) -> Coroutine[Any, Any, list[Path]]:
        """Write one request a row, in the OpenAI Batch JSONL format; when awaited, the files.

        Beyond 50,000 lines or 200 MB there are several: ``requests-0001.jsonl`` and so on. A row that cannot be asked
        raises, or is left out where `on_error` says "skip".

        Raises:
            UsageError: the function has tools, or a row cannot be asked.
        """
        return to_batch_file(MappedFunction[R](self._core), rows, path, on_error=on_error)

    def read_batch_file(
        self,
        path: str | PathLike[str] | Iterable[str | PathLike[str]],
        *,
        rows: Rows | None = None,
        checkpoint: str | PathLike[str] | None = None,
        on_error: Literal["keep", "raise"] = "keep",
    ) -> Coroutine[Any, Any, MapReport[R]]:
        """Read the answers to what `to_batch_file` wrote; when awaited, what came of each row. Nothing is asked.

        Args:
            path: the file of answers, or several; their order does not matter.
            rows: the rows that were asked, which the report then holds.
            checkpoint: with `rows`: keep the values there, where `map` finds them.
            on_error: "keep" makes an error the result of its row; "raise" raises the first one.

        Raises:
            ConfigError: no line of it answers a request of ours.
        """
        return read_batch_file(MappedFunction[R](self._core), path, rows=rows, checkpoint=checkpoint, on_error=on_error)


class BatchFiles(Generic[R]):
    """Views of a sync function whose answer is an `R`: the same, behind the bridge."""

    _core: FunctionCore

    def to_batch_file(
        self, rows: Rows, path: str | PathLike[str], *, on_error: Literal["raise", "skip"] = "raise"
    ) -> list[Path]:
        """Write one request a row, in the OpenAI Batch JSONL format, and return the files; see `AsyncBatchFiles`."""
        return run_sync(to_batch_file(MappedFunction[R](self._core), rows, path, on_error=on_error))

    def read_batch_file(
        self,
        path: str | PathLike[str] | Iterable[str | PathLike[str]],
        *,
        rows: Rows | None = None,
        checkpoint: str | PathLike[str] | None = None,
        on_error: Literal["keep", "raise"] = "keep",
    ) -> MapReport[R]:
        """Read the answers to what `to_batch_file` wrote, and return what came of each row; see `AsyncBatchFiles`."""
        return run_sync(
            read_batch_file(MappedFunction[R](self._core), path, rows=rows, checkpoint=checkpoint, on_error=on_error)
        )
