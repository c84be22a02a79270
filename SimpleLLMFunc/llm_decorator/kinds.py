"""The kinds of objects that the decorators return, and which of them a module offers to callers from outside."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final, TypeAlias, get_args

from SimpleLLMFunc.llm_decorator.decorated import (
    AsyncLLMChat,
    AsyncLLMFunction,
    AsyncLLMStream,
    LLMChat,
    LLMFunction,
    LLMStream,
)
from SimpleLLMFunc.type import Audio, File, ImgPath

__all__ = ["CHATS", "FILES", "FUNCTIONS", "STREAMS", "Chat", "Function", "is_offered", "takes_a_file"]

STREAMS: Final = (AsyncLLMStream, LLMStream)
FUNCTIONS: Final = (AsyncLLMFunction, LLMFunction, *STREAMS)
CHATS: Final = (AsyncLLMChat, LLMChat)

Function: TypeAlias = (
    AsyncLLMFunction[..., Any] | LLMFunction[..., Any] | AsyncLLMStream[..., Any] | LLMStream[..., Any]
)
"""What `@llm_function` returns."""

Chat: TypeAlias = AsyncLLMChat[..., Any] | LLMChat[..., Any]
"""What `@llm_chat` returns."""

FILES: Final = (ImgPath, Audio, File)
"""Types that are made of the path of a file."""


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
