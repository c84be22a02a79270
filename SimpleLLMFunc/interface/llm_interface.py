"""What every model looks like from the inside: two methods, and a few facts; and what its answers cost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from SimpleLLMFunc.config import is_local_address
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.profile import GENERIC, Profile
from SimpleLLMFunc.interface.spending import import_prices, price_of, unpriced
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk, Message, ToolSpec, Usage

R = TypeVar("R", ChatCompletion, ChatCompletionChunk)


class LLM_Interface(ABC):  # noqa: N801 - the name is the design note's
    """A model that can be asked: write `chat` and `chat_stream`, and you have a provider.

    A new provider passes `SimpleLLMFunc.testing.contract`.

    Attributes:
        model_name: what the model is called in requests, errors and traces.
        provider: who serves it.
        profile: what it can do; the default promises nothing beyond chat and native tool calls.
        context_window: tokens it can read and write together, None when unknown.
        base_url: where it is reached, None where there is no address.
        members: the models that it asks; empty where it answers itself.
        pays_requests: budgets are told of each HTTP request as it leaves; of any other model each question counts as
            one.
        takes_extra_body: the parameter `extra_body` is given as it stands; to any other model its entries are given as
            parameters.
        wants_schema: the parameter `wanted_schema` is given with every request: the JSON schema of the wanted type,
            None for text. For doubles in tests; it goes on no wire.
        keeps_answers: it may answer without a request, and tells budgets itself where it does not (`charge_unkept`).
        keeps_tools: in the turn without tools, those of a conversation that has calls are sent all the same, and
            `tool_choice="none"` says that none may be called: the service wants both.
    """

    model_name: str = ""
    provider: str = "custom"
    profile: Profile = GENERIC
    context_window: int | None = None
    base_url: str | None = None
    members: tuple[LLM_Interface, ...] = ()
    pays_requests: bool = False
    takes_extra_body: bool = False
    wants_schema: bool = False
    keeps_answers: bool = False
    keeps_tools: bool = False

    @abstractmethod
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
        """Ask once and return the whole reply.

        Args:
            messages: the conversation; not changed.
            tools: the tools offered, in the provider's form; None offers none.
            response_format: what shape the answer must have, in the provider's form.
            trace_id: of the run this belongs to, for logs.
            deadline: seconds left for this request and its tries; None for no limit.
            **params: go to the provider as they are (`temperature`, `seed` …).

        Raises:
            ProviderError: the service failed or refused.
            DeadlineExceeded: `deadline` passed.
        """

    @abstractmethod
    def chat_stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] | None = None,
        response_format: dict[str, Any] | None = None,
        trace_id: str = "",
        deadline: float | None = None,
        **params: Any,
    ) -> AsyncGenerator[ChatCompletionChunk, None]:
        """Ask once and yield the reply in pieces as they arrive; an async generator, arguments as in `chat`.

        Closing the generator closes the connection at once. A chunk with a higher `tries` than the chunk before
        restarts the reply: the stream broke before it had shown any text, and was asked for again.

        Raises:
            ProviderError: as `chat`; `StreamInterrupted` when the stream ends before the answer does.
        """

    async def embed(self, texts: Sequence[str], *, deadline: float | None = None, **params: Any) -> list[list[float]]:
        """Return a vector for each text, in their order.

        A model made of models asks its first one: vectors of two models cannot be compared.

        Args:
            texts: sent in as many requests as it takes.
            deadline: seconds for all of it; None for no limit.
            **params: go to the provider as they are (`dimensions`; of Gemini `outputDimensionality`, `taskType`).

        Raises:
            ConfigError: it gives none.
            ProviderError: the service failed or refused.
        """
        if self.members:
            return await self.members[0].embed(texts, deadline=deadline, **params)
        raise ConfigError(
            f"{self.model_name or type(self).__name__} gives no embeddings. OpenAICompatible('text-embedding-3-small'), "
            "Gemini('gemini-embedding-001') and LocalModel(path) do."
        )

    def render(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] | None = None,
        response_format: dict[str, Any] | None = None,
        stream: bool = False,
        **params: Any,
    ) -> dict[str, Any]:
        """Return the body that goes out on the wire, as `Preview` shows it and a cache keys it."""
        body: dict[str, Any] = {"model": self.model_name, "messages": list(messages)}
        if tools:
            body["tools"] = list(tools)
        if response_format is not None:
            body["response_format"] = response_format
        if stream:
            body["stream"] = True
        return {**body, **params}

    def url(self, *, stream: bool = False) -> str:
        """Return where requests go, without secrets; empty where there is no address."""
        return self.members[0].url(stream=stream) if self.members else self.base_url or ""

    @property
    def is_traced(self) -> bool:
        """Whether something around it tells of its calls, such as a tool that traces: spans of ours would tell of them twice."""
        return bool(self.members) and all(member.is_traced for member in self.members)

    @property
    def wire_name(self) -> str:
        """The protocol that it is asked by; what is kept of its answers is found by it too."""
        return self.members[0].wire_name if self.members else "chat"

    def shown_headers(self, messages: Sequence[Message], **asked: Any) -> Mapping[str, str]:
        """Return the headers of a request that its service asks for, with the name of a variable in place of the key.

        Takes what `render` does. `Preview` and traces show it.
        """
        if self.members:
            return self.members[0].shown_headers(messages, **asked)
        return {"Authorization": "Bearer $OPENAI_API_KEY"}

    def price(self, usage: Usage, model: str = "") -> float | None:
        """Return what `usage` costs in USD, None when that is not known.

        Args:
            usage: tokens; a cost in it does not count.
            model: as the reply names it; empty for the model that is asked.
        """
        told = price_of(usage, model or self.model_name, self.provider, self.base_url)
        if told is None and model and model != self.model_name:
            return price_of(usage, self.model_name, self.provider, self.base_url)
        return told


def given_to(llm: LLM_Interface, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return parameters as `llm` takes them: where it does not take `extra_body`, its entries in its place."""
    if llm.takes_extra_body or "extra_body" not in params:
        return params
    return {**{name: value for name, value in params.items() if name != "extra_body"}, **(params["extra_body"] or {})}


def answering_models(llm: LLM_Interface) -> list[LLM_Interface]:
    """Return the models that answer in the end: `llm` itself, or the members of its members."""
    return [part for member in llm.members for part in answering_models(member)] if llm.members else [llm]


# --- what its answers cost -------------------------------------------------------------------------------


async def load_prices(llm: LLM_Interface, model: str = "") -> None:
    """Import the prices where `llm` (or `model` there) needs them and they are not there yet, in a worker thread."""
    await import_prices(
        (name, part.provider, part.base_url) for part in answering_models(llm) for name in (part.model_name, model)
    )


async def priced(reply: R, llm: LLM_Interface) -> R:
    """Return the reply (or chunk) of `llm` with its cost in the usage, as far as it is known."""
    usage = reply.usage
    if usage is None or usage.cost is not None:
        return reply
    await load_prices(llm, reply.model)
    cost = llm.price(usage.tokens, reply.model)
    return reply if cost is None else replace(reply, usage=replace(usage, cost=cost))


async def require_prices(llm: LLM_Interface) -> None:
    """Return if a limit in USD can be kept with `llm`: its price is known, or it is free.

    Raises:
        ConfigError: it would be ignored: a service that takes money, and no price.
    """
    await load_prices(llm)
    unknown = {
        f"{part.model_name} ({part.provider})"
        for part in answering_models(llm)
        if part.base_url is not None and not is_local_address(part.base_url) and part.price(Usage()) is None
    }
    if unknown:
        raise unpriced(", ".join(sorted(unknown)))
