"""`@llm_function`: the docstring is the prompt, the annotations are the contract.

A call takes five steps: signature, log context, prompt, ReAct, response. `function_pipeline.py` takes them in
order; `steps/` holds each.
"""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import AsyncIterable, Callable, Coroutine, Iterator, Sequence
from typing import Any, Literal, ParamSpec, Protocol, TypeVar, get_overloads, overload

from SimpleLLMFunc.base.parsing import OutputMode, RepairLevel
from SimpleLLMFunc.base.run import Abort, EventSink
from SimpleLLMFunc.errors import SignatureError
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.llm_decorator.decorated import AsyncLLMFunction, AsyncLLMStream, LLMFunction, LLMStream
from SimpleLLMFunc.llm_decorator.definition import Definition
from SimpleLLMFunc.llm_decorator.function_pipeline import FunctionPipeline
from SimpleLLMFunc.llm_decorator.steps.common.calibration import Calibration
from SimpleLLMFunc.llm_decorator.steps.common.options import Options, read_arguments
from SimpleLLMFunc.llm_decorator.steps.common.types import GivenExamples, Thinking
from SimpleLLMFunc.logger import border

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


_UNDOCUMENTED = """\
{name} has no docstring (an f-string does not count, and python -OO removes them all), so the model is not told what to do. Write a plain \
one, whose fields a call fills:
    \"\"\"Grade the essay for a {{audience}}.\"\"\"    and    {name}.with_options(template_params={{"audience": "teacher"}})(...)
or give the words to the decorator:
    @llm_function(system_prompt_template="Grade the essay.")"""


class FunctionDecorator(Protocol):
    """The decorator that `llm_function(...)` returns."""

    @overload
    def __call__(self, func: Callable[P, Coroutine[Any, Any, AsyncIterable[T]]], /) -> AsyncLLMStream[P, T]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, func: Callable[P, AsyncIterable[T]], /) -> AsyncLLMStream[P, T]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, func: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncLLMFunction[P, R]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, func: Callable[P, Iterator[T]], /) -> LLMStream[P, T]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, func: Callable[P, R], /) -> LLMFunction[P, R]: ...


@overload
def llm_function(llm_interface: Callable[P, Coroutine[Any, Any, AsyncIterable[T]]], /) -> AsyncLLMStream[P, T]: ...  # type: ignore[overload-overlap]
@overload
def llm_function(llm_interface: Callable[P, AsyncIterable[T]], /) -> AsyncLLMStream[P, T]: ...  # type: ignore[overload-overlap]
@overload
def llm_function(llm_interface: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncLLMFunction[P, R]: ...  # type: ignore[overload-overlap]
@overload
def llm_function(llm_interface: Callable[P, Iterator[T]], /) -> LLMStream[P, T]: ...  # type: ignore[overload-overlap]
@overload
def llm_function(llm_interface: Callable[P, R], /) -> LLMFunction[P, R]: ...
@overload
def llm_function(
    llm_interface: LLM_Interface | None = None,
    toolkit: Sequence[Any] | None = None,
    max_tool_calls: int = 5,
    system_prompt_template: str | None = None,
    user_prompt_template: str | None = None,
    output_mode: OutputMode = "auto",
    repair: RepairLevel = "coerce",
    max_reasks: int = 2,
    retry_times: int = 2,
    deadline: float | None = None,
    on_tool_error: Literal["report", "raise"] = "report",
    max_result_chars: int = 65536,
    toolkit_confirm: Callable[..., Any] | None = None,
    tools: Literal["auto", "native", "json"] = "auto",
    tool_context: Any = None,
    watching: EventSink | Sequence[EventSink] | None = None,
    abort_signal: Abort | None = None,
    check_arguments: bool = True,
    examples: GivenExamples | None = None,
    max_examples: int = 8,
    votes: int | None = None,
    min_agreement: float | None = None,
    vote_on: Sequence[str] | None = None,
    escalate_to: LLM_Interface | None = None,
    confidence: Literal["auto", "logprobs", "votes"] = "auto",
    calibration: Calibration | str | os.PathLike[str] | None = None,
    first: Callable[..., Any] | None = None,
    fallback: Callable[..., Any] | None = None,
    fallback_reserve: float = 0.5,
    sample: float = 0.0,
    thinking: Thinking | None = None,
    think_first: bool = False,
    guards: Sequence[Callable[..., Any]] | None = None,
    toolkit_search: bool | Callable[..., Any] | None = None,
    embeddings: LLM_Interface | None = None,
    **llm_kwargs: Any,
) -> FunctionDecorator: ...
def llm_function(*args: Any, **options: Any) -> Any:  # noqa: D417 - the last overload has them
    """Turn a typed, documented function into a call to a language model.

    The docstring says what to do, the parameters what with, the return annotation what comes back: a value of
    that type, or an error that says why not. The body is never run: write ``raise NotImplementedError`` or
    ``return fill()``. Also as bare ``@llm_function``, and on methods, class and static methods, `def` and
    `async def`.

    Args:
        llm_interface: the model; None asks, at call time, `use_llm` and then ``SIMPLELLMFUNC_MODEL``.
        toolkit: tools, also of other packages, and plain functions that the model may call; and tools that the service
            itself runs, as dicts in its own form: ``{"type": "web_search"}``.
        max_tool_calls: rounds of tool calls; after the last one the model answers without tools. 0 offers none.
        system_prompt_template: text with the fields ``{function_description}``, ``{parameters_description}``
            and ``{return_type_description}``.
        user_prompt_template: text with the field ``{parameters}``.
        output_mode: how the answer is asked for: "native" (JSON schema), "tool", "prompt", "text", "choice" (one label of
            a `bool`, `Literal` or Enum, all of which the model is told), or "auto".
        repair: how far an answer that is not strict JSON may be read: "off", "syntax" or "coerce".
        max_reasks: how often an answer that does not fit is sent back with what was wrong.
        retry_times: further attempts after an empty answer.
        deadline: seconds for the whole call: queueing, tries, re-asks and tools.
        on_tool_error: "report" lets the model read what went wrong, "raise" raises `ToolFailed`.
        max_result_chars: a longer tool result is cut, with a note.
        toolkit_confirm: ``(tool_name, arguments) -> bool``, sync or async, asked before a tool marked
            ``confirm=True`` runs; None refuses.
        tools: how the toolkit is offered: "native" tool calls, "json" actions for a model that has none, or
            "auto": what the provider's profile says, and "json" after a refusal.
        tool_context: the `context` of every `ToolContext`.
        watching: sinks that see every event of every run; see `watching`.
        abort_signal: ends a run when it is set; `_abort_signal=` at the call comes before it.
        check_arguments: make sure, before anything is sent, that the arguments fit their annotations, as pydantic reads
            them (``"3"`` is an int, None is no str); they are not converted.
        examples: calls and what they should return, shown to the model as messages: ``[(arguments, value), …]``, where
            a tuple is positional arguments, a dict keywords, anything else the single argument; or the path of a JSONL
            file with lines ``{"args": …, "value": …}``, also looked for in the folder of the module.
        max_examples: of more examples the ones are shown whose arguments are most like those of the call.
        votes: of a function annotated ``-> Confident[T]``: how often it asks; None is 5.
        min_agreement: of the same: a field on which a smaller share agrees makes the answer `abstained`; None is 0.6.
        vote_on: of the same: the fields that are voted on, such as ``["score"]``; the others are taken from the answer
            that has most of what was decided. None is all fields, free text too.
        escalate_to: of the same: a stronger model that votes if the first one's votes abstain.
        confidence: of the same: "logprobs" asks once for a choice (`bool`, `Literal`, Enum) and reads how probable each
            label is, "votes" asks several times, "auto" asks once where the model gives log-probabilities and no `votes`
            are wanted.
        calibration: what `f.calibrate()` kept, or the path of it: corrects how probable the labels of a choice are.
        first: plain code, sync or async, with the same parameters. It is called first, and the model only where it
            returns `ABSTAIN` or raises `Abstain`.
        fallback: plain code that answers where the model cannot: the service is down, the budget spent, the deadline
            near. It may abstain as well; the model's error is raised then.
        fallback_reserve: seconds of a deadline that are kept for `fallback`; with less left the model is not asked.
        sample: share of the calls, from 0 to 1, in which plain code and the model are both asked; `f.agreement` counts
            how often they say the same.
        thinking: how much the model thinks before it answers: "off", "low", "medium", "high", or a number of tokens; None
            leaves it to the model. A word that the model does not have is a `ConfigError` before anything is sent.
        think_first: ask for the reasons, in a field of free text, before the value; `Result.thinking` has them.
        guards: functions that see the arguments before the model is asked, or the value after; see `SimpleLLMFunc.guards`.
        toolkit_search: True offers the model one tool instead of the toolkit, which finds tools by BM25 over their names and
            descriptions; those found are offered from the next turn on. A function ``(query, tools)`` finds them its way.
        embeddings: a model whose `embed` compares texts: it finds tools, and chooses examples in calls (`preview` and
            batch files choose by words, as all do without it).
        **llm_kwargs: request parameters, which go to the provider (`temperature`, `seed` …), and ``extra_body={…}`` for
            those that only your service knows: its entries go to the top level of the request's body.

    A function without a docstring is a `UserWarning`, unless `system_prompt_template` is given.

    Raises:
        SignatureError: what is decorated is not a function, its return type cannot be asked for, or an example or plain
            code does not fit it.
        ToolDefinitionError: a tool the model could not be told about.
        ConfigError: an argument that cannot be.
    """
    with border:
        func, made = read_arguments(_SIGNATURE, args, options)
        if func is not None:
            return _decorated(Definition.of_caller(func, 1), made)

    def decorate(func: Any) -> Any:
        with border:
            return _decorated(Definition.of_caller(func, 1), made)

    return decorate


def _decorated(definition: Definition, options: Options) -> Any:
    pipeline, func = FunctionPipeline(definition, options), definition.func
    if options.system_prompt_template is None and not (inspect.getdoc(func) or "").strip():
        warnings.warn(_UNDOCUMENTED.format(name=definition.name), stacklevel=3)
    kind, is_async = definition.iterator_kind, inspect.iscoroutinefunction(func)
    if kind == "sync" and is_async:
        raise SignatureError(
            f"{definition.name}: an async def whose items arrive one by one returns AsyncIterator[...]. Write that, "
            "list[...] for all of them at once, or def."
        )
    if kind is not None:
        return AsyncLLMStream(pipeline) if kind == "async" else LLMStream(pipeline)
    return AsyncLLMFunction(pipeline) if is_async else LLMFunction(pipeline)


# The parameters are written once, in the last overload; `inspect`, `help` and editors read them there.
_SIGNATURE = inspect.signature(get_overloads(llm_function)[-1])
llm_function.__signature__ = _SIGNATURE  # type: ignore[attr-defined]

async_llm_function = llm_function
"""The same decorator: an `async def` is seen as such."""
