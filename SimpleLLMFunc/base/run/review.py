"""The review of a typed answer: is this reply the answer, and if not, what is the model told?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from SimpleLLMFunc.base.events import Attempt
from SimpleLLMFunc.base.messages import extract_usage_from_response
from SimpleLLMFunc.base.parsing import OutputMode, Parsed, QuoteCheck, RepairLevel
from SimpleLLMFunc.base.request import ModelRequest, Toolset
from SimpleLLMFunc.base.run.guards import Guards
from SimpleLLMFunc.base.run.refusals import downgrades_of, json_actions, remember_refusal
from SimpleLLMFunc.base.run.run import Run
from SimpleLLMFunc.base.schemas import OutputSpec, compile_output
from SimpleLLMFunc.errors import (
    BadRequest,
    ContentBlocked,
    EmptyResponseError,
    OutputTruncated,
    ResponseParseError,
    Violation,
    cut,
)
from SimpleLLMFunc.interface.wires import refused_in
from SimpleLLMFunc.logger import get_location, push_warning
from SimpleLLMFunc.runtime import off_loop_if_large
from SimpleLLMFunc.tools import in_thread
from SimpleLLMFunc.type import ChatCompletion, Message, Usage

T = TypeVar("T")

SHOWN_ANSWER = 4_000
"""Characters of a bad answer that the model is shown again."""

_SHOWN_VIOLATIONS = 20


async def read_off_loop(spec: OutputSpec, size: int, read: Callable[[], T]) -> T:
    """Return ``read()``: in a thread where the text is long, or where validators of the user's may ask a model."""
    return await (in_thread(read) if spec.runs_code else off_loop_if_large(size, read))


async def read_answer(
    spec: OutputSpec, text: str, repair: RepairLevel = "coerce", *, mode: OutputMode | None = None
) -> Parsed[Any]:
    """Do what `OutputSpec.parse` does, where it does not hold up the event loop.

    Raises:
        ResponseParseError: no one value fits.
    """
    return await read_off_loop(spec, len(text), partial(spec.parse, text, repair, mode=mode))


@dataclass(eq=False, repr=False)
class AnyReview:
    """Takes any reply for the answer; notes every attempt.

    Attributes:
        run: the run; the attempts are written there.
        tools: of the run; a service that refuses them as native calls is offered JSON actions, where that is left to us.
    """

    run: Run
    tools: Toolset | None = None

    async def __call__(self, reply: ChatCompletion, messages: list[Message]) -> list[Message] | None:  # noqa: ARG002
        """Accept the reply (None), or return what to ask next."""
        self.note(reply)
        return None

    def refused(self, error: BadRequest, request: ModelRequest) -> ModelRequest | None:
        """Return what to begin with instead of a request that was not accepted; None to give up.

        What was refused is remembered for the model and these tools, so that it is asked otherwise at once.
        """
        tools, actions, refused = self.tools, request.actions, refused_in(error)
        if tools is None or not request.tools:
            return None
        if actions is None and refused == "tools" and tools.offered == "auto":
            remember_refusal(error, request.llm, "tools", tools.specs)
        elif actions is not None and actions.native and refused == "response_format":
            remember_refusal(error, request.llm, "native", tools.specs)
        else:
            return None
        request = replace(request, actions=json_actions(request.llm, tools.specs, None, tools.offered))
        return replace(request, downgrades=downgrades_of(request, tools.specs))

    def note(self, reply: ChatCompletion, **found: Any) -> None:
        """Write down one attempt: what the model wrote and what was found in it."""
        last = self.run.last
        seconds = last.seconds if last else 0.0
        usage = last.usage if last else extract_usage_from_response(reply) or Usage()
        thinking = reply.message.reasoning_content or ""
        self.run.attempts.append(Attempt(reply.text, seconds=seconds, usage=usage, thinking=thinking, **found))


@dataclass(eq=False, repr=False, kw_only=True)
class EmptyReview(AnyReview):
    """Asks again when the model answered with nothing, or a guard says so.

    Attributes:
        retry_times: further attempts after an empty answer.
        guards: judge the value.
        max_reasks: how often an answer may be sent back.
        description: the wanted type in words, for a model that has only seen its schema.
    """

    retry_times: int
    guards: Guards | None = None
    max_reasks: int = 2
    description: str = ""
    _empty: int = field(default=0, init=False)
    _reasked: int = field(default=0, init=False)

    async def __call__(self, reply: ChatCompletion, messages: list[Message]) -> list[Message] | None:
        """Accept the reply (None), or return what to ask next.

        Raises:
            OutputTruncated: nothing but a cut.
            EmptyResponseError: empty, and no further attempt is left.
        """
        if not self.is_empty(reply):
            return await self.judge(reply, messages)
        self.note(reply)
        if reply.finish_reason == "length":
            raise OutputTruncated(partial=reply.text)
        self._empty += 1
        if self._empty > self.retry_times or not self.run.may_ask_again:
            raise EmptyResponseError(self.run.func_name, asked=self._empty)
        push_warning(f"{self.run.func_name!r} got an empty answer and asks again.", location=get_location())
        return messages

    def is_empty(self, reply: ChatCompletion) -> bool:
        """Say whether the model answered with nothing; one that only thought has, and its thoughts stand elsewhere."""
        return not reply.text.strip()

    async def judge(self, reply: ChatCompletion, messages: list[Message]) -> list[Message] | None:
        """Judge a reply that has text; here any is accepted that the guards accept."""
        try:
            parsed = await self.guarded(reply, Parsed(reply.text), compile_output(str))
        except ResponseParseError as error:
            return self.rejected(reply, error, messages)
        if parsed.value != reply.text:
            self.run.replaced = reply.with_message(content=parsed.value)
        self.note(reply, repairs=parsed.repairs)
        return None

    async def guarded(self, reply: ChatCompletion, parsed: Parsed[Any], spec: OutputSpec) -> Parsed[Any]:
        """Return the value as the guards let it pass.

        Raises:
            ContentBlocked: a guard says so.
            ResponseParseError: a guard wants another answer.
        """
        if not self.guards:
            return parsed
        try:
            value, changes = await self.guards.value(parsed.value, self.run.arguments, reply.text, spec)
        except ContentBlocked as error:
            self.note(reply, violations=[("", "an answer that the guards accept", error.reason)])
            raise
        return Parsed(value, [*parsed.repairs, *self.run.changes, *changes])

    def rejected(self, reply: ChatCompletion, error: ResponseParseError, messages: list[Message]) -> list[Message]:
        """Return what to ask after an answer that does not fit.

        Raises:
            ResponseParseError: it may not be asked for again.
        """
        self.note(reply, violations=error.violations)
        if self._reasked >= self.max_reasks or not self.run.may_ask_again:
            raise error
        self._reasked += 1
        push_warning(f"{self.run.func_name!r} got an answer that does not fit and asks again: {error}", get_location())
        # In prompt mode the model has read the description already.
        description = "" if self.run.output_mode == "prompt" else self.description
        return [
            *messages,
            {"role": "assistant", "content": cut(reply.text, SHOWN_ANSWER)},
            {"role": "user", "content": violations_text(error.violations, description)},
        ]


@dataclass(eq=False, repr=False, kw_only=True)
class AnswerReview(EmptyReview):
    """Reads the answer, writes it into the run, and asks again with what did not fit.

    Attributes:
        spec: the wanted type.
        repair: how far an answer that is not strict JSON may be read.
        quotes: looks for the quotes of an answer in the arguments; None where the type has none.
    """

    spec: OutputSpec
    repair: RepairLevel
    quotes: QuoteCheck | None = None

    async def __call__(self, reply: ChatCompletion, messages: list[Message]) -> list[Message] | None:
        """As `EmptyReview`; for `-> None` an empty answer is as good as any."""
        if self.spec.is_none:
            self.note(reply)
            self.run.parsed = Parsed(None)
            return None
        return await super().__call__(reply, messages)

    async def judge(self, reply: ChatCompletion, messages: list[Message]) -> list[Message] | None:
        """Read the answer; None if it fits, else what to ask next.

        Raises:
            OutputTruncated: the answer was cut; a cut answer is never read as a value.
            ResponseParseError: it does not fit, and may not be asked for again.
        """
        if reply.finish_reason == "length" and not (self.spec.is_text and self.run.output_mode == "text"):
            self.note(reply)
            raise OutputTruncated(partial=reply.text)
        try:
            parsed = await self.read(reply)
            await check_quotes(self.quotes, parsed.value, self.spec.return_type, text=reply.text)
            parsed = await self.guarded(reply, parsed, self.spec)
        except ResponseParseError as error:
            return self.rejected(reply, error, messages)
        self.run.parsed = parsed
        self.note(reply, repairs=parsed.repairs)
        return None

    async def read(self, reply: ChatCompletion) -> Parsed[Any]:
        """Return the value that a reply holds.

        Raises:
            ResponseParseError: no one value fits.
        """
        return await read_answer(self.spec, reply.text, self.repair, mode=self.run.output_mode)


async def check_quotes(
    check: QuoteCheck | None, value: Any, return_type: Any, path: str = "", *, text: str = ""
) -> None:
    """Set the places of the quotes in a value.

    Args:
        check: looks for them in the arguments; None where the type has none.
        value: the answer, or a part of it.
        return_type: of the answer.
        path: where the part stands.
        text: the answer as it was written.

    Raises:
        ResponseParseError: one is in no argument.
    """
    if check is None:
        return
    if violations := await off_loop_if_large(check.size + len(text), partial(check, value, path)):
        raise ResponseParseError(text, return_type, violations)


def violations_text(violations: Sequence[Violation], return_type_description: str = "") -> str:
    """Return the message that asks for the answer again: what did not fit, and the type where it is given."""
    lines = [
        f"- {path or 'the whole answer'}: expected {cut(expected, 200)}, got {cut(got, 200)}"
        for path, expected, got in violations[:_SHOWN_VIOLATIONS]
    ]
    if len(violations) > _SHOWN_VIOLATIONS:
        lines.append(f"- and {len(violations) - _SHOWN_VIOLATIONS} more")
    wanted = f"\n\nThe return value must be:\n{return_type_description}" if return_type_description else ""
    told = "\n".join(lines)
    return f"Your answer could not be used:\n{told}{wanted}\n\nAnswer again with the corrected return value alone."
