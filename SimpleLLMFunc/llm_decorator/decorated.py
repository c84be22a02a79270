"""The objects that the decorators return: a function, and its views.

Each class is a typed face of a pipeline: it keeps the parameters and the return type of the function it
replaces, for a call and for every view. The classes of sync functions put the bridge (`runtime/sync.py`) in front;
there is no second implementation behind them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Coroutine, Iterable, Iterator
from types import ModuleType
from typing import (
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Self,
    TypeAlias,
    TypeGuard,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from SimpleLLMFunc.base.events import ReActEvent
from SimpleLLMFunc.llm_decorator.answering import Answers
from SimpleLLMFunc.llm_decorator.chat_pipeline import ChatPipeline
from SimpleLLMFunc.llm_decorator.function_pipeline import FunctionPipeline
from SimpleLLMFunc.llm_decorator.function_views import AsyncFunctionViews, SyncFunctionViews
from SimpleLLMFunc.llm_decorator.mapped import MappedFunction
from SimpleLLMFunc.llm_decorator.views import FUNCTION_LIKE, Views, view
from SimpleLLMFunc.logger import border
from SimpleLLMFunc.runtime import iterate_sync, run_sync
from SimpleLLMFunc.type import Audio, File, ImgPath

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")


class AsyncLLMFunction(AsyncFunctionViews[P, R], Generic[P, R]):
    """A coroutine function whose body is a model."""

    # What inspect looks for before it believes that an object is a coroutine function.
    _taken_over = FUNCTION_LIKE

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


# --- for rooms above: the kinds of these objects, what is behind one, and which of them a module offers ---------------

STREAMS = (AsyncLLMStream, LLMStream)
FUNCTIONS = (AsyncLLMFunction, LLMFunction, *STREAMS)
CHATS = (AsyncLLMChat, LLMChat)

Function: TypeAlias = (
    AsyncLLMFunction[..., Any] | LLMFunction[..., Any] | AsyncLLMStream[..., Any] | LLMStream[..., Any]
)
"""The objects that `@llm_function` returns."""

Chat: TypeAlias = AsyncLLMChat[..., Any] | LLMChat[..., Any]
"""The objects that `@llm_chat` returns."""

FILES = (ImgPath, Audio, File)
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
        module: the one that holds it.
        name: what the module calls it.
        home: the name of the module where it was written.
    """
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return name in listed
    # A package shows what its modules hold.
    return not name.startswith("_") and (home == module.__name__ or home.startswith(f"{module.__name__}."))


def takes_a_file(hint: Any, within: tuple[Any, ...] = ()) -> bool:
    """Say whether a parameter of this type takes the path of a file: a caller from outside must not name any.

    Args:
        hint: a type; the fields of a class are looked at too.
        within: the types whose field this is, so that one that holds itself comes to an end.
    """
    hint = getattr(hint, "__value__", getattr(hint, "__supertype__", hint))  # of a `type` alias, of a NewType
    if hint in FILES or hint in within:
        return hint in FILES
    return any(takes_a_file(part, (*within, hint)) for part in (*get_args(hint), *_hints_of_fields(hint)))


def _hints_of_fields(hint: Any) -> Iterable[Any]:
    try:
        return get_type_hints(get_origin(hint) or hint).values()
    except (TypeError, NameError, AttributeError, SyntaxError):  # no class, or pydantic cannot read its fields either
        return ()
