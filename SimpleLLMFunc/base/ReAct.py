"""The one loop: ask the model, run the tools it calls, ask again, until there is an answer.

`model_turn` is the only place that asks "streaming or not?"; `react_events` is the only place that goes
round. Everything else in the library reads the events they produce.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

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
from SimpleLLMFunc.base.json_action import AnswerText
from SimpleLLMFunc.base.messages import build_assistant_response_message, copied, extract_usage_from_response
from SimpleLLMFunc.base.metadata import SentRequest
from SimpleLLMFunc.base.request import ModelRequest, Review, ToolMap, Toolset
from SimpleLLMFunc.base.run import JOURNAL, Journal, KeptReply, Run, RunIdentity, generate_trace_id
from SimpleLLMFunc.base.run.repetition import Repetition
from SimpleLLMFunc.base.run.review import AnyReview
from SimpleLLMFunc.base.run.streamed_reply import QuestionCharge, StreamedReply
from SimpleLLMFunc.base.tool_call import build_tool_messages, process_tool_calls
from SimpleLLMFunc.errors import (
    BadRequest,
    ContentBlocked,
    OutputTruncated,
    RunAborted,
    SimpleLLMFuncError,
    ToolCallLimitExceeded,
    UsageError,
)
from SimpleLLMFunc.interface.attempts import tell_downgrade, tell_failed_try
from SimpleLLMFunc.interface.body_json import text_size
from SimpleLLMFunc.interface.llm_interface import LLM_Interface, load_prices, priced, require_prices
from SimpleLLMFunc.interface.spending import count_request, is_limited
from SimpleLLMFunc.interface.wires import answer_in, chunk_of_reply, put_right
from SimpleLLMFunc.logger import async_log_context, count_tokens
from SimpleLLMFunc.runtime import off_loop_if_large
from SimpleLLMFunc.tools import Caller
from SimpleLLMFunc.type import NO_USAGE, ChatCompletion, ChatCompletionChunk, Message, ToolSpec, Usage

TurnEvents: TypeAlias = AsyncGenerator[TurnStarted | ReplyDelta | ReplyReceived | MessageAppended, None]
"""What happens while the model is asked once."""

_PAUSED = "pause_turn"
"""The service paused while it ran its own tools. It goes on when it gets its reply back: a round without calls."""

_EARLY = "Not accepted yet: read the results of the other calls first, then call this again, alone."
"""To an answer given with other calls: it was written before their results were known."""


async def react_events(
    request: ModelRequest, tools: Toolset | None = None, review: Review | None = None, run: Run | None = None
) -> AsyncGenerator[ReActEvent, None]:
    """Yield the facts of one run, `RunFinished` last; `run` takes each of them in before.

    When a run breaks off while an answer arrives, `MessageAppended` tells of the part that had come before the
    error is raised.

    Args:
        request: what is sent first, and to which model. Its messages are copied, never changed.
        tools: what runs when the model calls a tool; a pause of the service is a round too. After the last round the
            model gets one turn without tools, and so does a model that makes the same calls again and again; see
            `Repetition`.
        review: may send the model back to work, and may change a request that the service refused; see `Review`.
        run: whose limits hold. A stream of it adds `ReplyDelta` events.

    Raises:
        ProviderError: the service failed or refused.
        ContentBlocked: the answer was blocked, or the model refused.
        OutputTruncated: a reply of tool calls alone was cut.
        ToolCallLimitExceeded: the turn without tools called a tool again.
        DeadlineExceeded: the deadline of the run passed.
        RunAborted: the abort signal of the run was set.
        ToolFailed: a tool failed and the policy says "raise".
    """
    run, tools, given = run or Run(), tools or Toolset(), request.messages
    history, shown = await off_loop_if_large(text_size(given), lambda: (copied(given), copied(given)))
    # What leaves here is copied (`ModelRequest.wire`, the events, the review); those who watch see the request itself.
    request = request.with_messages(list(history))
    run.asks(request)
    turn, rounds, opening = 1, 0, len(history)
    repetition = Repetition()
    yield run.tell(RunStarted(run.trace_id, shown))
    while True:
        is_last = rounds >= tools.max_rounds or repetition.is_over
        request = tools.searched(request)
        yield run.tell(TurnStarted(turn, SentRequest(request, run.stream, is_last) if run.observer else None))
        try:
            async with aclosing(model_turn(run, request, turn, is_last=is_last)) as turn_events:
                async for event in turn_events:
                    yield run.tell(event)
        except BadRequest as error:
            refused, first = getattr(review, "refused", None), request.with_messages(request.messages[:opening])
            changed: ModelRequest | None = refused(error, first) if refused else None
            if changed is None:
                raise
            tell_failed_try(error, tries=error.tries, pause=0.0, model=request.llm.model_name)
            # The changed request, and all that has come since the first one.
            opened = copied(changed.messages)
            request = changed.with_messages([*opened, *request.messages[opening:]])
            history, opening = [*opened, *history[opening:]], len(opened)
            run.asks(request)
            continue  # the same turn, asked otherwise
        assert run.last is not None, "a turn ends with its reply"
        reply = _usable(run.last.reply, request.answer_name)
        if reply.tool_calls or reply.finish_reason == _PAUSED:
            if is_last:
                repeated = repetition.times if repetition.is_over else 0
                raise ToolCallLimitExceeded(tools.max_rounds, repeated=repeated).with_run(messages=history)
            rounds += 1
            grown: list[Message] = []
            async with aclosing(_tool_round(run, request, reply, tools, turn, repetition)) as round_events:
                async for round_event in round_events:
                    if isinstance(round_event, MessageAppended):
                        grown += copied([round_event.message])  # the event's own message is the consumer's
                    yield run.tell(round_event)
            request = request.with_messages(request.messages + grown)
            history = history + grown
        else:
            text = partial(str, reply.text)
            again = await run.limits.wait(review(reply, list(history)), "judging the answer", text) if review else None
            if again is None:
                reply = run.replaced or reply
                answer = build_assistant_response_message(reply)
                yield run.tell(MessageAppended(turn, *copied([answer])))
                yield run.tell(RunFinished(reply, [*history, answer], run.usage, turn, downgrades=run.downgrades))
                return
            request = request.with_messages(copied(again))
        turn += 1


def model_turn(run: Run, request: ModelRequest, turn: int, *, is_last: bool = False) -> TurnEvents:
    """Ask the model once: yield a `ReplyDelta` per chunk where it is streamed, then one `ReplyReceived`.

    `TurnStarted` again, among the chunks, means that the interface had to ask again: what was shown is void.
    `MessageAppended` tells of a part of an answer that broke off; the error follows.
    """
    asked = _asked_turn(run, request, turn, is_last=is_last)
    around = JOURNAL.get()
    return asked if around is None else _journaled_turn(run, request, turn, asked, around)


async def _asked_turn(run: Run, request: ModelRequest, turn: int, *, is_last: bool) -> TurnEvents:
    llm, limits = request.llm, run.limits
    started = time.monotonic()
    arguments = await off_loop_if_large(text_size(request.messages), lambda: request.wire(is_last=is_last))
    messages = arguments.pop("messages")
    if llm.wants_schema:
        arguments["wanted_schema"] = request.wanted_schema  # inside the process: no wire carries it
    arguments.update(trace_id=run.trace_id, deadline=limits.clock.left())
    limits.check("waiting for the model")  # after that look at the clock: no interface is given no time at all
    actions = request.actions
    expected = await _expected(llm, messages, arguments) if is_limited() else (0, 0.0)
    with QuestionCharge(llm, *expected) as settled:
        try:
            if run.stream:
                arrived = settled.arrived = StreamedReply(turn, AnswerText() if actions else None)
                stream = llm.chat_stream(messages, **arguments)
                async with aclosing(limits.each(stream, "receiving the answer", arrived.text_so_far)) as chunks:
                    async for chunk in chunks:
                        _check_answer(chunk, ChatCompletionChunk, llm)
                        if arrived.begins_anew(chunk):
                            yield TurnStarted(turn)  # the stream broke before any text
                        yield arrived.add(chunk)
                if held := arrived.held():
                    yield held
                reply = await priced(arrived.reply(), llm)
            else:
                answered = await limits.wait(llm.chat(messages, **arguments), "waiting for the model")
                _check_answer(answered, ChatCompletion, llm)
                reply = put_right(await priced(answered, llm))
            if actions:
                reply = await off_loop_if_large(len(reply.text), partial(actions.read, reply))
                # What only the whole reply showed to be the answer: a typed one, or plain prose.
                if settled.arrived and (rest := reply.text.removeprefix(settled.arrived.text_so_far())):
                    yield ReplyDelta(turn, rest, [], chunk_of_reply(reply.with_message(content=rest)))
            settled.reply = reply
            told = extract_usage_from_response(reply) or NO_USAGE
        except SimpleLLMFuncError as error:
            if begun := answer_in(getattr(error, "partial", "")):
                yield MessageAppended(turn, {"role": "assistant", "content": begun})
            raise
    count_tokens(told)
    yield ReplyReceived(turn, reply, told, time.monotonic() - started, reply)


def _check_answer(answer: object, kind: type, llm: LLM_Interface) -> None:
    """Return if a model gave what it has to; a class of the user's may give anything.

    Raises:
        UsageError: it did not.
    """
    if not isinstance(answer, kind):
        given = type(answer)
        raise UsageError(
            f"{type(llm).__name__} gave {given.__module__}.{given.__qualname__}, not {kind.__name__} of SimpleLLMFunc.type. "
            f"Write {kind.__name__}.from_dict(...) of the dictionary; an openai object has it as .model_dump()."
        )


async def _journaled_turn(run: Run, request: ModelRequest, turn: int, asked: TurnEvents, around: Journal) -> TurnEvents:
    """Yield a turn whose reply was kept, in one piece; else ask, and keep the reply before it is used."""
    if run.journal is None:  # a run without a decorated function is identified by its request
        known_by = [request.messages, request.tools, request.response_format, dict(request.params)]
        run.journal = await around.begin(RunIdentity(run.func_name, "", None, known_by), run.trace_id)
    kept = run.journal.reply()
    if kept is not None:
        reply = kept.reply
        run.output_mode, run.output_mode_reason = kept.output_mode, kept.output_mode_reason
        for what, said in kept.downgrades:
            tell_downgrade(what, said)
        if run.stream:
            yield StreamedReply(turn, None).add(chunk_of_reply(reply))
        told = replace(extract_usage_from_response(reply) or NO_USAGE, cost=0.0)
        yield ReplyReceived(turn, reply, told, 0.0, reply, replayed=True)
        return
    run.asks(request)  # an earlier reply may have been kept that was asked for in another way
    async with aclosing(asked):
        async for event in asked:
            if isinstance(event, ReplyReceived):
                answered = _answered(event.reply, request.answer_name)
                await run.journal.keep(KeptReply(answered, run.output_mode, run.output_mode_reason, run.downgrades))
            yield event


async def _expected(llm: LLM_Interface, messages: Sequence[Message], arguments: Mapping[str, Any]) -> tuple[int, float]:
    """Return an estimate of a request's input, in tokens and in USD; called only if there is a limit.

    Raises:
        ConfigError: there is a limit in USD, and the price is not known.
    """
    tokens = await count_request(messages, arguments["tools"], arguments["response_format"])
    if not is_limited("usd"):
        await load_prices(llm)  # what the answer takes is told to the budget, also where it fails
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
    run = Run(stream=stream)
    request = ModelRequest(llm_interface, messages, tools, params=llm_kwargs)
    toolset = Toolset(tool_map, tools, max_rounds=max_tool_calls)
    events = react_events(request, toolset, AnyReview(run, toolset), run)
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
            if isinstance(event, MessageAppended):
                messages.append(event.message)
            elif isinstance(event, RunStarted) and not messages:
                messages += event.messages
            elif isinstance(event, ReplyDelta if stream else ReplyReceived):
                yield event.raw


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
    reply = _answered(reply, answer_name)
    calls = reply.tool_calls
    if calls and reply.finish_reason == "length":
        if not reply.text.strip():
            raise OutputTruncated(partial=calls[-1].function.arguments)
        return reply.with_message(content=message.content)
    return reply


def _answered(reply: ChatCompletion, answer_name: str | None) -> ChatCompletion:
    """Return the reply with the arguments of the answer tool as its text, where it calls nothing else."""
    calls = reply.tool_calls
    answers = [call for call in calls if call.function.name == answer_name] if answer_name else []
    if not calls or len(answers) < len(calls):
        return reply
    # Two answers that differ are ambiguous: the review reads them one after the other and refuses.
    return reply.with_message(content="\n".join(dict.fromkeys(call.function.arguments for call in answers)))


async def _tool_round(
    run: Run, request: ModelRequest, reply: ChatCompletion, tools: Toolset, turn: int, repetition: Repetition
) -> AsyncGenerator[MessageAppended | ToolCallStarted | ToolCallProgress | ToolCallFinished, None]:
    """Run the calls of one reply and yield what happens; every call gets exactly one result message."""
    yield MessageAppended(turn, build_assistant_response_message(reply))
    if not reply.tool_calls:
        return  # a pause
    calls = [call for call in reply.tool_calls if call.function.name != request.answer_name]
    are_run = repetition.begins(calls)
    events = (
        process_tool_calls(
            calls,
            tools.tool_map,
            turn,
            policy=tools.policy,
            trace_id=run.trace_id,
            func_name=run.func_name,
            journal=run.journal,
            caller=Caller(request.llm, partial(_beside, request.llm), None),
        )
        if are_run
        else repetition.told(calls, turn, tools.policy)
    )
    finished: dict[str, ToolCallFinished] = {}
    try:
        async with aclosing(run.limits.each(events, "running a tool")) as timely:
            async for event in timely:
                yield event
                if isinstance(event, ToolCallFinished):
                    finished[event.call.id] = event
    except RunAborted:
        # The history stays usable: a call without its result would be refused by every provider.
        for message in _results(reply, turn, finished, "The run was aborted."):
            yield MessageAppended(turn, message)
        raise
    if are_run:
        repetition.ends(finished.values())
    for message in _results(reply, turn, finished, _EARLY):
        yield MessageAppended(turn, message)


async def _beside(llm: LLM_Interface, name: str, messages: list[Message], params: Mapping[str, Any]) -> ChatCompletion:
    """Ask the model what a tool wants to know, in a run of that name."""
    run = Run(name, generate_trace_id(name))
    request = ModelRequest(llm, messages, params=params)
    async with async_log_context(run.trace_id, name), run, aclosing(react_events(request, run=run)) as events:
        async for event in events:
            if isinstance(event, RunFinished):
                return event.reply
    raise AssertionError("a run without an end")


def _results(
    reply: ChatCompletion, turn: int, finished: Mapping[str, ToolCallFinished], otherwise: str
) -> list[Message]:
    """Return the messages that answer the calls of a reply: exactly one result each, `otherwise` for a call without one."""
    in_order = [
        finished.get(call.id) or ToolCallFinished(turn, call, otherwise, failed=True, seconds=0.0)
        for call in reply.tool_calls
    ]
    return build_tool_messages(in_order)
