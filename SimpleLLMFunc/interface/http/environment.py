"""What the environment says about the network: proxies, and whom TLS trusts."""

from __future__ import annotations

import base64
import os
import ssl
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from SimpleLLMFunc.config import http_address
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.logger import remember_secret
from SimpleLLMFunc.runtime import THIS_MACHINE

_NAMED_IN = ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")


def tls_context() -> ssl.SSLContext:
    """Return the context that verifies against the system's trust store; the first call may take 0.1 s."""
    return _context(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@lru_cache(maxsize=8)
def _context(_file: str | None, _folder: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])  # a server that knows HTTP/2 too shall not have to guess
    return context


def proxy_for(url: str) -> str | None:
    """Return the address of the proxy that the environment names for `url`, with its login; None for the direct way.

    aiohttp's `trust_env` takes a thread of the loop's executor for each request, and sends the login of a netrc file where
    the key is in another header than Authorization.

    Raises:
        ConfigError: it names one of a kind we do not know.
    """
    if not any(name in os.environ for name in _NAMED_IN):
        return None
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    if host in THIS_MACHINE:
        # No proxy reaches this machine's own loopback; a server inside this process would be out of reach.
        return None
    from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

    proxies = getproxies_environment()
    address = proxies.get(parts.scheme) or proxies.get("all")
    if not address or proxy_bypass_environment(f"{host}:{port}", proxies):
        return None
    return _checked(address)


def _checked(address: str) -> str:
    whole = address if "://" in address else f"http://{address}"
    parts = http_address(whole)
    if parts is None:
        kind = whole.partition("://")[0].lower()
        said = "is no address" if kind in {"http", "https"} else f"speaks {kind}"
        raise ConfigError(f"the proxy in HTTPS_PROXY, HTTP_PROXY or ALL_PROXY {said}. Write http://host:port.")
    if parts.password:
        name, password = unquote(parts.username or ""), unquote(parts.password)
        remember_secret(password)
        remember_secret(base64.b64encode(f"{name}:{password}".encode()).decode())
    return whole
