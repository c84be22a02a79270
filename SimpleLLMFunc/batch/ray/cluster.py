"""The Ray cluster of a map: the connection to it, what travels there, and what runs on its machines.

The worker of a map and the class for the user's own pipeline have one event loop each, and many rows under way in it.
"""

from __future__ import annotations

import asyncio
import io
import logging
import os
from collections import ChainMap
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypeAlias

from SimpleLLMFunc.base.parsing import OutputMode
from SimpleLLMFunc.base.run import Answer, Mappable
from SimpleLLMFunc.batch.checkpoint.codec import encode_answer, encode_error
from SimpleLLMFunc.batch.relayed import Decorated, asked
from SimpleLLMFunc.batch.rows.arguments import RowArguments
from SimpleLLMFunc.batch.rows.rows import InputRow
from SimpleLLMFunc.batch.rows.tables import Table, plain
from SimpleLLMFunc.errors import ConfigError, SimpleLLMFuncError, UsageError
from SimpleLLMFunc.extras import load_extra
from SimpleLLMFunc.interface.attempts import forbid_real_calls, part_of_rates
from SimpleLLMFunc.interface.current import use_llm
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.spending import Spent, budget, deadline_scope
from SimpleLLMFunc.logger import mask_known
from SimpleLLMFunc.runtime import Worker
from SimpleLLMFunc.type import NO_USAGE, Usage
from SimpleLLMFunc.utils import is_number

Amounts: TypeAlias = tuple[int, int, float]
"""Requests, tokens and USD."""


def ray_package() -> Any:
    """Return Ray.

    Raises:
        ConfigError: it is not installed.
    """
    return load_extra(
        "ray", "ray", purpose='engine="ray"', advice='On one machine engine="local" does the same without it.'
    )


class _Connection:
    """The connection that the maps of this process share, and the one thread for its blocking calls.

    The processes of a cluster of ours end with the thread that has started them, so that none outlives this process.
    """

    def __init__(self) -> None:
        self.thread = Worker()
        self._maps = 0
        self._is_ours = False

    def enter(self, address: str | None) -> Any:
        """Connect where that is not done, and return Ray; each call wants one of `leave`, also where it raises.

        Raises:
            ConfigError: Ray is not installed, or no cluster answers at the address.
        """
        self._maps += 1
        ray = ray_package()
        if not ray.is_initialized():
            _connect(ray, address)
            self._is_ours = True
        return ray

    def leave(self, actors: Iterable[Any]) -> None:
        """End the actors of a map; and with the last map the connection, unless it was there before."""
        self._maps -= 1
        if actors:
            ray = ray_package()
            for actor in actors:
                with suppress(ray.exceptions.RayError):  # the cluster is gone
                    ray.kill(actor)
        if not self._maps and self._is_ours:
            self._is_ours = False
            ray_package().shutdown()


connection: Final = _Connection()


def _connect(ray: Any, address: str | None) -> None:
    told = {"log_to_driver": False, "configure_logging": False, "logging_level": "warning"}
    logger = logging.getLogger("ray")
    level = logger.level
    logger.setLevel(logging.ERROR)  # it would say that SIGTERM is left to the program
    try:
        if address is not None or os.environ.get("RAY_ADDRESS"):
            ray.init(address=address or "auto", **told)
        else:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it reports to no one that it runs
            # Nothing of it can be reached from another machine.
            ray.init(address="local", include_dashboard=False, _node_ip_address="127.0.0.1", **told)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        where = "on this machine" if address is None else f"at {address!r}"
        raise ConfigError(f"no Ray cluster can be had {where}: {error}") from error
    finally:
        logger.setLevel(level)


def shipped(value: Any, reducers: Mapping[type, Any] | None = None) -> bytes:
    """Return `value` pickled for workers, with what they could not import; `reducers` are as in `copyreg`.

    Raises:
        UsageError: it cannot be pickled, or holds a key.
    """
    file = io.BytesIO()
    try:
        pickler: Any = import_module("ray.cloudpickle").Pickler
        if reducers:
            # A pickler reads the table once, from its class.
            pickler = type("Pickler", (pickler,), {"dispatch_table": ChainMap(dict(reducers), pickler.dispatch_table)})
        pickler(file).dump(value)
    except SimpleLLMFuncError:
        raise
    except Exception as error:
        raise UsageError(f"it cannot be sent to the workers: {type(error).__name__}: {error}") from error
    text = file.getvalue().decode("latin-1")
    if mask_known(text) != text:
        raise UsageError(
            "it holds a key, and keys are not sent to workers: let the workers read it from "
            "OPENAI_API_KEY, from the provider file or from a variable of their own environment."
        )
    return file.getvalue()


def unpacked(data: bytes) -> Any:
    """Return what was `shipped`."""
    return import_module("ray.cloudpickle").loads(data)


# --- the worker of a map ---------------------------------------------------------------------------------


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
        self._function: Mappable[Any]
        self._used: LLM_Interface | None
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
        return Outcome(False, data, "text", usage, 0, amounts)


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
    if not (is_number(concurrency, int) and concurrency >= 1):
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
