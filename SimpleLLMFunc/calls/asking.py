"""How a Call asks the model for text or for one JSON object, by the one loop."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from pydantic import TypeAdapter

from SimpleLLMFunc.base.events import ReActEvent, ReplyDelta, RunFinished
from SimpleLLMFunc.base.metadata import FunctionMetadata, RunMetadata, function_version
from SimpleLLMFunc.base.parsing import OutputMode
from SimpleLLMFunc.base.ReAct import react_events
from SimpleLLMFunc.base.request import ModelRequest
from SimpleLLMFunc.base.run import (
    Abort,
    AnswerReview,
    EmptyReview,
    Run,
    downgrades_of,
    generate_trace_id,
    refused_by,
    refuses_mode,
    remember_refusal,
)
from SimpleLLMFunc.base.schemas import OutputSpec, choose_output_mode
from SimpleLLMFunc.calls.call_data import LanguageType
from SimpleLLMFunc.errors import BadRequest, ConfigError, SchemaError
from SimpleLLMFunc.interface.current import resolve_llm
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.wires import check_options
from SimpleLLMFunc.logger import async_log_context
from SimpleLLMFunc.type import Message
from SimpleLLMFunc.utils import get_last_item_of_async_generator, in_context

_OBJECT: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])

_RETRY_TIMES: Final = 2
"""Further attempts after an empty answer."""

_FORM = {
    LanguageType.CHINESE: "只输出一个符合以下JSON Schema的JSON对象，不要输出其他任何内容：",
    LanguageType.ENGLISH: "Reply with one JSON object that fits this JSON Schema, and nothing else:",
}


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a Call: what is sent, and how its answer is asked for.

    Attributes:
        name: of the Call, in logs, traces and errors.
        messages: what the model is shown.
        params: go to the provider.
        llm: None asks the model that `use_llm` or the environment names.
        language: of additions to the prompt.
        abort: ends a request when it is set.
        description: what the Call is for, in traces.
        arguments: its input, in traces.
        spec: of the JSON object that is asked for; None where it is text.
    """

    name: str
    messages: Sequence[Mapping[str, Any]]
    params: Mapping[str, Any]
    llm: LLM_Interface | None = None
    language: LanguageType = LanguageType.CHINESE
    abort: Abort | None = None
    description: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    spec: OutputSpec | None = None

    async def text(self, *, streaming: bool) -> AsyncGenerator[str, None]:
        """Yield the text of the answer: its pieces as they arrive, or all of it at once."""
        run = self.run(stream=streaming)
        events = self.events(run, EmptyReview(run, retry_times=_RETRY_TIMES))
        async with aclosing(in_context(events, copy_context())) as events:
            async for event in events:
                if isinstance(event, ReplyDelta) and streaming and event.text:
                    yield event.text
                elif isinstance(event, RunFinished) and not streaming and event.reply.text:
                    yield event.reply.text

    async def json(self, schema: Mapping[str, Any], *, max_reasks: int) -> dict[str, Any]:
        """Return the JSON object of the answer; see `CoreCall._json`."""
        spec = OutputSpec(dict[str, Any], _OBJECT, _object_schema(schema))
        question = replace(self, spec=spec)
        run = question.run(stream=False)
        events = question.events(run, _ObjectReview(run, question, spec, max_reasks))
        await get_last_item_of_async_generator(in_context(events, copy_context()))
        assert run.parsed is not None, "a run that ends well has its answer"
        return dict(run.parsed.value)

    def run(self, *, stream: bool) -> Run:
        """Return the run of the question."""
        schema = self.spec.schema if self.spec else None
        version = function_version(self.description, "", schema, [])
        function = FunctionMetadata(self.name, "call", self.description, output_schema=schema, version=version)
        about = RunMetadata(function, self.arguments)
        run = Run(self.name, generate_trace_id(self.name), abort=self.abort, stream=stream, about=about)
        run.known_by = (list(self.messages), self.params)
        return run

    async def events(self, run: Run, review: EmptyReview) -> AsyncGenerator[ReActEvent, None]:
        """Yield the events of the run."""
        async with async_log_context(run.trace_id, run.func_name), run:
            given: Any = self.llm  # executors are not all type-checked
            if given is not None and not isinstance(given, LLM_Interface):
                raise ConfigError(
                    "llm= is a model such as OpenAICompatible(...) or LocalModel(), "
                    f"not {type(given).__name__}; None asks the current one."
                )
            async with aclosing(react_events(self.request(resolve_llm(given)), None, review, run)) as events:
                async for event in events:
                    yield event

    def request(self, llm: LLM_Interface) -> ModelRequest:
        """Return what is sent first: plain, or in the output mode that suits the model."""
        check_options(self.params, (), {"model": "A Call asks the model of its executor: StepExecutor(..., llm=...)"})
        spec, messages = self.spec, cast("list[Message]", list(self.messages))
        if spec is None:
            return ModelRequest(llm, messages, params=self.params)
        mode, reason = _object_mode(spec, llm)
        request = ModelRequest(llm, messages, params=self.params, output_mode=mode, output_mode_reason=reason)
        request = replace(request, downgrades=downgrades_of(request, spec.schema))
        if mode == "native":
            return replace(request, response_format=spec.native_format)
        if mode == "tool":
            return replace(request, answer_tool=spec.answer_tool())
        wanted = f"{_FORM[self.language]}\n{json.dumps(spec.wire_schema, ensure_ascii=False)}"
        return request.with_messages([*messages, {"role": "user", "content": wanted}])


class _ObjectReview(AnswerReview):
    """Reads the object of an answer; if the service refuses native or tool mode, it takes the next one."""

    def __init__(self, run: Run, question: Question, spec: OutputSpec, max_reasks: int) -> None:
        super().__init__(run, retry_times=_RETRY_TIMES, spec=spec, repair="coerce", max_reasks=max_reasks)
        self._question = question

    def refused(self, error: BadRequest, request: ModelRequest) -> ModelRequest | None:
        """Return the question in another form."""
        mode = request.output_mode
        if mode not in {"native", "tool"} or not refuses_mode(error, request):
            return None
        remember_refusal(error, request.llm, mode, self.spec.schema)
        return self._question.request(request.llm)


# --- questions end with the Call that asked them -------------------------------------------------------------

_QUESTIONS: ContextVar[list[AsyncGenerator[Any, None]] | None] = ContextVar("SimpleLLMFunc.questions", default=None)


@asynccontextmanager
async def closing_questions() -> AsyncGenerator[Context, None]:
    """Give the context to run a Call in, and close what it left open.

    A plain ``async for`` does not close what it reads when it is itself closed: the connection to the model would
    stay until the garbage collector came by.
    """
    questions: list[AsyncGenerator[Any, None]] = []
    context = copy_context()
    context.run(_QUESTIONS.set, questions)
    try:
        yield context
    finally:
        for question in reversed(questions):
            if not getattr(question, "ag_running", False):  # one that another task is reading is that task's
                await question.aclose()


def closed_with_exec(question: AsyncGenerator[str, None]) -> AsyncGenerator[str, None]:
    """Return `question`, which ends at the latest with the Call that runs here."""
    if (questions := _QUESTIONS.get()) is not None:
        questions.append(question)
    return question


def _object_mode(spec: OutputSpec, llm: LLM_Interface) -> tuple[OutputMode, str]:
    """Return how an object is asked for: as a tool the model has to call, else as typed functions choose.

    A tool takes any schema, with keys left out; a service that cannot be made to call it is better held to a schema.
    """
    refused, profile = refused_by(llm, spec.schema), llm.profile
    is_called = profile.tools == "native" and (
        (profile.tool_choice and profile.forces_tools) or not profile.native or "native" in refused
    )
    if is_called and "tool" not in refused:
        return "tool", f"tool: profile {profile.name!r} calls tools, and this one only"
    return choose_output_mode(spec, profile, "auto", refused.keys())


def _object_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema as that of a JSON object.

    Raises:
        SchemaError: it describes something else.
    """
    kind = schema.get("type")
    if kind is None or kind == "object" or (isinstance(kind, list) and "object" in kind):
        return {**schema, "type": "object"}
    raise SchemaError(
        f"a Call asks for one JSON object; its schema has the type {kind!r}. Put the value into a property."
    )
