"""Reasoning that a model writes into its answer, ``<think>…</think>`` and its kin: put where other providers put theirs; pure.

Only blocks that the answer begins with are reasoning; tags further on belong to the text. The readers of the wires put
it apart, and so does the loop, for an interface that has no such reader; what was put apart once has nothing left to find.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from SimpleLLMFunc.type import ChatCompletionChunk, Choice, ChoiceDelta, ChunkChoice

_END_OF = {"<think>": "</think>", "<thought>": "</thought>", "[THINK]": "[/THINK]", "◁think▷": "◁/think▷"}
"""How models mark their reasoning: the tags that they were trained to write, not those that a prompt asks for."""

_BLANKS = re.compile(r"\s*")
_MOST_BLANKS = 1000
"""Characters of white space before the first block; after more of it, the text is answer."""


class ReasoningSplitter:
    """Splits one text, as it arrives, into reasoning and answer.

    Args:
        more: names of tags that mark reasoning too: ``thinking`` is ``<thinking>…</thinking>``.

    Attributes:
        is_over: all further text is answer.
        held: text that may be the beginning of a tag, or the white space before one.
    """

    def __init__(self, more: Sequence[str] = ()) -> None:
        self._tags = {**_END_OF, **{f"<{name}>": f"</{name}>" for name in more}}
        self.is_over = False
        self.held = ""
        self._end = ""  # of the block that is open
        self._is_behind = False

    def feed(self, piece: str) -> tuple[str, str]:
        """Take in the next piece; return what it adds to the reasoning and what to the answer."""
        if self.is_over:
            return "", piece
        text, self.held = self.held + piece, ""
        reasoning: list[str] = []
        position = 0
        while True:
            if self._end:
                end = text.find(self._end, position)
                if end < 0:
                    self.held = _begun(self._end, text, position)
                    reasoning.append(text[position : len(text) - len(self.held)])
                    return "".join(reasoning), ""
                reasoning.append(text[position:end])
                position = end + len(self._end)
                self._end, self._is_behind = "", True
            blanks = _BLANKS.match(text, position)
            start = blanks.end() if blanks else position
            if self._is_behind or start - position <= _MOST_BLANKS:
                if tag := next((tag for tag in self._tags if text.startswith(tag, start)), ""):
                    self._end = self._tags[tag]
                    position = start + len(tag)
                    continue
                if any(tag.startswith(text[start : start + len(tag)]) for tag in self._tags):
                    self.held = text[start if self._is_behind else position :]  # too little to tell
                    return "".join(reasoning), ""
            self.is_over = True
            return "".join(reasoning), text[start if self._is_behind else position :]

    def close(self) -> tuple[str, str]:
        """Return what was held back, when nothing more will come."""
        held, self.held = self.held, ""
        return (held, "") if self._end else ("", held)


def _begun(tag: str, text: str, start: int) -> str:
    """Return how much of a closing tag the end of `text` may be."""
    size = next((size for size in range(len(tag) - 1, 0, -1) if text.endswith(tag[:size], start)), 0)
    return text[len(text) - size :]


class StreamedThoughts:
    """Takes the reasoning out of the chunks of one stream."""

    def __init__(self) -> None:
        self._splitters: defaultdict[int, ReasoningSplitter] = defaultdict(ReasoningSplitter)
        self._last: ChatCompletionChunk | None = None
        self._tries = 0

    def apart(self, chunk: ChatCompletionChunk) -> ChatCompletionChunk:
        """Return the chunk with its reasoning apart; a little of its text may come with a later one."""
        if chunk.tries > self._tries:
            self._splitters.clear()  # the stream began, or broke and began again
            self._tries = chunk.tries
        self._last = chunk
        choices = tuple(map(self._apart, chunk.choices))
        return chunk if choices == chunk.choices else replace(chunk, choices=choices)

    def rest(self) -> ChatCompletionChunk | None:
        """Return what was held back at the end of a stream that named no finish reason; None for nothing."""
        choices = []
        for index in sorted(self._splitters):
            reasoning, text = self._splitters[index].close()
            if reasoning or text:
                delta = ChoiceDelta(content=text or None, reasoning_content=reasoning or None)
                choices.append(ChunkChoice(delta, index))
        if self._last is None or not choices:
            return None
        return replace(self._last, choices=tuple(choices), usage=None, raw={})

    def _apart(self, choice: ChunkChoice) -> ChunkChoice:
        splitter = self._splitters[choice.index]
        content = choice.delta.content
        if splitter.is_over or not (content or choice.finish_reason):
            return choice
        reasoning, text = splitter.feed(content) if content else ("", "")
        if choice.finish_reason:
            more, rest = splitter.close()
            reasoning, text = reasoning + more, text + rest
        if not reasoning and text == (content or ""):
            return choice
        reasoning = (choice.delta.reasoning_content or "") + reasoning
        return replace(choice, delta=replace(choice.delta, content=text or None, reasoning_content=reasoning or None))


def _split(text: str) -> tuple[str, str]:
    splitter = ReasoningSplitter()
    reasoning, answer = splitter.feed(text)
    more, rest = splitter.close()
    return reasoning + more, answer + rest


def answer_in(text: str) -> str:
    """Return the answer in a text, which may be incomplete."""
    return _split(text)[1]


def without_thoughts(choice: Choice) -> Choice:
    """Return a choice of a whole reply with its reasoning apart."""
    message = choice.message
    content = message.content or ""
    reasoning, text = _split(content)
    if text == content:
        return choice
    reasoning = (message.reasoning_content or "") + reasoning
    kept = text or (None if message.tool_calls else "")
    return replace(choice, message=replace(message, content=kept, reasoning_content=reasoning or None))
