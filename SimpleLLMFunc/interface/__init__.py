"""How a model is reached.

`llm_interface` says what a model is; `openai_compatible` and `local` are such models, `composite` makes models of models, and
`current` says which one a call asks. A request goes through `attempts` (retries, keys, limits), which use `http` for one
exchange and `wires` for what is sent and read; `spending` counts what it takes. `profile` tells what services can do.

Of the first list, the names that are the package's own come from there on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from SimpleLLMFunc.interface.profile import Profile
from SimpleLLMFunc.interface.spending import Deadline, deadline_scope

if TYPE_CHECKING:
    from SimpleLLMFunc.interface.anthropic import Anthropic
    from SimpleLLMFunc.interface.attempts import APIKeyPool, TokenBucket, forbid_real_calls
    from SimpleLLMFunc.interface.composite import CachedLLM, FallbackLLM
    from SimpleLLMFunc.interface.current import use_llm
    from SimpleLLMFunc.interface.gemini import Gemini
    from SimpleLLMFunc.interface.llm_interface import LLM_Interface
    from SimpleLLMFunc.interface.local import LocalModel
    from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible

__all__ = [
    "APIKeyPool", "Anthropic", "CachedLLM", "Deadline", "FallbackLLM", "Gemini", "LLM_Interface", "LocalModel",
    "OpenAICompatible", "Profile", "TokenBucket", "deadline_scope", "forbid_real_calls", "use_llm",
]  # fmt: skip

_FRONT_DOOR = frozenset(__all__)

__all__ += [
    "anthropic", "attempts", "body_json", "composite", "current", "failed_attempt", "gemini", "http",
    "llm_interface", "local", "openai_compatible", "profile", "service_model", "spending", "wires",
]  # fmt: skip  # for other rooms


def __getattr__(name: str) -> Any:
    if name not in _FRONT_DOOR:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("SimpleLLMFunc"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
