"""The base of all decorated objects. `inspect` and `help` show each view with the parameters of its function."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, ParamSpec, Self, TypeVar, cast

from SimpleLLMFunc.base.metadata import Written, shown_signature
from SimpleLLMFunc.base.run import Preview
from SimpleLLMFunc.llm_decorator.mapped import reduced
from SimpleLLMFunc.llm_decorator.pipeline import Pipeline
from SimpleLLMFunc.llm_decorator.steps.common.prompt import process_docstring_template
from SimpleLLMFunc.logger import border
from SimpleLLMFunc.tools import Tool, wire_name

F = TypeVar("F", bound=Callable[..., Any])
L = TypeVar("L", bound=Pipeline)
P = ParamSpec("P")

FUNCTION_LIKE = (*functools.WRAPPER_ASSIGNMENTS, "__code__", "__defaults__", "__kwdefaults__")
"""What an object needs, next to a signature, to look like a function to `inspect` and to other packages."""


def view(method: F) -> F:
    """Mark a method as a view: read from an instance, it has the parameters of the decorated function."""
    return cast("F", _View(method))


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
        function, method = (shown_signature(inspect.signature(each)) for each in (self.args[0], self.func))
        value = "Any" if function.return_annotation is inspect.Signature.empty else function.return_annotation
        # What the decorated classes call the value, and an item of `-> Iterator[item]`.
        kind, _, item = value.removesuffix("]").partition("[")
        names = {"R": f"list[{item}]", "T": item} if kind.endswith("Iterator") else {"R": value, "T": value}
        own = re.sub(r"\b[RT]\b", lambda found: names[found[0]], method.return_annotation)
        return function.replace(return_annotation=Written(own))

    @property
    def __name__(self) -> str:
        return self.func.__name__

    def __repr__(self) -> str:
        return f"<view {self.func.__name__} of {self.args[0]!r}>"

    __doc__ = property(lambda self: self.func.__doc__)  # pyright: ignore[reportAssignmentType]  # pydoc asks the instance


class Views(Generic[L, P]):
    """The base of all decorated functions and chats: looks like the function, binds to an instance, has `with_options`.

    Args:
        pipeline: of the function.
        instance: the object or class that a method is bound to.
    """

    __name__: str
    __qualname__: str
    _taken_over: Sequence[str] = functools.WRAPPER_ASSIGNMENTS

    def __init__(self, pipeline: L, instance: Any = None) -> None:
        self._pipeline = pipeline
        self._instance = instance
        func: Any = pipeline.definition.func
        functools.update_wrapper(self, func if instance is None else func.__get__(instance), self._taken_over)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        llm = self._pipeline.options.llm_interface
        asked = "" if llm is None else f", {llm.model_name}"
        own: Any = self
        return f"<{type(self).__name__} {self.__qualname__}{shown_signature(inspect.signature(own))}{asked}>"

    def __reduce__(self) -> Any:
        return reduced(self)

    @border
    def as_tool(self, name: str | None = None) -> Tool:
        """Return this function as a tool for another one; LangChain, LlamaIndex and DSPy take it as well."""
        made = Tool(func=cast("Callable[..., Any]", self), name=name)
        made.description = process_docstring_template(made.description, self._pipeline.options.template_params)
        functools.update_wrapper(made, cast("Callable[..., Any]", self), FUNCTION_LIKE, updated=())
        # DSPy reads the signature of `__call__`.
        vars(made).update(__name__=wire_name(made.name), __call__=self)
        return made

    def __set_name__(self, owner: type, name: str) -> None:
        self._pipeline = self._pipeline.as_method()

    def _bind(self, instance: Any, owner: type | None) -> Self:
        definition = self._pipeline.definition
        if definition.is_static:
            return self
        bound_to = (owner or type(instance)) if definition.binds_class else instance
        return self if bound_to is None else self._bound_to(bound_to)

    def _bound_to(self, instance: Any) -> Self:
        return type(self)(self._pipeline.as_method(), instance)

    @property
    def _lacks_instance(self) -> bool:
        """Whether it is an unbound method: called through its class, it gets the instance as first argument."""
        definition = self._pipeline.definition
        return self._instance is None and definition.is_method and not definition.takes_class

    @border
    def with_options(self, **options: Any) -> Self:
        """Return the same function with other decorator arguments.

        Takes every argument of the decorator, and `template_params` for the fields of the docstring.

        Raises:
            ConfigError: there is no such argument, or it cannot have this value.
        """
        return self._around(self._pipeline.with_options(options), options)

    def _around(self, pipeline: L, options: Mapping[str, Any]) -> Self:  # noqa: ARG002 - functions use it
        return type(self)(pipeline, self._instance)

    def _without_instance(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments without the instance, or the class, that Python puts before them.

        A `classmethod` around a decorated function asks its `__get__`; from Python 3.13 on it puts the class first instead.
        """
        takes_class = self._instance is None and self._pipeline.definition.takes_class
        has_class = takes_class and isinstance(next(iter(args), None), type)
        return args[1:] if self._lacks_instance or has_class else args

    @view
    @border
    def preview(self, *args: P.args, **kwargs: P.kwargs) -> Preview:
        """Return the exact request, without sending it."""
        return self._pipeline.preview(self._without_instance(args), kwargs, stream=self._pipeline.options.stream)
