"""The four wires over loopback: a model of each, and the strict service that it asks.

async with wired("messages", {"texts": ["hello"]}) as (llm, server): ...
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from SimpleLLMFunc import Anthropic, Gemini, OpenAICompatible
from SimpleLLMFunc.interface.service_model import ServiceModel
from tests.support.connections import Recorded
from tests.support.server import Answer, LoopbackServer
from tests.support.services import ChatService, GeminiService, MessagesService, ResponsesService, Service

WIRES = ("chat", "responses", "messages", "gemini")
MODELS = {"chat": "m", "responses": "gpt-5.6", "messages": "claude-opus-5-5", "gemini": "gemini-3.8-flash"}
KEY = "sk-loopback-0123456789"

Json = dict[str, Any]


SERVICES: dict[str, type[Service]] = {
    "chat": ChatService,
    "responses": ResponsesService,
    "messages": MessagesService,
    "gemini": GeminiService,
}


def _last(body: Json) -> Json:
    said: Json = (body.get("messages") or body.get("contents") or body.get("input"))[-1]
    return said


def last_text(body: Json) -> str:
    """The text of the last message."""
    said = _last(body)
    content = said.get("content", said.get("parts"))
    return content if isinstance(content, str) else "".join(str(part.get("text", "")) for part in content or ())


def has_results(body: Json) -> bool:
    """Whether the last message brings results of tools."""
    said = _last(body)
    parts = said.get("content", said.get("parts"))
    return (
        said.get("role") == "tool"
        or said.get("type") == "function_call_output"
        or any("tool_use_id" in part or "functionResponse" in part for part in parts if isinstance(part, dict))
    )


def said_by(service: Service, answer: Callable[[Json], Any]) -> Callable[[Recorded], Any]:
    """A handler that lets the service say what `answer` gives for each body: a reply, a text, or a whole `Answer`."""

    def handle(request: Recorded) -> Any:
        said = answer(request.body or {})
        if isinstance(said, Answer):
            return said
        service._script = [{"texts": [said]} if isinstance(said, str) else said]
        return service(request)

    return handle


def address(name: str, server: LoopbackServer) -> str:
    """Where the service is, as its model wants it."""
    return server.base_url if name in {"chat", "responses"} else server.base_url.removesuffix("/v1")


def made(name: str, server: LoopbackServer, **options: Any) -> ServiceModel:
    """A model of the wire."""
    model = options.pop("model", MODELS[name])
    options = {"api_key": KEY, "base_url": address(name, server), "max_retries": 0, **options}
    if name == "messages":
        return Anthropic(model, **options)
    if name == "gemini":
        return Gemini(model, **options)
    return OpenAICompatible(model, wire="chat" if name == "chat" else "responses", **options)


@asynccontextmanager
async def wired(
    name: str, *said: Mapping[str, Any], answer: Callable[[Json], Any] | None = None, **options: Any
) -> AsyncIterator[tuple[ServiceModel, LoopbackServer]]:
    """A model of the wire and the server that it asks."""
    service = SERVICES[name](*map(dict, said))
    async with LoopbackServer(service if answer is None else said_by(service, answer)) as server:
        yield made(name, server, **options), server
