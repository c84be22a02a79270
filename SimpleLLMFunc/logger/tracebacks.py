"""Short tracebacks: errors of ours that leave the library show the user's frames, and one of ours.

`border` is a decorator of public functions, also of those that return coroutines or iterators, and a context manager.
``SIMPLELLMFUNC_DEBUG=1`` turns it off; `SimpleLLMFuncError.whole_traceback` always has all frames.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing
from functools import wraps
from types import TracebackType
from typing import Any, Final, TypeVar, cast

from SimpleLLMFunc.errors import CallError, SimpleLLMFuncError, ToolFailed

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

OURS: Final = __name__.partition(".")[0]

LIBRARIES: Final = sys.stdlib_module_names | {
    "aiohttp", "aiosignal", "anyio", "attr", "click", "docstring_parser", "docx", "filelock", "frozenlist", "genai_prices",
    "httpcore", "httpx", "jinja2", "jsonschema", "mcp", "multidict", "numpy", "onnxruntime", "openai", "opentelemetry",
    "pandas", "polars", "pyarrow", "pydantic", "pydantic_core", "pypdf", "rapidocr", "ray", "referencing", "rich",
    "starlette", "tavily", "tqdm", "typing_extensions", "uvicorn", "xllamacpp", "yarl",
}  # fmt: skip
"""Libraries that we call: their frames count as the user's only below a frame of the user's."""

_OF_OURS: Final = (SimpleLLMFuncError, FileNotFoundError)
"""Errors with short tracebacks: ours, and the one of Python's that we raise."""

_TOLD: Final = (ToolFailed, CallError)
"""Errors whose `__cause__` is documented, and stays even without a frame of the user's."""


def is_debugging() -> bool:
    """Say whether ``SIMPLELLMFUNC_DEBUG`` asks for all frames."""
    return os.environ.get("SIMPLELLMFUNC_DEBUG", "").strip().lower() not in {"", "0", "no", "off", "false"}


class _Frames:
    """The tracebacks of an error before and after shortening; not pickled.

    Attributes:
        whole: before.
        short: after.
    """

    def __init__(self, whole: TracebackType | None = None, short: TracebackType | None = None) -> None:
        self.whole = whole
        self.short = short

    def __repr__(self) -> str:
        return "<frames>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _Frames, ()


class _Border:
    """Shortens the tracebacks of our errors; other exceptions pass unchanged."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, _OF_OURS) and trace is not None and not is_debugging():
            _shorten(error, trace)

    def __call__(self, func: F) -> F:
        """Return `func` with a border around it and around the iterator that it returns."""
        if inspect.iscoroutinefunction(func):

            @wraps(func)
            async def awaited(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return await func(*args, **kwargs)

            return cast("F", awaited)

        @wraps(func)
        def called(*args: Any, **kwargs: Any) -> Any:
            with self:
                result = func(*args, **kwargs)
            if isinstance(result, AsyncGenerator):
                return self._async_items(result)
            return self._items(result) if isinstance(result, Generator) else result

        return cast("F", called)

    async def _async_items(self, source: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
        with self:
            async with aclosing(source):
                async for item in source:
                    yield item

    def _items(self, source: Generator[T, Any, Any]) -> Generator[T, Any, Any]:
        with self:
            return (yield from source)


border: Final = _Border()


def _shorten(error: SimpleLLMFuncError | FileNotFoundError, trace: TracebackType) -> None:
    """Keep the user's frames, and after them our last one, unless a cause shows where the error came from."""
    frames, known = list(_frames(trace)), getattr(error, "frames", None)
    kept = _users(frames)
    ours = [each for each in frames if _room(each) == OURS]
    is_told = _shorten_causes(error)
    if ours and not is_told and not (kept and frames.index(kept[-1]) > frames.index(ours[-1])):
        kept.append(ours[-1])
    if known is None or known.short not in (None, *frames):  # else an inner border has seen more
        known = _Frames(trace)
    error.__traceback__ = _chain(kept)
    error.frames = _Frames(known.whole, error.__traceback__)  # type: ignore[union-attr]  # every exception takes attributes


def _shorten_causes(error: BaseException) -> bool:
    """Keep the user's frames of printed causes, hide causes without any; say whether frames are left."""
    shown, has_frames = error, False
    for cause in _printed_causes(error):
        kept = _users(list(_frames(cause.__traceback__)))
        if not kept and not isinstance(shown, _TOLD):
            continue
        cause.__traceback__ = _chain(kept)
        has_frames = has_frames or bool(kept)
        _print_cause(shown, cause)
        shown = cause
    _print_cause(shown, None)
    return has_frames


def _printed_causes(error: BaseException) -> list[BaseException]:
    found = [error]
    while (cause := _printed_cause(found[-1])) is not None and cause not in found:
        found.append(cause)
    return found[1:]


def _printed_cause(error: BaseException) -> BaseException | None:
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _print_cause(error: BaseException, cause: BaseException | None) -> None:
    """Make Python print this cause; an earlier one stays as the context, as with `from`."""
    printed = _printed_cause(error)
    if printed is not cause:
        error.__cause__, error.__context__ = cause, printed


def _frames(trace: TracebackType | None) -> Generator[TracebackType, None, None]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _room(trace: TracebackType) -> str:
    return str(trace.tb_frame.f_globals.get("__name__", "")).partition(".")[0]


def _users(frames: list[TracebackType]) -> list[TracebackType]:
    """Return the frames of the user's code, such as tools, and of the code that it calls."""
    kept, is_users = [], False
    for frame in frames:
        room = _room(frame)
        is_users = room != OURS and (is_users or room not in LIBRARIES)
        if is_users:
            kept.append(frame)
    return kept


def _chain(frames: list[TracebackType]) -> TracebackType | None:
    made: TracebackType | None = None
    for frame in reversed(frames):
        made = TracebackType(made, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return made
