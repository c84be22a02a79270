"""The body of a request to ``/v1/messages``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from SimpleLLMFunc.errors import ConfigError, UsageError
from SimpleLLMFunc.interface.wires.asking import given_params, no_such_thinking, own_tool
from SimpleLLMFunc.interface.wires.blocks.families import Family, family_of
from SimpleLLMFunc.interface.wires.blocks.history import BlockHistory
from SimpleLLMFunc.interface.wires.blocks.schema import schema_for_messages
from SimpleLLMFunc.interface.wires.wire import Asked, Kept, WireRequest

_BUDGETS = {"low": 2048, "medium": 8192, "high": 16_384}
_LEAST_BUDGET = 1024
_ANSWER_TOKENS = 4096
"""Left for the answer where a budget for thinking comes near the limit."""

_SAMPLING = ("temperature", "top_p", "top_k")
_NO_WORD = ("seed", "logprobs", "top_logprobs", "logit_bias", "frequency_penalty", "presence_penalty")
_MARK = {"type": "ephemeral"}
_Told = list[tuple[str, str]]


def build_request(
    asked: Asked, model_name: str, service: str, *, version: str, stream: bool, caches: bool, has_choice: bool
) -> WireRequest:
    """Return the request.

    Args:
        asked: in chat completions' form.
        model_name: tells what may be sent.
        service: the host that it goes to.
        version: of the protocol.
        stream: events are wanted.
        caches: breakpoints of the prompt cache are set.
        has_choice: the service takes `tool_choice`.

    Raises:
        ConfigError: something that this wire, or this model, has no word for.
        UsageError: there is no message.
    """
    family = family_of(model_name)
    history = BlockHistory(service, is_bound=family.is_bound)
    params = given_params(asked, history.called, (*_NO_WORD, "n"), "Leave it out for this model.")
    system, tools = history.system(asked.messages), [_tool(spec) for spec in asked.tools or ()]
    for part in (system, tools):
        history.prefix.add(part)
    history.write(asked.messages)
    history.hash()
    downgrades: list[tuple[str, str]] = []
    if history.dropped:
        downgrades.append(("provider state: thinking blocks are left out", history.dropped))
    if history.tool_names and not tools:
        # The service refuses a history of calls without tools. What they took, the history shows.
        tools = [{"name": name, "input_schema": {"type": "object"}} for name in dict.fromkeys(history.tool_names)]
        params["tool_choice"] = "none"
    if not history.turns:
        raise UsageError("there is no message with a text to send, only a system prompt.")
    limits = [params.pop(name, None) for name in ("max_completion_tokens", "max_tokens")]
    body: dict[str, Any] = {"model": model_name, "max_tokens": limits[0] or limits[1] or family.output}
    if system:
        body["system"] = [{"type": "text", "text": system}]
    if tools:
        body["tools"] = tools
    body["messages"] = history.turns
    _set_format(body, asked.response_format)
    _set_thinking(body, params.pop("thinking", None), family, model_name)
    if body.get("thinking", {}).get("type") == "enabled" and history.is_in_thoughtless_round():
        body["thinking"] = {"type": "disabled"}
        downgrades.append(("thinking: off for this turn", "the calls of this round came without any thinking"))
    choice, is_parallel = params.pop("tool_choice", None), params.pop("parallel_tool_calls", None)
    if tools and has_choice:
        _set_choice(body, choice, is_parallel, family, downgrades)
    _set_sampling(body, params, family, downgrades)
    headers = {"anthropic-version": version}
    if betas := params.pop("betas", None):
        headers["anthropic-beta"] = betas if isinstance(betas, str) else ",".join(dict.fromkeys(betas))
    _set_rest(body, params)
    if stream:
        body["stream"] = True
    if caches:
        _mark(body)
    return WireRequest("/v1/messages", body, headers, Kept(history.prefix.value()), tuple(downgrades))


def _tool(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool in the wire's form; one of the service's own goes as it is."""
    function = spec.get("function")
    if not isinstance(function, Mapping):
        fits = isinstance(spec.get("name"), str) and isinstance(spec.get("type"), str)
        return own_tool(spec, '{"type": "web_search_20250305", "name": "web_search"}', fits=fits)
    schema = dict(function.get("parameters") or {"type": "object", "properties": {}})
    tool: dict[str, Any] = {"name": function["name"]}
    if function.get("description"):
        tool["description"] = function["description"]
    is_strict = bool(function.get("strict"))
    tool["input_schema"] = schema_for_messages(schema) if is_strict else {"type": "object", **schema}
    return {**tool, "strict": True} if is_strict else tool


def _set_format(body: dict[str, Any], response_format: Mapping[str, Any] | None) -> None:
    if response_format is None:
        return
    if response_format.get("type") != "json_schema":
        raise ConfigError(
            f"/v1/messages has no response_format {response_format.get('type')!r}. Give a JSON schema, or leave it out."
        )
    schema = response_format["json_schema"]["schema"]
    body["output_config"] = {"format": {"type": "json_schema", "schema": schema_for_messages(schema)}}


def _set_thinking(body: dict[str, Any], thinking: Any, family: Family, model_name: str) -> None:
    """Write `thinking` in the words that the model has."""
    if thinking is None:
        return
    if isinstance(thinking, Mapping):  # in the wire's own form
        body["thinking"] = dict(thinking)
        return
    has = {"none": [], "budget": ["a number of tokens"], "adaptive": [], "both": ["a number of tokens"]}[
        family.thinking
    ]
    words = [] if family.thinking == "none" else ["low", "medium", "high", *has]
    refused = no_such_thinking(model_name, thinking, words=words, off=family.off is not None)
    if thinking == "off":
        if family.off is None:
            raise refused
        if family.thinking != "none":
            body["thinking"] = {"type": family.off}
        return
    if family.thinking == "none" or isinstance(thinking, bool):
        raise refused
    if isinstance(thinking, str) and family.thinking in {"adaptive", "both"}:
        if thinking not in _BUDGETS:
            raise refused
        body["thinking"] = {"type": "adaptive", "display": "summarized"}
        body["output_config"] = {**body.get("output_config", {}), "effort": thinking}
        return
    budget = _BUDGETS.get(thinking) if isinstance(thinking, str) else thinking
    if not isinstance(budget, int) or budget < _LEAST_BUDGET or family.thinking == "adaptive":
        raise refused
    body["thinking"] = {"type": "enabled", "budget_tokens": budget}
    # The limit holds for thinking and answer together.
    if body["max_tokens"] <= budget:
        body["max_tokens"] = min(budget + max(body["max_tokens"], _ANSWER_TOKENS), max(family.output, budget + 1))


def _set_choice(body: dict[str, Any], choice: Any, is_parallel: Any, family: Family, downgrades: _Told) -> None:
    """Write which tools may, must or must not be called."""
    thinks = body.get("thinking", {}).get("type")
    wanted: dict[str, Any] | None = None
    if isinstance(choice, Mapping):
        name = (choice.get("function") or {}).get("name")
        wanted = {"type": "tool", "name": name} if name else dict(choice)
    elif choice is not None:
        wanted = {"type": {"required": "any"}.get(choice, choice)}
    if wanted and wanted["type"] in {"any", "tool"} and (not family.forced or thinks == "enabled"):
        why = "with a budget for thinking" if family.forced else "of this model"
        downgrades.append(("tools: no tool is forced", f"no call {why} can be forced"))
        wanted = {"type": "auto"}
    if is_parallel is False and (wanted is None or wanted["type"] != "none"):
        wanted = {**(wanted or {"type": "auto"}), "disable_parallel_tool_use": True}
    if wanted:
        body["tool_choice"] = wanted


def _set_sampling(body: dict[str, Any], params: dict[str, Any], family: Family, downgrades: _Told) -> None:
    """Write the sampling parameters that the model takes; the others are left out, and told."""
    given = [name for name in _SAMPLING if name in params]
    thinks = body.get("thinking", {}).get("type") in {"enabled", "adaptive"}
    for name in given:
        value = params.pop(name)
        if not family.sampling:
            downgrades.append((f"sampling: {name} is left out", "this model takes no sampling parameters"))
        elif thinks and not (name == "temperature" and value == 1):
            downgrades.append((f"sampling: {name} is left out", "a model that thinks takes none"))
        else:
            body[name] = value


def _stop(value: Any) -> dict[str, Any]:
    texts = [value] if isinstance(value, str) else list(value)
    return {"stop_sequences": [text for text in texts if text.strip()]}


_WORDS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "stop": _stop,
    "user": lambda value: {"metadata": {"user_id": value}},
    "reasoning_effort": lambda value: {"output_config": {"effort": value}},
}
"""Parameters that other wires know, in the words of this one."""


def _set_rest(body: dict[str, Any], params: dict[str, Any]) -> None:
    """Write the other parameters."""
    for name, value in params.items():
        for own, said in (_WORDS[name](value) if name in _WORDS else {name: value}).items():
            old = body.get(own)
            body[own] = {**old, **said} if isinstance(old, dict) and isinstance(said, dict) else said


def _mark(body: dict[str, Any]) -> None:
    """Set the breakpoints of the prompt cache: behind the tools, the system prompt, and the last whole exchange."""
    if body.get("tools"):
        *others, last = body["tools"]
        body["tools"] = [*others, {**last, "cache_control": _MARK}]
    if body.get("system"):
        *others, last = body["system"]
        body["system"] = [*others, {**last, "cache_control": _MARK}]
    messages = body["messages"]
    end = next((index for index in reversed(range(len(messages))) if _ends_exchange(messages, index)), None)
    if end is None:
        return
    blocks: Sequence[dict[str, Any]] = messages[end]["content"]
    place = next((index for index in reversed(range(len(blocks))) if _can_be_marked(blocks[index])), None)
    if place is not None:
        marked = [{**block, "cache_control": _MARK} if index == place else block for index, block in enumerate(blocks)]
        body["messages"] = [*messages[:end], {**messages[end], "content": marked}, *messages[end + 1 :]]


def _ends_exchange(messages: Sequence[Mapping[str, Any]], index: int) -> bool:
    blocks = messages[index]["content"]
    if messages[index]["role"] == "assistant":
        return not any(block.get("type") == "tool_use" for block in blocks)
    return all(block.get("type") == "tool_result" for block in blocks)


def _can_be_marked(block: Mapping[str, Any]) -> bool:
    kind = block.get("type")
    return kind in {"tool_result", "image", "document"} or (kind == "text" and bool(str(block.get("text", "")).strip()))
