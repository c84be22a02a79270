"""One try after another: what a call takes to send its request over HTTP, gives back, and waits for in between."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from SimpleLLMFunc.errors import RateLimited
from SimpleLLMFunc.interface.attempts.circuit import Circuit, Ticket
from SimpleLLMFunc.interface.attempts.credentials import Credentials
from SimpleLLMFunc.interface.attempts.guard import check_real_call_allowed
from SimpleLLMFunc.interface.attempts.key_pool import Lease
from SimpleLLMFunc.interface.attempts.listener import tell_failed_try
from SimpleLLMFunc.interface.attempts.rate_limits import Limits
from SimpleLLMFunc.interface.attempts.reply_reader import check_status
from SimpleLLMFunc.interface.attempts.retry import decide, now
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.http import (
    Address,
    Exchange,
    Headers,
    Hidden,
    HttpReply,
    HttpRequest,
    Patience,
    RequestHeaders,
    user_agent,
)
from SimpleLLMFunc.interface.http.openai_client import ClientExchange, ClientPerLoop
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.spending import Deadline, charge_try
from SimpleLLMFunc.logger import push_warning

__all__ = ["Call", "HttpModel"]

IDLE_SECONDS = 60.0
_MOST_KNOWN_HEADERS = 256
_NO_TICKET = Ticket(-1)


@dataclass(slots=True)
class Call:
    """One question and its tries so far.

    Attributes:
        body: what goes out, the same for each try.
        wire: the body as data, where a client of the openai package sends it; else None.
        tokens: an estimate, 0 where nobody asks.
        key, ticket, lease, exchange: of the latest try. Not in an exit stack, which takes two kilobytes: ten thousand
            calls may be in flight.
        seen: the epoch of the circuit that began with a failure of this call, -1 where none did.
        borne: failed tries of other calls that count for this one.
        is_flying: the latest try has left, and nothing of it has come back.
        failures: so far, by the kind of error.
    """

    body: bytes
    wire: Mapping[str, Any] | None
    deadline: Deadline
    timeout: float
    stream: bool
    trace_id: str = ""
    tokens: int = 0
    key: str = field(default="", repr=False)
    tries: int = 0
    ticket: Ticket = _NO_TICKET
    seen: int = -1
    borne: int = 0
    is_flying: bool = False
    lease: Lease | None = None
    exchange: Exchange | ClientExchange | None = None
    failures: dict[type[Exception], int] | None = None


class HttpModel(LLM_Interface):
    """A model whose calls go over HTTP, and share its keys, its limits and its circuit; what they say is a subclass's.

    Args:
        url: where each request goes.
        keys, limits: as the user gave them.
        client: the user's own, which sends the requests instead; None where we do.
        whose, extra_headers: headers that go out with every request, the latter being the user's.
        max_retries, retry_delay: as of `OpenAICompatible`.
        guarded: whether real calls can be forbidden.
    """

    pays_requests = True

    def __init__(
        self,
        model_name: str,
        url: Address,
        *,
        keys: Credentials,
        limits: Limits,
        client: ClientPerLoop | None,
        whose: Headers,
        extra_headers: Headers,
        max_retries: int,
        retry_delay: float,
        guarded: bool,
    ) -> None:
        self.model_name = model_name
        self.max_retries = max_retries
        self.retry_delay = retry_delay
        self._url = url
        self._keys = keys
        self._limits = limits
        self._circuit = Circuit(retry_delay)
        self._client = client
        self._whose = whose
        self._extra_headers = extra_headers
        self._known_headers: Hidden[tuple[str, bool], RequestHeaders] = Hidden()
        self._guarded = guarded

    async def _send(self, call: Call) -> HttpReply:
        """Send the request once and return the reply, its status checked; what that takes, `_give_back` gives back."""
        if self._guarded:
            check_real_call_allowed(self.model_name)
        call.deadline.check("waiting to send the request")
        if not self._limits.takes_off(call.tokens):
            await self._limits.wait(self.model_name, call.tokens, call.deadline)
        call.is_flying = True
        call.ticket = self._circuit.pass_by() or await self._circuit.admit(
            spare=self.max_retries + 1 - call.tries - call.borne,
            seen=call.seen,
            clock=call.deadline,
            longest_wait=call.timeout,
        )
        call.borne += call.ticket.shared
        if self._client is None:
            if self._keys.own is not None:
                call.key = self._keys.own
            else:
                lease = self._keys.lease()
                call.key = lease.__enter__()
                call.lease = lease if lease.is_counted else None
                del lease  # not kept while the model answers
        charge_try()
        call.tries += 1
        patience = Patience(call.deadline, first_byte=call.timeout, idle=IDLE_SECONDS)
        request = HttpRequest(self._url, call.body, self._headers(call), self.model_name, call.tries)
        exchange = (
            Exchange(request, patience)
            if call.wire is None or self._client is None
            else ClientExchange(self._client.here(), call.wire, request, patience)
        )
        reply = await exchange.__aenter__()
        call.exchange = exchange
        self._limits.landed(call)
        if self._keys.is_single:  # of several, nobody knows whose limits these are
            self._limits.learn(reply.headers, now())
        if not 200 <= reply.status < 300:
            await check_status(reply, self.model_name, call.tries)
        self._circuit.passed(call.ticket)
        return reply

    async def _give_back(self, call: Call) -> None:
        """End a try: close what has not been read, and give back the key and the place in the queue."""
        exchange, call.exchange = call.exchange, None
        lease, call.lease = call.lease, None
        try:
            if exchange is not None:
                await exchange.__aexit__()
        finally:
            if lease is not None:
                lease.__exit__()
            if call.ticket.is_pending:
                self._circuit.forget(call.ticket)
            if call.is_flying:
                self._limits.landed(call)

    async def _pause(self, call: Call, failed: AttemptFailed) -> None:
        """Wait before the next try.

        Raises:
            ProviderError: there shall be none.
        """
        self._keys.spare(call.key, failed)
        kind = type(failed.error)
        if call.failures is None:
            call.failures = {}
        failures = call.failures
        if isinstance(failed.error, RateLimited) and not self._keys.is_single:
            # It is the key that is limited: another one may go at once, and if there is none, the first that is ready.
            failed.retry_after = self._keys.ready_in()
        if failed.retry_after == 0 and isinstance(failed.error, RateLimited):
            self._circuit.forget(call.ticket)
        else:
            call.seen = self._circuit.failed(call.ticket, failed)
        pause = decide(
            failed,
            attempt=call.tries + call.borne,
            max_retries=self.max_retries,
            left=call.deadline.left(),
            rng=random.random,
            retry_delay=self.retry_delay,
            longest_wait=call.timeout,
            earlier=failures.get(kind, 0),
        )
        if pause is None:
            raise failed.given_up() from failed.__cause__
        failures[kind] = failures.get(kind, 0) + 1
        push_warning(f"{call.trace_id} try {call.tries} failed, the next one in {pause:.2f} s: {failed.error}".strip())
        tell_failed_try(failed.error, tries=call.tries, pause=pause, model=self.model_name)
        await asyncio.sleep(pause)

    def _headers(self, call: Call) -> RequestHeaders:
        known = self._known_headers.get((call.key, call.stream))
        if known is not None:
            return known
        headers = {
            "Content-Type": "application/json",
            "Accept": "text/event-stream" if call.stream else "application/json",
            "User-Agent": user_agent(),
        }
        if call.key:
            headers["Authorization"] = f"Bearer {call.key}"
        headers.update(self._whose)
        headers.update(self._extra_headers)
        if len(self._known_headers) >= _MOST_KNOWN_HEADERS:  # a key from the environment may change for ever
            self._known_headers.clear()
        known = self._known_headers[call.key, call.stream] = RequestHeaders(headers)
        return known
