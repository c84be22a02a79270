"""Functions whose body is a model: `@llm_function` and `@llm_chat`."""

from SimpleLLMFunc.llm_decorator.decorated import (
    AsyncLLMChat,
    AsyncLLMFunction,
    AsyncLLMStream,
    LLMChat,
    LLMFunction,
    LLMStream,
)
from SimpleLLMFunc.llm_decorator.definition import fill
from SimpleLLMFunc.llm_decorator.llm_chat_decorator import async_llm_chat, llm_chat
from SimpleLLMFunc.llm_decorator.llm_function_decorator import async_llm_function, llm_function

__all__ = [
    "AsyncLLMChat", "AsyncLLMFunction", "AsyncLLMStream", "LLMChat", "LLMFunction", "LLMStream", "answering",
    "async_llm_chat", "async_llm_function", "calibrated", "chat_pipeline", "decorated", "fill", "function_pipeline",
    "improving", "llm_chat", "llm_function", "mapped", "steps",
]  # fmt: skip
