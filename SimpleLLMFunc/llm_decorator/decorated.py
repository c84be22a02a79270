"""The objects that the decorators return: a function, and its views.

Each class is a typed face of a pipeline: it keeps the parameters and the return type of the function it
replaces, for a call and for every view. The classes of sync functions put the bridge (`runtime/sync.py`) in front;
there is no second implementation behind them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Coroutine, Iterable, Iterator, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, Concatenate, Generic, NoReturn, ParamSpec, Self, TypeVar, Unpack, overload

from SimpleLLMFunc.base.events import ReActEvent
from SimpleLLMFunc.base.run import Preview, Result
from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.llm_decorator.answering import Agreement, Answers, answered_by
from SimpleLLMFunc.llm_decorator.batch_files import AsyncBatchFiles, BatchFiles
from SimpleLLMFunc.llm_decorator.chat_pipeline import ChatPipeline
from SimpleLLMFunc.llm_decorator.function_pipeline import FunctionPipeline
from SimpleLLMFunc.llm_decorator.improving import AsyncImproving, Improving
from SimpleLLMFunc.llm_decorator.mapped import MappedFunction
from SimpleLLMFunc.llm_decorator.steps.common.calibration import Calibration
from SimpleLLMFunc.llm_decorator.views import Views, view
from SimpleLLMFunc.logger import border
from SimpleLLMFunc.runtime import iterate_sync, run_sync

if TYPE_CHECKING:
    from SimpleLLMFunc.batch import MapOptions, MapReport
    from SimpleLLMFunc.batch.rows.rows import Rows

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


class _Function(Views[FunctionPipeline, P], Generic[P]):
    """What only functions have: the pipeline, votes or plain code that answer their calls."""

    _is_streamed = False

    def __init__(self, pipeline: FunctionPipeline, instance: Any = None, answers: Answers | None = None) -> None:
        super().__init__(pipeline, instance)
        self._answers = answers
        if pipeline.definition.is_resolved:
            _ = self._answered_by()  # what does not fit the function is an error here, not at the first call

    def _answered_by(self) -> Answers:
        if self._answers is None:
            self._answers = answered_by(self._pipeline)
        return self._answers

    @view
    @border
    def preview(self, *args: P.args, **kwargs: P.kwargs) -> Preview:
        """Return the exact request, without sending it; of several the first one."""
        answers, given = self._called(args)
        return answers.preview(given, kwargs, stream=self._is_streamed)

    @property
    def calibration(self) -> Calibration | None:
        """What corrects how probable its labels are, and what it was made from; None where nothing does."""
        found = self._pipeline.options.calibration
        return found if isinstance(found, Calibration) else None

    async def _calibrated(self, rows: Rows, labels: Iterable[Any] | None, path: str | PathLike[str] | None) -> Self:
        from SimpleLLMFunc.llm_decorator.calibrated import calibrate

        self._mapped()  # a method alone cannot be asked
        return self.with_options(calibration=await calibrate(self._pipeline, rows, labels, path))

    def _called(self, args: tuple[Any, ...]) -> tuple[Answers, tuple[Any, ...]]:
        """Return what answers a call, and its arguments without an instance."""
        answers = self._answered_by()
        return (answers.bound(args[0]), args[1:]) if self._lacks_instance and args else (answers, args)

    def __set_name__(self, owner: type, name: str) -> None:
        pipeline = self._pipeline.as_method()
        if self._answers is not None:
            self._answers = self._answers_around(pipeline)
        self._pipeline = pipeline

    def _bound_to(self, instance: Any) -> Self:
        pipeline = self._pipeline.as_method()
        return type(self)(pipeline, instance, self._answers_around(pipeline).bound(instance))

    def _answers_around(self, pipeline: FunctionPipeline) -> Answers:
        answers = self._answered_by()
        if isinstance(answers, FunctionPipeline):
            return pipeline
        return answers if answers.pipeline is pipeline else answers.around(pipeline)

    def _around(self, pipeline: FunctionPipeline, options: Mapping[str, Any]) -> Self:
        if not pipeline.definition.is_resolved:
            return type(self)(pipeline, self._instance)
        counted = None if options.keys() & {"first", "fallback"} else self.agreement
        return type(self)(pipeline, self._instance, answered_by(pipeline, counted).bound(self._instance))

    def _mapped(self) -> MappedFunction[Any]:
        if self._lacks_instance:
            name = self._pipeline.definition.name
            raise UsageError(f"{name} is a method. Map over that of an instance: thing.method.map(rows).")
        return MappedFunction(self._pipeline, self._answered_by())

    @property
    def agreement(self) -> Agreement:
        """Who answered the calls, plain code or the model, and how often both said the same; see `sample`."""
        answers = self._answered_by()
        return Agreement() if isinstance(answers, FunctionPipeline) else answers.agreement


class _AsyncFunction(_Function[P], AsyncImproving, AsyncBatchFiles[R], Generic[P, R]):
    """Views of an async function."""

    @view
    @border
    def events(self, *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[ReActEvent, None]:
        """Yield the facts of the run as they happen, with the reply in pieces."""
        answers, given = self._called(args)
        return answers.events(given, kwargs)

    @view
    @border
    def call(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, Result[R]]:
        """Ask the model; when awaited, the value with everything known about how it came about."""
        answers, given = self._called(args)
        return self._named(answers.result(given, kwargs), ".call")

    @border
    def map(self, rows: Rows, **options: Unpack[MapOptions]) -> Coroutine[Any, Any, MapReport[R]]:
        """Ask once for each row; when awaited, the results in the order of the input. See `MapOptions`."""
        from SimpleLLMFunc.batch import map_rows  # a start need not pay for it

        return self._named(map_rows(self._mapped(), rows, **options), ".map")

    @border
    def calibrate(
        self, rows: Rows, *, labels: Iterable[Any] | None = None, path: str | PathLike[str] | None = None
    ) -> Coroutine[Any, Any, Self]:
        """Ask once for each row; when awaited, the same function with a calibration. See `calibrate`."""
        return self._named(self._calibrated(rows, labels, path), ".calibrate")

    def _named(self, work: Coroutine[Any, Any, T], view: str = "") -> Coroutine[Any, Any, T]:
        # Python's warning about a missing `await` then names what its reader wrote.
        work.__qualname__ = f"{self.__qualname__}{view}"  # type: ignore[attr-defined]  # every coroutine has one
        return work


class _SyncFunction(_Function[P], Improving, BatchFiles[R], Generic[P, R]):
    """Views of a sync function: the same, behind the bridge."""

    @view
    @border
    def events(self, *args: P.args, **kwargs: P.kwargs) -> Iterator[ReActEvent]:
        """Yield the facts of the run as they happen, with the reply in pieces."""
        answers, given = self._called(args)
        return iterate_sync(answers.events(given, kwargs))

    @view
    @border
    def call(self, *args: P.args, **kwargs: P.kwargs) -> Result[R]:
        """Ask the model and return the value with everything known about how it came about."""
        answers, given = self._called(args)
        return run_sync(answers.result(given, kwargs))

    @border
    def map(self, rows: Rows, **options: Unpack[MapOptions]) -> MapReport[R]:
        """Ask once for each row, and return the results in the order of the input. See `MapOptions`."""
        from SimpleLLMFunc.batch import map_rows

        return run_sync(map_rows(self._mapped(), rows, **options))

    @border
    def calibrate(
        self, rows: Rows, *, labels: Iterable[Any] | None = None, path: str | PathLike[str] | None = None
    ) -> Self:
        """Ask once for each row, and return the same function with a calibration. See `calibrate`."""
        return run_sync(self._calibrated(rows, labels, path))


class AsyncLLMFunction(_AsyncFunction[P, R], Generic[P, R]):
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


class LLMFunction(_SyncFunction[P, R], Generic[P, R]):
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


class AsyncLLMStream(_AsyncFunction[P, list[T]], Generic[P, T]):
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


class LLMStream(_SyncFunction[P, list[T]], Generic[P, T]):
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
