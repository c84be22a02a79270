"""map_rows: a function asked once for each row, many rows at a time, each result kept as it comes."""

from __future__ import annotations

from os import PathLike
from typing import Any, Literal, TypeVar

from SimpleLLMFunc.base.run import Mappable
from SimpleLLMFunc.batch.local import LocalMap
from SimpleLLMFunc.batch.options import Budget, Engine, MapOptions, RayEngine
from SimpleLLMFunc.batch.pace import concurrency_of
from SimpleLLMFunc.batch.progress import Progress
from SimpleLLMFunc.batch.provider_batches import answered_in_batches
from SimpleLLMFunc.batch.ray import asked_on_ray
from SimpleLLMFunc.batch.report import MapReport
from SimpleLLMFunc.batch.rows import Rows
from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.interface.spending import deadline_scope

__all__ = ["Budget", "Engine", "MapOptions", "map_rows"]

R = TypeVar("R")


async def map_rows(
    function: Mappable[R],
    rows: Rows,
    *,
    concurrency: int | Literal["auto"] = "auto",
    checkpoint: str | PathLike[str] | None = None,
    on_error: Literal["keep", "raise"] = "keep",
    budget: Budget | None = None,
    progress: Progress = None,
    engine: Engine = "local",
    retry_errors: bool = False,
    deadline: float | None = None,
) -> MapReport[R]:
    """Ask `function` once for each row, and return what came of it in the order of the input.

    Rows are read as they are needed, identical ones are asked once. A row that fails has its error for its result, and
    the others go on. With a checkpoint every finished row is committed to a file before its place is given to another,
    and the same call again goes on from there: also after a crash, and with rows added.

    Args:
        function: what is asked.
        rows: an iterable or async iterable, the path of a JSONL, CSV or Parquet file, or a data frame. A tuple is
            positional arguments, a dict is keywords if its keys are parameters, anything else the single value.
        concurrency: rows at a time; "auto" finds out what the service bears.
        checkpoint: the path of a SQLite file; made where there is none.
        on_error: "keep" makes an error the result of its row; "raise" stops the map and raises the first one.
        budget: USD, limits by name, or a `budget(...)`; the map stops before the request that would break it.
        progress: None shows it on a terminal and in a notebook, True always, False never; or a function.
        engine: "local" is this process; "ray", or a `RayEngine` with its settings, the workers of a Ray cluster;
            "openai-batch" sends the rows as batches of the service, at half the price.
        retry_errors: also ask for rows again that have an error in the checkpoint.
        deadline: seconds for the whole map.

    Raises:
        CheckpointError: the checkpoint is damaged, cannot be written, or is being written by somebody else.
        ConfigError: there is no model to ask, or no such file of rows.
        UsageError: an argument that cannot be.
    """
    options = MapOptions(concurrency, checkpoint, on_error, budget, progress, retry_errors, deadline)
    if engine == "local":
        with options.budget_scope(), deadline_scope(options.deadline) as clock:
            return await LocalMap(function, rows, options, clock).result()
    asked: Any = function  # of those that can be mapped, for these it must be a decorated function
    if engine == "ray" or isinstance(engine, RayEngine):
        pace = concurrency_of(options.concurrency)
        with options.budget_scope(), deadline_scope(options.deadline) as clock:
            async with asked_on_ray(asked, RayEngine() if engine == "ray" else engine, pace) as there:
                return await LocalMap(there, rows, options, clock, pace).result()
    if engine == "openai-batch":
        with options.budget_scope(), deadline_scope(options.deadline) as clock:
            async with answered_in_batches(
                asked, rows, checkpoint=checkpoint, retry_errors=retry_errors, progress=progress
            ) as answered:
                return await LocalMap(*answered, options, clock).result()
    raise UsageError(f'engine is "local", "ray", a RayEngine or "openai-batch", not {engine!r}.')
