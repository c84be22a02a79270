"""What a model answers, with the reasoning apart: the readers of our wires see to that, and a user's own class may not."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Any

from SimpleLLMFunc.errors import SimpleLLMFuncError
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.wires import StreamedThoughts, answer_in, put_right
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk, Message


async def reply_of(llm: LLM_Interface, messages: Sequence[Message], **asked: Any) -> ChatCompletion:
    """Return the whole reply of `llm`; takes what `LLM_Interface.chat` does."""
    if llm.reads_reasoning:
        return await llm.chat(messages, **asked)
    with _partial_answer():
        return put_right(await llm.chat(messages, **asked))


def chunks_of(
    llm: LLM_Interface, messages: Sequence[Message], **asked: Any
) -> AsyncGenerator[ChatCompletionChunk, None]:
    """Return the stream of `llm`; takes what `LLM_Interface.chat_stream` does."""
    chunks = llm.chat_stream(messages, **asked)
    return chunks if llm.reads_reasoning else _apart(chunks)


async def _apart(source: AsyncGenerator[ChatCompletionChunk, None]) -> AsyncGenerator[ChatCompletionChunk, None]:
    thoughts = StreamedThoughts()
    async with aclosing(source) as chunks:
        with _partial_answer():
            async for chunk in chunks:
                yield thoughts.apart(chunk)
        if rest := thoughts.rest():
            yield rest


@contextmanager
def _partial_answer() -> Iterator[None]:
    """Take the reasoning out of the text that an error has got."""
    try:
        yield
    except SimpleLLMFuncError as error:
        if partial := getattr(error, "partial", ""):
            error.partial = answer_in(partial)  # type: ignore[attr-defined]
        raise
