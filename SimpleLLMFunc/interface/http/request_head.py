"""The head of a request, as bytes."""

from __future__ import annotations

from collections.abc import Mapping

from SimpleLLMFunc.interface.http.content_decoding import CODINGS
from SimpleLLMFunc.interface.http.secret_parts import Hidden
from SimpleLLMFunc.interface.http.url import Url

__all__ = ["RequestHeaders", "request_head"]

_MOST_HEADS = 16
_UNSAYABLE = frozenset("\r\n\0")


class RequestHeaders(Hidden[str, str]):
    """Headers that go out again and again; knows the bytes of the head that they make, for each address."""

    def __init__(self, given: Mapping[str, str]) -> None:
        super().__init__(given)
        self._heads: Hidden[Url, bytes] = Hidden()

    def head(self, url: Url) -> bytes:
        """Return the head of a POST, up to its Content-Length.

        Raises:
            ValueError: a field holds a character that would end it.
        """
        head = self._heads.get(url)
        if head is None:
            if len(self._heads) >= _MOST_HEADS:  # a service may redirect to ever new addresses
                self._heads.clear()
            head = self._heads[url] = request_head("POST", url.target, url, self)
        return head


def request_head(method: str, target: str, url: Url, headers: Mapping[str, str]) -> bytes:
    """Return the head of a request, without the empty line at its end.

    Args:
        method: such as ``POST``.
        target: what stands behind it: the path, for a proxy the whole address.
        url: whose Host it is.
        headers: come before what is added to them, which is Host, Accept and Accept-Encoding.

    Raises:
        ValueError: a field holds a character that would end it.
    """
    known = {name.lower() for name in headers}
    added = {"Host": url.authority, "Accept": "*/*", "Accept-Encoding": CODINGS}
    fields = {name: value for name, value in added.items() if name.lower() not in known} | dict(headers)
    if any(not _UNSAYABLE.isdisjoint(part) for field in fields.items() for part in field):
        raise ValueError("a header holds a line break")
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), ""]
    return "\r\n".join(lines).encode()
