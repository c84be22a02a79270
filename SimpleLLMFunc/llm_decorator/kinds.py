"""The kinds of objects that the decorators return, their pipelines, and which of them a module offers."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final, TypeAlias, TypeGuard, get_args

from SimpleLLMFunc.llm_decorator.answering import Answers
from SimpleLLMFunc.llm_decorator.chat_pipeline import ChatPipeline
from SimpleLLMFunc.llm_decorator.decorated import (
    AsyncLLMChat,
    AsyncLLMFunction,
    AsyncLLMStream,
    LLMChat,
    LLMFunction,
    LLMStream,
)
from SimpleLLMFunc.llm_decorator.function_pipeline import FunctionPipeline
from SimpleLLMFunc.llm_decorator.mapped import MappedFunction
from SimpleLLMFunc.type import Audio, File, ImgPath

STREAMS: Final = (AsyncLLMStream, LLMStream)
FUNCTIONS: Final = (AsyncLLMFunction, LLMFunction, *STREAMS)
CHATS: Final = (AsyncLLMChat, LLMChat)

Function: TypeAlias = (
    AsyncLLMFunction[..., Any] | LLMFunction[..., Any] | AsyncLLMStream[..., Any] | LLMStream[..., Any]
)
"""The objects that `@llm_function` returns."""

Chat: TypeAlias = AsyncLLMChat[..., Any] | LLMChat[..., Any]
"""The objects that `@llm_chat` returns."""

FILES: Final = (ImgPath, Audio, File)
"""Types that are made of the path of a file."""


def is_function(thing: object) -> TypeGuard[Function]:
    """Say whether a thing is what `@llm_function` returns."""
    return isinstance(thing, FUNCTIONS)


def pipeline_of(function: Function) -> FunctionPipeline:
    """Return what a function is made of."""
    return function._pipeline  # noqa: SLF001 - here rooms above see what is behind a decorated function


def chat_pipeline_of(chat: Chat) -> ChatPipeline:
    """Return what a chat is made of."""
    return chat._pipeline  # noqa: SLF001 - the same


def answers_of(function: Function) -> Answers:
    """Return what answers the calls of a function; its arguments are without the instance."""
    return function._answered_by()  # noqa: SLF001 - the same


def mapped(function: Function) -> MappedFunction[Any]:
    """Return a function as a map knows it.

    Raises:
        UsageError: it is a method without an instance.
    """
    return function._mapped()  # noqa: SLF001 - the same


def lacks_instance(function: Function | Chat) -> bool:
    """Say whether it is a method without an instance."""
    return function._lacks_instance  # noqa: SLF001 - the same


def is_offered(module: ModuleType, name: str, home: str) -> bool:
    """Say whether what a module calls `name` is for others: what its `__all__` lists, else what is public and its own.

    Args:
        module: that holds it.
        name: under which.
        home: the name of the module where it was written.
    """
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return name in listed
    # A package shows what its modules hold.
    return not name.startswith("_") and (home == module.__name__ or home.startswith(f"{module.__name__}."))


def takes_a_file(hint: Any) -> bool:
    """Say whether a parameter of this type takes the path of a file: a caller from outside must not name any."""
    return hint in FILES or any(map(takes_a_file, get_args(hint)))
