"""The body of a request to ``/v1/responses``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from SimpleLLMFunc.interface.wires.asking import given_params, own_tool
from SimpleLLMFunc.interface.wires.items.families import effort_of, leave_out_sampling
from SimpleLLMFunc.interface.wires.items.history import ItemHistory
from SimpleLLMFunc.interface.wires.provider_state import Prefix
from SimpleLLMFunc.interface.wires.wire import Asked, Kept, WireRequest

_NO_WORD = ("stop", "seed", "n", "logit_bias", "frequency_penalty", "presence_penalty")
_ENCRYPTED = "reasoning.encrypted_content"
_LOGPROBS = "message.output_text.logprobs"


def build_request(
    asked: Asked, model_name: str, service: str, *, path: str, stream: bool, caches: bool, has_choice: bool
) -> WireRequest:
    """Return the request: stateless, with the reasoning of earlier replies where it came from the same service.

    Args:
        asked: in chat completions' form.
        model_name: tells what may be sent.
        service: the host that it goes to.
        path: after the base address.
        stream: events are wanted.
        caches: a key leads requests of one kind to one prompt cache.
        has_choice: the service takes `tool_choice`.

    Raises:
        ConfigError: something that this wire, or this model, has no word for.
        UsageError: there is no message.
    """
    history = ItemHistory(service)
    params = given_params(asked, history.called, _NO_WORD, 'Leave it out, or ask with wire="chat", which has.')
    history.write(asked.messages)
    downgrades: list[tuple[str, str]] = []
    if history.dropped:
        downgrades.append(("provider state: reasoning items are left out", history.dropped))
    body: dict[str, Any] = {"model": model_name, "input": history.turns}
    if instructions := history.system(asked.messages):
        body["instructions"] = instructions
    tools = [_tool(spec) for spec in asked.tools or ()]
    choice, is_parallel = params.pop("tool_choice", None), params.pop("parallel_tool_calls", None)
    if tools:
        body["tools"] = tools
        if choice is not None and has_choice:
            body["tool_choice"] = _choice(choice)
        if is_parallel is not None:
            body["parallel_tool_calls"] = is_parallel
    if asked.response_format is not None:
        body["text"] = {"format": _format(asked.response_format)}
    limit = params.pop("max_tokens", None)
    limit = params.pop("max_completion_tokens", limit)
    if limit is not None:
        body["max_output_tokens"] = limit
    body.update(store=False, include=[_ENCRYPTED])
    if caches:
        body["prompt_cache_key"] = Prefix(model_name, instructions, tools).value()
    _set_reasoning(body, params, model_name)
    downgrades += leave_out_sampling(params, model_name, body.get("reasoning", {}).get("effort"))
    if params.pop("logprobs", None) or "top_logprobs" in params:
        body["include"] = [*body["include"], _LOGPROBS]
    _set_rest(body, params)
    if stream:
        body["stream"] = True
    return WireRequest(path, body, kept=Kept(limit=body.get("max_output_tokens")), downgrades=tuple(downgrades))


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


def _choice(choice: Any) -> Any:
    function = choice.get("function") if isinstance(choice, Mapping) else None
    return {"type": "function", "name": function["name"]} if isinstance(function, Mapping) else choice


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


def _set_rest(body: dict[str, Any], params: dict[str, Any]) -> None:
    """Write the other parameters."""
    if "verbosity" in params:
        body["text"] = {**body.get("text", {}), "verbosity": params.pop("verbosity")}
    if "include" in params:
        body["include"] = list(dict.fromkeys([*body["include"], *params.pop("include")]))
    body.update(params)
