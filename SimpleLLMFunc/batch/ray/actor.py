"""A function as a class for `map_batches` of a Ray dataset, for the user's own pipeline."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any, ClassVar, Literal, NamedTuple

from SimpleLLMFunc.batch.ray.cluster import ray_package, shipped, unpacked
from SimpleLLMFunc.batch.relayed import Decorated
from SimpleLLMFunc.batch.rows.arguments import RowArguments
from SimpleLLMFunc.batch.rows.columns import Table, plain
from SimpleLLMFunc.batch.rows.rows import InputRow
from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.interface.attempts import part_of_rates


def ray_actor(
    function: Decorated[Any],
    *,
    columns: Mapping[str, str] | None = None,
    concurrency: int = 100,
    actors: int = 1,
    on_error: Literal["keep", "raise"] = "keep",
) -> type[RayActor]:
    """Return a class for ``dataset.map_batches``.

    Args:
        function: what is asked for each row.
        columns: parameters by the names of columns, for columns that are called otherwise.
        concurrency: rows at a time in one actor.
        actors: how many there will be; each keeps its part of the model's rates.
        on_error: "keep" puts it into the column ``error``, "raise" fails the batch.

    Raises:
        ConfigError: Ray is not installed, or there is no model to ask.
        UsageError: an argument that cannot be.
    """
    given: object = concurrency
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise UsageError(f"concurrency is a whole number from 1 up, not {concurrency!r}.")
    if on_error not in {"keep", "raise"}:
        raise UsageError(f'on_error is "keep" or "raise", not {on_error!r}.')
    ray_package()
    pickled = shipped(function, function.reducers)
    settings = {
        "pickled": pickled,
        "columns": dict(columns or {}),
        "concurrency": concurrency,
        "actors": max(1, actors),
        "raises": on_error == "raise",
    }
    # Of no module, so that it travels whole.
    return type(f"{function.name}_actor", (RayActor,), {**settings, "__module__": "__main__"})


class RayActor:
    """Asks for every row of a batch; gives the batch back with the columns of the result, and ``error``.

    It has one event loop, on which several batches may be under way.
    """

    pickled: ClassVar[bytes]
    columns: ClassVar[Mapping[str, str]]
    concurrency: ClassVar[int]
    actors: ClassVar[int]
    raises: ClassVar[bool]

    def __init__(self) -> None:
        with part_of_rates(self.actors):
            self._function: Decorated[Any] = unpacked(self.pickled)
        self._arguments = RowArguments(self._function)
        self._places = asyncio.Semaphore(self.concurrency)

    async def __call__(self, batch: Any) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the batch with the results of its rows."""
        given = _columns_of(batch)
        names = list(given)
        count = len(given[names[0]]) if names else 0
        rows = [
            InputRow(place, {self.columns.get(name, name): given[name][place] for name in names}, is_record=True)
            for place in range(count)
        ]
        answers = await asyncio.gather(*(self._answer(row) for row in rows))
        table = Table(self._function.output.return_type, names)
        cells = [table.cells(answer) for answer in answers]
        yield given | {name: [plain(each[name]) for each in cells] for name in table.columns}

    async def _answer(self, row: InputRow) -> _Answered:
        async with self._places:
            try:
                args, kwargs = self._arguments.of(row)
                answer = await self._function.ask(args, kwargs)
            except Exception as error:
                if self.raises:
                    raise
                return _Answered(None, error)
            return _Answered(answer.value, None)


class _Answered(NamedTuple):
    value: Any
    error: Exception | None


def _columns_of(batch: Any) -> dict[str, list[Any]]:
    """Return a batch of any of Ray's formats as lists of plain values."""
    if hasattr(batch, "to_pydict"):  # pyarrow
        return dict(batch.to_pydict())
    return {str(name): list(getattr(cells, "tolist", lambda cells=cells: cells)()) for name, cells in batch.items()}
