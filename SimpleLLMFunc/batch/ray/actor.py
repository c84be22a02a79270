"""A function as a class for `map_batches` of a Ray dataset: for pipelines that somebody else runs."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from SimpleLLMFunc.batch.ray.cluster import ray_package, shipped, unpacked
from SimpleLLMFunc.batch.ray.engine import ShippedFunction
from SimpleLLMFunc.batch.ray.limits import Limiter, share_limits
from SimpleLLMFunc.batch.rows import InputRow, Table, plain, row_arguments
from SimpleLLMFunc.errors import UsageError

__all__ = ["RayActor", "ray_actor"]


def ray_actor(
    function: ShippedFunction[Any],
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
        actors: how many there will be, to share what the service says is left.
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
    settings = _Settings(pickled, dict(columns or {}), concurrency, max(1, actors), on_error == "raise")
    # Of no module, so that it travels whole.
    return type(f"{function.name}_actor", (RayActor,), {"settings": settings, "__module__": "__main__"})


@dataclass(frozen=True, slots=True)
class _Settings:
    pickled: bytes
    columns: Mapping[str, str]
    concurrency: int
    actors: int
    raises: bool


class RayActor:
    """Asks for every row of a batch; gives the batch back with the columns of the result, and ``error``.

    One event loop, on which several batches may be under way; the actors of a job share the rates of the model.
    """

    settings: ClassVar[_Settings]

    def __init__(self) -> None:
        self._function: ShippedFunction[Any] = unpacked(self.settings.pickled)
        name = f"SimpleLLMFunc-{hashlib.blake2b(self.settings.pickled, digest_size=8).hexdigest()}"
        share_limits(self._function.models, _NamedLimiter(name), self.settings.actors)
        self._places = asyncio.Semaphore(self.settings.concurrency)

    async def __call__(self, batch: Any) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the batch with what came of its rows."""
        given = _columns_of(batch)
        names = list(given)
        count = len(given[names[0]]) if names else 0
        rows = [
            InputRow(
                place, {self.settings.columns.get(name, name): given[name][place] for name in names}, is_record=True
            )
            for place in range(count)
        ]
        answers = await asyncio.gather(*(self._answer(row) for row in rows))
        table = Table(self._function.output.return_type, names)
        cells = [table.cells(answer) for answer in answers]
        yield given | {name: [plain(each[name]) for each in cells] for name in table.columns}

    async def _answer(self, row: InputRow) -> _Answered:
        async with self._places:
            try:
                args, kwargs = row_arguments(row, self._function.signature.parameters)
                answer = await self._function.ask(args, kwargs)
            except Exception as error:
                if self.settings.raises:
                    raise
                return _Answered(row.index, row.value, None, error)
            return _Answered(row.index, row.value, answer.value, None)


@dataclass(frozen=True, slots=True)
class _Answered:
    index: int
    row: Any
    value: Any
    error: Exception | None


def _columns_of(batch: Any) -> dict[str, list[Any]]:
    """Return a batch of any of Ray's formats as lists of plain values."""
    if isinstance(batch, Mapping):
        return {str(name): _list(cells) for name, cells in batch.items()}
    if hasattr(batch, "to_pydict"):  # pyarrow
        return dict(batch.to_pydict())
    return {str(name): cells.tolist() for name, cells in batch.items()}  # pandas


def _list(cells: Any) -> list[Any]:
    tolist = getattr(cells, "tolist", None)
    values: Sequence[Any] = cells if tolist is None else tolist()
    return list(values)


class _NamedLimiter:
    """The `Limiter` of a job, known by its name; made by whoever needs it first, and again when it is gone."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._handle: Any = None

    def __getattr__(self, method: str) -> _NamedMethod:
        if method.startswith("_"):
            raise AttributeError(method)
        return _NamedMethod(self, method)

    def handle(self, *, is_gone: bool = False) -> Any:
        """Return the actor; another one where the last was gone."""
        if self._handle is None or is_gone:
            options = {"name": self._name, "get_if_exists": True, "num_cpus": 0, "max_restarts": -1}
            self._handle = ray_package().remote(num_cpus=0)(Limiter).options(**options).remote()
        return self._handle


class _NamedMethod:
    def __init__(self, limiter: _NamedLimiter, method: str) -> None:
        self._limiter = limiter
        self._method = method

    def remote(self, *args: Any) -> asyncio.Task[Any]:
        return asyncio.ensure_future(self._call(args))

    async def _call(self, args: tuple[Any, ...]) -> Any:
        try:
            return await getattr(self._limiter.handle(), self._method).remote(*args)
        except ray_package().exceptions.RayActorError:
            return await getattr(self._limiter.handle(is_gone=True), self._method).remote(*args)
