"""The one loop: ask the model, run the tools it calls, ask again, until there is an answer.

`model_turn` is the only place that asks "streaming or not?"; `react_events` is the only place that goes
round. Everything else in the library reads the events they produce.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from SimpleLLMFunc.base.events import (
    MessageAppended,
    ReActEvent,
    ReplyDelta,
    ReplyReceived,
    RunFinished,
    RunStarted,
    ToolCallFinished,
    ToolCallProgress,
    ToolCallStarted,
    TurnStarted,
)
from SimpleLLMFunc.base.json_action import AnswerText, JsonActions, read_actions
from SimpleLLMFunc.base.messages import build_assistant_response_message, copied, extract_usage_from_response
from SimpleLLMFunc.base.request import ModelRequest, Refused, Review, ToolMap, ToolPolicy
from SimpleLLMFunc.base.run import Abort, Arrived, Limits, Settled, current_watch
from SimpleLLMFunc.base.tool_call import build_tool_messages, process_tool_calls
from SimpleLLMFunc.errors import (
    BadRequest,
    ContentBlocked,
    OutputTruncated,
    RunAborted,
    SimpleLLMFuncError,
    ToolCallLimitExceeded,
)
from SimpleLLMFunc.interface.attempts import tell_failed_try
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.spending import Deadline, count_request, is_limited, priced, require_prices
from SimpleLLMFunc.interface.wires import answer_in, chunk_of_reply, without_thoughts
from SimpleLLMFunc.logger import count_tokens
from SimpleLLMFunc.type import NO_USAGE, ChatCompletion, Message, ToolSpec, Usage

__all__ = ["execute_llm", "model_turn", "raw_response", "raw_responses", "react_events"]

_POLICY = ToolPolicy()
_EARLY = "Not accepted yet: read the results of the other calls first, then call this again, alone."
"""To an answer given beside other calls: it was written before their results were known."""


async def react_events(
    llm: LLM_Interface,
    messages: Sequence[Message],
    tools: Sequence[ToolSpec] | None = None,
    tool_map: ToolMap | None = None,
    *,
    max_tool_calls: int = 5,
    stream: bool = False,
    review: Review | None = None,
    refused: Refused | None = None,
    response_format: dict[str, Any] | None = None,
    answer_tool: ToolSpec | None = None,
    actions: JsonActions | None = None,
    params: Mapping[str, Any] | None = None,
    policy: ToolPolicy | None = None,
    deadline: Deadline | None = None,
    abort: Abort | None = None,
    trace_id: str = "",
    func_name: str = "",
    is_shared: bool = True,
) -> AsyncGenerator[ReActEvent, None]:
    """Yield the facts of one run, `RunFinished` last.

    When a run breaks off while an answer arrives, `MessageAppended` tells of the part that had come before the
    error is raised.

    Args:
        llm: the model.
        messages: the conversation so far; copied, never changed.
        tools: what the model may call, in wire form.
        tool_map: what runs, by the name on the wire.
        max_tool_calls: rounds; the calls of one reply are one round. After the last round the model gets
            one turn without tools. 0 offers none.
        stream: ask for the reply in pieces; adds `ReplyDelta` events.
        review: may send the model back to work; see `Review`.
        refused: may change a request that the provider did not accept; see `Refused`.
        response_format: the shape of the answer, in the provider's form.
        answer_tool: a tool whose arguments are the answer; offered in every turn, never run.
        actions: offer the tools as JSON actions, to a model that cannot call them.
        params: go to the provider as they are.
        policy: how tools run.
        deadline: for the whole run.
        abort: ends the run when it is set.
        trace_id: of the run.
        func_name: for messages and tools.
        is_shared: somebody else holds `messages`, or what the events hold, and might change it; else nothing is copied.

    Raises:
        ProviderError: the service failed or refused.
        ContentBlocked: the answer was blocked, or the model refused.
        OutputTruncated: a reply of tool calls alone was cut.
        ToolCallLimitExceeded: the turn without tools called a tool again.
        DeadlineExceeded: `deadline` passed.
        RunAborted: `abort` was set.
        ToolFailed: a tool failed and the policy says "raise".
    """
    limits, watch = Limits.of(deadline, abort), current_watch()
    kept: Callable[[Sequence[Message]], list[Message]] = copied if is_shared or watch else list
    messages = history = copied(messages) if is_shared else list(messages)  # what was given is not kept beside it
    # What leaves here is copied (`ModelRequest.wire`, the events, the review); those who watch see the request itself.
    request = ModelRequest(
        list(history) if watch else history,
        list(tools or ()) or None,
        response_format,
        params or {},
        answer_tool,
        actions,
    )
    usage, turn, rounds, opening = NO_USAGE, 1, 0, len(history)
    yield RunStarted(trace_id, kept(history))
    while True:
        is_last = rounds >= max_tool_calls
        yield TurnStarted(turn, watch.sent(llm, request, stream=stream, is_last=is_last) if watch else None)
        received: ReplyReceived | None = None
        try:
            turn_events = model_turn(
                llm, request, turn, stream=stream, is_last=is_last, limits=limits, trace_id=trace_id
            )
            try:
                async for event in turn_events:
                    yield event
                    if isinstance(event, ReplyReceived):
                        received = event
                    del event  # not kept while the next one is waited for
            finally:
                await turn_events.aclose()
        except BadRequest as error:
            if refused is None or (changed := refused(error, request)) is None:
                raise
            tell_failed_try(error, tries=error.tries, pause=0.0, model=llm.model_name)
            history, opening = _reopened(history, opening, request, changed)
            request = changed
            continue  # the same turn, asked otherwise
        assert received is not None, "a turn ends with its reply"
        usage += received.usage
        reply = _usable(received.reply, request.answer_name)
        if reply.tool_calls:
            if is_last:
                raise ToolCallLimitExceeded(max_tool_calls).with_run(messages=history)
            rounds += 1
            grown: list[Message] = []
            async with aclosing(
                _tool_round(
                    reply, tool_map or {}, turn, request.answer_name, policy or _POLICY, limits, trace_id, func_name
                )
            ) as round_events:
                async for round_event in round_events:
                    if type(round_event) is MessageAppended:
                        grown += kept([round_event.message])  # the event's own message is the consumer's
                    yield round_event
            request = request.with_messages(request.messages + grown)
            history = history + grown
        else:
            again = await _judged(reply, history, review) if review else None
            if again is None:
                answer = build_assistant_response_message(reply)
                yield MessageAppended(turn, *kept([answer]))
                yield RunFinished(reply, [*history, answer], usage, turn)
                return
            request = request.with_messages(copied(again))
        turn += 1


def _reopened(
    history: list[Message], opening: int, request: ModelRequest, changed: ModelRequest
) -> tuple[list[Message], int]:
    """Return the conversation with the opening of the changed request, and how many messages that has.

    It goes on from there with what has come since: a re-ask shows the new opening too.
    """
    renewed = len(changed.messages) - len(request.messages) + opening
    return [*copied(changed.messages[:renewed]), *history[opening:]], renewed


async def _judged(reply: ChatCompletion, history: list[Message], review: Review) -> list[Message] | None:
    """Return what the review says; one that only reads the conversation needs no copy of it."""
    return await review(reply, history if getattr(review, "only_reads", False) else copied(history))


async def model_turn(
    llm: LLM_Interface,
    request: ModelRequest,
    turn: int,
    *,
    stream: bool,
    is_last: bool = False,
    limits: Limits | None = None,
    trace_id: str = "",
) -> AsyncGenerator[TurnStarted | ReplyDelta | ReplyReceived | MessageAppended, None]:
    """Ask the model once: yield a `ReplyDelta` per chunk where it is streamed, then one `ReplyReceived`.

    `TurnStarted` again, among the chunks, means that the interface had to begin anew: what was shown is void.
    `MessageAppended` tells of a part of an answer that broke off; the error follows.
    """
    limits = limits or Limits.of(None)
    started = time.monotonic()
    arguments = request.wire(llm, is_last=is_last, shares=llm.only_reads_messages)
    messages = arguments.pop("messages")
    arguments.update(trace_id=trace_id, deadline=limits.clock.left())
    limits.check("waiting for the model")  # after that look at the clock: no interface is given no time at all
    actions = request.actions
    expected = await _expected(llm, messages, arguments) if is_limited() else (0, 0.0)
    with Settled(llm, *expected) as settled:
        try:
            raw: Any
            if stream:
                arrived = settled.arrived = Arrived(turn, AnswerText() if actions else None)
                chunks = limits.each(
                    llm.chat_stream(messages, **arguments), "receiving the answer", arrived.text_so_far
                )
                del messages, arguments  # not kept while the model answers
                try:
                    async for chunk in chunks:
                        if arrived.begins_anew(chunk):
                            yield TurnStarted(turn)  # the stream broke before any text
                        yield arrived.add(chunk)
                        del chunk
                finally:
                    await chunks.aclose()
                if held := arrived.held():
                    yield held
                raw = reply = await priced(arrived.reply(), llm)
                if actions:
                    raw = reply = await read_actions(actions, reply)
                    # What only the whole reply showed to be the answer: a typed one, or plain prose.
                    if rest := reply.text.removeprefix(arrived.text_so_far()):
                        yield ReplyDelta(turn, rest, [], chunk_of_reply(reply.with_message(content=rest)))
            else:
                waiting = limits.wait(llm.chat(messages, **arguments), "waiting for the model")
                del messages, arguments  # not kept while the model answers
                raw = reply = without_thoughts(await priced(await waiting, llm))
                if actions:
                    raw = reply = await read_actions(actions, reply)
            settled.reply = reply
            told = extract_usage_from_response(reply) or NO_USAGE
        except SimpleLLMFuncError as error:
            if partial := answer_in(getattr(error, "partial", "")):
                yield MessageAppended(turn, {"role": "assistant", "content": partial})
            raise
    count_tokens(told)
    yield ReplyReceived(turn, reply, told, time.monotonic() - started, raw)


async def _expected(llm: LLM_Interface, messages: Sequence[Message], arguments: Mapping[str, Any]) -> tuple[int, float]:
    """Return what a request will probably read, in tokens and in USD, where somebody limits that.

    Raises:
        ConfigError: there is a limit in USD, and the price is not known.
    """
    tokens = await count_request(messages, arguments["tools"], arguments["response_format"])
    if not is_limited("usd"):
        return tokens, 0.0
    await require_prices(llm)
    return tokens, llm.price(Usage(input_tokens=tokens)) or 0.0


async def execute_llm(
    llm_interface: LLM_Interface,
    messages: list[Message],
    tools: list[ToolSpec] | None,
    tool_map: ToolMap,
    max_tool_calls: int,
    stream: bool = False,
    **llm_kwargs: Any,
) -> AsyncGenerator[Any, None]:
    """Yield the raw responses of a run: whole replies, or chunks when streaming.

    The list given as `messages` grows by what the run adds: tool rounds and the answer.
    """
    events = react_events(
        llm_interface, messages, tools, tool_map, max_tool_calls=max_tool_calls, stream=stream, params=llm_kwargs
    )
    async with aclosing(raw_responses(events, messages, stream=stream)) as responses:
        async for response in responses:
            yield response


async def raw_responses(
    events: AsyncGenerator[ReActEvent, None], messages: list[Message], *, stream: bool
) -> AsyncGenerator[Any, None]:
    """Yield the raw response of each reply, or of each chunk when streaming, and let `messages` grow with the run.

    An empty list also takes what the run began with.
    """
    async with aclosing(events):
        async for event in events:
            response = raw_response(event, messages, stream=stream)
            if response is not None:
                yield response


def raw_response(event: ReActEvent, messages: list[Message], *, stream: bool) -> Any:
    """Return what `raw_responses` yields at an event, None for nothing, and let `messages` grow by it."""
    if isinstance(event, MessageAppended):
        messages.append(event.message)
    elif isinstance(event, RunStarted) and not messages:
        messages += event.messages
    elif isinstance(event, ReplyDelta if stream else ReplyReceived):
        return event.raw
    return None


def _usable(reply: ChatCompletion, answer_name: str | None) -> ChatCompletion:
    """Return the reply as the loop may use it: cut calls dropped, the answer tool's arguments as its text.

    Raises:
        ContentBlocked: the service blocked it, or the model refused.
        OutputTruncated: nothing but tool calls, and they were cut.
    """
    message = reply.message
    if message.refusal:
        raise ContentBlocked(message.refusal, partial=reply.text)
    if reply.finish_reason == "content_filter":
        raise ContentBlocked(partial=reply.text)
    calls = reply.tool_calls
    if not calls:
        return reply
    answers = [call for call in calls if call.function.name == answer_name] if answer_name else []
    if len(answers) == len(calls):
        text = answers[0].function.arguments if len({call.function.arguments for call in answers}) == 1 else None
        # Two answers that differ are none: the review reads them one after the other and refuses.
        text = text if text is not None else "\n".join(call.function.arguments for call in answers)
        return reply.with_message(content=text)
    if reply.finish_reason == "length":
        if not reply.text.strip():
            raise OutputTruncated(partial=calls[-1].function.arguments)
        return reply.with_message(content=message.content)
    return reply


async def _tool_round(
    reply: ChatCompletion,
    tool_map: ToolMap,
    turn: int,
    answer_name: str | None,
    policy: ToolPolicy,
    limits: Limits,
    trace_id: str,
    func_name: str,
) -> AsyncGenerator[MessageAppended | ToolCallStarted | ToolCallProgress | ToolCallFinished, None]:
    """Run the calls of one reply and yield what happens; every call gets exactly one result message."""
    yield MessageAppended(turn, build_assistant_response_message(reply))
    events = process_tool_calls(
        [call for call in reply.tool_calls if call.function.name != answer_name],
        tool_map,
        turn,
        trace_id=trace_id,
        func_name=func_name,
        on_tool_error=policy.on_tool_error,
        max_result_chars=policy.max_result_chars,
        confirm=policy.confirm,
        context_value=policy.context,
        words=policy.words,
    )
    timely = limits.each(events, "running a tool")
    finished: dict[str, ToolCallFinished] = {}
    try:
        try:
            async for event in timely:
                yield event
                if type(event) is ToolCallFinished:
                    finished[event.call.id] = event
        finally:
            await timely.aclose()
    except RunAborted:
        # The history stays usable: a call without its result would be refused by every provider.
        for message in _results(reply, turn, finished, "The run was aborted."):
            yield MessageAppended(turn, message)
        raise
    for message in _results(reply, turn, finished, _EARLY):
        yield MessageAppended(turn, message)


def _results(
    reply: ChatCompletion, turn: int, finished: Mapping[str, ToolCallFinished], otherwise: str
) -> list[Message]:
    """Return the messages that answer the calls of a reply: exactly one result each, `otherwise` where there is none."""
    in_order = [
        finished.get(call.id) or ToolCallFinished(turn, call, otherwise, failed=True, seconds=0.0)
        for call in reply.tool_calls
    ]
    return build_tool_messages(in_order)
