"""A decorated function as `map` uses it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from SimpleLLMFunc.base.metadata import FunctionMetadata
from SimpleLLMFunc.base.parsing import RepairLevel
from SimpleLLMFunc.base.run import Abort, Answer, Preview
from SimpleLLMFunc.base.schemas import OutputSpec
from SimpleLLMFunc.base.type_resolve import type_identity
from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.interface.current import resolve_llm
from SimpleLLMFunc.interface.llm_interface import LLM_Interface, answering_models, given_to
from SimpleLLMFunc.llm_decorator.answering import Answers, answered_by
from SimpleLLMFunc.llm_decorator.function_pipeline import FunctionPipeline
from SimpleLLMFunc.llm_decorator.shipped import Reducer, made_again, parts_of, reducers_of
from SimpleLLMFunc.llm_decorator.steps.common.signature import bind_function_arguments
from SimpleLLMFunc.llm_decorator.steps.function import templates
from SimpleLLMFunc.llm_decorator.steps.function.prompt import build_return_type_description
from SimpleLLMFunc.type import ToolSpec

R_co = TypeVar("R_co", covariant=True)


class MappedFunction(Generic[R_co]):
    """An `@llm_function` as a `SimpleLLMFunc.base.run.Mappable`.

    Args:
        pipeline: of the function.
        answers: what answers its calls; None finds out.
    """

    def __init__(self, pipeline: FunctionPipeline, answers: Answers | None = None) -> None:
        self.pipeline = pipeline
        self._answers = answered_by(pipeline) if answers is None else answers
        self.name = pipeline.definition.name
        self.signature: inspect.Signature = pipeline.definition.signature
        self.type_hints: Mapping[str, Any] = pipeline.definition.hints
        self.abort: Abort | None = pipeline.options.abort_signal
        self.repair: RepairLevel = pipeline.options.repair
        self.has_tools = bool(pipeline.options.toolkit)

    def __reduce__(self) -> tuple[Any, ...]:
        return made_again, (type(self), parts_of(self.pipeline))

    @property
    def reducers(self) -> Mapping[type, Reducer]:
        """How what belongs to it is pickled where it goes to another process."""
        return reducers_of(self.pipeline)

    @property
    def llm(self) -> LLM_Interface:
        """The model that is asked."""
        return resolve_llm(self.pipeline.options.llm_interface)

    @property
    def metadata(self) -> FunctionMetadata:
        """The function's metadata for sinks and traces."""
        return self.pipeline.metadata

    @property
    def output(self) -> OutputSpec:
        """The return type; a list for a function that yields items."""
        answers = self._answers
        voting = None if isinstance(answers, FunctionPipeline) else answers.voting
        return self.pipeline.output if voting is None or not voting.is_confident else voting.output

    def definition(self) -> dict[str, Any]:
        """Return all that an answer depends on, without the arguments.

        The address of the service is left out: the same model behind another gateway is the same model. So are
        deadlines and re-asks, which only say how long to try.
        """
        pipeline, options = self.pipeline, self.pipeline.options
        output, tools = pipeline.definition.output, pipeline.tools.every_spec
        # In the words of 1.0, so that what it has answered need not be asked for again.
        described = build_return_type_description(output.return_type, partial(type_identity, as_json=True))
        own = options.system_prompt_template
        defaults = [templates.DEFAULT_SYSTEM_PROMPT_TEMPLATE, templates.PLAIN_SYSTEM_PROMPT_TEMPLATE]
        llm = resolve_llm(options.llm_interface)
        bodies = [_body(part, tools, options.params) for part in answering_models(llm)]
        return {
            "model": [body.pop("model", "") for body in bodies],
            "params": bodies,
            "prompt": {
                "docstring": pipeline.definition.metadata[3],
                "template_params": dict(options.template_params or {}),
                "system": [own] if own else defaults,
                "user": options.user_prompt_template or templates.DEFAULT_USER_PROMPT_TEMPLATE,
                "parameters": [
                    f"  - {name}: {type_identity(hint)}" for name, hint in pipeline.definition.hints.items()
                ],
                "output_mode": options.output_mode,
                **pipeline.own_version_parts(),
            },
            "types": {"schema": output.schema, "described": described, "repair": options.repair},
            "tools": [tools or [], options.max_tool_calls if options.toolkit else 0],
        }

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments by parameter name, checked, defaults applied."""
        arguments = bind_function_arguments(self.signature, args, kwargs, f"{self.name}() ").arguments
        self.pipeline.check(arguments)
        return arguments

    def preview(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Preview:
        """Return the exact request of a row, without sending it.

        Raises:
            UsageError: one request is not what answers a row.
        """
        if self._answers is not self.pipeline or self.pipeline.definition.output.quotes or self.pipeline.guards:
            raise UsageError(
                f"{self.name}: a row is answered by several requests, by plain code, by quotes that are looked for in the "
                "arguments, or under guards, and a batch file holds one request a row. Use f.map() without engine=."
            )
        return self.pipeline.preview(args, dict(kwargs))

    async def ask(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Answer[R_co]:
        """Ask the model for one row."""
        return await self._answers.answer(args, dict(kwargs))


def _body(llm: LLM_Interface, tools: Sequence[ToolSpec] | None, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return what goes out with every question."""
    body = dict(llm.render([{"role": "user", "content": "?"}], tools=tools, **given_to(llm, params)))
    for name in ("messages", "input", "contents", "tools", "response_format", "prompt_cache_key"):
        body.pop(name, None)
    # Chat completions is not named, as 1.0 knew no other wire; generateContent has its model in the address.
    return body if llm.wire_name == "chat" else {**body, "model": llm.model_name, "wire": llm.wire_name}
