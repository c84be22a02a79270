"""The worker of a map on a Ray cluster: an actor with one event loop, and many rows under way in it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, TypeAlias

from SimpleLLMFunc.base.parsing import OutputMode
from SimpleLLMFunc.base.run import Answer, Mappable
from SimpleLLMFunc.batch.checkpoint.codec import encode_answer, encode_error
from SimpleLLMFunc.batch.ray.cluster import unpacked
from SimpleLLMFunc.batch.relayed import asked
from SimpleLLMFunc.errors import ConfigError, SimpleLLMFuncError
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
