"""The wire ``/v1/responses``, which OpenAI's newer models need and some servers speak; pure.

The service wants of a conversation: a result for each call, and a call for each result; the items of one reply all and
in their order, reasoning right before what it led to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.profile import Profile
from SimpleLLMFunc.interface.wires.families import effort_of, leave_out_sampling
from SimpleLLMFunc.interface.wires.history import History, Part, image_of
from SimpleLLMFunc.interface.wires.provider_state import STATE, Prefix, state_of
from SimpleLLMFunc.interface.wires.replies import Wire
from SimpleLLMFunc.interface.wires.request_body import described, forced_tool, given_params, own_tool
from SimpleLLMFunc.interface.wires.streams.delta_assembly import call_dict
from SimpleLLMFunc.interface.wires.streams.events import EventReader, ServerSentEvent, joined
from SimpleLLMFunc.interface.wires.wire import Asked, Kept, Received, WireRequest
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk, ToolCall, content_text, mapping, mappings

WIRE = "responses"
_ENDED = ("completed", "incomplete")
_THOUGHTS = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})
_ENDS = frozenset({"response.completed", "response.incomplete"})
_FAILS = frozenset({"error", "response.failed", "response.cancelled"})
_NO_WORD = ("stop", "seed", "n", "logit_bias", "frequency_penalty", "presence_penalty")


# --- what is read ------------------------------------------------------------------------------------------


def _said(items: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the messages that are the answer: comments on the way to it are not, where there is anything else."""
    messages = [item for item in items if item.get("type") == "message"]
    return [item for item in messages if item.get("phase") != "commentary"] or messages


def _parts(items: Iterable[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    return [part for item in items for part in mappings(item.get("content")) if part.get("type") == kind]


def text_in(items: Iterable[Mapping[str, Any]]) -> str:
    """Return the answer; of several texts the final one."""
    return joined(_parts(_said(items), "output_text"))


def _refusal_in(items: Iterable[Mapping[str, Any]]) -> str:
    """Return what the model said when it refused, empty where it did not."""
    return joined(_parts(_said(items), "refusal"), "refusal")


def _thinking_in(items: Iterable[Mapping[str, Any]]) -> str:
    """Return the reasoning that the service shows, parts apart by a blank line."""
    thoughts = [item for item in items if item.get("type") == "reasoning"]
    parts = [part for item in thoughts for part in mappings(item.get("summary")) or mappings(item.get("content"))]
    return joined(parts, between="\n\n")


def calls_in(items: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the calls of the user's tools."""
    return [item for item in items if item.get("type") == "function_call"]


def _is_plain(item: Mapping[str, Any]) -> bool:
    if item.get("type") != "message":
        return item.get("type") == "function_call"
    return not item.get("phase") and not any(part.get("annotations") for part in mappings(item.get("content")))


def _usage(usage: Any) -> dict[str, Any] | None:
    """Return the usage in chat completions' form."""
    if not isinstance(usage, Mapping):
        return None
    read, written = mapping(usage.get("input_tokens_details")), mapping(usage.get("output_tokens_details"))
    return {
        "prompt_tokens": usage.get("input_tokens"),
        "completion_tokens": usage.get("output_tokens"),
        "total_tokens": usage.get("total_tokens"),
        "prompt_tokens_details": dict(read),
        "completion_tokens_details": dict(written),
    }


class ItemReader(EventReader):
    """Reads one reply; a stream is complete with the event that holds the whole reply.

    Source: https://platform.openai.com/docs/api-reference/responses-streaming
    """

    def __init__(self, received: Received, service: str) -> None:
        super().__init__(received, service)
        self._items: dict[Any, Mapping[str, Any]] = {}  # as they were added
        self._done: dict[Any, Mapping[str, Any]] = {}
        self._told: set[Any] = set()  # the calls of which arguments have come
        self._latest: Any = None
        self._is_thinking = self._has_refused = False

    def problem_of(self, data: Mapping[str, Any]) -> str:
        """Return why a whole reply does not fit the protocol, empty if it does."""
        if not isinstance(data.get("output"), list):
            return "it has no output"
        return "" if data.get("status") in _ENDED else f"its status is {data.get('status')}"

    def completion_of(self, data: dict[str, Any]) -> ChatCompletion:
        """Return a whole reply whose form is known to be good."""
        items = mappings(data.get("output"))
        calls = [call_dict(call.get("call_id"), call.get("name"), call.get("arguments")) for call in calls_in(items)]
        more = self._extra_of(items, data.get("status"))
        if refusal := _refusal_in(items):
            more["refusal"] = refusal
        message = self.message_of(text_in(items), calls, _thinking_in(items), more)
        logprobs = [entry for part in _parts(_said(items), "output_text") for entry in mappings(part.get("logprobs"))]
        choice = self.choice_of(message, self._finish_of(data, items), logprobs and {"content": logprobs})
        return self.completion(data, [choice], _usage(data.get("usage")))

    def _extra_of(self, items: Sequence[Mapping[str, Any]], status: object) -> dict[str, Any]:
        """Return further fields of the message: the items, where the service wants them back."""
        # Of a reply that was cut, reasoning may stand last; the service refuses it without what it led to.
        if status != "completed" or all(map(_is_plain, items)):
            return {}
        return {STATE: state_of(WIRE, self._service, [dict(item) for item in items])}

    def _finish_of(self, response: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> str:
        """Return our finish reason of a reply that has ended."""
        if response.get("status") == "incomplete":
            reason = mapping(response.get("incomplete_details")).get("reason")
            return "content_filter" if reason == "content_filter" else "length"
        if calls_in(items):
            return "tool_calls"
        # Some servers call a cut reply completed; as many tokens as were asked for tell.
        limit, written = self._received.kept.limit, mapping(response.get("usage")).get("output_tokens")
        return "length" if limit is not None and isinstance(written, int) and written >= limit else "stop"

    def chunk_of(self, value: dict[str, Any], event: ServerSentEvent) -> ChatCompletionChunk | None:
        """Return the chunk in an event; raises what `read` does."""
        kind = str(value.get("type") or event.event)
        if kind in _FAILS or (not kind and value.get("error")):
            raise self._failure(value)
        if kind == "response.output_text.delta":
            return self._text(value)
        if kind == "response.function_call_arguments.delta":
            return self._arguments(self._key(value), value.get("delta"))
        if kind in _THOUGHTS:
            self._is_thinking = True
            return self.chunk({"reasoning_content": str(value.get("delta") or "")})
        if kind == "response.reasoning_summary_part.added" and self._is_thinking:
            return self.chunk({"reasoning_content": "\n\n"})
        if kind == "response.refusal.delta":
            self._has_refused = True
            return self.chunk({"refusal": str(value.get("delta") or "")})
        if kind == "response.output_item.added":
            return self._added(value)
        if kind == "response.output_item.done":
            # What the service wants back is whole only here.
            self._done[self._key(value)] = mapping(value.get("item"))
            return None
        if kind == "response.created":
            self._facts = self.facts_of(mapping(value.get("response")))
            return self.chunk({"role": "assistant"})
        return self._ended(mapping(value.get("response"))) if kind in _ENDS else None

    def _key(self, value: Mapping[str, Any]) -> Any:
        """Return what an item is known by: its place; its id, where no place is told; else it is the last one."""
        for name in ("output_index", "item_id"):
            if isinstance(value.get(name), (int, str)):
                return value[name]
        return str(mapping(value.get("item")).get("id") or "") or self._latest

    def _added(self, value: Mapping[str, Any]) -> ChatCompletionChunk | None:
        item, key = mapping(value.get("item")), self._key(value)
        self._items[key], self._latest, self.is_writing = item, key, False
        return self.chunk({"tool_calls": [self._call(key, item)]}) if item.get("type") == "function_call" else None

    def _call(self, key: Any, item: Mapping[str, Any], arguments: Any = "") -> dict[str, Any]:
        return self.new_call(key, item.get("call_id"), item.get("name"), arguments)

    def _text(self, value: Mapping[str, Any]) -> ChatCompletionChunk | None:
        # A comment on the way to the answer is shown at the end, where nothing else is said.
        if self._items.get(self._key(value), {}).get("phase") == "commentary":
            return None
        logprobs = mappings(value.get("logprobs"))
        return self.chunk({"content": str(value.get("delta") or "")}, logprobs=logprobs and {"content": logprobs})

    def _arguments(self, key: Any, piece: Any) -> ChatCompletionChunk | None:
        if key not in self._call_numbers or not isinstance(piece, str) or not piece:
            return None
        self._told.add(key)
        return self.more_of_call(key, piece)

    def _untold(self, items: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield what has not been shown of the calls: their arguments, or all of them."""
        keys = {id(item): key for key, item in self._done.items()}
        begun = {str(self._items[key].get("call_id") or ""): key for key in self._call_numbers}
        for place, call in enumerate(items):
            if call.get("type") != "function_call":
                continue
            arguments, call_id = call.get("arguments"), str(call.get("call_id") or "")
            # By its place first: some servers give a call another id at its end, or none.
            key = keys.get(id(call), place if place in self._call_numbers else begun.get(call_id))
            if key not in self._call_numbers:
                yield self._call(("", place), call, arguments)
            elif key not in self._told:
                yield {"index": self._call_numbers[key], "function": {"arguments": arguments}}

    def _ended(self, response: Mapping[str, Any]) -> ChatCompletionChunk:
        self._facts = {**self._facts, **{name: fact for name, fact in self.facts_of(response).items() if fact}}
        # Some servers tell of an item, or of its end, only here.
        done = sorted(self._done.items(), key=lambda each: each[0] if isinstance(each[0], int) else 0)
        items = max([item for _, item in done], mappings(response.get("output")), key=len)
        said = self._extra_of(items, response.get("status"))
        if not self._has_shown and (text := text_in(items)):
            said["content"] = text
        if not self._has_refused and (refusal := _refusal_in(items)):
            said["refusal"] = refusal
        if calls := [*self._untold(items)]:
            said["tool_calls"] = calls
        self.is_done = True
        return self.chunk(said, self._finish_of(response, items), _usage(response.get("usage")))

    def _failure(self, value: dict[str, Any]) -> Exception:
        if value.get("type") == "response.cancelled":
            return self.broken("the service cancelled the reply")
        error = mapping(value.get("response")).get("error") or value.get("error") or value
        return self.error_in({"error": dict(error) if isinstance(error, Mapping) else error})


# --- what is sent ------------------------------------------------------------------------------------------


class ItemHistory(History):
    """The conversation in items; its `turns` are those items."""

    wire, called, id_field = WIRE, "/v1/responses", "call_id"
    starts_with_user = False
    text_in, calls_in = staticmethod(text_in), staticmethod(calls_in)

    def add(self, role: str, parts: Sequence[Part]) -> None:
        """Add items; what a user says is one."""
        if role == "user" and not any(part.get("type") == "function_call_output" for part in parts):
            parts = [{"type": "message", "role": role, "content": list(parts)}] if parts else []
        self.turns += parts

    def text(self, text: str) -> list[Part]:
        """Return a text."""
        return [{"type": "input_text", "text": text}]

    def media(self, kind: Any, part: Mapping[str, Any]) -> Part:
        """Return a part that is not text."""
        if kind == "image_url":
            image = image_of(part)
            return {"type": "input_image", "image_url": image["url"], "detail": image.get("detail") or "auto"}
        if kind == "file":
            return {"type": "input_file", **part["file"]}
        if kind == "input_audio":
            raise ConfigError('/v1/responses takes no audio. Ask with wire="chat", or another model.')
        return dict(part)  # a part of the service's own

    def said(self, content: Any, calls: list[Part]) -> list[Part]:
        """Return what the model said."""
        text = content_text(content) or ""
        parts = [{"type": "output_text", "text": text, "annotations": []}] if text else []
        return [*([{"type": "message", "role": "assistant", "content": parts}] if parts else []), *calls]

    def call(self, call: ToolCall) -> Part:
        """Return a call."""
        said = {"name": call.function.name, "arguments": call.function.arguments}
        return {"type": "function_call", "call_id": call.id, **said}

    def result(self, sent: Mapping[str, Any], content: Any, *, failed: bool) -> Part:  # noqa: ARG002 - no mark here
        """Return the result of a call."""
        output = content if isinstance(content, str) else self.parts(content)
        return {"type": "function_call_output", "call_id": sent["call_id"], "output": output}


@dataclass(frozen=True, slots=True)
class ResponsesWire(Wire):
    """The wire ``/v1/responses``.

    Requests are stateless: the reasoning of earlier replies goes back where it came from the same service.

    Attributes:
        caches: a key leads requests of one kind to one prompt cache.

    Source: https://platform.openai.com/docs/api-reference/responses
    """

    caches: bool = True

    name = WIRE
    request_path = "/responses"
    reader = ItemReader
    parameters = frozenset({
        "context_management", "include", "logprobs", "max_completion_tokens", "max_output_tokens", "max_tokens",
        "metadata", "moderation", "n", "parallel_tool_calls", "prompt_cache_key", "prompt_cache_options",
        "prompt_cache_retention", "reasoning", "reasoning_effort", "safety_identifier", "service_tier", "store",
        "stream_options", "temperature", "thinking", "tool_choice", "top_logprobs", "top_p", "truncation",
        "user", "verbosity",
    })  # fmt: skip

    def request(self, asked: Asked, model_name: str, profile: Profile, *, stream: bool) -> WireRequest:
        """Return what goes out; raises what `Wire.request` does."""
        history = ItemHistory(self.service)
        params = given_params(asked, history.called, _NO_WORD, 'Leave it out, or ask with wire="chat", which has.')
        history.write(asked.messages)
        downgrades = history.downgrades("reasoning items are")
        body: dict[str, Any] = {"model": model_name, "input": history.turns}
        if instructions := history.system(asked.messages):
            body["instructions"] = instructions
        tools = [_tool(spec) for spec in asked.tools or ()]
        choice, is_parallel = params.pop("tool_choice", None), params.pop("parallel_tool_calls", None)
        if tools:
            body["tools"] = tools
            if choice is not None and profile.tool_choice:
                name = forced_tool(choice)
                body["tool_choice"] = {"type": "function", "name": name} if name else choice
            if is_parallel is not None:
                body["parallel_tool_calls"] = is_parallel
        if asked.response_format is not None:
            body["text"] = {"format": _format(asked.response_format)}
        limit = params.pop("max_completion_tokens", params.pop("max_tokens", None))
        if limit is not None:
            body["max_output_tokens"] = limit
        body.update(store=False, include=["reasoning.encrypted_content"])
        if self.caches:
            body["prompt_cache_key"] = Prefix(model_name, instructions, tools).value()
        _set_reasoning(body, params, model_name)
        downgrades += leave_out_sampling(params, model_name, body.get("reasoning", {}).get("effort"))
        if params.pop("logprobs", None) or "top_logprobs" in params:
            body["include"].append("message.output_text.logprobs")
        if "verbosity" in params:
            body["text"] = {**body.get("text", {}), "verbosity": params.pop("verbosity")}
        if "include" in params:
            body["include"] = list(dict.fromkeys([*body["include"], *params.pop("include")]))
        body.update(params)
        if stream:
            body["stream"] = True
        kept = Kept(limit=body.get("max_output_tokens"))
        return WireRequest(self.request_path, body, kept=kept, downgrades=downgrades)


def _tool(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool in the wire's form; one of the service's own goes as it is."""
    function = spec.get("function")
    if not isinstance(function, Mapping):
        return own_tool(spec, '{"type": "web_search"}', fits=isinstance(spec.get("type"), str))
    tool = {"type": "function", "name": function["name"], "parameters": function.get("parameters")}
    # Left out, `strict` would count as true, and the service would change the schema.
    return {**tool, **described(function), "strict": bool(function.get("strict"))}


def _format(response_format: Mapping[str, Any]) -> dict[str, Any]:
    schema = response_format.get("json_schema")
    if not isinstance(schema, Mapping):
        return dict(response_format)
    return {"type": "json_schema", **schema, "strict": bool(schema.get("strict"))}


def _set_reasoning(body: dict[str, Any], params: dict[str, Any], model_name: str) -> None:
    thinking, effort = params.pop("thinking", None), params.pop("reasoning_effort", None)
    reasoning = dict(params.pop("reasoning", None) or {})
    if effort is not None:
        reasoning["effort"] = effort
    if thinking is not None and (word := effort_of(thinking, model_name)):
        reasoning["effort"] = word
        if thinking != "off":
            reasoning.setdefault("summary", "auto")  # without it the service shows no thinking
    if reasoning:
        body["reasoning"] = reasoning
