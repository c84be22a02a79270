"""What a provider can do, and wants: one row per provider."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.utils import set_fields


@dataclass(frozen=True, slots=True)
class Profile:
    """The features of a provider that decide what is sent.

    Attributes:
        name: short name, also what `profile="name"` finds.
        native: it takes `response_format` with a JSON schema.
        strict: it takes only the strict subset (every key required, no additional properties, few keywords).
        tools: "native" tool calls, or "json" (asked for a JSON action instead).
        tool_choice: it honours `tool_choice`.
        stream_usage: it takes `stream_options={"include_usage": true}`.
        keep_reasoning: reasoning has to go back in the history.
        schema_with_tools: it takes a schema for the answer and the function's own tools in one request.
        max_tokens_field: the name under which it takes the limit of output tokens.
        short_prompt: it is a small model, which a short prompt serves better, and the bare labels of a choice.
        grammar: it takes a grammar in the parameter `grammar`.
        logprobs: the most `top_logprobs` that it gives; 0 for a service that gives no log-probabilities.
        forces_tools: it can be made to call a tool; without it, `tool_choice` only says that none may be called.
    """

    name: str = "generic"
    native: bool = False
    strict: bool = False
    tools: Literal["native", "json"] = "native"
    tool_choice: bool = True
    stream_usage: bool = True
    keep_reasoning: bool = False
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    schema_with_tools: bool = True
    short_prompt: bool = False
    grammar: bool = False
    logprobs: int = 0
    forces_tools: bool = True

    __setstate__ = set_fields


GENERIC = Profile()
"""Nothing is known: types are described in the prompt, tools are called natively."""

_NATIVE = "openrouter gemini mistral together fireworks xai vertex bedrock azure-foundry"
_NOT_NATIVE = "groq qwen zhipu siliconflow volcengine anthropic"

PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        GENERIC,
        # An address we do not know speaks the protocol; what it refuses is asked for in the next mode.
        Profile("openai-compatible", native=True),
        Profile("openai", native=True, strict=True, max_tokens_field="max_completion_tokens", logprobs=20),
        Profile("azure", native=True, strict=True, max_tokens_field="max_completion_tokens", logprobs=20),
        # A label may be the 700th of the likeliest first tokens where a model of 270 million parameters echoes its prompt.
        Profile("local", native=True, tools="json", tool_choice=False, short_prompt=True, grammar=True, logprobs=1000),
        Profile("llama.cpp", native=True, tool_choice=False, grammar=True, logprobs=1000),
        Profile("ollama", native=True, tool_choice=False),
        Profile("vllm", native=True, logprobs=20),
        # These two refuse a history of tool calls whose reasoning was left out.
        Profile("deepseek", keep_reasoning=True, logprobs=20),
        Profile("moonshot", keep_reasoning=True),
        *(Profile(name, native=True) for name in _NATIVE.split()),
        *(Profile(name) for name in _NOT_NATIVE.split()),
    )
}

_HOSTS = {
    "openai": "api.openai.com", "azure": "openai.azure.com", "azure-foundry": "services.ai.azure.com",
    "openrouter": "openrouter.ai", "gemini": "generativelanguage.googleapis.com",
    "vertex": "googleapis.com",  # us-central1-aiplatform.googleapis.com and its like
    "bedrock": "amazonaws.com", "mistral": "api.mistral.ai", "groq": "api.groq.com",
    "together": "api.together.xyz api.together.ai", "fireworks": "api.fireworks.ai", "xai": "api.x.ai",
    "deepseek": "api.deepseek.com", "moonshot": "api.moonshot.cn api.moonshot.ai", "zhipu": "open.bigmodel.cn",
    "qwen": "dashscope.aliyuncs.com dashscope-intl.aliyuncs.com", "siliconflow": "api.siliconflow.cn",
    "volcengine": "ark.cn-beijing.volces.com", "anthropic": "api.anthropic.com",
}  # fmt: skip
"""The hosts of each provider, with all below them; the first that fits counts."""

_OLLAMA_PORT = 11434


def find_profile(profile: Profile | str | None, base_url: str) -> Profile:
    """Return the profile asked for, else the one of the host in `base_url`, else "openai-compatible".

    Raises:
        ConfigError: no profile has that name.
    """
    if isinstance(profile, Profile):
        return profile
    if profile is not None:
        if profile not in PROFILES:
            raise ConfigError(f"no profile is named {profile!r}. Known: {', '.join(sorted(PROFILES))}.")
        return PROFILES[profile]
    parts = urlsplit(base_url)
    host = (parts.hostname or "").lower()
    for name, hosts in _HOSTS.items():
        if any(host == known or host.endswith("." + known) for known in hosts.split()):
            return PROFILES[name]
    if host in {"localhost", "127.0.0.1", "::1"} and parts.port == _OLLAMA_PORT:
        return PROFILES["ollama"]
    return PROFILES["openai-compatible"]
