"""How a Call asks the model: views of the one loop, for text and for one JSON object."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pydantic import TypeAdapter

from SimpleLLMFunc.base.events import ReActEvent, ReplyDelta, RunFinished
from SimpleLLMFunc.base.metadata import FunctionFacts, RunFacts, function_version
from SimpleLLMFunc.base.parsing import OutputMode
from SimpleLLMFunc.base.ReAct import react_events
from SimpleLLMFunc.base.request import ModelRequest
from SimpleLLMFunc.base.run import (
    REFUSAL_WORDS,
    Abort,
    AnswerReview,
    EmptyReview,
    Recording,
    RunRecord,
    generate_trace_id,
    names_refusal,
    refused_by,
    remember_refusal,
)
from SimpleLLMFunc.base.schemas import OutputSpec, choose_output_mode
from SimpleLLMFunc.calls.schema import LanguageType
from SimpleLLMFunc.errors import BadRequest, ConfigError, RunError, SchemaError
from SimpleLLMFunc.interface.current import resolve_llm
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.spending import Deadline
from SimpleLLMFunc.type import Message
from SimpleLLMFunc.utils import in_context

__all__ = ["Asker", "closed_with_exec", "closing_questions"]

_OBJECT: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])

_FORM = {
    LanguageType.CHINESE: "只输出一个符合以下JSON Schema的JSON对象，不要输出其他任何内容：",
    LanguageType.ENGLISH: "Reply with one JSON object that fits this JSON Schema, and nothing else:",
}


@dataclass(frozen=True, slots=True)
class Asker:
    """Asks on behalf of one Call.

    Attributes:
        name: of the Call, in logs, traces and errors.
        llm: None asks whatever `use_llm` or the environment names.
        language: of what is added to the prompt.
        abort: ends a request when it is set.
        retry_times: further attempts after an empty answer.
        description: what the Call is for, in traces.
        arguments: its input, in traces.
    """

    name: str
    llm: LLM_Interface | None = None
    language: LanguageType = LanguageType.CHINESE
    abort: Abort | None = None
    retry_times: int = 2
    description: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)

    async def text(
        self, messages: Sequence[Mapping[str, Any]], params: Mapping[str, Any], *, streaming: bool
    ) -> AsyncGenerator[str, None]:
        """Yield the text of the answer: its pieces as they arrive, or all of it at once."""
        run = _Run(self, cast("list[Message]", list(messages)), params)
        async with aclosing(run.events(EmptyReview(run.record, self.retry_times), stream=streaming)) as events:
            async for event in events:
                if isinstance(event, ReplyDelta) and streaming and event.text:
                    yield event.text
                elif isinstance(event, RunFinished) and not streaming and event.reply.text:
                    yield event.reply.text

    async def json(
        self,
        messages: Sequence[Mapping[str, Any]],
        schema: Mapping[str, Any],
        params: Mapping[str, Any],
        *,
        max_reasks: int,
    ) -> dict[str, Any]:
        """Return the JSON object of the answer; see `CoreCall._json`."""
        spec = OutputSpec(dict[str, Any], _OBJECT, _object_schema(schema))
        run = _Run(self, cast("list[Message]", list(messages)), params, spec)
        review = AnswerReview(
            run.record, self.retry_times, spec=spec, repair="coerce", max_reasks=max_reasks, description=""
        )
        async with aclosing(run.events(review, stream=False)) as events:
            async for _ in events:
                pass
        if review.parsed is None:
            raise RunError(f"{self.name}: the stream ended before the run did")
        return dict(review.parsed.value)


@dataclass(slots=True)
class _Run:
    """One question: what is sent, and what is sent instead where that was refused."""

    asker: Asker
    messages: list[Message]
    params: Mapping[str, Any]
    spec: OutputSpec | None = None
    record: RunRecord = field(init=False)

    def facts(self) -> RunFacts:
        """Who asks: the Call, whose prompts are in its messages."""
        asker = self.asker
        schema = None if self.spec is None else self.spec.schema
        version = function_version(asker.description, "", schema, [])
        function = FunctionFacts(asker.name, "call", asker.description, output_schema=schema, version=version)
        return RunFacts(function, asker.arguments)

    def __post_init__(self) -> None:
        self.record = RunRecord(self.asker.name, generate_trace_id(self.asker.name))

    def events(self, review: EmptyReview, *, stream: bool) -> AsyncGenerator[ReActEvent, None]:
        """Return the events of the run, which see the context variables of this moment and set none outside."""

        async def begin(clock: Deadline) -> AsyncGenerator[ReActEvent, None]:
            given: Any = self.asker.llm  # what was really given: executors are not all type-checked
            if given is not None and not isinstance(given, LLM_Interface):
                raise ConfigError(
                    "llm= is a model such as OpenAICompatible(...) or LocalModel(), "
                    f"not {type(given).__name__}; None asks the current one."
                )
            llm = resolve_llm(self.asker.llm)
            request = self.request(llm)
            return react_events(
                llm,
                request.messages,
                max_tool_calls=0,
                stream=stream,
                review=review,
                refused=lambda error, request: self.refused(error, request, llm),
                response_format=request.response_format,
                answer_tool=request.answer_tool,
                params=request.params,
                deadline=clock,
                abort=self.asker.abort,
                trace_id=self.record.trace_id,
                func_name=self.asker.name,
            )

        return in_context(Recording(self.record, begin, facts=self.facts).events(), copy_context())

    def request(self, llm: LLM_Interface) -> ModelRequest:
        """Return what is sent first: plain, or in the output mode that suits the model."""
        if self.spec is None:
            return ModelRequest(self.messages, params=self.params)
        mode, reason = _object_mode(self.spec, llm)
        self.record.output_mode, self.record.output_mode_reason = mode, reason
        return self.request_in(mode)

    def request_in(self, mode: OutputMode) -> ModelRequest:
        """Return the request that asks for the object in this mode."""
        assert self.spec is not None, "only an object is asked for in a mode"
        if mode == "native":
            form = self.spec.response_format(strict=True) or self.spec.response_format(strict=False)
            return ModelRequest(self.messages, response_format=form, params=self.params)
        if mode == "tool":
            return ModelRequest(self.messages, params=self.params, answer_tool=self.spec.answer_tool())
        shown = json.dumps(self.spec.wire_schema, ensure_ascii=False)
        wanted = f"{_FORM[self.asker.language]}\n{shown}"
        return ModelRequest([*self.messages, {"role": "user", "content": wanted}], params=self.params)

    def refused(self, error: BadRequest, request: ModelRequest, llm: LLM_Interface) -> ModelRequest | None:
        """Move down the ladder native → tool → prompt where the provider did not take the form."""
        mode = self.record.output_mode
        if self.spec is None or error.status not in {400, 404, 422} or mode not in REFUSAL_WORDS:
            return None
        if not names_refusal(error, mode):
            return None
        remember_refusal(llm, mode)
        first = self.request(llm)
        # What came after the first messages (a re-ask) stays.
        return replace(first, messages=[*first.messages, *request.messages[len(self.messages) :]])


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
    questions = _QUESTIONS.get()
    if questions is not None:
        questions.append(question)
    return question


def _object_mode(spec: OutputSpec, llm: LLM_Interface) -> tuple[OutputMode, str]:
    """Return how an object is asked for: as a tool the model has to call, else as typed functions choose.

    A tool takes any schema, with keys left out; a service that cannot be made to call it is better held to a schema.
    """
    refused, profile = refused_by(llm), llm.profile
    is_called = profile.tools == "native" and (profile.tool_choice or not profile.native or "native" in refused)
    if is_called and "tool" not in refused:
        return "tool", f"tool: profile {profile.name!r} calls tools, and this one only"
    return choose_output_mode(spec, profile, "auto", refused)


def _object_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema as that of a JSON object.

    Raises:
        SchemaError: it describes something else.
    """
    kind = schema.get("type")
    if kind is None and "$ref" in schema:
        return dict(schema)
    if kind is None or kind == "object" or (isinstance(kind, list) and "object" in kind):
        return {**schema, "type": "object"}
    raise SchemaError(
        f"a Call asks for one JSON object; its schema has the type {kind!r}. Put the value into a property."
    )
