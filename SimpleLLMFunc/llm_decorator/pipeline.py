"""The base of the pipelines: what is built once, the start of a call, and its preview."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import AsyncGenerator, Mapping
from functools import cached_property
from typing import Any, ClassVar, Self, TypeAlias, TypeVar

from SimpleLLMFunc.base.events import ReActEvent
from SimpleLLMFunc.base.messages import copied
from SimpleLLMFunc.base.metadata import FunctionKind, FunctionMetadata, function_version, signature_text
from SimpleLLMFunc.base.request import ModelRequest, Toolset
from SimpleLLMFunc.base.run import Guards, Preview, RunIdentity
from SimpleLLMFunc.base.type_resolve import type_identity
from SimpleLLMFunc.interface.current import resolve_llm
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.spending import estimate_tokens
from SimpleLLMFunc.llm_decorator.definition import Definition
from SimpleLLMFunc.llm_decorator.steps.common import signature
from SimpleLLMFunc.llm_decorator.steps.common.options import Options, check_option
from SimpleLLMFunc.llm_decorator.steps.common.react import prepare_toolset
from SimpleLLMFunc.llm_decorator.steps.common.run import FunctionRun
from SimpleLLMFunc.type import Usage

P = TypeVar("P", bound="Pipeline")

_Params: TypeAlias = Mapping[str, Any] | None


class Pipeline(ABC):
    """A function with its options; all of its calls share it.

    Args:
        definition: the function.
        options: the decorator's arguments.

    Raises:
        ToolDefinitionError: a tool the model could not be told about.
    """

    kind: ClassVar[FunctionKind]

    def __init__(self, definition: Definition, options: Options) -> None:
        self.definition = definition
        self.options = options
        self.tools: Toolset = prepare_toolset(options, definition.name)
        self.later: dict[str, Any] = {}
        self.guards = Guards(options.guards)

    def followed_by(self, pipeline: P, options: Mapping[str, Any]) -> P:
        """Return `pipeline`, and note in it which of the decorator's arguments were changed later, for the journal.

        Args:
            pipeline: the same with other options, or as a method.
            options: the others.
        """
        llm = options.get("llm_interface")
        later = {"model": llm.model_name} if llm is not None else {}
        pipeline.later = {**self.later, **later, **({"toolkit": True} if "toolkit" in options else {})}
        return pipeline

    def with_options(self, options: Mapping[str, Any]) -> Self:
        """Return the pipeline of the same function with other options."""
        return self.followed_by(self._again(self.definition, self.options.changed(options, self.kind)), options)

    def as_method(self) -> Self:
        """Return the pipeline of the same function as a method."""
        definition = self.definition.as_method()
        return self if definition is self.definition else self.followed_by(self._again(definition, self.options), {})

    def _again(self, definition: Definition, options: Options) -> Self:
        return type(self)(definition, options)

    @property
    def history_param(self) -> str | None:
        """The parameter that takes a history, or None."""
        return None

    @property
    def llm(self) -> LLM_Interface:
        """The model that is asked now.

        Raises:
            ConfigError: there is no model to ask.
        """
        return resolve_llm(self.options.llm_interface)

    # --- step 1 ---

    def start(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], *, stream: bool = False, params: _Params = None
    ) -> FunctionRun:
        """Step 1: bind and check the arguments; return the run, which begins when it is read.

        Args:
            args: as the function is called, without an instance.
            kwargs: the same; loses what is not the function's.
            stream: ask for the replies in pieces.
            params: go to the provider over those of the options.

        Raises:
            SignatureError: the arguments do not fit the function.
        """
        abort = kwargs.pop("_abort_signal", None)
        bound, template_params = signature.parse_function_signature(
            self.definition.func, args, kwargs, self.definition.metadata
        )
        for name, value in (("template_params", template_params), ("abort_signal", abort)):
            if value is not None:
                check_option(name, value)
        self.check(bound.bound_args.arguments)
        return FunctionRun(self, bound, template_params, self.options, abort=abort, params=params, stream=stream)

    def check(self, arguments: Mapping[str, Any]) -> None:
        """Check the arguments against their annotations, unless `check_arguments` is False.

        Raises:
            SignatureError: some do not.
        """
        if self.options.check_arguments:
            self.definition.argument_checks.check(arguments, self.history_param)

    async def guard(self, run: FunctionRun) -> None:
        """Let the guards see the arguments of a run, and perhaps change them.

        Raises:
            ContentBlocked: a guard says so.
            SignatureError: what a guard changed does not fit.
        """
        if not self.guards:
            return
        arguments, run.changes = await run.limits.wait(self.guards.arguments(run.arguments), "asking the guards")
        if run.changes:
            self.check(arguments)
            bound = inspect.BoundArguments(run.signature.signature, OrderedDict(arguments))
            run.signature = run.signature._replace(bound_args=bound)

    # --- the views that functions and chats have in common ---

    @abstractmethod
    def events_of(self, run: FunctionRun) -> AsyncGenerator[ReActEvent, None]:
        """Return the events of a run that `start` gave."""

    def events(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> AsyncGenerator[ReActEvent, None]:
        """Return the events of a call, with the replies in pieces."""
        return self.events_of(self.start(args, kwargs, stream=True))

    @abstractmethod
    def planned(self, run: FunctionRun, llm: LLM_Interface) -> ModelRequest:
        """Return what the run would send first."""

    def preview(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], *, stream: bool = False, params: _Params = None
    ) -> Preview:
        """Return the exact request of a call, without sending it; `params` as in `start`."""
        llm = self.llm
        request = self.tools.searched(self.planned(self.start(args, kwargs, params=params), llm))
        wire = request.wire(is_last=self.options.max_tool_calls == 0)
        messages, tools, response_format = (wire.pop(name) for name in ("messages", "tools", "response_format"))
        asked = {"tools": tools, "response_format": response_format, "stream": stream, **wire}
        body = llm.render(messages, **asked)
        input_tokens = estimate_tokens(messages, tools, response_format)
        return Preview(
            messages=messages,
            tools=tools,
            response_format=copied([response_format])[0],
            params=wire,
            output_mode=request.output_mode,
            output_mode_reason=request.output_mode_reason,
            input_tokens=input_tokens,
            cost=llm.price(Usage(input_tokens=input_tokens)),
            body=body,
            url=llm.url(stream=stream),
            headers=dict(llm.shown_headers(messages, **asked)),
            model=llm.model_name,
            improvement="" if self.options.improvement is None else str(self.options.improvement),
        )

    # --- metadata ---

    @cached_property
    def metadata(self) -> FunctionMetadata:
        """The metadata of the function for sinks and traces; built at the first use."""
        own, _, _, docstring, name = self.definition.metadata
        tools = self.tools.specs or []
        return FunctionMetadata(
            name=name,
            kind=self.kind,
            docstring=docstring,
            signature=signature_text(own),
            tools=tools,
            output_schema=self.output_schema,
            version=self._version(self.version_parts, tools),
            place=self.definition.place,
        )

    def _version(self, parts: list[Any], tools: list[Any]) -> str:
        own, hints, _, docstring, _ = self.definition.metadata
        described = {name: type_identity(hint) for name, hint in hints.items()}
        return function_version(docstring, signature_text(own), [described, self.output_schema, *parts], tools)

    @cached_property
    def identity(self) -> RunIdentity:
        """The identity of the function in a journal: the decorator's arguments belong to its version, later ones are options."""
        options, specs = self.options, self.tools.specs or []
        has_others = "toolkit" in self.later
        asked = [options.output_mode, options.tools, self.later.get("model"), has_others and specs, *self.version_parts]
        version = self._version([], [] if has_others else specs)
        return RunIdentity(self.definition.name, version, asked, None, self.definition.place)

    @property
    def output_schema(self) -> Mapping[str, Any] | None:
        """JSON Schema of the answer; None for plain text."""
        return None

    @property
    def version_parts(self) -> list[Any]:
        """The parts of the version besides docstring, signature, types and tools, as JSON data."""
        templates = {"system": self.options.system_prompt_template, "user": self.options.user_prompt_template}
        given = {name: text for name, text in templates.items() if text is not None}
        return [{"templates": given}] if given else []
