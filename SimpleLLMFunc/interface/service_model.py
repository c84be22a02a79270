"""What the models of all services share: constructor arguments, the provider file, pickling, embeddings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from os import PathLike
from typing import Any, ClassVar, Literal, Self
from urllib.parse import urlsplit

from SimpleLLMFunc.config import ProviderEntry, place_in_file, read_provider_file, real_path
from SimpleLLMFunc.errors import ConfigError, UsageError
from SimpleLLMFunc.interface.attempts import APIKeyPool, Credentials, HttpModel, KeySource, Limits, LimitSettings
from SimpleLLMFunc.interface.http import Address, Headers
from SimpleLLMFunc.interface.llm_interface import load_prices, require_prices
from SimpleLLMFunc.interface.profile import Profile, find_profile
from SimpleLLMFunc.interface.spending import Deadline, charge_question, estimate_text_tokens, is_limited
from SimpleLLMFunc.interface.wires import MOST_TEXTS, Wire, check_base_url, embedding_request, extra_headers_of, number
from SimpleLLMFunc.logger import border, push_warning, redact
from SimpleLLMFunc.type import Usage
from SimpleLLMFunc.utils import Uncopied

FIRST_BYTE_SECONDS = 600.0
KEY_SECONDS = 300.0

_GIVEN = (
    "model_name", "base_url", "max_retries", "retry_delay", "context_window", "timeout", "deadline", "profile",
    "api_version", "prompt_cache", "_guarded",
)  # fmt: skip
"""What a pickle holds under the names of arguments."""


class ServiceModel(Uncopied, HttpModel):
    """A model of a service.

    Args:
        model_name: what the service calls it.
        api_key: the key, or a function (sync or async) that gives it; else the pool's, else the environment's. A local
            `base_url` needs none.
        api_key_pool: several keys; each call takes the one with the fewest calls in flight.
        base_url: by default that of the environment, else the maker's own.
        max_retries: further tries after the first.
        retry_delay: seconds before the first further try; doubles, with jitter.
        rate_limit_capacity, rate_limit_refill_rate: a bucket of requests, and how many it regains per second.
        requests_per_minute, tokens_per_minute: what the service allows; calls wait for their turn.
        context_window: tokens that the model reads and writes together, None when unknown.
        timeout: seconds to the first byte of one try; connecting may take 10, a pause inside the text of an answer
            60; while the model thinks, a pause may be as long as before the first byte.
        deadline: seconds for a whole call, its queueing and tries included.
        api_params: goes out with every request; what a call gives comes before it. `extra_headers` in it are headers.
        profile: what the service can do, or the name of a known one; by default told from the address and the model.
        api_key_seconds: how long the key of a function is kept.
        api_version: of the protocol, where it has versions; by default the one this wire was written for.
        prompt_cache: "auto" tells the service what it may keep of a prompt, "off" tells it nothing.

    Raises:
        ConfigError: an argument that cannot be.
    """

    own_provider: ClassVar[str] = "openai-compatible"
    own_url: ClassVar[str] = ""
    url_variable: ClassVar[str] = ""
    key_variables: ClassVar[tuple[str, ...]] = ()

    @border
    def __init__(
        self,
        model_name: str,
        *,
        api_key: str | KeySource | None = None,
        api_key_pool: APIKeyPool | None = None,
        base_url: str | None = None,
        max_retries: int = 2,
        retry_delay: float = 0.5,
        rate_limit_capacity: float | None = None,
        rate_limit_refill_rate: float | None = None,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        context_window: int | None = None,
        timeout: float = FIRST_BYTE_SECONDS,
        deadline: float | None = None,
        api_params: Mapping[str, Any] | None = None,
        profile: Profile | str | None = None,
        api_key_seconds: float = KEY_SECONDS,
        api_version: str | None = None,
        prompt_cache: Literal["auto", "off"] = "auto",
        _guarded: bool = True,
    ) -> None:
        name: object = model_name
        if not isinstance(name, str) or not name.strip():
            raise ConfigError(f"model_name is {name!r}. Write what the service calls the model, such as gpt-5-mini.")
        if prompt_cache not in ("auto", "off"):
            raise ConfigError(f'prompt_cache is "auto" or "off", not {prompt_cache!r}.')
        super().__init__(number("retry_delay", retry_delay, least=0))
        said = "" if base_url else os.environ.get(self.url_variable, "").strip()
        address = Address(check_base_url(base_url or said or self.own_url, self.url_variable if said else "base_url"))
        provider = find_profile(None, address).name
        self.provider = self.own_provider if provider == "openai-compatible" else provider
        self.model_name, self.base_url, self._address = model_name, address.shown, address
        self.prompt_cache, self.api_version, self.context_window = prompt_cache, api_version, context_window
        extra_headers, self.api_params = extra_headers_of(api_params or {})
        self._extra_headers = Headers(extra_headers)
        self._whose = Headers({})
        self.timeout = number("timeout", timeout, above=0)
        self.deadline = None if deadline is None else number("deadline", deadline, above=0)
        self.max_retries = int(number("max_retries", max_retries, least=0))
        kept = number("api_key_seconds", api_key_seconds, above=0)
        self._keys = Credentials(model_name, address, api_key, api_key_pool, self.key_variables, kept)
        rates = LimitSettings(rate_limit_capacity, rate_limit_refill_rate, requests_per_minute, tokens_per_minute)
        if context_window is not None:
            number("context_window", context_window, above=0)
        self._limits = Limits(rates)
        self._client, self._guarded = None, _guarded
        self.profile = self._profile(address) if profile is None else find_profile(profile, address)
        self._source: tuple[str, str] | None = None
        self._lost = []
        if getattr(type(self), "wire", None) is None:  # else a class of the user's brings its own
            self.wire = self._wire(urlsplit(address).hostname or "")
        self.keeps_tools = self.wire.name != "chat"

    # --- what a maker's class says -----------------------------------------------------------------------

    def _wire(self, service: str) -> Wire:
        """Return the wire to a host."""
        raise NotImplementedError

    def _profile(self, address: str) -> Profile:
        """Return what the service can do, where it is not said."""
        return find_profile(None, address)

    def _remake(self, **given: Any) -> None:
        """Begin again, with the arguments that a pickle held."""
        ServiceModel.__init__(self, **given)

    # --- from a file -------------------------------------------------------------------------------------

    @classmethod
    @border
    def load_from_json_file(cls, path: str | PathLike[str]) -> dict[str, dict[str, Self]]:
        """Return every model of a provider file, as ``{provider: {model_name: model}}``.

        Raises:
            FileNotFoundError: there is no such file.
            ConfigError: it is not what it should be; names provider, entry and field.
        """
        # Absolute, because a pickle may be loaded somewhere else.
        place = str(real_path(path))
        providers = read_provider_file(path)
        models: dict[str, dict[str, Self]] = {provider: {} for provider in providers}
        for provider, entries in providers.items():
            for position, entry in enumerate(entries):
                try:
                    models[provider][entry.model_name] = cls._from_entry(entry, place, provider)
                except ConfigError as error:
                    raise ConfigError(f"{place_in_file(os.fspath(path), (provider, position))}: {error}") from error
        return models

    @classmethod
    def _from_entry(cls, entry: ProviderEntry, path: str, provider: str) -> Self:
        given = {name: getattr(entry, name) for name in type(entry).model_fields if name not in {"api_keys", "wire"}}
        pool = APIKeyPool(entry.api_keys, provider) if entry.api_keys else None
        model: Self = cls._of_wire(entry.wire)(**given, api_key_pool=pool)
        model._source = (path, provider)
        return model

    @classmethod
    def _of_wire(cls, wire: str | None) -> Any:  # noqa: ARG003 - a class that speaks one has nothing to choose
        """Return what makes a model of an entry."""
        return cls

    # --- embeddings --------------------------------------------------------------------------------------

    @border
    async def embed(self, texts: Sequence[str], *, deadline: float | None = None, **params: Any) -> list[list[float]]:
        """Return a vector for each text, in order; each request holds at most a hundred texts.

        The keys, limits and budgets are those of chats; `api_params` are not sent.

        Raises:
            ProviderError: the service failed or refused.
            ConfigError: it has no embeddings, or there is no key.
            BudgetExceeded: a budget is used up.
            DeadlineExceeded: `deadline` passed.
        """
        if isinstance(texts, str) or not hasattr(texts, "__len__") or not all(isinstance(text, str) for text in texts):
            raise UsageError("embed takes a list of texts.")
        self._check_whole()
        found: list[list[float]] = []
        clock = self._clock(deadline)
        for start in range(0, len(texts), MOST_TEXTS):
            found += await self._embedded(texts[start : start + MOST_TEXTS], params, clock)
        return found

    async def _embedded(self, texts: Sequence[str], params: Mapping[str, Any], clock: Deadline) -> list[list[float]]:
        path, body = embedding_request(self.wire.name, self.model_name, texts, params, self.api_version or "v1beta")
        tokens = sum(map(estimate_text_tokens, texts))
        await (require_prices(self) if is_limited("usd") else load_prices(self))
        with charge_question(tokens, self.price(Usage(input_tokens=tokens)) or 0.0) as charge:
            usage: Usage | None = None
            try:
                vectors, told = await self._vectors(path, body, len(texts), tokens, clock)
                usage = Usage(input_tokens=tokens if told is None else told)
                usage = replace(usage, cost=self.price(usage))
            finally:
                charge.settle(usage, was_sent=not charge.prepaid)
        return vectors

    # --- as an object ------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model_name!r}, base_url={redact(self.base_url or '')!r})"

    def __getstate__(self) -> dict[str, Any]:
        if self._client is not None:
            raise ConfigError(
                f"{self.model_name}: a model made with client= cannot be pickled. Make a new one in the other process."
            )
        secret = set(self._extra_headers.secrets)
        headers = {name: value for name, value in self._extra_headers.items() if name not in secret}
        lost = [f"the header {name}" for name in secret] + [f"{name} in base_url" for name in self._address.secrets]
        if self._keys.asked is not None:
            lost.append("the function given as api_key=")
        return {
            "source": self._source,
            "lost": [*self._lost, *lost],
            "given": {
                **{name: getattr(self, name) for name in _GIVEN},
                "api_params": {**self.api_params, **({"extra_headers": headers} if headers else {})},
                **asdict(self._limits.settings),
            },
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        given: dict[str, Any] = state["given"]
        source: tuple[str, str] | None = state["source"]
        lost: list[str] = state["lost"]
        entry = None if source is None else _entry_from_file(*source, given["model_name"])
        if entry is not None and lost:
            given, lost = {**given, "base_url": entry.base_url, "api_params": entry.api_params}, []
        pool = APIKeyPool(entry.api_keys, source[1]) if source and entry and entry.api_keys else None
        self._remake(**given, api_key_pool=pool)
        self._source, self._lost = source, lost


def _entry_from_file(path: str, provider: str, model_name: str) -> ProviderEntry | None:
    """Return what a provider file says about a model; None where it is not there, or says nothing of it."""
    try:
        entries = read_provider_file(path).get(provider, [])
    except (OSError, ConfigError) as error:
        # A model is loaded from its pickle without a key: its first call says what is missing.
        push_warning(f"the keys of {model_name} could not be read again: {error}")
        return None
    return next((entry for entry in entries if entry.model_name == model_name), None)
