"""What our tests, our documentation and our users' tests share.

Names are loaded on first use, so that the pytest plugin costs nothing where it is not used.
`SimpleLLMFunc.testing.contract` holds the suite that every `LLM_Interface` passes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from SimpleLLMFunc.interface.attempts import forbid_real_calls
    from SimpleLLMFunc.testing.answering import tool_calls
    from SimpleLLMFunc.testing.cassettes import Cassette, RecordMode, use_cassette
    from SimpleLLMFunc.testing.schema_filled import SchemaLLM
    from SimpleLLMFunc.testing.scripted import ScriptedLLM, ScriptedRequest, answer, when
    from SimpleLLMFunc.testing.unmatched import UnmatchedRequest

__all__ = [
    "Cassette",
    "RecordMode",
    "SchemaLLM",
    "ScriptedLLM",
    "ScriptedRequest",
    "UnmatchedRequest",
    "answer",
    "forbid_real_calls",
    "tool_calls",
    "use_cassette",
    "when",
]

_MODULE_OF = {
    "Cassette": "SimpleLLMFunc.testing.cassettes.cassette",
    "RecordMode": "SimpleLLMFunc.testing.cassettes.cassette",
    "SchemaLLM": "SimpleLLMFunc.testing.schema_filled",
    "ScriptedLLM": "SimpleLLMFunc.testing.scripted",
    "ScriptedRequest": "SimpleLLMFunc.testing.scripted",
    "UnmatchedRequest": "SimpleLLMFunc.testing.unmatched",
    "answer": "SimpleLLMFunc.testing.scripted",
    "forbid_real_calls": "SimpleLLMFunc.interface.attempts.guard",
    "tool_calls": "SimpleLLMFunc.testing.answering",
    "use_cassette": "SimpleLLMFunc.testing.cassettes.cassette",
    "when": "SimpleLLMFunc.testing.scripted",
}


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value  # found at once the next time
    return value
