"""Functions under the decorator, for tests in which only their model, their type and their name matter."""

from __future__ import annotations

from typing import Any

from SimpleLLMFunc import llm_function


def function_of(llm: Any, returns: Any = str, name: str = "ask", **options: Any) -> Any:
    """Return a function that asks a model about a text."""

    def ask(text: str) -> Any:
        """Answer."""
        raise NotImplementedError

    return _decorated(ask, llm, returns, name, options)


def async_function_of(llm: Any, returns: Any = str, name: str = "ask", **options: Any) -> Any:
    """Return the same as a coroutine function."""

    async def ask(text: str) -> Any:
        """Answer."""
        raise NotImplementedError

    return _decorated(ask, llm, returns, name, options)


def _decorated(function: Any, llm: Any, returns: Any, name: str, options: dict[str, Any]) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__annotations__ = {"text": str, "return": returns}
    return llm_function(llm_interface=llm, **options)(function)
