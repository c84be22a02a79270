"""APIKeyPool: several keys of one provider, each call with the one that has least to do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

from SimpleLLMFunc.config import clean_key
from SimpleLLMFunc.errors import ConfigError, counted
from SimpleLLMFunc.logger import remember_secret
from SimpleLLMFunc.runtime import ForkSafeLock, renew_in_child
from SimpleLLMFunc.utils import Uncopied


@dataclass(slots=True)
class _Load:
    """What is known about one key.

    Attributes:
        tasks: calls in flight with it.
        turn: when it was last given out, as a number that only grows.
        cool_until: on the pool's clock; before that other keys are preferred.
    """

    tasks: int = 0
    turn: int = 0
    cool_until: float = float("-inf")


class APIKeyPool(Uncopied):
    """Keys of one provider, shared by all calls of the process.

    A pool is one thing: copying gives the same pool. Pickling drops the keys.

    Args:
        keys: at least one; a key given twice counts once.
        provider_id: a name for messages and repr.
        clock: seconds, only growing; for tests.

    Raises:
        ConfigError: no keys, or something that is no key. It is a ValueError, and never shows a key.
    """

    __slots__ = ("__weakref__", "_clock", "_loads", "_lock", "_turn", "provider_id")

    def __init__(
        self, keys: Iterable[str], provider_id: str | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._set_up(_checked(keys, provider_id), provider_id, clock)

    def _set_up(self, keys: Iterable[str], provider_id: str | None, clock: Callable[[], float]) -> None:
        self.provider_id = provider_id
        self._clock = clock
        self._lock = ForkSafeLock()
        self._turn = 0
        self._loads = {key: _Load() for key in keys}
        for key in self._loads:
            remember_secret(key)
        renew_in_child(self)

    def get_least_loaded_key(self) -> str:
        """Return the key with the fewest calls in flight; among equals, the one that was given out longest ago.

        Keys that cool down are given out only when all do: then the one that is ready first. Nothing is counted:
        `lease` does both at once.
        """
        with self._lock:
            return self._pick()

    def increment_task_count(self, key: str) -> None:
        """Count one more call in flight with `key`.

        Raises:
            ConfigError: `key` is not in the pool (a ValueError).
        """
        with self._lock:
            self._load(key).tasks += 1

    def decrement_task_count(self, key: str) -> None:
        """Count one call less with `key`; never below zero.

        Raises:
            ConfigError: `key` is not in the pool (a ValueError).
        """
        with self._lock:
            load = self._load(key)
            load.tasks = max(0, load.tasks - 1)

    @contextmanager
    def lease(self) -> Iterator[str]:
        """Give the least loaded key for the ``with`` block and count it there, however the block ends."""
        with self._lock:
            key = self._pick()
            self._loads[key].tasks += 1
        try:
            yield key
        finally:
            self.decrement_task_count(key)

    def cool_down(self, key: str, seconds: float) -> None:
        """Prefer other keys for `seconds`: the service refused `key`, or limits it. 0 ends a cool-down.

        Raises:
            ConfigError: `key` is not in the pool (a ValueError).
        """
        with self._lock:
            self._load(key).cool_until = self._clock() + seconds

    def ready_in(self) -> float:
        """Return the seconds until a key is not cooling down; 0 where one is ready now."""
        with self._lock:
            now = self._clock()
            return max(0.0, min((load.cool_until - now for load in self._loads.values()), default=0.0))

    def task_count(self, key: str) -> int:
        """Return how many calls are in flight with `key`."""
        with self._lock:
            return self._load(key).tasks

    @property
    def tasks(self) -> int:
        """Calls in flight with all keys together."""
        with self._lock:
            return sum(load.tasks for load in self._loads.values())

    def __len__(self) -> int:
        return len(self._loads)

    def __repr__(self) -> str:
        name = "" if self.provider_id is None else f"provider_id={self.provider_id!r}, "
        return (
            f"{type(self).__name__}({name}{counted(len(self._loads), 'key')}, {counted(self.tasks, 'call')} in flight)"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return key_pool_again, (type(self), self.provider_id)

    def renew_in_child(self) -> None:
        """Forget the calls in flight: they are the parent's."""
        for load in self._loads.values():
            load.tasks = 0

    def _pick(self) -> str:
        loads = self._loads or self._refuse_empty()
        now = self._clock()
        key = min(loads, key=lambda key: (max(loads[key].cool_until, now), loads[key].tasks, loads[key].turn))
        self._turn += 1
        loads[key].turn = self._turn
        return key

    def _load(self, key: str) -> _Load:
        load = (self._loads or self._refuse_empty()).get(key)
        if load is None:
            raise ConfigError(f"this key is not in the pool{_of(self.provider_id)}. Use one that the pool gave out.")
        return load

    def _refuse_empty(self) -> NoReturn:
        raise ConfigError(
            f"the APIKeyPool{_of(self.provider_id)} came out of a pickle, and keys are never in a pickle. "
            "Make a new one, or read the provider file again."
        )


def _checked(keys: Iterable[str], provider_id: str | None) -> list[str]:
    where = f"APIKeyPool{_of(provider_id)}"
    # A string is iterable too: its characters would be taken for keys.
    if isinstance(keys, str | bytes) or not isinstance(keys, Iterable):
        raise ConfigError(f'{where}: give a list of keys, as in APIKeyPool(["key one", "key two"]).')
    checked = [clean_key(key, f"{where}, key {number}") for number, key in enumerate(keys, 1)]
    if not checked:
        raise ConfigError(f"{where}: the list of keys is empty. Give at least one.")
    return checked


def _of(provider_id: str | None) -> str:
    return "" if provider_id is None else f" of {provider_id!r}"


def key_pool_again(cls: type[APIKeyPool], provider_id: str | None) -> APIKeyPool:
    """Return a pool as it comes out of a pickle: without keys."""
    pool = cls.__new__(cls)
    pool._set_up((), provider_id, time.monotonic)  # noqa: SLF001 - this is the class's own way back from a pickle
    return pool
