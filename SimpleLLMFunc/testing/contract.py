"""The suite that every `LLM_Interface` passes: ours, and yours.

Subclass `ProviderContract` in a test file, write `provider`, and run pytest::

    from contextlib import contextmanager
    from SimpleLLMFunc.testing import contract

    class TestMyProvider(contract.ProviderContract):
        @contextmanager
        def provider(self, scenario):
            match scenario:
                case contract.Answer(text):
                    with my_fake_service(text) as url:
                        yield MyProvider(url)
                case _:
                    raise NotImplementedError

A scenario for which `provider` raises NotImplementedError is skipped. Each test is a plain method with its own event
loop, so a fake service has to run in a thread. For a provider whose answers cannot be chosen (a real model), set
`is_scripted = False` and return suitable questions in `request`.
"""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
import time
import unittest
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, aclosing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from SimpleLLMFunc.errors import DeadlineExceeded, SimpleLLMFuncError
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.profile import Profile
from SimpleLLMFunc.interface.wires import ReplyAssembler
from SimpleLLMFunc.testing.probing import FILL_FORMAT, WEATHER_TOOL, least, no_other_task, reply_to
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk, Message

__all__ = ["Answer", "CallTool", "Echo", "Fill", "Hang", "ProviderContract", "Refuse", "Request", "Scenario"]


@dataclass(frozen=True)
class Answer:
    """Every request is answered with this text."""

    text: str = "It will rain tomorrow, so take an umbrella."


@dataclass(frozen=True)
class Echo:
    """Every request is answered with the text of its last message."""


@dataclass(frozen=True)
class CallTool:
    """A request without tool results is answered with this call, one with them with the text `then`."""

    name: str = "weather"
    arguments: dict[str, Any] = field(default_factory=lambda: {"city": "Paris", "days": 2})
    then: str = "Sunny in Paris."


@dataclass(frozen=True)
class Fill:
    """A request with `response_format` is answered with this value as JSON."""

    value: dict[str, Any] = field(default_factory=lambda: {"city": "Paris", "days": 2})


@dataclass(frozen=True)
class Refuse:
    """The service refuses every request, as for a wrong key."""


@dataclass(frozen=True)
class Hang:
    """No answer comes within a second."""


Scenario: TypeAlias = Answer | Echo | CallTool | Fill | Refuse | Hang
"""The behaviour of the provider under test."""


@dataclass(frozen=True)
class Request:
    """A request of the suite: the messages, and further parameters of `chat`."""

    messages: list[Message]
    params: dict[str, Any] = field(default_factory=dict)


_Check: TypeAlias = Callable[[Any, LLM_Interface], Coroutine[Any, Any, None]]


def _playing(scenario: Scenario) -> Callable[[_Check], Callable[[Any], None]]:
    """Make a plain test of an async one, which is given a provider that plays `scenario`."""

    def plain(check: _Check) -> Callable[[Any], None]:
        def test(self: ProviderContract) -> None:
            with self._given(scenario) as llm:
                asyncio.run(check(self, llm))

        # Not by `wraps`: pytest would see the parameter, and look for a fixture.
        test.__name__, test.__qualname__, test.__doc__ = check.__name__, check.__qualname__, check.__doc__
        return test

    return plain


class ProviderContract:
    """The tests of a provider; subclass it with a name that begins with `Test`, and write `provider`.

    Attributes:
        is_scripted: the provider gives the answers of the scenarios; False for a real model.
        secret: a key of the provider, which must not appear anywhere; None without a key.
        concurrent: number of concurrent calls.
    """

    is_scripted: bool = True
    secret: str | None = None
    concurrent: int = 20

    def provider(self, scenario: Scenario) -> AbstractContextManager[LLM_Interface]:
        """Return a context manager that gives an interface behaving as `scenario` says.

        Raises:
            NotImplementedError: this provider cannot play the scenario; the test is skipped.
        """
        raise NotImplementedError

    def request(self, scenario: Scenario) -> Request:  # noqa: ARG002 - for subclasses
        """Return the request for `scenario`."""
        return Request([{"role": "user", "content": "What will the weather be?"}])

    # --- facts ---------------------------------------------------------------------------------------------

    def test_tells_who_it_is(self) -> None:
        """Name, provider, profile and context window have their types."""
        with self._given(Answer()) as llm:
            assert isinstance(llm.model_name, str)
            assert llm.model_name
            assert isinstance(llm.provider, str)
            assert isinstance(llm.profile, Profile)
            assert llm.context_window is None or llm.context_window > 0
            assert llm.base_url is None or isinstance(llm.base_url, str)

    def test_renders_the_body(self) -> None:
        """`render` gives JSON data, without the key."""
        asked = self.request(Answer())
        with self._given(Answer()) as llm:
            body = json.dumps(llm.render(asked.messages, stream=True, **asked.params))
            assert json.dumps(asked.messages[-1]["content"])[1:-1] in body
            assert self.secret is None or self.secret not in body

    def test_repr_holds_no_secret(self) -> None:
        """Neither `repr` nor `str` shows the key."""
        with self._given(Answer()) as llm:
            assert repr(llm)
            assert self.secret is None or self.secret not in repr(llm) + str(llm)

    def test_can_be_pickled(self) -> None:
        """A pickle holds all but the key."""
        with self._given(Answer()) as llm:
            data = pickle.dumps(llm)
            again = pickle.loads(data)  # noqa: S301 - our own bytes
            assert type(again) is type(llm)
            assert again.model_name == llm.model_name
            assert self.secret is None or self.secret.encode() not in data

    # --- whole replies -------------------------------------------------------------------------------------

    @_playing(Answer())
    async def test_reply_has_its_shape(self, llm: LLM_Interface) -> None:
        """A reply carries text, finish reason, model and usage."""
        reply = await self._ask(llm, Answer())
        assert isinstance(reply, ChatCompletion)
        self._check_text(reply.text)
        assert isinstance(reply.finish_reason, str)
        assert isinstance(reply.model, str)
        assert reply.model
        assert reply.tries >= 1
        assert not reply.cached
        assert reply.tool_calls == []
        if reply.usage is not None:
            counts = (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.total_tokens)
            assert all(type(count) is int and count >= 0 for count in counts)

    @_playing(Answer())
    async def test_what_was_given_is_not_changed(self, llm: LLM_Interface) -> None:
        """Messages, tools, response format and parameters are as before, after a reply and after a stream."""
        asked = self.request(Answer())
        messages: list[Message] = [{"role": "system", "content": "Be brief."}, *asked.messages]
        tools = [copy.deepcopy(WEATHER_TOOL)] if llm.profile.tools == "native" else None
        before = copy.deepcopy((messages, tools, asked.params))
        await llm.chat(messages, tools=tools, **asked.params)
        assert (messages, tools, asked.params) == before
        async with aclosing(llm.chat_stream(messages, tools=tools, **asked.params)) as stream:
            _ = [chunk async for chunk in stream]
        assert (messages, tools, asked.params) == before

    @_playing(Answer())
    async def test_parameters_that_are_none(self, llm: LLM_Interface) -> None:
        """A parameter that is None counts as not given; messages may be any sequence."""
        asked = self.request(Answer())
        params = {"temperature": None, "seed": None, "stop": None, **asked.params}
        reply = await llm.chat(
            tuple(asked.messages), tools=None, response_format=None, trace_id="contract", deadline=None, **params
        )
        self._check_text(reply.text)

    @_playing(Echo())
    async def test_concurrent_calls_get_their_own_answers(self, llm: LLM_Interface) -> None:
        """Concurrent calls do not mix."""
        self._need(self.is_scripted)
        words = [f"word{number:03d}" for number in range(self.concurrent)]
        params = self.request(Echo()).params
        asked: list[list[Message]] = [[{"role": "user", "content": word}] for word in words]
        replies = await asyncio.gather(*(llm.chat(messages, **params) for messages in asked))
        assert [reply.text for reply in replies] == words

    # --- streams -------------------------------------------------------------------------------------------

    @_playing(Answer())
    async def test_stream_adds_up(self, llm: LLM_Interface) -> None:
        """The chunks of a stream add up to the answer, and its end differs from a cut."""
        chunks = await self._streamed(llm, Answer())
        assert chunks
        assert all(isinstance(chunk, ChatCompletionChunk) for chunk in chunks)
        assembler = ReplyAssembler(chunks)
        assert assembler.is_complete
        whole = assembler.completion()
        assert "".join(chunk.text for chunk in chunks) == whole.text
        self._check_text(whole.text)
        assert isinstance(whole.finish_reason, str)

    @_playing(Answer())
    async def test_stream_closed_early_leaves_no_task(self, llm: LLM_Interface) -> None:
        """Closing a stream early leaves no task; the next call works."""
        asked = self.request(Answer())
        async with aclosing(llm.chat_stream(asked.messages, **asked.params)) as stream:
            await anext(stream)
        assert await anext(stream, None) is None
        await no_other_task()
        self._check_text((await self._ask(llm, Answer())).text)

    # --- limits and errors ---------------------------------------------------------------------------------

    @_playing(Hang())
    async def test_deadline(self, llm: LLM_Interface) -> None:
        """A slow answer, or a slow stream, ends with DeadlineExceeded at its deadline."""

        async def seconds_to_end(ask: Callable[..., Awaitable[object]], llm: LLM_Interface) -> float:
            begun = time.monotonic()
            try:
                await ask(llm, Hang(), deadline=0.3)
            except DeadlineExceeded:
                return time.monotonic() - begun
            raise AssertionError("the call ended before its deadline; `Hang` must not answer within a second")

        for ask in (self._ask, self._streamed):
            taken = await least(partial(seconds_to_end, ask, llm), enough=0.8)
            assert taken < 0.8, f"a deadline of 0.3 s took {taken:.2f} s"
            await no_other_task()

    @_playing(Answer())
    async def test_deadline_that_has_passed(self, llm: LLM_Interface) -> None:
        """With no time left no request is made."""
        for ask in (self._ask, self._streamed):
            try:
                await ask(llm, Answer(), deadline=0.0)
            except DeadlineExceeded:
                continue
            raise AssertionError(f"{ask.__name__} answered after its deadline")

    @_playing(Hang())
    async def test_cancellation(self, llm: LLM_Interface) -> None:
        """A cancelled call ends within 100 ms and leaves no task."""

        async def seconds_to_cancel(ask: Callable[..., Coroutine[Any, Any, object]], llm: LLM_Interface) -> float:
            task = asyncio.ensure_future(ask(llm, Hang()))
            await asyncio.sleep(0.05)  # let the request leave
            begun = time.monotonic()
            task.cancel()
            await asyncio.wait({task})
            assert task.cancelled()
            return time.monotonic() - begun

        for ask in (self._ask, self._streamed):
            taken = await least(partial(seconds_to_cancel, ask, llm), enough=0.1)
            assert taken < 0.1, f"cancelling took {taken:.3f} s"
            await no_other_task()

    @_playing(Refuse())
    async def test_errors_are_ours(self, llm: LLM_Interface) -> None:
        """A failure is a SimpleLLMFuncError with a text, in a reply and in a stream."""
        for ask in (self._ask, self._streamed):
            told = ""
            try:
                await ask(llm, Refuse())
            except SimpleLLMFuncError as error:
                told = f"{error} {error!r} {vars(error)}"
            assert told, f"{ask.__name__} did not fail"
            assert self.secret is None or self.secret not in told

    # --- loops and threads ---------------------------------------------------------------------------------

    def test_successive_event_loops(self) -> None:
        """One object serves one `asyncio.run` after the other."""
        with self._given(Answer()) as llm:
            for _ in range(3):
                self._check_text(asyncio.run(self._ask(llm, Answer())).text)

    def test_several_threads(self) -> None:
        """One object serves the event loops of several threads at once."""
        with self._given(Answer()) as llm, ThreadPoolExecutor(4) as threads:
            for reply in threads.map(lambda _: asyncio.run(self._ask(llm, Answer())), range(4)):
                self._check_text(reply.text)

    # --- tools and schemas ---------------------------------------------------------------------------------

    @_playing(CallTool())
    async def test_tool_round(self, llm: LLM_Interface) -> None:
        """A tool is called, its result goes back, the answer comes; whole and streamed."""
        self._need(llm.profile.tools == "native")
        wanted = CallTool()
        asked = self.request(wanted)
        for is_streamed in (False, True):
            reply = await reply_to(llm, asked.messages, is_streamed, tools=[WEATHER_TOOL], **asked.params)
            assert [call.function.name for call in reply.tool_calls] == [wanted.name]
            call = reply.tool_calls[0]
            assert call.id
            arguments = json.loads(call.function.arguments)
            assert isinstance(arguments, dict)
            assert not self.is_scripted or arguments == wanted.arguments
            history: list[Message] = [
                *asked.messages,
                {"role": "assistant", "content": reply.message.content, "tool_calls": [call.to_dict()]},  # type: ignore[list-item]
                {"role": "tool", "tool_call_id": call.id, "content": "sunny"},
            ]
            last = await reply_to(llm, history, is_streamed, tools=[WEATHER_TOOL], **asked.params)
            assert last.text == wanted.then if self.is_scripted else last.text

    @_playing(Fill())
    async def test_response_format(self, llm: LLM_Interface) -> None:
        """A JSON schema is kept to; whole and streamed."""
        self._need(llm.profile.native)
        wanted = Fill()
        asked = self.request(wanted)
        for is_streamed in (False, True):
            reply = await reply_to(llm, asked.messages, is_streamed, **asked.params, response_format=FILL_FORMAT)
            value = json.loads(reply.text)
            assert set(value) == {"city", "days"}
            assert isinstance(value["city"], str)
            assert isinstance(value["days"], int)
            assert not self.is_scripted or value == wanted.value

    # --- how it is asked -----------------------------------------------------------------------------------

    @contextmanager
    def _given(self, scenario: Scenario) -> Iterator[LLM_Interface]:
        with ExitStack() as stack:
            try:
                llm = stack.enter_context(self.provider(scenario))
            except NotImplementedError as error:
                raise unittest.SkipTest(f"this provider does not play {type(scenario).__name__}") from error
            yield llm

    def _need(self, has: bool) -> None:
        if not has:
            raise unittest.SkipTest("the provider, or its profile, does not have this")

    async def _ask(self, llm: LLM_Interface, scenario: Scenario, deadline: float | None = None) -> ChatCompletion:
        asked = self.request(scenario)
        return await llm.chat(asked.messages, deadline=deadline, **asked.params)

    async def _streamed(
        self, llm: LLM_Interface, scenario: Scenario, deadline: float | None = None
    ) -> list[ChatCompletionChunk]:
        asked = self.request(scenario)
        async with aclosing(llm.chat_stream(asked.messages, deadline=deadline, **asked.params)) as stream:
            return [chunk async for chunk in stream]

    def _check_text(self, text: str) -> None:
        assert isinstance(text, str)
        assert text
        assert not self.is_scripted or text == Answer().text
