"""A reply while it arrives, and what it took, for the budgets around it."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

from SimpleLLMFunc import errors
from SimpleLLMFunc.base.events import ReplyDelta
from SimpleLLMFunc.base.json_action import AnswerText
from SimpleLLMFunc.base.messages import extract_usage_from_response
from SimpleLLMFunc.interface.http import Silence
from SimpleLLMFunc.interface.llm_interface import LLM_Interface, answering_models
from SimpleLLMFunc.interface.spending import Charge, charge_question, estimate_text_tokens
from SimpleLLMFunc.interface.wires import ReplyAssembler, StreamedThoughts
from SimpleLLMFunc.type import NO_USAGE, ChatCompletion, ChatCompletionChunk, Usage


class StreamedReply:
    """A streamed reply as far as it has arrived.

    Args:
        turn: of the reply.
        answer: finds the answer in the text, where that is a JSON action.

    Attributes:
        restarts: how often the reply was asked for again because the stream broke.
    """

    def __init__(self, turn: int, answer: AnswerText | None) -> None:
        self._turn = turn
        self._answer = answer
        self._assembler = ReplyAssembler()
        self._thoughts = StreamedThoughts()
        self._tries = 0
        self.restarts = 0

    def begins_anew(self, chunk: ChatCompletionChunk) -> bool:
        """Whether the next chunk is the first one of another try."""
        before, self._tries = self._tries, chunk.tries
        if not 0 < before < chunk.tries:
            return False
        self.restarts += 1
        return True

    def add(self, chunk: ChatCompletionChunk) -> ReplyDelta:
        """Take the next chunk; return what it shows."""
        return self._shown(self._thoughts.apart(chunk))

    def held(self) -> ReplyDelta | None:
        """Return what only the end of the stream shows to be text; None for nothing."""
        rest = self._thoughts.rest()
        return self._shown(rest) if rest else None

    def _shown(self, chunk: ChatCompletionChunk) -> ReplyDelta:
        self._assembler.add(chunk)
        if self._answer:
            chunk = chunk.with_text(self._answer.feed(chunk.text))
        delta = chunk.delta
        calls = delta.tool_calls
        thinking = delta.reasoning_content or ""
        return ReplyDelta(self._turn, delta.content or "", list(calls) if calls else [], chunk, thinking)

    def text_so_far(self) -> str:
        """Return the text of the answer so far; an action is not part of it."""
        return self._answer.given if self._answer else self._assembler.text

    def reply(self) -> ChatCompletion:
        """Return the reply put together."""
        return self._assembler.completion()

    def begun(self) -> ChatCompletion | None:
        """Return the reply as far as it has arrived, None where nothing has."""
        return self.reply() if self._tries or self._assembler.has_answer else None


class QuestionCharge:
    """Charges the budgets for a question, and settles what it has taken, however it ends.

    Answered, broken off, left, or never sent: where the service does not tell, an estimate counts. A limit that counted
    nothing there would be none.

    Args:
        llm: the model.
        tokens: what the question will probably read.
        usd: what reading that will cost.

    Entering it raises:
        BudgetExceeded: nothing may be sent.

    Attributes:
        arrived: the reply that is being streamed.
        reply: the whole one.
    """

    def __init__(self, llm: LLM_Interface, tokens: int, usd: float) -> None:
        self._charge = charge_question(tokens, usd, is_late=llm.keeps_answers)
        self._llm = llm
        self.arrived: StreamedReply | None = None
        self.reply: ChatCompletion | None = None

    def __enter__(self) -> Self:
        self._charge.__enter__()
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        try:
            if self._charge.scopes:
                self._settle(self._charge, error)
        finally:
            self._charge.__exit__()

    def _settle(self, charge: Charge, error: BaseException | None) -> None:
        reply = self.reply or (self.arrived.begun() if self.arrived else None)
        if reply is None:
            was_sent = self._was_sent(charge, error)
            lost = self._priced(Usage(charge.tokens)) if was_sent and _was_read(error) else None
            charge.settle(lost, was_sent=was_sent)
        elif reply.cached:
            # What came from a cache was read and written once, when it was paid.
            charge.settle(None, was_sent=False)
        else:
            charge.settle(self._taken(charge, reply))

    def _was_sent(self, charge: Charge, error: BaseException | None) -> bool:
        """Whether a request has left."""
        if not charge.prepaid:
            return True
        if all(model.pays_requests for model in answering_models(self._llm)):
            return False  # it waited for its turn, or for the service to be there again
        # Of other models it is not known; where our own rules were broken, mostly none has.
        return not isinstance(error, errors.UsageError) or error.tries > 0

    def _taken(self, charge: Charge, reply: ChatCompletion) -> Usage:
        taken = extract_usage_from_response(reply) or NO_USAGE
        if not taken.total_tokens:
            message = reply.message
            calls = "".join(call.function.arguments for call in message.tool_calls or ())
            written = estimate_text_tokens(f"{message.reasoning_content or ''}{reply.text}{calls}")
            taken = Usage(charge.tokens, written, cost=taken.cost)
        taken = self._priced(taken)
        if self.arrived and self.arrived.restarts:
            # Streams that broke before their first text were read too, and told nothing.
            taken += self._priced(Usage(charge.tokens * self.arrived.restarts))
        return taken

    def _priced(self, usage: Usage) -> Usage:
        return usage if usage.cost is not None else replace(usage, cost=self._llm.price(usage))


def _was_read(error: BaseException | None) -> bool:
    """Whether a request without a reply was probably read: its end was not waited for, or the reply could not be used.

    A service that refuses, or is not there, takes nothing.
    """
    if not isinstance(error, errors.SimpleLLMFuncError):
        return not isinstance(error, Exception)  # cancelled, closed, interrupted
    ends = (errors.BadReply, errors.DeadlineExceeded, errors.RunAborted, errors.StreamInterrupted)
    return isinstance(error, ends) or isinstance(error.__cause__, Silence)
