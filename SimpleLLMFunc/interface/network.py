"""What the environment says about the network: proxies, and whom TLS trusts."""

from __future__ import annotations

import base64
import os
import ssl
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.logger.redact import remember_secret
from SimpleLLMFunc.threads import in_thread

if TYPE_CHECKING:
    from yarl import URL

__all__ = ["load_tls_context", "parsed_url", "proxy_for", "tls_context"]

_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})


@lru_cache(maxsize=256)
def parsed_url(url: str) -> URL:
    """Return `url` taken apart, as the HTTP client wants it; the same few come again and again."""
    from yarl import URL

    return URL(url)


_contexts: dict[tuple[str | None, str | None], ssl.SSLContext] = {}
_MOST_CONTEXTS = 8


def tls_context() -> ssl.SSLContext:
    """Return the context that verifies against the system's trust store; the first call may take 0.1 s."""
    place = _trust_store()
    context = _contexts.get(place)
    if context is None:
        context = ssl.create_default_context()
        if len(_contexts) >= _MOST_CONTEXTS:
            _contexts.clear()
        _contexts[place] = context
    return context


async def load_tls_context() -> None:
    """Read the system's certificates in a worker thread, unless that was done: `tls_context` then returns at once."""
    if _trust_store() not in _contexts:
        await in_thread(tls_context)


def _trust_store() -> tuple[str | None, str | None]:
    # The two variables are those that OpenSSL reads.
    return os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")


def proxy_for(url: URL) -> tuple[URL | None, dict[str, str] | None]:
    """Return the proxy that the environment names for `url`, and the headers to log in there with.

    None stands for the direct way, and for no login.

    Raises:
        ConfigError: it names one of a kind we do not know.
    """
    if url.host in _THIS_MACHINE:
        # No proxy reaches this machine's own loopback; a server inside this process would be out of reach.
        return None, None
    # Not aiohttp's trust_env: that reads ~/.netrc too, and would put what stands there into the place of the key.
    proxies = getproxies_environment()
    address = proxies.get(url.scheme) or proxies.get("all")
    if not address or proxy_bypass_environment(f"{url.host}:{url.port}", proxies):
        return None, None
    proxy = parsed_url(address if "://" in address else f"http://{address}")
    if proxy.scheme not in {"http", "https"}:
        raise ConfigError(
            f"the proxy of the environment is a {proxy.scheme} one; only http and https proxies are known."
        )
    if proxy.user is None:
        return proxy, None
    login = base64.b64encode(f"{proxy.user}:{proxy.password or ''}".encode()).decode()
    remember_secret(proxy.password or "")
    remember_secret(login)
    # aiohttp renames this header to Proxy-Authorization.
    return proxy.with_user(None), {"Authorization": f"Basic {login}"}
