"""Step 5 of `@llm_function` while the answer arrives: growing values, and items one by one."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Any

from SimpleLLMFunc.base.events import ReActEvent, ReplyDelta, TurnStarted
from SimpleLLMFunc.base.parsing import ItemReader, PartialReader, QuoteCheck, is_equal
from SimpleLLMFunc.base.run import check_quotes, read_off_loop
from SimpleLLMFunc.base.schemas import ANSWER_TOOL, OutputSpec
from SimpleLLMFunc.errors import ResponseParseError, RunAborted, StreamInterrupted, counted
from SimpleLLMFunc.llm_decorator.steps.common.run import FunctionRun
from SimpleLLMFunc.llm_decorator.steps.function.prompt import FunctionParts
from SimpleLLMFunc.runtime import off_loop_if_large

_NOTHING = object()


class _AnswerPieces:
    """The text of the answer in a chunk: the content, or the arguments of the answer tool."""

    def __init__(self, *, in_tool: bool) -> None:
        self._in_tool = in_tool
        self._index: int | None = None
        self._has_begun = False

    def of(self, delta: ReplyDelta) -> str:
        if not self._in_tool:
            return delta.text
        text = ""
        for call in delta.tool_calls:
            if call.name is not None:
                self._has_begun, self._index = call.name == ANSWER_TOOL, call.index
            if self._has_begun and call.index in {self._index, None}:
                text += call.arguments or ""
        return text


async def growing_values(
    events: AsyncGenerator[ReActEvent, None], run: FunctionRun, parts: FunctionParts, *, is_held: bool
) -> AsyncGenerator[Any, None]:
    """Yield ever larger parts of the answer, and the complete value at last; for plain text each new piece.

    An answer that is asked for again starts over. An abort ends the stream. Where it `is_held`, the complete value alone
    is given out: a guard has to see it first.
    """
    output, reader, pieces = parts.output, None, None
    shown: Any = _NOTHING
    is_plain = False
    try:
        async with aclosing(events):
            async for event in events:
                if is_plain and isinstance(event, ReplyDelta):
                    if event.text:
                        yield event.text
                elif isinstance(event, TurnStarted) and not is_held:
                    pieces = _AnswerPieces(in_tool=run.output_mode == "tool")
                    is_plain = output.is_text and run.output_mode == "text"
                    # The beginning of a label may be that of another one.
                    is_whole = run.output_mode == "choice" or output.thinks
                    reader = (
                        None if is_whole else PartialReader(output, repair=parts.options.repair, mode=run.output_mode)
                    )
                elif isinstance(event, ReplyDelta) and reader and pieces:
                    for value in await read_off_loop(output, 0, partial(reader.feed, pieces.of(event))):
                        shown = value
                        yield value
    except RunAborted:
        return
    if not is_plain and run.parsed is not None:
        value = run.parsed.value
        # Of a quote that grew the place is not known, and it is equal all the same.
        is_new = bool(output.quotes) or type(value) is not type(shown)
        size = 0 if run.reply is None else len(run.reply.text)
        if is_new or not await off_loop_if_large(size, lambda: is_equal(value, shown)):
            yield value


async def list_items(
    events: AsyncGenerator[ReActEvent, None], run: FunctionRun, parts: FunctionParts, *, is_held: bool
) -> AsyncGenerator[Any, None]:
    """Yield each item of the answer as soon as it is complete and validated.

    After the first item nothing is asked again. Where it `is_held`, all come at the end: a guard has to see them first.

    Raises:
        ResponseParseError: an item does not fit, or the whole answer is not the list that was given out.
        StreamInterrupted: the stream started over after an item had been yielded.
    """
    output, reader, pieces = parts.output, None, None
    quotes = QuoteCheck(run.arguments) if output.quotes else None
    given: list[Any] = []
    try:
        async with aclosing(events):
            async for event in events:
                if isinstance(event, TurnStarted):
                    if given:
                        raise StreamInterrupted(
                            "", reason=f"the answer started over after {counted(len(given), 'item')}"
                        )
                    pieces = _AnswerPieces(in_tool=run.output_mode == "tool")
                    reader = None if is_held else ItemReader(output, repair=parts.options.repair, mode=run.output_mode)
                elif isinstance(event, ReplyDelta) and reader and pieces:
                    for item in await read_off_loop(output, 0, partial(reader.feed, pieces.of(event))):
                        if not await _is_quoted(item, len(given), output, quotes):
                            reader = None  # the review of the whole answer asks again
                            break
                        run.may_ask_again = False
                        given.append(item)
                        yield item
    except RunAborted:
        return
    if run.parsed is None:
        return
    items = list(run.parsed.value)
    size = 0 if run.reply is None else len(run.reply.text)
    if not await off_loop_if_large(size, lambda: is_equal(items[: len(given)], given, unclear=True)):
        violation = ("", "the items given out so far", "an answer that goes on as another list")
        raise ResponseParseError(run.reply.text if run.reply else "", output.return_type, [violation])
    for item in items[len(given) :]:
        yield item


async def _is_quoted(item: Any, number: int, output: OutputSpec, quotes: QuoteCheck | None) -> bool:
    """Whether the arguments contain the quotes of an item.

    Raises:
        ResponseParseError: they do not, and an item before this one was given out already.
    """
    try:
        await check_quotes(quotes, item, output.return_type, f"[{number}]")
    except ResponseParseError:
        if number:
            raise
        return False
    return True
