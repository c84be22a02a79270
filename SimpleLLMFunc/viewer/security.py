"""The guard of the page: Host, Origin, token, size of bodies, and the security headers of every response."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.runtime import THIS_MACHINE
from SimpleLLMFunc.viewer.responses import Refusal, json_reply

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

TOKEN_HEADER: Final = "x-simplellmfunc-token"  # noqa: S105 - the name of a header
"""A header instead of a cookie: no other page can send it, and cookies are shared by all ports of a machine."""

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    # The browser refuses innerHTML and the like, so text cannot become markup.
    "require-trusted-types-for 'script'; trusted-types 'none'"
)

_HEADERS: Final = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}

_READING: Final = frozenset({"GET", "HEAD"})
_SAME_SITE: Final = frozenset({"same-origin", "none"})
_DEFAULT_PORTS: Final = {"http": "80", "https": "443"}


def new_token() -> str:
    """Return a random token of 256 bits."""
    return secrets.token_urlsafe(32)


class ViewerApp:
    """The page as an ASGI application; it checks every request, also where it is mounted in another application.

    Args:
        app: answers accepted requests.
        token: required by `admit`; None requires none.
        allowed_hosts: host names of the page, without port, in addition to those of this machine.
        max_body: most bytes of a request's body.

    Attributes:
        token: required by the page; None where it requires none.
        fragment: the end of the page's address, with the token: ``#token=…``, or "".

    Raises:
        ConfigError: a host name is not one.
    """

    def __init__(
        self, app: ASGIApp, *, token: str | None, allowed_hosts: Iterable[str] = (), max_body: int = 2_000_000
    ) -> None:
        if isinstance(allowed_hosts, str):
            raise ConfigError(f"allowed_hosts is a list of names, not the text {allowed_hosts!r}.")
        names = {name.strip().lower().removeprefix("[").removesuffix("]") for name in allowed_hosts}
        for name in names:
            if not name or "*" in name or "/" in name:
                raise ConfigError(
                    f"allowed_hosts holds {name!r}. Write the host name of the address in the browser, without "
                    "scheme and port; a pattern would let other pages in."
                )
        self._app = app
        self.token = token
        self.fragment = "" if token is None else f"#token={token}"
        self._hosts = names.union(THIS_MACHINE)
        self._max_body = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it to the page."""
        from starlette.datastructures import MutableHeaders

        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008, "reason": "there are no web sockets here"})
            return

        async def sending(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope={"headers": message.get("headers", ())})
                headers.update(_HEADERS)
                # The browser asks for the page's files each time, so that a new version of the package shows at once.
                headers["cache-control"] = "no-cache" if "etag" in headers else "no-store"
                message = {**message, "headers": headers.raw}
            await send(message)

        left = self._max_body

        async def receiving() -> Any:
            """Count the bytes of a body that has no content-length."""
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            return message if left >= 0 else {"type": "http.disconnect"}

        try:
            self._check(scope)
        except Refusal as refusal:
            await json_reply({"error": str(refusal)}, refusal.status)(scope, receive, sending)
        else:
            await self._app(scope, receiving, sending)

    def admit(self, request: Request) -> None:
        """Return if the request may have data.

        Raises:
            Refusal: another site asks, or the token is missing.
        """
        headers = _headers(request.scope)
        if headers.get("sec-fetch-site", "none") not in _SAME_SITE:
            raise Refusal(403, "Another site may not use this page.")
        if self.token is not None:
            given = headers.get(TOKEN_HEADER, "").encode("latin-1", "replace")
            if not hmac.compare_digest(given, self.token.encode()):
                raise Refusal(
                    401, "The token is missing or is not that of this start. Open the address that was printed."
                )

    def _check(self, scope: Scope) -> None:
        """Return if the page may get a request."""
        if "\0" in scope["path"]:  # no file is named so, and older versions of Starlette fail at it
            raise Refusal(404, "There is no such page.")
        headers = _headers(scope)
        host = headers.get("host", "")
        if _name_of(host) not in self._hosts:
            # DNS rebinding: another site's name that resolves to this machine would make this page part of that site.
            raise Refusal(
                421, "This page is not reached by that name. Use 127.0.0.1, or give the name in allowed_hosts."
            )
        origin = headers.get("origin")
        if origin is not None and not _is_same(origin, host):
            raise Refusal(403, "Another site may not use this page.")
        if scope["method"] not in _READING:
            if self.token is None and origin is None:
                # Without a token only Origin tells the sender, and every browser sends it.
                raise Refusal(403, "A request that changes something has to say where it comes from (Origin).")
            if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
                raise Refusal(415, "Send application/json.")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self._max_body:
            raise Refusal(413, f"At most {self._max_body:,} bytes.")


def _headers(scope: Scope) -> dict[str, str]:
    # Repeated headers are joined, as HTTP says; a joined Host or token is never valid.
    found: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def _name_of(host: str) -> str:
    """Return the name in a Host header, without its port; empty if the header is malformed."""
    text = host.strip().lower()
    try:
        parts = urlsplit(f"//{text}")
        name = text.removesuffix(f":{parts.port}").strip("[]")
    except ValueError:
        return ""
    return name if name == parts.hostname else ""


def _is_same(origin: str, host: str) -> bool:
    """Return whether a page at `origin` is this page."""
    try:
        parts = urlsplit(origin.strip().lower())
    except ValueError:
        return False
    if parts.scheme not in _DEFAULT_PORTS or parts.path or parts.query or parts.fragment:
        return False
    port = f":{_DEFAULT_PORTS[parts.scheme]}"
    return parts.netloc.removesuffix(port) == host.strip().lower().removesuffix(port)
