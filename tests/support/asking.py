"""One question to a model, for a whole reply or for a stream."""

from contextlib import aclosing

import pytest

from SimpleLLMFunc.interface.wires import ReplyAssembler

HELLO = [{"role": "user", "content": "hello"}]

both_ways = pytest.mark.parametrize("is_streamed", [False, True])


async def streamed(llm, messages=HELLO, **more):
    async with aclosing(llm.chat_stream(messages, **more)) as stream:
        return ReplyAssembler([piece async for piece in stream]).completion()


def ask_either(llm, is_streamed, **more):
    return streamed(llm, **more) if is_streamed else llm.chat(HELLO, **more)
