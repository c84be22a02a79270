"""The wire ``/v1/messages``, which Anthropic began and several servers speak; pure.

The service wants of a conversation: the system prompt apart; roles that alternate, the user first; all results of a turn
in the one user message behind it, before any text; no empty text; ids of letters, digits, ``_`` and ``-``.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import unquote_to_bytes

from SimpleLLMFunc.errors import ConfigError, UsageError
from SimpleLLMFunc.interface.profile import Profile
from SimpleLLMFunc.interface.wires.families import EFFORTS, ClaudeFamily, budget_of, claude_family, omitted, thinking_of
from SimpleLLMFunc.interface.wires.history import History, Part, arguments_of, data_in, image_of, made_id
from SimpleLLMFunc.interface.wires.provider_state import Prefix
from SimpleLLMFunc.interface.wires.replies import Wire
from SimpleLLMFunc.interface.wires.request_body import described, forced_tool, given_params, own_tool
from SimpleLLMFunc.interface.wires.streams.blocks import WIRE, BlockReader, calls_in, text_in
from SimpleLLMFunc.interface.wires.wire import Asked, Downgrades, Kept, WireRequest
from SimpleLLMFunc.type import ToolCall

_LEAST_BUDGET = 1024
_ANSWER_TOKENS = 4096
"""Left for the answer where a budget for thinking comes near the limit."""

_NO_WORD = ("seed", "logprobs", "top_logprobs", "logit_bias", "frequency_penalty", "presence_penalty", "n")
_THINKING = ("thinking", "redacted_thinking")
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NO_SAMPLING = "2026-10-21"  # the first version of the protocol without sampling parameters
_TOLD = (
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "maxItems", "uniqueItems",
    "minLength", "maxLength", "pattern", "minProperties", "maxProperties",
)  # fmt: skip
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"})


class BlockHistory(History):
    """The conversation in blocks.

    Args:
        service: the host.
        is_bound: thinking is bound to what stands before it, and stays out where that has changed.

    Attributes:
        prefix: of what stands before the messages; it takes the messages in, for the reply.
    """

    wire, called, id_field = WIRE, "/v1/messages", "id"
    text_in, calls_in = staticmethod(text_in), staticmethod(calls_in)

    def __init__(self, service: str, *, is_bound: bool) -> None:
        super().__init__(service)
        self.prefix = Prefix()
        self._is_bound = is_bound
        self._hashed = 0  # whole messages only, since neighbours may grow

    def hash(self) -> None:
        """Take the messages so far into the prefix."""
        for message in self.turns[self._hashed :]:
            self.prefix.add(message)
        self._hashed = len(self.turns)

    def add_answer(self, message: Mapping[str, Any]) -> None:
        """Add what the model said; the messages before it are whole now, and go into the prefix."""
        self.hash()
        super().add_answer(message)

    def text(self, text: str) -> list[Part]:
        """Return a text; one without a word is left out."""
        return [{"type": "text", "text": text}] if text.strip() else []

    def media(self, kind: Any, part: Mapping[str, Any]) -> Part:
        """Return a part that is not text."""
        if kind == "image_url":
            url = image_of(part)["url"]
            found = data_in(url)
            source = {"type": "base64", "media_type": found[0], "data": found[2]} if found else None
            return {"type": "image", "source": source or {"type": "url", "url": url}}
        if kind == "file":
            return _document(part["file"])
        if kind == "input_audio":
            raise ConfigError("/v1/messages takes no audio. Ask a model that does, such as Gemini(…).")
        return dict(part)  # a block of the service's own

    def kept(self, parts: list[Part], prefix: str) -> list[Part]:
        """Return the blocks that came, without thinking that is bound to something else, and texts without a word."""
        # The service writes such texts, and refuses them.
        parts = [part for part in parts if part.get("type") != "text" or str(part.get("text") or "").strip()]
        if not self._is_bound or not prefix or prefix == self.prefix.value():
            return parts
        self.dropped = "what stands before the thinking has changed"
        return [part for part in parts if part.get("type") not in _THINKING]

    def said(self, content: Any, calls: list[Part]) -> list[Part]:
        """Return what the model said."""
        return [*self.parts(content), *calls]

    def call(self, call: ToolCall) -> Part:
        """Return a call."""
        own = call.id if _ID.fullmatch(call.id) else made_id(call.id)
        return {"type": "tool_use", "id": own, "name": call.function.name, "input": arguments_of(call)}

    def result(self, sent: Mapping[str, Any], content: Any, *, failed: bool) -> Part:
        """Return the result of a call."""
        blocks = content if isinstance(content, str) else self.parts(content)
        made = {"type": "tool_result", "tool_use_id": sent["id"], "content": blocks}
        return {**made, "is_error": True} if failed else made

    def is_in_thoughtless_round(self) -> bool:
        """Whether the conversation ends inside of a round of calls that began without thinking.

        Another service's calls have none, and the service wants it there once thinking is on.
        """
        first: Sequence[Part] = ()
        for message in reversed(self.turns):
            if message["role"] == "assistant":
                first = message["content"]
            elif any(block.get("type") != "tool_result" for block in message["content"]):
                break  # here the user speaks
        return bool(first) and first[0].get("type") not in _THINKING


def _document(file: Mapping[str, Any]) -> Part:
    title = {"title": file["filename"]} if file.get("filename") else {}
    if file.get("file_id"):
        return {"type": "document", "source": {"type": "file", "file_id": file["file_id"]}, **title}
    mime, form, data = data_in(str(file.get("file_data") or "")) or ("", "", "")
    if mime == "application/pdf":
        source = {"type": "base64", "media_type": mime, "data": data}
    elif mime.startswith("text/") or mime in {"application/json", "application/xml"}:
        source = {"type": "text", "media_type": "text/plain", "data": _plain(data, is_base64=";base64" in form)}
    else:
        raise ConfigError(f"/v1/messages takes PDF and plain text as files, not {mime or 'data of an unknown kind'}.")
    return {"type": "document", "source": source, **title}


def _plain(data: str, *, is_base64: bool) -> str:
    try:
        raw = base64.b64decode(data) if is_base64 else unquote_to_bytes(data)
    except ValueError:
        raise ConfigError("a file's data is not base64.") from None
    return raw.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class MessagesWire(Wire):
    """The wire ``/v1/messages``.

    Attributes:
        version: of the protocol, for the header `anthropic-version`.
        caches: the service is told where its prompt cache may begin.

    Source: https://docs.anthropic.com/en/api/messages
    """

    version: str = "2023-06-01"
    caches: bool = True

    name = WIRE
    request_path = "/v1/messages"
    models_path = "/v1/models"
    version_spoken: ClassVar[str] = "2023-06-01"
    reader = BlockReader
    parameters = frozenset({
        "betas", "cache_control", "container", "context_management", "inference_geo", "max_completion_tokens",
        "max_tokens", "mcp_servers", "metadata", "n", "output_config", "parallel_tool_calls",
        "reasoning_effort", "service_tier", "speed", "stop", "stop_sequences", "temperature", "thinking",
        "tool_choice", "top_k", "top_p", "user",
    })  # fmt: skip

    def request(self, asked: Asked, model_name: str, profile: Profile, *, stream: bool) -> WireRequest:
        """Return what goes out; raises what `Wire.request` does."""
        family = claude_family(model_name)
        history = BlockHistory(self.service, is_bound=family.is_bound)
        params = given_params(asked, history.called, _NO_WORD, "Leave it out for this model.")
        system, tools = history.system(asked.messages), [_tool(spec) for spec in asked.tools or ()]
        history.prefix.add(system)
        history.prefix.add(tools)
        history.write(asked.messages)
        history.hash()
        downgrades = history.downgrades("thinking blocks are")
        if history.tool_names and not tools:
            # The service refuses a history of calls without tools. What they took, the history shows.
            tools = [{"name": name, "input_schema": {"type": "object"}} for name in dict.fromkeys(history.tool_names)]
            params["tool_choice"] = "none"
        if not history.turns:
            raise UsageError("there is no message with a text to send, only a system prompt.")
        limit = params.pop("max_completion_tokens", params.pop("max_tokens", family.output))
        body: dict[str, Any] = {"model": model_name, "max_tokens": limit}
        if system:
            body["system"] = [{"type": "text", "text": system}]
        if tools:
            body["tools"] = tools
        body["messages"] = history.turns
        if asked.response_format is not None:
            body["output_config"] = {"format": _format(asked.response_format)}
        _set_thinking(body, params.pop("thinking", None), family, model_name)
        if body.get("thinking", {}).get("type") == "enabled" and history.is_in_thoughtless_round():
            body["thinking"] = {"type": "disabled"}
            downgrades.append(("thinking: off for this turn", "the calls of this round came without any thinking"))
        choice, is_parallel = params.pop("tool_choice", None), params.pop("parallel_tool_calls", None)
        if tools and profile.tool_choice:
            _set_choice(body, choice, is_parallel, family, downgrades)
        if _NO_SAMPLING <= self.version < "3":  # others begin with a word, such as Vertex's
            downgrades += omitted(params, f"version {self.version} takes no sampling parameters")
        _set_sampling(body, params, family, downgrades)
        headers = {"anthropic-version": self.version}
        if betas := params.pop("betas", None):
            headers["anthropic-beta"] = betas if isinstance(betas, str) else ",".join(dict.fromkeys(betas))
        _set_rest(body, params)
        if stream:
            body["stream"] = True
        if self.caches:
            _mark(body)
        return WireRequest(self.request_path, body, headers, Kept(history.prefix.value()), downgrades)

    def auth(self, key: str) -> Mapping[str, str]:
        """Return the header that carries the key."""
        return {"x-api-key": key}


def _tool(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool in the wire's form; one of the service's own goes as it is."""
    function = spec.get("function")
    if not isinstance(function, Mapping):
        fits = isinstance(spec.get("name"), str) and isinstance(spec.get("type"), str)
        return own_tool(spec, '{"type": "web_search_20250305", "name": "web_search"}', fits=fits)
    schema = dict(function.get("parameters") or {"type": "object", "properties": {}})
    tool = {"name": function["name"], **described(function)}
    if function.get("strict"):
        return {**tool, "input_schema": _fit_schema(schema), "strict": True}
    return {**tool, "input_schema": {"type": "object", **schema}}


def _format(response_format: Mapping[str, Any]) -> dict[str, Any]:
    if response_format.get("type") != "json_schema":
        raise ConfigError(
            f"/v1/messages has no response_format {response_format.get('type')!r}. Give a JSON schema, or leave it out."
        )
    return {"type": "json_schema", "schema": _fit_schema(response_format["json_schema"]["schema"])}


def _fit_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON schema without what the service refuses: objects are closed, `oneOf` is `anyOf`, constraints are told.

    Source: design notes on the wires, section 9, from Anthropic's page on structured outputs.
    """
    made: dict[str, Any] = {}
    told: dict[str, Any] = {}
    for name, value in schema.items():
        is_unknown_format = name == "format" and value not in _FORMATS
        if name in _TOLD or is_unknown_format or (name == "minItems" and value not in {0, 1}):
            told[name] = value
        elif name in {"default", "title", "examples", "discriminator"}:
            continue
        elif name in {"oneOf", "anyOf", "allOf", "prefixItems"}:
            made["anyOf" if name == "oneOf" else name] = [_fit_schema(part) for part in value]
        elif name in {"properties", "$defs", "definitions"}:
            made[name] = {key: _fit_schema(part) for key, part in value.items()}
        elif name == "items" and isinstance(value, Mapping):
            made[name] = _fit_schema(value)
        else:
            made[name] = value
    if made.get("type") == "object":
        made["additionalProperties"] = False
    if told:
        said = ", ".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in told.items())
        made["description"] = f"{made['description']} {{{said}}}" if made.get("description") else f"{{{said}}}"
    return {"$ref": made["$ref"]} if "$ref" in made else made


def _set_thinking(body: dict[str, Any], thinking: Any, family: ClaudeFamily, model_name: str) -> None:
    """Write `thinking` in the words that the model has."""
    if thinking is None:
        return
    if isinstance(thinking, Mapping):  # in the wire's own form
        body["thinking"] = dict(thinking)
        return
    takes_budget, takes_effort = family.thinking in {"budget", "both"}, family.thinking in {"adaptive", "both"}
    words, least = EFFORTS if takes_budget or takes_effort else (), _LEAST_BUDGET if takes_budget else None
    said = thinking_of(thinking, model_name, words=words, off=family.off is not None, least_budget=least)
    if said == "off":
        if words:
            body["thinking"] = {"type": family.off}
    elif takes_effort and said in EFFORTS:
        body["thinking"] = {"type": "adaptive", "display": "summarized"}
        body["output_config"] = {**body.get("output_config", {}), "effort": said}
    else:
        budget = budget_of(said)
        body["thinking"] = {"type": "enabled", "budget_tokens": budget}
        # The limit holds for thinking and answer together.
        if body["max_tokens"] <= budget:
            body["max_tokens"] = min(budget + max(body["max_tokens"], _ANSWER_TOKENS), max(family.output, budget + 1))


def _set_choice(
    body: dict[str, Any], choice: Any, is_parallel: Any, family: ClaudeFamily, downgrades: Downgrades
) -> None:
    """Write which tools may, must or must not be called."""
    wanted = dict(choice) if isinstance(choice, Mapping) else {}
    if name := forced_tool(choice):
        wanted = {"type": "tool", "name": name}
    elif isinstance(choice, str):
        wanted = {"type": "any" if choice == "required" else choice}
    has_budget = body.get("thinking", {}).get("type") == "enabled"
    if wanted.get("type") in {"any", "tool"} and (not family.forced or has_budget):
        why = "with a budget for thinking" if family.forced else "of this model"
        downgrades.append(("tools: no tool is forced", f"no call {why} can be forced"))
        wanted = {"type": "auto"}
    if is_parallel is False and wanted.get("type") != "none":
        wanted = {"type": "auto", **wanted, "disable_parallel_tool_use": True}
    if wanted:
        body["tool_choice"] = wanted


def _set_sampling(body: dict[str, Any], params: dict[str, Any], family: ClaudeFamily, downgrades: Downgrades) -> None:
    """Write the sampling parameters that the model takes; the others are left out, and told."""
    if not family.sampling:
        downgrades += omitted(params, "this model takes no sampling parameters")
    elif body.get("thinking", {}).get("type") in {"enabled", "adaptive"}:
        names = ("top_p", "top_k") if params.get("temperature") == 1 else ("temperature", "top_p", "top_k")
        downgrades += omitted(params, "a model that thinks takes none", names)


def _set_rest(body: dict[str, Any], params: dict[str, Any]) -> None:
    """Write the other parameters; those that other wires know, in the words of this one."""
    for name, value in params.items():
        own, said = name, value
        if name == "stop":
            texts = [value] if isinstance(value, str) else list(value)
            own, said = "stop_sequences", [text for text in texts if text.strip()]
        elif name == "user":
            own, said = "metadata", {"user_id": value}
        elif name == "reasoning_effort":
            own, said = "output_config", {"effort": value}
        old = body.get(own)
        body[own] = {**old, **said} if isinstance(old, dict) and isinstance(said, dict) else said


def _mark(body: dict[str, Any]) -> None:
    """Set the breakpoints of the prompt cache: behind the tools, the system prompt, and the last whole exchange."""
    for name in {"tools", "system"} & body.keys():
        body[name] = [*body[name][:-1], _marked(body[name][-1])]
    body["messages"] = _with_last(body["messages"], _ends_exchange, _with_mark)


def _with_last(parts: list[Part], fits: Callable[[Part], bool], made: Callable[[Part], Part]) -> list[Part]:
    """Return the parts, with what is `made` of the last one that fits in its place."""
    place = next((index for index in reversed(range(len(parts))) if fits(parts[index])), None)
    return parts if place is None else [*parts[:place], made(parts[place]), *parts[place + 1 :]]


def _marked(part: Part) -> Part:
    return {**part, "cache_control": {"type": "ephemeral"}}


def _with_mark(message: Part) -> Part:
    return {**message, "content": _with_last(message["content"], _can_be_marked, _marked)}


def _ends_exchange(message: Mapping[str, Any]) -> bool:
    blocks = message["content"]
    if message["role"] == "assistant":
        return not any(block.get("type") == "tool_use" for block in blocks)
    return all(block.get("type") == "tool_result" for block in blocks)


def _can_be_marked(block: Mapping[str, Any]) -> bool:
    return block.get("type") in ("text", "tool_result")
