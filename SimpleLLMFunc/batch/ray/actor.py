"""What runs on the machines of a Ray cluster: the worker of a map, and a class for the user's own pipeline.

Both have one event loop, and many rows under way in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

from SimpleLLMFunc.base.parsing import OutputMode
from SimpleLLMFunc.base.run import Answer, Mappable
from SimpleLLMFunc.batch.checkpoint.codec import encode_answer, encode_error
from SimpleLLMFunc.batch.ray.cluster import ray_package, shipped, unpacked
from SimpleLLMFunc.batch.relayed import Decorated, asked
from SimpleLLMFunc.batch.rows.arguments import RowArguments
from SimpleLLMFunc.batch.rows.rows import InputRow
from SimpleLLMFunc.batch.rows.tables import Table, plain
from SimpleLLMFunc.errors import ConfigError, SimpleLLMFuncError, UsageError
from SimpleLLMFunc.interface.attempts import forbid_real_calls, part_of_rates
from SimpleLLMFunc.interface.current import use_llm
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.spending import Spent, budget, deadline_scope
from SimpleLLMFunc.type import NO_USAGE, Usage

Amounts: TypeAlias = tuple[int, int, float]
"""Requests, tokens and USD."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a row.

    Attributes:
        data: the value or the error, as a checkpoint keeps it.
        spent: of its grant.
    """

    is_value: bool
    data: bytes
    mode: OutputMode
    usage: Usage
    tries: int
    spent: Amounts


class RowWorker:
    """The actor.

    Args:
        function: that is asked, and the model that `use_llm` names around the map, pickled.
        parts: how many workers share the rates of the models.
        is_forbidden: no real call may be made.
    """

    def __init__(self, function: bytes, parts: int, is_forbidden: bool) -> None:
        self._parts = parts
        self._function: Mappable[Any] | None = None
        self._used: LLM_Interface | None = None
        self._failure = b""
        try:
            with part_of_rates(parts):
                self._function, self._used = unpacked(function)
        except Exception as error:  # noqa: BLE001 - the driver raises it
            self._failure = encode_error(_loading_error(error))
        if is_forbidden:
            forbid_real_calls()

    async def joined(self) -> bytes:
        """Return why it cannot ask; empty where it can."""
        return self._failure

    async def ask(self, row: bytes, seconds: float | None, grant: Mapping[str, float | None] | None) -> Outcome:
        """Ask for a row.

        Args:
            row: the arguments, pickled.
            seconds: that it has.
            grant: what it may spend; None where no budget counts it.
        """
        assert self._function is not None, "it said so"
        answer: Answer[Any] | None = None
        spent: Spent | None = None
        data = b""
        try:
            with ExitStack() as stack:
                stack.enter_context(part_of_rates(self._parts))  # of models that are made only now
                stack.enter_context(deadline_scope(seconds))
                if self._used is not None:
                    stack.enter_context(use_llm(self._used))
                if grant is not None:
                    spent = stack.enter_context(budget(**grant))
                args, kwargs = unpacked(row)
                answer, error = await asked(self._function, args, kwargs)
            if answer is not None:
                data = encode_answer(answer, self._function.output, self._function.repair)
        except Exception as failure:  # noqa: BLE001 - a row that cannot be unpacked, or a value that cannot be encoded
            answer, error = None, failure
        if error is not None:
            data = encode_error(error)
        amounts = (0, 0, 0.0) if spent is None else (spent.requests, spent.tokens, spent.usd)
        if answer is not None:
            return Outcome(True, data, answer.mode, answer.usage, answer.tries, amounts)
        usage = getattr(error, "usage", None) or NO_USAGE
        return Outcome(False, data, "text", usage, getattr(error, "tries", 0), amounts)


def _loading_error(error: Exception) -> SimpleLLMFuncError:
    if isinstance(error, SimpleLLMFuncError):
        return error
    return ConfigError(
        f"the function cannot be loaded where the workers are ({type(error).__name__}: {error}). What it needs must "
        "be installed there, or be sent along: ray.init(runtime_env={'working_dir': '.'})."
    )


# --- for `map_batches` of a Ray dataset -----------------------------------------------------------------


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
    settings = {
        "pickled": shipped(function, function.reducers),
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
