"""How models behind a model are asked: reasoning apart, and a second request; the race itself is in test_fallback.py."""

import asyncio

import pytest

from SimpleLLMFunc.errors import StreamInterrupted
from SimpleLLMFunc.interface.composite import CachedLLM, FallbackLLM
from SimpleLLMFunc.interface.composite.question import HedgeTimer, current_sample, sample_scope
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.testing import ScriptedLLM
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk
from tests.support.asking import HELLO, ask_either, both_ways

TEXT = "<think>hm, two</think>\n\nTwo."


class Own(LLM_Interface):
    """A user's own interface: it hands over what its service sent, in pieces, and perhaps breaks off."""

    model_name = "own"

    def __init__(self, *pieces, breaks=False):
        self.pieces, self.breaks, self.asked = pieces, breaks, 0

    def _broken(self):
        return StreamInterrupted("own", partial="".join(self.pieces), reason="gone")

    async def chat(self, messages, **_):
        self.asked += 1
        if self.breaks:
            raise self._broken()
        message = {"role": "assistant", "content": "".join(self.pieces)}
        return ChatCompletion.from_dict({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

    async def chat_stream(self, messages, **_):
        self.asked += 1
        for piece in self.pieces:
            yield ChatCompletionChunk.from_dict({"choices": [{"index": 0, "delta": {"content": piece}}]})
        if self.breaks:
            raise self._broken()
        if self.pieces:
            yield ChatCompletionChunk.from_dict({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})


MAKERS = {
    "fallback": lambda llm, _: FallbackLLM(llm),
    "hedged": lambda llm, _: FallbackLLM(llm, hedge_after=30),
    "cache": lambda llm, folder: CachedLLM(llm, folder / "answers.sqlite"),
    "both": lambda llm, folder: CachedLLM(FallbackLLM(llm), folder / "answers.sqlite"),
}


@both_ways
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
async def test_it_is_put_apart(make, is_streamed, tmp_path):
    llm = make(Own(TEXT[:5], TEXT[5:30], TEXT[30:]), tmp_path)
    for _ in range(2):  # the second one may come from the cache
        reply = await ask_either(llm, is_streamed)
        assert (reply.text, reply.message.reasoning_content) == ("Two.", "hm, two")


@both_ways
async def test_a_model_that_broke_off_while_it_reasoned_has_said_nothing(is_streamed):
    broken, other = Own("<think>h", "m", breaks=True), Own("Two.")
    assert (await ask_either(FallbackLLM(broken, other), is_streamed)).text == "Two."
    assert (broken.asked, other.asked) == (1, 1)


@both_ways
async def test_the_partial_text_of_an_error_is_answer_too(is_streamed):
    other = Own("Two.")
    with pytest.raises(StreamInterrupted) as caught:
        await ask_either(FallbackLLM(Own("<think>hm</think>Tw", breaks=True), other), is_streamed)
    assert (caught.value.partial, other.asked) == ("Tw", 0)


async def test_an_answer_of_reasoning_alone_is_not_kept(tmp_path):
    own = Own("<think>hm</think>")
    llm = CachedLLM(own, tmp_path / "answers.sqlite")
    for _ in range(2):
        assert (await llm.chat(HELLO)).text == ""
    assert own.asked == 2


# --- when a second request leaves --------------------------------------------------------------------------


def test_p95_is_the_time_that_95_of_100_took():
    timer = HedgeTimer("p95")
    for seconds in range(1, 20):
        timer.note(seconds)
    assert timer.delay() is None
    for seconds in range(20, 101):
        timer.note(seconds)
    assert timer.delay() == 95
    assert HedgeTimer(2).delay() == 2
    assert HedgeTimer(None).delay() is None


class Cancelling(Own):
    def _broken(self):
        return asyncio.CancelledError()


@pytest.mark.parametrize("pieces", [(), ("Two.",)])
async def test_a_stream_that_cancels_itself_ends_for_who_reads_it(pieces):
    llm = FallbackLLM(Cancelling(*pieces, breaks=True), hedge_after=5)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(ask_either(llm, True), 5)
    assert [piece async for piece in FallbackLLM(Own(), hedge_after=5).chat_stream(HELLO)] == []


# --- which of several answers ------------------------------------------------------------------------------


def test_scopes_end_and_multiply():
    assert current_sample() == 0
    with sample_scope(0):
        assert current_sample() == 0
    seen = set()
    for outer in range(3):
        with sample_scope(outer):
            for inner in range(3):
                with sample_scope(inner):
                    seen.add(current_sample())
    assert len(seen) == 9
    assert current_sample() == 0


async def test_a_cache_keeps_one_answer_for_each_sample(tmp_path):
    inner = ScriptedLLM("a", "b")
    llm = CachedLLM(inner, tmp_path / "cache.sqlite")

    async def ask(sample):
        with sample_scope(sample):
            return (await llm.chat(HELLO)).text

    assert sorted(await asyncio.gather(ask(0), ask(1))) == ["a", "b"]
    first = [await ask(0), await ask(1)]
    assert sorted(first) == ["a", "b"]
    with sample_scope(1):
        streamed = "".join([chunk.text async for chunk in llm.chat_stream(HELLO)])
    assert streamed == first[1]
    assert (await llm.chat(HELLO)).text == first[0]
    assert len(inner.calls) == 2
