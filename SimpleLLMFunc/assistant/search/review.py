"""The assistant's review of an answer: an uncertain one is looked up once, and asked for again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal

from SimpleLLMFunc.assistant.search.search import SearchClient, SearchReply, is_empty, render_results, search_web
from SimpleLLMFunc.base.request import Toolset
from SimpleLLMFunc.base.run import EmptyReview, Run
from SimpleLLMFunc.errors import ProviderError
from SimpleLLMFunc.interface.spending import current_deadline
from SimpleLLMFunc.logger import push_info, push_warning, shown_error
from SimpleLLMFunc.tools import run_callable
from SimpleLLMFunc.type import ChatCompletion, Message

_RETRY_TIMES: Final = 2
"""Further attempts after an empty answer."""


class SearchReview(EmptyReview):
    """Accepts an answer, or sends the model back to work with what a search found; at most once.

    Detector and search have the time that the question has left; where it runs out in them, the answer stands.

    Args:
        run: the run.
        tools: of the run.
        question: the user's words: all that the search gets to see.
        search: None never searches.
        detect: says of an answer whether the model was unsure.
        language: of the words around the results.
        timeout: seconds for the search.

    Attributes:
        sources: the results that the answer was given.
    """

    def __init__(
        self,
        run: Run,
        tools: Toolset,
        *,
        question: str,
        search: SearchClient | None,
        detect: Callable[[str], bool | Awaitable[bool]],
        language: Literal["zh", "en"],
        timeout: float,
    ) -> None:
        super().__init__(run, tools, retry_times=_RETRY_TIMES)
        self.sources: list[dict[str, Any]] = []
        self._question = question
        self._search = search
        self._detect = detect
        self._language: Literal["zh", "en"] = language
        self._timeout = timeout
        self._searched = False

    @property
    def may_search(self) -> bool:
        """Whether an answer that comes now might still be taken back."""
        return self._search is not None and not self._searched and not self.run.tool_calls

    async def judge(self, reply: ChatCompletion, messages: list[Message]) -> list[Message] | None:
        """Accept the answer, or return the conversation with the results of a search."""
        self.note(reply)
        if not self.may_search or not self._question.strip() or not await self._is_uncertain(reply.text):
            return None
        self._searched = True
        push_info(f"{self.run.func_name!r} is unsure and searches.")
        found = await self._found()
        if found is None:
            return None
        self.sources = [dict(result) for result in found["results"]]
        return [*messages, *render_results(self._question, found, language=self._language)]

    async def _is_uncertain(self, text: str) -> bool:
        limit = asyncio.timeout(_time_left())
        try:
            async with limit:
                return bool(await run_callable(self._detect, [text], {}))
        except Exception as error:  # noqa: BLE001 - a detector that fails has not found the answer uncertain
            why = "had no time left" if limit.expired() else f"failed: {shown_error(error)}"
            push_warning(f"the detector {why}; the answer stands.")
            return False

    async def _found(self) -> SearchReply | None:
        """Return what the search found, None where it failed or found nothing."""
        assert self._search is not None, "only asked where there is a search"
        left = _time_left()
        seconds = self._timeout if left is None else min(self._timeout, left)
        try:
            found = await search_web(self._search, self._question, timeout=seconds)
        except ProviderError as error:
            push_warning(f"the search failed, the first answer stands: {error}")
            return None
        return None if is_empty(found) else found


def _time_left() -> float | None:
    clock = current_deadline()
    return clock.left() if clock else None
