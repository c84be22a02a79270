"""Small helpers for asynchronous code, its context, and pickles, that know nothing of models."""

from __future__ import annotations

import asyncio
import importlib
import json
import pkgutil
import sys
import types
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Coroutine, Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import Context, ContextVar
from dataclasses import MISSING, fields
from typing import Any, Generic, NoReturn, Self, TypeVar

T = TypeVar("T")


async def get_last_item_of_async_generator(generator: AsyncIterable[T]) -> T | None:
    """Read `generator` to its end and return its last item, None if it gave none.

    It is closed in any case: also when it raises, and when the waiting task is cancelled.
    """
    last: T | None = None
    try:
        async for item in generator:
            last = item
    finally:
        await close_iterator(generator)
    return last


async def close_iterator(iterator: object) -> None:
    """Close an asynchronous iterator, if it can be closed."""
    if (aclose := getattr(iterator, "aclose", None)) is not None:
        await aclose()


async def cancelled(task: asyncio.Task[Any]) -> None:
    """Cancel the task if it goes on, and wait for its end."""
    if not task.done():
        task.cancel()
        await asyncio.wait({task})


class in_context(AsyncGenerator[T, None]):  # noqa: N801 - called like a function
    """The items of `generator`, whose code sees and sets the variables of `context` and of no other.

    What it sets is not seen by the consumer, and the consumer's own changes do not reach it: an async
    generator otherwise shares the context of whichever task asks for the next item.

    ``asyncio.create_task(step, context=context)`` does not serve: each step would be another task, which breaks a timeout
    or a cancel scope that is open from one step to the next.
    """

    def __init__(self, generator: AsyncGenerator[T, None], context: Context) -> None:
        self._generator = generator
        self._context = context

    async def __anext__(self) -> T:
        return await stepped(self._generator.__anext__(), self._context)

    async def asend(self, value: None) -> T:
        """Do what `asend` of the generator does."""
        return await stepped(self._generator.asend(value), self._context)

    async def athrow(self, *error: Any) -> T:
        """Do what `athrow` of the generator does."""
        return await stepped(self._generator.athrow(*error), self._context)

    async def aclose(self) -> None:
        """Do what `aclose` of the generator does."""
        await stepped(self._generator.aclose(), self._context)


@types.coroutine
def stepped(work: Coroutine[Any, Any, T], context: Context) -> Generator[Any, Any, T]:
    """Await `work` with every step of it run inside `context`, in the same task."""
    value: Any = None
    thrown: BaseException | None = None
    while True:
        try:
            waited_for = context.run(work.send, value) if thrown is None else context.run(work.throw, thrown)
        except StopIteration as stop:
            result: T = stop.value
            return result
        value = thrown = None
        try:
            value = yield waited_for
        except BaseException as error:  # noqa: BLE001 - passed on into `work`, cancellation too
            thrown = error


class ScopedVar(Generic[T]):
    """A context variable that is set for a block, and right also when generators leave their blocks out of order.

    An async generator enters a block in the context of the task that asks for its first item. It may leave the block in
    another task, or after its consumer has entered other blocks. So a block ends by value, not by a token of
    the context it began in, and it takes away nothing but itself.
    """

    def __init__(self, name: str, default: T) -> None:
        self._innermost: ContextVar[Block[T] | None] = ContextVar(name, default=None)
        self._default = default

    def get(self) -> T:
        """Return the value of the innermost block, the default outside of any."""
        block = self._innermost.get()
        return self._default if block is None else block.value

    def enter(self, value: T) -> Block[T]:
        """Begin a block in which `get` returns `value`."""
        block = Block(value, _not_ended(self._innermost.get()))
        self._innermost.set(block)
        return block

    def leave(self, block: Block[T]) -> None:
        """End the block that `enter` returned, in any context."""
        block.ended = True
        if self._innermost.get() is block:
            self._innermost.set(_not_ended(block.around))

    def leave_one(self, entered: list[Block[T]]) -> None:
        """End one of these blocks and take it off the list: the caller's own, where several tasks entered them."""
        here = self._innermost.get()
        block = here if here in entered else entered[-1]
        entered.remove(block)
        self.leave(block)

    @contextmanager
    def within(self, value: T) -> Generator[None, None, None]:
        """Let `get` return `value` inside the ``with`` block."""
        block = self.enter(value)
        try:
            yield
        finally:
            self.leave(block)


class Block(Generic[T]):
    """One block of a `ScopedVar`: `enter` returns it, `leave` takes it."""

    __slots__ = ("around", "ended", "value")

    def __init__(self, value: T, around: Block[T] | None) -> None:
        self.value = value
        self.around = around
        self.ended = False


def _not_ended(block: Block[T] | None) -> Block[T] | None:
    while block is not None and block.ended:
        block = block.around
    return block


def is_number(value: object, kind: type | tuple[type, ...] = (int, float)) -> bool:
    """Say whether `value` is a number of the kind; a boolean is not."""
    return isinstance(value, kind) and not isinstance(value, bool)


def refuse_constant(name: str) -> NoReturn:
    """Be the `parse_constant` of `json`: NaN and the infinities, which Python reads and JSON does not have, are errors.

    Raises:
        ValueError: always.
    """
    raise ValueError(f"{name} is no JSON number")


def path_text(path: Iterable[int | str]) -> str:
    """Return a place in a value as messages name it: ``lines[0].price``; empty for the root."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


class DuplicateKeyError(ValueError):
    """A key stands twice in one object, with different values."""


def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Be the `object_pairs_hook` of `json`: a key that stands twice with different values is an error.

    Raises:
        DuplicateKeyError: one does.
    """
    made = dict(pairs)
    for key, value in pairs if len(made) < len(pairs) else ():
        if made[key] != value:
            raise DuplicateKeyError(f"the key {key!r} is given twice with different values")
    return made


class Uncopied:
    """A thing that its copies share: `copy.copy` and `copy.deepcopy` return the thing itself."""

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def set_fields(instance: Any, state: list[Any]) -> None:
    """Be the `__setstate__` of a frozen dataclass with slots: a pickle of an older version holds fewer fields.

    New fields of such a class stand last, and have a default.
    """
    known = fields(instance)
    for field in known[len(state) :]:
        value = field.default if field.default_factory is MISSING else field.default_factory()
        object.__setattr__(instance, field.name, value)
    for field, value in zip(known, state, strict=False):
        object.__setattr__(instance, field.name, value)


def found_by(thing: Any) -> tuple[str | None, Any]:
    """Return ``module:name`` under which every process finds a thing, and what stands there; None where none, as in a script."""
    module, qualname = (getattr(thing, name, None) for name in ("__module__", "__qualname__"))
    if not module or not qualname or module == "__main__" or "<" in qualname:
        return None, None
    name = f"{module}:{qualname}"
    try:
        return name, pkgutil.resolve_name(name)
    except (ImportError, AttributeError, ValueError):
        return None, None


def pickled_by_value(make: Callable[..., Any], *parts: Any) -> tuple[Any, ...] | None:
    """Return what `__reduce__` gives for a thing that ``make(*parts)`` makes again; None without cloudpickle.

    It goes along by value also where the pickle around it is the standard library's.
    """
    # The copy of the cluster that is in use: it alone knows a class again that comes back from there.
    known = ("pyspark.cloudpickle", "ray.cloudpickle", "cloudpickle")
    try:
        module = importlib.import_module(next((name for name in known if name in sys.modules), known[-1]))
    except ImportError:
        return None
    return module.loads, (module.dumps(_Parts(make, parts)),)


class _Parts:
    """Becomes ``make(*parts)`` where it is unpickled."""

    def __init__(self, make: Callable[..., Any], parts: tuple[Any, ...]) -> None:
        self._reduced = make, parts

    def __reduce__(self) -> tuple[Any, ...]:
        return self._reduced


def in_one_order(items: Iterable[Any], written: Callable[[Any], str] = json.dumps) -> list[Any]:
    """Return the items of a set in one order: each process has its own order of texts, though not of numbers."""
    return sorted(items, key=lambda item: "" if isinstance(item, (int, float)) else written(item))


def settled(data: Any, own: Any, leaf: Callable[[Any, Any], Any] = lambda data, _: data) -> Any:
    """Return `data`, the JSON of `own`, with the items of its sets in one order; `leaf` makes what is no container."""
    if isinstance(data, dict) and isinstance(own, Mapping) and len(data) == len(own):
        return {key: settled(part, its, leaf) for (key, part), its in zip(data.items(), own.values(), strict=True)}
    if isinstance(data, list) and isinstance(own, (list, tuple)) and len(data) == len(own):
        return [settled(part, its, leaf) for part, its in zip(data, own, strict=True)]
    return in_one_order(data) if isinstance(data, list) and isinstance(own, (set, frozenset)) else leaf(data, own)
