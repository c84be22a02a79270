"""OpenAICompatible: any service that speaks OpenAI's chat protocol; a question in, a reply or its pieces out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
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
    read_chunks,
    read_reply,
)
from SimpleLLMFunc.interface.body_json import decode, encode, is_long_body, off_loop, plain_size
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.http import Address, Headers
from SimpleLLMFunc.interface.http.openai_client import ClientPerLoop, OwnClients, check_client
from SimpleLLMFunc.interface.profile import Profile, find_profile
from SimpleLLMFunc.interface.spending import Deadline, current_deadline, estimate_tokens
from SimpleLLMFunc.interface.wires import (
    build_body,
    check_base_url,
    check_call_params,
    endpoint,
    extra_headers_of,
    number,
    taken_apart,
)
from SimpleLLMFunc.logger import HTTP_LOGGERS, redact, redact_logs_of, remember_secret
from SimpleLLMFunc.runtime import importing
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk, CompletionUsage, Message, ToolSpec

__all__ = ["OpenAICompatible"]

OPENAI_URL = "https://api.openai.com/v1"
FIRST_BYTE_SECONDS = 600.0
_NO_DEADLINE = Deadline.after(None)


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

    only_reads_messages = True

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
        self.base_url = address.shown
        self.profile = find_profile(profile, address)
        self.provider = find_profile(None, address).name
        max_retries = int(number("max_retries", max_retries, least=0))
        retry_delay = number("retry_delay", retry_delay, least=0)
        self.timeout = number("timeout", timeout, above=0)
        self.deadline = None if deadline is None else number("deadline", deadline, above=0)
        self.context_window = context_window
        keys = Credentials(model_name, address, api_key, api_key_pool)
        extra_headers, self.api_params = extra_headers_of(api_params or {})
        whose = {"OpenAI-Organization": settings.openai_organization, "OpenAI-Project": settings.openai_project}
        super().__init__(
            model_name,
            Address(endpoint(address)),
            keys=keys,
            limits=Limits(
                LimitSettings(rate_limit_capacity, rate_limit_refill_rate, requests_per_minute, tokens_per_minute)
            ),
            client=None if client is None else ClientPerLoop(client),
            whose=Headers({name: value for name, value in whose.items() if value}),
            extra_headers=Headers(extra_headers),
            max_retries=max_retries,
            retry_delay=retry_delay,
            guarded=_guarded,
        )
        self._address = address
        self._own_clients = OwnClients()
        self._source: tuple[str, str] | None = None
        self._lost: list[str] = []
        if isinstance(secret := getattr(client, "api_key", None), str):
            remember_secret(secret)

    @classmethod
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

    # --- asking ------------------------------------------------------------------------------------------

    async def chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] | None = None,
        response_format: dict[str, Any] | None = None,
        trace_id: str = "",
        deadline: float | None = None,
        **params: Any,
    ) -> ChatCompletion:
        """Ask once and return the whole reply; `timeout` and `extra_body` among `params` are as in the openai package.

        Raises:
            ProviderError: the service failed or refused.
            DeadlineExceeded: `deadline` passed.
            ConfigError: there is no key.
            UsageError: a parameter that cannot be given with a call, or real calls are forbidden.
        """
        call = await self._begin(messages, tools, response_format, deadline, params, trace_id, stream=False)
        del messages, tools, response_format, params  # not kept while the model answers
        while True:
            try:
                try:
                    completion = await read_reply(await self._send(call), self.model_name, call.tries)
                finally:
                    await self._give_back(call)
            except AttemptFailed as failed:
                await self._pause(call, failed)
            else:
                self._limits.settle(call.tokens, completion.usage)
                return completion

    async def chat_stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] | None = None,
        response_format: dict[str, Any] | None = None,
        trace_id: str = "",
        deadline: float | None = None,
        **params: Any,
    ) -> AsyncGenerator[ChatCompletionChunk, None]:
        """Ask once and yield the reply in pieces as they arrive; closing the generator closes the connection at once.

        A stream that breaks before it has shown any text is asked for again; the chunks of the new one carry a higher
        `tries`, and what came before is void.

        Raises:
            ProviderError: as `chat`; `StreamInterrupted` when the stream ends before the answer does.
        """
        call = await self._begin(messages, tools, response_format, deadline, params, trace_id, stream=True)
        del messages, tools, response_format, params  # not kept while the model answers
        while True:
            usage: CompletionUsage | None = None
            try:
                # No generator holds what is given back: a loop that shuts down closes its generators all at once,
                # the inner ones under the feet of the outer ones.
                try:
                    pieces = read_chunks(await self._send(call), self.model_name, call.tries)
                    try:
                        async for piece in pieces:
                            for chunk in piece:
                                usage = chunk.usage or usage
                                yield chunk
                                del chunk
                            del piece
                    finally:
                        await pieces.aclose()
                finally:
                    await self._give_back(call)
            except AttemptFailed as failed:
                await self._pause(call, failed)
            else:
                self._limits.settle(call.tokens, usage)
                return

    def render(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] | None = None,
        response_format: dict[str, Any] | None = None,
        stream: bool = False,
        **params: Any,
    ) -> dict[str, Any]:
        """Return the body that goes out on the wire."""
        check_call_params(params)
        return self._body(messages, tools, response_format, params, stream=stream)[0]

    def _body(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] | None,
        response_format: Mapping[str, Any] | None,
        params: Mapping[str, Any],
        *,
        stream: bool,
    ) -> tuple[dict[str, Any], float | None]:
        rest, timeout = taken_apart({**self.api_params, **params} if self.api_params else params)
        body = build_body(
            self.model_name,
            messages,
            self.profile,
            tools=tools,
            response_format=response_format,
            stream=stream,
            params=rest,
        )
        return body, timeout

    async def _begin(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] | None,
        response_format: Mapping[str, Any] | None,
        deadline: float | None,
        params: Mapping[str, Any],
        trace_id: str,
        *,
        stream: bool,
    ) -> Call:
        if params:
            check_call_params(params)
        if self._lost:
            self._check_whole()
        body, timeout = self._body(messages, tools, response_format, params, stream=stream)
        size = plain_size(body)
        parts = (body, size, tools, response_format)
        is_long = is_long_body(body, size)
        data, wire, tokens = await off_loop(self._written, *parts) if is_long else self._written(*parts)
        return Call(data, wire, self._clock(deadline), timeout or self.timeout, stream, trace_id, tokens)

    def _clock(self, seconds: float | None) -> Deadline:
        """Return the deadline of a call that is given so many seconds; the strictest around it counts."""
        around = current_deadline()
        if seconds is None and self.deadline is None:
            return around or _NO_DEADLINE
        return Deadline.after(seconds).stricter(Deadline.after(self.deadline)).stricter(around)

    def _written(
        self,
        body: dict[str, Any],
        size: int,
        tools: Sequence[ToolSpec] | None,
        response_format: Mapping[str, Any] | None,
    ) -> tuple[bytes, Mapping[str, Any] | None, int]:
        """Return the body as bytes and, where a client sends it, as data; and about how many tokens it takes."""
        data = encode(body, size)
        # What goes through a client is read back, so that it holds nothing that JSON cannot say.
        wire = None if self._client is None else decode(data)
        return (
            data,
            wire,
            estimate_tokens(body["messages"], tools, response_format) if self._limits.counts_tokens else 0,
        )

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
