"""A typed, documented Python function becomes a call to a language model.

The names are loaded on first use, so that importing the package costs nothing that is not used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from SimpleLLMFunc._version import __version__ as __version__
from SimpleLLMFunc.errors import (
    AuthenticationError,
    BadReply,
    BadRequest,
    BudgetExceeded,
    CallError,
    CheckpointError,
    ConfigError,
    ConnectionFailed,
    ContentBlocked,
    ContextTooLong,
    DeadlineExceeded,
    EmptyResponseError,
    OutcomeUnknown,
    OutputTruncated,
    ProviderError,
    RateLimited,
    ResponseParseError,
    RunAborted,
    RunError,
    RunPaused,
    SchemaError,
    ServerUnavailable,
    SignatureError,
    SimpleLLMFuncError,
    StreamInterrupted,
    TemplateError,
    ToolCallLimitExceeded,
    ToolDefinitionError,
    ToolFailed,
    UsageError,
)

if TYPE_CHECKING:
    from SimpleLLMFunc.assistant import AIAssistant, ToolInvoker
    from SimpleLLMFunc.base.events import ReActEvent
    from SimpleLLMFunc.base.parsing import Parsed
    from SimpleLLMFunc.base.post_process import parse_text
    from SimpleLLMFunc.base.run import AbortSignal, Preview, Result, watching
    from SimpleLLMFunc.batch import MapReport
    from SimpleLLMFunc.interface.anthropic import Anthropic
    from SimpleLLMFunc.interface.attempts import APIKeyPool, TokenBucket, forbid_real_calls
    from SimpleLLMFunc.interface.composite import CachedLLM, FallbackLLM
    from SimpleLLMFunc.interface.current import use_llm
    from SimpleLLMFunc.interface.gemini import Gemini
    from SimpleLLMFunc.interface.llm_interface import LLM_Interface
    from SimpleLLMFunc.interface.local import LocalModel
    from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
    from SimpleLLMFunc.interface.spending import budget
    from SimpleLLMFunc.journal import durable, forget, pause_run, paused
    from SimpleLLMFunc.llm_decorator import async_llm_chat, async_llm_function, fill, llm_chat, llm_function
    from SimpleLLMFunc.observability.otel import SpanSink, setup_tracing
    from SimpleLLMFunc.observability.store import TraceStore
    from SimpleLLMFunc.tools import ModelRetry, Tool, ToolContext, tool
    from SimpleLLMFunc.type import (
        ABSTAIN,
        Abstain,
        Audio,
        ChatPair,
        Confident,
        File,
        ImgPath,
        ImgUrl,
        Message,
        Quoted,
        Text,
        Usage,
    )

_HOME = {
    "SimpleLLMFunc.assistant": "AIAssistant ToolInvoker",
    "SimpleLLMFunc.base.events": "ReActEvent",
    "SimpleLLMFunc.base.parsing": "Parsed",
    "SimpleLLMFunc.base.post_process": "parse_text",
    "SimpleLLMFunc.base.run": "AbortSignal Preview Result watching",
    "SimpleLLMFunc.batch": "MapReport",
    "SimpleLLMFunc.interface.anthropic": "Anthropic",
    "SimpleLLMFunc.interface.attempts": "APIKeyPool TokenBucket forbid_real_calls",
    "SimpleLLMFunc.interface.composite": "CachedLLM FallbackLLM",
    "SimpleLLMFunc.interface.current": "use_llm",
    "SimpleLLMFunc.interface.gemini": "Gemini",
    "SimpleLLMFunc.interface.llm_interface": "LLM_Interface",
    "SimpleLLMFunc.interface.local": "LocalModel",
    "SimpleLLMFunc.interface.openai_compatible": "OpenAICompatible",
    "SimpleLLMFunc.interface.spending": "budget",
    "SimpleLLMFunc.journal": "durable forget pause_run paused",
    "SimpleLLMFunc.llm_decorator": "async_llm_chat async_llm_function fill llm_chat llm_function",
    "SimpleLLMFunc.observability.otel": "SpanSink setup_tracing",
    "SimpleLLMFunc.observability.store": "TraceStore",
    "SimpleLLMFunc.tools": "ModelRetry Tool ToolContext tool",
    "SimpleLLMFunc.type": "ABSTAIN Abstain Audio ChatPair Confident File ImgPath ImgUrl Message Quoted Text Usage",
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names.split()}

__all__ = [
    "ABSTAIN", "AIAssistant", "APIKeyPool", "AbortSignal", "Abstain", "Anthropic", "Audio",
    "AuthenticationError", "BadReply", "BadRequest", "BudgetExceeded", "CachedLLM", "CallError", "ChatPair",
    "CheckpointError", "Confident", "ConfigError", "ConnectionFailed", "ContentBlocked", "ContextTooLong",
    "DeadlineExceeded", "EmptyResponseError", "FallbackLLM", "File", "Gemini", "ImgPath", "ImgUrl",
    "LLM_Interface", "LocalModel", "MapReport", "Message", "ModelRetry", "OpenAICompatible", "OutcomeUnknown",
    "OutputTruncated", "Parsed", "Preview", "ProviderError", "Quoted", "RateLimited", "ReActEvent",
    "ResponseParseError", "Result", "RunAborted", "RunError", "RunPaused", "SchemaError", "ServerUnavailable",
    "SignatureError", "SimpleLLMFuncError", "SpanSink", "StreamInterrupted", "TemplateError", "Text",
    "TokenBucket", "Tool", "ToolCallLimitExceeded", "ToolContext", "ToolDefinitionError", "ToolFailed",
    "ToolInvoker", "TraceStore", "Usage", "UsageError", "async_llm_chat", "async_llm_function", "budget",
    "durable", "fill", "forbid_real_calls", "forget", "llm_chat", "llm_function", "parse_text", "pause_run",
    "paused", "setup_tracing", "tool", "use_llm", "watching",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value  # found at once the next time
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
