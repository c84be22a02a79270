"""Puts the pieces of a stream together: tool calls, choices, whole replies; pure."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from SimpleLLMFunc.interface.wires.streams.reasoning_text import without_thoughts
from SimpleLLMFunc.type import (
    ChatCompletion,
    ChatCompletionChunk,
    ChatMessage,
    Choice,
    ChoiceDelta,
    ChunkChoice,
    FunctionCall,
    ToolCall,
    ToolCallDelta,
)

_GROWING_FIELDS = frozenset({"data", "transcript", "thinking", "text", "summary"})
"""Texts of extra fields that come piece by piece; every other text is whole each time."""


def new_call_id() -> str:
    """Return an id for a tool call that came without one; unique over a whole conversation."""
    return f"call_{uuid.uuid4().hex[:24]}"


def call_dict(call_id: Any, name: Any, arguments: Any) -> dict[str, Any]:
    """Return a call in chat completions' form; `arguments` are JSON text, or an object."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    return {"id": str(call_id or ""), "type": "function", "function": {"name": str(name or ""), "arguments": text}}


# --- tool calls ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _OpenCall:
    """A tool call as far as its pieces have arrived."""

    index: int | None
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    extra: list[Mapping[str, Any]] = field(default_factory=list)
    turn: int = 0
    failed_at: int = 0
    """How many pieces of the arguments there were when they were last found to be no JSON."""

    def ends_before(self, piece: str | None) -> bool:
        """Whether the arguments are a complete JSON object, and `piece` begins another one: that of another call.

        Some services repeat the id with every piece, and this is asked at each. The text is read only between ``}`` and
        ``{``, and after a failure only when it has twice as many pieces, so that the work stays linear.
        """
        if not (piece or "").lstrip().startswith("{") or len(self.arguments) < 2 * self.failed_at:
            return False
        last = next((part for part in reversed(self.arguments) if part.strip()), "")
        if not last.rstrip().endswith("}"):
            return False
        try:
            return isinstance(json.loads("".join(self.arguments)), dict)
        except (ValueError, RecursionError):
            self.failed_at = len(self.arguments)
            return False

    def take(self, delta: ToolCallDelta, turn: int) -> None:
        """Add a piece."""
        self.turn = turn
        if delta.id and not self.id:
            self.id = delta.id
        if delta.name:
            # Most servers send it once; some repeat it in every chunk, some let it grow, a few send it in pieces.
            self.name = delta.name if delta.name.startswith(self.name) else self.name + delta.name
        if delta.arguments:
            self.arguments.append(delta.arguments)
        if delta.extra:
            self.extra.append(delta.extra)


class _CallAssembler:
    """Sorts the pieces of tool calls into calls."""

    def __init__(self) -> None:
        self._calls: list[_OpenCall] = []
        self._latest: dict[int | None, _OpenCall] = {}
        self._by_id: dict[tuple[int | None, str], _OpenCall] = {}
        self._turn = 0

    def add(self, deltas: Iterable[ToolCallDelta]) -> None:
        """Take the pieces that one chunk brought."""
        self._turn += 1
        for delta in deltas:
            call = self._call_of(delta)
            if call is None:
                call = self._latest[delta.index] = _OpenCall(delta.index)
                self._calls.append(call)
            if delta.id and not call.id:
                self._by_id[delta.index, delta.id] = call
            call.take(delta, self._turn)

    def _call_of(self, delta: ToolCallDelta) -> _OpenCall | None:
        """Return the call that a piece belongs to, None when it begins a new one."""
        latest = self._latest.get(delta.index)
        if latest is None:
            return None
        known = self._by_id.get((delta.index, delta.id or ""))
        if not delta.name:
            # A piece without a name goes on with a call: the one it names by id, else the latest.
            return known or latest
        if delta.id:
            if known is not None:
                return None if known.ends_before(delta.arguments) else known
            if latest.id:
                return None
        elif latest.turn == self._turn:
            return None  # two named entries of one chunk are two calls
        if not any(latest.arguments):
            return latest
        # A name after arguments: the same name again belongs to the same call until that one is finished.
        if delta.name != latest.name:
            return None
        return None if latest.ends_before(delta.arguments) else latest

    def calls(self) -> tuple[ToolCall, ...]:
        """Return the calls in order, each with a unique id."""
        found = self._calls
        if all(call.index is not None for call in found):
            found = sorted(found, key=lambda call: call.index or 0)
        return rekeyed(
            ToolCall(call.id, FunctionCall(call.name, "".join(call.arguments)), extra=joined_fields(call.extra))
            for call in found
        )


def rekeyed(calls: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
    """Return the calls with an id each that no other has, and ``{}`` for empty arguments."""
    taken: set[str] = set()
    result: list[ToolCall] = []
    for call in calls:
        call_id = call.id if call.id and call.id not in taken else new_call_id()
        arguments = call.function.arguments if call.function.arguments.strip() else "{}"
        taken.add(call_id)
        result.append(replace(call, id=call_id, function=FunctionCall(call.function.name, arguments)))
    return tuple(result)


def assemble_tool_calls(deltas: Iterable[ToolCallDelta]) -> list[ToolCall]:
    """Return the tool calls that `deltas` add up to, in order."""
    assembler = _CallAssembler()
    for delta in deltas:
        assembler.add((delta,))
    return list(assembler.calls())


# --- whole replies ---------------------------------------------------------------------------------------

_TEXTS = ("content", "reasoning_content", "refusal")


@dataclass(slots=True)
class _OpenChoice:
    """One choice as far as it has arrived; `texts` are the pieces of each text of the message, by its field."""

    role: str = "assistant"
    texts: dict[str, list[str]] = field(default_factory=dict)
    calls: _CallAssembler = field(default_factory=_CallAssembler)
    finish_reason: str | None = None
    logprobs: list[Any] = field(default_factory=list)
    extra: list[Mapping[str, Any]] = field(default_factory=list)

    def take(self, choice: ChunkChoice) -> None:
        """Add what a chunk brought for this choice."""
        delta = choice.delta
        self.finish_reason = choice.finish_reason or self.finish_reason
        self.role = delta.role or self.role
        if choice.logprobs is not None:
            self.logprobs.append(choice.logprobs)
        for name in _TEXTS:
            if (piece := getattr(delta, name)) is not None:
                self.texts.setdefault(name, []).append(piece)
        if delta.tool_calls:
            self.calls.add(delta.tool_calls)
        if delta.extra:
            self.extra.append(delta.extra)

    def text(self, name: str = "content") -> str:
        """Return a text as far as it has arrived."""
        text = "".join(self.texts.get(name, ()))
        if text:
            self.texts[name] = [text]  # joined once, however often it is asked for
        return text

    def whole(self, index: int) -> Choice:
        """Return the choice put together."""
        text, calls = self.text(), self.calls.calls() or None
        message = ChatMessage(
            self.role,
            # A message that only calls tools has no content, though its first chunk often says "".
            content=text if text or ("content" in self.texts and not calls) else None,
            tool_calls=calls,
            refusal=self.text("refusal") or None,
            reasoning_content=self.text("reasoning_content") or None,
            extra=joined_fields(self.extra),
        )
        return Choice(message, index, self.finish_reason, _joined("logprobs", self.logprobs))


class ReplyAssembler:
    """Puts the chunks of a stream together into the reply that they add up to.

    A chunk with a higher `tries` than the chunk before restarts the reply: the stream broke before it had shown any
    text, and was asked for again.

    Args:
        chunks: of the stream; `add` takes more.

    Attributes:
        has_answer: any text or any piece of a tool call has arrived.
    """

    def __init__(self, chunks: Iterable[ChatCompletionChunk] = ()) -> None:
        self._tries = 0
        self._is_cached = False
        self._begin()
        for chunk in chunks:
            self.add(chunk)

    def _begin(self) -> None:
        self._choices: dict[int, _OpenChoice] = {}
        self._facts: dict[str, Any] = {}
        self.has_answer = False
        self._is_done = False

    def add(self, chunk: ChatCompletionChunk) -> None:
        """Take the next chunk."""
        if chunk.tries != self._tries:
            if self._tries:
                self._begin()
            self._tries = chunk.tries
        self._is_cached = chunk.cached
        for name in ("id", "model", "created"):
            self._facts[name] = self._facts.get(name) or getattr(chunk, name)
        adds = False
        for choice in chunk.choices:
            self._choices.setdefault(choice.index, _OpenChoice()).take(choice)
            adds = adds or bool(choice.delta.content or choice.delta.tool_calls)
        self.has_answer = self.has_answer or adds
        if chunk.usage is not None:
            # The last one counts: some servers repeat the growing usage in every chunk; then one with a choice ends nothing.
            self._is_done |= self.has_answer and not adds and ("usage" not in self._facts or not chunk.choices)
            self._facts["usage"] = chunk.usage

    @property
    def text(self) -> str:
        """The text of the choice with the lowest index, as far as it has arrived."""
        return self._choices[min(self._choices)].text() if self._choices else ""

    @property
    def is_complete(self) -> bool:
        """Whether the answer has ended: a finish reason for every choice, or the usage after content."""
        finished = [bool(choice.finish_reason) for choice in self._choices.values()]
        return self._is_done or (bool(finished) and all(finished))

    def completion(self, tries: int | None = None) -> ChatCompletion:
        """Return the reply as far as it has arrived; `tries` is taken from the chunks where it is not given."""
        if tries is None:
            tries = self._tries or (0 if self._is_cached else 1)
        choices = tuple(self._choices[index].whole(index) for index in sorted(self._choices))
        reply = ChatCompletion(choices, tries=tries, cached=self._is_cached, **self._facts)
        return replace(reply, raw=reply.to_dict())


def put_right(reply: ChatCompletion) -> ChatCompletion:
    """Return a whole reply with its reasoning apart, a unique id for each tool call, ``{}`` for no arguments."""
    return replace(reply, choices=tuple(map(_put_right, reply.choices)))


def _put_right(choice: Choice) -> Choice:
    if (calls := choice.message.tool_calls) is not None:
        choice = replace(choice, message=replace(choice.message, tool_calls=rekeyed(calls) or None))
    return without_thoughts(choice)


def chunk_of_reply(reply: ChatCompletion) -> ChatCompletionChunk:
    """Return a whole reply as the one chunk of a stream, for servers that do not stream what they were asked to."""
    facts = {name: getattr(reply, name) for name in ("id", "model", "created", "usage", "tries", "cached")}
    return ChatCompletionChunk(tuple(map(_chunk_choice, reply.choices)), **facts)


def _chunk_choice(choice: Choice) -> ChunkChoice:
    message = choice.message.to_dict()
    calls = [{**call, "index": index} for index, call in enumerate(message.get("tool_calls") or ())]
    delta = ChoiceDelta.from_dict({**message, "tool_calls": calls})
    return ChunkChoice(delta, choice.index, choice.finish_reason, choice.logprobs)


# --- fields that only some providers send ---


def joined_fields(pieces: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the fields that the pieces add up to."""
    found: dict[str, list[Any]] = {}
    for piece in pieces:
        for name, value in piece.items():
            found.setdefault(name, []).append(value)
    return {name: _joined(name, values) for name, values in found.items()}


def _joined(name: str, values: Sequence[Any]) -> Any:
    """Return one field: known texts and lists grow, objects merge, of everything else the last one counts."""
    values = [value for value in values if value is not None]
    if not values:
        return None
    if all(isinstance(value, Mapping) for value in values):
        return joined_fields(values)
    if name in _GROWING_FIELDS and all(isinstance(value, str) for value in values):
        return "".join(values)
    if not all(isinstance(value, list) for value in values):
        return values[-1]
    whole: list[Any] = []
    for value in values:
        # Some servers repeat the whole list in every chunk; equal log-probabilities, under "content", are of equal tokens.
        if whole != value or name == "content":
            whole.extend(value)
    return whole
