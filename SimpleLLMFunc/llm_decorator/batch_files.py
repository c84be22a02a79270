"""The views of a decorated function for batch files and Ray datasets.

Each view imports `batch` when it is called, so that an import of the library does not.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from SimpleLLMFunc.llm_decorator.mapped import MappedFunction
from SimpleLLMFunc.logger import border
from SimpleLLMFunc.runtime import run_sync

if TYPE_CHECKING:
    from SimpleLLMFunc.batch import MapReport
    from SimpleLLMFunc.batch.ray.actor import RayActor
    from SimpleLLMFunc.batch.rows.rows import Rows

R = TypeVar("R")


class _Pipelines:
    """Views that are the same for async and sync functions."""

    def _mapped(self) -> MappedFunction[Any]:
        raise NotImplementedError

    @border
    def as_ray_actor(
        self,
        *,
        columns: Mapping[str, str] | None = None,
        concurrency: int = 100,
        actors: int = 1,
        on_error: Literal["keep", "raise"] = "keep",
    ) -> type[RayActor]:
        """Return a class for ``dataset.map_batches(f.as_ray_actor(), concurrency=2)`` of a Ray dataset.

        It gives every batch back with the columns of the result, and ``error``. `f.map` with ``engine="ray"`` does more:
        a checkpoint, a budget, no row asked twice.

        Args:
            columns: parameters by the names of columns, for columns that are called otherwise.
            concurrency: rows at a time in one actor.
            actors: how many there will be; each keeps its part of the model's rates.
            on_error: "keep" puts it into the column ``error``, "raise" fails the batch.

        Raises:
            ConfigError: Ray is not installed, or there is no model to ask.
        """
        from SimpleLLMFunc.batch.ray.actor import ray_actor

        return ray_actor(self._mapped(), columns=columns, concurrency=concurrency, actors=actors, on_error=on_error)


class AsyncBatchFiles(_Pipelines, Generic[R]):
    """Views of an async function whose answer is an `R`."""

    @border
    def to_batch_file(
        self, rows: Rows, path: str | PathLike[str], *, on_error: Literal["raise", "skip"] = "raise"
    ) -> Coroutine[Any, Any, list[Path]]:
        """Write one request a row, in the OpenAI Batch JSONL format; when awaited, the files.

        Beyond 50,000 lines or 200 MB there are several: ``requests-0001.jsonl`` and so on. A row that cannot be asked
        raises, or is left out where `on_error` says "skip".

        Raises:
            UsageError: the function has tools, or a row cannot be asked.
        """
        from SimpleLLMFunc.batch import to_batch_file

        return to_batch_file(self._mapped(), rows, path, on_error=on_error)

    @border
    def read_batch_file(
        self,
        path: str | PathLike[str] | Iterable[str | PathLike[str]],
        *,
        rows: Rows | None = None,
        checkpoint: str | PathLike[str] | None = None,
        on_error: Literal["keep", "raise"] = "keep",
    ) -> Coroutine[Any, Any, MapReport[R]]:
        """Read the answers to what `to_batch_file` wrote; when awaited, the results of the rows. No model is asked.

        Args:
            path: the file of answers, or several; their order does not matter.
            rows: the rows that were asked, which the report then holds.
            checkpoint: with `rows`: keep the values there, where `map` finds them.
            on_error: "keep" makes an error the result of its row; "raise" raises the first one.

        Raises:
            ConfigError: no line of it answers a request of ours.
        """
        from SimpleLLMFunc.batch import read_batch_file

        return read_batch_file(self._mapped(), path, rows=rows, checkpoint=checkpoint, on_error=on_error)


class BatchFiles(_Pipelines, Generic[R]):
    """Views of a sync function whose answer is an `R`: the same, behind the bridge."""

    @border
    def to_batch_file(
        self, rows: Rows, path: str | PathLike[str], *, on_error: Literal["raise", "skip"] = "raise"
    ) -> list[Path]:
        """Write one request a row, in the OpenAI Batch JSONL format, and return the files; see `AsyncBatchFiles`."""
        from SimpleLLMFunc.batch import to_batch_file

        return run_sync(to_batch_file(self._mapped(), rows, path, on_error=on_error))

    @border
    def read_batch_file(
        self,
        path: str | PathLike[str] | Iterable[str | PathLike[str]],
        *,
        rows: Rows | None = None,
        checkpoint: str | PathLike[str] | None = None,
        on_error: Literal["keep", "raise"] = "keep",
    ) -> MapReport[R]:
        """Read the answers to what `to_batch_file` wrote, and return what came of each row; see `AsyncBatchFiles`."""
        from SimpleLLMFunc.batch import read_batch_file

        return run_sync(read_batch_file(self._mapped(), path, rows=rows, checkpoint=checkpoint, on_error=on_error))
