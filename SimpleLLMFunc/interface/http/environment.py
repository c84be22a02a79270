"""What the environment says about the network: proxies, and whom TLS trusts."""

from __future__ import annotations

import base64
import os
import ssl
from functools import lru_cache
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.logger import remember_secret
from SimpleLLMFunc.runtime import THIS_MACHINE


def tls_context() -> ssl.SSLContext:
    """Return the context that verifies against the system's trust store; the first call may take 0.1 s."""
    return _context(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@lru_cache(maxsize=8)  # a context holds all certificates, and one is enough for all sessions
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
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    proxies = getproxies_environment()
    address = proxies.get(parts.scheme) or proxies.get("all")
    # No proxy reaches this machine's own loopback; a server inside this process would be out of reach.
    if not address or host in THIS_MACHINE or proxy_bypass_environment(f"{host}:{port}", proxies):
        return None
    whole = address if "://" in address else f"http://{address}"
    try:
        proxy = urlsplit(whole)
        usable = bool(proxy.hostname) and proxy.port != 0
    except ValueError:
        proxy, usable = urlsplit(""), False
    if not whole.lower().startswith(("http://", "https://")):
        kind = whole.partition("://")[0]
        raise ConfigError(f"the proxy of the environment is a {kind} one; only http and https proxies are supported.")
    if not usable:
        raise ConfigError("the proxy of the environment is no address. Write it as http://host:port.")
    if proxy.password:
        name, password = unquote(proxy.username or ""), unquote(proxy.password)
        remember_secret(password)
        remember_secret(base64.b64encode(f"{name}:{password}".encode()).decode())
    return whole
