"""The objects that the decorators return: a function, and its views.

Each class is a typed face of a pipeline: it keeps the parameters and the return type of the function it
replaces, for a call and for every view. The classes of sync functions put the bridge (`runtime/sync.py`) in front;
there is no second implementation behind them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Coroutine, Iterator
from typing import Any, Concatenate, Generic, NoReturn, ParamSpec, Self, TypeVar, overload

from SimpleLLMFunc.base.events import ReActEvent
from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.llm_decorator.answering import Answers
from SimpleLLMFunc.llm_decorator.chat_pipeline import ChatPipeline
from SimpleLLMFunc.llm_decorator.function_pipeline import FunctionPipeline
from SimpleLLMFunc.llm_decorator.function_views import AsyncFunctionViews, SyncFunctionViews
from SimpleLLMFunc.llm_decorator.views import Views, view
from SimpleLLMFunc.logger import border
from SimpleLLMFunc.runtime import iterate_sync, run_sync

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")


def fill() -> NoReturn:
    """Mark the body of a decorated function.

    Write ``return fill()``; to a type checker the function then returns what it promises.

    Raises:
        UsageError: it was run, so the function around it is not decorated.
    """
    raise UsageError("fill() marks a body for a model to fill. Put @llm_function or @llm_chat on the function.")


class AsyncLLMFunction(AsyncFunctionViews[P, R], Generic[P, R]):
    """A coroutine function whose body is a model."""

    def __init__(self, pipeline: FunctionPipeline, instance: Any = None, answers: Answers | None = None) -> None:
        super().__init__(pipeline, instance, answers)
        # inspect looks for these before it believes that an object is a coroutine function.
        for name in ("__code__", "__defaults__", "__kwdefaults__"):
            setattr(self, name, getattr(pipeline.definition.func, name, None))

    @border
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        """Ask the model; the value when awaited.

        Raises:
            SignatureError: the arguments do not fit the function.
        """
        answers, given = self._called(args)
        return self._named(answers.value(given, kwargs))

    @view
    @border
    def stream(self, *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[R, None]:
        """Yield growing values, the last one complete; for `str` each new piece of text."""
        answers, given = self._called(args)
        return answers.stream(given, kwargs)

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(
        self: AsyncLLMFunction[Concatenate[S, Q], R], instance: S, owner: type | None = None
    ) -> AsyncLLMFunction[Q, R]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self._bind(instance, owner)


class LLMFunction(SyncFunctionViews[P, R], Generic[P, R]):
    """A function whose body is a model; also works inside a running event loop."""

    @border
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Ask the model and return the value.

        Raises:
            SignatureError: the arguments do not fit the function.
        """
        answers, given = self._called(args)
        value: R = run_sync(answers.value(given, kwargs))
        return value

    @view
    @border
    def stream(self, *args: P.args, **kwargs: P.kwargs) -> Iterator[R]:
        """Yield growing values, the last one complete; for `str` each new piece of text."""
        answers, given = self._called(args)
        return iterate_sync(answers.stream(given, kwargs))

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(
        self: LLMFunction[Concatenate[S, Q], R], instance: S, owner: type | None = None
    ) -> LLMFunction[Q, R]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self._bind(instance, owner)


class AsyncLLMStream(AsyncFunctionViews[P, list[T]], Generic[P, T]):
    """A function annotated `-> AsyncIterator[T]`: each item as soon as it is complete."""

    _is_streamed = True

    @border
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[T, None]:
        """Yield the items as they arrive, each complete and validated."""
        return self._pipeline.items(self._without_instance(args), kwargs)

    stream = view(__call__)

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(
        self: AsyncLLMStream[Concatenate[S, Q], T], instance: S, owner: type | None = None
    ) -> AsyncLLMStream[Q, T]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self._bind(instance, owner)


class LLMStream(SyncFunctionViews[P, list[T]], Generic[P, T]):
    """A function annotated `-> Iterator[T]`: each item as soon as it is complete."""

    _is_streamed = True

    @border
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        """Yield the items as they arrive, each complete and validated."""
        return iterate_sync(self._pipeline.items(self._without_instance(args), kwargs))

    stream = view(__call__)

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self: LLMStream[Concatenate[S, Q], T], instance: S, owner: type | None = None) -> LLMStream[Q, T]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self._bind(instance, owner)


class AsyncLLMChat(Views[ChatPipeline, P], Generic[P, T]):
    """A dialogue with history: `async for text, history in chat(history, message)`."""

    @view
    @border
    def events(self, *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[ReActEvent, None]:
        """Yield the facts of the run as they happen, with the reply in pieces."""
        return self._pipeline.events(self._without_instance(args), kwargs)

    @border
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[T, None]:
        """Yield ``(text, history)`` pairs, the last one ``("", history)``; see `llm_chat`."""
        return self._pipeline.pairs(self._without_instance(args), kwargs)

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(
        self: AsyncLLMChat[Concatenate[S, Q], T], instance: S, owner: type | None = None
    ) -> AsyncLLMChat[Q, T]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self._bind(instance, owner)


class LLMChat(Views[ChatPipeline, P], Generic[P, T]):
    """A dialogue with history: `for text, history in chat(history, message)`."""

    @view
    @border
    def events(self, *args: P.args, **kwargs: P.kwargs) -> Iterator[ReActEvent]:
        """Yield the facts of the run as they happen, with the reply in pieces."""
        return iterate_sync(self._pipeline.events(self._without_instance(args), kwargs))

    @border
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        """Yield ``(text, history)`` pairs, the last one ``("", history)``; see `llm_chat`."""
        return iterate_sync(self._pipeline.pairs(self._without_instance(args), kwargs))

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self: LLMChat[Concatenate[S, Q], T], instance: S, owner: type | None = None) -> LLMChat[Q, T]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self._bind(instance, owner)
