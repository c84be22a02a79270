"""The review of a typed answer: is this reply the answer, and if not, what is the model told?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from SimpleLLMFunc.base.events import Attempt
from SimpleLLMFunc.base.messages import extract_usage_from_response
from SimpleLLMFunc.base.parsing import SLOW, OutputMode, Parsed, RepairLevel, holds_reasoning, without_reasoning
from SimpleLLMFunc.base.run.record import RunRecord
from SimpleLLMFunc.base.schemas import OutputSpec
from SimpleLLMFunc.errors import EmptyResponseError, OutputTruncated, ResponseParseError, Violation, cut
from SimpleLLMFunc.logger import get_location, push_warning
from SimpleLLMFunc.runtime import in_thread
from SimpleLLMFunc.type import ChatCompletion, Message, Usage

if TYPE_CHECKING:  # loaded where a type has quotes
    from SimpleLLMFunc.base.parsing import QuoteCheck

__all__ = ["AnswerReview", "EmptyReview", "read_answer", "violations_text"]

SHOWN_ANSWER = 4_000
"""Characters of a bad answer that the model is shown again."""

_SHOWN_VIOLATIONS = 20

LARGE_ANSWER = 50_000
"""Characters above which an answer is read in a worker thread, so that the event loop goes on.

Well-formed JSON of that length takes a few milliseconds. What has to be mended takes twenty times as long: `SLOW`.
"""


async def read_answer(
    spec: OutputSpec, text: str, repair: RepairLevel = "coerce", *, mode: OutputMode | None = None
) -> Parsed[Any]:
    """Do what `OutputSpec.parse` does, in a worker thread where it would hold up the event loop.

    Raises:
        ResponseParseError: no one value fits.
    """
    if len(text) <= SLOW:
        return spec.parse(text, repair, mode=mode)
    if len(text) <= LARGE_ANSWER and (quick := spec.parse_quickly(text, mode=mode)) is not None:
        return quick
    return await in_thread(partial(spec.parse, text, repair, mode=mode))


class EmptyReview:
    """Asks again when the model answered with nothing; also notes every attempt.

    Args:
        record: of the run; the attempts are written there.
        retry_times: further attempts after an empty answer.

    Attributes:
        may_ask_again: set to False once a part of the answer was given out.
        only_reads: the messages that it is given stay as they are, so that the loop need not copy them first.
    """

    only_reads = True

    def __init__(self, record: RunRecord, retry_times: int) -> None:
        self.may_ask_again = True
        self.record = record
        self.retry_times = retry_times
        self._empty = 0

    async def __call__(self, reply: ChatCompletion, messages: list[Message]) -> list[Message] | None:
        """Accept the reply (None), or return what to ask next.

        Raises:
            OutputTruncated: nothing but a cut.
            EmptyResponseError: empty, and no further attempt is left.
        """
        text = reply.text
        is_slow = len(text) > LARGE_ANSWER or (len(text) > SLOW and holds_reasoning(text))
        said, _ = await in_thread(without_reasoning, text) if is_slow else without_reasoning(text)
        if said.strip():  # a model that only thought has not answered
            return await self.judge(reply, messages)
        self.note(reply)
        if reply.finish_reason == "length":
            raise OutputTruncated(partial=reply.text)
        self._empty += 1
        if self._empty > self.retry_times or not self.may_ask_again:
            raise EmptyResponseError(self.record.func_name, asked=self._empty)
        push_warning(f"{self.record.func_name!r} got an empty answer and asks again.", location=get_location())
        return messages

    async def judge(self, reply: ChatCompletion, messages: list[Message]) -> list[Message] | None:  # noqa: ARG002
        """Judge a reply that has text; here any is accepted."""
        self.note(reply)
        return None

    def note(self, reply: ChatCompletion, **found: Any) -> None:
        """Write down one attempt: what the model wrote and what was found in it."""
        last = self.record.last
        seconds = last.seconds if last else 0.0
        usage = last.usage if last else extract_usage_from_response(reply) or Usage()
        self.record.attempted(Attempt(reply.text, seconds=seconds, usage=usage, **found))


class AnswerReview(EmptyReview):
    """Reads the answer, and asks again with what did not fit.

    Args:
        record: of the run.
        retry_times: further attempts after an empty answer.
        spec: the wanted type.
        repair: how far an answer that is not strict JSON may be read.
        max_reasks: how often a bad answer may be sent back.
        description: the wanted type in words, for a model that has only seen its schema.
        quotes: looks for the quotes of an answer in the arguments; None where the type has none.

    Attributes:
        parsed: the accepted answer; None until there is one.
    """

    def __init__(
        self,
        record: RunRecord,
        retry_times: int,
        *,
        spec: OutputSpec,
        repair: RepairLevel,
        max_reasks: int,
        description: str,
        quotes: QuoteCheck | None = None,
    ) -> None:
        super().__init__(record, retry_times)
        self.spec = spec
        self.repair: RepairLevel = repair
        self.max_reasks = max_reasks
        self.description = description
        self.quotes = quotes
        self.parsed: Parsed[Any] | None = None
        self._reasked = 0

    async def __call__(self, reply: ChatCompletion, messages: list[Message]) -> list[Message] | None:
        """As `EmptyReview`; for `-> None` an empty answer is as good as any."""
        if self.spec.is_none:
            self.note(reply)
            self.parsed = self.record.parsed = Parsed(None)
            return None
        return await super().__call__(reply, messages)

    async def judge(self, reply: ChatCompletion, messages: list[Message]) -> list[Message] | None:
        """Read the answer; None if it fits, else what to ask next.

        Raises:
            OutputTruncated: the answer was cut; a cut answer is never read as a value.
            ResponseParseError: it does not fit, and may not be asked for again.
        """
        is_plain = self.spec.is_text and self.record.output_mode == "text"
        if reply.finish_reason == "length" and not is_plain:
            self.note(reply)
            raise OutputTruncated(partial=reply.text)
        try:
            parsed = await read_answer(self.spec, reply.text, self.repair, mode=self.record.output_mode)
            if self.quotes is not None:
                await self.check_quotes(parsed.value, text=reply.text)
            self.parsed = parsed
        except ResponseParseError as error:
            self.note(reply, violations=error.violations)
            if self._reasked >= self.max_reasks or not self.may_ask_again:
                raise
            self._reasked += 1
            return self._ask_again(reply.text, error, messages)
        self.record.parsed = self.parsed
        self.note(reply, repairs=self.parsed.repairs)
        return None

    async def check_quotes(self, value: Any, path: str = "", *, text: str = "") -> None:
        """Set the places of the quotes in a value.

        Args:
            value: the answer, or a part of it.
            path: where the part stands.
            text: the answer as it was written.

        Raises:
            ResponseParseError: one stands in no argument.
        """
        check = self.quotes
        if check is None:
            return
        is_slow = check.is_large or len(text) > SLOW
        if violations := await in_thread(check, value, path) if is_slow else check(value, path):
            raise ResponseParseError(text, self.spec.return_type, violations)

    def _ask_again(self, text: str, error: ResponseParseError, messages: list[Message]) -> list[Message]:
        push_warning(
            f"{self.record.func_name!r} got an answer that does not fit and asks again: {error}", get_location()
        )
        # In prompt mode the model has read the description already.
        description = "" if self.record.output_mode == "prompt" else self.description
        return [
            *messages,
            {"role": "assistant", "content": cut(text, SHOWN_ANSWER)},
            {"role": "user", "content": violations_text(error.violations, description)},
        ]


def violations_text(violations: Sequence[Violation], return_type_description: str = "") -> str:
    """Return the message that asks for the answer again: what did not fit, and the type where it is given."""
    lines = [
        f"- {path or 'the whole answer'}: expected {cut(expected, 200)}, got {cut(got, 200)}"
        for path, expected, got in violations[:_SHOWN_VIOLATIONS]
    ]
    if len(violations) > _SHOWN_VIOLATIONS:
        lines.append(f"- and {len(violations) - _SHOWN_VIOLATIONS} more")
    wanted = f"\n\nThe return value must be:\n{return_type_description}" if return_type_description else ""
    return (
        "Your answer could not be used:\n"
        + "\n".join(lines)
        + wanted
        + "\n\nAnswer again with the corrected return value alone."
    )
