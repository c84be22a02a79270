"""What the assistant remembers of its users beyond a session: the protocol of a store, and its place in an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, Protocol, runtime_checkable

from SimpleLLMFunc.assistant.words import WORDS
from SimpleLLMFunc.base.run import JournaledCall, kept_once
from SimpleLLMFunc.base.templates import enclosed
from SimpleLLMFunc.errors import ConfigError, RunError
from SimpleLLMFunc.interface.spending import current_deadline, strictest_time_limit
from SimpleLLMFunc.logger import push_warning, shown_error
from SimpleLLMFunc.tools import run_callable
from SimpleLLMFunc.type import Message

MAX_MEMORY_CHARS: Final = 4_000
"""Characters of memories that one question is given."""


@runtime_checkable
class MemoryStore(Protocol):
    """Keeps what users said; each method may be sync or async.

    A store may also have ``history(user_id, session_id) -> list[Message]``: then a session that is not in the
    memory of this process any more goes on where it ended.
    """

    def recall(self, user_id: str, message: str, session_id: str) -> Any:
        """Return as text what is known of the user that has to do with `message`; empty for nothing."""

    def remember(self, user_id: str, message: str, answer: str, session_id: str) -> Any:
        """Keep a question and its answer."""

    def delete_user(self, user_id: str) -> Any:
        """Forget everything about a user."""


def is_anonymous(user_id: str | None) -> bool:
    """Whether the user is not to be remembered: no user id, or one that begins with "anonymous"."""
    return user_id is None or not user_id.strip() or user_id.strip().lower().startswith("anonymous")


class ChatMemoryIntegration:
    """Brings a store's memories into a conversation; what the store does wrong never touches an answer.

    Args:
        store: None remembers nothing.
        timeout: seconds that the store has for each thing it is asked.
        language: of the words around the memories.

    Raises:
        ConfigError: the store lacks a method, or the time is not positive.
    """

    def __init__(
        self, store: MemoryStore | None, *, timeout: float = 2.0, language: Literal["zh", "en"] = "zh"
    ) -> None:
        if isinstance(store, type):
            raise ConfigError(f"memory= is an object, not the class {store.__name__}: make one of it.")
        if store is not None and not isinstance(store, MemoryStore):
            raise ConfigError(
                f"memory= needs recall, remember and delete_user, and {type(store).__name__} lacks some of them. "
                "Give a SqliteMemory, or write the three methods."
            )
        if not timeout > 0:
            raise ConfigError(f"memory_timeout must be more than 0 seconds, not {timeout!r}.")
        self.store = store
        self.timeout = timeout
        self._language = language

    async def enrich(
        self, messages: Sequence[Message], *, user_id: str | None, message: str, session_id: str
    ) -> list[Message]:
        """Return the conversation with the memories before its last message, in a block that is marked as data.

        The list given is not changed; it is meant for one request, so memories do not pile up.
        """
        enriched = list(messages)
        if self.store is None or user_id is None or is_anonymous(user_id):
            return enriched
        recalled = await self._asked("recall", self.store.recall, user_id, message, session_id)
        if not isinstance(recalled, str) or not recalled.strip():
            return enriched
        heading = WORDS["prompts"][self._language]["memory"]
        block = enclosed(recalled, MAX_MEMORY_CHARS, heading=heading, tag="memory", language=self._language)
        enriched.insert(len(enriched) - 1, {"role": "user", "content": block})
        return enriched

    async def remember(self, *, user_id: str | None, message: str, answer: str, session_id: str) -> None:
        """Have the store keep a question and its answer, once where a `durable` block runs again; none of a user without id."""
        store = self.store
        if store is None or user_id is None or is_anonymous(user_id) or not answer.strip():
            return
        exchange = [user_id, message, answer, session_id]

        async def keep(_: JournaledCall | None) -> None:
            await run_callable(store.remember, exchange, {})

        await self._asked("remember", kept_once, "remember", exchange, keep)

    async def history(self, *, user_id: str | None, session_id: str) -> list[Message]:
        """Return what the store knows of a session, empty where it knows nothing or keeps none."""
        find = getattr(self.store, "history", None)
        if find is None or user_id is None or is_anonymous(user_id):
            return []
        found = await self._asked("history", find, user_id, session_id)
        return list(found) if isinstance(found, (list, tuple)) else []

    async def forget(self, user_id: str) -> None:
        """Have the store forget a user; what it raises is raised.

        Raises:
            RunError: it took longer than the time it has.
        """
        if self.store is None:
            return
        limit = asyncio.timeout(self.timeout)
        try:
            async with limit:
                await run_callable(self.store.delete_user, [user_id], {})
        except TimeoutError:
            if not limit.expired():
                raise
            raise RunError(
                f"the memory took longer than {self.timeout:g} s to delete the user, and may not have finished. Ask "
                "again, or give the assistant a longer memory_timeout."
            ) from None

    async def _asked(self, what: str, func: Callable[..., Any], *args: Any) -> Any:
        limited = strictest_time_limit()
        left = (self.timeout, current_deadline().left(), None if limited is None else limited.left_of("seconds"))
        seconds = min(each for each in left if each is not None)
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await run_callable(func, list(args), {})
        except Exception as error:  # noqa: BLE001 - a broken memory must not break an answer
            text = f"failed in {what} and is ignored: {shown_error(error)}"
            if limit.expired():
                text = f"took longer than {seconds:.3g} s for {what} and is ignored."
            push_warning(f"the memory {text}")
        return None
