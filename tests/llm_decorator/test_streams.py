"""Growing typed values and items: in every mode, with tools before, ended by errors and aborts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import partial

import pytest
from pydantic import BaseModel

from SimpleLLMFunc import AbortSignal, OutputTruncated, ResponseParseError, RunAborted, tool, watching
from SimpleLLMFunc.base.events import ReplyDelta
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls
from tests.support.functions import NATIVE, async_decorated, chat, every

STORY = {"title": "Rain over Rome", "stars": 4, "tags": ["wet", "old"]}
MODES = ["native", "tool", "prompt"]


class Story(BaseModel):
    title: str
    stars: int
    tags: list[str] = []


@tool
def look(what: str) -> str:
    """Look."""
    return f"{what}: seen"


def written(value, mode):
    if mode == "tool":
        return tool_calls(("answer", value if isinstance(value, dict) else {"value": value}))
    if mode == "prompt":
        return f"Here it is:\n```json\n{json.dumps(value)}\n```"
    return json.dumps(value if isinstance(value, dict) else {"value": value})


def telling(*replies, returns=Story, **options):
    llm = ScriptedLLM(*replies, chunk_size=3, profile=NATIVE)
    return async_decorated(returns, llm, **options), llm


listing = partial(telling, returns=AsyncIterator[Story])


@pytest.mark.parametrize("mode", MODES)
async def test_a_value_grows_and_ends_as_the_call_returns_it(mode):
    replies = [tool_calls(("look", {"what": "rain"})), written(STORY, mode)] * 2
    tell, _ = telling(*replies, output_mode=mode, toolkit=[look])
    values = await every(tell.stream("rain"))
    assert values[-1] == await tell("rain") == Story(**STORY)
    assert len(values) > 5
    assert all(left != right for left, right in zip(values, values[1:], strict=False))
    titles = [value.title for value in values if hasattr(value, "title")]
    assert titles[0] != STORY["title"]
    assert all(later.startswith(earlier) for earlier, later in zip(titles, titles[1:], strict=False))
    assert not hasattr(values[0], "stars")
    assert {value.stars for value in values if hasattr(value, "stars")} == {4}


@pytest.mark.parametrize("mode", MODES)
async def test_items_come_one_by_one(mode):
    stories = [{**STORY, "stars": stars} for stars in range(3)]
    look_first = tool_calls(("look", {"what": "rain"}))
    ideas, _ = listing(look_first, written(stories, mode), output_mode=mode, toolkit=[look])
    deltas, arrived = [], []
    with watching(lambda _, event: deltas.append(event) if isinstance(event, ReplyDelta) else None):
        async with aclosing(ideas("x")) as items:
            async for item in items:
                arrived.append((item.stars, len(deltas)))
    assert [stars for stars, _ in arrived] == [0, 1, 2]
    assert arrived[0][1] < arrived[1][1] < arrived[2][1]


class Odd(BaseModel):  # noqa: PLW1641 - no value of it is hashed
    n: int

    def __eq__(self, other: object) -> bool:
        raise ValueError("as an array does")


async def test_values_that_cannot_be_compared_stream_all_the_same():
    assert [value.n for value in await every(telling('{"n": 1}', returns=Odd)[0].stream("x"))][-1] == 1
    items, _ = listing(written([{"n": 1}, {"n": 2}], "native"), returns=AsyncIterator[Odd])
    assert [item.n for item in await every(items("x"))] == [1, 2]
    sampled, _ = telling('{"n": 1}', returns=Odd, first=lambda text: Odd(n=1), sample=1.0)
    assert ((await sampled("x")).n, sampled.agreement.compared) == (1, 1)


async def test_a_bad_item_after_a_good_one_is_not_asked_again():
    ideas, llm = listing(written([STORY, {"title": "x", "stars": "many"}], "native"), written([STORY], "native"))
    items = []
    with pytest.raises(ResponseParseError):
        async for item in ideas("x"):
            items.append(item)
    assert items == [Story(**STORY)]
    assert len(llm.calls) == 1


async def test_before_the_first_item_it_is_asked_again():
    ideas, llm = listing("I would rather not.", written([STORY], "native"))
    assert await every(ideas("x")) == [Story(**STORY)]
    assert len(llm.calls) == 2


async def test_an_answer_that_turns_out_to_be_another_list_is_refused():
    draft, story = (json.dumps([{**STORY, "title": title}]) for title in ("Draft", "Story"))
    ideas, _ = listing(f"{draft}\n</think>\n{story}")
    with pytest.raises(ResponseParseError, match="goes on as another list"):
        await every(ideas("x"))


async def test_a_cut_list_is_never_complete():
    cut = {"role": "assistant", "content": json.dumps({"value": [STORY]}), "finish_reason": "length"}
    ideas, _ = listing(cut)
    items = []
    with pytest.raises(OutputTruncated):
        async for item in ideas("x"):
            items.append(item)
    assert items == [Story(**STORY)]


async def test_an_answer_asked_for_again_starts_over():
    tell, _ = telling('{"title": "One", "stars": "many"}', json.dumps(STORY))
    values = await every(tell.stream("x"))
    assert values[-1] == Story(**STORY)


async def test_one_item_in_place_of_a_list_comes_at_the_end():
    ideas, _ = listing(json.dumps(STORY))
    assert await every(ideas("x")) == [Story(**STORY)]


# --- aborting ---


class Slow(ScriptedLLM):
    """Waits for ever after the third piece of text, and aborts `signal` then where it has one."""

    signal = None

    async def chat_stream(self, messages, **options):
        count = 0
        async for chunk in super().chat_stream(messages, **options):
            yield chunk
            count += bool(chunk.text)
            if count == 3:
                if self.signal is not None:
                    end(self.signal)
                await asyncio.sleep(30)

    async def chat(self, messages, **options):
        await asyncio.sleep(30)


SIGNALS = pytest.mark.parametrize("kind", [AbortSignal, asyncio.Event], ids=["signal", "event"])


def end(signal):
    signal.abort("enough") if isinstance(signal, AbortSignal) else signal.set()


@SIGNALS
async def test_an_aborted_call_raises_within_100_ms(kind):
    ask = async_decorated(str, Slow("x"))
    loop = asyncio.get_running_loop()
    ended = []

    def end_it(signal):
        ended.append(loop.time())
        end(signal)

    # A machine that is busy with other things makes any call late: late is what is late three times.
    for _ in range(3):
        signal = kind()
        loop.call_later(0.05, end_it, signal)
        with pytest.raises(RunAborted) as caught:
            await ask("x", _abort_signal=signal)
        if (seconds := loop.time() - ended[-1]) <= 0.1:
            break
    assert seconds <= 0.1
    assert caught.value.reason == ("enough" if isinstance(signal, AbortSignal) else "")
    assert caught.value.func_name == "ask"
    assert len(asyncio.all_tasks()) == 1


@SIGNALS
async def test_an_aborted_chat_ends_with_what_had_arrived(kind):
    llm = Slow("One two three four five", chunk_size=4)
    llm.signal = signal = kind()
    pairs = await every(chat(llm, stream=True)([], "x", _abort_signal=signal))
    assert [text for text, _ in pairs] == ["One ", "two ", "thre", ""]
    assert pairs[-1][1][-1] == {"role": "assistant", "content": "One two thre"}


async def test_an_aborted_stream_ends():
    llm = Slow("One two three four five", chunk_size=4)
    llm.signal = signal = AbortSignal()
    assert await every(async_decorated(str, llm, abort_signal=signal).stream("x")) == ["One ", "two ", "thre"]
    llm, signal, pieces = ScriptedLLM("One two three", chunk_size=4), AbortSignal(), []  # each piece is there at once
    async for piece in async_decorated(str, llm, abort_signal=signal).stream("x"):
        pieces.append(piece)
        signal.abort()
    assert pieces == ["One "]


async def test_a_signal_set_before_sends_nothing():
    signal = AbortSignal()
    signal.abort("no")
    signal.abort("again")
    assert signal.reason == "no"
    assert "no" in repr(signal)
    tell, llm = telling(json.dumps(STORY))
    with pytest.raises(RunAborted, match="no"):
        await tell("x", _abort_signal=signal)
    assert llm.calls == []
