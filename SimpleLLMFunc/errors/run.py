"""Errors of one run: the model was asked, and the run could not reach an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Self

from SimpleLLMFunc.errors.root import SimpleLLMFuncError
from SimpleLLMFunc.errors.words import counted, cut, masked


class RunError(SimpleLLMFuncError):
    """The run could not reach an answer; `.messages` is the conversation so far."""


class DeadlineExceeded(RunError):
    """The call took longer than allowed.

    Attributes:
        seconds: what the call was given, None where only the rest is known.
        partial: text that had arrived.
    """

    def __init__(self, seconds: float | None = None, *, partial: str = "", doing: str = "") -> None:
        self.partial = partial
        limit = "the deadline" if seconds is None else f"the deadline of {seconds:g} s"
        meanwhile = f" while {doing}" if doing else ""
        super().__init__(f"{limit} passed{meanwhile}. Give the call a longer deadline, or ask for less.")
        self.seconds = seconds

    def with_run(self, **facts: Any) -> Self:
        """Set facts about the run; `seconds` stays what the call was given."""
        facts.pop("seconds", None)
        return super().with_run(**facts)


class BudgetExceeded(RunError):
    """The next request would break a budget; it was not sent.

    Attributes:
        unit: "usd", "tokens", "requests" or "seconds".
        limit, spent, needed: in that unit; `needed` is an estimate of the next request, or None.
    """

    def __init__(self, unit: str, *, limit: float, spent: float, needed: float | None = None) -> None:
        self.unit = unit
        self.limit = limit
        self.spent = spent
        self.needed = needed
        more = "" if needed is None or unit == "requests" else f", the next request needs about {needed:g}"
        super().__init__(
            f"the budget of {limit:g} {unit} is used up ({spent:g} spent{more}). Raise it, or ask for less."
        )


class RunAborted(RunError):
    """An abort signal was set; `.partial` is the text that had arrived."""

    def __init__(self, reason: str = "", *, partial: str = "") -> None:
        self.reason = reason
        self.partial = partial
        kept = f". `.partial` holds the {counted(len(partial), 'character')} that had arrived" if partial else ""
        super().__init__(f"the run was aborted{': ' + reason if reason else ''}{kept}")


class EmptyResponseError(RunError, ValueError):
    """The model gave an empty answer, also when asked again."""

    def __init__(self, func_name: str = "", *, asked: int = 1) -> None:
        super().__init__(
            f"{func_name or 'the model'}: LLM response content is empty after {counted(asked, 'attempt')}. "
            "Rephrase the docstring or the prompt, raise retry_times, or use another model."
        )
        self.func_name = func_name
        self.asked = asked


class OutputTruncated(RunError):
    """The model ran out of tokens; `.partial` is the cut text. A cut answer is never read as a value."""

    def __init__(self, *, partial: str = "", max_tokens: int | None = None) -> None:
        self.partial = partial
        self.max_tokens = max_tokens
        limit = f" (max_tokens={max_tokens})" if max_tokens else ""
        size = counted(len(partial), "character")
        super().__init__(f"the answer was cut after {size}{limit}. Raise max_tokens, or ask for a shorter answer.")


class ContentBlocked(RunError):
    """The service blocked the answer, or the model refused; `.reason` says which or what it said."""

    def __init__(self, reason: str = "content_filter", *, partial: str = "") -> None:
        self.reason = reason
        self.partial = partial
        super().__init__(f"the answer was blocked: {cut(reason)}. Change the request; asking again will not help.")


class ToolCallLimitExceeded(RunError):
    """Even the last turn, without tools, gave no answer; `.limit` is max_tool_calls.

    `.repeated` is the number of turns where that turn came earlier: they made the same calls, with the same results.
    """

    def __init__(self, limit: int, *, repeated: int = 0) -> None:
        self.limit = limit
        self.repeated = repeated
        super().__init__(
            f"no answer after {repeated} turns in a row with the same tool calls and results, and one without tools. "
            "Let the result say more, or say in the docstring when to stop; raising max_tool_calls does not help."
            if repeated
            else f"no answer after {counted(limit, 'round')} of tool calls and one turn without tools. "
            "Raise max_tool_calls (an assistant has max_tool_rounds), or say in the docstring when to stop."
        )


class ToolFailed(RunError):
    """A tool raised and on_tool_error is "raise"; the tool's own exception is the `__cause__`."""

    def __init__(self, tool: str, problem: str) -> None:
        self.tool = tool
        self.problem = masked(problem)
        super().__init__(
            f'tool {tool!r} failed: {problem}. Mend it; or, with on_tool_error="report", the model is told and goes on.'
        )


class RunPaused(RunError):
    """A tool waits for an answer from outside; run the same `durable` block again once it is given.

    Attributes:
        key: of the block.
        pending: the calls that wait, as in `SimpleLLMFunc.journal.paused`.
    """

    pending: Sequence[dict[str, Any]] = ()

    def __init__(self, key: str, pending: Sequence[dict[str, Any]] = ()) -> None:
        self.key = key
        self.pending = list(pending)
        asked = ", ".join(f"{each['tool']} ({each['call_id']})" for each in self.pending) or "a tool"
        super().__init__(
            f"the run {key!r} waits for an answer: {asked}. Give it with SimpleLLMFunc.journal.answer(path, key, call_id, "
            "True | False | text), and run the same block again."
        )


class OutcomeUnknown(RunError):
    """A once-tool had begun when its process ended, and its outcome is not known. It is not run again.

    Attributes:
        key: of the `durable` block.
        call_id: of the call, unique within the key.
        tool: its name.
        arguments: of the call.
    """

    arguments: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, key: str, call_id: str, tool: str, arguments: Mapping[str, Any]) -> None:
        self.key = key
        self.call_id = call_id
        self.tool = tool
        self.arguments = dict(arguments)
        super().__init__(
            f"the run {key!r} ended while the tool {tool!r} was at work, which must not run twice. Find out what it has "
            f"done, and say so: SimpleLLMFunc.journal.answer(path, {key!r}, {call_id!r}, result), or RUN_AGAIN as the "
            "result where it has done nothing. Or give the tool recover=, a function that looks it up."
        )
