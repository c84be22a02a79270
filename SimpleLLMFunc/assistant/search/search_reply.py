"""What a search client is, and how its reply is read: foreign data, checked and cut."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Final, Protocol, TypedDict
from urllib.parse import urlsplit

from SimpleLLMFunc.errors import ProviderError, cut
from SimpleLLMFunc.type import without_surrogates

__all__ = [
    "MAX_QUERY_CHARS",
    "MAX_RESULTS",
    "SearchClient",
    "SearchReply",
    "SearchResult",
    "is_empty",
    "no_reply",
    "on_one_line",
    "read_reply",
]

MAX_RESULTS: Final = 20
"""Results kept of one reply."""

MAX_CONTENT_CHARS: Final = 4000
"""Characters kept of one result's content, and of the answer."""

MAX_QUERY_CHARS: Final = 400
"""Characters of a question that are searched for; search services refuse much longer ones."""

_MAX_LINE_CHARS = 500


class SearchResult(TypedDict):
    """One hit; `url` is http or https, or empty."""

    title: str
    url: str
    content: str


class SearchReply(TypedDict):
    """What a search found; `answer` is the service's own short answer, empty where it gives none."""

    answer: str
    results: list[SearchResult]


class SearchClient(Protocol):
    """Whatever can search: `TavilySearch`, `WikipediaSearch`, tavily's own clients, or an object of your own."""

    def search(self, query: str, /) -> Mapping[str, Any] | Awaitable[Mapping[str, Any]]:
        """Return ``{answer, results: [{title, url, content}]}``; sync or async."""
        ...


def read_reply(data: Any, *, service: str = "the search") -> SearchReply:
    """Return the reply of a search as plain data: texts cut, results without content or title dropped.

    Raises:
        ProviderError: it has not the shape of a search's reply.
    """
    if not isinstance(data, Mapping):
        raise no_reply(service, f"a {type(data).__name__} where an object was wanted")
    found = data.get("results")
    if found is None:
        found = []
    if isinstance(found, (str, bytes, Mapping)) or not isinstance(found, Sequence):
        raise no_reply(service, f"its `results` are a {type(found).__name__}, where a list was wanted")
    if "results" not in data and not isinstance(data.get("answer"), str):
        raise no_reply(service, "it has neither `results` nor `answer`")
    results = [kept for item in found[:MAX_RESULTS] if (kept := _result(item)) is not None]
    return SearchReply(answer=_text(data.get("answer"), MAX_CONTENT_CHARS), results=results)


def is_empty(reply: SearchReply) -> bool:
    """Whether a search found nothing that could be shown to a model."""
    return not reply["answer"] and not any(result["content"] for result in reply["results"])


def _result(item: Any) -> SearchResult | None:
    if not isinstance(item, Mapping):
        return None
    content = _text(item.get("content"), MAX_CONTENT_CHARS)
    title = on_one_line(_text(item.get("title"), _MAX_LINE_CHARS), _MAX_LINE_CHARS)
    if not content and not title:
        return None
    return SearchResult(title=title, url=_url(item.get("url")), content=content)


def _url(value: Any) -> str:
    """Return the address of a page; empty for one that a user should not be given to click on."""
    if not isinstance(value, str) or len(value) > 2000 or any(character <= " " for character in value):
        return ""
    try:
        parts = urlsplit(value)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        return ""
    return without_surrogates(value) if usable else ""


def _text(value: Any, limit: int) -> str:
    return cut(without_surrogates(value[: limit * 2]).strip(), limit) if isinstance(value, str) else ""


def on_one_line(text: str, limit: int) -> str:
    """Return a text on one line, cut to `limit` characters."""
    return cut(" ".join(without_surrogates(text[: limit * 4]).split()), limit)


def no_reply(service: str, problem: str) -> ProviderError:
    """Return the error for what came and is no reply of a search."""
    return ProviderError(f"what came is no reply of a search: {problem}.", model=service)
