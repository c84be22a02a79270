"""A sink that keeps what it is shown."""

from __future__ import annotations

from typing import Any

from SimpleLLMFunc.base.events import ReActEvent, RunStarted
from SimpleLLMFunc.base.metadata import RunMetadata


class Seen(list[ReActEvent]):
    """The events of the runs that it watched, in order."""

    def __call__(self, trace_id: str, event: ReActEvent) -> None:
        self.append(event)

    @property
    def names(self) -> list[str]:
        return [type(event).__name__ for event in self]

    def of(self, *kinds: type) -> list[Any]:
        return [event for event in self if isinstance(event, kinds)]

    def run(self, name: str) -> RunMetadata:
        """The only run of the function of this name."""
        [run] = [event.run for event in self.of(RunStarted) if event.run.function.name == name]
        return run
