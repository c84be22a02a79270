"""What a reply of chat completions is on each wire, so that one play suits them all.

A play writes what chat completions would say. The server sets `SPEECH` for each request, by its path, and what the play
writes comes out in the words of that wire. What has no counterpart there is left out by the scenario.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, ClassVar

Json = dict[str, Any]


class Speech:
    """Chat completions: as it was written.

    Attributes:
        has_names: an event has a line with its type.
    """

    name: ClassVar[str] = "chat"
    has_names: ClassVar[bool] = False

    def whole(self, data: Any) -> Any:
        """What is sent for a whole reply, or for an error; anything else stays."""
        if not isinstance(data, dict):
            return data
        if "error" in data:
            return self.error(data["error"])
        return self.reply(data) if "choices" in data else data

    def events(self, data: Any) -> list[Any]:
        """What is sent for one event of a stream; anything else stays."""
        if isinstance(data, str) and data.startswith("{"):
            with contextlib.suppress(ValueError):  # what is broken on purpose goes out as it is
                data = json.loads(data)
        if data == "[DONE]":
            return self.done()
        if not isinstance(data, dict):
            return [data]
        if "error" in data:
            return [self.error(data["error"])]
        return self.chunk(data) if "choices" in data else [data]

    def error(self, error: Json, status: int | None = None) -> Json:
        """An error; `code` is its kind."""
        return {"error": error}

    def reply(self, data: Json) -> Json:
        """A whole reply."""
        return data

    def chunk(self, data: Json) -> list[Any]:
        """A piece of a streamed reply."""
        return [data]

    def done(self) -> list[Any]:
        """The end of a stream."""
        return ["[DONE]"]

    def wants_json(self, asked: Json) -> bool:
        """Whether a request gives a schema."""
        return "response_format" in asked

    def calls(self, asked: Json) -> list[str]:
        """The ids of the calls in a request."""
        return [call["id"] for message in asked["messages"] for call in message.get("tool_calls") or ()]

    def results(self, asked: Json) -> list[tuple[str, str]]:
        """The ids of the tool results in a request, and what they say."""
        found = [message for message in asked["messages"] if message["role"] == "tool"]
        return [(message["tool_call_id"], message["content"]) for message in found]


def _arguments(call: Mapping[str, Any]) -> Any:
    """The arguments as an object; what is no JSON stays a text."""
    text = call["function"].get("arguments") or "{}"
    try:
        return json.loads(text)
    except ValueError:
        return text


def _choice(data: Json) -> tuple[Json, str | None]:
    """The first choice: its message or delta, and its finish reason."""
    choice = data["choices"][0]
    return choice.get("message") or choice.get("delta") or {}, choice.get("finish_reason")


class Messages(Speech):
    """``/v1/messages``."""

    name = "messages"
    has_names = True

    _STOPS: ClassVar[dict[str, str]] = {
        "stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal",
    }  # fmt: skip
    _KINDS: ClassVar[dict[str | None, str]] = {
        "invalid_api_key": "authentication_error", "insufficient_quota": "billing_error", None: "strange_error",
    }  # fmt: skip
    _USAGE: ClassVar[Json] = {"input_tokens": 11, "output_tokens": 5}

    def __init__(self) -> None:
        self._index = -1
        self._open = ""  # the kind of the block that is open; of a call its number

    def error(self, error: Json, status: int | None = None) -> Json:
        kind = error.get("code") or error.get("type")
        said = {"type": self._KINDS.get(kind, kind), "message": error.get("message")}
        return {"type": "error", "error": said, "request_id": "req_1"}

    def reply(self, data: Json) -> Json:
        made = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "usage": self._USAGE}
        if not data["choices"]:
            return {**made, "content": None, "stop_reason": None}
        message, reason = _choice(data)
        blocks: list[Json] = []
        if thinking := message.get("reasoning_content"):
            blocks.append({"type": "thinking", "thinking": thinking, "signature": "c2lnbmVk"})
        if message.get("content") is not None:
            blocks.append({"type": "text", "text": message["content"]})
        blocks += [
            {"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": _arguments(call)}
            for call in message.get("tool_calls") or ()
        ]
        return {**made, "content": blocks, **self._stop(message, reason)}

    def _stop(self, message: Json, reason: str | None) -> Json:
        if refusal := message.get("refusal"):
            details = {"type": "refusal", "category": None, "explanation": refusal}
            return {"stop_reason": "refusal", "stop_details": details}
        return {"stop_reason": self._STOPS.get(reason or "", reason)}

    def chunk(self, data: Json) -> list[Any]:
        if not data["choices"]:
            return [{"type": "ping"}]
        delta, reason = _choice(data)
        said: list[Any] = []
        if self._index < 0:
            self._index = 0
            begun = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
            usage = {"input_tokens": 11, "output_tokens": 1}
            said.append({"type": "message_start", "message": {**begun, "stop_reason": None, "usage": usage}})
        if thinking := delta.get("reasoning_content"):
            said += self._within("thinking", {"type": "thinking", "thinking": "", "signature": ""})
            said += self._delta("thinking_delta", thinking=thinking)
        if text := delta.get("content"):
            said += self._within("text", {"type": "text", "text": ""})
            said += self._delta("text_delta", text=text)
        for call in delta.get("tool_calls") or ():
            function = call["function"]
            number = f"call {call.get('index', 0)} {call.get('id') or self._open.rpartition(' ')[2]}"
            begun = {"type": "tool_use", "id": call.get("id"), "name": function.get("name"), "input": {}}
            said += self._within(number, begun)
            said += self._delta("input_json_delta", partial_json=function.get("arguments") or "")
        if delta.get("refusal") or reason:
            ended = {"type": "message_delta", "delta": self._stop(delta, reason), "usage": {"output_tokens": 5}}
            said += [*self._closed(), ended]
        return said

    def _within(self, kind: str, block: Json) -> list[Any]:
        if self._open == kind:
            return []
        said = self._closed()
        self._open = kind
        return [*said, {"type": "content_block_start", "index": self._index, "content_block": block}]

    def _delta(self, kind: str, **what: str) -> list[Any]:
        return [{"type": "content_block_delta", "index": self._index, "delta": {"type": kind, **what}}]

    def _closed(self) -> list[Any]:
        if not self._open:
            return []
        self._open = ""
        self._index += 1
        return [{"type": "content_block_stop", "index": self._index - 1}]

    def done(self) -> list[Any]:
        return [{"type": "message_stop"}]

    def wants_json(self, asked: Json) -> bool:
        return "format" in asked.get("output_config", {})

    def _blocks(self, asked: Json, kind: str) -> list[Json]:
        contents = [message["content"] for message in asked["messages"] if isinstance(message["content"], list)]
        return [block for content in contents for block in content if block["type"] == kind]

    def calls(self, asked: Json) -> list[str]:
        return [block["id"] for block in self._blocks(asked, "tool_use")]

    def results(self, asked: Json) -> list[tuple[str, str]]:
        return [(block["tool_use_id"], _text(block["content"])) for block in self._blocks(asked, "tool_result")]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


class Responses(Speech):
    """``/v1/responses``."""

    name = "responses"
    has_names = True

    _USAGE: ClassVar[Json] = {"input_tokens": 11, "output_tokens": 5, "total_tokens": 16}

    def __init__(self) -> None:
        self._items: list[Json] = []
        self._is_begun = False
        self._number = 0

    def error(self, error: Json, status: int | None = None) -> Json:
        return {"error": {"type": error.get("type"), "code": error.get("code"), "message": error.get("message")}}

    def events(self, data: Any) -> list[Any]:
        said = super().events(data)
        return [{"type": "error", **one} if isinstance(one, dict) and "error" in one else one for one in said]

    def reply(self, data: Json) -> Json:
        if not data["choices"]:
            return {**self._response("completed", []), "output": None}
        message, reason = _choice(data)
        items: list[Json] = []
        if thinking := message.get("reasoning_content"):
            items.append(self._item("reasoning", thinking))
        if refusal := message.get("refusal"):
            items.append({**self._item("message", ""), "content": [{"type": "refusal", "refusal": refusal}]})
        if message.get("content") is not None:
            items.append(self._item("message", message["content"]))
        for call in message.get("tool_calls") or ():
            items.append(self._call(call["id"], call["function"]["name"], call["function"].get("arguments")))
        return self._end(items, reason)

    def _response(self, status: str, items: list[Json], **more: Any) -> Json:
        return {"id": "resp_1", "object": "response", "status": status, "model": "m", "output": items, **more}

    def _end(self, items: list[Json], reason: str | None) -> Json:
        if reason == "insufficient_system_resource":
            error = {"code": "server_error", "message": reason}
            return self._response("failed", items, error=error, usage=None)
        if reason in {"stop", "tool_calls"}:
            return self._response("completed", items, error=None, incomplete_details=None, usage=self._USAGE)
        why = "max_output_tokens" if reason == "length" else reason
        return self._response("incomplete", items, incomplete_details={"reason": why}, usage=self._USAGE)

    def _item(self, kind: str, text: str) -> Json:
        self._number += 1
        if kind == "reasoning":
            summary = [{"type": "summary_text", "text": text}] if text else []
            return {"type": kind, "id": f"rs_{self._number}", "summary": summary, "encrypted_content": "gAAA"}
        content = [{"type": "output_text", "text": text, "annotations": []}] if text else []
        item = {"type": kind, "id": f"msg_{self._number}", "role": "assistant", "status": "completed"}
        return {**item, "content": content}

    def _call(self, call_id: Any, name: Any, arguments: Any) -> Json:
        self._number += 1
        item = {"type": "function_call", "id": f"fc_{self._number}", "call_id": call_id, "name": name}
        return {**item, "arguments": arguments, "status": "completed"}

    def chunk(self, data: Json) -> list[Any]:
        if not data["choices"]:
            return [{"type": "response.in_progress"}]
        delta, reason = _choice(data)
        said: list[Any] = []
        if not self._is_begun:
            self._is_begun = True
            said.append({"type": "response.created", "response": self._response("in_progress", [])})
        if thinking := delta.get("reasoning_content"):
            said += self._grown("reasoning", "response.reasoning_summary_text.delta", thinking)
        if text := delta.get("content"):
            said += self._grown("message", "response.output_text.delta", text)
        if refusal := delta.get("refusal"):
            said += self._grown("message", "response.refusal.delta", refusal)
        for call in delta.get("tool_calls") or ():
            said += self._called(call)
        if reason:
            said += self._closed()
            response = self._end(self._items, reason)
            said.append({"type": f"response.{response['status']}", "response": response})
        return said

    def _place(self) -> int:
        return len(self._items) - 1

    def _begin(self, item: Json) -> list[Any]:
        said = self._closed()
        self._items.append(item)
        return [*said, {"type": "response.output_item.added", "output_index": self._place(), "item": dict(item)}]

    def _closed(self) -> list[Any]:
        if not self._items:
            return []
        return [{"type": "response.output_item.done", "output_index": self._place(), "item": self._items[-1]}]

    def _grown(self, kind: str, event: str, text: str) -> list[Any]:
        said: list[Any] = []
        if not self._items or self._items[-1]["type"] != kind:
            said = self._begin(self._item(kind, ""))
        parts = self._items[-1]["summary" if kind == "reasoning" else "content"]
        field = "refusal" if "refusal" in event else "text"
        if not parts:
            told = {"reasoning": "summary_text", "message": "refusal" if field == "refusal" else "output_text"}[kind]
            parts.append({"type": told, field: ""})
        parts[-1][field] += text
        return [*said, {"type": event, "output_index": self._place(), "delta": text}]

    def _called(self, call: Json) -> list[Any]:
        said: list[Any] = []
        function, known = call["function"], self._items[-1] if self._items else {}
        is_known = known.get("type") == "function_call" and known["index"] == call.get("index")
        if not is_known or (call.get("id") and call["id"] != known["call_id"]):
            item = {**self._call(call.get("id"), function.get("name"), ""), "index": call.get("index")}
            said = self._begin(item)
        piece = function.get("arguments") or ""
        self._items[-1]["arguments"] += piece
        grown = {"type": "response.function_call_arguments.delta", "output_index": self._place(), "delta": piece}
        return [*said, grown]

    def done(self) -> list[Any]:
        return []

    def wants_json(self, asked: Json) -> bool:
        return "format" in asked.get("text", {})

    def calls(self, asked: Json) -> list[str]:
        return [item["call_id"] for item in asked["input"] if item.get("type") == "function_call"]

    def results(self, asked: Json) -> list[tuple[str, str]]:
        found = [item for item in asked["input"] if item.get("type") == "function_call_output"]
        return [(item["call_id"], _text(item["output"])) for item in found]


class Gemini(Speech):
    """``generateContent``."""

    name = "gemini"

    _FINISH: ClassVar[dict[str, str]] = {
        "stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY",
    }  # fmt: skip
    _KINDS: ClassVar[dict[str | None, Json]] = {
        "overloaded_error": {"code": 503, "status": "UNAVAILABLE"},
        "invalid_api_key": {
            "code": 400, "status": "INVALID_ARGUMENT",
            "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}],
        },
        "insufficient_quota": {
            "code": 429, "status": "RESOURCE_EXHAUSTED",
            "details": [{"@type": "type.googleapis.com/google.rpc.QuotaFailure",
                         "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}]}],
        },
    }  # fmt: skip
    _USAGE: ClassVar[Json] = {"promptTokenCount": 11, "candidatesTokenCount": 5, "totalTokenCount": 16}

    def __init__(self) -> None:
        self._pieces: list[Json] = []
        self._is_blocked = False

    def error(self, error: Json, status: int | None = None) -> Json:
        known = self._KINDS.get(error.get("code") or error.get("type"), {} if status is None else {"code": status})
        return {"error": {**known, "message": error.get("message")}}

    def reply(self, data: Json) -> Json:
        made: Json = {"usageMetadata": self._USAGE, "modelVersion": "m", "responseId": "r"}
        if not data["choices"]:
            return {**made, "candidates": data["choices"]}
        message, reason = _choice(data)
        if refusal := message.get("refusal"):
            return {**made, **self._blocked(refusal)}
        parts = self._parts(message)
        parts += [
            {"functionCall": {"name": call["function"]["name"], "args": _arguments(call)}}
            for call in message.get("tool_calls") or ()
        ]
        return {**made, "candidates": [self._candidate(parts, reason)]}

    def _blocked(self, why: str) -> Json:
        return {"promptFeedback": {"blockReason": "OTHER", "blockReasonMessage": why}}

    def _parts(self, message: Json) -> list[Json]:
        parts: list[Json] = []
        if thinking := message.get("reasoning_content"):
            parts.append({"text": thinking, "thought": True})
        if message.get("content") is not None:
            parts.append({"text": message["content"]})
        return parts

    def _candidate(self, parts: list[Json], reason: str | None) -> Json:
        candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
        return candidate if reason is None else {**candidate, "finishReason": self._FINISH.get(reason, reason)}

    def chunk(self, data: Json) -> list[Any]:
        if not data["choices"]:
            return [{"usageMetadata": self._USAGE}]
        delta, reason = _choice(data)
        if self._is_blocked:
            return []
        if refusal := delta.get("refusal"):
            self._is_blocked = True
            return [{**self._blocked(refusal), "usageMetadata": self._USAGE}]
        parts = self._parts(delta)
        for call in delta.get("tool_calls") or ():
            function = call["function"]
            if function.get("name") and (not self._pieces or call.get("id") != self._pieces[-1]["id"]):
                self._pieces.append({"id": call.get("id"), "function": {"name": function["name"], "arguments": ""}})
            self._pieces[-1]["function"]["arguments"] += function.get("arguments") or ""
        if reason:  # a call comes whole
            parts += [
                {"functionCall": {"name": call["function"]["name"], "args": _arguments(call)}} for call in self._pieces
            ]
        return [{"candidates": [self._candidate(parts, reason)], "modelVersion": "m", "responseId": "r"}]

    def done(self) -> list[Any]:
        return []

    def wants_json(self, asked: Json) -> bool:
        return "responseMimeType" in asked.get("generationConfig", {})

    def _found(self, asked: Json, kind: str) -> list[Json]:
        parts = [part for content in asked["contents"] for part in content["parts"]]
        return [part[kind] for part in parts if kind in part]

    def calls(self, asked: Json) -> list[str]:
        return [call.get("id") or str(place) for place, call in enumerate(self._found(asked, "functionCall"))]

    def results(self, asked: Json) -> list[tuple[str, str]]:
        found = self._found(asked, "functionResponse")
        return [
            (result.get("id") or str(place), str(*result["response"].values())) for place, result in enumerate(found)
        ]


SPEECHES: dict[str, Callable[[], Speech]] = {
    "chat": Speech, "messages": Messages, "responses": Responses, "gemini": Gemini,
}  # fmt: skip
WIRES = tuple(SPEECHES)

SPEECH: ContextVar[Speech] = ContextVar("SPEECH", default=Speech())  # noqa: B039 - that of chat keeps nothing
"""Of the request that is being answered."""


def wire_of(path: str) -> str:
    """The wire that a request came on."""
    path = path.partition("?")[0]
    if path.endswith("/messages"):
        return "messages"
    if path.endswith("/responses"):
        return "responses"
    return "gemini" if "enerateContent" in path else "chat"
