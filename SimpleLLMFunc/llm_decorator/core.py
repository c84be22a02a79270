"""What a decorated function does when it is called: from arguments to the events of one run.

`Core` knows what functions and chats share: the function, its options, and everything that is built once.
`FunctionCore` and `ChatCore` differ in the messages they build and in the review. The objects that the
decorators return (`decorated.py`) are typed views of a core.
"""

from __future__ import annotations

import contextvars
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from types import GenericAlias
from typing import Any, Self, get_args
from weakref import WeakKeyDictionary

from SimpleLLMFunc.base.abort import Abort
from SimpleLLMFunc.base.events import ReActEvent
from SimpleLLMFunc.base.json_action import JsonActions
from SimpleLLMFunc.base.observe import current_sinks, show
from SimpleLLMFunc.base.output_mode import OutputSpec, choose_output_mode, compile_output
from SimpleLLMFunc.base.ReAct import react_events
from SimpleLLMFunc.base.record import RunRecord
from SimpleLLMFunc.base.request import ModelRequest, Review, ToolPolicy
from SimpleLLMFunc.base.result import OutputMode, Preview, Result
from SimpleLLMFunc.errors import BadRequest, DeadlineExceeded, RunError, SignatureError, SimpleLLMFuncError
from SimpleLLMFunc.interface.budget import strictest_time_limit
from SimpleLLMFunc.interface.current import resolve_llm
from SimpleLLMFunc.interface.deadline import deadline_scope
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.tokens import estimate_tokens
from SimpleLLMFunc.llm_decorator.options import Options
from SimpleLLMFunc.llm_decorator.scope import Scope, iterator_kind
from SimpleLLMFunc.llm_decorator.steps.chat.fit import compacted, fits, room_for_input, trimmed
from SimpleLLMFunc.llm_decorator.steps.chat.message import build_chat_messages, find_history_param
from SimpleLLMFunc.llm_decorator.steps.common.log_context import setup_log_context
from SimpleLLMFunc.llm_decorator.steps.common.react import prepare_tools_for_execution
from SimpleLLMFunc.llm_decorator.steps.common.signature import Metadata, parse_function_signature
from SimpleLLMFunc.llm_decorator.steps.common.types import FunctionSignature
from SimpleLLMFunc.llm_decorator.steps.function.prompt import FixedPrompt, build_initial_prompts
from SimpleLLMFunc.llm_decorator.steps.function.review import AnswerReview, EmptyReview
from SimpleLLMFunc.sync import run_sync
from SimpleLLMFunc.type.message import Message, ToolSpec
from SimpleLLMFunc.utils import in_context

__all__ = ["ChatCore", "Core", "FunctionCore", "Run"]


@dataclass(slots=True)
class Run:
    """One run under way: its events, and what they have told so far."""

    events: AsyncGenerator[ReActEvent, None]
    record: RunRecord
    review: Review | None = None

    async def finish(self) -> None:
        """Read the events to the end."""
        async with aclosing(self.events) as events:
            async for _ in events:
                pass
        if self.record.finished is None:
            raise RunError(f"{self.record.func_name}: the stream ended before the run did")


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
        if not callable(self.func):
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

    def prepare(self) -> None:  # noqa: B027 - a chat has nothing to build
        """Build what does not change between calls; a return type nobody can ask for is an error here."""

    def warm(self) -> None:
        """Build what copies of this core share."""
        _ = self.metadata

    @cached_property
    def _method_form(self) -> Self:
        other = copy(self)
        for name in ("_bound_metadata", "fixed_prompt"):
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
        vars(other).pop("tools", None)
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

    @abstractmethod
    def plan(self, signature: FunctionSignature, template_params: Any, llm: LLM_Interface) -> Plan:
        """Step 3: what is sent first."""

    async def fitted(self, plan: Plan, llm: LLM_Interface, func_name: str) -> Plan:  # noqa: ARG002
        """Return the plan with a history that fits what the model can read."""
        return plan

    def actions_for(self, llm: LLM_Interface, answer_schema: Mapping[str, Any] | None) -> JsonActions | None:
        """Return how the tools are offered to a model that cannot call them; None where it can, or there are none."""
        specs = self.tools[0]
        wanted = self.options.tools
        if wanted == "auto":
            wanted = "json" if "tools" in _REFUSED.get(llm, ()) else llm.profile.tools
        if not specs or wanted == "native":
            return None
        is_native = llm.profile.native and "native" not in _REFUSED.get(llm, ())
        return JsonActions(specs, answer_schema, native=is_native)

    @abstractmethod
    def review(self, record: RunRecord) -> EmptyReview:
        """Return the review of one run."""

    def refused(self, error: BadRequest, request: ModelRequest, run: _Context) -> ModelRequest | None:
        """Return what to send instead of a request that was not accepted; None to give up.

        What was refused is remembered for the interface: native tool calls, a schema, an answer tool.
        """
        what = self.refused_part(error, request, run)
        if what is None or error.status not in {400, 404, 422}:
            return None
        _REFUSED.setdefault(run.llm, set()).add(what)
        plan = self.plan(run.signature, run.template_params, run.llm)
        run.record.output_mode, run.record.output_mode_reason = plan.mode, plan.reason
        # What came after the first messages (tool rounds, a re-ask) stays.
        grown = request.messages[len(plan.request.messages) :]
        return replace(plan.request, messages=[*plan.request.messages, *grown])

    def refused_part(self, error: BadRequest, request: ModelRequest, run: _Context) -> str | None:  # noqa: ARG002
        """Say which part of a request a service did not take: "tools", an output mode, or None."""
        offers_tools = bool(request.tools) and request.actions is None and self.options.tools == "auto"
        return "tools" if offers_tools and _names(error, "tool") else None

    def start(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, stream: bool) -> Run:
        """Return a run that begins when its events are read; it sees the context variables of this moment."""
        abort = kwargs.pop("_abort_signal", None) or self.options.abort_signal
        signature, template_params = self.signature_of(args, kwargs)
        record = RunRecord(signature.func_name, signature.trace_id)
        review = self.review(record)
        events = self._events(signature, template_params, record, review, abort, stream=stream)
        return Run(in_context(events, contextvars.copy_context()), record, review)

    async def _events(
        self,
        signature: FunctionSignature,
        template_params: Any,
        record: RunRecord,
        review: Review,
        abort: Abort | None,
        *,
        stream: bool,
    ) -> AsyncGenerator[ReActEvent, None]:
        """Steps 2 to 4: the events of one run."""
        options = self.options
        arguments = signature.bound_args.arguments
        limited = strictest_time_limit()
        sinks = (*current_sinks(), *options.sinks)
        limits = [options.deadline, limited.left() if limited else None]
        try:
            async with setup_log_context(signature.func_name, signature.trace_id, arguments):
                with deadline_scope(
                    min((seconds for seconds in limits if seconds is not None), default=None)
                ) as deadline:
                    llm = resolve_llm(options.llm_interface)
                    plan = await self.fitted(self.plan(signature, template_params, llm), llm, signature.func_name)
                    record.output_mode, record.output_mode_reason = plan.mode, plan.reason
                    context = _Context(signature, template_params, llm, record, plan)
                    events = react_events(
                        llm,
                        plan.request.messages,
                        *self.tools,
                        max_tool_calls=options.max_tool_calls,
                        stream=stream,
                        review=review,
                        refused=lambda error, request: self.refused(error, request, context),
                        response_format=plan.request.response_format,
                        answer_tool=plan.request.answer_tool,
                        params=options.llm_kwargs,
                        actions=plan.request.actions,
                        policy=ToolPolicy(
                            options.on_tool_error,
                            options.max_result_chars,
                            options.toolkit_confirm,
                            options.tool_context,
                        ),
                        deadline=deadline,
                        abort=abort,
                        trace_id=signature.trace_id,
                        func_name=signature.func_name,
                    )
                    async with aclosing(events):
                        async for event in events:
                            record.note(event)
                            if sinks:
                                show(sinks, signature.trace_id, event)
                            yield event
        except SimpleLLMFuncError as error:
            if isinstance(error, DeadlineExceeded) and limited and limited.left() == 0:
                raise record.explained(limited.out_of_time()) from error
            record.explained(error)
            raise

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
        return Preview(
            messages=messages,
            tools=tools,
            response_format=response_format,
            params=wire,
            output_mode=plan.mode,
            output_mode_reason=plan.reason,
            input_tokens=estimate_tokens(messages, tools, response_format),
            body=body,
            url=f"{llm.base_url.rstrip('/')}/chat/completions" if llm.base_url else "",
        )


@dataclass(frozen=True, slots=True)
class _Context:
    """What is needed to ask the same thing in another mode."""

    signature: FunctionSignature
    template_params: Any
    llm: LLM_Interface
    record: RunRecord
    plan: Plan


_REFUSED: WeakKeyDictionary[LLM_Interface, set[str]] = WeakKeyDictionary()
"""What a model behind an interface has refused: output modes, and "tools" for native tool calls."""

# What a 400 says when it means the mode, and not something in the conversation.
_REFUSAL_WORDS = {
    "native": ("response_format", "json_schema", "response format", "structured output", "guided", "grammar"),
    "tool": ("tool", "function"),
}


def _names(error: BadRequest, mode: str) -> bool:
    body = error.body.lower()
    return any(word in body for word in _REFUSAL_WORDS[mode])


class FunctionCore(Core):
    """The core of an `@llm_function`."""

    def prepare(self) -> None:
        """Compile the return type."""
        _ = self.spec

    @cached_property
    def spec(self) -> OutputSpec:
        """How the answer is asked for and read; an iterator's items go over the wire as a list."""
        return_type = self._scope.metadata(self.func)[2]
        if iterator_kind(return_type):
            item_type = (get_args(return_type) or (Any,))[0]
            return compile_output(GenericAlias(list, (item_type,)))
        return compile_output(return_type)

    @cached_property
    def fixed_prompt(self) -> FixedPrompt:
        """The parts of the prompt that are the same for every call."""
        _, hints, _, _, _ = self.metadata
        return FixedPrompt(hints, self.spec.return_type)

    def warm(self) -> None:
        """Build what copies of this core share."""
        _ = self.fixed_prompt

    def plan(self, signature: FunctionSignature, template_params: Any, llm: LLM_Interface) -> Plan:
        """Choose the output mode and build the first request."""
        options = self.options
        mode, reason = choose_output_mode(
            self.spec,
            llm.profile,
            options.output_mode,
            frozenset(_REFUSED.get(llm, ())) if options.output_mode == "auto" else frozenset(),
            has_tools=bool(options.toolkit),
        )
        messages = build_initial_prompts(
            signature,
            options.system_prompt_template,
            options.user_prompt_template,
            template_params,
            mode,
            self.fixed_prompt,
        )
        response_format = None
        if mode == "native":
            # The strict form wherever it means the same: a model held to every key forgets none.
            response_format = self.spec.response_format(strict=True) or self.spec.response_format(strict=False)
        answer_tool = self.spec.answer_tool() if mode == "tool" else None
        actions = None
        if answer_tool is None:
            actions = self.actions_for(llm, None if mode == "text" else self.spec.schema)
        request = ModelRequest(messages, self.tools[0], response_format, options.llm_kwargs, answer_tool, actions)
        return Plan(request, mode, reason)

    def review(self, record: RunRecord) -> AnswerReview:
        """Read the answer, and ask again for one that does not fit."""
        options = self.options
        return AnswerReview(
            record,
            options.retry_times,
            spec=self.spec,
            repair=options.repair,
            max_reasks=options.max_reasks,
            description=self.fixed_prompt.return_type,
        )

    def refused_part(self, error: BadRequest, request: ModelRequest, run: _Context) -> str | None:
        """Move down the ladder native → tool → prompt, and from native tool calls to JSON actions."""
        mode = run.record.output_mode
        if mode in _REFUSAL_WORDS and self.options.output_mode == "auto" and _names(error, mode):
            return mode
        return super().refused_part(error, request, run)

    async def result(self, run: Run) -> Result[Any]:
        """Read a run to its end and return what it found."""
        await run.finish()
        record = run.record
        assert isinstance(run.review, AnswerReview), "a function is reviewed"
        assert run.review.parsed is not None, "an accepted answer was parsed"
        assert record.reply is not None, "a finished run has a reply"
        return Result(
            value=run.review.parsed.value,
            text=record.reply.text,
            repairs=run.review.parsed.repairs,
            tries=record.reply.tries,
            **record.facts(),
        )


class ChatCore(Core):
    """The core of an `@llm_chat`."""

    def plan(self, signature: FunctionSignature, template_params: Any, llm: LLM_Interface) -> Plan:
        """Build system prompt, history and user message."""
        history = find_history_param(signature.bound_args.arguments)
        messages: list[Message] = build_chat_messages(
            signature, self.options.toolkit, [history] if history else [], template_params, self.tools[0] or []
        )
        actions = self.actions_for(llm, None)
        request = ModelRequest(messages, self.tools[0], None, self.options.llm_kwargs, None, actions)
        return Plan(request, "text", "text: a chat answers in plain text")

    async def fitted(self, plan: Plan, llm: LLM_Interface, func_name: str) -> Plan:
        """Shorten a history that does not fit: by `compact`, then by leaving out the oldest exchanges."""
        if llm.context_window is None:
            return plan
        request = plan.request
        room = room_for_input(llm.context_window, self.options.llm_kwargs)
        messages = request.messages
        if not fits(messages, request.tools, room):
            if self.options.compact is not None:
                messages = await compacted(messages, self.options.compact, func_name)
            messages = trimmed(messages, request.tools, room, func_name)
        return replace(plan, request=replace(request, messages=messages))

    def review(self, record: RunRecord) -> EmptyReview:
        """Ask again only for an empty answer."""
        return EmptyReview(record, self.options.retry_times)


def _without(hints: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {known: hint for known, hint in hints.items() if known != name}
