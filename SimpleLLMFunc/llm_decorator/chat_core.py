"""The core of an `@llm_chat`: history and message, made to fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from SimpleLLMFunc.base.request import ModelRequest
from SimpleLLMFunc.base.run import EmptyReview, RunRecord
from SimpleLLMFunc.interface.body_json import is_long
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.llm_decorator.core import Core, Plan
from SimpleLLMFunc.llm_decorator.steps.chat.fit import compacted, fits, room_for_input, trimmed
from SimpleLLMFunc.llm_decorator.steps.chat.message import build_chat_messages, find_history_param, is_plain
from SimpleLLMFunc.llm_decorator.steps.common.types import FunctionSignature
from SimpleLLMFunc.runtime import in_thread
from SimpleLLMFunc.type import Message

__all__ = ["ChatCore"]

T = TypeVar("T")

_MANY = 5_000
"""Messages of a history that take too long for an event loop to go through."""


class ChatCore(Core):
    """The core of an `@llm_chat`."""

    kind = "chat"

    def written_down(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the arguments without the plain texts of the history: they are passed on, however long they are."""
        name = find_history_param(arguments)
        history = arguments[name] if name else None
        if name is None or type(history) is not list or len(history) > _MANY:
            return arguments
        return {**arguments, name: [message for message in history if not is_plain(message)]}

    def plan(self, signature: FunctionSignature, template_params: Any, llm: LLM_Interface) -> Plan:
        """Build system prompt, history and user message."""
        history = find_history_param(signature.bound_args.arguments)
        messages: list[Message] = build_chat_messages(
            signature, self.options.toolkit, [history] if history else [], template_params, self.tools[0] or []
        )
        actions = self.actions_for(llm, None)
        request = ModelRequest(messages, self.specs_for(llm), None, self.options.llm_kwargs, None, actions)
        return Plan(request, "text", "text: a chat answers in plain text")

    async def fitted(self, plan: Plan, llm: LLM_Interface, func_name: str) -> Plan:
        """Shorten a history that does not fit: by `compact`, then by leaving out the oldest exchanges."""
        if llm.context_window is None:
            return plan
        request = plan.request
        room = room_for_input(llm.context_window, self.options.llm_kwargs)
        messages = request.messages
        if not await _counted(fits, messages, request.tools, room):
            if self.options.compact is not None:
                messages = await compacted(messages, self.options.compact, func_name)
            messages = await _counted(trimmed, messages, request.tools, room, func_name)
        return replace(plan, request=replace(request, messages=messages))

    def review(self, record: RunRecord, signature: FunctionSignature) -> EmptyReview:  # noqa: ARG002
        """Ask again only for an empty answer."""
        return EmptyReview(record, self.options.retry_times)


async def _counted(count: Callable[..., T], messages: list[Message], *args: Any) -> T:
    """Return what `count` makes of the messages; counting the tokens of long ones would hold up the event loop."""
    return await in_thread(count, messages, *args) if is_long(messages) else count(messages, *args)
