"""The one suite over our providers, and providers that break it each in one way."""

import asyncio
import json
import threading
import unittest
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from SimpleLLMFunc.errors import AuthenticationError
from SimpleLLMFunc.interface.composite.cache import CachedLLM
from SimpleLLMFunc.interface.composite.fallback import FallbackLLM
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.local.local_model import LocalModel
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from SimpleLLMFunc.interface.profile import PROFILES
from SimpleLLMFunc.testing import ScriptedLLM, ScriptedRequest, contract, tool_calls
from SimpleLLMFunc.type import ChatCompletion
from tests.support.server import Answer, error_answer, serving_in_thread
from tests.support.services import Service
from tests.support.wires import KEY, SERVICES, has_results, last_text, made, said_by


async def never(request: ScriptedRequest) -> str:
    await asyncio.Event().wait()
    return "never"


def reply_to(scenario: contract.Scenario) -> Any:
    match scenario:
        case contract.Answer(text=text):
            return text
        case contract.Echo():
            return lambda request: request.text
        case contract.CallTool(name=name, arguments=arguments, then=then):
            return lambda request: (
                then if request.messages[-1]["role"] == "tool" else tool_calls((name, arguments), content=None)
            )
        case contract.Fill(value=value):
            return json.dumps(value)
        case contract.Refuse():
            return AuthenticationError("scripted", status=401)
        case contract.Hang():
            return never


class PicklableScripted(ScriptedLLM):
    """A function inside a test cannot be pickled; the scenario it stands for can."""

    def __init__(self, scenario: contract.Scenario) -> None:
        super().__init__(reply_to(scenario), repeat=True, profile=PROFILES["openai-compatible"])
        self.scenario = scenario

    def __reduce__(self) -> Any:
        return PicklableScripted, (self.scenario,)


class TestScriptedLLM(contract.ProviderContract):
    @contextmanager
    def provider(self, scenario: contract.Scenario) -> Iterator[LLM_Interface]:
        yield PicklableScripted(scenario)


class OfWire(contract.ProviderContract):
    secret = KEY
    wire = "chat"

    @contextmanager
    def provider(self, scenario: contract.Scenario) -> Iterator[LLM_Interface]:
        service = SERVICES[self.wire]()
        with serving_in_thread(said_by(service, said_in(scenario, service))) as server:
            yield made(self.wire, server)


class TestOpenAICompatible(OfWire):
    pass


class TestResponses(OfWire):
    wire = "responses"


class TestAnthropic(OfWire):
    wire = "messages"


class TestGemini(OfWire):
    wire = "gemini"


def said_in(scenario: contract.Scenario, service: Service) -> Any:
    match scenario:
        case contract.Answer(text=text):
            return lambda body: text
        case contract.Echo():
            return last_text
        case contract.CallTool(name=name, arguments=arguments, then=then):
            return lambda body: then if has_results(body) else {"calls": [(name, arguments)]}
        case contract.Fill(value=value):
            return lambda body: json.dumps(value)
        case contract.Refuse():
            return lambda body: service.error(401, f"bad key {KEY}")
        case contract.Hang():
            return lambda body: Answer(hold=asyncio.Event(), body=b"")


class TestFallbackLLM(TestOpenAICompatible):
    """The first member is never there."""

    @contextmanager
    def provider(self, scenario: contract.Scenario) -> Iterator[LLM_Interface]:
        with super().provider(scenario) as llm, serving_in_thread(lambda request: error_answer(503, "down")) as down:
            yield FallbackLLM(OpenAICompatible("down", api_key=self.secret, base_url=down.base_url, max_retries=0), llm)


class TestFallbackLLMThatHedges(TestOpenAICompatible):
    @contextmanager
    def provider(self, scenario: contract.Scenario) -> Iterator[LLM_Interface]:
        with super().provider(scenario) as llm:
            yield FallbackLLM(llm, hedge_after=0.1)


class TestCachedLLM(TestOpenAICompatible):
    @contextmanager
    def provider(self, scenario: contract.Scenario) -> Iterator[LLM_Interface]:
        with super().provider(scenario) as llm, TemporaryDirectory() as folder:
            cached = CachedLLM(llm, Path(folder) / "answers.sqlite")
            yield cached
            cached.close()


@pytest.mark.local_model
class TestLocalModel(contract.ProviderContract):
    is_scripted = False

    @contextmanager
    def provider(self, scenario: contract.Scenario) -> Iterator[LLM_Interface]:
        yield LocalModel(seed=1)

    def request(self, scenario: contract.Scenario) -> contract.Request:
        match scenario:
            case contract.Hang():
                question, limit = "Tell a very long story about the sea. Never stop.", 3000
            case contract.Refuse():
                question, limit = "word " * 6000, 10
            case contract.Fill():
                question, limit = "The weather in Paris for two days, as JSON.", 60
            case _:
                question, limit = "Name a colour.", 12
        # A story that ends is no test of a deadline: the end is made unlikely, as far as llama.cpp lets us.
        ends = {"ignore_eos": True} if isinstance(scenario, contract.Hang) else {}
        return contract.Request([{"role": "user", "content": question}], {"max_tokens": limit, **ends})

    test_tool_round = None  # its profile calls no tools natively


# --- the suite finds what is wrong ---------------------------------------------------------------------------


class Wrapper(LLM_Interface):
    """Passes everything on; the providers below break one thing each."""

    model_name = "wrapper"

    def __init__(self, scenario: contract.Scenario) -> None:
        self.inner = PicklableScripted(scenario)
        self.profile = self.inner.profile

    async def chat(self, messages, **more):
        return await self.inner.chat(messages, **more)

    def chat_stream(self, messages, **more):
        return self.inner.chat_stream(messages, **more)


class MutatesMessages(Wrapper):
    async def chat(self, messages, **more):
        messages[0]["content"] = "changed"
        return await super().chat(messages, **more)


class NeedsLists(Wrapper):
    async def chat(self, messages, **more):
        return await super().chat(messages.copy(), **more)


class MixesAnswers(Wrapper):
    async def chat(self, messages, **more):
        reply = await super().chat(messages, **more)
        self.first = getattr(self, "first", reply)
        return self.first


class RepliesWithADict(Wrapper):
    async def chat(self, messages, **more):
        return (await super().chat(messages, **more)).raw


class RefusesNone(Wrapper):
    async def chat(self, messages, **more):
        float(more.get("temperature", 0) + more.get("seed", 0))
        return await super().chat(messages, **more)


class DropsPieces(Wrapper):
    async def chat_stream(self, messages, **more):
        async with aclosing(super().chat_stream(messages, **more)) as stream:
            async for chunk in stream:
                if chunk.text != " rain":
                    yield chunk


class NeverSaysItIsOver(Wrapper):
    async def chat_stream(self, messages, **more):
        async with aclosing(super().chat_stream(messages, **more)) as stream:
            async for chunk in stream:
                if chunk.text:
                    yield chunk


class LeavesATask(Wrapper):
    def chat_stream(self, messages, **more):
        self.task = asyncio.ensure_future(asyncio.sleep(5))
        return super().chat_stream(messages, **more)


class IgnoresTheDeadline(Wrapper):
    async def chat(self, messages, *, deadline=None, **more):
        if isinstance(self.inner.scenario, contract.Hang):
            await asyncio.sleep(1)
            return ChatCompletion(())
        return await super().chat(messages, **more)

    async def chat_stream(self, messages, *, deadline=None, **more):
        if isinstance(self.inner.scenario, contract.Hang):
            await asyncio.sleep(1)
            return
        async for chunk in super().chat_stream(messages, **more):
            yield chunk


class IgnoresCancelling(Wrapper):
    async def chat(self, messages, **more):
        try:
            await super().chat(messages, **more)
        except asyncio.CancelledError:
            await asyncio.sleep(0.2)
            raise


class ForeignErrors(Wrapper):
    async def chat(self, messages, **more):
        try:
            return await super().chat(messages, **more)
        except AuthenticationError as error:
            raise ConnectionError("foreign") from error


class NeverFails(Wrapper):
    async def chat(self, messages, **more):
        return ChatCompletion(())


class ShowsItsKey(Wrapper):
    key = "sk-canary-123"

    def __init__(self, scenario: contract.Scenario) -> None:
        super().__init__(scenario)
        self.api_key = self.key

    def __repr__(self) -> str:
        return f"ShowsItsKey({self.api_key})"

    def render(self, messages, **more):
        return {**super().render(messages, **more), "api_key": self.api_key}

    async def chat(self, messages, **more):
        try:
            return await super().chat(messages, **more)
        except AuthenticationError as error:
            raise AuthenticationError("m", body=self.api_key) from error


class BoundToItsLoop(Wrapper):
    async def chat(self, messages, **more):
        self.loop = getattr(self, "loop", None) or asyncio.get_running_loop()
        assert self.loop is asyncio.get_running_loop()
        return await super().chat(messages, **more)


class Unpicklable(Wrapper):
    def __init__(self, scenario: contract.Scenario) -> None:
        super().__init__(scenario)
        self.lock = threading.Lock()


class Nameless(Wrapper):
    model_name = ""


class CallsNoTool(Wrapper):
    async def chat(self, messages, *, tools=None, **more):
        reply = await super().chat(messages, **more)
        return reply if not reply.tool_calls else ChatCompletion(())


class IgnoresTheSchema(Wrapper):
    async def chat(self, messages, *, response_format=None, **more):
        if response_format is None:
            return await super().chat(messages, **more)
        return await ScriptedLLM('{"town": "Paris"}').chat(messages)


BROKEN = [
    (MutatesMessages, "test_what_was_given_is_not_changed"), (NeedsLists, "test_parameters_that_are_none"),
    (MixesAnswers, "test_concurrent_calls_get_their_own_answers"), (RepliesWithADict, "test_reply_has_its_shape"),
    (RefusesNone, "test_parameters_that_are_none"), (DropsPieces, "test_stream_adds_up"),
    (NeverSaysItIsOver, "test_stream_adds_up"), (LeavesATask, "test_stream_closed_early_leaves_no_task"),
    (IgnoresTheDeadline, "test_deadline"), (IgnoresTheDeadline, "test_deadline_that_has_passed"),
    (IgnoresCancelling, "test_cancellation"), (ForeignErrors, "test_errors_are_ours"),
    (NeverFails, "test_errors_are_ours"), (ShowsItsKey, "test_errors_are_ours"),
    (ShowsItsKey, "test_repr_holds_no_secret"), (ShowsItsKey, "test_renders_the_body"),
    (ShowsItsKey, "test_can_be_pickled"), (Unpicklable, "test_can_be_pickled"),
    (BoundToItsLoop, "test_successive_event_loops"), (BoundToItsLoop, "test_several_threads"),
    (Nameless, "test_tells_who_it_is"), (CallsNoTool, "test_tool_round"), (IgnoresTheSchema, "test_response_format"),
]  # fmt: skip


def suite_for(wrong: type[Wrapper]) -> contract.ProviderContract:
    class Suite(contract.ProviderContract):
        secret = ShowsItsKey.key

        @contextmanager
        def provider(self, scenario: contract.Scenario) -> Iterator[LLM_Interface]:
            yield wrong(scenario)

    return Suite()


@pytest.mark.parametrize(("wrong", "test"), BROKEN, ids=lambda value: getattr(value, "__name__", value))
def test_finds(wrong: type[Wrapper], test: str) -> None:
    with pytest.raises((AssertionError, TypeError, AttributeError, ConnectionError)):
        getattr(suite_for(wrong), test)()


@pytest.mark.parametrize("test", [name for name in dir(contract.ProviderContract) if name.startswith("test_")])
def test_a_provider_of_two_methods_passes(test: str) -> None:
    getattr(suite_for(Wrapper), test)()


def test_what_a_provider_does_not_play_is_skipped() -> None:
    class OnlyAnswers(contract.ProviderContract):
        def provider(self, scenario: contract.Scenario) -> Any:
            if isinstance(scenario, contract.Answer):
                return TestScriptedLLM().provider(scenario)
            raise NotImplementedError

    OnlyAnswers().test_reply_has_its_shape()
    with pytest.raises(unittest.SkipTest, match="does not play Hang"):
        OnlyAnswers().test_cancellation()
