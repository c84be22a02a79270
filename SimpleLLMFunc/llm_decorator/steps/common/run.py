"""The run of one call of a decorated function or chat: the state that its steps share."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import copy_context
from dataclasses import replace
from typing import Any

from SimpleLLMFunc.base.metadata import RunMetadata
from SimpleLLMFunc.base.run import Abort, Run, RunIdentity
from SimpleLLMFunc.llm_decorator.steps.common.options import Options
from SimpleLLMFunc.llm_decorator.steps.common.prompt import check_multimodal_content
from SimpleLLMFunc.llm_decorator.steps.common.types import FunctionSignature
from SimpleLLMFunc.logger import holds_little
from SimpleLLMFunc.runtime import LARGE


class FunctionRun(Run):
    """The run of one call.

    Args:
        function: the pipeline of the function that is called; it knows its `metadata` and `identity`.
        signature: of the call; see `parse_function_signature`.
        template_params: for the fields of the docstring.
        options: of the function.
        abort: ends this run; None takes that of the options.
        params: go to the provider over those of the options.
        stream: as in `Run`.

    Attributes:
        context: the context variables of the call; the run sees them in every task that reads it.
        example_numbers: of the examples to show, where there are more.
    """

    def __init__(
        self,
        function: Any,
        signature: FunctionSignature,
        template_params: Mapping[str, Any] | None,
        options: Options,
        *,
        abort: Abort | None = None,
        params: Mapping[str, Any] | None = None,
        stream: bool = False,
    ) -> None:
        super().__init__(
            signature.func_name,
            signature.trace_id,
            deadline=options.deadline,
            abort=abort or options.abort_signal,
            stream=stream,
            sinks=options.sinks,
        )
        self.function = function
        self.signature = signature
        filled = options.template_params
        self.template_params = {**(filled or {}), **template_params} if template_params else filled
        self.params = {**options.params, **params} if params else options.params
        self.context = copy_context()
        self.example_numbers: list[int] | None = None

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments by parameter name, defaults applied."""
        return self.signature.bound_args.arguments

    @property
    def takes_long_to_write(self) -> bool:
        """Whether writing the arguments down holds up the event loop, so that a thread has to do it.

        A file may be long, and its disk slow; data may take long to write down.
        """
        if any(isinstance(value, str) and len(value) > LARGE for value in self.arguments.values()):
            return True
        others = {name: value for name, value in self.arguments.items() if not isinstance(value, str)}
        hints = self.signature.type_hints
        return bool(others) and (not holds_little(others, LARGE) or check_multimodal_content(others, hints))

    def metadata(self) -> RunMetadata:
        """Return who runs and with what."""
        return RunMetadata(self.function.metadata, self.arguments)

    def identity(self) -> RunIdentity:
        """Return the identity of the run in a journal."""
        known: RunIdentity = self.function.identity
        asked = [known.options, self.params, self.template_params]
        return replace(known, options=asked, arguments=self.arguments)
