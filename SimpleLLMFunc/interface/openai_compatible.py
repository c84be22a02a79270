"""OpenAICompatible: any service that speaks OpenAI's protocols: chat completions, or Responses."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Literal, cast
from urllib.parse import urlsplit

from SimpleLLMFunc.config import Settings
from SimpleLLMFunc.errors import BadRequest, ConfigError
from SimpleLLMFunc.interface.attempts import APIKeyPool, Call, KeySource
from SimpleLLMFunc.interface.http import Headers
from SimpleLLMFunc.interface.http.openai_client import ClientPerLoop, OwnClients, check_client, is_wrapped
from SimpleLLMFunc.interface.profile import Profile
from SimpleLLMFunc.interface.service_model import FIRST_BYTE_SECONDS, KEY_SECONDS, ServiceModel
from SimpleLLMFunc.interface.wires import CHAT, Wire
from SimpleLLMFunc.interface.wires.responses import ResponsesWire
from SimpleLLMFunc.logger import HTTP_LOGGERS, border, redact_logs_of, remember_secret
from SimpleLLMFunc.runtime import importing

OpenAIWire = Literal["chat", "responses"]

_OWN_ARGUMENTS = frozenset({"self", "__class__", "wire", "client"})
"""Those that `ServiceModel` does not take."""
_UNSURE = frozenset({"openai-compatible", "ollama"})
"""Profiles of addresses where the server may be any."""


class OpenAICompatible(ServiceModel):
    """A model behind one of OpenAI's protocols, at OpenAI or elsewhere.

    The key is OPENAI_API_KEY and the address OPENAI_BASE_URL, unless they are given. The arguments that are not told of
    here are those of `ServiceModel`.

    Args:
        model_name: what the service calls it.
        wire: "chat" for chat completions, "responses" for the Responses API. By default api.openai.com and Azure's v1
            are asked by Responses, every other address by chat completions; what is said is never changed.
        client: an `openai.AsyncOpenAI` or `AsyncAzureOpenAI` that sends the requests instead.

    Raises:
        ConfigError: an argument that cannot be.
    """

    own_url = "https://api.openai.com/v1"
    url_variable = "OPENAI_BASE_URL"
    key_variables = ("OPENAI_API_KEY",)

    @border
    def __init__(
        self,
        model_name: str,
        *,
        api_key: str | KeySource | None = None,
        api_key_pool: APIKeyPool | None = None,
        base_url: str | None = None,
        wire: OpenAIWire | None = None,
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
        api_key_seconds: float = KEY_SECONDS,
        prompt_cache: Literal["auto", "off"] = "auto",
        _guarded: bool = True,
    ) -> None:
        given = {name: value for name, value in locals().items() if name not in _OWN_ARGUMENTS}
        if wire not in (None, "chat", "responses"):
            raise ConfigError(
                f'wire is "chat" or "responses", not {wire!r}. Anthropic(…) speaks Messages, Gemini(…) generateContent.'
            )
        if client is not None:
            check_client(client)
            if api_key is not None or api_key_pool is not None or base_url is not None:
                raise ConfigError(
                    "client= brings its own key and address; leave out api_key, api_key_pool and base_url."
                )
            given["base_url"] = str(client.base_url)
        settings = Settings.from_environment()
        whose = {"OpenAI-Organization": settings.openai_organization, "OpenAI-Project": settings.openai_project}
        self._said_wire = wire
        super().__init__(**given)
        self._client = None if client is None else ClientPerLoop(client)
        self._whose = Headers({name: value for name, value in whose.items() if value})
        self._own_clients = OwnClients()
        if isinstance(secret := getattr(client, "api_key", None), str):
            remember_secret(secret)

    def _wire(self, service: str) -> Wire:
        if (self._said_wire or _wire_of(self._address)) == "chat":
            return CHAT
        return self._responses(service)

    def _changes_wire(self, call: Call, error: BadRequest) -> bool:
        if self._said_wire is not None or call.spoken is not CHAT or getattr(type(self), "wire", None) is not None:
            return False
        if self.wire is not CHAT:
            return True  # another call was told the same
        self.wire = self._responses(urlsplit(self._address).hostname or "")
        try:
            self._request(call.asked, stream=call.stream)
        except ConfigError:
            self.wire = CHAT  # the other one has no word for something that is asked: the refusal stands
            return False
        self.keeps_tools = True
        self._standing = (("wire: responses instead of chat", error.body),)
        return True

    def _responses(self, service: str) -> ResponsesWire:
        return ResponsesWire(service, self.prompt_cache == "auto")

    def _profile(self, address: str) -> Profile:
        found = super()._profile(address)
        if found.name in _UNSURE and self._said_wire == "responses":
            # llama.cpp passes over `text.format` in silence: the type is described where nothing else is known.
            return Profile("responses")
        return found

    def _remake(self, **given: Any) -> None:
        given.pop("api_version", None)
        OpenAICompatible.__init__(self, **given)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return {**state, "given": {**state["given"], "wire": self._said_wire}}

    @classmethod
    def _of_wire(cls, wire: str | None) -> Any:
        from SimpleLLMFunc.interface.anthropic import Anthropic
        from SimpleLLMFunc.interface.gemini import Gemini

        makers: dict[str, Any] = {"messages": Anthropic, "gemini": Gemini}
        return makers.get(wire or "") or partial(cls, wire=cast("OpenAIWire | None", wire))

    # --- the openai package's client ---------------------------------------------------------------------

    @property
    def client(self) -> Any:
        """An `openai.AsyncOpenAI` set up the same way, for endpoints that are not covered here; one per event loop.

        It is closed with its loop. Outside of a loop it is a new one each time, which the caller closes.
        """
        if self._client is not None:
            return self._client.client
        return self._own_clients.here(self._new_client)

    @property
    def is_traced(self) -> bool:
        """Whether something has put itself around the calls of the client that the running loop has."""
        path = self.wire.path(self.model_name, stream=False)
        return self._client is not None and is_wrapped(self._client.here(), path)

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
            api_key=self._keys.asked.key if self._keys.asked is not None else self._keys.key() or "not-needed",
            # The package would write its paths behind a query.
            base_url=self._address.without_query,
            default_query=self._address.query or None,
            organization=self._whose.get("OpenAI-Organization"),
            project=self._whose.get("OpenAI-Project"),
            max_retries=self.max_retries,
            timeout=self.timeout,
            default_headers=self._extra_headers or None,
        )


def _wire_of(address: str) -> OpenAIWire:
    """Return the wire that an address is asked by where nothing is said."""
    parts = urlsplit(address)
    host = (parts.hostname or "").lower()
    is_azure_v1 = host.endswith(".openai.azure.com") and parts.path.rstrip("/").endswith("/openai/v1")
    return "responses" if host == "api.openai.com" or is_azure_v1 else "chat"
