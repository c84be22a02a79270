"""Step 3 of `@llm_chat`: system prompt, history and the user's message."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

from SimpleLLMFunc.base.messages import build_multimodal_content, copied, render_value
from SimpleLLMFunc.base.request import ModelRequest, Toolset
from SimpleLLMFunc.base.run import downgrades_of, json_actions
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.body_json import text_size
from SimpleLLMFunc.interface.current import resolve_llm
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.spending import estimate_tokens
from SimpleLLMFunc.llm_decorator.steps.common.options import Options
from SimpleLLMFunc.llm_decorator.steps.common.prompt import check_multimodal_content, process_docstring_template
from SimpleLLMFunc.llm_decorator.steps.common.run import FunctionRun
from SimpleLLMFunc.llm_decorator.steps.common.types import Compact, FunctionSignature
from SimpleLLMFunc.llm_decorator.utils import process_tools
from SimpleLLMFunc.logger import push_warning, shown_value
from SimpleLLMFunc.runtime import in_thread, off_loop_if_large
from SimpleLLMFunc.tools import run_callable
from SimpleLLMFunc.type import ContentPart, Message, ToolSpec

T = TypeVar("T")

HISTORY_PARAMS = ("history", "chat_history")
"""The first of these that a chat has is its history."""

_ROLES = frozenset({"user", "assistant", "tool"})

_MOST_KEPT_FREE = 1024
"""Tokens kept free for the answer, where no `max_tokens` says how many it needs."""


def find_history_param(names: Mapping[str, Any], candidates: Sequence[str] = HISTORY_PARAMS) -> str | None:
    """Return the name of the history parameter, or None."""
    return next((name for name in candidates if name in names), None)


def extract_conversation_history(
    arguments: Mapping[str, Any], func_name: str, history_param_names: Sequence[str] | None = None
) -> list[Message] | None:
    """Return the history among the arguments; None where it is missing, None, or not a list of dicts."""
    candidates = HISTORY_PARAMS if history_param_names is None else history_param_names
    name = find_history_param(arguments, candidates)
    if name is None:
        push_warning(
            f"LLM Chat {func_name!r} has no history parameter (one of {', '.join(candidates)}). No history is passed."
        )
        return None
    history = arguments[name]
    if history is None:
        return None
    if not (isinstance(history, list) and all(isinstance(item, dict) for item in history)):
        push_warning(f"LLM Chat {func_name!r}: {name} should be a list of message dicts. No history is passed.")
        return None
    return history


def build_chat_user_message_content(
    arguments: Mapping[str, Any], type_hints: Mapping[str, Any], has_multimodal: bool, exclude_params: Sequence[str]
) -> str | list[ContentPart]:
    """Return what the user says: ``name: value`` joined by newline and tab, or parts where there are images.

    Arguments keep their order; None is left out.
    """
    if has_multimodal:
        return build_multimodal_content(dict(arguments), dict(type_hints), exclude_params=list(exclude_params))
    told = {name: value for name, value in arguments.items() if name not in exclude_params and value is not None}
    return "\n\t".join(f"{name}: {render_value(value)}" for name, value in told.items())


def build_chat_system_prompt(docstring: str, tool_objects: Sequence[ToolSpec] | None) -> str | None:
    """Return the docstring, with the tools described above it where there are any; None for an empty docstring."""
    if not docstring:
        return None
    functions = [spec["function"] for spec in tool_objects or () if "function" in spec]
    if not functions:
        return docstring
    described = "\n\t".join(f"- {function['name']}: {function.get('description', '')}" for function in functions)
    intro = "You can use the following tools flexibly according to the real case and tool description:"
    return f"\n\n{intro}\n\t{described}\n\n{docstring.strip()}"


def filter_history_messages(history: Sequence[Mapping[str, Any]], func_name: str) -> list[Message]:
    """Return a copy of the messages that a history may hold.

    Roles are user, assistant and tool. System messages are left out silently (the docstring is the system
    prompt), anything else with a warning. A tool result without its call and a call without its result
    are both left out: a provider refuses either.
    """
    kept: list[Any] = []
    dropped = 0
    results: dict[str, Mapping[str, Any]] = {}
    messages = [message for message in history if _may_stand(message, func_name)]
    for message in reversed(messages):  # so that results are known before the calls that they answer
        if message["role"] == "tool":
            results[str(message.get("tool_call_id"))] = message
            dropped += 1
            continue
        given = message.get("tool_calls") if message["role"] == "assistant" else None
        calls = [call for call in given if isinstance(call, Mapping)] if isinstance(given, Sequence) else []
        answered = [call for call in calls if str(call.get("id")) in results]
        dropped += len(calls) - 2 * len(answered)
        if answered:
            kept += [results[str(call.get("id"))] for call in reversed(answered)]
            kept.append({**message, "tool_calls": answered})
        elif not given:
            kept.append(message)
        elif message.get("content"):
            kept.append({name: value for name, value in message.items() if name != "tool_calls"})
        results = {}
    if dropped:
        push_warning(
            f"LLM Chat {func_name!r} leaves out tool calls without result, and results without call, of the history."
        )
    return copied(cast("list[Message]", kept[::-1]))


def _may_stand(message: Any, func_name: str) -> bool:
    role = message.get("role") if isinstance(message, Mapping) else None
    if role == "system":
        return False
    has_content = isinstance(message, Mapping) and ("content" in message or bool(message.get("tool_calls")))
    is_readable = has_content and _is_content(message.get("content"))
    if isinstance(role, str) and role in _ROLES and is_readable:
        return True
    what = f"role {shown_value(role, 60)}" if role is not None else f"a {type(message).__name__} without role"
    lacks = "" if is_readable else ", content that is no text and no list of parts" if has_content else ", no content"
    push_warning(f"LLM Chat {func_name!r} skips a malformed history item ({what}{lacks}).")
    return False


def _is_content(content: object) -> bool:
    return content is None or isinstance(content, str) or (isinstance(content, list) and all(map(_is_part, content)))


def _is_part(part: object) -> bool:
    match part:
        case {"type": "text", "text": str()} | {"type": "image_url", "image_url": {"url": str()} | str()}:
            return True
        case {"type": "input_audio", "input_audio": {}} | {"type": "file", "file": {}}:
            return True
        case {"type": "text" | "image_url" | "input_audio" | "file"}:
            return False
    return isinstance(part, Mapping)


def build_chat_messages(
    signature: FunctionSignature,
    toolkit: Sequence[Any] | None,
    exclude_params: Sequence[str],
    template_params: Mapping[str, Any] | None = None,
    tools: Sequence[ToolSpec] | None = None,
) -> list[Message]:
    """Return what a chat begins with: system prompt, history, user message.

    Args:
        signature: of the call.
        toolkit: described in the system prompt.
        exclude_params: arguments that are not part of the user's message.
        template_params: for the fields of the docstring.
        tools: the toolkit in wire form, where it was built before.
    """
    if tools is None:
        tools, _ = process_tools(toolkit, signature.func_name)
    arguments = signature.bound_args.arguments
    messages: list[Message] = []
    docstring = process_docstring_template(signature.docstring, template_params)
    if system_prompt := build_chat_system_prompt(docstring, tools):
        messages.append({"role": "system", "content": system_prompt})
    if history := extract_conversation_history(arguments, signature.func_name):
        messages += filter_history_messages(history, signature.func_name)
    has_multimodal = check_multimodal_content(arguments, signature.type_hints, exclude_params)
    if content := build_chat_user_message_content(arguments, signature.type_hints, has_multimodal, exclude_params):
        messages.append({"role": "user", "content": content})
    return messages


# --- the request that these messages open ---


async def first_request(run: FunctionRun, options: Options, tools: Toolset) -> ModelRequest:
    """Return what a call sends first, to the model that is current now, its history made to fit.

    Raises:
        ConfigError: there is no model to ask, or `compact` gave no messages.
    """
    given = run, options, tools, resolve_llm(options.llm_interface)
    request = await in_thread(build_request, *given) if run.takes_long_to_write else build_request(*given)
    return await fitted(request, options, run.func_name)


def build_request(run: FunctionRun, options: Options, tools: Toolset, llm: LLM_Interface) -> ModelRequest:
    """Return the request: system prompt, history, the user's message, and the tools."""
    history = find_history_param(run.arguments)
    excluded, shown = [history] if history else [], tools.shown(tools.specs) or []
    messages = build_chat_messages(run.signature, options.toolkit, excluded, run.template_params, shown)
    request = ModelRequest(
        llm,
        messages,
        tools.specs_for(llm),
        params=tools.named(run.params),
        actions=json_actions(llm, tools.specs, None, tools.offered),
        output_mode_reason="text: a chat answers in plain text",
    )
    return replace(request, downgrades=downgrades_of(request, tools.specs))


async def fitted(request: ModelRequest, options: Options, func_name: str) -> ModelRequest:
    """Return the request with a history that fits: shortened by `compact`, then by leaving out the oldest exchanges."""
    if request.llm.context_window is None:
        return request
    room = room_for_input(request.llm.context_window, request.params)
    messages = request.messages
    if not await _counted(fits, messages, request.tools, room):
        if options.compact is not None:
            messages = await _compacted(messages, options.compact, func_name)
        messages = await _counted(trimmed, messages, request.tools, room, func_name)
    return request.with_messages(messages)


async def _counted(count: Callable[..., T], messages: list[Message], *args: Any) -> T:
    """Return what `count` makes of the messages; counting the tokens of long ones would hold up the event loop."""
    return await off_loop_if_large(text_size(messages), lambda: count(messages, *args))


async def _compacted(messages: Sequence[Message], compact: Compact, func_name: str) -> list[Message]:
    """Return the conversation with its history as `compact` shortens it.

    Raises:
        ConfigError: `compact` did not give a list of messages.
    """
    head = 1 if messages and messages[0]["role"] == "system" else 0
    given: Any = await run_callable(compact, [copied(messages[head:-1])], {})  # in a thread: a model may sum up
    if not isinstance(given, list) or not all(isinstance(message, dict) for message in given):
        raise ConfigError(f"{func_name}: compact= must return a list of messages, not {type(given).__name__}.")
    return [*messages[:head], *filter_history_messages(given, func_name), *messages[-1:]]


def room_for_input(context_window: int, params: Mapping[str, Any]) -> int:
    """Return how many tokens a request may have so that the answer fits too."""
    asked = params.get("max_completion_tokens") or params.get("max_tokens")
    free = asked if isinstance(asked, int) else min(_MOST_KEPT_FREE, context_window // 4)
    return max(context_window - free, context_window // 4)


def fits(messages: Sequence[Message], tools: Sequence[ToolSpec] | None, room: int) -> bool:
    """Say whether a request stays within `room` tokens, by estimate."""
    return estimate_tokens(list(messages), list(tools or ()) or None) <= room


def trimmed(messages: Sequence[Message], tools: Sequence[ToolSpec] | None, room: int, func_name: str) -> list[Message]:
    """Leave out the oldest exchanges of a conversation until it fits.

    An exchange is a user message with all that follows it up to the next one, so a tool call never loses its
    result. The system prompt and the last exchange always stay.

    Args:
        messages: system prompt, history, new user message; not changed.
        tools: sent along.
        room: tokens.
        func_name: for the warning.
    """
    head = 1 if messages and messages[0]["role"] == "system" else 0
    # Messages before the first user message belong to the oldest exchange.
    starts = [number for number, message in enumerate(messages) if number >= head and message["role"] == "user"]
    # Each message is looked at once: a history may be long.
    taken = [estimate_tokens([message]) for message in messages]
    total = sum(taken) + estimate_tokens([], list(tools or ()) or None)
    begin = head
    for left_out, start in enumerate(starts):
        if left_out:
            total -= sum(taken[begin:start])
            begin = start
        if total <= room or start == starts[-1]:
            if left_out:
                push_warning(f"LLM Chat {func_name!r}: the {left_out} oldest exchanges do not fit and are left out.")
            return [*messages[:head], *messages[begin:]]
    return list(messages)
