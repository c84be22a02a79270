"""Which of several answers is asked for, and what a cache makes of it."""

from __future__ import annotations

import asyncio

from SimpleLLMFunc import CachedLLM
from SimpleLLMFunc.interface.composite.samples import current_sample, sample_scope
from SimpleLLMFunc.testing import ScriptedLLM


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
    question = [{"role": "user", "content": "?"}]

    async def ask(sample):
        with sample_scope(sample):
            return (await llm.chat(question)).text

    assert sorted(await asyncio.gather(ask(0), ask(1))) == ["a", "b"]
    first = [await ask(0), await ask(1)]
    assert sorted(first) == ["a", "b"]
    with sample_scope(1):
        streamed = "".join([chunk.text async for chunk in llm.chat_stream(question)])
    assert streamed == first[1]
    assert (await llm.chat(question)).text == first[0]
    assert len(inner.calls) == 2
