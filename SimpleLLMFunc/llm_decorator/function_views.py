"""The views of a function: those of an async one, and the same behind the bridge for a sync one.

`batch` is imported when a view is called, so that an import of the library does not pay for it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Coroutine, Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, Self, TypeVar, Unpack

from SimpleLLMFunc.base.events import ReActEvent
from SimpleLLMFunc.base.run import Preview, Result
from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.llm_decorator.answering import Agreement, Answers, answered_by
from SimpleLLMFunc.llm_decorator.function_pipeline import FunctionPipeline
from SimpleLLMFunc.llm_decorator.improving import Improved, ImproveOptions, improved
from SimpleLLMFunc.llm_decorator.mapped import MappedFunction
from SimpleLLMFunc.llm_decorator.steps.common.calibration import Calibration
from SimpleLLMFunc.llm_decorator.views import Views, view
from SimpleLLMFunc.logger import border
from SimpleLLMFunc.runtime import iterate_sync, run_sync

if TYPE_CHECKING:
    from SimpleLLMFunc.batch import MapOptions, MapReport
    from SimpleLLMFunc.batch.ray.cluster import RayActor
    from SimpleLLMFunc.batch.rows.rows import Rows

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class FunctionViews(Views[FunctionPipeline, P], Generic[P]):
    """The views that async and sync functions share, and the object that answers their calls."""

    _is_streamed = False

    def __init__(self, pipeline: FunctionPipeline, instance: Any = None, answers: Answers | None = None) -> None:
        super().__init__(pipeline, instance)
        self._answers = answers
        if pipeline.definition.knows("output"):
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
        """The calibration of its label probabilities, with its report; None without one."""
        found = self._pipeline.options.calibration
        return found if isinstance(found, Calibration) else None

    @property
    def agreement(self) -> Agreement:
        """Counts of the calls that plain code and the model answered, and how often they agreed; see `sample`."""
        answers = self._answered_by()
        return Agreement() if isinstance(answers, FunctionPipeline) else answers.agreement

    @border
    def as_ray_actor(
        self,
        *,
        columns: Mapping[str, str] | None = None,
        concurrency: int = 100,
        actors: int = 1,
        on_error: Literal["keep", "raise"] = "keep",
    ) -> type[RayActor]:
        """Return a class for ``dataset.map_batches(f.as_ray_actor(), concurrency=2)`` of a Ray dataset.

        It gives every batch back with the columns of the result, and ``error``. `f.map` with ``engine="ray"`` does more:
        a checkpoint, a budget, no row asked twice.

        Args:
            columns: parameters by the names of columns, for columns that are called otherwise.
            concurrency: rows at a time in one actor.
            actors: how many there will be; each keeps its part of the model's rates.
            on_error: "keep" puts it into the column ``error``, "raise" fails the batch.

        Raises:
            ConfigError: Ray is not installed, or there is no model to ask.
        """
        from SimpleLLMFunc.batch.ray.cluster import ray_actor

        return ray_actor(self._mapped(), columns=columns, concurrency=concurrency, actors=actors, on_error=on_error)

    async def _calibrated(self, rows: Rows, labels: Iterable[Any] | None, path: str | PathLike[str] | None) -> Self:
        from SimpleLLMFunc.llm_decorator.calibrated import calibrate

        self._mapped()  # a method alone cannot be asked
        return self.with_options(calibration=await calibrate(self._pipeline, rows, labels, path))

    def _called(self, args: tuple[Any, ...]) -> tuple[Answers, tuple[Any, ...]]:
        """Return what answers a call, and its arguments without an instance."""
        answers, given = self._answered_by(), self._without_instance(args)
        return (answers if len(given) == len(args) else answers.bound(args[0])), given

    def __set_name__(self, owner: type, name: str) -> None:
        pipeline = self._pipeline.as_method()
        if pipeline is not self._pipeline and self._answers is not None:
            self._answers = answered_by(pipeline, self.agreement)
        self._pipeline = pipeline

    def _bound_to(self, instance: Any) -> Self:
        pipeline = self._pipeline.as_method()
        answers = self._answered_by() if pipeline is self._pipeline else answered_by(pipeline, self.agreement)
        return type(self)(pipeline, instance, answers.bound(instance))

    def _around(self, pipeline: FunctionPipeline, options: Mapping[str, Any]) -> Self:
        if not pipeline.definition.knows("output"):
            return type(self)(pipeline, self._instance)
        counted = None if options.keys() & {"first", "fallback"} else self.agreement
        return type(self)(pipeline, self._instance, answered_by(pipeline, counted).bound(self._instance))

    def _mapped(self) -> MappedFunction[Any]:
        if self._lacks_instance:
            name = self._pipeline.definition.name
            raise UsageError(f"{name} is a method. Map over that of an instance: thing.method.map(rows).")
        return MappedFunction(self._pipeline, self._answered_by())


class AsyncFunctionViews(FunctionViews[P], Generic[P, R]):
    """Views of an async function whose answer is an `R`."""

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
        from SimpleLLMFunc.batch import map_rows

        return self._named(map_rows(self._mapped(), rows, **options), ".map")

    @border
    def calibrate(
        self, rows: Rows, *, labels: Iterable[Any] | None = None, path: str | PathLike[str] | None = None
    ) -> Coroutine[Any, Any, Self]:
        """Ask once for each row; when awaited, the same function with a calibration. See `calibrate`."""
        return self._named(self._calibrated(rows, labels, path), ".calibrate")

    @border
    def improve(
        self, cases: Iterable[Any] | str | PathLike[str], **options: Unpack[ImproveOptions]
    ) -> Coroutine[Any, Any, Improved[Self]]:
        """Look for examples, a calibration, an output mode and a prompt with which the function answers better; when awaited, what was found.

        The cases are split: examples come from one part, the search chooses by another, and a third part is asked once at
        the end, of the function as it was and as it was found. It is accepted where it is better there beyond chance.

        Args:
            cases: as for `SimpleLLMFunc.evaluate.evaluate`; at least 30.
            **options: see `ImproveOptions`.

        Raises:
            UsageError: fewer than 30 cases, or a budget that is too small; says which is wanted.
            SignatureError: a case does not fit the function.
        """
        return self._named(improved(self, cases, options), ".improve")

    @border
    def to_batch_file(
        self, rows: Rows, path: str | PathLike[str], *, on_error: Literal["raise", "skip"] = "raise"
    ) -> Coroutine[Any, Any, list[Path]]:
        """Write one request a row, in the OpenAI Batch JSONL format; when awaited, the files.

        Beyond 50,000 lines or 200 MB there are several: ``requests-0001.jsonl`` and so on. A row that cannot be asked
        raises, or is left out where `on_error` says "skip".

        Raises:
            UsageError: the function has tools, or a row cannot be asked.
        """
        from SimpleLLMFunc.batch import to_batch_file

        return to_batch_file(self._mapped(), rows, path, on_error=on_error)

    @border
    def read_batch_file(
        self,
        path: str | PathLike[str] | Iterable[str | PathLike[str]],
        *,
        rows: Rows | None = None,
        checkpoint: str | PathLike[str] | None = None,
        on_error: Literal["keep", "raise"] = "keep",
    ) -> Coroutine[Any, Any, MapReport[R]]:
        """Read the answers to what `to_batch_file` wrote; when awaited, the results of the rows. No model is asked.

        Args:
            path: the file of answers, or several; their order does not matter.
            rows: the rows that were asked, which the report then holds.
            checkpoint: with `rows`: keep the values there, where `map` finds them.
            on_error: "keep" makes an error the result of its row; "raise" raises the first one.

        Raises:
            ConfigError: no line of it answers a request of ours.
        """
        from SimpleLLMFunc.batch import read_batch_file

        return read_batch_file(self._mapped(), path, rows=rows, checkpoint=checkpoint, on_error=on_error)

    def _named(self, work: Coroutine[Any, Any, T], view: str = "") -> Coroutine[Any, Any, T]:
        # Python's warning about a missing `await` then names what its reader wrote.
        work.__qualname__ = f"{self.__qualname__}{view}"  # type: ignore[attr-defined]  # every coroutine has one
        return work


class SyncFunctionViews(FunctionViews[P], Generic[P, R]):
    """Views of a sync function whose answer is an `R`: the same, behind the bridge."""

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

    @border
    def improve(self, cases: Iterable[Any] | str | PathLike[str], **options: Unpack[ImproveOptions]) -> Improved[Self]:
        """Look for a better form of the function, and return what was found; see `AsyncFunctionViews.improve`."""
        return run_sync(improved(self, cases, options))

    @border
    def to_batch_file(
        self, rows: Rows, path: str | PathLike[str], *, on_error: Literal["raise", "skip"] = "raise"
    ) -> list[Path]:
        """Write one request a row, in the OpenAI Batch JSONL format; see `AsyncFunctionViews.to_batch_file`."""
        from SimpleLLMFunc.batch import to_batch_file

        return run_sync(to_batch_file(self._mapped(), rows, path, on_error=on_error))

    @border
    def read_batch_file(
        self,
        path: str | PathLike[str] | Iterable[str | PathLike[str]],
        *,
        rows: Rows | None = None,
        checkpoint: str | PathLike[str] | None = None,
        on_error: Literal["keep", "raise"] = "keep",
    ) -> MapReport[R]:
        """Read the answers to what `to_batch_file` wrote; see `AsyncFunctionViews.read_batch_file`."""
        from SimpleLLMFunc.batch import read_batch_file

        return run_sync(read_batch_file(self._mapped(), path, rows=rows, checkpoint=checkpoint, on_error=on_error))
