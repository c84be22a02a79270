"""Reasoning that a model writes into its answer, ``<think>…</think>``: put where other providers put theirs; pure.

Only a block that the answer begins with is reasoning; tags further on belong to the text.
"""

from __future__ import annotations

from dataclasses import replace

from SimpleLLMFunc.type.completion import ChatCompletion, ChatCompletionChunk, Choice, ChoiceDelta, ChunkChoice

__all__ = ["StreamedThoughts", "without_thoughts"]

_BEGIN = "<think>"
_END = "</think>"


class _Splitter:
    """Splits one text, as it arrives, into reasoning and answer.

    Attributes:
        is_over: whatever comes now is answer.
    """

    def __init__(self) -> None:
        self.is_over = False
        self._held = ""
        self._is_inside = False
        self._is_behind = False

    def feed(self, piece: str) -> tuple[str, str]:
        """Take in the next piece; return what it adds to the reasoning and what to the answer."""
        if self.is_over:
            return "", piece
        text, self._held = self._held + piece, ""
        if self._is_inside:
            return self._inside(text)
        if self._is_behind:
            answer = text.lstrip()
            self.is_over = bool(answer)
            return "", answer
        start = text.lstrip()
        if start.startswith(_BEGIN):
            self._is_inside = True
            return self._inside(start.removeprefix(_BEGIN))
        if _BEGIN.startswith(start):
            self._held = text  # too little to tell
            return "", ""
        self.is_over = True
        return "", text

    def _inside(self, text: str) -> tuple[str, str]:
        reasoning, end, rest = text.partition(_END)
        if end:
            self._is_inside, self._is_behind = False, True
            return reasoning, self.feed(rest)[1]
        begun = next((size for size in range(len(_END) - 1, 0, -1) if text.endswith(_END[:size])), 0)
        self._held = text[len(text) - begun :]
        return text[: len(text) - begun], ""

    def close(self) -> tuple[str, str]:
        """Return what was held back, when nothing more will come."""
        held, self._held = self._held, ""
        return (held, "") if self._is_inside else ("", held)


class StreamedThoughts:
    """Takes the reasoning out of the chunks of one stream."""

    def __init__(self) -> None:
        self._splitters: dict[int, _Splitter] = {}

    def apart(self, chunk: ChatCompletionChunk) -> ChatCompletionChunk:
        """Return the chunk with its reasoning apart; a little of its text may come with a later one."""
        choices = tuple(map(self._apart, chunk.choices))
        is_same = all(new is old for new, old in zip(choices, chunk.choices, strict=True))
        return chunk if is_same else replace(chunk, choices=choices)

    def rest(self, last: ChatCompletionChunk) -> ChatCompletionChunk | None:
        """Return what was held back at the end of a stream that named no finish reason; None for nothing."""
        choices = []
        for index, splitter in self._splitters.items():
            reasoning, text = splitter.close()
            if reasoning or text:
                choices.append(
                    ChunkChoice(ChoiceDelta(content=text or None, reasoning_content=reasoning or None), index)
                )
        return replace(last, choices=tuple(choices), usage=None, raw={}) if choices else None

    def _apart(self, choice: ChunkChoice) -> ChunkChoice:
        splitter = self._splitters.setdefault(choice.index, _Splitter())
        content = choice.delta.content
        if splitter.is_over or not (content or choice.finish_reason):
            return choice
        reasoning, text = splitter.feed(content) if content else ("", "")
        if choice.finish_reason:
            more, rest = splitter.close()
            reasoning, text = reasoning + more, text + rest
        if not reasoning and text == (content or ""):
            return choice
        delta = replace(
            choice.delta,
            content=text or None,
            reasoning_content=(choice.delta.reasoning_content or "") + reasoning or None,
        )
        return replace(choice, delta=delta)


def without_thoughts(reply: ChatCompletion) -> ChatCompletion:
    """Return a whole reply with its reasoning apart."""
    choices = tuple(map(_without, reply.choices))
    is_same = all(new is old for new, old in zip(choices, reply.choices, strict=True))
    return reply if is_same else replace(reply, choices=choices)


def _without(choice: Choice) -> Choice:
    message = choice.message
    if not (message.content or "").lstrip().startswith(_BEGIN):
        return choice
    splitter = _Splitter()
    reasoning, text = splitter.feed(message.content or "")
    more, _ = splitter.close()
    content = text or (None if message.tool_calls else "")
    reasoning = (message.reasoning_content or "") + reasoning + more
    return replace(choice, message=replace(message, content=content, reasoning_content=reasoning or None))
