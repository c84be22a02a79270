"""How a model is reached: the interface, the providers, and what guards the way there.

| module | holds |
|---|---|
| `llm_interface` | `LLM_Interface`: the two methods that make a provider |
| `openai_compatible`, `http_model` | `OpenAICompatible`; the tries of its calls |
| `transport`, `heads`, `url` | one HTTP exchange |
| `sessions`, `connecting`, `connection`, `incoming`, `unpack`, `wire_errors` | the connections of an event loop, and what goes over them |
| `request`, `replies`, `sse`, `assembler`, `nesting`, `dialect`, `wire_json` | what goes out, and how what comes back is read |
| `retry`, `service_error`, `deadline`, `patience`, `alarm` | what is tried again, and how long all of it may take |
| `key_pool`, `rate_limit`, `limits`, `rate_headers`, `tokens` | keys and limits, told and learned |
| `circuit`, `pace` | what all calls of one model know about its service being down or busy |
| `fallback`, `question`, `hedge` | `FallbackLLM`: the next model when one is down, a second request when one is late |
| `cache`, `cache_store`, `flights` | `CachedLLM`: answers kept in a file |
| `budget`, `cost` | what may be spent, and what was |
| `current`, `guard` | which model a call asks, and whether it may |
| `local_model`, `local_server`, `weights`, `wheel` | a model inside this process, and how its weights come here |

The names below are loaded on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from SimpleLLMFunc.interface.attempts.guard import forbid_real_calls
    from SimpleLLMFunc.interface.attempts.key_pool import APIKeyPool
    from SimpleLLMFunc.interface.attempts.token_bucket import TokenBucket
    from SimpleLLMFunc.interface.composite.cache import CachedLLM
    from SimpleLLMFunc.interface.composite.fallback import FallbackLLM
    from SimpleLLMFunc.interface.current import use_llm
    from SimpleLLMFunc.interface.llm_interface import LLM_Interface
    from SimpleLLMFunc.interface.local.local_model import LocalModel
    from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
    from SimpleLLMFunc.interface.profile import Profile
    from SimpleLLMFunc.interface.spending.deadline import Deadline, deadline_scope

__all__ = [
    "APIKeyPool",
    "CachedLLM",
    "Deadline",
    "FallbackLLM",
    "LLM_Interface",
    "LocalModel",
    "OpenAICompatible",
    "Profile",
    "TokenBucket",
    "deadline_scope",
    "forbid_real_calls",
    "use_llm",
]

_HOMES = {
    "APIKeyPool": "attempts.key_pool",
    "CachedLLM": "composite.cache",
    "Deadline": "spending.deadline",
    "FallbackLLM": "composite.fallback",
    "LLM_Interface": "llm_interface",
    "LocalModel": "local.local_model",
    "OpenAICompatible": "openai_compatible",
    "Profile": "profile",
    "TokenBucket": "attempts.token_bucket",
    "deadline_scope": "spending.deadline",
    "forbid_real_calls": "attempts.guard",
    "use_llm": "current",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
