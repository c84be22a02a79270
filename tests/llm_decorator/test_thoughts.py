"""Fault 30: what a model thinks in its text is in no answer of any interface."""

from __future__ import annotations

import asyncio

import pytest

from SimpleLLMFunc import CachedLLM, FallbackLLM
from SimpleLLMFunc.errors import EmptyResponseError
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk
from tests.support.functions import async_decorated, chat

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


def in_pieces(*texts):
    return ScriptedLLM(*([text[:3], text[3:30], text[30:]] for text in texts))


def behind_a_fallback(*texts):
    return FallbackLLM(Custom(*texts))


@pytest.fixture(params=[ScriptedLLM, in_pieces, Custom, behind_a_fallback, "cached"])
def made(request, tmp_path):
    if request.param != "cached":
        return request.param
    return lambda *texts: CachedLLM(ScriptedLLM(*texts), tmp_path / "answers.sqlite")


async def test_a_function_returns_and_streams_the_answer_alone(made):
    say = async_decorated(str, made(TEXT))
    result = await say.call("x")
    assert (result.value, result.text) == (ANSWER, ANSWER)
    assert result.messages[-1]["content"] == ANSWER
    say = async_decorated(str, made(TEXT))
    assert "".join([piece async for piece in say.stream("x")]) == ANSWER


async def test_a_growing_value_never_holds_what_was_only_thought(made):
    names = async_decorated(list[str], made('<think>["a", "b"]?</think>["c"]'), output_mode="prompt")
    assert {name for grown in [value async for value in names.stream("x")] for name in grown} == {"c"}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("return_mode", ["text", "raw"])
async def test_a_chat_shows_and_keeps_the_answer_alone(made, stream, return_mode):
    pairs = [pair async for pair in chat(made(TEXT), stream=stream, return_mode=return_mode)([], "x")]
    if return_mode == "text":
        assert "".join(text for text, _ in pairs) == ANSWER
    else:
        choices = [choice for reply, _ in pairs for choice in reply.choices]
        parts = [choice.delta if stream else choice.message for choice in choices]
        assert "".join(part.content or "" for part in parts) == ANSWER
        thought = "".join((part.model_extra or {}).get("reasoning_content") or "" for part in parts)
        assert thought.strip() == THOUGHTS
    assert pairs[-1][1][-1]["content"] == ANSWER


@pytest.mark.parametrize("text", ["<think>Hm.</think>\n", "<think>Hm."])
@pytest.mark.parametrize("view", ["call", "stream"])
async def test_thoughts_alone_are_no_answer_and_are_not_kept(made, text, view):
    say = async_decorated(str, made(text, text, ANSWER)).with_options(retry_times=0)
    for _ in range(2):  # the second time would be answered by a cache that had kept it
        with pytest.raises(EmptyResponseError):
            await (say.call("x") if view == "call" else anext(say.stream("x")))
