"""The written function: its kind, its resolved annotations, and its schema and prompt."""

from __future__ import annotations

import inspect
import re
import sys
from collections import abc
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from types import FrameType, GenericAlias, SimpleNamespace
from typing import Annotated, Any, Literal, NoReturn, get_args, get_origin, get_type_hints

from SimpleLLMFunc.base.schemas import OutputSpec, compile_output, with_descriptions
from SimpleLLMFunc.errors import ConfigError, SignatureError, UsageError
from SimpleLLMFunc.llm_decorator.steps.common.arguments import ArgumentChecks
from SimpleLLMFunc.llm_decorator.steps.common.options import Options
from SimpleLLMFunc.llm_decorator.steps.common.prompt import extract_parameter_type_hints
from SimpleLLMFunc.llm_decorator.steps.common.signature import extract_function_metadata
from SimpleLLMFunc.llm_decorator.steps.common.types import Metadata
from SimpleLLMFunc.llm_decorator.steps.function.templates import quotes_line
from SimpleLLMFunc.type import confident_type

_SYNC_KINDS = (abc.Iterator, abc.Generator, abc.Iterable)
_ASYNC_KINDS = (abc.AsyncIterator, abc.AsyncGenerator, abc.AsyncIterable)
_WRITTEN = re.compile(r"^[\w.]*?(?P<is_async>Async)?(?:Iterator|Generator|Iterable)\s*(?:\[|$)")


def fill() -> NoReturn:
    """Mark the body of a decorated function.

    Write ``return fill()``; to a type checker the function then returns what it promises.

    Raises:
        UsageError: it was run, so the function around it is not decorated.
    """
    raise UsageError("fill() marks a body for a model to fill. Put @llm_function or @llm_chat on the function.")


def _plain(hint: Any) -> Any:
    """Return what an alias (``type Items = ...``) or an `Annotated` stands for."""
    if get_origin(hint) is Annotated:
        return _plain(hint.__origin__)
    value = getattr(hint, "__value__", None)
    return hint if value is None or isinstance(hint, type) else _plain(value)


def check_choice(definition: Definition, options: Options) -> None:
    """Return if a function can be asked as its options say, or they say nothing of a choice.

    Raises:
        ConfigError: it is to be asked as a choice, and returns something else or has tools; or to think first, and has no
            value that could follow the reasons.
    """
    output = definition.output
    if options.think_first:
        is_bare = output.is_text or output.is_none or definition.iterator_kind or options.output_mode == "text"
        if is_bare or options.output_mode == "choice" or options.calibration or options.confidence == "logprobs":
            raise ConfigError(
                f"{definition.name}: think_first=True asks for reasons in a field before the value, which is not for plain "
                "text, None, an iterator, output_mode='choice' or log-probabilities."
            )
    if options.output_mode != "choice":
        return
    if not output.labels:
        raise ConfigError(
            f"{definition.name}: output_mode='choice' is for a function that returns bool, a Literal or an Enum, bare, "
            "Optional or in Confident[...], whose labels differ from each other."
        )
    if options.toolkit:
        raise ConfigError(f"{definition.name}: output_mode='choice' asks for one label, so it takes no toolkit.")


class Definition:
    """A decorated function as its source text defines it.

    Args:
        func: the function as written; a `classmethod` or `staticmethod` object is unwrapped.
        frame: in which it was written, for annotations that are text; dropped when they are resolved.
        is_method: its first parameter is the instance, which is no argument.
        extracted: what `extract_function_metadata` found out before.
        wording: "docstring", and "descriptions" of fields by their paths, that count instead of the written ones.

    Attributes:
        func: the function.
        is_static, binds_class: it was a `staticmethod`, a `classmethod`.
        takes_class: it looks like the function of a `classmethod`: it is in a class and begins with a bare `cls`.

    Raises:
        SignatureError: it is not a function.
    """

    def __init__(
        self,
        func: Any,
        frame: FrameType | None,
        *,
        is_method: bool = False,
        extracted: Metadata | None = None,
        wording: Mapping[str, Any] | None = None,
    ) -> None:
        self.binds_class = isinstance(func, classmethod)
        self.is_static = isinstance(func, staticmethod)
        self.func: Callable[..., Any] = func.__func__ if self.binds_class or self.is_static else func
        is_function = inspect.isroutine(self.func) or hasattr(self.func, "__annotations__")  # a partial is not
        if not callable(self.func) or isinstance(self.func, type) or not is_function:
            raise SignatureError(f"{func!r} is not a function. Decorate a def or an async def.")
        self.takes_class = not (self.binds_class or self.is_static) and _takes_class(self.func)
        self.is_method = self.binds_class or self.takes_class or (is_method and not self.is_static)
        self._written = func
        self._frame = frame
        self._extracted = extracted
        self._wording = wording or {}

    @classmethod
    def of_caller(cls, func: Any, depth: int) -> Definition:
        """Return the definition of a function that is written `depth` calls above the caller of this method."""
        return cls(func, sys._getframe(depth + 1))  # noqa: SLF001 - the one way to see a caller's local names

    def as_method(self) -> Definition:
        """Return the same function as a method: without its first parameter."""
        if self.is_method or self.is_static:
            return self
        return self._like(is_method=True, wording=self._wording)

    def reworded(self, wording: Mapping[str, Any]) -> Definition:
        """Return the same function in other words: a "docstring", "descriptions" of fields; none for those written."""
        return self if wording == self._wording else self._like(is_method=self.is_method, wording=wording)

    def _like(self, *, is_method: bool, wording: Mapping[str, Any]) -> Definition:
        return Definition(self._written, self._frame, is_method=is_method, extracted=self._extracted, wording=wording)

    # --- what it says; read once, as soon as all names in its annotations are defined ---

    @cached_property
    def metadata(self) -> Metadata:
        """The result of `extract_function_metadata`; for a method without its first parameter.

        Raises:
            SignatureError: an annotation cannot be resolved, or not yet.
        """
        if self._extracted is None:
            self._extracted = extract_function_metadata(self.func, self._names_in_sight())
            self._frame = None
        signature, hints, return_type, docstring, name = self._extracted
        if self.is_method:
            first, *others = signature.parameters.values()
            signature = signature.replace(parameters=others)
            hints = {known: hint for known, hint in hints.items() if known != first.name}
        return signature, hints, return_type, self._wording.get("docstring", docstring), name

    def knows(self, part: Literal["metadata", "output"]) -> bool:
        """Whether a part can be read; one that names what is defined later is read again at the first call.

        Raises:
            SignatureError: an annotation cannot be read at all, or the return type has no schema.
        """
        try:
            getattr(self, part)
        except SignatureError as error:
            cause = error.__cause__
            if isinstance(cause, NameError) or getattr(cause, "code", "") == "class-not-fully-defined":
                return False
            raise
        return True

    @property
    def name(self) -> str:
        """Its `__name__`."""
        return getattr(self.func, "__name__", type(self.func).__name__)

    @property
    def place(self) -> str:
        """Its place in the source: ``module:qualname``."""
        return f"{getattr(self.func, '__module__', '')}:{getattr(self.func, '__qualname__', self.name)}"

    @property
    def folder(self) -> Path | None:
        """The folder of its module; None if the module has no file."""
        file = getattr(sys.modules.get(getattr(self.func, "__module__", "")), "__file__", None)
        return Path(file).parent if file else None

    @property
    def signature(self) -> inspect.Signature:
        """Its parameters; a method's without the first one."""
        return self.metadata[0]

    @property
    def hints(self) -> dict[str, Any]:
        """The resolved annotations of its parameters."""
        return extract_parameter_type_hints(self.metadata[1])

    @property
    def returned(self) -> Any:
        """The return annotation if it can be resolved by now, else its text; `Any` if there is no annotation."""
        if self.knows("metadata"):
            return self.metadata[1].get("return", Any)
        written = self.func.__annotations__.get("return", Any)
        alone = SimpleNamespace(__annotations__={"return": written})
        names = {**getattr(self.func, "__globals__", {}), **self._names_in_sight()}
        try:  # a parameter may be what is defined later
            return get_type_hints(alone, names)["return"]
        except Exception:  # noqa: BLE001 - the first call says what is wrong with it
            return written

    @property
    def iterator_kind(self) -> Literal["sync", "async"] | None:
        """Whether it returns an iterator, and which; the name decides for a type that is defined later."""
        returned = self.returned
        if isinstance(returned, str):
            written = _WRITTEN.match(returned.strip())
            return written and ("async" if written["is_async"] else "sync")
        plain = _plain(returned)
        origin = get_origin(plain) or plain
        if origin in _ASYNC_KINDS:
            return "async"
        return "sync" if origin in _SYNC_KINDS else None

    @property
    def return_type(self) -> Any:
        """Its return type."""
        return self.metadata[2]

    def as_called(self) -> tuple[inspect.Signature, bool]:
        """Return its signature without an instance, and whether it is a method.

        At decoration a function does not know yet that it is in a class: its qualified name decides.
        """
        if self.is_method or self.is_static or not _stands_in_class(self.func):
            return self.signature, self.is_method
        return self.signature.replace(parameters=list(self.signature.parameters.values())[1:]), True

    # --- what follows from it for a function; a chat has no use for that ---

    @cached_property
    def confident_of(self) -> tuple[Any] | None:
        """The `T` of a function annotated ``-> Confident[T]``, in a tuple; None for any other.

        Raises:
            SignatureError: `Confident` is not allowed at this place of the type.
        """
        returned = self.return_type  # outside of the block: its SignatureError is a TypeError too
        try:
            return confident_type(returned)
        except TypeError as error:
            raise SignatureError(f"{self.name}: {error}") from error

    @cached_property
    def output(self) -> OutputSpec:
        """How the answer is asked for and read; an iterator's items go over the wire as a list.

        Raises:
            SignatureError: its return type has no schema.
        """
        asked = self.confident_of[0] if self.confident_of else self.return_type
        if self.iterator_kind:
            asked = GenericAlias(list, (get_args(_plain(self.return_type)) or (Any,))[:1])
        descriptions = self._wording.get("descriptions")
        return with_descriptions(compile_output(asked), descriptions) if descriptions else compile_output(asked)

    @cached_property
    def argument_checks(self) -> ArgumentChecks:
        """The checks of its arguments."""
        return ArgumentChecks(self.name, self.signature, self.hints)

    @property
    def note(self) -> str:
        """Instructions after the docstring: which texts to copy, other descriptions of fields."""
        told = [f"{path}: {text}" for path, text in self._wording.get("descriptions", {}).items()]
        return "\n".join(filter(None, [quotes_line(self.output.quotes), *told]))

    def _names_in_sight(self) -> Mapping[str, Any]:
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


def _stands_in_class(func: Any) -> bool:
    around = getattr(func, "__qualname__", "").rpartition(".")[0]
    return bool(around) and not around.endswith("<locals>")


def _takes_class(func: Any) -> bool:
    """Say whether a function in a class has a bare `cls` as its first parameter.

    A `classmethod` is put around it later, where the decorator does not see it. A `cls` with an annotation, such as
    ``cls: str``, is an argument of a static method.
    """
    code = getattr(func, "__code__", None)
    is_first = code is not None and code.co_varnames[:1] == ("cls",) and code.co_argcount > 0
    return is_first and "cls" not in func.__annotations__ and _stands_in_class(func)
