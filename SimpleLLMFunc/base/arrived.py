"""A reply while it arrives, and what it took, for the budgets around it."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

from SimpleLLMFunc.base.events import ReplyDelta
from SimpleLLMFunc.base.json_action import AnswerText
from SimpleLLMFunc.base.messages import extract_usage_from_response
from SimpleLLMFunc.errors import (
    BadReply,
    DeadlineExceeded,
    RunAborted,
    SimpleLLMFuncError,
    StreamInterrupted,
    UsageError,
)
from SimpleLLMFunc.interface.budget import Charge
from SimpleLLMFunc.interface.dialect import ReplyAssembler
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.patience import Silence
from SimpleLLMFunc.interface.thoughts import StreamedThoughts
from SimpleLLMFunc.interface.tokens import estimate_text_tokens
from SimpleLLMFunc.type.completion import ChatCompletion, ChatCompletionChunk
from SimpleLLMFunc.type.usage import NO_USAGE, Usage

__all__ = ["Arrived", "Settled"]


class Arrived:
    """A streamed reply as far as it has arrived, its reasoning apart, whatever interface it comes from.

    Args:
        turn: of the reply.
        answer: finds the answer in the text, where that is a JSON action.

    Attributes:
        restarts: how often the reply began anew because the stream broke.
    """

    __slots__ = ("_answer", "_assembler", "_thoughts", "_tries", "_turn", "restarts")

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
        return ReplyDelta(self._turn, delta.content or "", list(delta.tool_calls or ()), chunk)

    def text_so_far(self) -> str:
        """Return the text of the answer so far; what has arrived of an action is none."""
        return self._answer.given if self._answer else self._assembler.text

    def reply(self) -> ChatCompletion:
        """Return the reply put together."""
        return self._assembler.completion()

    def begun(self) -> ChatCompletion | None:
        """Return the reply as far as it has arrived, None where nothing has."""
        return self.reply() if self._tries or self._assembler.has_answer else None


class Settled:
    """Settles in the budgets what a question has taken, however it ends: answered, broken off, left, or never sent.

    Where the service does not tell, an estimate counts: a limit that counted nothing there would be none.

    Attributes:
        arrived: the reply that is being streamed.
        reply: the whole one.
    """

    __slots__ = ("_charge", "_llm", "arrived", "reply")

    def __init__(self, charge: Charge, llm: LLM_Interface) -> None:
        self._charge = charge
        self._llm = llm
        self.arrived: Arrived | None = None
        self.reply: ChatCompletion | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if not self._charge.scopes:
            return
        reply = self.reply or (self.arrived.begun() if self.arrived else None)
        if reply is None:
            was_sent = self._was_sent(error)
            lost = self._priced(Usage(self._charge.tokens)) if was_sent and _was_read(error) else None
            self._charge.settle(lost, was_sent=was_sent)
        elif reply.cached:
            # What came from a cache was read and written once, when it was paid.
            self._charge.settle(None, was_sent=False)
        else:
            self._charge.settle(self._taken(reply))

    def _was_sent(self, error: BaseException | None) -> bool:
        """Whether a request has left."""
        if not self._charge.prepaid:
            return True
        if _pays_requests(self._llm):
            return False  # it waited for its turn, or for the service to be there again
        # Of other models nobody knows; where our own rules were broken, mostly none has.
        return not isinstance(error, UsageError) or error.tries > 0

    def _taken(self, reply: ChatCompletion) -> Usage:
        taken = extract_usage_from_response(reply) or NO_USAGE
        if not taken.total_tokens:
            message = reply.message
            calls = "".join(call.function.arguments for call in message.tool_calls or ())
            written = estimate_text_tokens(f"{message.reasoning_content or ''}{reply.text}{calls}")
            taken = Usage(self._charge.tokens, written, cost=taken.cost)
        taken = self._priced(taken)
        if self.arrived and self.arrived.restarts:
            # Streams that broke before their first text were read too, and told nothing.
            taken += self._priced(Usage(self._charge.tokens * self.arrived.restarts))
        return taken

    def _priced(self, usage: Usage) -> Usage:
        return usage if usage.cost is not None else replace(usage, cost=self._llm.price(usage))


def _pays_requests(llm: LLM_Interface) -> bool:
    """Whether all models that may answer in the end tell budgets of each request as it leaves."""
    return all(map(_pays_requests, llm.members)) if llm.members else llm.pays_requests


def _was_read(error: BaseException | None) -> bool:
    """Whether a request without a reply was probably read: nobody waited for the end, or what came was of no use.

    A service that refuses, or is not there, takes nothing.
    """
    if not isinstance(error, SimpleLLMFuncError):
        return not isinstance(error, Exception)  # cancelled, closed, interrupted
    ends = (BadReply, DeadlineExceeded, RunAborted, StreamInterrupted)
    return isinstance(error, ends) or isinstance(error.__cause__, Silence)
