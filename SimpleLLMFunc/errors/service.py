"""Errors of the service that runs the model."""

from __future__ import annotations

from typing import Any, Literal

from SimpleLLMFunc.errors.root import SimpleLLMFuncError
from SimpleLLMFunc.errors.words import counted, cut, masked


class ProviderError(SimpleLLMFuncError):
    """The service failed, or refused the request.

    Attributes:
        model: the model asked for.
        status: HTTP status, None without a response.
        request_id: the service's own id of the request, None if it gave none.
    """

    def __init__(
        self, message: str, *, model: str = "", status: int | None = None, request_id: str | None = None, tries: int = 0
    ) -> None:
        self.model = model
        self.status = status
        self.request_id = request_id
        self.tries = tries
        said = f"{model}: {message}" if model else message
        request = f" [request {request_id}]" if request_id else ""
        super().__init__(said + request + (f" [{tries} tries]" if tries > 1 else ""))


class AuthenticationError(ProviderError):
    """The service refused the key (401) or what the key may do (403); `.body` is what it said, cut."""

    def __init__(self, model: str, *, status: int | None = None, body: str = "", **facts: Any) -> None:
        self.body = cut(body)
        text = f"the service refused the key ({status or 'no status'}). Check the key and what it may use."
        super().__init__(text + _said(" The service said", body), model=model, status=status, **facts)


class BadRequest(ProviderError):
    """The service did not accept the request (4xx).

    Attributes:
        body: what the service said, at most 500 characters.
        problem: what is wrong and what to change, where that is known; else empty.
        param, code: what the service complains about, in its own words; empty where it does not say.
        tool: the name of the tool that it does not accept; empty where the tool is not the cause.
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
        self.problem, self.param, self.code, self.tool = masked(problem), param, code, tool
        refused = f"the tool {tool!r}" if tool else "the request"
        advice = problem or (
            f"the service did not accept {refused} ({status or 'no status'}). Change what it complains about; sent "
            "again as it is, it will be refused again."
        )
        said = _said(" It said", body) or " It gave no reason: `.preview(...)` shows what is sent."
        super().__init__(advice + said, model=model, status=status, **facts)


class ContextTooLong(ProviderError):
    """The request is longer than the model can read; `.limit` in tokens, None where unknown."""

    def __init__(self, model: str, *, limit: int | None = None, body: str = "", **facts: Any) -> None:
        self.limit = limit
        self.body = cut(body)
        room = f"the model reads at most {limit} tokens" if limit else "it is longer than the model can read"
        advice = "Shorten the arguments or the history, or use a larger model."
        super().__init__(f"the request does not fit: {room}. {advice}", model=model, **facts)


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
        when = "later" if retry_after is None else f"in {retry_after:g} s"
        text = f"too many requests. Try again {when}, set requests_per_minute, or give several keys: api_key_pool=APIKeyPool([...])."
        if kind == "quota":
            text = "the account's quota is used up. Check its plan and billing, or use another key."
        super().__init__(text, model=model, status=status, **facts)


class ServerUnavailable(ProviderError):
    """The service answered 5xx, also at the last try."""

    def __init__(self, model: str, *, status: int | None = None, body: str = "", **facts: Any) -> None:
        self.body = cut(body)
        text = f"the service is not available ({status or 'no status'}). Try again later."
        super().__init__(text + _said(" It said", body), model=model, status=status, **facts)


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
        super().__init__(f"no connection ({reason or 'no reason given'}). {advice}", model=model, **facts)


class BadReply(ProviderError):
    """The reply does not fit the protocol.

    Attributes:
        head: the first 500 characters of the reply.
        partial: the part of the answer that had arrived.
    """

    def __init__(self, model: str, *, problem: str, head: str = "", partial: str = "", **facts: Any) -> None:
        self.head = cut(head)
        self.partial = partial
        text = f"the reply does not fit the protocol: {problem}. Check the address, and which API it speaks."
        super().__init__(text + _said(" It begins", head), model=model, **facts)


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


def _said(who: str, body: str) -> str:
    return f"{who}: {cut(body)}" if body else ""
