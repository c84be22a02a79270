"""The five steps are the body: every view of a call enters them in order, and a step that is replaced changes the call.

Source: the owner's design card: each stage lives in its own step module, the decorators are composed from those steps.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pydantic import BaseModel

from SimpleLLMFunc import ChatPair, Message, llm_chat, tool
from SimpleLLMFunc.llm_decorator.steps.chat import message as chat_message
from SimpleLLMFunc.llm_decorator.steps.chat import react as chat_react
from SimpleLLMFunc.llm_decorator.steps.chat import response as chat_response
from SimpleLLMFunc.llm_decorator.steps.common import log_context, signature
from SimpleLLMFunc.llm_decorator.steps.function import prompt, react, response
from SimpleLLMFunc.runtime.sync import run_sync
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls
from tests.support.functions import async_decorated, decorated

STEPS = Path(signature.__file__).parents[1]


class Grade(BaseModel):
    score: int


@tool
def look(at: str) -> str:
    """Look at something."""
    return f"{at} is fine"


def scripted(kind):
    replies = {"typed": ['{"score": 3}'], "tools": [tool_calls(("look", {"at": "it"})), '{"score": 3}']}
    return ScriptedLLM(*replies.get(kind, ["rain"]))


def function(kind, is_async, llm=None):
    """Return a decorated function: plain, typed, or typed with tools."""
    make, returns = async_decorated if is_async else decorated, str if kind == "plain" else Grade
    return make(returns, llm or scripted(kind), toolkit=[look] if kind == "tools" else None)


def chat(is_async, llm=None, **options):
    def talk(history: list[Message], message: str):
        """Talk."""

    talk.__annotations__["return"] = AsyncIterator[ChatPair] if is_async else Iterator[ChatPair]
    return llm_chat(llm_interface=llm or scripted("chat"), **options)(talk)


async def read(view, *args):
    """Read a view to its end: a value, a coroutine, a generator of either kind."""
    found = view(*args)
    if hasattr(found, "__aiter__"):
        return [item async for item in found]
    if inspect.iscoroutine(found):
        return await found
    return list(found) if isinstance(found, Iterator) else found


async def value_of(view, *args, is_async=True):
    if is_async:
        return await read(view, *args)
    profile = sys.getprofile()

    def called_without_a_loop():
        sys.setprofile(profile)
        try:
            return asyncio.run(read(view, *args))
        finally:
            sys.setprofile(None)

    return await asyncio.to_thread(called_without_a_loop)


VIEWS = {
    "plain": lambda made: (made("plain"), "essay"), "typed": lambda made: (made("typed"), "essay"),
    "with tools": lambda made: (made("tools"), "essay"), "call": lambda made: (made("typed").call, "essay"),
    "stream": lambda made: (made("typed").stream, "essay"),
    "stream of text": lambda made: (made("plain").stream, "essay"),
    "events": lambda made: (made("tools").events, "essay"), "map": lambda made: (made("typed").map, ["essay"]),
}  # fmt: skip
CHAT_VIEWS = {
    "chat": lambda made: (made(), [], "hello"), "chat in pieces": lambda made: (made(stream=True), [], "hello"),
    "chat events": lambda made: (made().events, [], "hello"),
}  # fmt: skip
EITHER = pytest.mark.parametrize("is_async", [True, False], ids=["async def", "def"])


# --- what a call enters -----------------------------------------------------------------------------------------------


class Entered:
    """Records the functions under `steps/` in the order in which they are entered, in this thread and the bridge's."""

    def __init__(self):
        self.names = []

    def __call__(self, frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(STEPS)) and not code.co_name.startswith(("_", "<")):
            name = f"{Path(code.co_filename).relative_to(STEPS).with_suffix('')}.{code.co_qualname}"
            if name not in self.names:
                self.names.append(name)

    async def everywhere(self, profile):
        async def here():
            sys.setprofile(profile)

        await asyncio.to_thread(run_sync, here())
        sys.setprofile(profile)


async def entered_by(view, *args, is_async):
    entered = Entered()
    await entered.everywhere(entered)
    try:
        await value_of(view, *args, is_async=is_async)
    finally:
        await entered.everywhere(None)
    return entered.names


def assert_in_order(entered, *steps):
    places = []
    for step in steps:
        found = [entered.index(name) for name in step if name in entered]
        assert found, f"{' or '.join(step)} was not entered, only {entered}"
        places.append(min(found))
    assert places == sorted(places), entered


@EITHER
@pytest.mark.parametrize("view", VIEWS)
async def test_a_function_enters_the_five_steps_in_order(view, is_async):
    entered = await entered_by(*VIEWS[view](lambda kind: function(kind, is_async)), is_async=is_async)
    assert_in_order(
        entered,
        ["common/signature.parse_function_signature"],
        ["common/log_context.setup_log_context"],
        ["function/prompt.build_initial_prompts"],
        ["function/react.execute_react_loop", "common/react.react_loop_events"],
        ["function/response.parse_and_validate_response"],
    )


@EITHER
@pytest.mark.parametrize("view", CHAT_VIEWS)
async def test_a_chat_enters_the_five_steps_in_order(view, is_async):
    entered = await entered_by(*CHAT_VIEWS[view](lambda **more: chat(is_async, **more)), is_async=is_async)
    steps = [
        ["common/signature.parse_function_signature"], ["common/log_context.setup_log_context"],
        ["chat/message.build_chat_messages"],
        ["chat/react.execute_react_loop_streaming", "common/react.react_loop_events"],
        ["chat/response.process_chat_response_stream"],
    ]  # fmt: skip
    # Those who read the events get them as they are: nothing makes pairs of them.
    assert_in_order(entered, *(steps[:-1] if view == "chat events" else steps))


# --- what replacing a step does ---------------------------------------------------------------------------------------


@EITHER
@pytest.mark.parametrize("kind", ["function", "chat"])
async def test_another_signature_is_another_question(monkeypatch, kind, is_async):
    own = signature.parse_function_signature

    def other(func, args, kwargs, *more, **most):
        return own(func, (*args[:-1], "something else"), kwargs, *more, **most)

    monkeypatch.setattr(signature, "parse_function_signature", other)
    llm = scripted("plain")
    made = function("plain", is_async, llm) if kind == "function" else chat(is_async, llm)
    await value_of(made, *(["essay"] if kind == "function" else [[], "essay"]), is_async=is_async)
    assert "something else" in llm.requests[0][-1]["content"]


@EITHER
@pytest.mark.parametrize("kind", ["function", "chat"])
async def test_another_log_context_is_around_the_request(monkeypatch, kind, is_async):
    told = []

    @asynccontextmanager
    async def other(func_name, trace_id, arguments):
        told.append(f"in {func_name} {sorted(arguments)[-1]}")
        yield
        told.append("out")

    def answer(_request):
        told.append("asked")
        return "rain"

    monkeypatch.setattr(log_context, "setup_log_context", other)
    llm = ScriptedLLM(answer)
    made = function("plain", is_async, llm) if kind == "function" else chat(is_async, llm)
    await value_of(made, *(["essay"] if kind == "function" else [[], "essay"]), is_async=is_async)
    name = made.__name__
    assert told == [f"in {name} {'text' if kind == 'function' else 'message'}", "asked", "out"]


@EITHER
@pytest.mark.parametrize("view", VIEWS)
async def test_another_prompt_is_what_is_sent(monkeypatch, view, is_async):
    llms = []

    def made(kind):
        llms.append(scripted(kind))
        return function(kind, is_async, llms[0])

    other = [{"role": "user", "content": "something else"}]
    monkeypatch.setattr(prompt, "build_initial_prompts", lambda *_, **__: list(other))
    await value_of(*VIEWS[view](made), is_async=is_async)
    assert llms[0].requests[0][:1] == other


@EITHER
@pytest.mark.parametrize("view", CHAT_VIEWS)
async def test_other_messages_are_what_a_chat_sends(monkeypatch, view, is_async):
    llm = scripted("chat")
    other = [{"role": "user", "content": "something else"}]
    monkeypatch.setattr(chat_message, "build_chat_messages", lambda *_, **__: list(other))
    await value_of(*CHAT_VIEWS[view](lambda **more: chat(is_async, llm, **more)), is_async=is_async)
    assert llm.requests[0] == other


@EITHER
@pytest.mark.parametrize(
    ("view", "replaced"),
    [("plain", "execute_react_loop"), ("call", "execute_react_loop"), ("map", "execute_react_loop")]
    + [(view, "react_loop_events") for view in VIEWS],
)
async def test_another_loop_is_what_answers(monkeypatch, view, replaced, is_async):
    own, used = getattr(react, replaced), []

    def other(*args, **kwargs):
        used.append(replaced)
        return own(*args, **kwargs)

    monkeypatch.setattr(react, replaced, other)
    await value_of(*VIEWS[view](lambda kind: function(kind, is_async)), is_async=is_async)
    assert used == [replaced]


@EITHER
async def test_the_reply_of_another_loop_is_the_answer(monkeypatch, is_async):
    async def other(*_, **__):
        return {"choices": [{"message": {"role": "assistant", "content": '{"score": 99}'}, "finish_reason": "stop"}]}

    monkeypatch.setattr(react, "execute_react_loop", other)
    assert await value_of(function("typed", is_async), "essay", is_async=is_async) == Grade(score=99)


@EITHER
@pytest.mark.parametrize("stream", [False, True])
async def test_another_stream_is_what_a_chat_says(monkeypatch, stream, is_async):
    async def other(*_, **__):
        part = "delta" if stream else "message"
        for text in ("some", "thing"):
            yield {"choices": [{part: {"role": "assistant", "content": text}}]}

    monkeypatch.setattr(chat_react, "execute_react_loop_streaming", other)
    pairs = await value_of(chat(is_async, stream=stream), [], "hello", is_async=is_async)
    assert [text for text, _ in pairs] == ["some", "thing", ""]


@EITHER
@pytest.mark.parametrize("view", ["typed", "with tools", "call", "map", "stream"])
async def test_another_reading_is_another_value(monkeypatch, view, is_async):
    monkeypatch.setattr(response, "parse_and_validate_response", lambda *_, **__: Grade(score=99))
    found = await value_of(*VIEWS[view](lambda kind: function(kind, is_async)), is_async=is_async)
    found = found[-1] if view == "stream" else found.rows[0] if view == "map" else found
    assert getattr(found, "value", found) == Grade(score=99)


@EITHER
async def test_other_pairs_are_what_a_chat_gives(monkeypatch, is_async):
    async def other(responses, *_, **__):
        async for _response in responses:
            yield "something else", []

    monkeypatch.setattr(chat_response, "process_chat_response_stream", other)
    assert await value_of(chat(is_async), [], "hello", is_async=is_async) == [("something else", [])]
