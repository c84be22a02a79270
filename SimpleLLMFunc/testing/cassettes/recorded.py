"""A model behind a cassette, and the stored form of its replies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, TypeAlias

from SimpleLLMFunc.errors import AuthenticationError, BadRequest, ContextTooLong, ProviderError, UsageError
from SimpleLLMFunc.interface.anthropic import Anthropic
from SimpleLLMFunc.interface.composite import ModelInFront
from SimpleLLMFunc.interface.gemini import Gemini
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.profile import GENERIC, PROFILES
from SimpleLLMFunc.interface.spending import Deadline, current_deadline
from SimpleLLMFunc.interface.wires import check_call_params
from SimpleLLMFunc.runtime import in_thread
from SimpleLLMFunc.testing.cassettes.cassette_file import Exchange, plain_request, scrubbed
from SimpleLLMFunc.testing.reply_chunks import assembled, split_reply
from SimpleLLMFunc.testing.unmatched import UnmatchedRequest
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk, Message

_KEPT_ERRORS: dict[str, type[BadRequest | ContextTooLong | AuthenticationError]] = {
    # Errors about the request. Errors about the service (busy, down) are not kept.
    "BadRequest": BadRequest,
    "ContextTooLong": ContextTooLong,
    "AuthenticationError": AuthenticationError,
}
_MORE_FACTS = ("problem", "param", "code", "tool")
"""Of a `BadRequest`, where it has them."""

_HEAD = frozenset({"id", "object", "created", "system_fingerprint"})

Begin: TypeAlias = Callable[[LLM_Interface, str, dict[str, Any]], tuple[Exchange, bool]]
"""Takes model, trace id and request; returns the exchange, and whether it is a replay. Else the caller adds its outcome."""


class CassetteLLM(ModelInFront):
    """A model behind a cassette: replays, or asks the model and records its reply."""

    def __init__(self, llm: LLM_Interface, path: Path, begin: Begin) -> None:
        super().__init__(llm)
        self._path = path
        self._begin_exchange = begin

    def __repr__(self) -> str:
        return f"CassetteLLM({self.llm!r}, {str(self._path)!r})"

    async def chat(
        self, messages: Sequence[Message], *, trace_id: str = "", deadline: float | None = None, **options: Any
    ) -> ChatCompletion:
        """Return the recorded reply, or ask and record it; takes what `LLM_Interface.chat` does.

        Raises:
            UnmatchedRequest: it was not recorded, and may not be.
        """
        exchange, is_replay, _ = await self._begin(messages, trace_id, deadline, options)
        if is_replay:
            await asyncio.sleep(0)  # as with a network, other tasks run before the reply comes
            return assembled(_chunks(exchange)) if "stream" in exchange.outcome else _reply(exchange)
        try:
            reply = await self.llm.chat(messages, trace_id=trace_id, deadline=deadline, **options)
        except ProviderError as error:
            _keep_error(exchange, error)
            raise
        plain = {name: part for name, part in reply.to_dict().items() if name not in _HEAD}
        exchange.outcome = {"reply": scrubbed(plain)}
        return reply

    async def chat_stream(
        self, messages: Sequence[Message], *, trace_id: str = "", deadline: float | None = None, **options: Any
    ) -> AsyncGenerator[ChatCompletionChunk, None]:
        """Yield the recorded reply in its original chunks, or ask and record them; errors as in `chat`."""
        exchange, is_replay, clock = await self._begin(messages, trace_id, deadline, options)
        if is_replay:
            for chunk in _chunks(exchange) if "stream" in exchange.outcome else split_reply(_reply(exchange)):
                await asyncio.sleep(0)
                clock.check()
                yield chunk
            if exchange.outcome.get("left"):
                raise UnmatchedRequest(
                    f"the recording in {str(self._path)!r} ends here: the reader left this stream early then. "
                    f"Record it again: `pytest --llm-record=all`."
                )
            return
        chunks: list[ChatCompletionChunk] = []
        left = True
        try:
            async with aclosing(
                self.llm.chat_stream(messages, trace_id=trace_id, deadline=deadline, **options)
            ) as stream:
                async for chunk in stream:
                    if chunks and chunk.tries > chunks[-1].tries:
                        chunks.clear()  # the stream broke, and was restarted
                    chunks.append(chunk)
                    yield chunk
            left = False
        except ProviderError as error:
            chunks.clear()
            _keep_error(exchange, error)
            raise
        finally:
            if chunks:
                exchange.outcome = {"stream": _plain_stream(chunks), **({"left": True} if left else {})}

    async def _begin(
        self, messages: Sequence[Message], trace_id: str, deadline: float | None, options: Mapping[str, Any]
    ) -> tuple[Exchange, bool, Deadline]:
        clock = Deadline.after(deadline).stricter(current_deadline())
        clock.check()
        check_call_params(options)
        # In a thread: hashing images and comparing long prompts is slow.
        begun = await in_thread(lambda: self._begin_exchange(self, trace_id, plain_request(messages, **options)))
        return *begun, clock


class RecordedLLM(LLM_Interface):
    """A model known only from a cassette: its name, wire and profile."""

    takes_extra_body = True  # as the services that are recorded

    def __init__(self, model_name: str, profile: str, wire: str) -> None:
        self.model_name = model_name
        self._wire = wire or "chat"
        maker = {"messages": Anthropic, "gemini": Gemini}.get(wire)
        self.profile = PROFILES.get(profile, GENERIC) if profile or maker is None else maker(model_name).profile

    @property
    def wire_name(self) -> str:
        """The protocol of the recorded requests."""
        return self._wire

    async def chat(self, messages: Sequence[Message], **options: Any) -> ChatCompletion:
        """Refuse: this model is only replayed.

        Raises:
            UsageError: always.
        """
        del messages, options
        raise UsageError(
            f"{self.model_name} is only recorded here. Name a model to ask: use_llm(OpenAICompatible(...))."
        )

    async def chat_stream(
        self, messages: Sequence[Message], **options: Any
    ) -> AsyncGenerator[ChatCompletionChunk, None]:
        """Refuse, as `chat`."""
        await self.chat(messages, **options)
        yield ChatCompletionChunk(())


# --- replies, to the file and back -----------------------------------------------------------------------


def _reply(exchange: Exchange) -> ChatCompletion:
    if kept := exchange.outcome.get("error"):
        more = {fact: kept[fact] for fact in _MORE_FACTS if fact in kept}
        raise _KEPT_ERRORS[kept["type"]](exchange.model, status=kept.get("status"), body=kept.get("body", ""), **more)
    head = {"id": f"cassette-{exchange.key[:8]}", "object": "chat.completion", "created": 0}
    return ChatCompletion.from_dict({**head, **exchange.outcome["reply"]}, tries=0)


def _plain_stream(chunks: Sequence[ChatCompletionChunk]) -> list[Any]:
    """Return the stored form of a stream; a chunk with only text is a text."""
    said = assembled(chunks).to_dict()
    if scrubbed(said) != said:
        # A secret spread over several chunks: the masked text is split into new chunks.
        chunks = list(split_reply(ChatCompletion.from_dict(scrubbed(said))))
    return [_plain_chunk(chunk, is_first=number == 0) for number, chunk in enumerate(chunks)]


def _plain_chunk(chunk: ChatCompletionChunk, *, is_first: bool) -> Any:
    # The first chunk has the model's name.
    left_out = _HEAD if is_first else _HEAD | {"model"}
    data = {name: part for name, part in chunk.to_dict().items() if name not in left_out}
    return chunk.text if data == _piece(chunk.text) else scrubbed(data)


def _piece(text: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}


def _chunks(exchange: Exchange) -> list[ChatCompletionChunk]:
    pieces = [_piece(each) if isinstance(each, str) else each for each in exchange.outcome["stream"]]
    served = str(pieces[0].get("model", exchange.model)) if pieces else exchange.model
    head = {"id": f"cassette-{exchange.key[:8]}", "object": "chat.completion.chunk", "created": 0, "model": served}
    return [ChatCompletionChunk.from_dict({**head, **each}, tries=0) for each in pieces]


def _keep_error(exchange: Exchange, error: ProviderError) -> None:
    name = type(error).__name__
    if name in _KEPT_ERRORS:
        body = scrubbed(str(getattr(error, "body", "")))
        more = {fact: scrubbed(value) for fact in _MORE_FACTS if (value := getattr(error, fact, ""))}
        exchange.outcome = {"error": {"type": name, "status": error.status, "body": body, **more}}
