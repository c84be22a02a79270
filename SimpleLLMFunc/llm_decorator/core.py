"""What a decorated function does when it is called: from arguments to the events of one run.

`Core` knows what functions and chats share: the function, its options, and everything that is built once.
`FunctionCore` and `ChatCore` differ in the messages they build and in the review. The objects that the
decorators return (`decorated.py`) are typed views of a core.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import AbstractAsyncContextManager
from contextvars import Context, copy_context
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

from SimpleLLMFunc.base.events import ReActEvent
from SimpleLLMFunc.base.json_action import JsonActions
from SimpleLLMFunc.base.messages import copied
from SimpleLLMFunc.base.metadata import FunctionFacts, FunctionKind, RunFacts, function_version, signature_text
from SimpleLLMFunc.base.parsing import OutputMode
from SimpleLLMFunc.base.ReAct import react_events
from SimpleLLMFunc.base.request import ModelRequest, Review, ToolPolicy
from SimpleLLMFunc.base.run import (
    Abort,
    EmptyReview,
    Preview,
    Recording,
    RunRecord,
    json_actions,
    names_refusal,
    remember_refusal,
)
from SimpleLLMFunc.base.type_resolve import get_detailed_type_description
from SimpleLLMFunc.errors import BadRequest, RunError, SignatureError
from SimpleLLMFunc.interface.current import resolve_llm
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.spending import Deadline, estimate_tokens
from SimpleLLMFunc.interface.wires import endpoint
from SimpleLLMFunc.llm_decorator.options import Options
from SimpleLLMFunc.llm_decorator.scope import Scope
from SimpleLLMFunc.llm_decorator.steps.common.log_context import setup_log_context
from SimpleLLMFunc.llm_decorator.steps.common.prompt import check_multimodal_content
from SimpleLLMFunc.llm_decorator.steps.common.react import prepare_tools_for_execution
from SimpleLLMFunc.llm_decorator.steps.common.signature import Metadata, parse_function_signature
from SimpleLLMFunc.llm_decorator.steps.common.types import FunctionSignature
from SimpleLLMFunc.llm_decorator.utils import process_tools
from SimpleLLMFunc.logger import holds_little
from SimpleLLMFunc.runtime import in_thread, run_sync
from SimpleLLMFunc.type import ToolSpec, Usage, quickly_made
from SimpleLLMFunc.utils import in_context, stepped

__all__ = ["CallContext", "Core", "Plan", "Run"]

_PLAIN = frozenset({str, int, float, bool, type(None)})
_LONG = 50_000
"""Characters of arguments that take too long for an event loop to write down."""

_LONG_TEXT = 500_000
"""The same of what is text already."""


@dataclass(slots=True)
class Run:
    """One run under way, to be read once, and what its events have told so far.

    Attributes:
        context: the variables that everything inside the run sees.
    """

    _recording: Recording
    context: Context
    record: RunRecord
    review: Review | None = None

    @property
    def events(self) -> AsyncGenerator[ReActEvent, None]:
        """The events."""
        return in_context(self._recording.events(), self.context)

    def finish(self) -> Awaitable[None]:
        """Read the events to the end."""
        return stepped(self._finish(), self.context)

    async def _finish(self) -> None:
        await self._recording.finish()
        if self.record.finished is None:
            raise RunError(f"{self.record.func_name}: the stream ended before the run did")


@quickly_made
@dataclass(frozen=True, slots=True)
class Plan:
    """What a call is about to send.

    Attributes:
        request: the first one.
        mode, reason: how the answer is asked for, and why so.
    """

    request: ModelRequest
    mode: OutputMode
    reason: str


class Core(ABC):
    """A function, its options, and what is built once from them.

    Args:
        func: the function as written; a `classmethod` or `staticmethod` object is unwrapped.
        options: the decorator's arguments.
        scope: where the function was written.
    """

    def __init__(self, func: Any, options: Options, scope: Scope) -> None:
        self.binds_class = isinstance(func, classmethod)
        self.is_static = isinstance(func, staticmethod)
        self.func = func.__func__ if self.binds_class or self.is_static else func
        if not callable(self.func) or isinstance(self.func, type):
            raise SignatureError(f"{func!r} is not a function. Decorate a def or an async def.")
        self.options = options
        self.is_method = False
        self.instance: Any = None
        self._scope = scope
        try:
            scope.metadata(self.func)
        except SignatureError as error:
            if not isinstance(error.__cause__, NameError):
                raise
            # An annotation names something that is defined later: read again at the first call.
        else:
            self.prepare()
        if options.toolkit:
            _ = self.tools  # a tool the model could not be told about is an error here, not at the first call

    # --- built once ---

    @property
    def metadata(self) -> Metadata:
        """Signature, hints, return type, docstring and name; a method's without its first parameter."""
        return self._bound_metadata if self.takes_instance else self._scope.metadata(self.func)

    @cached_property
    def _bound_metadata(self) -> Metadata:
        signature, hints, return_type, docstring, name = self._scope.metadata(self.func)
        first, *others = signature.parameters.values()
        return signature.replace(parameters=others), _without(hints, first.name), return_type, docstring, name

    @property
    def takes_instance(self) -> bool:
        """Whether the function's first parameter is an instance or a class, which is no argument."""
        return self.instance is not None or (self.is_method and not self.is_static)

    @cached_property
    def tools(self) -> tuple[list[ToolSpec] | None, dict[str, Any]]:
        """The toolkit in wire form, and what runs."""
        return prepare_tools_for_execution(self.options.toolkit, getattr(self.func, "__name__", ""))

    @cached_property
    def policy(self) -> ToolPolicy:
        """How the tools run."""
        options = self.options
        return ToolPolicy(
            options.on_tool_error, options.max_result_chars, options.toolkit_confirm, options.tool_context
        )

    @cached_property
    def _strict_specs(self) -> list[ToolSpec] | None:
        return process_tools(self.options.toolkit, getattr(self.func, "__name__", ""), strict=True)[0]

    def specs_for(self, llm: LLM_Interface) -> list[ToolSpec] | None:
        """Return the tools in the form that this provider wants."""
        return self._strict_specs if llm.profile.strict else self.tools[0]

    # --- what those who watch are told ---

    kind: ClassVar[FunctionKind] = "function"

    @cached_property
    def facts(self) -> FunctionFacts:
        """What the function is; built for the first run that somebody watches."""
        signature, hints, _, docstring, name = self.metadata
        tools = self.tools[0] or []
        shown = signature_text(signature)
        described = {name: get_detailed_type_description(hint) for name, hint in hints.items()}
        return FunctionFacts(
            name=name,
            kind=self.kind,
            docstring=docstring,
            signature=shown,
            tools=tools,
            output_schema=self.output_schema,
            version=function_version(docstring, shown, [described, self.output_schema, *self.version_parts], tools),
            place=f"{getattr(self.func, '__module__', '')}:{getattr(self.func, '__qualname__', name)}",
        )

    @property
    def version_parts(self) -> list[Any]:
        """What else makes the function another one: its prompt templates, examples, quotes, plain code; JSON data."""
        options = self.options
        templates = {"system": options.system_prompt_template, "user": options.user_prompt_template}
        given = {name: text for name, text in templates.items() if text is not None}
        return [{"templates": given}] if given else []

    @property
    def output_schema(self) -> Mapping[str, Any] | None:
        """JSON Schema of the answer; None for plain text."""
        return None

    def prepare(self) -> None:  # noqa: B027 - a chat has nothing to build
        """Build what does not change between calls; a return type nobody can ask for is an error here."""

    def warm(self) -> None:
        """Build what copies of this core share."""
        _ = self.metadata

    @cached_property
    def _method_form(self) -> Self:
        other = copy(self)
        for name in ("_bound_metadata", "fixed_prompt", "facts"):
            vars(other).pop(name, None)
        other.is_method = True
        return other

    def bound(self, instance: Any) -> Self:
        """Return this core bound to an instance or a class."""
        form = self if self.is_method else self._method_form
        form.warm()
        other = copy(form)
        other.instance = instance
        return other

    def with_options(self, options: Mapping[str, Any]) -> Self:
        """Return this core with other options."""
        other = copy(self)
        other.options = self.options.changed(options)
        for name in ("policy", "tools", "_strict_specs", "facts"):
            vars(other).pop(name, None)
        if other.options.toolkit:
            _ = other.tools
        return other

    # --- one call ---

    def signature_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[FunctionSignature, Any]:
        """Step 1: bind the arguments (`kwargs` loses what is not the function's); also gives the template parameters."""
        if self.takes_instance and self.instance is None:
            args = args[1:]  # called through the class: the instance stands first
        signature, params = parse_function_signature(self.func, args, kwargs, self.metadata)
        return signature, params if params is not None else self.options.template_params

    @property
    def plans_slowly(self) -> bool:
        """Whether making a plan takes longer than an event loop should be held up."""
        return False

    def written_down(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what of the arguments takes the longer to plan with, the more text it holds."""
        return arguments

    @abstractmethod
    def plan(self, signature: FunctionSignature, template_params: Any, llm: LLM_Interface) -> Plan:
        """Step 3: what is sent first."""

    async def fitted(self, plan: Plan, llm: LLM_Interface, func_name: str) -> Plan:  # noqa: ARG002
        """Return the plan with a history that fits what the model can read."""
        return plan

    def actions_for(self, llm: LLM_Interface, answer_schema: Mapping[str, Any] | None) -> JsonActions | None:
        """Return how the tools are offered to a model that cannot call them; None where it can, or there are none."""
        specs = self.tools[0]
        return json_actions(llm, specs, answer_schema, self.options.tools) if specs else None

    @abstractmethod
    def review(self, record: RunRecord, signature: FunctionSignature) -> EmptyReview:
        """Return the review of one run."""

    def refused_part(self, error: BadRequest, request: ModelRequest, run: CallContext) -> str | None:  # noqa: ARG002
        """Say which part of a request a service did not take: "tools", an output mode, or None."""
        offers_tools = bool(request.tools) and request.actions is None and self.options.tools == "auto"
        return "tools" if offers_tools and names_refusal(error, "tool") else None

    def start(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, stream: bool, is_shared: bool = True) -> Run:
        """Return a run that begins when its events are read; it sees the context variables of this moment.

        Args:
            args: as the function is called.
            kwargs: the same; loses what is not the function's.
            stream: ask for the reply in pieces.
            is_shared: whoever gets the events may change what they hold; see `react_events`.
        """
        abort = kwargs.pop("_abort_signal", None) or self.options.abort_signal
        signature, template_params = self.signature_of(args, kwargs)
        record = RunRecord(signature.func_name, signature.trace_id)
        review = self.review(record, signature)
        call = CallContext(self, signature, template_params, record, review, abort, stream, is_shared)
        recording = Recording(
            record,
            call.begin,
            log_context=call.named,
            deadline=self.options.deadline,
            sinks=tuple(self.options.sinks),
            facts=call.facts,
        )
        return Run(recording, copy_context(), record, review)

    def events(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> AsyncGenerator[ReActEvent, None]:
        """Return the events of a call, with the reply in pieces."""
        return self.start(args, kwargs, stream=True).events

    def preview(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, stream: bool = False) -> Preview:
        """Return the exact request of a call, without sending it."""
        kwargs.pop("_abort_signal", None)
        signature, template_params = self.signature_of(args, kwargs)
        llm = resolve_llm(self.options.llm_interface)
        plan = self.plan(signature, template_params, llm)
        if llm.context_window is not None:
            plan = run_sync(self.fitted(plan, llm, signature.func_name))
        request = plan.request
        wire = request.wire(llm, is_last=self.options.max_tool_calls == 0)
        messages, tools, response_format = (wire.pop(name) for name in ("messages", "tools", "response_format"))
        body = llm.render(messages, tools=tools, response_format=response_format, stream=stream, **wire)
        input_tokens = estimate_tokens(messages, tools, response_format)
        return Preview(
            messages=messages,
            tools=tools,
            response_format=copied([response_format])[0],
            params=wire,
            output_mode=plan.mode,
            output_mode_reason=plan.reason,
            input_tokens=input_tokens,
            cost=llm.price(Usage(input_tokens=input_tokens)),
            body=body,
            url=endpoint(llm.base_url) if llm.base_url else "",
        )


@dataclass(slots=True)
class CallContext:
    """One call: what begins its run, and asks the same thing in another mode.

    Not functions inside a function, whose cells take a kilobyte: ten thousand calls may be in flight.

    Attributes:
        llm: None until the run begins.
        opening: how many messages the first request had.
    """

    core: Core
    signature: FunctionSignature
    template_params: Any
    record: RunRecord
    review: Review
    abort: Abort | None
    stream: bool
    is_shared: bool = True
    llm: LLM_Interface | None = None
    opening: int = 0

    def named(self) -> AbstractAsyncContextManager[Any]:
        """Step 2: who is running, for the log."""
        signature = self.signature
        return setup_log_context(signature.func_name, signature.trace_id, signature.bound_args.arguments)

    def facts(self) -> RunFacts:
        """Who runs, and with what."""
        return RunFacts(self.core.facts, self.signature.bound_args.arguments)

    async def begin(self, clock: Deadline) -> AsyncGenerator[ReActEvent, None]:
        """Steps 3 and 4: the events of the run."""
        core, options, signature = self.core, self.core.options, self.signature
        llm = self.llm = resolve_llm(options.llm_interface)
        asked = (signature, self.template_params, llm)
        # A file may be long, and its disk slow; data may take long to write down.
        is_slow = core.plans_slowly or _may_be_long(
            core.written_down(signature.bound_args.arguments), signature.type_hints
        )
        plan = await in_thread(core.plan, *asked) if is_slow else core.plan(*asked)
        plan = await core.fitted(plan, llm, signature.func_name)
        self.opening = len(plan.request.messages)
        self.record.output_mode, self.record.output_mode_reason = plan.mode, plan.reason
        return react_events(
            llm,
            plan.request.messages,
            plan.request.tools,
            core.tools[1],
            max_tool_calls=options.max_tool_calls,
            stream=self.stream,
            review=self.review,
            refused=self.refused,
            response_format=plan.request.response_format,
            answer_tool=plan.request.answer_tool,
            params=options.llm_kwargs,
            actions=plan.request.actions,
            policy=core.policy,
            deadline=clock,
            abort=self.abort,
            trace_id=signature.trace_id,
            func_name=signature.func_name,
            is_shared=self.is_shared,
        )

    def refused(self, error: BadRequest, request: ModelRequest) -> ModelRequest | None:
        """Return what to send instead of a request that was not accepted; None to give up.

        What was refused is remembered for the interface: native tool calls, a schema, an answer tool.
        """
        what = self.core.refused_part(error, request, self)
        if what is None or self.llm is None or error.status not in {400, 404, 422}:
            return None
        remember_refusal(self.llm, what)
        plan = self.core.plan(self.signature, self.template_params, self.llm)
        self.record.output_mode, self.record.output_mode_reason = plan.mode, plan.reason
        # What came after the first messages (tool rounds, a re-ask) stays.
        grown = request.messages[self.opening :]
        self.opening = len(plan.request.messages)
        return replace(plan.request, messages=[*plan.request.messages, *grown])


def _without(hints: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {known: hint for known, hint in hints.items() if known != name}


def _may_be_long(arguments: Mapping[str, Any], type_hints: Mapping[str, Any]) -> bool:
    for value in arguments.values():
        if type(value) is str:
            if len(value) > _LONG_TEXT:
                return True
        elif type(value) not in _PLAIN:
            return not holds_little(arguments, _LONG) or check_multimodal_content(arguments, type_hints)
    return False
