"""Searching the web: asking a search client, showing a model what it found, and the review of an answer that needs it.

The reply of a search comes from outside: it is checked and cut, and reaches a model only inside a delimited block of a
user's message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, TypeAlias, TypedDict

from SimpleLLMFunc.assistant.words import WORDS
from SimpleLLMFunc.base.run import EmptyReview
from SimpleLLMFunc.base.templates import enclosed
from SimpleLLMFunc.config import http_address
from SimpleLLMFunc.errors import ConnectionFailed, ProviderError, SimpleLLMFuncError, cut
from SimpleLLMFunc.interface.spending import current_deadline
from SimpleLLMFunc.logger import push_info, push_warning, shown_error
from SimpleLLMFunc.tools import run_callable
from SimpleLLMFunc.type import ChatCompletion, Message, without_surrogates

MAX_RESULTS: Final = 20
"""Results kept of one reply."""

MAX_CONTENT_CHARS: Final = 4000
"""Characters kept of one result's content, and of the answer."""

MAX_QUERY_CHARS: Final = 400
"""Characters of a question that are searched for; search services refuse much longer ones."""

_MAX_LINE_CHARS: Final = 500
_MAX_QUESTION_CHARS = 500
_MAX_SHOWN_CHARS: Final = 8000
"""Of the results that a model is shown; each has its share."""

_SHORTEST_SHARE = 200


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
    """An object that can search: `TavilySearch`, `WikipediaSearch`, tavily's own clients, or an object of your own."""

    def search(self, query: str, /) -> Mapping[str, Any] | Awaitable[Mapping[str, Any]]:
        """Return ``{answer, results: [{title, url, content}]}``; sync or async."""
        ...


# --- what came from a search ------------------------------------------------------------------------------


def read_reply(data: Any, *, service: str = "the search") -> SearchReply:
    """Return the reply of a search as plain data: texts cut, results without content or title dropped.

    Raises:
        ProviderError: it has not the shape of a search's reply.
    """
    if not isinstance(data, Mapping):
        raise no_reply(service, f"a {type(data).__name__} where an object was wanted")
    if "results" not in data and not isinstance(data.get("answer"), str):
        raise no_reply(service, "it has neither `results` nor `answer`")
    found = data.get("results") or []
    if not isinstance(found, (list, tuple)):
        raise no_reply(service, f"its `results` are a {type(found).__name__}, where a list was wanted")
    results = [kept for item in found[:MAX_RESULTS] if (kept := _result(item)) is not None]
    return SearchReply(answer=_text(data.get("answer"), MAX_CONTENT_CHARS), results=results)


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
    return without_surrogates(value) if http_address(value) else ""


def _text(value: Any, limit: int) -> str:
    return cut(without_surrogates(value[: limit * 2]).strip(), limit) if isinstance(value, str) else ""


def on_one_line(text: str, limit: int) -> str:
    """Return a text on one line, cut to `limit` characters."""
    return cut(" ".join(without_surrogates(text[: limit * 4]).split()), limit)


def no_reply(service: str, problem: str) -> ProviderError:
    """Return the error for what came and is no reply of a search."""
    return ProviderError(f"the reply is not a search result: {problem}.", model=service)


async def search_web(client: SearchClient, query: str, *, timeout: float = 10.0) -> SearchReply:
    """Ask a client once and return its reply, checked; a sync client runs in a thread.

    Args:
        client: see `SearchClient`.
        query: the user's question; white space is folded, more than `MAX_QUERY_CHARS` characters are cut.
        timeout: seconds; what a thread does after that is ignored.

    Raises:
        ConnectionFailed: no reply in time.
        ProviderError: the search failed, or its reply is no reply of a search.
    """
    name = type(client).__name__
    limit = asyncio.timeout(timeout)
    try:
        async with limit:
            found = await run_callable(client.search, [on_one_line(query, MAX_QUERY_CHARS)], {})
    except SimpleLLMFuncError:
        raise
    except Exception as error:  # noqa: BLE001 - a foreign client may raise anything
        if limit.expired():
            raise ConnectionFailed(
                name, reason=f"no reply within {timeout:g} s", advice="Search again later."
            ) from None
        # Not `from error`: what a foreign exception holds may be printed with the traceback.
        raise ProviderError(f"the search failed: {shown_error(error, 300)}", model=name) from None
    return read_reply(found, service=name)


# --- what the model is shown -------------------------------------------------------------------------------


def render_results(question: str, reply: SearchReply, *, language: Literal["zh", "en"] = "zh") -> list[Message]:
    """Return the two messages that show a model what a search found.

    The system message announces the results; the results themselves never speak with the system's voice: they
    follow in a user's message, between two marks that they cannot forge.

    Args:
        question: the user's, as searched for.
        reply: what `search_web` returned.
        language: of the announcement.
    """
    words = WORDS["search"][language]
    announced = WORDS["search"][language]["announcement"].format(question=on_one_line(question, _MAX_QUESTION_CHARS))
    parts = [words["summary"] + reply["answer"]] if reply["answer"] else []
    share = max(_SHORTEST_SHARE, _MAX_SHOWN_CHARS // (len(reply["results"]) + len(parts) + 1))
    parts = [cut(part, share) for part in parts]
    for number, result in enumerate(reply["results"], 1):
        lines = [f"[{number}] {result['title']}", result["url"], cut(result["content"], share)]
        parts.append("\n".join(line for line in lines if line))
    listed, heading = "\n\n".join(parts), words["heading"]
    block = enclosed(listed, _MAX_SHOWN_CHARS, heading=heading, tag="tool_data", language=language)
    return [{"role": "system", "content": announced}, {"role": "user", "content": block}]


# --- an uncertain answer is looked up once, and asked for again ---


@dataclass(eq=False, repr=False, kw_only=True)
class SearchReview(EmptyReview):
    """Accepts an answer, or sends the model back to work with what a search found; at most once.

    Detector and search have the time that the question has left; where it runs out in them, the answer stands.

    Attributes:
        question: the user's words: all that the search gets to see.
        search: None never searches.
        detect: says of an answer whether the model was unsure.
        language: of the words around the results.
        timeout: seconds for the search.
        sources: the results that the answer was given.
    """

    question: str
    search: SearchClient | None
    detect: Callable[[str], bool | Awaitable[bool]]
    language: Literal["zh", "en"]
    timeout: float
    retry_times: int = 2
    sources: list[dict[str, Any]] = field(default_factory=list, init=False)
    _searched: bool = field(default=False, init=False)

    @property
    def may_search(self) -> bool:
        """Whether an answer that comes now might still be taken back."""
        return self.search is not None and not self._searched and not self.run.tool_calls

    async def judge(self, reply: ChatCompletion, messages: list[Message]) -> list[Message] | None:
        """Accept the answer, or return the conversation with the results of a search."""
        self.note(reply)
        if not self.may_search or not self.question.strip() or not await self._is_uncertain(reply.text):
            return None
        assert self.search is not None, "only asked where there is a search"
        self._searched = True
        push_info(f"{self.run.func_name!r} is unsure and searches.")
        left = current_deadline().left()
        seconds = self.timeout if left is None else min(self.timeout, left)
        try:
            found = await search_web(self.search, self.question, timeout=seconds)
        except ProviderError as error:
            push_warning(f"the search failed, the first answer stands: {error}")
            return None
        if not found["answer"] and not any(result["content"] for result in found["results"]):
            return None
        self.sources = [dict(result) for result in found["results"]]
        return [*messages, *render_results(self.question, found, language=self.language)]

    async def _is_uncertain(self, text: str) -> bool:
        limit = asyncio.timeout(current_deadline().left())
        try:
            async with limit:
                return bool(await run_callable(self.detect, [text], {}))
        except Exception as error:  # noqa: BLE001 - a detector that fails has not found the answer uncertain
            why = "had no time left" if limit.expired() else f"failed: {shown_error(error)}"
            push_warning(f"the detector {why}; the answer stands.")
            return False


# --- a search for tests

StaticReply: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]] | BaseException | None
"""A whole reply, its results alone, an exception to raise, or None: nothing was found."""


class StaticSearch:
    """A search that finds what you wrote down, for tests and examples; it keeps what it was asked.

    Args:
        reply: what every query finds, or a function of the query that says so.

    Attributes:
        queries: what was searched for, in order.
    """

    def __init__(self, reply: StaticReply | Callable[[str], StaticReply] = None) -> None:
        self._reply = reply
        self.queries: list[str] = []

    async def search(self, query: str) -> SearchReply:
        """Return what was written down."""
        self.queries.append(query)
        reply = self._reply(query) if callable(self._reply) else self._reply
        if isinstance(reply, BaseException):
            raise reply
        if not isinstance(reply, Mapping):
            reply = {"results": list(reply or ())}
        return read_reply(reply, service="StaticSearch")
