"""What the environment says about the network: proxies, and whom TLS trusts."""

from __future__ import annotations

import base64
import os
import ssl
from dataclasses import dataclass
from functools import lru_cache
from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.http.url import Url, parsed_url
from SimpleLLMFunc.logger import remember_secret
from SimpleLLMFunc.runtime import THIS_MACHINE, in_thread

__all__ = ["Proxy", "load_tls_context", "proxy_for", "tls_context"]

_NAMED_IN = ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")
_KEPT_AS: tuple[object, ...] = tuple(map(os.fsencode, _NAMED_IN)) if os.supports_bytes_environ else _NAMED_IN


_contexts: dict[tuple[str | None, str | None], ssl.SSLContext] = {}
_MOST_CONTEXTS = 8


def tls_context() -> ssl.SSLContext:
    """Return the context that verifies against the system's trust store; the first call may take 0.1 s."""
    place = _trust_store()
    context = _contexts.get(place)
    if context is None:
        context = ssl.create_default_context()
        context.set_alpn_protocols(["http/1.1"])  # a server that knows HTTP/2 too shall not have to guess
        if len(_contexts) >= _MOST_CONTEXTS:
            _contexts.clear()
        _contexts[place] = context
    return context


async def load_tls_context() -> ssl.SSLContext:
    """Return what `tls_context` does; the system's certificates are read in a worker thread, unless that was done."""
    known = _contexts.get(_trust_store())
    return await in_thread(tls_context) if known is None else known


def _trust_store() -> tuple[str | None, str | None]:
    # The two variables are those that OpenSSL reads.
    return os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")


@dataclass(frozen=True, slots=True, repr=False)
class Proxy:
    """A proxy; its repr shows no login.

    Attributes:
        url: where it is, without a login.
        login: what its Proxy-Authorization says, empty for none.
        tls: whom to trust on the way to it, None for plain HTTP.
    """

    url: Url
    login: str = ""
    tls: ssl.SSLContext | None = None

    @property
    def headers(self) -> dict[str, str]:
        """What it wants to be told with a request, or before a tunnel."""
        return {"Proxy-Authorization": self.login} if self.login else {}

    def __repr__(self) -> str:
        return f"Proxy({str(self.url)!r})"


def proxy_for(url: Url) -> Proxy | None:
    """Return the proxy that the environment names for `url`, None for the direct way.

    Raises:
        ConfigError: it names one of a kind we do not know.
    """
    if url.host in THIS_MACHINE or not _is_one_named():
        # No proxy reaches this machine's own loopback; a server inside this process would be out of reach.
        return None
    proxies = getproxies_environment()
    address = proxies.get(url.scheme) or proxies.get("all")
    if not address or proxy_bypass_environment(f"{url.host}:{url.port}", proxies):
        return None
    return _proxy_at(address)


def _is_one_named() -> bool:
    # Asked for each request. `os.environ` itself takes, for six names that it does not hold, as long as all else that a
    # connection costs; the dictionary inside it takes a tenth of that.
    held = getattr(os.environ, "_data", None)
    if type(held) is dict:
        return not held.keys().isdisjoint(_KEPT_AS)
    return any(name in os.environ for name in _NAMED_IN)


@lru_cache(maxsize=16)
def _read_address(address: str) -> tuple[Url, str]:
    whole = address if "://" in address else f"http://{address}"
    kind = whole.partition("://")[0].lower()
    if kind not in {"http", "https"}:
        raise ConfigError(f"the proxy of the environment is a {kind} one; only http and https proxies are known.")
    try:
        url = parsed_url(whole)
    except ConfigError:
        raise ConfigError("the proxy of the environment is no address. Write it as http://host:port.") from None
    if url.login is None:
        return url._replace(target="/"), ""
    login = base64.b64encode(":".join(url.login).encode()).decode()
    remember_secret(url.login[1])
    remember_secret(login)
    return url._replace(target="/", login=None), f"Basic {login}"


def _proxy_at(address: str) -> Proxy:
    url, login = _read_address(address)
    return Proxy(url, login, tls_context() if url.scheme == "https" else None)
