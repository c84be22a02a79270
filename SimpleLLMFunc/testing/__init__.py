"""What our tests, our documentation and our users' tests share.

Names are loaded on first use, so that the pytest plugin costs nothing where it is not used.
`SimpleLLMFunc.testing.contract` holds the suite that every `LLM_Interface` passes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from SimpleLLMFunc.interface.attempts import forbid_real_calls
    from SimpleLLMFunc.testing.cassette import Cassette, RecordMode, use_cassette
    from SimpleLLMFunc.testing.requests import UnmatchedRequest, tool_calls
    from SimpleLLMFunc.testing.schema_filled import SchemaLLM
    from SimpleLLMFunc.testing.scripted import ScriptedLLM, ScriptedRequest, answer, when

__all__ = [
    "Cassette", "RecordMode", "SchemaLLM", "ScriptedLLM", "ScriptedRequest", "UnmatchedRequest", "answer",
    "forbid_real_calls", "tool_calls", "use_cassette", "when",
]  # fmt: skip

_NAMES_OF = {
    "SimpleLLMFunc.interface.attempts.guard": "forbid_real_calls",
    "SimpleLLMFunc.testing.cassette": "Cassette RecordMode use_cassette",
    "SimpleLLMFunc.testing.requests": "UnmatchedRequest tool_calls",
    "SimpleLLMFunc.testing.schema_filled": "SchemaLLM",
    "SimpleLLMFunc.testing.scripted": "ScriptedLLM ScriptedRequest answer when",
}
_MODULE_OF = {name: module for module, names in _NAMES_OF.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value  # found at once the next time
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
