"""The budgets around a map, in parts: each row may spend one and gives the rest back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, TypeAlias

from SimpleLLMFunc.batch.ray.worker import Amounts
from SimpleLLMFunc.errors import BudgetExceeded
from SimpleLLMFunc.interface.spending import Spent, reserve
from SimpleLLMFunc.type import Usage

Grant: TypeAlias = Mapping[str, float | None]
"""By unit; None is no limit."""

_UNITS = ("requests", "tokens", "usd")
_AS_MUCH_AGAIN = 2
"""A row may need so many times what the dearest one before it took."""


class Grants:
    """Divides the rest of the budgets into parts; all parts together never exceed it.

    Where little is left, fewer rows are under way, each with a part that will do.
    """

    def __init__(self, scopes: tuple[Spent, ...]) -> None:
        self._scopes = scopes
        self._least: dict[str, float] = dict.fromkeys(_UNITS, 0.0)
        self._count = 0
        self._came_back = asyncio.Event()

    async def take(self, rows: int) -> Grant:
        """Return a part for one row, as soon as there is enough for it.

        Args:
            rows: how many are under way, this one and those that wait for their part too.

        Raises:
            BudgetExceeded: nothing is left.
        """
        while self._count and any(left is not None and left < self._least[unit] for unit, left in self._left().items()):
            self._came_back.clear()
            await self._came_back.wait()
        waiting = max(1, rows - self._count)
        grant = {
            unit: None if left is None else min(left, max(self._least[unit], left / waiting))
            for unit, left in self._left().items()
        }
        for unit in ("requests", "tokens"):
            grant[unit] = None if (amount := grant[unit]) is None else float(max(1, int(amount)))
        reserve(self._scopes, **_reserved(grant))
        self._count += 1
        return grant

    def give_back(self, grant: Grant, spent: Amounts | None) -> None:
        """Settle with what a row has spent; None where that is not known: its first request has probably left."""
        amounts = spent or (1, 0, 0.0)
        reserved = _reserved(grant)
        requests, tokens, usd = amounts
        for scope in self._scopes:
            scope.settle(
                reserved=reserved["tokens"],
                usage=Usage(input_tokens=tokens, cost=usd),
                requests=requests - reserved["requests"],
                reserved_usd=reserved["usd"],
            )
        for unit, amount in zip(_UNITS, amounts, strict=True):
            self._least[unit] = max(self._least[unit], _AS_MUCH_AGAIN * amount)
        self._count -= 1
        self._came_back.set()

    def has_more(self, error: BudgetExceeded, spent: Amounts) -> bool:
        """Return whether a row to which its part did not suffice can have a larger one; it has not spent anything yet."""
        left = self._left().get(error.unit)
        if spent[0] or left is None or error.needed is None or not (self._count or error.needed <= left):
            return False
        self._least[error.unit] = max(self._least[error.unit], error.needed)
        return True

    def exceeded(self, error: BudgetExceeded) -> BudgetExceeded:
        """Return what a row raised, in the figures of the budget that its part was cut from."""
        limiting = [(left, scope) for scope in self._scopes if (left := scope.left_of(error.unit)) is not None]
        return min(limiting, key=lambda each: each[0])[1].exceeded(error.unit, error.needed) if limiting else error

    def _left(self) -> dict[str, float | None]:
        return {
            unit: min((left for each in self._scopes if (left := each.left_of(unit)) is not None), default=None)
            for unit in _UNITS
        }


def _reserved(grant: Grant) -> dict[str, Any]:
    return {"requests": int(grant["requests"] or 0), "tokens": int(grant["tokens"] or 0), "usd": grant["usd"] or 0.0}
