"""The wire ``/v1/responses``, which OpenAI's newer models need and some servers speak; pure.

The service wants of a conversation: a result for each call, and a call for each result; the items of one reply all and
in their order, reasoning right before what it led to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.profile import Profile
from SimpleLLMFunc.interface.wires.families import effort_of, leave_out_sampling
from SimpleLLMFunc.interface.wires.history import History, Part
from SimpleLLMFunc.interface.wires.provider_state import Prefix
from SimpleLLMFunc.interface.wires.replies import Wire
from SimpleLLMFunc.interface.wires.request_body import forced_tool, given_params, own_tool
from SimpleLLMFunc.interface.wires.streams.items import WIRE, ItemReader, calls_in, text_in
from SimpleLLMFunc.interface.wires.wire import Asked, Kept, WireRequest
from SimpleLLMFunc.type import ToolCall, content_text

_NO_WORD = ("stop", "seed", "n", "logit_bias", "frequency_penalty", "presence_penalty")


class ItemHistory(History):
    """The conversation in items; its `turns` are those items."""

    wire, called = WIRE, "/v1/responses"
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
            image = part["image_url"]
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

    def result(self, sent: Mapping[str, Any], content: Any) -> Part:
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
        limit = params.pop("max_tokens", None)
        limit = params.pop("max_completion_tokens", limit)
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
    if function.get("description"):
        tool["description"] = function["description"]
    # Left out it would count as true, and the service would change the schema.
    return {**tool, "strict": bool(function.get("strict"))}


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
