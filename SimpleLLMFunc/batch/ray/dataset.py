"""The rows of a map as a Ray dataset: read at the hub block by block, and asked by a pool of actors.

What it gives are receipts. The answers have left its workers before, each when it was there.
"""

from __future__ import annotations

import inspect
import logging
import os
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from functools import partial
from typing import Any

from SimpleLLMFunc.batch.ray.cluster import ray_package
from SimpleLLMFunc.batch.ray.guard import Guard
from SimpleLLMFunc.batch.ray.worker import RowWorker

__all__ = ["DatasetRun"]

_MOST_BLOCKS = 128
"""Under way in one worker; each is a thread there, which waits."""


class DatasetRun:
    """The actor that runs the dataset: a process of its own, whose settings and messages are nobody else's."""

    def __init__(self) -> None:
        Guard().start()
        # Ray Data and the core of Ray say there what is of interest to who runs a dataset; what fails is raised.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for output in (1, 2):
            os.dup2(nowhere, output)
        os.close(nowhere)

    def run(self, hub: Any, told: tuple[Any, ...], workers: int, options: Mapping[str, Any]) -> int:
        """Run it to its end; return how many rows went through.

        Args:
            hub: where the rows are.
            told: further arguments of the workers.
            workers: how many there are.
            options: of the actors that they are.
        """
        Guard(hub).start()
        data = ray_package("ray.data")
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        context = data.DataContext.get_current()
        context.enable_progress_bars = False
        # A block leaves as soon as it has a row: it is not for filling.
        context.target_max_block_size = 1
        dataset = data.read_datasource(_source(data, hub), override_num_blocks=1, concurrency=1, **_no_processor(data))
        receipts = dataset.map_batches(
            RowWorker,
            fn_constructor_args=(hub, *told),
            batch_size=None,
            batch_format="pyarrow",
            zero_copy_batch=True,
            compute=data.ActorPoolStrategy(size=workers, max_tasks_in_flight_per_actor=_MOST_BLOCKS),
            **{**options, "max_concurrency": _MOST_BLOCKS, "max_restarts": -1, "max_task_retries": -1},
        )
        count = 0
        for batch in receipts.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0):
            count += sum(batch.column("rows").to_pylist())
        return count


def _source(data: Any, hub: Any) -> Any:
    """Return the source of the rows; its class is made where Ray Data is there to inherit from."""
    kind = ray_package("ray.data.block").BlockMetadata
    # Nothing is known of it beforehand; what there is to say differs among the versions of Ray.
    metadata = kind(**{field.name: None for field in fields(kind) if field.default is field.default_factory is MISSING})
    read = partial(_blocks, hub, uuid.uuid4().hex)

    def get_read_tasks(*_: Any, **__: Any) -> list[Any]:
        return [data.ReadTask(read, metadata)]

    members = {"get_read_tasks": get_read_tasks, "estimate_inmemory_data_size": lambda _: None}
    return type("RowsOfTheMap", (data.Datasource,), members)()


def _blocks(hub: Any, run: str) -> Iterator[Any]:
    """Yield the blocks of the dataset: each is one row of it, which holds some of the map.

    As rows of their own they would be cut into blocks of one each, because a block leaves when it has a row.
    """
    ray, arrow = ray_package(), ray_package("pyarrow")
    tickets, rows = arrow.list_(arrow.int64()), arrow.list_(arrow.large_binary())
    schema = arrow.schema([("tickets", tickets), ("rows", rows)])
    index = 0
    with Guard(hub):  # the process may have other work afterwards
        while (block := ray.get(hub.block.remote(run, index))) is not None:
            columns = {"tickets": [[ticket for ticket, _ in block]], "rows": [[row for _, row in block]]}
            yield arrow.table(columns, schema=schema)
            index += 1


def _no_processor(data: Any) -> dict[str, Any]:
    """Return what has the reader take no processor from the workers; older versions are told in another way."""
    if "num_cpus" in inspect.signature(data.read_datasource).parameters:
        return {"num_cpus": 0}
    return {"ray_remote_args": {"num_cpus": 0}}
