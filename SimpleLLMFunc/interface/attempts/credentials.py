"""Which key a request goes out with: the one given, one of the pool, the environment's, or none."""

from __future__ import annotations

import asyncio
import inspect
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import TypeAlias

from SimpleLLMFunc.config import clean_key, is_local_address, missing_key_message
from SimpleLLMFunc.errors import AuthenticationError, ConfigError, RateLimited, SimpleLLMFuncError
from SimpleLLMFunc.interface.attempts.key_pool import APIKeyPool
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.http import Address
from SimpleLLMFunc.logger import remember_secret, shown_error
from SimpleLLMFunc.runtime import in_thread

KeySource: TypeAlias = Callable[[], str] | Callable[[], Awaitable[str]]
"""Gives a key; a sync one runs in a thread, because most of them ask a service."""

_LOOK_AGAIN_SECONDS = 0.01

_REFUSED_KEY_SECONDS = 60.0
"""How long other keys of the pool are preferred after the service refused one."""

_LIMITED_KEY_SECONDS = 1.0
"""The same after a 429 that did not say how long it holds."""


class AskedKey:
    """A key that the user's function returns: asked for when needed, kept for a while, asked for again when refused.

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


class Credentials:
    """The keys of one model, in the order in which they count: its own, the pool's, the environment's.

    Args:
        base_url: where the key goes; a local address needs none.
        api_key: the key, or a function that gives it.
        variables: names of the environment in which a key may stand, the first one first.
        seconds: how long the key of a function is kept.

    Attributes:
        own: the model's own key, which all its requests go out with; None where it has none.
        asked: the key that a function gives; None where there is no function.
        is_single: whether all requests go out with one and the same key, or none.
    """

    # No __dict__: tools that print the fields of an object would show the key.
    __slots__ = ("_base_url", "_model_name", "_pool", "_variables", "asked", "is_single", "own")

    def __init__(
        self,
        model_name: str,
        base_url: str,
        api_key: str | KeySource | None,
        pool: APIKeyPool | None,
        variables: Sequence[str] = ("OPENAI_API_KEY",),
        seconds: float = 300.0,
    ) -> None:
        self._model_name = model_name
        self._base_url = base_url
        self._variables = variables
        self.asked = AskedKey(api_key, seconds) if callable(api_key) else None
        self.own = None if api_key is None or callable(api_key) else clean_key(api_key, "api_key")
        if not isinstance(pool, APIKeyPool | None):
            raise ConfigError(f"api_key_pool is an APIKeyPool, such as APIKeyPool([...]), not {type(pool).__name__}.")
        self._pool = pool
        self.is_single = pool is None or api_key is not None or len(pool) < 2
        if self.own is not None:
            remember_secret(self.own)

    @property
    def variable(self) -> str:
        """The variable that a shown request takes its key from."""
        given = (name for name in self._variables if os.environ.get(name, "").strip())
        return next(given, self._variables[0]) if self.asked is None else "API_KEY"

    async def take(self, block: AsyncExitStack) -> str:
        """Return the key of a request, empty where none is needed; one of a pool is counted until `block` ends.

        Raises:
            ConfigError: there is no key.
        """
        if self.asked is not None:
            return await self.asked.key()
        if self.own is None and self._pool is not None:
            return block.enter_context(self._pool.lease())
        return self._single()

    def key(self) -> str:
        """Return a key without counting it, empty where none is needed.

        Raises:
            ConfigError: there is no key.
        """
        if self.own is None and self._pool is not None:
            return self._pool.get_least_loaded_key()
        return self._single()

    def ready_in(self) -> float:
        """Return the seconds until a key of the pool is neither refused nor limited; 0 where one is now."""
        return 0.0 if self._pool is None else self._pool.ready_in()

    def spare(self, key: str, failed: AttemptFailed) -> None:
        """Let other keys of the pool go first after the service refused or limited this one."""
        error = failed.error
        if self.asked is not None:
            if isinstance(error, AuthenticationError):
                self.asked.forget(key)
            return
        if self._pool is None or self.own is not None:
            return
        if isinstance(error, AuthenticationError) or (isinstance(error, RateLimited) and error.kind == "quota"):
            self._pool.cool_down(key, _REFUSED_KEY_SECONDS)
        elif isinstance(error, RateLimited):
            self._pool.cool_down(key, failed.retry_after or _LIMITED_KEY_SECONDS)

    def _single(self) -> str:
        if self.own is not None:
            return self.own
        # Read at each call: a key may be set after the model was made.
        for name in self._variables:
            if key := os.environ.get(name, "").strip():
                key = clean_key(key, name)
                remember_secret(key)
                return key
        if is_local_address(self._base_url):
            return ""
        raise ConfigError(missing_key_message(self._model_name, Address(self._base_url).without_query, self._variables))
