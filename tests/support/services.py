"""Loopback services of three wires that refuse what the real ones refuse, in their words.

    service = MessagesService({"calls": [("search", {"q": "x"})]}, {"texts": ["done"], "thinking": "hm"})
    async with LoopbackServer(service) as server: ...

Each of the dicts is one reply: `texts`, `calls` (name and arguments), `thinking`, `opaque` (state of which nothing can
be read), and `pause` (of the first wire: it stopped in the middle of a search of its own). When they are used up, the service says "ok".

Source of the rules: the design notes on the wires, sections 4.4, 5.4, 5.5 and 6.3.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from SimpleLLMFunc.testing.reply_chunks import split_reply
from SimpleLLMFunc.type import ChatCompletion
from tests.support.connections import Recorded
from tests.support.server import Answer, completion, json_answer, tool_call

Json = dict[str, Any]

# --- what a service may say ---------------------------------------------------------------------------------


def messages_reply(said: Json) -> Json:
    blocks: list[Json] = []
    if said["thinking"] is not None:
        blocks.append({"type": "thinking", "thinking": said["thinking"], "signature": "sig=="})
    if said["opaque"]:
        blocks.append({"type": "redacted_thinking", "data": "b3BhcXVl"})
    blocks += [{"type": "text", "text": text} for text in said["texts"]]
    if said.get("pause"):
        searched = {"type": "server_tool_use", "id": f"srvtoolu_{said['number']}", "name": "web_search"}
        blocks.append({**searched, "input": {"query": "x"}})
    blocks += [
        {"type": "tool_use", "id": f"toolu_{said['number']}_{place}", "name": name, "input": arguments}
        for place, (name, arguments) in enumerate(said["calls"])
    ]
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": blocks,
        "stop_reason": "pause_turn" if said.get("pause") else "tool_use" if said["calls"] else "end_turn",
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }  # fmt: skip


def messages_events(reply: Json) -> list[Json]:
    events: list[Json] = [{"type": "message_start", "message": {**reply, "content": [], "stop_reason": None}}]
    for index, block in enumerate(reply["content"]):
        begun, deltas = dict(block), []
        if block["type"] == "text":
            begun["text"] = ""
            deltas = [{"type": "text_delta", "text": piece} for piece in halves(block["text"])]
        elif block["type"] == "thinking":
            begun.update(thinking="", signature="")
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in halves(block["thinking"])]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        elif block["type"] == "tool_use":
            begun["input"] = {}
            pieces = halves(json.dumps(block["input"]))
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        events.append({"type": "content_block_start", "index": index, "content_block": begun})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events += [{"type": "content_block_stop", "index": index}, {"type": "ping"}]
    ended = {"type": "message_delta", "delta": {"stop_reason": reply["stop_reason"]}, "usage": {"output_tokens": 4}}
    return [*events, ended, {"type": "message_stop"}]


def responses_reply(said: Json) -> Json:
    number, items = said["number"], []
    if said["thinking"] is not None or said["opaque"]:
        summary = [{"type": "summary_text", "text": said["thinking"]}] if said["thinking"] else []
        items.append({"type": "reasoning", "id": f"rs_{number}", "summary": summary, "encrypted_content": "gAAA"})
    if said["texts"]:
        parts = [{"type": "output_text", "text": text, "annotations": []} for text in said["texts"]]
        message = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed"}
        items.append({**message, "content": parts, **({"phase": "final_answer"} if said["opaque"] else {})})
    items += [
        {
            "type": "function_call",
            "id": f"fc_{number}_{place}",
            "call_id": f"call_{number}_{place}",
            "name": name,
            "arguments": json.dumps(arguments, ensure_ascii=False),
            "status": "completed",
        }
        for place, (name, arguments) in enumerate(said["calls"])
    ]
    usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    return {"id": f"resp_{number}", "status": "completed", "model": "m", "output": items, "usage": usage}


def responses_events(reply: Json) -> list[Json]:
    events: list[Json] = [{"type": "response.created", "response": {**reply, "status": "in_progress", "output": []}}]
    for index, item in enumerate(reply["output"]):
        begun, deltas = dict(item), []
        if item["type"] == "message":
            begun["content"] = []
            for part in item["content"]:
                deltas += [{"type": "response.output_text.delta", "delta": piece} for piece in halves(part["text"])]
        elif item["type"] == "function_call":
            begun["arguments"] = ""
            pieces = halves(item["arguments"])
            deltas = [{"type": "response.function_call_arguments.delta", "delta": piece} for piece in pieces]
        else:
            begun["encrypted_content"] = "unfinished"
            for part in item["summary"]:
                pieces = halves(part["text"])
                deltas += [{"type": "response.reasoning_summary_text.delta", "delta": piece} for piece in pieces]
        events.append({"type": "response.output_item.added", "output_index": index, "item": begun})
        events += [{**delta, "output_index": index} for delta in deltas]
        events += [{"type": "response.output_item.done", "output_index": index, "item": item}, {"type": "response.new"}]
    return [*events, {"type": "response.completed", "response": reply}]


def gemini_reply(said: Json) -> Json:
    parts: list[Json] = [{"text": text} for text in said["texts"][:1]]
    if said["thinking"]:
        parts.insert(0, {"text": said["thinking"], "thought": True})
    for place, (name, arguments) in enumerate(said["calls"]):
        call: Json = {"functionCall": {"name": name, "args": arguments}}
        if said["opaque"]:
            call["functionCall"]["id"] = f"c{said['number']}{place}"
        parts.append({**call, "thoughtSignature": "c2ln"} if place == 0 else call)
    if said["texts"][1:] and not said["calls"]:
        parts.append({"text": "", "thoughtSignature": "ZW5k"})
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 3, "candidatesTokenCount": 4, "totalTokenCount": 7}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m", "responseId": "r"}


def gemini_events(reply: Json) -> list[Json]:
    parts = reply["candidates"][0]["content"]["parts"]
    pieces: list[Json] = []
    for part in parts:
        if part.keys() <= {"text", "thought"}:
            pieces += [{**part, "text": piece} for piece in halves(part["text"])]
        else:
            pieces.append(part)
    events: list[Json] = [{"candidates": [{"content": {"role": "model", "parts": [piece]}}]} for piece in pieces]
    return [*events, {**reply, "candidates": [{"finishReason": "STOP", "index": 0}]}]


def halves(text: str) -> list[str]:
    middle = len(text) // 2
    return [piece for piece in (text[:middle], text[middle:]) if piece]


def chat_reply(said: Json) -> Json:
    calls = [
        tool_call(name, arguments, f"{said['number']}_{place}") for place, (name, arguments) in enumerate(said["calls"])
    ]
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    return completion("".join(said["texts"]) or None, tool_calls=calls, model="m", usage=usage)


def chat_events(reply: Json) -> list[Json]:
    return [chunk.to_dict() for chunk in split_reply(ChatCompletion.from_dict(reply))]


REPLIES: dict[str, tuple[Callable[[Json], Json], Callable[[Json], list[Json]]]] = {
    "chat": (chat_reply, chat_events), "messages": (messages_reply, messages_events),
    "responses": (responses_reply, responses_events), "gemini": (gemini_reply, gemini_events),
}  # fmt: skip


# --- services -----------------------------------------------------------------------------------------------


class Refused(Exception):
    """The service answers 400."""


class Service:
    """A handler for `LoopbackServer`.

    Attributes:
        bodies: of the requests that were accepted.
        replies: the raw replies, in order.
    """

    name = ""

    def __init__(self, *said: Json) -> None:
        self._script = list(said)
        self.bodies: list[Json] = []
        self.replies: list[Json] = []

    def check(self, body: Json) -> None:
        """Raise `Refused` where the real service would."""
        raise NotImplementedError

    def error(self, status: int, message: str) -> Answer:
        """An error in the form of the service."""
        return json_answer({"error": {"message": message, "type": "invalid_request_error"}}, status=status)

    def __call__(self, request: Recorded) -> Answer:
        if request.method != "POST":
            return self.error(404, "not found")
        try:
            self.check(request.body)
        except Refused as refused:
            return self.error(400, str(refused))
        self.bodies.append(request.body)
        made, events_of = REPLIES[self.name]
        said = {"number": len(self.replies), "texts": [], "calls": [], "thinking": None, "opaque": False}
        reply = made({**said, **(self._script.pop(0) if self._script else {"texts": ["ok"]})})
        self.replies.append(reply)
        if not request.stream:
            return json_answer(reply)
        pieces = [
            (b"event: %s\n" % event["type"].encode() if "type" in event else b"")
            + b"data: %s\n\n" % json.dumps(event).encode()
            for event in events_of(reply)
        ]
        return Answer(headers={"content-type": "text/event-stream"}, pieces=pieces)


class ChatService(Service):
    """``/v1/chat/completions``, which knows nothing of what other wires want back."""

    name = "chat"

    def check(self, body: Json) -> None:
        waiting: list[str] = []
        for message in body["messages"]:
            if unknown := message.keys() - {"role", "content", "tool_calls", "tool_call_id"}:
                raise Refused(f"Unknown parameter: {sorted(unknown)}")
            if message["role"] == "tool":
                if message["tool_call_id"] not in waiting:
                    raise Refused(
                        "messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
                    )
                waiting.remove(message["tool_call_id"])
            elif waiting:
                raise Refused("An assistant message with 'tool_calls' must be followed by tool messages")
            waiting += [call["id"] for call in message.get("tool_calls") or ()]
        if waiting:
            raise Refused("An assistant message with 'tool_calls' must be followed by tool messages")


class MessagesService(Service):
    """``/v1/messages`` of a model whose thinking is bound to what stands before it."""

    name = "messages"

    def error(self, status: int, message: str) -> Answer:
        said = {"type": "invalid_request_error", "message": message}
        return json_answer({"type": "error", "error": said, "request_id": "req_1"}, status=status)

    def check(self, body: Json) -> None:
        if not isinstance(body.get("max_tokens"), int):
            raise Refused("max_tokens: Field required")
        messages = body["messages"]
        roles = [message["role"] for message in messages]
        if not roles or roles[0] != "user" or any(one == two for one, two in zip(roles, roles[1:], strict=False)):
            raise Refused("messages: roles must alternate between user and assistant, the first one is user")
        paused = bool(self.replies) and self.replies[-1]["stop_reason"] == "pause_turn"
        last = self.replies[-1]["content"] if paused else []
        if paused and _unmarked(_blocks(messages[-1]))[-len(last) :] != last:
            raise Refused("messages: the turn that was paused is not the last one, or was changed")
        if roles[-1] == "assistant" and not paused:
            raise Refused("This model does not support assistant message prefill.")
        blocks = [(place, block) for place, message in enumerate(messages) for block in _blocks(message)]
        if any(block["type"] == "text" and not block["text"].strip() for _, block in blocks):
            raise Refused("text content blocks must be non-empty")
        if not body.get("tools") and any(block["type"] in {"tool_use", "tool_result"} for _, block in blocks):
            raise Refused("Requests which include `tool_use` or `tool_result` blocks must define tools")
        marks = [part for part in _parts_of(body) if isinstance(part, dict) and "cache_control" in part]
        if len(marks) > 4 or any(part.get("type") in {"thinking", "redacted_thinking"} for part in marks):
            raise Refused("cache_control: at most 4 blocks, and never on thinking")
        self._check_results(messages)
        self._check_thinking(body)
        self._check_round(body)

    def _check_round(self, body: Json) -> None:
        """A round of calls begins with thinking, where thinking is on."""
        begun: Json = {"type": "thinking"}
        for message in body["messages"]:
            blocks = _blocks(message)
            if message["role"] == "user" and any(block["type"] != "tool_result" for block in blocks):
                begun = {"type": "thinking"}
            elif message["role"] == "assistant" and any(block["type"] == "tool_use" for block in blocks):
                begun = blocks[0] if begun["type"] == "thinking" else begun
        thinks = body.get("thinking", {}).get("type") == "enabled"
        if thinks and begun["type"] not in {"thinking", "redacted_thinking"}:
            raise Refused(f"messages: Expected `thinking` or `redacted_thinking`, but found `{begun['type']}`.")

    def _check_results(self, messages: Sequence[Json]) -> None:
        for place, message in enumerate(messages):
            calls = {block["id"] for block in _blocks(message) if block["type"] == "tool_use"}
            after = _blocks(messages[place + 1]) if place + 1 < len(messages) else []
            results = [block["tool_use_id"] for block in after if block["type"] == "tool_result"]
            if calls - set(results):
                raise Refused(
                    f"messages.{place}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                    f"{', '.join(sorted(calls - set(results)))}"
                )
            if message["role"] == "assistant" and set(results) - calls:
                raise Refused(f"messages.{place + 1}: unexpected `tool_use_id` found in `tool_result` blocks")
            kinds = [block["type"] for block in after]
            if "tool_result" in kinds and kinds[: len(results)] != ["tool_result"] * len(results):
                raise Refused(f"messages.{place + 1}: `tool_result` blocks must come first")

    def _check_thinking(self, body: Json) -> None:
        """Each thinking block is one of ours, unchanged, behind the very prefix it was written behind."""
        written = {_canonical(block): place for place, reply in enumerate(self.replies) for block in reply["content"]}
        for place, message in enumerate(body["messages"]):
            for number, block in enumerate(_blocks(message)):
                if block["type"] not in {"thinking", "redacted_thinking"}:
                    continue
                origin = written.get(_canonical(block))
                if origin is None:
                    raise Refused(
                        "messages: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
                        "modified"
                    )
                before = _before(self.bodies[origin], len(self.bodies[origin]["messages"]), 0)
                if _before(body, place, number)[: len(before)] != before:
                    raise Refused(
                        f"messages.{place}.content.0: Invalid `signature` in `thinking` block. The block is bound to a "
                        "different conversation. Remove the block."
                    )


def _canonical(item: Mapping[str, Any]) -> str:
    """The item however its fields are ordered; null is what is not there."""
    return json.dumps({name: value for name, value in item.items() if value is not None}, sort_keys=True)


def _before(body: Json, place: int, number: int) -> list[str]:
    """All that stands before a block: neighbours of one role may have become one message."""
    messages = body["messages"]
    said = [(message["role"], block) for message in messages[:place] for block in _blocks(message)]
    if number:
        said += [(messages[place]["role"], block) for block in _blocks(messages[place])[:number]]
    return [json.dumps(_unmarked(each), sort_keys=True) for each in (body.get("system"), body.get("tools"), *said)]


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _unmarked(item) for name, item in value.items() if name != "cache_control"}
    return [_unmarked(item) for item in value] if isinstance(value, (list, tuple)) else value


def _blocks(message: Mapping[str, Any]) -> list[Json]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _parts_of(body: Json) -> list[Any]:
    system = body.get("system")
    return [
        *(body.get("tools") or ()),
        *(system if isinstance(system, list) else ()),
        *(block for message in body["messages"] for block in _blocks(message)),
    ]


class ResponsesService(Service):
    """``/v1/responses``, stateless."""

    name = "responses"

    def check(self, body: Json) -> None:
        if body.get("store") is not False:
            raise Refused("this service keeps nothing: send store=false")
        for word in ("stop", "seed", "n", "logit_bias"):
            if word in body:
                raise Refused(f"Unknown parameter: '{word}'.")
        items = body["input"] if isinstance(body["input"], list) else []
        calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
        outputs = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
        for call in calls:
            if call not in outputs:
                raise Refused(f"No tool output found for function call {call}.")
        for call in outputs:
            if call not in calls:
                raise Refused(f"No tool call found for function call output with call_id {call}.")
        written = [_canonical(item) for reply in self.replies for item in reply["output"]]
        for place, item in enumerate(items):
            if item.get("type") != "reasoning":
                continue
            if _canonical(item) not in written:
                raise Refused(f"The encrypted content for item {item.get('id')} could not be verified.")
            after = items[place + 1] if place + 1 < len(items) else {}
            if after.get("type") not in {"message", "function_call", "reasoning"} or after.get("role") == "user":
                raise Refused(
                    f"Item '{item['id']}' of type 'reasoning' was provided without its required following item."
                )
        self._check_calls(items)

    def _check_calls(self, items: Sequence[Json]) -> None:
        reasons = {
            call["id"]: item["id"]
            for reply in self.replies
            for item in reply["output"]
            if item["type"] == "reasoning"
            for call in reply["output"]
            if call["type"] == "function_call"
        }
        given = {item.get("id") for item in items}
        for item in items:
            reason = reasons.get(item.get("id")) if item.get("type") == "function_call" else None
            if reason is not None and reason not in given:
                raise Refused(
                    f"Item '{item['id']}' of type 'function_call' was provided without its required 'reasoning' item: "
                    f"'{reason}'."
                )


class GeminiService(Service):
    """``generateContent`` of a model that signs its calls."""

    name = "gemini"

    def error(self, status: int, message: str) -> Answer:
        said = {"code": status, "message": message, "status": "INVALID_ARGUMENT"}
        return json_answer({"error": said}, status=status)

    def check(self, body: Json) -> None:
        contents = body.get("contents") or []
        if not contents:
            raise Refused("contents is not specified")
        if any(not content.get("parts") for content in contents):
            raise Refused("Unable to submit request because it must have a text parameter")
        if contents[-1]["role"] != "user":
            raise Refused("the last content is a model turn")
        turns = [[kind for part in content["parts"] for kind in part] for content in contents]
        for place, kinds in enumerate(turns):
            calls = kinds.count("functionCall")
            after = turns[place + 1].count("functionResponse") if place + 1 < len(turns) else 0
            if calls and calls != after:
                raise Refused(
                    "Please ensure that the number of function response parts is equal to the number of function call "
                    "parts of the function call turn."
                )
            if calls and (place == 0 or contents[place - 1]["role"] != "user"):
                raise Refused(
                    "Please ensure that function call turn comes immediately after a user turn or after a function "
                    "response turn."
                )
        starts = [
            place
            for place, content in enumerate(contents)
            if content["role"] == "user" and any("functionResponse" not in part for part in content["parts"])
        ]
        signed = {
            part["thoughtSignature"]
            for reply in self.replies
            for part in reply["candidates"][0]["content"]["parts"]
            if "thoughtSignature" in part
        } | {"skip_thought_signature_validator"}
        for place, content in enumerate(contents):
            called = [part for part in content["parts"] if "functionCall" in part]
            if called and place > starts[-1] and "thoughtSignature" not in called[0]:
                raise Refused("Function call is missing a thought_signature in functionCall parts.")
            if any(part.get("thoughtSignature", next(iter(signed))) not in signed for part in content["parts"]):
                raise Refused("Corrupted thought signature.")
