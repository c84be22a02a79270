"""map_rows: ask a function once for each row, many rows at a time, and keep each result."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any, TypeVar, Unpack

from SimpleLLMFunc.base.run import JOURNAL, Mappable, not_journaled
from SimpleLLMFunc.batch.local import LocalMap
from SimpleLLMFunc.batch.options import MapOptions, RayEngine, check_options, concurrency_of, limits
from SimpleLLMFunc.batch.provider_batches.engine import answered_in_batches
from SimpleLLMFunc.batch.ray.engine import OnRay
from SimpleLLMFunc.batch.report import MapReport
from SimpleLLMFunc.batch.rows.rows import Rows
from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.logger import border

R = TypeVar("R")


@border
async def map_rows(function: Mappable[R], rows: Rows, **options: Unpack[MapOptions]) -> MapReport[R]:
    """Ask `function` once for each row, and return what came of it in the order of the input.

    Rows are read as they are needed, identical ones are asked once. A row that fails has its error for its result, and
    the others go on. With a checkpoint every finished row is committed to a file before its place is given to another,
    and the same call again goes on from there: also after a crash, and with rows added.

    Args:
        function: what is asked.
        rows: an iterable or async iterable, the path of a JSONL, CSV or Parquet file, or a data frame. A tuple is
            positional arguments, of a dict the keys that are parameters are keywords, anything else is the single value.
        options: see `MapOptions`.

    Raises:
        CheckpointError: the checkpoint is damaged, cannot be written, or another map is writing it.
        ConfigError: there is no model to ask, or the file of rows cannot be read.
        FileNotFoundError: there is no such file of rows.
        UsageError: an option that is not known, or a value that cannot be; or the columns of the rows are not the
            parameters; or there is a `durable` block around, and no checkpoint.
    """
    check_options(options)
    if JOURNAL.get() is not None and options.get("checkpoint") is None:
        raise UsageError(
            "a journal does not keep maps. Inside a durable block, give the map a checkpoint: "
            "f.map(rows, checkpoint='rows.sqlite')."
        )
    engine = options.get("engine", "local")
    asked: Any = function  # of those that can be mapped, for the engines it must be a decorated function
    with not_journaled(), limits(options) as clock:
        if engine == "local":
            return await LocalMap(function, rows, options, clock).result()
        if engine == "ray" or isinstance(engine, RayEngine):
            pace = concurrency_of(options.get("concurrency", "auto"))
            async with aclosing(OnRay(asked, RayEngine() if engine == "ray" else engine, pace)) as there:
                return await LocalMap(there, rows, options, clock, pace).result()
        if engine == "openai-batch":
            async with answered_in_batches(asked, rows, options) as (there, again):
                return await LocalMap(there, again, options, clock, prepare=there.gather).result()
    raise UsageError(f'engine is "local", "ray", a RayEngine or "openai-batch", not {engine!r}.')
