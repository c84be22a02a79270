"""Every exception of the library.

::

    SimpleLLMFuncError                  .trace_id .func_name .attempts .usage, where known
    ├── UsageError                      your code; fix it, do not retry
    │   ├── ConfigError                 no model, no key, a file that does not parse (also a ValueError)
    │   ├── SignatureError              missing annotation, wrong arguments, unusable type (also a TypeError)
    │   ├── ToolDefinitionError         a tool the model could not be told about
    │   ├── TemplateError               a template with a name we cannot fill
    │   └── SchemaError                 a JSON Schema that is invalid, endless, remote or too large
    ├── ProviderError                   the service; .model .status .request_id .tries
    │   ├── AuthenticationError         a key was refused
    │   ├── BadRequest                  what we sent was not accepted; .body, cut; .problem .param .code .tool
    │   ├── ContextTooLong              .limit tokens, where known
    │   ├── RateLimited                 .retry_after seconds or None; .kind "rate" or "quota"
    │   ├── ServerUnavailable           5xx after the last try
    │   ├── ConnectionFailed            no connection after the last try
    │   ├── BadReply                    a reply that does not fit the protocol; .head .partial
    │   └── StreamInterrupted           the stream ended before the answer did; .partial
    ├── RunError                        the run could not reach an answer; .messages so far
    │   ├── DeadlineExceeded            .seconds allowed, .partial
    │   ├── BudgetExceeded              .limit .spent
    │   ├── RunAborted                  an AbortSignal was set; .reason .partial
    │   ├── EmptyResponseError          (also a ValueError)
    │   ├── OutputTruncated             the model ran out of tokens; .partial
    │   ├── ContentBlocked              refusal or content filter; .reason .partial
    │   ├── ToolCallLimitExceeded       .limit
    │   ├── ToolFailed                  only with on_tool_error="raise"
    │   ├── RunPaused                   a confirmation is waited for elsewhere; .key .pending
    │   └── OutcomeUnknown              a once-tool had begun when the process died; .key .call_id .tool .arguments
    ├── ResponseParseError              .text .expected_type .violations (also a ValueError)
    ├── CheckpointError                 a checkpoint that cannot be trusted; .row
    └── CallError                       a Call could not be carried out; .message .data

The first level answers the one question a caller has: is it my code, their service, this run, or the
answer's shape? An error is built from facts and writes its own text; the text names the next move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

__all__ = [
    "AuthenticationError",
    "BadReply",
    "BadRequest",
    "BudgetExceeded",
    "CallError",
    "CheckpointError",
    "ConfigError",
    "ConnectionFailed",
    "ContentBlocked",
    "ContextTooLong",
    "DeadlineExceeded",
    "EmptyResponseError",
    "OutcomeUnknown",
    "OutputTruncated",
    "ProviderError",
    "RateLimited",
    "ResponseParseError",
    "RunAborted",
    "RunError",
    "RunPaused",
    "SchemaError",
    "ServerUnavailable",
    "SignatureError",
    "SimpleLLMFuncError",
    "StreamInterrupted",
    "TemplateError",
    "ToolCallLimitExceeded",
    "ToolDefinitionError",
    "ToolFailed",
    "UsageError",
    "Violation",
]

Violation = tuple[str, str, str]
"""``(path, expected, got)``, such as ``("items[2].price", "float", "'cheap'")``; the root's path is ``""``."""

BODY_LIMIT = 500
"""Characters of a foreign body that an error keeps."""


def cut(text: str, limit: int = BODY_LIMIT) -> str:
    """Return `text`, shortened to at most `limit` characters, the last of them an ellipsis if it was cut.

    No secret is cut in two: half of one is not known again when the rest of the text is masked.
    """
    return text if len(text) <= limit else text[: _end(text, limit - 1)] + "…"


def counted(count: int, one: str, many: str = "") -> str:
    """Return a number with what it counts: ``1 run``, ``2 runs``."""
    return f"{count} {one if count == 1 else many or f'{one}s'}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the question about the nearest of the known names, with a space before it; empty where none is near."""
    from difflib import get_close_matches  # for those who misspell

    close = get_close_matches(name, list(known))
    close.sort(key=lambda each: sorted(each) != sorted(name))  # two letters that changed places come first
    return f" Did you mean {close[0]!r}?" if close else ""


def _everywhere(text: str, end: int) -> int:  # noqa: ARG001 - nobody has told us any secret
    return end


_mask: Callable[[str], str] = str
_end: Callable[[str, int], int] = _everywhere


def mask_messages_with(mask: Callable[[str], str], end: Callable[[str, int], int]) -> None:
    """Let the message of every error pass through `mask`; which secrets there are is known on a floor above.

    Args:
        mask: masks them in a text.
        end: where a text may be cut, at the given place or before it, so that none is cut in two.
    """
    global _mask, _end
    _mask, _end = mask, end


def _rebuild(cls: type[SimpleLLMFuncError], args: tuple[Any, ...], state: dict[str, Any]) -> SimpleLLMFuncError:
    error = cls.__new__(cls, *args)
    vars(error).update(state)
    return error


_FACTS = "SimpleLLMFunc"


class _Kind(type):
    """Makes an error also of its `args` alone, as Celery's JSON back end does."""

    if not TYPE_CHECKING:  # for whom a class is called with what its __init__ takes

        def __call__(cls, *args: Any, **given: Any) -> SimpleLLMFuncError:
            if len(args) > 1 and isinstance(args[-1], dict) and args[-1].keys() == {_FACTS}:
                return _rebuild(cls, args[:-1], args[-1][_FACTS])
            return super().__call__(*args, **given)

        @property
        def __signature__(cls) -> Any:  # what `inspect` shows of a class of errors
            import inspect  # for those who look

            signature = inspect.signature(cls.__init__)
            return signature.replace(parameters=list(signature.parameters.values())[1:])


class SimpleLLMFuncError(Exception, metaclass=_Kind):
    """The root: ``except SimpleLLMFuncError`` catches whatever this library raises.

    Attributes:
        trace_id, func_name: of the run that failed; empty where there was none.
        attempts: the model's answers so far, as in `Result.attempts`.
        usage: tokens of all attempts, as in `Result.usage`; None where nothing was asked.
        seconds: how long the run took; None where there was none.
        tries: HTTP requests made for the last question; 0 where none was.
        downgrades: what was asked for in another way than first, as in `Result.downgrades`.
        replayed: the steps that were given again, as in `Result.replayed`.
        frames: what `border` left out of the traceback; see `whole_traceback`.
    """

    frames: Any = None
    trace_id: str = ""
    func_name: str = ""
    attempts: Sequence[Any] = ()
    usage: Any = None
    cost: float | None = None
    seconds: float | None = None
    messages: Sequence[Any] = ()
    tool_calls: Sequence[Any] = ()
    repairs: Sequence[Any] = ()
    output_mode: str = ""
    output_mode_reason: str = ""
    downgrades: Sequence[tuple[str, str]] = ()
    replayed: Sequence[str] = ()
    cached: bool = False
    finish_reason: str | None = None
    tries: int = 0
    text: str = ""

    def __init__(self, *args: Any) -> None:
        super().__init__(*(_mask(arg) if isinstance(arg, str) else arg for arg in args))

    if not TYPE_CHECKING:  # for whom they are a variable, as they are Python's

        @property
        def args(self) -> tuple[Any, ...]:
            """The text, and the facts that JSON has words for: ``type(error)(*error.args)`` is the error again."""
            plain = {
                name: fact
                for name, fact in self.__reduce__()[1][2].items()
                if fact is None or isinstance(fact, (str, int, float))
            }
            return (*super().args, {_FACTS: {k: _mask(cut(v)) if isinstance(v, str) else v for k, v in plain.items()}})

    @property
    def whole_traceback(self) -> TracebackType | None:
        """The traceback with the library's own frames, which are not printed: for ``pdb.post_mortem``."""
        return self.__traceback__ if self.frames is None else self.frames.whole

    def with_run(self, **facts: Any) -> Self:
        """Set facts about the run (the attributes above) that the raiser could not know; return self."""
        for name, value in facts.items():
            setattr(self, name, value)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # The default calls __init__ with the message alone, which no error built from facts survives.
        return _rebuild, (type(self), super().args, self.__dict__)


# --- your code -------------------------------------------------------------------------------------------


class UsageError(SimpleLLMFuncError):
    """The calling code asks for something that cannot be; trying again will not help."""


class ConfigError(UsageError, ValueError):
    """No model, no key, a missing extra, or a configuration file that does not parse."""


class SignatureError(UsageError, TypeError):
    """A function that cannot be turned into a call, or a call that does not fit the function."""


class ToolDefinitionError(UsageError):
    """A tool the model could not be told about; names the tool and the parameter."""

    def __init__(self, tool: str, problem: str) -> None:
        self.tool = tool
        self.problem = _mask(problem)
        super().__init__(f"tool {tool!r}: {problem}")


class TemplateError(UsageError):
    """A template with a name that cannot be filled; `.field` names it."""

    def __init__(self, problem: str, *, field: str = "") -> None:
        self.field = field
        super().__init__(problem)


class SchemaError(UsageError):
    """A JSON Schema that is invalid, endless, remote or too large."""


# --- the service -----------------------------------------------------------------------------------------


class ProviderError(SimpleLLMFuncError):
    """The service failed, or refused.

    Attributes:
        model: the model asked for.
        status: HTTP status, None where there was none.
        request_id: the service's own id of the request, None where it gave none.
    """

    def __init__(
        self,
        message: str,
        *,
        model: str = "",
        status: int | None = None,
        request_id: str | None = None,
        tries: int = 0,
    ) -> None:
        self.model = model
        self.status = status
        self.request_id = request_id
        self.tries = tries
        parts = [f"{model}: {message}" if model else message]
        if request_id:
            parts.append(f"[request {request_id}]")
        if tries > 1:
            parts.append(f"[{tries} tries]")
        super().__init__(" ".join(parts))


class AuthenticationError(ProviderError):
    """The service refused the key (401) or what the key may do (403); `.body` is what it said, cut."""

    def __init__(self, model: str, *, status: int | None = None, body: str = "", **facts: Any) -> None:
        self.body = cut(body)
        said = f" The service said: {self.body}" if self.body else ""
        super().__init__(
            f"the service refused the key ({status or 'no status'}). Check the key and what it may use.{said}",
            model=model,
            status=status,
            **facts,
        )


class BadRequest(ProviderError):
    """What was sent was not accepted (4xx).

    Attributes:
        body: what the service said, at most 500 characters.
        problem: what is wrong and what to change, where that is known; else empty.
        param, code: what the service complains about, in its own words; empty where it does not say.
        tool: the name of the tool that it does not accept; empty where it means something else.
    """

    def __init__(
        self,
        model: str,
        *,
        status: int | None = None,
        body: str = "",
        problem: str = "",
        param: str = "",
        code: str = "",
        tool: str = "",
        **facts: Any,
    ) -> None:
        self.body = cut(body)
        self.problem, self.param, self.code, self.tool = _mask(problem), param, code, tool
        said = f"It said: {self.body}" if self.body else "It gave no reason: `.preview(...)` shows what is sent."
        refused = f"the tool {tool!r}" if tool else "the request"
        advice = problem or (
            f"the service did not accept {refused} ({status or 'no status'}). Change what it complains about; sent "
            "again as it is, it will be refused again."
        )
        super().__init__(
            f"{advice} {said}",
            model=model,
            status=status,
            **facts,
        )


class ContextTooLong(ProviderError):
    """The request is longer than the model can read; `.limit` in tokens, None where unknown."""

    def __init__(
        self, model: str, *, limit: int | None = None, status: int | None = None, body: str = "", **facts: Any
    ) -> None:
        self.limit = limit
        self.body = cut(body)
        room = f"the model reads at most {limit} tokens" if limit else "it is longer than the model can read"
        super().__init__(
            f"the request does not fit: {room}. Shorten the arguments or the history, or use a larger model.",
            model=model,
            status=status,
            **facts,
        )


class RateLimited(ProviderError):
    """The service asked for fewer requests.

    Attributes:
        retry_after: seconds to wait, None if it did not say.
        kind: "rate" (wait and try again) or "quota" (the account is used up; waiting does not help).
    """

    def __init__(
        self,
        model: str,
        *,
        retry_after: float | None = None,
        kind: Literal["rate", "quota"] = "rate",
        status: int | None = 429,
        body: str = "",
        **facts: Any,
    ) -> None:
        self.retry_after = retry_after
        self.kind = kind
        self.body = cut(body)
        if kind == "quota":
            text = "the account's quota is used up. Check its plan and billing, or use another key."
        else:
            when = "later" if retry_after is None else f"in {retry_after:g} s"
            text = f"too many requests. Try again {when}, or add a key to the pool."
        super().__init__(text, model=model, status=status, **facts)


class ServerUnavailable(ProviderError):
    """The service answered 5xx, also at the last try."""

    def __init__(self, model: str, *, status: int | None = None, body: str = "", **facts: Any) -> None:
        self.body = cut(body)
        said = f" It said: {self.body}" if self.body else ""
        super().__init__(
            f"the service is not available ({status or 'no status'}). Try again later.{said}",
            model=model,
            status=status,
            **facts,
        )


class ConnectionFailed(ProviderError):
    """No usable connection, also at the last try; `.reason` says what went wrong."""

    def __init__(
        self,
        model: str,
        *,
        reason: str = "",
        advice: str = "Check the address, the network and the proxy.",
        **facts: Any,
    ) -> None:
        self.reason = reason
        super().__init__(
            f"no connection ({reason or 'no reason given'}). {advice}",
            model=model,
            **facts,
        )


class BadReply(ProviderError):
    """The reply does not fit the protocol.

    Attributes:
        head: the first 500 characters of what came.
        partial: text of the answer that had arrived; empty where none had.
    """

    def __init__(self, model: str, *, problem: str, head: str = "", partial: str = "", **facts: Any) -> None:
        self.head = cut(head)
        self.partial = partial
        shown = f" It begins: {self.head}" if self.head else ""
        super().__init__(
            f"the reply does not fit the protocol: {problem}. Check the address, and which API it speaks.{shown}",
            model=model,
            **facts,
        )


class StreamInterrupted(ProviderError):
    """The stream ended before the answer did; `.partial` is the text that had arrived."""

    def __init__(self, model: str, *, partial: str = "", reason: str = "", **facts: Any) -> None:
        self.partial = partial
        self.reason = reason
        super().__init__(
            f"the stream ended before the answer did ({reason or 'connection closed'}) "
            f"after {counted(len(partial), 'character')}. Call again; `.partial` holds what arrived.",
            model=model,
            **facts,
        )


# --- this run --------------------------------------------------------------------------------------------


class RunError(SimpleLLMFuncError):
    """The run could not reach an answer; `.messages` is the conversation so far."""


class DeadlineExceeded(RunError):
    """The call took longer than allowed.

    Attributes:
        seconds: what the call was given, None where only the rest is known.
        partial: text that had arrived; empty where none had.
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
        limit, spent: in that unit.
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
    """The model answered with nothing, also when asked again."""

    def __init__(self, func_name: str = "", *, asked: int = 1) -> None:
        super().__init__(
            f"{func_name or 'the model'}: LLM response content is empty after {asked} "
            f"{'attempt' if asked == 1 else 'attempts'}. Rephrase the docstring, raise retry_times, or use another model."
        )
        self.func_name = func_name
        self.asked = asked


class OutputTruncated(RunError):
    """The model ran out of tokens; `.partial` is the cut text. A cut answer is never read as a value."""

    def __init__(self, *, partial: str = "", max_tokens: int | None = None) -> None:
        self.partial = partial
        self.max_tokens = max_tokens
        limit = f" (max_tokens={max_tokens})" if max_tokens else ""
        super().__init__(
            f"the answer was cut after {counted(len(partial), 'character')}{limit}. Raise max_tokens, or ask for a shorter answer."
        )


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
            else f"no answer after {limit} {'round' if limit == 1 else 'rounds'} of tool calls and one turn without tools. "
            "Raise max_tool_calls, or say in the docstring when to stop."
        )


class ToolFailed(RunError):
    """A tool raised and on_tool_error is "raise"; the tool's own exception is the `__cause__`."""

    def __init__(self, tool: str, problem: str) -> None:
        self.tool = tool
        self.problem = _mask(problem)
        super().__init__(
            f'tool {tool!r} failed: {problem}. Mend it; or, with on_tool_error="report", the model is told and goes on.'
        )


class RunPaused(RunError):
    """A tool waits for an answer that comes from elsewhere; the same `durable` block goes on once it is there.

    Attributes:
        key: of the block.
        pending: what waits, as in `SimpleLLMFunc.journal.paused`.
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
    """A once-tool had begun when its process ended, and nobody knows how far it came. It is not run again.

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


# --- the answer's shape ----------------------------------------------------------------------------------


class ResponseParseError(SimpleLLMFuncError, ValueError):
    """The answer does not fit the type.

    Attributes:
        text: the answer as the model wrote it.
        expected_type: the annotation it should have fitted.
        violations: what does not fit, as `Violation` triples.
    """

    violations: Sequence[Violation] = ()

    def __init__(self, text: str, expected_type: Any, violations: Sequence[Violation] = ()) -> None:
        self.expected_type = expected_type
        self.violations = list(violations)
        name = getattr(expected_type, "__name__", None) or str(expected_type)
        shown = "; ".join(
            f"{path or 'the answer'}: expected {wanted}, got {got}" for path, wanted, got in self.violations[:5]
        )
        more = f" (and {len(self.violations) - 5} more)" if len(self.violations) > 5 else ""
        super().__init__(
            f"the answer does not fit {name}: {shown or 'it could not be read'}{more}. Say in the docstring what is "
            f"wanted, raise max_reasks, or widen the type. It begins: {cut(text, 200)!r}"
        )
        self.text = text

    def __reduce__(self) -> tuple[Any, ...]:
        # A type that cannot be pickled (one made inside a function) must not keep the error from travelling.
        made, (kind, args, state) = super().__reduce__()
        return made, (kind, args, {**state, "expected_type": str(self.expected_type)})


class CheckpointError(SimpleLLMFuncError):
    """A checkpoint that cannot be trusted; `.row` is the row's number, None where the whole file is meant."""

    def __init__(self, problem: str, *, row: int | None = None) -> None:
        self.row = row
        super().__init__(problem if row is None else f"row {row}: {problem}")


class CallError(SimpleLLMFuncError):
    """A Call could not be carried out; prints its message."""

    data: Any = None

    def __init__(self, message: str, data: Any = None) -> None:
        self.message = _mask(message)
        self.data = data
        super().__init__(message)
