"""An http or https address, taken apart into what a request needs of it."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, unquote, urljoin, urlsplit

from SimpleLLMFunc.errors import ConfigError

__all__ = ["Url", "parsed_url"]

_READ_DIFFERENTLY = frozenset("\xdf\u03c2\u200c\u200d")
"""Letters of host names that IDNA 2003 and IDNA 2008 read differently. Source: RFC 5894, section 7.2."""
_PORTS = {"http": 80, "https": 443}
_IN_PATH = "/%:@!$&'()*+,;=~-._"
_IN_QUERY = _IN_PATH + "?"


class Url(NamedTuple):
    """An address.

    Attributes:
        scheme: ``http`` or ``https``.
        host: in ASCII and lower case; without the brackets of an IPv6 address.
        port: the one of the scheme where none was given.
        target: path and query as they go out, in ASCII; begins with a slash.
        login: user name and password, None where there is none.
    """

    scheme: str
    host: str
    port: int
    target: str = "/"
    login: tuple[str, str] | None = None

    @property
    def authority(self) -> str:
        """Host and port as the Host header has them: the usual port is left out."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> tuple[str, str, int]:
        """What two addresses share if they lead to the same server by the same protocol."""
        return self.scheme, self.host, self.port

    def join(self, location: str) -> Url:
        """Return where `location`, absolute or relative to this address, leads.

        Raises:
            ConfigError: that is no http or https address.
        """
        return parsed_url(urljoin(f"{self.scheme}://{self.authority}{self.target}", location))

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target if self.target != '/' else ''}"

    def __repr__(self) -> str:
        return f"Url({str(self)!r})"  # without the login


@lru_cache(maxsize=256)
def parsed_url(url: str) -> Url:
    """Return `url` taken apart; the same few come again and again.

    Raises:
        ConfigError: it is no http or https address.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        host = host if host.isascii() else _in_ascii(host)
    except ValueError:  # UnicodeError, of a host, is one too
        parts, host, port = urlsplit(""), "", None
    if parts.scheme not in _PORTS or not host or port == 0 or any(letter <= " " for letter in host):
        raise ConfigError("base_url cannot be asked: it is not whole. Give an http or https address.")
    target = quote(parts.path or "/", safe=_IN_PATH)
    if parts.query:
        target += "?" + quote(parts.query, safe=_IN_QUERY)
    login = None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))
    return Url(parts.scheme, host, port or _PORTS[parts.scheme], target, login)


def _in_ascii(host: str) -> str:
    # Python knows the rules of 2003. Where those of today lead to another host, the key must not go there.
    if not _READ_DIFFERENTLY.isdisjoint(host.lower()):
        raise ValueError("write the name of the host as it is registered, xn--…")
    return host.encode("idna").decode("ascii")
