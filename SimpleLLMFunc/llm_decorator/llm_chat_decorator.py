"""`@llm_chat`: a streaming dialogue with history.

A call takes five steps: signature, log context, messages, ReAct, response stream. `chat_pipeline.py` takes them in
order; `steps/` holds each.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Callable, Coroutine, Iterator, Sequence
from typing import Any, Literal, ParamSpec, Protocol, TypeVar, get_overloads, overload

from SimpleLLMFunc.base.run import Abort, EventSink
from SimpleLLMFunc.errors import SignatureError
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.llm_decorator.chat_pipeline import ChatPipeline
from SimpleLLMFunc.llm_decorator.decorated import AsyncLLMChat, LLMChat
from SimpleLLMFunc.llm_decorator.definition import Definition
from SimpleLLMFunc.llm_decorator.steps.common.options import Options, read_arguments
from SimpleLLMFunc.llm_decorator.steps.common.types import Compact, Thinking
from SimpleLLMFunc.logger import border

P = ParamSpec("P")
T = TypeVar("T")


class ChatDecorator(Protocol):
    """The decorator that `llm_chat(...)` returns."""

    @overload
    def __call__(self, func: Callable[P, Coroutine[Any, Any, AsyncIterable[T]]], /) -> AsyncLLMChat[P, T]: ...
    @overload
    def __call__(self, func: Callable[P, AsyncIterable[T]], /) -> AsyncLLMChat[P, T]: ...
    @overload
    def __call__(self, func: Callable[P, Iterator[T]], /) -> LLMChat[P, T]: ...


@overload
def llm_chat(llm_interface: Callable[P, Coroutine[Any, Any, AsyncIterable[T]]], /) -> AsyncLLMChat[P, T]: ...
@overload
def llm_chat(llm_interface: Callable[P, AsyncIterable[T]], /) -> AsyncLLMChat[P, T]: ...
@overload
def llm_chat(llm_interface: Callable[P, Iterator[T]], /) -> LLMChat[P, T]: ...
@overload
def llm_chat(
    llm_interface: LLM_Interface | None = None,
    toolkit: Sequence[Any] | None = None,
    max_tool_calls: int = 5,
    stream: bool = False,
    return_mode: Literal["text", "raw"] = "text",
    compact: Compact | None = None,
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
    thinking: Thinking | None = None,
    guards: Sequence[Callable[..., Any]] | None = None,
    toolkit_search: bool | Callable[..., Any] | None = None,
    embeddings: LLM_Interface | None = None,
    **llm_kwargs: Any,
) -> ChatDecorator: ...
def llm_chat(*args: Any, **options: Any) -> Any:  # noqa: D417 - the last overload has them
    """Turn a documented function into a dialogue: the docstring is the system prompt.

    The history is the first parameter named `history` or `chat_history`; the other arguments make the user's
    message. A call yields ``(text, history)`` pairs and at last ``("", history)``, whose history ends with the
    assistant's reply: hand it to the next call. The list that was given is never changed. Annotate
    ``-> AsyncIterator[ChatPair]`` or, for a `def`, ``-> Iterator[ChatPair]``.

    Args:
        llm_interface: the model; None asks, at call time, `use_llm` and then ``SIMPLELLMFUNC_MODEL``.
        toolkit: tools, also of other packages, and plain functions that the model may call; and tools that the service
            itself runs, as dicts in its own form: ``{"type": "web_search"}``.
        max_tool_calls: rounds of tool calls; after the last one the model answers without tools.
        stream: yield the text in pieces as it arrives.
        return_mode: "raw" yields the openai package's `ChatCompletion` or `ChatCompletionChunk` instead of
            text, and no closing pair: the last pair's history ends with the reply.
        compact: ``(history) -> shorter history``, sync or async, for a history that does not fit the model's
            `context_window`. What still does not fit loses its oldest exchanges, as without it.
        retry_times: further attempts after an empty answer.
        deadline: seconds for the whole call.
        on_tool_error: "report" lets the model read what went wrong, "raise" raises `ToolFailed`.
        max_result_chars: a longer tool result is cut, with a note.
        toolkit_confirm: asked before a tool marked ``confirm=True`` runs; None refuses.
        tools: how the toolkit is offered: "native" tool calls, "json" actions for a model that has none, or
            "auto": what the provider's profile says, and "json" after a refusal.
        tool_context: the `context` of every `ToolContext`.
        watching: sinks that see every event of every run; see `watching`.
        abort_signal: ends a run when it is set; `_abort_signal=` at the call comes before it.
        check_arguments: make sure, before anything is sent, that the arguments fit their annotations, as pydantic reads
            them (``"3"`` is an int, None is no str); they are not converted.
        thinking: how much the model thinks before it answers: "off", "low", "medium", "high", or a number of tokens; None
            leaves it to the model. A word that the model does not have is a `ConfigError` before anything is sent.
        guards: functions that see the arguments before the model is asked, or the value after; see `SimpleLLMFunc.guards`.
        toolkit_search: True offers the model one tool instead of the toolkit, which finds tools by BM25 over their names and
            descriptions; those found are offered from the next turn on. A function ``(query, tools)`` finds them its way.
        embeddings: a model whose `embed` finds tools, instead of BM25.
        **llm_kwargs: request parameters, which go to the provider; as of `llm_function`.

    Raises:
        SignatureError: what is decorated is not a function, or its annotation says that it returns no iterator.
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
    pipeline, func = ChatPipeline(definition, options), definition.func
    kind, returned = definition.iterator_kind, definition.returned
    if kind is None and returned not in (Any, None, type(None)) and not isinstance(returned, str):
        raise SignatureError(
            f"{definition.name} is annotated -> {inspect.formatannotation(returned)}, which is not an iterator, and a chat yields "
            "(text, history) pairs. Annotate it -> AsyncIterator[ChatPair], of a def -> Iterator[ChatPair]; "
            "for one answer use @llm_function."
        )
    is_async_def = inspect.iscoroutinefunction(func) or inspect.isasyncgenfunction(func)
    return AsyncLLMChat(pipeline) if kind == "async" or (kind is None and is_async_def) else LLMChat(pipeline)


# The parameters are written once, in the last overload; `inspect`, `help` and editors read them there.
_SIGNATURE = inspect.signature(get_overloads(llm_chat)[-1])
llm_chat.__signature__ = _SIGNATURE  # type: ignore[attr-defined]

async_llm_chat = llm_chat
"""The same decorator: an `async def` is seen as such."""
