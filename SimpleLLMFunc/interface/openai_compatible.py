"""OpenAICompatible: any service that speaks OpenAI's chat protocol."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from os import PathLike
from pathlib import Path
from typing import Any, Self

from SimpleLLMFunc.config import ProviderEntry, Settings, read_provider_file
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.attempts import (
    APIKeyPool,
    Call,
    Credentials,
    HttpModel,
    Limits,
    LimitSettings,
    entry_from_file,
)
from SimpleLLMFunc.interface.http import Address, Headers
from SimpleLLMFunc.interface.http.openai_client import ClientPerLoop, OwnClients, check_client
from SimpleLLMFunc.interface.profile import Profile, find_profile
from SimpleLLMFunc.interface.wires import CHAT, Asked, check_base_url, extra_headers_of, number
from SimpleLLMFunc.logger import HTTP_LOGGERS, border, redact, redact_logs_of, remember_secret
from SimpleLLMFunc.runtime import importing

__all__ = ["OpenAICompatible"]

OPENAI_URL = "https://api.openai.com/v1"
FIRST_BYTE_SECONDS = 600.0


class OpenAICompatible(HttpModel):
    """A model behind an OpenAI-compatible chat API.

    Args:
        model_name: what the service calls it.
        api_key: the key; else the pool's, else OPENAI_API_KEY. A local `base_url` needs none.
        api_key_pool: several keys; each call takes the one with the fewest calls in flight.
        base_url: by default OPENAI_BASE_URL, else OpenAI's own.
        max_retries: further tries after the first.
        retry_delay: seconds before the first further try; doubles, with jitter.
        rate_limit_capacity, rate_limit_refill_rate: a bucket of requests, and how many it regains per second.
        requests_per_minute, tokens_per_minute: what the service allows; calls wait for their turn.
        context_window: tokens that the model reads and writes together, None when unknown.
        timeout: seconds to the first byte of one try; connecting may take 10, a pause inside an answer 60.
        deadline: seconds for a whole call, its queueing and tries included.
        client: an `openai.AsyncOpenAI` or `AsyncAzureOpenAI` that sends the requests instead.
        api_params: goes out with every request; what a call gives comes before it. `extra_headers` in it are headers.
        profile: what the service can do, or the name of a known one; by default told from the address.

    Raises:
        ConfigError: an argument that cannot be.
    """

    reads_reasoning = True
    wire = CHAT

    @border
    def __init__(
        self,
        model_name: str,
        *,
        api_key: str | None = None,
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
        client: Any = None,
        api_params: Mapping[str, Any] | None = None,
        profile: Profile | str | None = None,
        _guarded: bool = True,
    ) -> None:
        name: object = model_name
        if not isinstance(name, str) or not name.strip():
            raise ConfigError("model_name is empty. Write what the service calls the model, such as gpt-5-mini.")
        if client is not None:
            check_client(client)
        if client is not None and (api_key is not None or api_key_pool is not None or base_url is not None):
            raise ConfigError(
                "client= has a key and an address of its own; leave out api_key, api_key_pool and base_url."
            )
        settings = Settings.from_environment()
        address = Address(
            check_base_url(
                str(client.base_url) if client is not None else base_url or settings.openai_base_url or OPENAI_URL
            )
        )
        self.profile = find_profile(profile, address)
        self.provider = find_profile(None, address).name
        max_retries = int(number("max_retries", max_retries, least=0))
        retry_delay = number("retry_delay", retry_delay, least=0)
        self.context_window = context_window
        keys = Credentials(model_name, address, api_key, api_key_pool)
        extra_headers, params = extra_headers_of(api_params or {})
        whose = {"OpenAI-Organization": settings.openai_organization, "OpenAI-Project": settings.openai_project}
        super().__init__(
            model_name,
            address,
            keys=keys,
            limits=Limits(
                LimitSettings(rate_limit_capacity, rate_limit_refill_rate, requests_per_minute, tokens_per_minute)
            ),
            client=None if client is None else ClientPerLoop(client),
            whose=Headers({name: value for name, value in whose.items() if value}),
            extra_headers=Headers(extra_headers),
            api_params=params,
            timeout=number("timeout", timeout, above=0),
            deadline=None if deadline is None else number("deadline", deadline, above=0),
            max_retries=max_retries,
            retry_delay=retry_delay,
            guarded=_guarded,
        )
        self._own_clients = OwnClients()
        self._source: tuple[str, str] | None = None
        self._lost: list[str] = []
        if isinstance(secret := getattr(client, "api_key", None), str):
            remember_secret(secret)

    @classmethod
    @border
    def load_from_json_file(cls, path: str | PathLike[str]) -> dict[str, dict[str, Self]]:
        """Return every model of a provider file, as ``{provider: {model_name: model}}``.

        Raises:
            FileNotFoundError: there is no such file.
            ConfigError: it is not what it should be; names provider, entry and field.
        """
        # Absolute, because a pickle may be loaded somewhere else.
        place = str(Path(path).resolve())
        providers = read_provider_file(path)
        return {
            provider: {entry.model_name: cls._from_entry(entry, place, provider) for entry in entries}
            for provider, entries in providers.items()
        }

    @classmethod
    def _from_entry(cls, entry: ProviderEntry, path: str, provider: str) -> Self:
        given = {name: getattr(entry, name) for name in type(entry).model_fields if name != "api_keys"}
        model = cls(**given, api_key_pool=APIKeyPool(entry.api_keys, provider) if entry.api_keys else None)
        model._source = (path, provider)
        return model

    async def _begin(self, asked: Asked, *, stream: bool) -> Call:
        self._check_whole()
        return await super()._begin(asked, stream=stream)

    # --- the openai package's client ---------------------------------------------------------------------

    @property
    def client(self) -> Any:
        """An `openai.AsyncOpenAI` set up the same way, for endpoints that are not covered here; one per event loop.

        It is closed with its loop. Outside of a loop it is a new one each time, which whoever asks for it closes.
        """
        if self._client is not None:
            return self._client.client
        return self._own_clients.here(self._new_client)

    @asynccontextmanager
    async def lent_client(self) -> AsyncGenerator[Any, None]:
        """Lend an `openai.AsyncOpenAI` to this event loop: the user's own, or a new one that is closed again."""
        if self._client is not None:
            yield self._client.here()
            return
        client = await importing(self._new_client)
        try:
            yield client
        finally:
            await client.close()

    def _new_client(self) -> Any:
        import openai

        self._check_whole()
        redact_logs_of("openai._base_client", *HTTP_LOGGERS)
        return openai.AsyncOpenAI(
            api_key=self._keys.key() or "not-needed",
            # The package would write its paths behind a query.
            base_url=self._address.without_query,
            default_query=self._address.query or None,
            organization=self._whose.get("OpenAI-Organization"),
            project=self._whose.get("OpenAI-Project"),
            max_retries=self.max_retries,
            timeout=self.timeout,
            default_headers=self._extra_headers or None,
        )

    # --- as an object ------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model_name!r}, base_url={redact(self.base_url or '')!r})"

    def _check_whole(self) -> None:
        if self._lost:
            raise ConfigError(
                f"{self.model_name} came out of a pickle, and secrets are never in a pickle: {', '.join(self._lost)}. "
                "Make the model anew, or load it from its provider file."
            )

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __getstate__(self) -> dict[str, Any]:
        if self._client is not None:
            raise ConfigError(
                f"{self.model_name}: a model made with client= cannot be pickled. Make it anew over there."
            )
        secret = set(self._extra_headers.secrets)
        headers = {name: value for name, value in self._extra_headers.items() if name not in secret}
        lost = [f"the header {name}" for name in secret] + [f"{name} in base_url" for name in self._address.secrets]
        return {
            "source": self._source,
            "lost": [*self._lost, *lost],
            "given": {
                "model_name": self.model_name,
                "base_url": self.base_url,
                "max_retries": self.max_retries,
                "retry_delay": self.retry_delay,
                "context_window": self.context_window,
                "timeout": self.timeout,
                "deadline": self.deadline,
                "api_params": {
                    **self.api_params,
                    **({"extra_headers": headers} if headers else {}),
                },
                "profile": self.profile,
                "_guarded": self._guarded,
                **self._limits.settings.as_arguments(),
            },
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        given: dict[str, Any] = state["given"]
        source: tuple[str, str] | None = state["source"]
        lost: list[str] = state["lost"]
        entry = None if source is None else entry_from_file(*source, given["model_name"])
        if entry is not None and lost:
            given, lost = {**given, "base_url": entry.base_url, "api_params": entry.api_params}, []
        pool = APIKeyPool(entry.api_keys, source[1]) if source and entry and entry.api_keys else None
        OpenAICompatible.__init__(self, **given, api_key_pool=pool)
        self._source, self._lost = source, lost
