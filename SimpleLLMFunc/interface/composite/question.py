"""What is asked of several models in turn, the same of each, and what came of it so far."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from SimpleLLMFunc.errors import SimpleLLMFuncError, cut
from SimpleLLMFunc.interface.composite.reasoning_apart import chunks_of, reply_of
from SimpleLLMFunc.interface.llm_interface import LLM_Interface, given_to
from SimpleLLMFunc.interface.spending import Deadline
from SimpleLLMFunc.type import ChatCompletionChunk, Message


@dataclass(slots=True)
class Question:
    """What is asked, the same of each member, and what came of it so far.

    Attributes:
        left: members that may still be asked, in order.
        tries: HTTP requests of the members that failed or were not waited for.
        window: tokens of the largest member that found the request too long; 0 where none did.
    """

    messages: Sequence[Message]
    options: Mapping[str, Any]
    trace_id: str
    clock: Deadline
    left: deque[LLM_Interface]
    tries: int = 0
    window: int = 0
    errors: list[tuple[LLM_Interface, SimpleLLMFuncError]] = field(default_factory=list)

    def next_member(self) -> LLM_Interface | None:
        """Return the member to ask next, None after the last."""
        while self.left:
            member = self.left.popleft()
            if not self.window or member.context_window is None or member.context_window > self.window:
                return member
        return None

    def chat(self, member: LLM_Interface) -> Any:
        """Return the coroutine that asks `member`."""
        options = given_to(member, self.options)
        return reply_of(member, self.messages, trace_id=self.trace_id, deadline=self.clock.left(), **options)

    def stream(self, member: LLM_Interface) -> AsyncGenerator[ChatCompletionChunk, None]:
        """Return the stream of `member`."""
        options = given_to(member, self.options)
        return chunks_of(member, self.messages, trace_id=self.trace_id, deadline=self.clock.left(), **options)

    def failure(self) -> SimpleLLMFuncError:
        """Return the error of the last member, behind which those of the others stand."""
        (_, last) = self.errors[-1]
        for member, error in self.errors[:-1]:
            last.add_note(
                f"Before that {member.model_name} ({member.provider}): {type(error).__name__}: {cut(str(error))}"
            )
        for (_, before), (_, after) in zip(self.errors, self.errors[1:], strict=False):
            first = _root(after)
            if first is not before and _root(before) is not first:  # a double may raise one and the same error twice
                first.__context__ = before
        last.tries = self.tries
        return last


def _root(error: BaseException) -> BaseException:
    """Return the first error of a chain."""
    for _ in range(50):
        deeper = error.__cause__ or error.__context__
        if deeper is None:
            break
        error = deeper
    return error
