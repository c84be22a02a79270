"""Fault 30: what a model thinks in its text is in no answer of any interface."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from SimpleLLMFunc import AbortSignal, CachedLLM, FallbackLLM, llm_chat, llm_function
from SimpleLLMFunc.base.events import ReplyDelta, ReplyReceived
from SimpleLLMFunc.base.ReAct import execute_llm
from SimpleLLMFunc.errors import EmptyResponseError, RunAborted, StreamInterrupted
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk

THOUGHTS = "Is <b> allowed? I think so."
ANSWER = "Yes, <b> is."
TEXT = f"<think>\n{THOUGHTS}\n</think>\n\n{ANSWER}"


class Custom(LLM_Interface):
    """The two methods, and nothing else: a model class that knows nothing of thoughts."""

    model_name = "custom"

    def __init__(self, *texts, size=3, error=None):
        self.texts, self.size, self.error = list(texts), size, error

    async def chat(self, messages, **options):
        text = self.texts.pop(0)
        message = {"role": "assistant", "content": text}
        return ChatCompletion.from_dict({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

    async def chat_stream(self, messages, **options):
        text = self.texts.pop(0)
        for at in range(0, len(text), self.size):
            await asyncio.sleep(0)
            delta = {"content": text[at : at + self.size]}
            yield ChatCompletionChunk.from_dict({"choices": [{"index": 0, "delta": delta}]})
        if self.error:
            raise self.error
        yield ChatCompletionChunk.from_dict({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})


def scripted(*texts):
    return ScriptedLLM(*texts)


def in_pieces(*texts):
    return ScriptedLLM(*([text[:3], text[3:30], text[30:]] for text in texts))


def behind_a_fallback(*texts):
    return FallbackLLM(Custom(*texts))


@pytest.fixture(params=[scripted, in_pieces, Custom, behind_a_fallback, "cached"])
def made(request, tmp_path):
    if request.param != "cached":
        return request.param
    return lambda *texts: CachedLLM(ScriptedLLM(*texts), tmp_path / "answers.sqlite")


def saying(llm):
    @llm_function(llm)
    async def say(question: str) -> str:
        """Answer."""

    return say


async def test_a_function_returns_and_streams_the_answer_alone(made):
    say = saying(made(TEXT))
    result = await say.call("x")
    assert (result.value, result.text) == (ANSWER, ANSWER)
    assert result.messages[-1]["content"] == ANSWER
    say = saying(made(TEXT))
    assert "".join([piece async for piece in say.stream("x")]) == ANSWER


async def test_a_growing_value_never_holds_what_was_only_thought(made):
    @llm_function(made('<think>["a", "b"]?</think>["c"]'), output_mode="prompt")
    async def names(text: str) -> list[str]:
        """List the names."""

    assert {name for grown in [value async for value in names.stream("x")] for name in grown} == {"c"}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("return_mode", ["text", "raw"])
async def test_a_chat_shows_and_keeps_the_answer_alone(made, stream, return_mode):
    @llm_chat(made(TEXT), stream=stream, return_mode=return_mode)
    async def chat(history: list, message: str) -> AsyncIterator[tuple]:
        """Talk."""

    pairs = [pair async for pair in chat([], "x")]
    if return_mode == "text":
        assert "".join(text for text, _ in pairs) == ANSWER
    else:
        choices = [choice for reply, _ in pairs for choice in reply.choices]
        parts = [choice.delta if stream else choice.message for choice in choices]
        assert "".join(part.content or "" for part in parts) == ANSWER
        thought = "".join((part.model_extra or {}).get("reasoning_content") or "" for part in parts)
        assert thought.strip() == THOUGHTS
    assert pairs[-1][1][-1]["content"] == ANSWER


async def test_the_events_keep_the_thoughts_apart(made):
    events = [event async for event in saying(made(TEXT)).events("x")]
    assert "".join(event.text for event in events if isinstance(event, ReplyDelta)) == ANSWER
    (received,) = [event for event in events if isinstance(event, ReplyReceived)]
    assert received.reply.text == ANSWER
    assert received.reply.message.reasoning_content.strip() == THOUGHTS


@pytest.mark.parametrize("stream", [True, False])
async def test_the_raw_responses_keep_the_thoughts_apart(made, stream):
    messages = [{"role": "user", "content": "x"}]
    raw = [each async for each in execute_llm(made(TEXT), messages, None, {}, 0, stream=stream)]
    assert "".join(each.text for each in raw) == ANSWER
    assert messages[-1]["content"] == ANSWER


async def test_what_came_stays_as_it_came_in_raw():
    wire = {"choices": [{"index": 0, "message": {"role": "assistant", "content": TEXT}, "finish_reason": "stop"}]}
    (reply,) = [each async for each in execute_llm(scripted(ChatCompletion.from_dict(wire)), [], None, {}, 0)]
    assert reply.raw == wire
    deltas = [event async for event in saying(in_pieces(TEXT)).events("x") if isinstance(event, ReplyDelta)]
    sent = [choice["delta"].get("content") for each in deltas for choice in each.raw.raw.get("choices", ())]
    assert "".join(text or "" for text in sent) == TEXT


@pytest.mark.parametrize("text", ["<think>Hm.</think>\n", "<think>Hm."])
@pytest.mark.parametrize("view", ["call", "stream"])
async def test_thoughts_alone_are_no_answer_and_are_not_kept(made, text, view):
    say = saying(made(text, text, ANSWER)).with_options(retry_times=0)
    for _ in range(2):  # the second time would be answered by a cache that had kept it
        with pytest.raises(EmptyResponseError):
            await (say.call("x") if view == "call" else anext(say.stream("x")))


async def test_a_text_that_ends_where_a_thought_may_begin_is_shown_whole():
    for text in ("  <thi", "<", "<think", "[", "◁"):
        say = saying(Custom(text, size=1))
        assert "".join([piece async for piece in say.stream("x")]) == text


async def test_a_stream_that_breaks_off_leaves_no_thoughts_in_the_history():
    for text, kept in ((TEXT, ANSWER), (TEXT[:20], None)):
        say = saying(Custom(text, error=StreamInterrupted("custom", partial=text)))
        with pytest.raises(StreamInterrupted) as caught:
            _ = [piece async for piece in say.stream("x")]
        last = caught.value.messages[-1]
        assert (last["role"], last["content"]) == ("assistant", kept) if kept else last["role"] == "user"


async def test_an_abort_while_the_model_thinks_gives_no_thoughts_away():
    signal = AbortSignal()
    say = saying(Custom(TEXT)).with_options(abort_signal=signal)
    with pytest.raises(RunAborted) as caught:
        async for event in say.events("x"):
            if isinstance(event, ReplyDelta) and event.raw.delta.reasoning_content:
                signal.abort()
    assert caught.value.partial == ""
    assert caught.value.messages[-1]["role"] == "user"


async def test_a_member_that_breaks_while_it_thinks_makes_room_for_the_next():
    broken = Custom(TEXT[:20], error=StreamInterrupted("custom", partial=TEXT[:20]))
    say = saying(FallbackLLM(broken, Custom(TEXT)))
    assert "".join([piece async for piece in say.stream("x")]) == ANSWER


async def test_actions_of_a_model_that_thinks_first():
    runs = []

    def add(a: int, b: int) -> int:
        """Add."""
        runs.append((a, b))
        return a + b

    llm = Custom(
        '<think>{"answer": "5"}</think>{"tool": "add", "arguments": {"a": 2, "b": 2}}',
        '<think>4?</think>{"answer": "4"}',
    )

    @llm_function(llm, toolkit=[add], tools="json")
    async def ask(question: str) -> str:
        """Answer."""

    assert "".join([piece async for piece in ask.stream("x")]) == "4"
    assert runs == [(2, 2)]


async def test_thoughts_of_each_round_stay_out():
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    call = tool_calls(("add", {"a": 2, "b": 2}), content="<think>I should add.</think>Let me see. ")

    @llm_function(ScriptedLLM(call, TEXT), toolkit=[add])
    async def ask(question: str) -> str:
        """Answer."""

    result = await ask.call("x")
    assert [message["content"] for message in result.messages if message["role"] == "assistant"] == [
        "Let me see. ",
        ANSWER,
    ]
