"""`CoreCall`: the base of every Call, from its parameters to its stream of chunks, and to `CallError`, its one error."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Coroutine, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from typing import Any, ClassVar, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import ErrorDetails

from SimpleLLMFunc.calls.asking import Question, closed_with_exec, closing_questions
from SimpleLLMFunc.calls.call_data import CallInfo, CallOutputChunk, CallVars, DataBase, LanguageType, read_history
from SimpleLLMFunc.errors import (
    CallError,
    DeadlineExceeded,
    OutcomeUnknown,
    RunAborted,
    RunPaused,
    SimpleLLMFuncError,
    UsageError,
)
from SimpleLLMFunc.logger import border, redact, redacted_cause, shown_text, shown_value
from SimpleLLMFunc.utils import in_context

_FACTS = (
    "status", "retry_after", "kind", "limit", "spent", "unit", "partial", "reason", "violations", "field", "trace_id",
)  # fmt: skip
"""Attributes of our errors that tell a scheduler what to do next; empty ones are left out."""


class CallNode(Protocol):
    """The tool of a step: name, description, and parameters for all its steps."""

    name: str
    description: str
    known_params: Mapping[str, Any] | None


class CoreCall(BaseModel):
    """The base of every Call: ``class Weather(CoreCall, input_model=WeatherInput, output_model=WeatherOutput)``.

    A subclass writes `info`, `_init` (the task so far → its input) and `_exec` (its input → chunks). The fields are
    its parameters. Used by hand::

        call = await Weather.instance(executor, node, unit="C")
        async for chunk in call.exec(executor, call.input): ...

    `executor` is anything with `.task`, `.step` and `.llm`; without `.llm` (or with None) the model is that of
    `use_llm` or of the environment.

    Attributes:
        name, description: of the step, else of the node, else of `info`.
        node: None, or what a `CallNode` has.
        to_user: the text is for the user; else only later steps see it.
        enable_filling: a `Slot` fills the input before the Call runs.
        input_model, output_model: models of the input and the output.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    input_model: ClassVar[type[DataBase]]
    output_model: ClassVar[type[DataBase]]
    _infos: ClassVar[Mapping[LanguageType, CallInfo]] = {}

    name: SkipJsonSchema[str] = Field(default="", description="Step的名称", exclude=True)
    description: SkipJsonSchema[str] = Field(default="", description="Step的描述", exclude=True)
    node: SkipJsonSchema[Any] = Field(default=None, description="节点信息", exclude=True)
    to_user: bool = Field(default=False, description="是否需要将输出返回给用户")
    enable_filling: bool = Field(default=False, description="是否需要进行自动参数填充")

    _executor: Any = PrivateAttr(default=None)
    _call_vars: CallVars | None = PrivateAttr(default=None)
    _input: dict[str, Any] | None = PrivateAttr(default=None)

    def __init_subclass__(
        cls, input_model: type[DataBase] | None = None, output_model: type[DataBase] | None = None, **kwargs: Any
    ) -> None:
        super().__init_subclass__(**kwargs)
        if input_model is None and output_model is None and not hasattr(cls, "input_model"):
            raise TypeError(f"a Call needs its models: class {cls.__name__}(CoreCall, input_model=…, output_model=…)")
        given: dict[str, Any] = {"input_model": input_model, "output_model": output_model}
        for role, model in given.items():
            if model is None and hasattr(cls, role):
                continue
            if model is not None and not (isinstance(model, type) and issubclass(model, DataBase)):
                raise TypeError(f"{cls.__name__}: {role} must be a subclass of DataBase, not {model!r}")
            setattr(cls, role, model or DataBase)

    # --- what a subclass writes ----------------------------------------------------------------------------

    @classmethod
    def info(cls, language: LanguageType = LanguageType.CHINESE) -> CallInfo:
        """Return name and description for people: those of `_infos`, else the name of the class and its docstring."""
        if cls._infos:
            return cls._infos[LanguageType.of(language)].model_copy()
        return CallInfo(cls.__name__, (cls.__doc__ or "").strip().partition("\n")[0])

    async def _init(self, call_vars: CallVars) -> DataBase | dict[str, Any]:  # noqa: ARG002 - subclasses use it
        """Return the input: by default the parameters that the input model has too.

        With `enable_filling` it may be incomplete: a dict, or `InputModel.model_construct(…)`.
        """
        given = self.model_dump() | (self.model_extra or {})
        return {name: value for name, value in given.items() if name in type(self).input_model.model_fields}

    def _exec(self, input_data: dict[str, Any]) -> AsyncGenerator[CallOutputChunk, None]:  # noqa: ARG002
        """Do the work and yield the chunks; a subclass writes this as an async generator.

        Args:
            input_data: valid by the input model, under the names of its JSON schema.

        Raises:
            CallError: it could not be done.
        """
        raise UsageError(f"{type(self).__name__} has no `async def _exec(self, input_data)` that yields chunks.")

    async def _after_exec(self, input_data: dict[str, Any]) -> None:
        """Do what is left to do, once, when `_exec` has ended well."""

    # --- what the scheduler calls --------------------------------------------------------------------------

    @classmethod
    @border
    async def instance(cls, executor: Any, node: Any = None, /, **kwargs: Any) -> Self:
        """Return a Call that is ready for `exec`: made of its parameters, its input prepared.

        Args:
            executor: with `.task`, `.step` and `.llm`.
            node: None, or with `name`, `description` and `known_params`; may also be given by name.
            **kwargs: the parameters; they override the node's known ones.

        Raises:
            CallError: the parameters do not fit, or the input could not be prepared.
        """
        step = getattr(executor, "step", None)
        with call_errors(str(getattr(step, "name", "") or cls.__name__)):
            given = cls._parameters({**_known_params(node), **kwargs})
            if "node" in given:
                node = kwargs.pop("node")
                given = cls._parameters({**_known_params(node), **kwargs})
            info = cls.info(LanguageType.of(getattr(getattr(executor, "task", None), "language", LanguageType.CHINESE)))
            named = {
                "name": getattr(step, "name", "") or getattr(node, "name", "") or info.name,
                "description": getattr(step, "description", "") or getattr(node, "description", "") or info.description,
            }
            call = cls(node=node, **{**named, **given})
            await call._set_input(executor)
        return call

    @classmethod
    def _parameters(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Return the fields that the parameters of a step set."""
        return given

    @property
    def input(self) -> dict[str, Any]:
        """What `_init` prepared for `exec`; empty before `instance`."""
        return dict(self._input or {})

    def input_schema(self) -> dict[str, Any]:
        """Return the JSON schema of the input, which a `Slot` fills where `enable_filling` is set."""
        return type(self).input_model.model_json_schema()

    async def _set_input(self, executor: Any) -> None:
        """Read the task, and prepare the input by `_init`."""
        self._executor = executor
        self._call_vars = self._assemble_call_vars(executor)
        self._input = _as_dict(await self._init(self._call_vars))

    def _assemble_call_vars(self, executor: Any) -> CallVars:
        """Return what the executor's task says so far; what it does not have stays at its default."""
        task = getattr(executor, "task", None)
        history = getattr(task, "history", None) or []
        steps = dict(history) if isinstance(history, Mapping) else CallVars.steps_of(history)
        told = {name: getattr(task, name, None) for name in ("question", "background", "ids", "language")}
        return CallVars(
            thinking=getattr(getattr(task, "runtime", None), "reasoning", "") or "",
            step_data=steps,
            step_order=list(steps),
            **{name: value for name, value in told.items() if value},
        )

    @border
    async def exec(
        self, executor: Any, input_data: Mapping[str, Any] | DataBase
    ) -> AsyncGenerator[CallOutputChunk, None]:
        """Yield what the Call puts out; closing the generator ends everything below it.

        Args:
            executor: as for `instance`.
            input_data: the input model, or a dict of it.

        Raises:
            CallError: the Call failed; the original error is its `__cause__`, the facts are in `data`.
            RunAborted: the executor's abort signal was set.
        """
        with call_errors(self.name or type(self).__name__):
            self._executor = executor
            if self._call_vars is None:
                self._call_vars = self._assemble_call_vars(executor)
            checked = type(self).input_model.model_validate(_as_dict(input_data)).model_dump(by_alias=True)
            given: Any = self._exec(checked)  # or something else, in a subclass without `yield`
            if not isinstance(given, AsyncGenerator):
                if isinstance(given, Coroutine):
                    given.close()  # else Python warns of it, too
                raise UsageError(
                    f"the `_exec` of {type(self).__name__} yields no chunks, it returns one thing. Write `yield`."
                )
            async with closing_questions() as context, aclosing(in_context(given, context)) as chunks:
                async for chunk in chunks:
                    yield chunk
            await self._after_exec(checked)

    # --- what a subclass uses ------------------------------------------------------------------------------

    def _llm(
        self, messages: Sequence[Mapping[str, Any]], streaming: bool = False, **params: Any
    ) -> AsyncGenerator[str, None]:
        """Ask the model and yield its text: in pieces as they arrive, or whole; never an empty piece.

        Args:
            messages: `{"role": …, "content": …}` items.
            streaming: ask for the answer in pieces.
            **params: go to the provider (`temperature` …).

        Raises:
            SimpleLLMFuncError: as from a decorated function; `exec` makes a `CallError` of it.
        """
        return closed_with_exec(self._question(messages, params).text(streaming=streaming))

    async def _json(
        self, messages: Sequence[Mapping[str, Any]], schema: Mapping[str, Any], *, max_reasks: int = 0, **params: Any
    ) -> dict[str, Any]:
        """Ask the model for one JSON object and return it as the model wrote it.

        One request, in the form the model takes: a native schema, a tool whose parameters are the schema and that it
        has to call, or the schema in the prompt. The object is not checked against the schema: the
        Call may be able to use a part of it.

        Args:
            messages: `{"role": …, "content": …}` items.
            schema: JSON schema of an object.
            max_reasks: further requests where the answer holds no JSON object.
            **params: go to the provider (`temperature` …).

        Raises:
            SchemaError: the schema describes no object.
            ResponseParseError: the answer holds no JSON object.
            SimpleLLMFuncError: as from a decorated function.
        """
        return await self._question(messages, params).json(schema, max_reasks=max_reasks)

    def _extract_history_variables(self, path: str, history: Any = None) -> Any:
        """Return the value at ``step/key/sub`` in the outputs of earlier steps, or None; never raises.

        Args:
            path: the step's name alone gives its whole output; ``step/text`` is the text of a text step; a number is
                an index of a list; ``~1`` stands for a slash inside a name and ``~0`` for a tilde.
            history: steps by name, or a list of them; None is the history that this Call was made with.
        """
        if history is None:
            history = self._call_vars.step_data if self._call_vars else {}
        return read_history(path, history)

    @property
    def _language(self) -> LanguageType:
        return self._call_vars.language if self._call_vars else LanguageType.CHINESE

    def _question(self, messages: Sequence[Mapping[str, Any]], params: Mapping[str, Any]) -> Question:
        return Question(
            self.name or type(self).__name__,
            messages,
            params,
            getattr(self._executor, "llm", None),
            self._language,
            getattr(self._executor, "abort_signal", None),
            description=self.description,
            arguments=self._input or {},
        )


def _as_dict(data: Mapping[str, Any] | BaseModel) -> dict[str, Any]:
    return data.model_dump(by_alias=True) if isinstance(data, BaseModel) else dict(data)


def _known_params(node: Any) -> Mapping[str, Any]:
    return getattr(node, "known_params", None) or {}


# --- errors inside a Call become `CallError`, the one error that schedulers know ---


@contextmanager
def call_errors(name: str) -> Iterator[None]:
    """Turn every error raised inside into a `CallError` that begins with `name`; an abort or a pause passes unchanged."""
    try:
        yield
    except (CallError, RunAborted, RunPaused, OutcomeUnknown):
        raise
    except Exception as error:  # noqa: BLE001 - a Call promises one error; the original is its cause
        failure = as_call_error(error, f"{name}: " if name else "")
    else:
        return
    # Not inside the block above: the original would stay as the context, secrets and all.
    raise failure


def as_call_error(error: Exception, before: str = "") -> CallError:
    """Return `error` as a `CallError`, with `error` (or a copy without secrets) as its cause.

    Its `data` is `{"error": <class name>, …}` with what the error knew, as JSON data: of a refused request `status` and
    `retry_after`, of a budget `unit`, `limit` and `spent`, of a deadline `seconds`, of a cut answer `partial`, of data
    that does not fit `violations`.

    Args:
        error: what was raised; a `CallError` is returned as it is.
        before: precedes the error's own text.
    """
    if isinstance(error, CallError):
        return error
    said = f"{type(error).__name__}: {error}".removesuffix(": ")
    data: dict[str, Any] = {"error": type(error).__name__}
    if isinstance(error, SimpleLLMFuncError):
        said = str(error)
        for name in _FACTS:
            if (fact := getattr(error, name, None)) not in (None, "", [], ()):
                data[name] = _without_secrets(fact)
        if isinstance(error, DeadlineExceeded):
            data["seconds"] = error.seconds  # what it was given; elsewhere it is how long the run took
    elif isinstance(error, ValidationError):
        data["violations"] = violations = [_violation(each) for each in error.errors()]
        said = "; ".join(f"{path or 'the input'}: {wanted}, got {got}" for path, wanted, got in violations)
    failure = CallError(f"{before}{shown_text(said.removeprefix(before), 2000)}", data)
    failure.__cause__ = redacted_cause(error)
    if isinstance(error, SimpleLLMFuncError):
        failure.with_run(trace_id=error.trace_id, func_name=error.func_name, usage=error.usage, attempts=error.attempts)
    return failure


def _violation(problem: ErrorDetails) -> list[str]:
    """Return where a value does not fit, what was wanted there, and what it is."""
    got = "nothing" if problem["type"] == "missing" else shown_value(problem["input"], 200)
    return [".".join(map(str, problem["loc"])), problem["msg"], got]


def _without_secrets(fact: Any) -> Any:
    if isinstance(fact, str):
        return redact(fact)
    if isinstance(fact, (list, tuple)):
        return [_without_secrets(part) for part in fact]
    return fact if isinstance(fact, (int, float)) else redact(str(fact))
