"""`Tool`, and `@tool`: something a model may call."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Mapping
from types import NoneType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeAlias, TypeVar, cast, overload

from SimpleLLMFunc.errors import ToolDefinitionError, cut
from SimpleLLMFunc.logger import border
from SimpleLLMFunc.tools.carried import carried_tool
from SimpleLLMFunc.tools.context import ToolContext
from SimpleLLMFunc.tools.schemas import (
    ArgumentsError,
    BoundArguments,
    Documentation,
    SchemaParameters,
    SignatureParameters,
    docstring_of,
    name_of,
    read_docstring,
    strict_parameters,
)
from SimpleLLMFunc.tools.wire import read_arguments, wire_name
from SimpleLLMFunc.type import ToolSpec
from SimpleLLMFunc.utils import found_by, is_number, pickled_by_value

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")


class Tool:
    """Something a model may call: ``Tool(func=…)``, or a subclass with a method `run`, sync or async.

    `func` may also be a tool of another package; see `carried_tool`.

    Attributes:
        name: what it is called; a subclass may set it, else it is that of the function or the class.
        description: what the model reads; else the docstring, else the name.
        parameters: JSON Schema of the arguments; else read from signature and docstring.
        timeout: seconds one call may take, None for no limit.
        confirm: ask the callback given as `toolkit_confirm` before it runs; without a callback it never runs.
        untrusted: its results come from outside (search, web, files) and enter in a delimited block.
        once: inside of a `durable` block it never runs twice: where its process died while it ran, `recover` is asked.
        recover: sync or async, with the parameters of the tool or some of them, and a `ToolContext` if it wants one; finds
            out what a once-tool has done and returns that as its result, or `ABSTAIN`. None leaves it to you.

    Raises:
        ToolDefinitionError: nothing to call, a parameter without a type, a schema or `recover` that cannot be used.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    timeout: float | None = None
    confirm: bool = False
    untrusted: bool = False
    once: bool = False
    recover: Callable[..., Any] | None = None

    _func: Callable[..., Any]
    _takes: _Takes

    @border
    def __init__(
        self,
        func: Callable[..., Any] | None = None,
        name: str | None = None,
        description: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        confirm: bool | None = None,
        untrusted: bool | None = None,
        once: bool | None = None,
        recover: Callable[..., Any] | None = None,
    ) -> None:
        if func is None and type(self).run is Tool.run:
            raise ToolDefinitionError(
                name or type(self).__name__, "there is nothing to call. Give `func=`, or write a subclass with `run`."
            )
        if not isinstance(func, (Tool, NoneType)) and (found := carried_tool(func)) is not None:
            name, description = name or found.name, description or found.description
            func, parameters = found.func, found.parameters if parameters is None else parameters
        if func is not None and not callable(func):
            raise ToolDefinitionError(name or cut(repr(func), 60), f"a {type(func).__name__} cannot be called.")
        given = {"timeout": timeout, "confirm": confirm, "untrusted": untrusted, "once": once, "recover": recover}
        for option, value in given.items():
            if value is not None:
                setattr(self, option, value)
        if isinstance(func, Tool):
            func = func.func  # the same under another name, or with other options
        self._define(func if func is not None else self.run, name, description, parameters)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Do the work with these arguments as they are; for an async tool this gives a coroutine."""
        return self._func(*args, **kwargs)

    def run(self, /, *args: Any, **kwargs: Any) -> Any:
        """Do the work; a subclass writes this with its own parameters, as `def` or `async def`."""
        return self._func(*args, **kwargs)

    def bind(self, arguments: str | Mapping[str, Any], context: ToolContext[Any] | None = None) -> BoundArguments:
        """Return positional and keyword arguments for `run`, validated and converted.

        Args:
            arguments: the model's JSON text, or an object.
            context: what a `ToolContext` parameter receives.

        Raises:
            ArgumentsError: they do not fit.
        """
        values = self.read(arguments) if isinstance(arguments, str) else arguments
        return self._takes.bind(values, context if context is not None else ToolContext(tool_name=self.name))

    def read(self, text: str, mend: Callable[[str], dict[str, Any] | None] | None = None) -> dict[str, Any]:
        """Return the arguments in a model's JSON text.

        Args:
            text: as the model wrote it.
            mend: reads what is not quite JSON, None where that would take a guess; not asked where `parameters` were
                given: they are checked as sent.

        Raises:
            ArgumentsError: it is no JSON object.
        """
        try:
            return read_arguments(text)
        except ArgumentsError:
            mended = mend(text) if mend is not None and self._takes.may_repair else None
            if mended is None:
                raise
            return mended

    @property
    def func(self) -> Callable[..., Any]:
        """What runs: the function given, or the subclass's `run`."""
        return self._func

    def to_openai_tool(self, *, strict: bool = False) -> ToolSpec:
        """Return the tool as providers want it, under a name they take.

        Args:
            strict: in the form that holds a model to the schema, where the parameters come from a signature and
                have such a form with the same meaning.
        """
        function: dict[str, Any] = {
            "name": wire_name(self.name),
            "description": self.description or self.name,
            "parameters": self.parameters,
        }
        # A schema given by hand is checked as sent, and could not take the null that stands for "left out".
        if strict and self._takes.may_repair and (held := strict_parameters(self.parameters)) is not None:
            function.update(parameters=held, strict=True)
        return {"type": "function", "function": function}

    if not TYPE_CHECKING:

        def __getattr__(self, attribute: str) -> Any:
            # Many a subclass has an `__init__` that does not call ours; it is defined when it is first looked at.
            if attribute in {"name", "description", "parameters", "_func", "_takes"}:
                self._define(self.run)
                return self.__dict__[attribute]
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {attribute!r}")

    def _define(
        self,
        func: Callable[..., Any],
        name: str | None = None,
        description: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        """Settle name, description and parameters: from what is given, what the class says, what `func` shows."""
        kind = type(self)
        is_subclass = kind.run is not Tool.run
        self._func = func
        self.name = name or self._said("name") or (kind.__name__ if is_subclass else name_of(func))
        if not isinstance(self.name, str):
            raise ToolDefinitionError(str(self.name), "its name must be a str.")
        self._check_options()
        documentation = read_docstring(docstring_of(func))
        of_class = _class_description(kind) if is_subclass else ""
        self.description = (
            description or self._said("description") or documentation.description or of_class or self.name
        )
        schema = parameters if parameters is not None else self._said("parameters")
        self._takes = self._parameters_of(func, schema, documentation)
        self.parameters = self._takes.schema
        if self.recover is not None and not getattr(self, "_is_unbound", False):
            self._check_recover(self.recover)

    def _check_recover(self, recover: Callable[..., Any]) -> None:
        try:
            finder = as_tool(recover)
        except ToolDefinitionError as error:
            raise ToolDefinitionError(self.name, f"its recover= cannot be called: {error.problem}") from None
        if unknown := set(finder.parameters.get("required", ())) - self.parameters.get("properties", {}).keys():
            raise ToolDefinitionError(self.name, f"its recover= takes {', '.join(unknown)}, which is not given to it.")

    def _said(self, attribute: str) -> Any:
        """Return what an `__init__` that does not call ours has set, else what the class says."""
        return vars(self).get(attribute, getattr(type(self), attribute, None))

    def _check_options(self) -> None:
        for option in ("confirm", "once"):
            if not isinstance(getattr(self, option), bool):
                raise ToolDefinitionError(self.name, f"{option} is True or False, not {getattr(self, option)!r}.")
        if self.recover is not None and not (self.once and callable(self.recover)):
            raise ToolDefinitionError(self.name, "recover is a function, and belongs to once=True.")
        seconds: Any = self.timeout
        if seconds is not None and not (is_number(seconds) and seconds > 0):
            raise ToolDefinitionError(self.name, f"its timeout must be seconds above 0, not {seconds!r}.")

    def _parameters_of(
        self, func: Callable[..., Any], schema: Mapping[str, Any] | None, documentation: Documentation
    ) -> _Takes:
        if schema is None:
            return SignatureParameters.of(func, self.name, documentation)
        return SchemaParameters.of(func, self.name, schema)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class FunctionTool(Tool, Generic[P, R]):
    """A function under `@tool`: a tool for models, and still the function for everybody else.

    In a class it binds as a method does: ``toolkit=[thing.method]``.
    """

    @border
    def __init__(
        self,
        func: Callable[P, R],
        name: str | None = None,
        description: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        plain: Any = func.__func__ if isinstance(func, (staticmethod, classmethod)) else func
        self._given_parameters = parameters
        self._binds_class = isinstance(func, classmethod)
        self._is_unbound = self._binds_class or (plain is func and _is_method(plain))
        self._bound_takes: _Takes | None = None
        self._instance: Any = None
        functools.update_wrapper(self, plain, updated=())
        super().__init__(plain, name, description, parameters, **options)

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself, with nothing in between."""
        result: R = self._func(*args, **kwargs)
        return result

    @overload
    def __get__(self, instance: None, owner: type | None = None, /) -> Self: ...

    @overload
    def __get__(
        self: FunctionTool[Concatenate[S, Q], T], instance: S, owner: type | None = None, /
    ) -> FunctionTool[Q, T]: ...

    def __get__(self, instance: Any, owner: type | None = None, /) -> Any:
        """Return the tool bound to the object it is reached through, as functions do."""
        target = (owner or type(instance)) if self._binds_class else instance
        if target is None or not self._is_unbound:
            return self
        method = types.MethodType(self._func, target)
        if self._bound_takes is None:
            documentation = read_docstring(docstring_of(method))
            self._bound_takes = super()._parameters_of(method, self._given_parameters, documentation)
        bound: Any = object.__new__(type(self))
        own = {"_func": method, "_instance": target, "_is_unbound": False, "__signature__": inspect.signature(method)}
        bound.__dict__ |= self.__dict__ | own | {"_takes": self._bound_takes, "parameters": self._bound_takes.schema}
        if self.recover is not None and _is_method(self.recover):
            bound.recover = types.MethodType(self.recover, target)
        del bound.__wrapped__  # it still has the parameter that is bound now
        return bound

    def _parameters_of(
        self, func: Callable[..., Any], schema: Mapping[str, Any] | None, documentation: Documentation
    ) -> _Takes:
        if self._is_unbound:
            schema = {}  # known when the method is reached through an object
        return super()._parameters_of(func, schema, documentation)

    def __reduce_ex__(self, protocol: Any) -> Any:
        # As functions are: by name. The name leads to this object, not to the function inside it.
        if self._instance is not None:
            return getattr, (self._instance, self._func.__name__)
        name = getattr(self, "__qualname__", self.name)
        if found_by(self)[1] is self:
            return name
        return pickled_by_value(_made_again, type(self), dict(vars(self))) or name


def _made_again(kind: type[FunctionTool[..., Any]], facts: dict[str, Any]) -> FunctionTool[..., Any]:
    made = object.__new__(kind)
    vars(made).update(facts)
    return made


_Takes: TypeAlias = SignatureParameters | SchemaParameters
"""What a tool takes: `schema`, whether its arguments `may_repair` in their syntax, and `bind`."""


@overload
def tool(func: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    confirm: bool = False,
    untrusted: bool = False,
    once: bool = False,
    recover: Callable[..., Any] | None = None,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


@border
def tool(func: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a function something a model may call; it stays callable as before.

    Bare, or with the arguments of `Tool`: ``@tool(name="web.search", timeout=30, untrusted=True)``.

    Args:
        func: the function, sync or async; its parameters need types.
        **options: `name`, `description`, `parameters`, `timeout`, `confirm`, `untrusted`, `once`, `recover`.

    Raises:
        ToolDefinitionError: a parameter without a type, or with one no schema can be made of.
    """
    if func is None:
        return border(lambda decorated: FunctionTool(decorated, **options))
    return FunctionTool(func, **options)


def as_tool(candidate: Any, *, where: str = "toolkit") -> Tool:
    """Return what is in a toolkit as a `Tool`: a tool, also of another package, a decorated function, or any callable.

    Raises:
        ToolDefinitionError: it is something else, or not usable; `where` says whose toolkit it is.
    """
    if isinstance(candidate, Tool):
        if isinstance(candidate, FunctionTool) and candidate._is_unbound:  # noqa: SLF001 - the same module
            raise ToolDefinitionError(candidate.name, f"it is a method. Put `thing.{candidate.name}` into the {where}.")
        return candidate
    if isinstance(candidate, type) and issubclass(candidate, Tool):
        raise ToolDefinitionError(
            candidate.__name__, f"it is a class. Put an object into the {where}: `{candidate.__name__}()`."
        )
    if inspect.ismethod(candidate) and isinstance(candidate.__func__, FunctionTool):
        return cast("Tool", candidate.__func__.__get__(candidate.__self__))
    if carried_tool(candidate) is not None:
        return Tool(func=candidate)
    made = getattr(candidate, "as_tool", None)
    if callable(made) and isinstance(converted := made(), Tool):
        return converted
    if not callable(candidate):
        raise ToolDefinitionError(
            cut(repr(candidate), 60),
            f"a {type(candidate).__name__} cannot be a tool in the {where}: it carries no name and no JSON Schema. Give "
            "a function, a Tool, or a pair of an OpenAI tool dictionary and a function.",
        )
    return Tool(func=candidate)


def _class_description(kind: type[Tool]) -> str:
    """Return what the class, or the nearest one it comes from, says about itself."""
    for each in kind.__mro__[: kind.__mro__.index(Tool)]:
        if each.__doc__:
            return read_docstring(each.__doc__).description
    return ""


def _is_method(func: Any) -> bool:
    """Whether the function was defined in the body of a class and so will be given an object first."""
    parent = getattr(func, "__qualname__", "").rpartition(".")[0]
    if not inspect.isfunction(func) or not parent or parent.endswith("<locals>"):
        return False
    first = next(iter(inspect.signature(func).parameters.values()), None)
    return first is not None and (first.name in {"self", "cls"} or first.annotation is first.empty)
