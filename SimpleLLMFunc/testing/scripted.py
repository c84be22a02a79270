"""ScriptedLLM: a model with written replies, which keeps its requests."""

from __future__ import annotations

import asyncio
import inspect
import re
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, is_dataclass, replace
from typing import Any, Final, TypeAlias, get_args

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from SimpleLLMFunc.base.messages import copied
from SimpleLLMFunc.errors import UsageError, cut
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.profile import GENERIC, Profile, find_profile
from SimpleLLMFunc.interface.spending import Deadline, current_deadline
from SimpleLLMFunc.interface.wires import Asked, ReplyAssembler, check_call_params
from SimpleLLMFunc.logger import redact
from SimpleLLMFunc.testing.reply_chunks import completion_of, message_text, split_reply
from SimpleLLMFunc.testing.requests import UnmatchedRequest, answer_message, brief_request, request_text, tool_calls
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk, ChoiceDelta, ChunkChoice, Message, ToolSpec

__all__ = ["Answer", "Reply", "ScriptedLLM", "ScriptedRequest", "When", "answer", "tool_calls", "when"]


@dataclass(frozen=True, slots=True)
class ScriptedRequest:
    """One request to a `ScriptedLLM`.

    Attributes:
        messages: a copy of the conversation at the time of the request.
        params: further parameters of the request (`temperature` …).
        stream: the request came through `chat_stream`.
        deadline: in seconds, None for no limit.
        index: 0 for the first request.
        wanted_schema: of the return type, for a `SchemaLLM`; None for text.
    """

    messages: list[Message]
    tools: list[ToolSpec] | None = None
    response_format: dict[str, Any] | None = None
    params: dict[str, Any] = field(default_factory=dict)
    stream: bool = False
    trace_id: str = ""
    deadline: float | None = None
    index: int = 0
    wanted_schema: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """The text of the last message, empty if it has none."""
        return message_text(self.messages[-1]) if self.messages else ""

    @property
    def texts(self) -> list[str]:
        """The text of each message."""
        return [message_text(message) for message in self.messages]

    def __str__(self) -> str:
        return request_text(self.messages, tools=self.tools, response_format=self.response_format, params=self.params)


_MESSAGE: Final = frozenset({"role", "content", "tool_calls", "choices", "refusal", "reasoning_content"})
"""A dict with one of these is an assistant message or a whole reply."""

StreamItem: TypeAlias = ChatCompletionChunk | str | BaseException
"""One step of a scripted stream: a chunk, a piece of text, or an exception that breaks the stream."""

PlainReply: TypeAlias = (
    "str | dict[str, Any] | ChatCompletion | Sequence[StreamItem] | BaseException | BaseModel | Answer"
)
"""A fixed reply; any dataclass is one too."""

Reply: TypeAlias = "PlainReply | When | Callable[[ScriptedRequest], PlainReply | Awaitable[PlainReply]]"
"""An argument of `ScriptedLLM`: a reply, a function (sync or async) from the request to a reply, or a rule."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply with a value, in the form that the request wants; made by `answer`."""

    value: Any


def answer(value: Any) -> Answer:
    """Return the reply with `value`: as JSON, as the arguments of the tool `answer`, or as a JSON action.

    Models and dataclasses need no `answer`: ``ScriptedLLM(Review(stars=4), answer([1, 2]))``.
    """
    return Answer(value)


@dataclass(frozen=True, slots=True)
class When:
    """A rule: replies for matching requests; made by `when`."""

    matches: Callable[[ScriptedRequest], bool]
    replies: tuple[Any, ...]


def when(
    said: str | re.Pattern[str] | Callable[[ScriptedRequest], bool], *replies: PlainReply | Callable[..., Any]
) -> When:
    """Return a rule: matching requests get these replies in order, and then the last one again.

    Rules are tried before the replies without a rule. They do not depend on the order of requests, so they suit
    concurrent code.

    Args:
        said: a text or a compiled pattern to find in one of the messages, or a function of the request.
        *replies: as `ScriptedLLM` takes them.
    """
    if not replies:
        raise UsageError("when() has no reply. Write when('rain', 'Take an umbrella.').")
    if isinstance(said, str):
        return When(lambda request: any(said in text for text in request.texts), replies)
    if isinstance(said, re.Pattern):
        return When(lambda request: any(said.search(text) for text in request.texts), replies)
    return When(said, replies)


class ScriptedLLM(LLM_Interface):
    """A model that gives written replies in order, and keeps its requests.

    It needs no key and no network, so tests, documentation and examples run with it. Many threads and event loops may
    use it at once; replies are given in the order of the requests.

    Args:
        *replies: each a text, a model or dataclass (the typed answer), `answer(value)` for any other value, an
            assistant message (a dict; its `finish_reason` counts, and a dict with `choices` is a whole reply), a
            `ChatCompletion`, a list of stream steps (chunks, pieces of text, an exception where the stream breaks),
            an exception to raise, a function of the request that returns one of these, or a rule made by `when`.
        model_name: the name in replies and traces.
        profile: abilities of the model, or the name of a known profile; by default chat and tool calls only.
        chunk_size: characters in each chunk of a stream; None splits like a model, about a word at a time.
        repeat: after the last reply start again with the first.

    Attributes:
        calls: the requests so far, in order.
    """

    provider = "scripted"

    def __init__(
        self,
        *replies: Reply,
        model_name: str = "scripted",
        profile: Profile | str | None = None,
        chunk_size: int | None = None,
        repeat: bool = False,
    ) -> None:
        if chunk_size is not None and chunk_size < 1:
            raise UsageError(f"chunk_size is {chunk_size}; it must be at least 1, or None.")
        self.model_name = model_name
        self.profile = find_profile(profile or GENERIC, base_url="")
        self.calls: list[ScriptedRequest] = []
        self._rules = [reply for reply in replies if isinstance(reply, When)]
        self._given = [0] * len(self._rules)
        self._replies = tuple(reply for reply in replies if not isinstance(reply, When))
        self._in_order = 0
        self._chunk_size = chunk_size
        self._repeat = repeat
        self._lock = threading.Lock()

    @property
    def requests(self) -> list[list[Message]]:
        """The messages of each request so far, in order."""
        return [call.messages for call in self.calls]

    @property
    def remaining(self) -> int:
        """Number of replies without a rule that are left; with `repeat`, in this round."""
        given, there = self._in_order, len(self._replies)
        return there - given % there if self._repeat and there else max(there - given, 0)

    def __repr__(self) -> str:
        return f"ScriptedLLM({self.model_name!r}, replies={len(self._replies)}, asked={len(self.calls)})"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.Lock()

    async def chat(self, messages: Sequence[Message], **asked: Any) -> ChatCompletion:
        """Return the next reply whole; the arguments are those of `LLM_Interface.chat`."""
        request, clock = self._asked(False, messages, **asked)
        reply = await self._reply_to(request, clock)
        if isinstance(reply, ChatCompletion):
            return reply
        return ReplyAssembler([chunk async for chunk in _steps(reply, request, self.model_name, clock)]).completion()

    async def chat_stream(self, messages: Sequence[Message], **asked: Any) -> AsyncGenerator[ChatCompletionChunk, None]:
        """Yield the next reply in chunks."""
        request, clock = self._asked(True, messages, **asked)
        reply = await self._reply_to(request, clock)
        steps = list(split_reply(reply, self._chunk_size)) if isinstance(reply, ChatCompletion) else reply
        async with aclosing(_steps(steps, request, self.model_name, clock)) as chunks:
            async for chunk in chunks:
                yield chunk

    def _asked(self, stream: bool, messages: Sequence[Message], /, **given: Any) -> tuple[ScriptedRequest, Deadline]:
        """Record the request; return it with its deadline."""
        asked = Asked.of(messages, **given)
        clock = Deadline.after(asked.deadline).stricter(current_deadline())
        clock.check()
        params = dict(asked.params)
        wanted = params.pop("wanted_schema", None)
        check_call_params(params)
        tools = copied(asked.tools) if asked.tools else None
        more: Any = copied([asked.response_format, params])
        request = ScriptedRequest(copied(messages), tools, more[0], more[1], stream, asked.trace_id, asked.deadline)
        with self._lock:
            request = replace(request, index=len(self.calls), wanted_schema=wanted)
            self.calls.append(request)
        return request, clock

    async def _reply_to(self, asked: ScriptedRequest, clock: Deadline) -> ChatCompletion | Sequence[StreamItem]:
        reply = self._next(asked)
        if callable(reply) and not isinstance(reply, type):
            made = reply(asked)
            reply = await clock.wait(made) if inspect.isawaitable(made) else made
        # As with a network, other tasks run before the reply comes.
        await asyncio.sleep(0)
        clock.check()
        return self._completion(reply, asked)

    def _next(self, asked: ScriptedRequest) -> Reply:
        for number, rule in enumerate(self._rules):
            if rule.matches(asked):
                with self._lock:
                    given, self._given[number] = self._given[number], self._given[number] + 1
                reply: Reply = rule.replies[min(given, len(rule.replies) - 1)]
                return reply
        there = len(self._replies)
        with self._lock:
            number, self._in_order = self._in_order, self._in_order + 1
        if there and (self._repeat or number < there):
            return self._replies[number % there]
        raise UnmatchedRequest(self._complaint(asked, number, there))

    def _complaint(self, asked: ScriptedRequest, number: int, there: int) -> str:
        if self._rules and not there:
            problem = f"was asked something that none of its {len(self._rules)} rules is for"
        else:
            times = "once" if number == 0 else f"{number + 1} times"
            problem = f"was asked {times} and had {there} {'reply' if there == 1 else 'replies'}"
        return (
            f"the request, whole in .calls[{asked.index}]:\n{brief_request(asked)}\n"
            f"ScriptedLLM {problem}. The last message was: {cut(redact(asked.text), 200)!r}. "
            "Add a reply, or pass repeat=True."
        )

    def _completion(self, reply: Any, asked: ScriptedRequest) -> ChatCompletion | Sequence[StreamItem]:
        if isinstance(reply, type) and issubclass(reply, BaseException):
            raise reply
        if isinstance(reply, BaseException):
            # With `repeat` it is raised again, without the earlier frames.
            raise reply.with_traceback(None)
        if isinstance(reply, ChatCompletion):
            return reply
        if isinstance(reply, str):
            reply = {"content": reply}
        elif isinstance(reply, BaseModel) or (is_dataclass(reply) and not isinstance(reply, ChatCompletionChunk)):
            data = to_jsonable_python(reply.value if isinstance(reply, Answer) else reply, by_alias=True)
            reply = answer_message(data, asked.messages, asked.tools, asked.response_format)
        if isinstance(reply, Mapping) and not _MESSAGE.isdisjoint(reply):
            return completion_of(reply, asked.messages, asked.index, self.model_name)
        if isinstance(reply, Sequence) and all(isinstance(each, get_args(StreamItem)) for each in reply):
            return reply
        raise UsageError(
            f"ScriptedLLM cannot reply with the {type(reply).__name__} {cut(repr(reply), 60)}. Give a text, a model, answer(value), an assistant "
            "message, a ChatCompletion, a list of chunks, an exception, or a function that returns one of these."
        )


async def _steps(
    items: Sequence[StreamItem], asked: ScriptedRequest, model: str, clock: Deadline
) -> AsyncGenerator[ChatCompletionChunk, None]:
    """Yield the chunks of a scripted stream; a list of texts gets the last chunks of a provider's stream."""
    is_text_only = True
    for item in items:
        await asyncio.sleep(0)
        clock.check()
        if isinstance(item, BaseException):
            raise item.with_traceback(None)
        if isinstance(item, str):
            yield ChatCompletionChunk((ChunkChoice(ChoiceDelta(content=item)),), f"scripted-{asked.index}", model)
        else:
            is_text_only = False
            yield item
    if is_text_only:
        whole = completion_of({"content": "".join(map(str, items))}, asked.messages, asked.index, model)
        *_, finish, usage = split_reply(whole)
        yield finish
        yield usage
