"""``with`` blocks that say so where they are used as a decorator that would end too early."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from contextlib import _GeneratorContextManager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from SimpleLLMFunc.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
T = TypeVar("T")


class _Block(_GeneratorContextManager[T]):
    def __call__(self, func: F) -> F:
        kinds = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
        if not hasattr(func, "__code__") or any(kind(func) for kind in kinds):
            raise UsageError(
                f"as a decorator, {self.func.__name__}(...) would end before {func!r} has run. Write a with block inside it."
            )
        return super().__call__(func)

    def __enter__(self) -> T:
        if not hasattr(self, "args"):  # contextlib takes them away at the first use
            raise UsageError(
                "this block has been entered already. Make a new one for each `with`, as in `with budget(...):`."
            )
        return super().__enter__()


def block(func: Callable[P, Generator[T, None, None]]) -> Callable[P, _Block[T]]:
    """Return what `contextlib.contextmanager` does; as a decorator it takes plain functions only."""

    @wraps(func)
    def begun(*args: P.args, **kwargs: P.kwargs) -> _Block[T]:
        return _Block(func, args, kwargs)

    return begun
