"""The callers over HTTP: their keys, of which only hashes are kept, and their limits."""

from __future__ import annotations

import contextvars
import hashlib
import hmac
import json
import math
import os
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from SimpleLLMFunc.config import file_path
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.attempts import TokenBucket
from SimpleLLMFunc.interface.spending import Spent, budget
from SimpleLLMFunc.logger import remember_secret
from SimpleLLMFunc.serve.http_responses import Problem

KEYS_VARIABLE: Final = "SIMPLELLMFUNC_SERVE_KEYS"
"""A variable with callers as ``name:sha256 name:sha256``, or as the JSON of the file."""

_DAY: Final = 86_400


class CallerEntry(BaseModel):
    """One caller, in the form that the file has.

    Attributes:
        sha256: of the key, in hexadecimal digits; the key itself is not kept.
        requests_per_minute: calls; None for no limit.
        usd_per_day, tokens_per_day: limits for its calls, from midnight UTC on; None for no limit.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1, max_length=100, pattern=r"^[\w.@-]+$")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    requests_per_minute: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    usd_per_day: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    tokens_per_day: int | None = Field(default=None, ge=0)


_ENTRIES: Final = TypeAdapter(list[CallerEntry])


def new_key() -> str:
    """Return a random key of 256 bits."""
    return "slf_" + secrets.token_urlsafe(32)


def hash_of(key: str) -> str:
    """Return the hash of a key. One round is enough: keys are long and random."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


class Caller:
    """One caller while the server runs: its rate limit, and its budget of today."""

    def __init__(self, entry: CallerEntry) -> None:
        self.entry = entry
        self.name = entry.name
        self._lock = threading.Lock()
        self._scope: tuple[int, contextvars.Context, AbstractContextManager[Spent]] | None = None
        per_minute = entry.requests_per_minute
        self._bucket = None if per_minute is None else TokenBucket(max(1.0, per_minute), per_minute / 60)

    async def take(self) -> None:
        """Count one call.

        Raises:
            Problem: too many calls in this minute; has the seconds to wait.
        """
        if self._bucket is None or await self._bucket.acquire(1, timeout=0):
            return
        seconds = max(1, math.ceil((1 - self._bucket.level) / self._bucket.refill_rate))
        raise Problem(
            429,
            f"{self.name} may call {self.entry.requests_per_minute:g} times a minute. Try again in {seconds} s.",
            "TooManyRequests",
            headers={"retry-after": str(seconds)},
        )

    def context(self) -> contextvars.Context:
        """Return a context for one call, with the caller's budget of today."""
        entry = self.entry
        if entry.usd_per_day is None and entry.tokens_per_day is None:
            return contextvars.copy_context()
        with self._lock:
            day = int(time.time() // _DAY)
            if self._scope is None or self._scope[0] != day:
                self._end()
                context = contextvars.Context()
                manager = budget(usd=entry.usd_per_day, tokens=entry.tokens_per_day)
                context.run(manager.__enter__)
                self._scope = (day, context, manager)
            return self._scope[1].copy()

    def close(self) -> None:
        """End the budget."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._scope is not None:
            _, context, manager = self._scope
            context.run(manager.__exit__, None, None, None)
            self._scope = None


class Callers:
    """All callers; empty where the server needs no keys.

    Attributes:
        this_machine: who calls where there are no keys; without limits.
    """

    def __init__(self, entries: Sequence[CallerEntry] = ()) -> None:
        names = [entry.name for entry in entries]
        for what, values in (("name", names), ("key", [entry.sha256 for entry in entries])):
            if len(set(values)) != len(values):
                raise ConfigError(f"two callers have the same {what}. Each needs its own.")
        self._callers = [Caller(entry) for entry in entries]
        self.this_machine = Caller(CallerEntry.model_construct(name="this machine"))

    def __len__(self) -> int:
        return len(self._callers)

    def find(self, key: str) -> Caller | None:
        """Return the caller with this key, in constant time."""
        given = hash_of(key)
        found = None
        for caller in self._callers:
            if hmac.compare_digest(given, caller.entry.sha256):
                found = caller
        if found is not None:
            remember_secret(key)  # masked in logs and answers
        return found

    def close(self) -> None:
        """End all budgets."""
        for caller in self._callers:
            caller.close()

    @classmethod
    def load(cls, path: str | os.PathLike[str] | None = None, environment: Mapping[str, str] | None = None) -> Self:
        """Return the callers of a file, else those of the environment, else none.

        Raises:
            ConfigError: the file is not there, or not what it should be.
        """
        if path is not None:
            place = file_path(path, "callers")
            try:
                return cls(_entries(place.read_text(encoding="utf-8"), str(place)))
            except (OSError, UnicodeDecodeError) as error:
                raise ConfigError(f"the file of callers {str(place)!r} cannot be read: {error}") from error
        text = (os.environ if environment is None else environment).get(KEYS_VARIABLE, "").strip()
        if not text.startswith("["):
            pairs = (part.rpartition(":") for part in text.replace(",", " ").split())
            text = json.dumps([{"name": name, "sha256": digest} for name, _, digest in pairs])
        return cls(_entries(text, KEYS_VARIABLE))


def _entries(text: str, where: str) -> list[CallerEntry]:
    try:
        return _ENTRIES.validate_json(text)
    except ValidationError as error:
        # Without the values: one may be a key instead of its hash.
        said = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:5])
        raise ConfigError(
            f"{where} holds no callers ({said}). It is a list of objects with name, sha256 and, if wanted, "
            "requests_per_minute, usd_per_day, tokens_per_day. `simplellmfunc serve --new-key NAME` makes one."
        ) from None
