"""A model that goes round in a circle: the same calls with the same arguments and the same results, turn after turn."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Final

from SimpleLLMFunc.base.events import ToolCallFinished, ToolCallStarted
from SimpleLLMFunc.base.request import ToolPolicy
from SimpleLLMFunc.base.templates import without_ids
from SimpleLLMFunc.logger import push_warning
from SimpleLLMFunc.runtime import LARGE
from SimpleLLMFunc.type import ToolCall

_RUN: Final = 2
"""So often in a row the same calls are run, where their results are the same too."""

_TOLD: Final = 2
"""So often after that the model is told that they were not run; then it has to answer without tools."""


class Repetition:
    """Counts the turns in a row that made the same calls and got the same results; made for each run.

    Two turns make the same calls where each call of one is also a call of the other, in any order. A tool whose results
    differ (one that tells how far something is) is run as often as the model asks.

    Attributes:
        times: how many turns in a row did so.
    """

    def __init__(self) -> None:
        self._calls: frozenset[tuple[str, str]] | None = None
        self._results: frozenset[tuple[str, str, str]] = frozenset()
        self.times = 0

    @property
    def is_over(self) -> bool:
        """The model was told and goes on: the turn without tools is due."""
        return self.times >= _RUN + _TOLD

    def begins(self, calls: Sequence[ToolCall]) -> bool:
        """Take in the calls of a turn; return whether they are to be run."""
        made = frozenset(map(_made, calls))
        if made != self._calls:
            self._calls, self._results, self.times = made, frozenset(), 0
        return self.times < _RUN

    def ends(self, finished: Iterable[ToolCallFinished]) -> None:
        """Take in the results of calls that were run."""
        results = frozenset((*_made(event.call), _read(event)) for event in finished)
        self.times = self.times + 1 if results == self._results else 1
        self._results = results

    async def told(
        self, calls: Sequence[ToolCall], turn: int, policy: ToolPolicy
    ) -> AsyncGenerator[ToolCallStarted | ToolCallFinished, None]:
        """Yield what happens to calls that are not run: the model is told so, in the words of the policy."""
        self.times += 1
        names = ", ".join(sorted({call.function.name for call in calls}))
        push_warning(f"the model repeats the same calls ({names}), which gave the same results; they are not run again")
        for call in calls:
            yield ToolCallStarted(turn, call)
        for call in calls:
            text = policy.told("repeated", name=call.function.name)
            yield ToolCallFinished(turn, call, text, failed=True, seconds=0.0, error_type="repeated_call")


def _made(call: ToolCall) -> tuple[str, str]:
    """Return the tool and its arguments in one form: the order of the keys and the space between them say nothing."""
    text = call.function.arguments.strip()
    try:
        return call.function.name, json.dumps(json.loads(text), sort_keys=True) if len(text) <= LARGE else text
    except (ValueError, RecursionError):
        return call.function.name, text


def _read(event: ToolCallFinished) -> str:
    return without_ids(event.content if isinstance(event.content, str) else json.dumps(event.content))
