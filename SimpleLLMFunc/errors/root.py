"""The root of all errors: what they carry about the run, and how they travel between processes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Self, get_origin

from SimpleLLMFunc.errors.words import cut, masked

_FACTS = "SimpleLLMFunc"
"""The only key of the dictionary that ends the `args` of an error; its value is the error's attributes."""


def _travelled(args: tuple[Any, ...]) -> bool:
    return bool(args) and isinstance(args[-1], dict) and args[-1].keys() == {_FACTS}


class SimpleLLMFuncError(Exception):
    """The root: ``except SimpleLLMFuncError`` catches every error of this library.

    Attributes:
        trace_id, func_name: of the run that failed; empty outside of a run.
        attempts: the model's answers so far, as in `Result.attempts`.
        usage: tokens of all attempts, as in `Result.usage`; None if no request was sent.
        seconds: how long the run took; None outside of a run.
        tries: HTTP requests made for the last question.
        downgrades: what was asked for in another way than first, as in `Result.downgrades`.
        replayed: steps taken from the journal, as in `Result.replayed`.
        frames: what `border` left out of the traceback; see `whole_traceback`.
    """

    frames: Any = None
    trace_id: str = ""
    func_name: str = ""
    attempts: Sequence[Any] = ()
    usage: Any = None
    cost: float | None = None
    seconds: float | None = None
    messages: Sequence[Any] = ()
    tool_calls: Sequence[Any] = ()
    repairs: Sequence[Any] = ()
    output_mode: str = ""
    output_mode_reason: str = ""
    downgrades: Sequence[tuple[str, str]] = ()
    replayed: Sequence[str] = ()
    cached: bool = False
    finish_reason: str | None = None
    tries: int = 0
    text: str = ""

    def __init__(self, *args: Any) -> None:
        if _travelled(args):
            *args, travelled = args  # type: ignore[assignment]
            vars(self).update(travelled[_FACTS])
        super().__init__(*(masked(arg) if isinstance(arg, str) else arg for arg in args))

    def __init_subclass__(cls, **options: Any) -> None:
        """Let every error be rebuilt from its `args`, whichever facts its own `__init__` takes.

        `pickle`, `copy` and Celery's JSON back end make an error with ``type(error)(*error.args)``.
        """
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            build = cls.__init__

            @wraps(build)
            def built(self: Any, *args: Any, **facts: Any) -> None:
                if _travelled(args):
                    SimpleLLMFuncError.__init__(self, *args)
                else:
                    build(self, *args, **facts)

            cls.__init__ = built  # type: ignore[method-assign]

    if not TYPE_CHECKING:  # type checkers know it as the variable of `BaseException`

        @property
        def args(self) -> tuple[Any, ...]:
            """The text, and a dictionary of the facts that JSON can hold: ``type(error)(*error.args)`` is the error again."""
            facts = {
                name: masked(cut(fact)) if isinstance(fact, str) else fact
                for name, fact in self.__reduce__()[1][-1][_FACTS].items()
                if fact is None or isinstance(fact, (str, int, float))
            }
            return (*super().args, {_FACTS: facts})

    @property
    def whole_traceback(self) -> TracebackType | None:
        """The traceback with the library's own frames, which Python does not print: for ``pdb.post_mortem``."""
        return self.__traceback__ if self.frames is None else self.frames.whole

    def with_run(self, **facts: Any) -> Self:
        """Set facts about the run (the attributes above) that the raiser could not know; return self."""
        for name, value in facts.items():
            setattr(self, name, value)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*super().args, {_FACTS: self.__dict__})


def _rebuild(kind: type[SimpleLLMFuncError], args: tuple[Any, ...], state: dict[str, Any]) -> SimpleLLMFuncError:
    """Return an error that 1.0 pickled; its pickles name this function."""
    return kind(*args, {_FACTS: state})


# --- your code -------------------------------------------------------------------------------------------


class UsageError(SimpleLLMFuncError):
    """The calling code asks for something impossible; trying again will not help."""


class ConfigError(UsageError, ValueError):
    """No model, no key, a missing extra, or a configuration file that does not parse."""


class SignatureError(UsageError, TypeError):
    """A function that cannot be turned into a call, or a call that does not fit the function."""


class ToolDefinitionError(UsageError):
    """A tool that cannot be described to the model; names the tool and the parameter."""

    def __init__(self, tool: str, problem: str) -> None:
        self.tool = tool
        self.problem = masked(problem)
        super().__init__(f"tool {tool!r}: {problem}")


class TemplateError(UsageError):
    """A template with a name that cannot be filled; `.field` names it."""

    def __init__(self, problem: str, *, field: str = "") -> None:
        self.field = field
        super().__init__(problem)


class SchemaError(UsageError):
    """A JSON Schema that is invalid, endless, remote or too large."""


# --- what came back --------------------------------------------------------------------------------------

Violation = tuple[str, str, str]
"""``(path, expected, got)``, such as ``("items[2].price", "float", "'cheap'")``; the root's path is ``""``."""


class ResponseParseError(SimpleLLMFuncError, ValueError):
    """The answer does not fit the type.

    Attributes:
        text: the answer as the model wrote it.
        expected_type: the annotation that the answer should fit; a text after pickling.
        violations: what does not fit, as `Violation` triples.
    """

    violations: Sequence[Violation] = ()

    def __init__(self, text: str, expected_type: Any, violations: Sequence[Violation] = ()) -> None:
        self.expected_type = expected_type
        self.violations = list(violations)
        # Annotated shows its type alone: the violations name its constraints.
        kind = expected_type.__origin__ if get_origin(expected_type) is Annotated else expected_type
        name = kind.__name__ if isinstance(kind, type) else cut(str(kind).replace("typing.", ""), 200)
        shown = "; ".join(
            f"{path or 'the answer'}: expected {wanted}, got {got}" for path, wanted, got in violations[:5]
        )
        more = f" (and {len(violations) - 5} more)" if len(violations) > 5 else ""
        super().__init__(
            f"the answer does not fit {name}: {shown or 'it could not be read'}{more}. Say in the docstring what is "
            f"wanted, raise max_reasks, or widen the type.{text and f' It begins: {cut(text, 200)!r}'}"
        )
        self.text = text

    def __reduce__(self) -> tuple[Any, ...]:
        # The type is pickled as text: a class made inside a function cannot be pickled.
        kind, (text, facts) = super().__reduce__()
        return kind, (text, {_FACTS: {**facts[_FACTS], "expected_type": str(self.expected_type)}})


class CheckpointError(SimpleLLMFuncError):
    """A checkpoint that cannot be trusted; `.row` is the row's number, None where the whole file is meant."""

    def __init__(self, problem: str, *, row: int | None = None) -> None:
        self.row = row
        super().__init__(problem if row is None else f"row {row}: {problem}")


class CallError(SimpleLLMFuncError):
    """A Call could not be carried out; prints its message."""

    data: Any = None

    def __init__(self, message: str, data: Any = None) -> None:
        self.message = masked(message)
        self.data = data
        super().__init__(message)
