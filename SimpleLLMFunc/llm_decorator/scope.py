"""What a function looks like before its annotations are resolved: the names in sight, and what it iterates over."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Generator, Iterator, Mapping
from types import FrameType
from typing import Any, Literal, get_origin

from SimpleLLMFunc.llm_decorator.steps.common.signature import Metadata, extract_function_metadata

__all__ = ["Scope", "iterator_kind", "iterator_kind_of"]

_SYNC_KINDS = (Iterator, Generator)
_ASYNC_KINDS = (AsyncIterator, AsyncGenerator, AsyncIterable)
_WRITTEN = re.compile(r"^[\w.]*?(?P<is_async>Async)?(?:Iterator|Generator)\s*(?:\[|$)")


def iterator_kind(return_type: Any) -> Literal["sync", "async"] | None:
    """Say whether a return type is an iterator, and which; None for any other type."""
    origin = get_origin(return_type) or return_type
    if origin in _ASYNC_KINDS:
        return "async"
    return "sync" if origin in _SYNC_KINDS else None


def iterator_kind_of(func: Callable[..., Any]) -> Literal["sync", "async"] | None:
    """Say the same of a function as written, also where its annotation is text that cannot be resolved yet."""
    annotation = getattr(func, "__annotations__", {}).get("return")
    if not isinstance(annotation, str):
        return iterator_kind(annotation)
    written = _WRITTEN.match(annotation.strip())
    if written is None:
        return None
    return "async" if written["is_async"] else "sync"


class Scope:
    """The scope of a decorated function; looked at until its annotations are resolved, then let go.

    A name may be defined after the function: while an annotation is not resolved, the frame is kept.
    """

    def __init__(self, frame: FrameType | None) -> None:
        self._frame = frame
        self._metadata: Metadata | None = None

    @classmethod
    def of_caller(cls, depth: int) -> Scope:
        """Return the scope of the function `depth` calls above the caller of this method."""
        return cls(sys._getframe(depth + 1))  # noqa: SLF001 - the one way to see a caller's local names

    def _names(self) -> Mapping[str, Any]:
        """Return the local names, those of an enclosing function behind those of a class body."""
        frame = self._frame
        if frame is None or frame.f_code.co_name == "<module>":
            return {}
        names = dict(frame.f_locals)
        while frame is not None and "__qualname__" in frame.f_locals and "__module__" in frame.f_locals:
            frame = frame.f_back  # a class body: what encloses it counts as well
            if frame is not None and frame.f_code.co_name != "<module>":
                names = {**frame.f_locals, **names}
        return names

    def metadata(self, func: Callable[..., Any]) -> Metadata:
        """Return what `extract_function_metadata` finds out about `func`; read once.

        Raises:
            SignatureError: an annotation cannot be resolved, or not yet.
        """
        if self._metadata is None:
            self._metadata = extract_function_metadata(func, self._names())
            self._frame = None
        return self._metadata
