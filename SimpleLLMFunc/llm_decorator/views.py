"""A view of one function knows that function's parameters: `inspect`, `help` and editors show them."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def view(method: F) -> F:
    """Mark a method as a view: read from an instance, it has the parameters of the decorated function."""
    return cast("F", _View(method))


def shown_signature(func: Any) -> inspect.Signature:
    """Return the signature of `func` with its annotations as a reader writes them: no quotes, no modules."""
    signature = inspect.signature(func)
    parameters = [each.replace(annotation=_written(each.annotation)) for each in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=_written(signature.return_annotation))


class _Words(str):
    """An annotation that `inspect` prints as it is."""

    __slots__ = ()
    __repr__ = str.__str__


def _written(annotation: Any) -> Any:
    if annotation is inspect.Signature.empty:
        return annotation
    if isinstance(annotation, str):
        return _Words(annotation)
    return _Words(re.sub(r"\b(?:[A-Za-z_]\w*\.)+", "", inspect.formatannotation(annotation)))


class _View:
    """Gives a method, bound, with the parameters of the function it is a view of."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self.method if instance is None else _BoundView(self.method, instance)


class _BoundView(functools.partial[Any]):
    """A method with its instance. It adds no frame to a traceback, which a class with `__call__` would."""

    @property
    def __signature__(self) -> inspect.Signature:
        function, own = shown_signature(self.args[0]), shown_signature(self.func).return_annotation
        value = "Any" if function.return_annotation is inspect.Signature.empty else function.return_annotation
        # What the decorated classes call the value, and an item of `-> Iterator[item]`.
        kind, _, item = value.removesuffix("]").partition("[")
        names = {"R": f"list[{item}]", "T": item} if kind.endswith("Iterator") else {"R": value, "T": value}
        return function.replace(return_annotation=_Words(re.sub(r"\b[RT]\b", lambda found: names[found[0]], own)))

    @property
    def __name__(self) -> str:
        return self.func.__name__

    def __repr__(self) -> str:
        return f"<view {self.func.__name__} of {self.args[0]!r}>"

    __doc__ = property(lambda self: self.func.__doc__)  # pyright: ignore[reportAssignmentType]  # pydoc asks the instance
