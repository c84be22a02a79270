"""The objects that the decorators return: a function, and its views.

Each class is a typed face of a core: it keeps the parameters and the return type of the function it
replaces, for a call and for every view. The classes of sync functions put the bridge (`runtime/sync.py`) in front;
there is no second implementation behind them.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from os import PathLike
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Literal, NoReturn, ParamSpec, Self, TypeVar, cast, overload

from SimpleLLMFunc.base.events import ReActEvent
from SimpleLLMFunc.base.run import AnswerReview, Preview, Result
from SimpleLLMFunc.errors import RunAborted, UsageError
from SimpleLLMFunc.interface.http.openai_client import to_openai
from SimpleLLMFunc.llm_decorator.batch_doors import map_rows
from SimpleLLMFunc.llm_decorator.batch_files import AsyncBatchFiles, BatchFiles
from SimpleLLMFunc.llm_decorator.chat_core import ChatCore
from SimpleLLMFunc.llm_decorator.core import Core, Run
from SimpleLLMFunc.llm_decorator.function_core import FunctionCore
from SimpleLLMFunc.llm_decorator.mapped import MappedFunction
from SimpleLLMFunc.llm_decorator.steps.chat.response import Pairs
from SimpleLLMFunc.llm_decorator.steps.function.stream import growing_values, list_items
from SimpleLLMFunc.runtime import import_module, iterate_sync, run_sync
from SimpleLLMFunc.tools import Tool

if TYPE_CHECKING:
    from SimpleLLMFunc.batch import Budget, Engine, MapReport, Progress
    from SimpleLLMFunc.batch.rows import Rows
    from SimpleLLMFunc.llm_decorator.answering.plain_code import Agreement

__all__ = [
    "AsyncLLMChat",
    "AsyncLLMFunction",
    "AsyncLLMStream",
    "LLMChat",
    "LLMFunction",
    "LLMStream",
    "fill",
]

C = TypeVar("C", bound=Core)
P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")


def fill() -> NoReturn:
    """Stand in for the body of a decorated function.

    Write ``return fill()``; to a type checker the function then returns what it promises.

    Raises:
        UsageError: it was run, so the function around it is not decorated.
    """
    raise UsageError("fill() marks a body that a model fills. Put @llm_function or @llm_chat on the function.")


class _Decorated(Generic[C]):
    """What all decorated functions share: they look like the function, and can be bound and changed."""

    __name__: str
    __qualname__: str

    def __init__(self, core: C) -> None:
        self._core = core
        func = core.func if core.instance is None else core.func.__get__(core.instance)
        functools.update_wrapper(self, func)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        kind = type(self).__name__
        return f"<{kind} {self.__qualname__}>"

    def __reduce__(self) -> str:
        # As a function: by its name. A bound or changed one has none, and pickle says so.
        return self.__qualname__

    def as_tool(self, name: str | None = None) -> Tool:
        """Return this function as a tool for another one."""
        return Tool(func=cast("Callable[..., Any]", self), name=name)

    def __set_name__(self, owner: type, name: str) -> None:
        self._core.is_method = True

    def _bind(self, instance: Any, owner: type | None) -> Self:
        if self._core.is_static:
            return self
        if self._core.binds_class:
            return type(self)(self._core.bound(owner or type(instance)))
        return self if instance is None else type(self)(self._core.bound(instance))

    def with_options(self, **options: Any) -> Self:
        """Return the same function with other decorator arguments.

        Takes every argument of the decorator, and `template_params` for the fields of the docstring; what is
        none of these goes to the provider.

        Raises:
            ConfigError: a value that the argument cannot have.
        """
        return type(self)(self._core.with_options(options))


class _Views(_Decorated[C], Generic[C, P]):
    """The views that need no bridge."""

    _is_streamed = False

    def preview(self, *args: P.args, **kwargs: P.kwargs) -> Preview:
        """Return the exact request, without sending it."""
        return self._core.preview(args, kwargs, stream=self._is_streamed or self._core.options.stream)


class _AsyncViews(_Views[C, P], Generic[C, P]):
    """Views of an async function."""

    def events(self, *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[ReActEvent, None]:
        """Yield the facts of the run as they happen, with the reply in pieces."""
        return self._core.events(args, kwargs)


class _SyncViews(_Views[C, P], Generic[C, P]):
    """Views of a sync function: the same, behind the bridge."""

    def events(self, *args: P.args, **kwargs: P.kwargs) -> Iterator[ReActEvent]:
        """Yield the facts of the run as they happen, with the reply in pieces."""
        return iterate_sync(self._core.events(args, kwargs))


class AsyncLLMFunction(_AsyncViews[FunctionCore, P], AsyncBatchFiles[R], Generic[P, R]):
    """A coroutine function whose body is a model."""

    def __init__(self, core: FunctionCore) -> None:
        super().__init__(core)
        # inspect looks for these before it believes that an object is a coroutine function.
        for name in ("__code__", "__defaults__", "__kwdefaults__"):
            setattr(self, name, getattr(core.func, name, None))
        self._shown = getattr(self, "__qualname__", type(self).__name__)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        """Ask the model; the value when awaited.

        Raises:
            SignatureError: the arguments do not fit the function.
        """
        return self._named(self._core.ask_value(args, kwargs))

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, Result[R]]:
        """Ask the model; when awaited, the value with everything known about how it came about."""
        return self._named(self._core.ask_result(args, kwargs), ".call")

    def stream(self, *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[R, None]:
        """Yield growing values, the last one complete; for `str` each new piece of text."""
        return _growing(self._core, args, kwargs)

    def map(
        self,
        rows: Rows,
        *,
        concurrency: int | Literal["auto"] = "auto",
        checkpoint: str | PathLike[str] | None = None,
        on_error: Literal["keep", "raise"] = "keep",
        budget: Budget | None = None,
        progress: Progress = None,
        engine: Engine = "local",
        retry_errors: bool = False,
        deadline: float | None = None,
    ) -> Coroutine[Any, Any, MapReport[R]]:
        """Ask once for each row; when awaited, what came of each, in the order of the input. See `map_rows`."""
        work = map_rows(
            MappedFunction[R](self._core),
            rows,
            concurrency=concurrency,
            checkpoint=checkpoint,
            on_error=on_error,
            budget=budget,
            progress=progress,
            engine=engine,
            retry_errors=retry_errors,
            deadline=deadline,
        )
        return self._named(work, ".map")

    def _named(self, work: Coroutine[Any, Any, T], view: str = "") -> Coroutine[Any, Any, T]:
        # Python's warning about a missing `await` then names what its reader wrote.
        work.__qualname__ = self._shown + view  # type: ignore[attr-defined]  # every coroutine that Python makes has one
        return work

    @property
    def agreement(self) -> Agreement:
        """Who answered the calls, plain code or the model, and how often both said the same; see `sample`."""
        return self._core.agreement

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(
        self: AsyncLLMFunction[Concatenate[S, Q], R], instance: S, owner: type | None = None
    ) -> AsyncLLMFunction[Q, R]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Bind a method to its instance."""
        return self._bind(instance, owner)


class LLMFunction(_SyncViews[FunctionCore, P], BatchFiles[R], Generic[P, R]):
    """A function whose body is a model; also works inside a running event loop."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Ask the model and return the value.

        Raises:
            SignatureError: the arguments do not fit the function.
        """
        value: R = run_sync(self._core.ask_value(args, kwargs))
        return value

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Result[R]:
        """Ask the model and return the value with everything known about how it came about."""
        return run_sync(self._core.ask_result(args, kwargs))

    def stream(self, *args: P.args, **kwargs: P.kwargs) -> Iterator[R]:
        """Yield growing values, the last one complete; for `str` each new piece of text."""
        return iterate_sync(_growing(self._core, args, kwargs))

    def map(
        self,
        rows: Rows,
        *,
        concurrency: int | Literal["auto"] = "auto",
        checkpoint: str | PathLike[str] | None = None,
        on_error: Literal["keep", "raise"] = "keep",
        budget: Budget | None = None,
        progress: Progress = None,
        engine: Engine = "local",
        retry_errors: bool = False,
        deadline: float | None = None,
    ) -> MapReport[R]:
        """Ask once for each row, and return what came of each, in the order of the input. See `map_rows`."""
        return run_sync(
            map_rows(
                MappedFunction[R](self._core),
                rows,
                concurrency=concurrency,
                checkpoint=checkpoint,
                on_error=on_error,
                budget=budget,
                progress=progress,
                engine=engine,
                retry_errors=retry_errors,
                deadline=deadline,
            )
        )

    @property
    def agreement(self) -> Agreement:
        """Who answered the calls, plain code or the model, and how often both said the same; see `sample`."""
        return self._core.agreement

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(
        self: LLMFunction[Concatenate[S, Q], R], instance: S, owner: type | None = None
    ) -> LLMFunction[Q, R]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Bind a method to its instance."""
        return self._bind(instance, owner)


class AsyncLLMStream(_AsyncViews[FunctionCore, P], AsyncBatchFiles[list[T]], Generic[P, T]):
    """A function annotated `-> AsyncIterator[T]`: each item as soon as it is complete."""

    _is_streamed = True

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[T, None]:
        """Yield the items as they arrive, each complete and validated."""
        return _items(self._core.start(args, kwargs, stream=True, is_shared=False))

    stream = __call__

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, Result[list[T]]]:
        """Ask the model; when awaited, all items with everything known about how they came about."""
        return self._core.result(self._core.start(args, kwargs, stream=False, is_shared=False))

    def map(
        self,
        rows: Rows,
        *,
        concurrency: int | Literal["auto"] = "auto",
        checkpoint: str | PathLike[str] | None = None,
        on_error: Literal["keep", "raise"] = "keep",
        budget: Budget | None = None,
        progress: Progress = None,
        engine: Engine = "local",
        retry_errors: bool = False,
        deadline: float | None = None,
    ) -> Coroutine[Any, Any, MapReport[list[T]]]:
        """Ask once for each row; when awaited, what came of each, in the order of the input. See `map_rows`."""
        return map_rows(
            MappedFunction[list[T]](self._core),
            rows,
            concurrency=concurrency,
            checkpoint=checkpoint,
            on_error=on_error,
            budget=budget,
            progress=progress,
            engine=engine,
            retry_errors=retry_errors,
            deadline=deadline,
        )

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(
        self: AsyncLLMStream[Concatenate[S, Q], T], instance: S, owner: type | None = None
    ) -> AsyncLLMStream[Q, T]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Bind a method to its instance."""
        return self._bind(instance, owner)


class LLMStream(_SyncViews[FunctionCore, P], BatchFiles[list[T]], Generic[P, T]):
    """A function annotated `-> Iterator[T]`: each item as soon as it is complete."""

    _is_streamed = True

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        """Yield the items as they arrive, each complete and validated."""
        return iterate_sync(_items(self._core.start(args, kwargs, stream=True, is_shared=False)))

    stream = __call__

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Result[list[T]]:
        """Ask the model and return all items with everything known about how they came about."""
        return run_sync(self._core.result(self._core.start(args, kwargs, stream=False, is_shared=False)))

    def map(
        self,
        rows: Rows,
        *,
        concurrency: int | Literal["auto"] = "auto",
        checkpoint: str | PathLike[str] | None = None,
        on_error: Literal["keep", "raise"] = "keep",
        budget: Budget | None = None,
        progress: Progress = None,
        engine: Engine = "local",
        retry_errors: bool = False,
        deadline: float | None = None,
    ) -> MapReport[list[T]]:
        """Ask once for each row, and return what came of each, in the order of the input. See `map_rows`."""
        return run_sync(
            map_rows(
                MappedFunction[list[T]](self._core),
                rows,
                concurrency=concurrency,
                checkpoint=checkpoint,
                on_error=on_error,
                budget=budget,
                progress=progress,
                engine=engine,
                retry_errors=retry_errors,
                deadline=deadline,
            )
        )

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self: LLMStream[Concatenate[S, Q], T], instance: S, owner: type | None = None) -> LLMStream[Q, T]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Bind a method to its instance."""
        return self._bind(instance, owner)


class AsyncLLMChat(_AsyncViews[ChatCore, P], Generic[P, T]):
    """A dialogue with history: `async for text, history in chat(history, message)`."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[T, None]:
        """Yield ``(text, history)`` pairs, the last one ``("", history)``; see `llm_chat`."""
        run = self._core.start(args, kwargs, stream=self._core.options.stream, is_shared=False)
        return _pairs(self._core, run)

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(
        self: AsyncLLMChat[Concatenate[S, Q], T], instance: S, owner: type | None = None
    ) -> AsyncLLMChat[Q, T]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Bind a method to its instance."""
        return self._bind(instance, owner)


class LLMChat(_SyncViews[ChatCore, P], Generic[P, T]):
    """A dialogue with history: `for text, history in chat(history, message)`."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        """Yield ``(text, history)`` pairs, the last one ``("", history)``; see `llm_chat`."""
        run = self._core.start(args, kwargs, stream=self._core.options.stream, is_shared=False)
        return iterate_sync(_pairs(self._core, run))

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self: LLMChat[Concatenate[S, Q], T], instance: S, owner: type | None = None) -> LLMChat[Q, T]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Bind a method to its instance."""
        return self._bind(instance, owner)


# --- how a run is read ---


def _growing(core: FunctionCore, args: tuple[Any, ...], kwargs: dict[str, Any]) -> AsyncGenerator[Any, None]:
    if core.answering is not None:
        return core.answering.stream(core, args, kwargs)
    run = core.start(args, kwargs, stream=True, is_shared=False)
    return growing_values(run.events, _answer_review(run))


def _items(run: Run) -> AsyncGenerator[Any, None]:
    return list_items(run.events, _answer_review(run))


def _answer_review(run: Run) -> AnswerReview:
    assert isinstance(run.review, AnswerReview), "a function is reviewed"
    return run.review


async def _pairs(core: ChatCore, run: Run) -> AsyncGenerator[Any, None]:
    # What `process_chat_response_stream` makes of `raw_responses`, without a generator for each.
    options = core.options
    is_raw = options.return_mode == "raw"
    pairs = Pairs(options.return_mode, [], run.record.func_name, options.stream)
    if is_raw:
        await import_module("openai.types.chat")  # takes the better part of a second
    try:
        events = run.events
        try:
            async for event in events:
                if (pair := pairs.of(event)) is not None:
                    yield (to_openai(pair[0]), pair[1]) if is_raw else pair
                del event, pair  # not kept while the next one is waited for
        finally:
            await events.aclose()
    except RunAborted:
        if is_raw:
            return
        # Ended, not failed: the history holds what had arrived.
    if (pair := pairs.last()) is not None:
        yield (to_openai(pair[0]), pair[1]) if is_raw else pair
