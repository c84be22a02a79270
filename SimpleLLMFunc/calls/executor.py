"""`StepExecutor`: one step of a task, prepared, filled and run."""

from __future__ import annotations

import contextvars
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from SimpleLLMFunc.base.run import Abort, generate_trace_id
from SimpleLLMFunc.calls.call_data import CallOutputChunk, CallOutputType, ExecutorHistory
from SimpleLLMFunc.calls.core import CoreCall, call_errors
from SimpleLLMFunc.calls.slot import Slot, SlotOutput, SlotProcessor
from SimpleLLMFunc.calls.slot.places import Places
from SimpleLLMFunc.calls.task import Step, StepStatus, Task, Waiting
from SimpleLLMFunc.errors import CallError, UsageError
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.spending import deadline_scope
from SimpleLLMFunc.logger import app_log, async_log_context, border, push_error, push_warning
from SimpleLLMFunc.utils import in_context


@dataclass(eq=False, repr=False)
class StepExecutor:
    """Runs one step of a task; all executors of a task share it.

    ::

        for step in steps:
            executor = StepExecutor(task, step, llm=llm)
            await executor.init()
            async for chunk in executor.run():
                ...

    `status` and `task.runtime` hold the outcome:

    * SUCCESS: its output is in `task.history`, for the steps after it.
    * ERROR: an ERROR chunk told of it, and the task has ended: the steps after it give nothing. `task.reopen()`
      forgets that.
    * PARAM: it needs values that no one has said, and has not run. `remaining_schema` says which; `resume` takes them.
    * None: not run, or broken off (closed, cancelled, aborted); it may be run.

    Attributes:
        task: what the step belongs to.
        step: what runs.
        llm: the model; None asks what `use_llm` or the environment names.
        abort_signal: ends the run when it is set, with `RunAborted`.
        deadline: seconds for one run of the step.
        status: of the step.
        call: the Call, once prepared.
    """

    task: Task
    step: Step
    llm: LLM_Interface | None = None
    _: KW_ONLY
    abort_signal: Abort | None = None
    deadline: float | None = None
    status: StepStatus | None = field(default=None, init=False)
    call: CoreCall | None = field(default=None, init=False)
    _failure: CallError | None = field(default=None, init=False)
    _seen: tuple[int, str] | None = field(default=None, init=False)

    @property
    def remaining_schema(self) -> dict[str, Any]:
        """What the step waits for: a JSON schema keyed by JSON Pointer; empty where it waits for nothing."""
        return self._waiting.remaining_schema if self._waiting else {}

    @property
    def _waiting(self) -> Waiting | None:
        return self.task.runtime.waiting if self.task.runtime.step == self.step.name else None

    async def init(self) -> None:
        """Prepare the Call from what the task says by now; a `CallError` here becomes the ERROR chunk of `run`."""
        self.call = self._failure = self._seen = None
        seen = self._seen_by_now
        if self._blocked:
            self.status = self._blocked[0]
            return
        try:
            with call_errors(self.step.name):
                self.call = await self.step.call.instance(self, self.step.node, **self.step.params)
        except CallError as error:
            self._failure = error
        self._seen = seen
        self.status = StepStatus.PARAM if self._waiting else None

    @border
    def run(self) -> AsyncGenerator[CallOutputChunk, None]:
        """Yield what the step puts out: its text where it is `to_user`, its data and its error in any case.

        Closing the generator ends everything below it; the step has not run then, and neither has a cancelled one.

        Raises:
            UsageError: the step has run.
            RunAborted: the abort signal was set.
        """
        return in_context(self._run(), contextvars.copy_context())

    @border
    def resume(self, values: Mapping[str, Any]) -> AsyncGenerator[CallOutputChunk, None]:
        """Add missing values and return the chunks of `run`; you may also leave them unread and call `run` later.

        The model is not asked again. If values are still missing, the status is PARAM again.

        Args:
            values: by plain key, or by JSON Pointer as `remaining_schema` has them.

        Raises:
            UsageError: the step waits for nothing, or is not prepared.
            CallError: a pointer makes no sense. Nothing has changed.
        """
        waiting = self._waiting
        if waiting is None:
            raise UsageError(f"step {self.step.name!r} waits for no values; its status is {self.status or 'not run'}.")
        if self.call is None:
            raise UsageError(f"step {self.step.name!r} is not prepared: `await executor.init()` before `resume`.")
        data = SlotProcessor(self.call.input_schema()).convert_json(values, onto=waiting.data)
        self.task.runtime.waiting = Waiting(data=data, remaining_schema=waiting.remaining_schema, is_answered=True)
        return self.run()

    # --- one run -------------------------------------------------------------------------------------------

    async def _run(self) -> AsyncGenerator[CallOutputChunk, None]:
        if self.status is StepStatus.SUCCESS:
            raise UsageError(f"step {self.step.name!r} has run. Make one StepExecutor for each step.")
        if self._blocked:
            self.status, why = self._blocked
            push_warning(f"step {self.step.name!r} is not run: {why}. `task.reopen()` lets the task go on.")
            return
        self.task.runtime.runs += 1
        number = self.task.runtime.runs
        self._set_status(StepStatus.RUNNING)
        try:
            trace_id = generate_trace_id(self.step.name)
            async with async_log_context(trace_id=trace_id, function_name=self.step.name):
                app_log(lambda: f"step {self.step.name!r} begins: {self.step.call.__name__}")
                with call_errors(self.step.name), deadline_scope(self.deadline):
                    async with aclosing(self._chunks()) as chunks:
                        async for chunk in chunks:
                            yield chunk
        except CallError as failure:
            self._set_status(StepStatus.ERROR, failure)
            yield CallOutputChunk(CallOutputType.ERROR, {"message": str(failure), "data": failure.data})
        finally:
            # Broken off. A generator that was not closed at once may be closed after another run has begun.
            if self.status is StepStatus.RUNNING and self.task.runtime.runs == number:
                self._set_status(StepStatus.PARAM if self._waiting else None)

    async def _chunks(self) -> AsyncGenerator[CallOutputChunk, None]:
        """Prepare, fill, run; what the user may see is yielded, all of it becomes the step's output.

        Raises:
            CallError: the step has failed.
        """
        if self._seen != self._seen_by_now:
            await self.init()  # not prepared, or before another step had ended
            self._set_status(StepStatus.RUNNING)
        if self._failure is not None:
            raise self._failure
        assert self.call is not None, "a prepared step has its Call, or its failure"
        call = self.call
        data: Mapping[str, Any] | None = call.input
        if call.enable_filling:
            data = await self._filled(call)
        if data is None:
            return
        given: list[CallOutputChunk] = []
        async with aclosing(call.exec(self, data)) as chunks:
            async for chunk in chunks:
                if chunk.type is CallOutputType.ERROR:
                    error = chunk.content if isinstance(chunk.content, dict) else {"message": chunk.content}
                    raise CallError(str(error.get("message", "the step failed")), error.get("data"))
                given.append(chunk)
                if call.to_user or chunk.type is CallOutputType.DATA:
                    yield chunk
        self.task.history.append(ExecutorHistory(self.step.name, call.description, _output(given)))
        self._set_status(StepStatus.SUCCESS)

    async def _filled(self, call: CoreCall) -> dict[str, Any] | None:
        """Return the input with its missing values filled in; None, and status PARAM, where some are still missing."""
        schema, waiting = call.input_schema(), self._waiting
        slot = await Slot.instance(
            self,
            name=call.name,
            description=call.description,
            data=waiting.data if waiting else _known(call.input, schema),
            current_schema=schema,
            summary=self.task.runtime.reasoning,
            facts=self.task.background.facts,
        )
        found = SlotOutput(slot_data=slot.data, remaining_schema=slot.input["remaining_schema"])
        if not (waiting and waiting.is_answered and found.remaining_schema):
            found = await slot.output(self)
        if found.remaining_schema:
            self.task.runtime.waiting = Waiting(data=found.slot_data, remaining_schema=found.remaining_schema)
            self._set_status(StepStatus.PARAM)
            return None
        return found.slot_data

    @property
    def _seen_by_now(self) -> tuple[int, str]:
        # What a Call is prepared from changes when a step ends; one prepared before that would not know of it.
        return len(self.task.history), self.task.runtime.reasoning

    @property
    def _blocked(self) -> tuple[StepStatus, str] | None:
        """Why the step may not run, with the status that means; None where it may."""
        runtime = self.task.runtime
        if runtime.error is not None:
            return StepStatus.ERROR, f"the task ended with an error in step {runtime.step!r}"
        if runtime.waiting is not None and runtime.step != self.step.name:
            return StepStatus.PARAM, f"the task waits for values in step {runtime.step!r}"
        return None

    def _set_status(self, status: StepStatus | None, failure: CallError | None = None) -> None:
        """Set the status, here and in the task."""
        runtime = self.task.runtime
        self.status = runtime.status = status
        runtime.step = self.step.name
        if status in {StepStatus.SUCCESS, StepStatus.ERROR}:
            runtime.waiting = None
        if failure is not None:
            self._seen = None  # a reopened task prepares the step again
            runtime.error = {"step": self.step.name, "message": str(failure), "data": failure.data}
            push_error(f"step {self.step.name!r} failed: {failure}")


def _output(chunks: Sequence[CallOutputChunk]) -> str | dict[str, Any]:
    """Return the text of a step, or its data; where there are both, the data with the text under `text`."""
    text = "".join(str(chunk.content) for chunk in chunks if chunk.type is CallOutputType.TEXT)
    given = [chunk.content for chunk in chunks if chunk.type is not CallOutputType.TEXT]
    if not given:
        return text
    data: dict[str, Any] = {"text": text} if text else {}
    for content in given:
        data |= content if isinstance(content, dict) else {"result": content}
    return data


def _known(data: Mapping[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return the values that are there: a field left at None where the schema has no null is not."""
    places = Places(schema)
    return {
        key: value
        for key, value in data.items()
        if value is not None or "null" in places.kinds(places.member(schema, key) or False)
    }
