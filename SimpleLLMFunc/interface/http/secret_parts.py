"""The parts of a request, besides the API key, that may hold a secret: headers and the query of the address.

A gateway may want another key in a header; some services want theirs in the address. Such values are sent and appear
nowhere else: every text masks them, and pickles leave them out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import parse_qs, parse_qsl, urlsplit, urlunsplit

from SimpleLLMFunc.logger import MASK, looks_secret, remember_secret

K = TypeVar("K")
V = TypeVar("V")

_NO_SECRET = frozenset({"openai-organization", "openai-project"})


class Hidden(dict[K, V]):
    """A dict of which the repr shows nothing."""

    def __repr__(self) -> str:
        return f"{{{MASK}}}" if self else "{}"


class Headers(dict[str, str]):
    """Headers that go out with every request; their values are in no repr.

    Args:
        given: by name; what is secret among them is masked in every text from now on.
    """

    def __init__(self, given: Mapping[str, str]) -> None:
        super().__init__(given)
        for name in self.secrets:
            remember_secret(self[name])
            remember_secret(self[name].rpartition(" ")[2])  # without its "Bearer"

    @property
    def secrets(self) -> list[str]:
        """Names of the headers that hold a secret."""
        return [name for name, value in self.items() if name.lower() not in _NO_SECRET and looks_secret(name, value)]

    def __repr__(self) -> str:
        return repr(dict.fromkeys(self, MASK))


class Address(str):
    """An address as it goes out; its repr, and `shown`, are without the secrets of its query."""

    __slots__ = ()

    @property
    def secrets(self) -> list[str]:
        """Names of the parameters in the query that hold a secret."""
        pairs = parse_qsl(urlsplit(self).query, keep_blank_values=True)
        return [name for name, value in pairs if looks_secret(name, value)]

    @property
    def without_query(self) -> str:
        """The address without its query."""
        return urlunsplit(urlsplit(self)._replace(query=""))

    @property
    def query(self) -> Hidden[str, object]:
        """The parameters of its query, by name; of several values a list."""
        found = parse_qs(urlsplit(self).query, keep_blank_values=True)
        return Hidden({name: values[0] if len(values) == 1 else values for name, values in found.items()})

    @property
    def shown(self) -> str:
        """The address with its secrets masked; they are masked in every text from now on."""
        parts = urlsplit(self)
        shown = []
        for part in re.split("([&;])", parts.query):
            for name, value in parse_qsl(part, keep_blank_values=True):
                if looks_secret(name, value):
                    remember_secret(value)
                    part = f"{part.partition('=')[0]}={MASK}"  # noqa: PLW2901 - masked
            shown.append(part)
        return urlunsplit(parts._replace(query="".join(shown)))

    def __repr__(self) -> str:
        return repr(self.shown)
