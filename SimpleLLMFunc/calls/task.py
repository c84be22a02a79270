"""`Task` and `Step`: a question, its steps, and their state."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import to_jsonable_python

from SimpleLLMFunc.calls.call_data import (
    ByPosition,
    CallIds,
    ExecutorBackground,
    ExecutorHistory,
    Language,
    LanguageType,
)
from SimpleLLMFunc.calls.core import CoreCall
from SimpleLLMFunc.config import file_path
from SimpleLLMFunc.errors import CheckpointError, ConfigError
from SimpleLLMFunc.logger import border


class StepStatus(StrEnum):
    """The state of a step: running, success, error, or waiting for values (PARAM)."""

    RUNNING = "running"
    SUCCESS = "success"
    ERROR = "error"
    PARAM = "param"


class Waiting(BaseModel):
    """What a step needs before it can run.

    Attributes:
        data: what of its input is known.
        remaining_schema: JSON schema of what is missing, keyed by JSON Pointer.
        is_answered: values have come since, so that the model need not be asked.
    """

    data: dict[str, Any] = Field(default={})
    remaining_schema: dict[str, Any] = Field(default={})
    is_answered: bool = False


class TaskRuntime(BaseModel):
    """How far a task is.

    Attributes:
        reasoning: what the AI has thought so far; `Summary` sets it, prompts show it.
        step: name of the latest step; empty before the first.
        status: of that step; None before the first, and when a run was broken off.
        error: `{"step": …, "message": …, "data": …}` of the error that ended the task.
        waiting: what the latest step waits for, with status PARAM.
        runs: how many runs of steps have begun.
    """

    reasoning: str = ""
    step: str = ""
    status: StepStatus | None = None
    error: dict[str, Any] | None = None
    waiting: Waiting | None = None
    runs: int = 0


class Task(ByPosition):
    """A question, what is known about it, and what the steps so far have put out.

    Between two steps it can be saved, and go on in another process.

    Attributes:
        question: of the user.
        language: of the prompts; an unknown one is Chinese, with a warning.
        background: conversation and facts from before.
        runtime: how far it is.
        history: one entry per finished step, oldest first.
        ids: to whom it belongs.
    """

    model_config = ConfigDict(validate_assignment=True, extra="forbid")

    question: str
    language: Language = LanguageType.CHINESE
    background: ExecutorBackground = Field(default_factory=ExecutorBackground)
    runtime: TaskRuntime = Field(default_factory=TaskRuntime)
    history: list[ExecutorHistory] = Field(default=[])
    ids: CallIds = Field(default_factory=CallIds)

    if TYPE_CHECKING:

        def __init__(
            self,
            question: str,
            language: LanguageType | str = LanguageType.CHINESE,
            background: ExecutorBackground | Mapping[str, Any] = ...,
            **others: Any,
        ) -> None: ...

    def reopen(self) -> None:
        """Forget the error, or the missing values, that the task stopped at: the next step may run."""
        self.runtime.error = self.runtime.waiting = self.runtime.status = None

    def to_json(self) -> str:
        """Return all of it as JSON text; what is no JSON inside an error's data is kept as its text."""
        data = to_jsonable_python(self.model_dump(), fallback=str, inf_nan_mode="null")
        return json.dumps(data, ensure_ascii=False)

    @classmethod
    @border
    def from_json(cls, text: str | bytes) -> Self:
        """Return the task that `to_json` wrote; a step that was running then has not run.

        Raises:
            CheckpointError: the text is no saved task.
        """
        try:
            task = cls.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise CheckpointError(f"no saved task: {f'{where}: ' if where else ''}{first['msg']}") from None
        if task.runtime.status is StepStatus.RUNNING:
            task.runtime.status = None
        return task

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the task to a file, for its owner alone to read; the old content stays until the new one is whole.

        Raises:
            CheckpointError: it cannot be written there.
        """
        from SimpleLLMFunc.batch import replaced_whole  # a start need not pay for it

        try:
            with replaced_whole(path) as part:
                part.touch(0o600)
                part.write_bytes(self.to_json().encode("utf-8", "replace"))  # half a character has no place in a file
        except ConfigError as error:
            why = str(getattr(error.__cause__, "strerror", None) or error).rstrip(".")
            raise CheckpointError(
                f"the task cannot be saved as {os.fspath(path)!r}: {why}. Give the name of a file in a folder that you "
                "may write to."
            ) from error.__cause__

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the task in a file that `save` wrote.

        Raises:
            FileNotFoundError: there is no such file.
            CheckpointError: it cannot be read, or holds no saved task.
        """
        try:
            text = file_path(path).read_bytes()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise CheckpointError(f"the task {os.fspath(path)!r} cannot be read: {error.strerror}.") from error
        return cls.from_json(text)


class Step(ByPosition):
    """One step of a task: which Call runs, with which parameters.

    Attributes:
        name: later steps find the output under it.
        description: what the step does; prompts show it with its output.
        call: the class of the Call.
        params: its parameters.
        node: None, or what has `name`, `description` and `known_params`; those hold where `params` says nothing.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    name: str = Field(min_length=1)
    description: str = ""
    call: type[CoreCall]
    params: dict[str, Any] = Field(default={})
    node: Any = None

    if TYPE_CHECKING:

        def __init__(
            self,
            name: str,
            description: str = "",
            call: type[CoreCall] = ...,
            params: Mapping[str, Any] = ...,
            node: Any = None,
        ) -> None: ...
