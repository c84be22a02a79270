"""One JSON document from the web, by GET, over the sessions that model requests use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from SimpleLLMFunc.errors import (
    BadReply,
    ConfigError,
    ConnectionFailed,
    DeadlineExceeded,
    ProviderError,
    cut,
)
from SimpleLLMFunc.interface.attempts.retry import now, retried
from SimpleLLMFunc.interface.body_json import decode
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.http import Exchange, HttpReply, HttpRequest, Patience, user_agent
from SimpleLLMFunc.interface.spending import Deadline, current_deadline
from SimpleLLMFunc.interface.wires import Received, failure_of, read_error
from SimpleLLMFunc.logger import redact
from SimpleLLMFunc.runtime import off_loop_if_large

MAX_BYTES: Final = 2 * 1024 * 1024
"""Bytes of a reply, unpacked, that are read by default."""

_RETRIES = 1
_RETRY_DELAY = 0.2


async def get_json(
    url: str,
    params: Mapping[str, str | int | float] | None = None,
    *,
    service: str,
    timeout: float = 10.0,
    max_bytes: int = MAX_BYTES,
    headers: Mapping[str, str] | None = None,
) -> Any:
    """Return what a service answers to a GET, decoded from JSON.

    A broken connection or a 5xx is tried once more. Redirects are followed on the same host only.

    Args:
        url: an http or https address; its query is kept.
        params: are added to the address; those that are None are left out.
        service: what the errors call it.
        timeout: seconds for everything, the second try too; a surrounding deadline may be stricter.
        max_bytes: a longer reply is refused, and not read to its end.
        headers: added to `user-agent` and `accept`, or replacing them.

    Raises:
        ConfigError: `url` cannot be asked.
        ProviderError: the service failed or refused, gave no answer in time, or answered with something else than JSON.
        DeadlineExceeded: the surrounding deadline passed.
    """
    address = _address(url, params, service)
    outer = current_deadline()
    deadline = Deadline.after(timeout).stricter(outer)
    sent = {"user-agent": user_agent(), "accept": "application/json"} | {
        name.lower(): value for name, value in (headers or {}).items()
    }
    tries = 0

    async def read(number: int) -> Any:
        nonlocal tries
        tries = number
        request = HttpRequest(address, b"", sent, service, number, "GET")
        return await _read_once(request, Patience(deadline, first_byte=timeout, idle=timeout), max_bytes)

    try:
        return await retried(read, clock=deadline, max_retries=_RETRIES, retry_delay=_RETRY_DELAY)
    except BadReply as error:
        problem = f"the reply is not HTTP as we know it. It begins: {error.head!r}"
        raise ProviderError(problem, model=service, status=error.status, tries=tries) from error.__cause__
    except DeadlineExceeded:
        if outer is not None and outer.is_over:
            raise
        raise ConnectionFailed(
            service, reason=f"no complete answer within {timeout:g} s", advice="Try again later.", tries=tries
        ) from None


async def _read_once(request: HttpRequest, patience: Patience, max_bytes: int) -> Any:
    async with Exchange(request, patience) as reply:
        body = await _body(reply, request, max_bytes)
    if reply.status < 400 and reply.status != 200:
        raise _refused(request, reply, f"the status is {reply.status}, expected 200.")
    if reply.status != 200:
        said = await off_loop_if_large(len(body), lambda: read_error(body))
        raise failure_of(said, Received(request.model, request.tries, reply.status, reply.headers, now()))
    try:
        return await off_loop_if_large(len(body), lambda: decode(body))
    except ValueError:
        # Outside of the except block: the foreign error may hold the whole text.
        pass
    head = redact(cut(body.decode("utf-8", "replace").strip(), 200))
    raise _refused(request, reply, f"the reply is no JSON. It begins: {head!r}")


async def _body(reply: HttpReply, request: HttpRequest, max_bytes: int) -> bytes:
    pieces = bytearray()
    while piece := await reply.piece():
        reply.patience.progress()
        pieces += piece
        if len(pieces) > max_bytes:
            raise _refused(request, reply, f"the reply is longer than {max_bytes} bytes, and was not read.")
    return bytes(pieces)


def _refused(request: HttpRequest, reply: HttpReply, problem: str) -> AttemptFailed:
    error = ProviderError(problem, model=request.model, status=reply.status, tries=request.tries)
    return AttemptFailed(error, again="never")


def _address(url: str, params: Mapping[str, Any] | None, service: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.username is None
        has_query = bool(parts.query)
    except ValueError:
        usable = has_query = False
    if not usable:
        raise ConfigError(f"the address of {service} cannot be used. Give an http or https address without a login.")
    added = urlencode({name: value for name, value in (params or {}).items() if value is not None}, errors="replace")
    return url + ("&" if has_query else "?") * bool(added) + added
