"""A reply of ``generateContent``, whole or streamed, read into the form of chat completions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, repeat
from typing import Any

from SimpleLLMFunc.interface.wires.provider_state import STATE, state_of
from SimpleLLMFunc.interface.wires.sources import about_of
from SimpleLLMFunc.interface.wires.streams.delta_assembly import call_dict, joined_fields, new_call_id
from SimpleLLMFunc.interface.wires.streams.events import EventReader, ServerSentEvent, joined, reason_in, usage_dict
from SimpleLLMFunc.interface.wires.wire import Received
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk, count, index_of, mapping, mappings

WIRE = "gemini"
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['([^']*)'\]")
_VALUES = ("numberValue", "boolValue", "stringValue")
_TEXT = frozenset({"text", "thought"})
_CUT = frozenset({"MAX_TOKENS", "CONTINUATION"})
_BLOCKED = frozenset(
    {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "MODEL_ARMOR", "ESCALATION"}
    | {"PUP_LIMITED_DISABLED"}
)


def text_in(parts: Iterable[Mapping[str, Any]]) -> str:
    """Return the answer: the text of the parts that are no thought."""
    return joined(part for part in parts if not part.get("thought"))


def _thinking_in(parts: Iterable[Mapping[str, Any]]) -> str:
    """Return the thinking that the service shows."""
    return joined(part for part in parts if part.get("thought"))


def calls_in(parts: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the calls of the user's tools."""
    return [part["functionCall"] for part in parts if isinstance(part.get("functionCall"), Mapping)]


def _finish_of(reason: str, parts: Iterable[Mapping[str, Any]]) -> str | None:
    """Return our finish reason; None for one that is no answer."""
    if reason in _CUT:
        return "length"
    if reason in _BLOCKED or reason.startswith("IMAGE_"):
        return "content_filter"
    if reason != "STOP":
        return None
    return "tool_calls" if calls_in(parts) else "stop"


def _blocked_in(body: Mapping[str, Any]) -> str:
    """Return why the service refused the prompt; empty where it did not."""
    told = reason_in(mapping(body.get("promptFeedback")), "blockReason", "blockReasonMessage")
    return f"the prompt was blocked: {told}" if told else ""


def _usage(usage: Any) -> dict[str, Any] | None:
    """Return the usage in chat completions' form; the service does not count thinking as output."""
    if not isinstance(usage, Mapping) or not (usage.get("totalTokenCount") or usage.get("promptTokenCount")):
        return None
    thoughts = count(usage, "thoughtsTokenCount")
    return usage_dict(
        count(usage, "promptTokenCount") + count(usage, "toolUsePromptTokenCount"),
        count(usage, "candidatesTokenCount") + thoughts,
        cached=count(usage, "cachedContentTokenCount"),
        thinking=thoughts,
    )


def _logprobs_in(candidate: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the log-probabilities in chat completions' form."""
    result = mapping(candidate.get("logprobsResult"))
    chosen, tops = mappings(result.get("chosenCandidates")), mappings(result.get("topCandidates"))
    content = [
        {**_token(token), "top_logprobs": [*map(_token, mappings(top.get("candidates")))]}
        for token, top in zip(chosen, chain(tops, repeat({})), strict=False)
    ]
    return {"content": content} if content else None


def _token(token: Mapping[str, Any]) -> dict[str, Any]:
    text = str(token.get("token") or "")
    return {"token": text, "logprob": token.get("logProbability"), "bytes": list(text.encode("utf-8", "replace"))}


class PartReader(EventReader):
    """Reads one reply. A stream is complete when the service has named a finish reason; the end of the body is its end.

    Source: https://ai.google.dev/api/generate-content
    """

    def __init__(self, received: Received, service: str) -> None:
        super().__init__(received, service)
        self._parts: list[Mapping[str, Any]] = []
        self._usage: Any = None
        self._about: list[dict[str, Any]] = []
        self._logprobs: dict[str, Any] | None = None
        self._finish: str | None = None
        self._blocked = ""
        self._open: dict[str, Any] | None = None  # a call of which pieces are still to come

    def problem_of(self, data: Mapping[str, Any]) -> str:
        """Return why a whole reply does not fit the protocol, empty if it does."""
        candidates = mappings(data.get("candidates"))
        if not candidates:
            return "" if _blocked_in(data) else "it has no candidates"
        for candidate in candidates:
            reason = str(candidate.get("finishReason"))
            if _finish_of(reason, ()) is None:
                return f"it stopped for a reason that is no answer: {reason}: {candidate.get('finishMessage') or ''}"
        return ""

    def completion_of(self, data: dict[str, Any]) -> ChatCompletion:
        """Return a whole reply whose form is known to be good."""
        choices = [self._choice(candidate, place) for place, candidate in enumerate(mappings(data.get("candidates")))]
        if not choices:
            message = {"role": "assistant", "content": None, "refusal": _blocked_in(data)}
            choices = [self.choice_of(message, "content_filter")]
        return self.completion(data, choices, _usage(data.get("usageMetadata")))

    def _choice(self, candidate: Mapping[str, Any], place: int) -> dict[str, Any]:
        parts = mappings(mapping(candidate.get("content")).get("parts"))
        calls = [call_dict(call.get("id"), call.get("name"), call.get("args")) for call in calls_in(parts)]
        more = self._extra_of(parts, about_of(candidate))
        message = self.message_of(text_in(parts), calls, _thinking_in(parts), more)
        finish = _finish_of(str(candidate.get("finishReason")), parts)
        return self.choice_of(message, finish, _logprobs_in(candidate), index=index_of(candidate, place))

    def _extra_of(self, parts: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> dict[str, Any]:
        """Return further fields of the message: the parts, where the service wants them back."""
        is_plain = all(part.keys() <= {"text", "functionCall"} for part in parts)
        if is_plain and not any(call.get("id") for call in calls_in(parts)):
            parts = ()
        return {STATE: state_of(WIRE, self._service, [*map(dict, parts)], about=about)} if parts or about else {}

    @property
    def is_complete(self) -> bool:
        """Whether the answer has ended."""
        return (self._finish is not None or bool(self._blocked)) and not self._events.bare and self._open is None

    def close(self) -> Iterator[ChatCompletionChunk]:
        """Yield what the end of the stream shows to be an answer, and how it ended."""
        yield from super().close()
        yield self._ending()

    def chunk_of(self, value: dict[str, Any], event: ServerSentEvent) -> ChatCompletionChunk | None:
        """Return the chunk in an event; raises what `read` does."""
        if value.get("error") or event.event == "error":
            raise self.error_in(value)
        if not self._facts.get("id"):
            self._facts = {**self.facts_of(value), **{name: fact for name, fact in self._facts.items() if fact}}
        self._usage = _usage(value.get("usageMetadata")) or self._usage
        self._blocked = _blocked_in(value) or self._blocked
        # Of several, the first one is read: a chunk may hold another one alone.
        candidate = next((each for each in mappings(value.get("candidates")) if not index_of(each, 0)), None)
        if candidate is None:
            return None
        parts = self._whole(mappings(mapping(candidate.get("content")).get("parts")))
        self._parts += parts
        self._about.append(about_of(candidate))
        self._logprobs = _logprobs_in(candidate) or self._logprobs
        if (reason := candidate.get("finishReason")) is not None:
            self._finish = _finish_of(str(reason), self._parts)
            if self._finish is None:
                raise self.no_answer(f"it is no answer: {reason}: {candidate.get('finishMessage') or ''}")
        return self._shown(parts)

    def _whole(self, parts: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Return the parts that are complete; a call in pieces is one once its last piece has come."""
        try:
            found = [self._called(part) if isinstance(part.get("functionCall"), Mapping) else part for part in parts]
        except ValueError as error:
            raise self.no_answer(f"it is no answer: {error}") from None
        return [part for part in found if part is not None]

    def _called(self, part: Mapping[str, Any]) -> dict[str, Any] | None:
        """Take a part with a call, or a piece of one; return the whole part once it is complete.

        Raises:
            ValueError: a piece of no call, or of a place that cannot be.

        Source: https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling, streamed arguments
        """
        call: Mapping[str, Any] = part["functionCall"]
        if call.get("name"):
            if self._open is not None:
                raise ValueError("a call began before the one before it had ended")
            whole = {name: value for name, value in call.items() if name not in {"willContinue", "partialArgs"}}
            self._open = {**part, "functionCall": whole}
        elif self._open is None:
            raise ValueError("a piece belongs to no call")
        for piece in mappings(call.get("partialArgs")):
            _put(self._open["functionCall"].setdefault("args", {}), piece)
        if call.get("willContinue"):
            return None
        done, self._open = self._open, None
        return done

    def _shown(self, parts: list[Mapping[str, Any]]) -> ChatCompletionChunk | None:
        calls = [self._call(call) for call in calls_in(parts)]
        said = {"content": text_in(parts), "reasoning_content": _thinking_in(parts), "tool_calls": calls}
        delta = {name: value for name, value in said.items() if value}
        return self.chunk(delta) if delta else None

    def _call(self, call: Mapping[str, Any]) -> dict[str, Any]:
        call_id = call.get("id") or new_call_id()  # so that the pieces shown have the id that the reply has
        return self.new_call(len(self._call_numbers), call_id, call.get("name"), call.get("args"))

    def _ending(self) -> ChatCompletionChunk:
        if self._finish is None:
            return self.chunk({"refusal": self._blocked}, "content_filter", self._usage)
        # A call may come after the finish reason was first named.
        finish = "tool_calls" if self._finish == "stop" and self._call_numbers else self._finish
        more = self._extra_of(_joined(self._parts), joined_fields(self._about))
        return self.chunk(more, finish, self._usage, self._logprobs)


def _joined(parts: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the parts with the pieces of one text as one part; what carries a signature stays as it came."""
    whole: list[Mapping[str, Any]] = []
    for (names, _), group in groupby(parts, lambda part: (frozenset(part), bool(part.get("thought")))):
        same = list(group)
        whole += [{**same[0], "text": joined(same)}] if names <= _TEXT else same
    return whole


def _put(arguments: dict[str, Any], piece: Mapping[str, Any]) -> None:
    """Put a value where a piece of a call says; a text grows."""
    path = str(piece.get("jsonPath") or "")
    steps: list[str | int] = [int(found[2]) if found[2] else found[1] or found[3] for found in _STEP.finditer(path)]
    if not steps or not isinstance(steps[0], str):
        raise ValueError(f"a piece has no place: {path}")
    value = next((piece[name] for name in _VALUES if name in piece), None)
    place: Any = arguments
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        if not _has(place, step):
            raise ValueError(f"a piece has no place: {path}")
        if isinstance(step, int) and step == len(place):
            place.append(None)
        old = place[step] if isinstance(step, int) else place.get(step)
        if following is None:
            place[step] = old + value if isinstance(old, str) and isinstance(value, str) else value
        elif old is None:
            place[step] = [] if isinstance(following, int) else {}
        place = place[step]


def _has(place: Any, step: int | str) -> bool:
    """Whether a step leads somewhere: to an item, or the one behind the last, or to a field."""
    return isinstance(place, list) and step <= len(place) if isinstance(step, int) else isinstance(place, dict)
