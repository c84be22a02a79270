"""One JSON document from the web, by GET, over the sessions that model requests use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from SimpleLLMFunc.errors import ConfigError, ConnectionFailed, DeadlineExceeded, ProviderError, cut
from SimpleLLMFunc.interface.attempts.retry import now, retried
from SimpleLLMFunc.interface.body_json import decode
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.http import Exchange, HttpReply, HttpRequest, TryTimeout
from SimpleLLMFunc.interface.spending import Deadline, current_deadline
from SimpleLLMFunc.interface.wires import Received, failure_of, read_error
from SimpleLLMFunc.logger import redact
from SimpleLLMFunc.runtime import off_loop_if_large

MAX_BYTES: Final = 2 * 1024 * 1024
"""Bytes of a reply, unpacked, that are read."""

_RETRIES = 1
_RETRY_DELAY = 0.2


async def get_json(
    url: str,
    params: Mapping[str, str | int | float | None] | None = None,
    *,
    service: str,
    timeout: float = 10.0,
    headers: Mapping[str, str] | None = None,
) -> Any:
    """Return what a service answers to a GET, decoded from JSON.

    A broken connection or a 5xx is tried once more. Redirects are followed on the same host only.

    Args:
        url: an http or https address; its query is kept.
        params: are added to the address; those that are None are left out.
        service: what the errors call it.
        timeout: seconds for everything, the second try too; a surrounding deadline may be stricter.
        headers: by lower-case name; added to `user-agent` and `accept`, or replacing them.

    Raises:
        ConfigError: `url` cannot be asked.
        ProviderError: the service failed or refused, gave no answer in time, or answered with something else than JSON.
        DeadlineExceeded: the surrounding deadline passed.
    """
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"the address of {service} cannot be used. Give an http or https address.")
    added = urlencode({name: value for name, value in (params or {}).items() if value is not None}, errors="replace")
    address = url + ("&" if "?" in url else "?") * bool(added) + added
    outer = current_deadline()
    deadline = Deadline.after(timeout).stricter(outer)

    async def read(tries: int) -> Any:
        request = HttpRequest(address, b"", {"accept": "application/json", **(headers or {})}, service, tries, "GET")
        return await _read_once(request, TryTimeout(deadline, first_byte=timeout, idle=timeout))

    try:
        return await retried(read, clock=deadline, max_retries=_RETRIES, retry_delay=_RETRY_DELAY)
    except DeadlineExceeded:
        if outer.is_over:
            raise
        reason = f"no complete answer within {timeout:g} s"
        raise ConnectionFailed(service, reason=reason, advice="Try again later.") from None


async def _read_once(request: HttpRequest, timeout: TryTimeout) -> Any:
    async with Exchange(request, timeout) as reply:
        body = bytearray()
        while piece := await reply.piece():
            reply.timeout.progress()
            body += piece
            if len(body) > MAX_BYTES:
                raise _refused(reply, f"the reply is longer than {MAX_BYTES} bytes, and was not read.")
    if reply.status >= 400:
        said = await off_loop_if_large(len(body), lambda: read_error(bytes(body)))
        raise failure_of(said, Received(request.model, request.tries, reply.status, reply.headers, now()))
    try:
        return await off_loop_if_large(len(body), lambda: decode(bytes(body)))
    except ValueError:
        # Outside of the except block: the foreign error may hold the whole text.
        pass
    head = redact(cut(body.decode("utf-8", "replace").strip(), 200))
    raise _refused(reply, f"the reply is no JSON. It begins: {head!r}")


def _refused(reply: HttpReply, problem: str) -> AttemptFailed:
    error = ProviderError(problem, model=reply.request.model, status=reply.status, tries=reply.request.tries)
    return AttemptFailed(error, again="never")
