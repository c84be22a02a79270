"""An API key that the user's function returns: asked for when needed, kept for a while, asked for again when refused."""

from __future__ import annotations

import asyncio
import inspect
import os
import time
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from SimpleLLMFunc.config import clean_key
from SimpleLLMFunc.errors import ConfigError, SimpleLLMFuncError
from SimpleLLMFunc.logger import remember_secret, shown_error
from SimpleLLMFunc.runtime import in_thread

KeySource: TypeAlias = Callable[[], str] | Callable[[], Awaitable[str]]
"""Gives a key; a sync one runs in a thread, because most of them ask a service."""

_LOOK_AGAIN_SECONDS = 0.01


class AskedKey:
    """The key of one model.

    Args:
        source: gives it.
        seconds: how long it is kept.
    """

    # No __dict__: tools that print the fields of an object would show the key.
    __slots__ = ("_asking", "_key", "_seconds", "_source", "_until")

    def __init__(self, source: KeySource, seconds: float) -> None:
        self._source = source
        self._seconds = seconds
        self._key = ""
        self._until = 0.0
        self._asking = 0  # the process that asks; a forked child asks for itself

    def __reduce__(self) -> tuple[object, ...]:
        raise ConfigError("api_key= is a function, which no pickle holds. Give the key on the other side.")

    async def key(self) -> str:
        """Return the key; the source is asked at most once at a time, in all event loops.

        Raises:
            ConfigError: the source failed, or gave no key.
        """
        while True:
            if self._key and time.monotonic() < self._until:
                return self._key
            if self._asking != os.getpid():
                break
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        self._asking = os.getpid()
        try:
            self._key = await self._asked()
            self._until = time.monotonic() + self._seconds
            return self._key
        finally:
            self._asking = 0

    def forget(self, key: str) -> None:
        """Do not give this key again; one that came since stays."""
        if key == self._key:
            self._until = 0.0

    async def _asked(self) -> str:
        try:
            given = self._source() if inspect.iscoroutinefunction(self._source) else await in_thread(self._source)
            if inspect.isawaitable(given):
                given = await given
        except SimpleLLMFuncError:
            raise
        except Exception as error:
            raise ConfigError(f"the function given as api_key= failed: {shown_error(error)}") from error
        key = clean_key(given, "the function given as api_key=")
        remember_secret(key)
        return key
