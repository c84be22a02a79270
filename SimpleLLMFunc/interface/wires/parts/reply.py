"""A reply of ``generateContent``, whole or streamed, read into the form of chat completions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from SimpleLLMFunc.interface.wires.parts.partial_call import PartialCall
from SimpleLLMFunc.interface.wires.provider_state import STATE, state_of
from SimpleLLMFunc.interface.wires.replies import completion_from, facts_of, message_of, usage_dict
from SimpleLLMFunc.interface.wires.sources import about_of
from SimpleLLMFunc.interface.wires.streams.chunk_reader import EventReader
from SimpleLLMFunc.interface.wires.streams.delta_assembly import call_dict, joined_fields, new_call_id
from SimpleLLMFunc.interface.wires.streams.sse import ServerSentEvent
from SimpleLLMFunc.interface.wires.wire import Received
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk, count, index_of, mapping, mappings

WIRE = "gemini"
_TEXT = frozenset({"text", "thought"})
_CUT = frozenset({"MAX_TOKENS", "CONTINUATION"})
_BLOCKED = frozenset(
    {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "MODEL_ARMOR", "ESCALATION"}
    | {"PUP_LIMITED_DISABLED"}
)


def text_in(parts: Iterable[Mapping[str, Any]]) -> str:
    """Return the answer: the text of the parts that are no thought."""
    return "".join(str(part.get("text") or "") for part in parts if not part.get("thought"))


def _thinking_in(parts: Iterable[Mapping[str, Any]]) -> str:
    """Return the thinking that the service shows."""
    return "".join(str(part.get("text") or "") for part in parts if part.get("thought"))


def calls_in(parts: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the calls of the user's tools."""
    return [part["functionCall"] for part in parts if isinstance(part.get("functionCall"), Mapping)]


def _extra_of(parts: Sequence[Mapping[str, Any]], service: str, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return further fields of the message: the parts, where the service wants them back."""
    is_plain = all(part.keys() <= {"text", "functionCall"} for part in parts)
    if is_plain and not any(call.get("id") for call in calls_in(parts)):
        parts = ()
    return {STATE: state_of(WIRE, service, [*map(dict, parts)], about=about)} if parts or about else {}


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
    feedback = body.get("promptFeedback")
    if not isinstance(feedback, Mapping):
        return ""
    said = [feedback.get("blockReason"), feedback.get("blockReasonMessage")]
    told = ": ".join(word for word in said if isinstance(word, str) and word)
    return f"the prompt was blocked: {told}" if told else ""


def _usage(usage: Any) -> dict[str, Any] | None:
    """Return the usage in chat completions' form; the service does not count thinking as output."""
    if not isinstance(usage, Mapping) or not usage.get("totalTokenCount"):
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
        {
            **_token(token),
            "top_logprobs": list(map(_token, mappings(tops[place].get("candidates")) if place < len(tops) else ())),
        }
        for place, token in enumerate(chosen)
    ]
    return {"content": content} if content else None


def _token(token: Mapping[str, Any]) -> dict[str, Any]:
    text = str(token.get("token") or "")
    return {"token": text, "logprob": token.get("logProbability"), "bytes": list(text.encode("utf-8", "replace"))}


def problem_of(data: Mapping[str, Any]) -> str:
    """Return why `data` is no reply of the protocol, empty if it is one."""
    candidates = mappings(data.get("candidates"))
    if not candidates:
        return "" if _blocked_in(data) else "it has no candidates"
    for candidate in candidates:
        reason = str(candidate.get("finishReason"))
        if _finish_of(reason, ()) is None:
            return f"it stopped for a reason that is no answer: {reason}: {candidate.get('finishMessage') or ''}"
    return ""


def completion_of(body: Mapping[str, Any], service: str, received: Received) -> ChatCompletion:
    """Return a whole reply whose form is known to be good."""
    choices = [_choice(candidate, place, service) for place, candidate in enumerate(mappings(body.get("candidates")))]
    if not choices:
        message = {"role": "assistant", "content": None, "refusal": _blocked_in(body)}
        choices = [{"index": 0, "message": message, "finish_reason": "content_filter"}]
    return completion_from(body, received, choices, _usage(body.get("usageMetadata")))


def _choice(candidate: Mapping[str, Any], place: int, service: str) -> dict[str, Any]:
    parts = mappings(mapping(candidate.get("content")).get("parts"))
    calls = [call_dict(call.get("id") or new_call_id(), call.get("name"), call.get("args")) for call in calls_in(parts)]
    more = _extra_of(parts, service, about_of(candidate))
    choice = {
        "index": index_of(candidate, place),
        "message": message_of(text_in(parts), calls, _thinking_in(parts), more),
        "finish_reason": _finish_of(str(candidate.get("finishReason")), parts),
    }
    logprobs = _logprobs_in(candidate)
    return {**choice, "logprobs": logprobs} if logprobs else choice


class PartReader(EventReader):
    """Reads one stream. It is complete when the service has named a finish reason; the end of the body is its end.

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
        self._call = PartialCall()

    @property
    def is_complete(self) -> bool:
        """Whether the answer has ended."""
        has_ended = self._finish is not None or bool(self._blocked)
        return has_ended and not self._events.bare and not self._call.is_open

    def close(self) -> Iterator[ChatCompletionChunk]:
        """Yield what the end of the stream shows to be an answer, and how it ended."""
        yield from super().close()
        yield self._ending()

    def chunk_of(self, value: dict[str, Any], event: ServerSentEvent) -> ChatCompletionChunk | None:
        """Return the chunk in an event; raises what `read` does."""
        if value.get("error") or event.event == "error":
            raise self.error_in(value)
        if not self._facts.get("id"):
            self._facts = {**facts_of(value), **{name: fact for name, fact in self._facts.items() if fact}}
        self._usage = value.get("usageMetadata") or self._usage
        if blocked := _blocked_in(value):
            self._blocked = blocked
        # Several candidates are not asked for on a stream.
        candidate = next(iter(mappings(value.get("candidates"))), None)
        if candidate is None:
            return None
        parts = self._whole(mappings(mapping(candidate.get("content")).get("parts")))
        self._parts += parts
        self._about.append(about_of(candidate))
        if "logprobsResult" in candidate:
            self._logprobs = _logprobs_in(candidate) or self._logprobs
        if (reason := candidate.get("finishReason")) is not None:
            self._finish = _finish_of(str(reason), self._parts)
            if self._finish is None:
                raise self.no_answer(f"it is no answer: {reason}: {candidate.get('finishMessage') or ''}"[:200])
        return self._shown(parts)

    def _whole(self, parts: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Return the parts that are complete; a call in pieces is one once its last piece has come."""
        whole: list[Mapping[str, Any]] = []
        for part in parts:
            try:
                done = self._call.add(part) if isinstance(part.get("functionCall"), Mapping) else part
            except ValueError as error:
                raise self.no_answer(f"it is no answer: {error}"[:200]) from None
            if done is not None:
                whole.append(done)
        return whole

    def _shown(self, parts: list[Mapping[str, Any]]) -> ChatCompletionChunk | None:
        delta: dict[str, Any] = {}
        if text := text_in(parts):
            delta["content"] = text
        if thinking := _thinking_in(parts):
            delta["reasoning_content"] = thinking
        if calls := calls_in(parts):
            delta["tool_calls"] = [
                self.new_call(
                    len(self._call_numbers), call.get("id") or new_call_id(), call.get("name"), call.get("args")
                )
                for call in calls
            ]
        return self.chunk(delta) if delta else None

    def _ending(self) -> ChatCompletionChunk:
        usage = _usage(self._usage)
        if self._finish is None:
            return self.chunk({"refusal": self._blocked}, "content_filter", usage)
        # A call may come after the finish reason was first named.
        finish = "tool_calls" if self._finish == "stop" and self._call_numbers else self._finish
        return self.chunk(
            _extra_of(_joined(self._parts), self._service, joined_fields(self._about)), finish, usage, self._logprobs
        )


def _joined(parts: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the parts with the pieces of one text as one part; what carries a signature stays as it came."""
    whole: list[Mapping[str, Any]] = []
    for names, group in groupby(parts, frozenset):
        same = list(group)
        if names <= _TEXT and len(same) > 1:
            same = [{**same[0], "text": "".join(str(part.get("text") or "") for part in same)}]
        whole += same
    return whole
