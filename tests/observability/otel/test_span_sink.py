"""Spans, their events and metrics, in memory: names and attributes as the table says, in every way a run can go."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import Any

import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode
from pydantic import BaseModel

from SimpleLLMFunc import BadRequest, FallbackLLM, LocalModel, OpenAICompatible, ServerUnavailable, budget, watching
from SimpleLLMFunc.interface.profile import PROFILES
from SimpleLLMFunc.observability.otel.attributes import is_in_process, request_params
from SimpleLLMFunc.observability.otel.span_sink import SpanSink
from SimpleLLMFunc.observability.paths import declared_path
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls
from tests.support.functions import async_function_of as function
from tests.support.functions import function_of
from tests.support.server import LoopbackServer, completion, error_answer

KEY = "sk-CANARY0123456789abcdefCANARY"


class Traced:
    """Providers of their own, and what they were given."""

    def __init__(self, sampler: Any = None, span_limits: Any = None, **options: Any) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(sampler, span_limits=span_limits)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider([self.reader])
        self.sink = SpanSink(tracer_provider=self.provider, meter_provider=self.meters, **options)

    @property
    def spans(self) -> list[ReadableSpan]:
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    def one(self, name: str) -> ReadableSpan:
        [span] = [span for span in self.spans if span.name == name]
        return span

    @property
    def tree(self) -> list[tuple[str, str | None]]:
        """Each span with the one it stands below."""
        names = {span.context.span_id: span.name for span in self.spans}
        return [(span.name, names[span.parent.span_id] if span.parent else None) for span in self.spans]

    def points(self, name: str) -> list[Any]:
        data = self.reader.get_metrics_data()
        scopes = [scope for each in (data.resource_metrics if data else ()) for scope in each.scope_metrics]
        return [
            point for scope in scopes for each in scope.metrics if each.name == name for point in each.data.data_points
        ]

    def close(self) -> None:
        assert self.sink._runs == {}, "a run that has ended is forgotten"
        self.provider.shutdown()
        self.meters.shutdown()


@pytest.fixture
def traced():
    made: list[Traced] = []

    def make(**options: Any) -> Traced:
        made.append(Traced(**options))
        return made[-1]

    yield make
    for each in made:
        each.close()
    assert trace.get_current_span() is trace.INVALID_SPAN, "nothing stays behind in the context"


@pytest.fixture
def seen(traced):
    return traced()


@pytest.fixture
def told_all(traced):
    return traced(capture_content=True)


class Grade(BaseModel):
    points: int


def events(span: ReadableSpan) -> list[tuple[str, dict[str, Any]]]:
    return [(event.name, dict(event.attributes or {})) for event in span.events]


def search(query: str) -> str:
    """Search the catalogue."""
    return f"shelf 12: {query}"


# --- the table ---


async def test_a_function_with_a_tool(seen):
    llm = ScriptedLLM(tool_calls(("search", {"query": "tides"})), "12")
    with watching(seen.sink, session_id="s1", user_id="u1"):
        result = await function(llm, toolkit=[search]).call("where?")
    names = ("chat scripted", "execute_tool search", "chat scripted")
    assert seen.tree == [("invoke_agent ask", None), *((name, "invoke_agent ask") for name in names)]
    agent, first, tool, second = seen.spans
    assert {span.kind for span in seen.spans} == {SpanKind.INTERNAL}
    assert {span.status.status_code for span in seen.spans} == {StatusCode.UNSET}
    version = function(llm, toolkit=[search])._pipeline.metadata.version
    assert dict(agent.attributes) == {
        "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "ask", "simplellmfunc.trace_id": result.trace_id,
        "simplellmfunc.function.version": version, "openinference.span.kind": "AGENT", "session.id": "s1",
        "user.id": "u1",
    }  # fmt: skip
    assert dict(tool.attributes) == {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search",
        "gen_ai.tool.call.id": result.tool_calls[0].id, "gen_ai.tool.type": "function",
        "gen_ai.tool.description": "Search the catalogue.",
    }  # fmt: skip
    assert first.attributes["gen_ai.response.finish_reasons"] == ("tool_calls",)
    for kind, used in (("input", result.usage.input_tokens), ("output", result.usage.output_tokens)):
        assert sum(span.attributes[f"gen_ai.usage.{kind}_tokens"] for span in (first, second)) == used
    scope = agent.instrumentation_scope
    assert (scope.name, scope.schema_url) == ("SimpleLLMFunc", "https://opentelemetry.io/schemas/1.41.0")
    assert scope.version


async def test_a_model_call_over_http(seen):
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    usage |= {"prompt_tokens_details": {"cached_tokens": 64}, "completion_tokens_details": {"reasoning_tokens": 7}}
    async with LoopbackServer() as server:
        server.reply_json(completion("12", model="m-2026-01-01", usage=usage))
        llm = OpenAICompatible("m", base_url=server.base_url, api_params={"top_p": 0.9})
        ask = function(llm, temperature=0.5, max_tokens=99, seed=7, stop=["END"])
        with watching(seen.sink, session_id="s1"):
            await ask("where?")
        port = int(server.base_url.split(":")[2].split("/")[0])
    span = seen.one("chat m")
    assert span.kind is SpanKind.CLIENT
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai-compatible", "gen_ai.request.model": "m",
        "gen_ai.request.temperature": 0.5, "gen_ai.request.top_p": 0.9, "gen_ai.request.max_tokens": 99,
        "gen_ai.request.seed": 7, "gen_ai.request.stop_sequences": ("END",), "gen_ai.request.stream": False,
        "gen_ai.response.id": "chatcmpl-loopback", "gen_ai.response.model": "m-2026-01-01",
        "gen_ai.response.finish_reasons": ("stop",), "gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.cache_read.input_tokens": 64, "gen_ai.usage.reasoning.output_tokens": 7,
        "gen_ai.output.type": "text", "gen_ai.conversation.id": "s1", "server.address": "127.0.0.1",
        "server.port": port,
    }  # fmt: skip


async def test_a_streamed_reply_has_a_first_chunk(seen):
    with watching(seen.sink):
        assert [piece async for piece in function(ScriptedLLM("a long answer")).stream("?")]
    span = seen.one("chat scripted")
    assert span.attributes["gen_ai.request.stream"] is True
    seconds = span.attributes["gen_ai.response.time_to_first_chunk"]
    assert 0 < seconds <= (span.end_time - span.start_time) / 1e9
    [point] = seen.points("gen_ai.client.operation.time_to_first_chunk")
    assert (point.count, point.sum) == (1, seconds)


async def test_the_cost_is_told_when_it_is_known(seen):

    class Priced(ScriptedLLM):
        def price(self, usage, model=""):
            return 0.25

    with watching(seen.sink), budget(usd=10):
        result = await function(Priced("yes")).call("?")
    agent = seen.one("invoke_agent ask")
    assert result.cost == 0.25
    assert (agent.attributes["gen_ai.usage.cost"], agent.attributes["operation.cost"]) == (0.25, 0.25)


@pytest.mark.parametrize(
    ("provider", "shown"),
    [
        ("openai", "openai"), ("anthropic", "anthropic"), ("azure", "azure.ai.openai"), ("vertex", "gcp.vertex_ai"),
        ("gemini", "gcp.gemini"), ("mistral", "mistral_ai"), ("xai", "x_ai"),
    ],
)  # fmt: skip
async def test_a_provider_has_the_name_of_the_conventions(traced, provider, shown):
    seen, llm = traced(), ScriptedLLM("yes")
    llm.provider = provider
    with watching(seen.sink):
        await function(llm)("?")
    assert seen.one("chat scripted").attributes["gen_ai.provider.name"] == shown


def test_a_model_in_this_process_is_no_client():
    far = OpenAICompatible("m", base_url="http://localhost:11434/v1")
    assert is_in_process(LocalModel())
    assert is_in_process(FallbackLLM(LocalModel(), ScriptedLLM()))
    assert not is_in_process(far)
    assert not is_in_process(FallbackLLM(LocalModel(), far))


# --- metrics ---


async def test_metrics(seen):
    llm = ScriptedLLM("not a number", "3", ServerUnavailable("scripted", status=503))
    ask = function(llm, int)
    with watching(seen.sink):
        await ask("?")
        with pytest.raises(ServerUnavailable):
            await ask("?")
    labels = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "scripted", "gen_ai.request.model": "scripted"}
    answered = {**labels, "gen_ai.response.model": "scripted"}
    tokens = {point.attributes["gen_ai.token.type"]: point for point in seen.points("gen_ai.client.token.usage")}
    assert {kind: dict(point.attributes) for kind, point in tokens.items()} == {
        kind: {**answered, "gen_ai.token.type": kind} for kind in ("input", "output")
    }
    used = [span.attributes for span in seen.spans if span.name == "chat scripted"]
    assert tokens["input"].count == tokens["output"].count == 2
    assert tokens["input"].sum == sum(each.get("gen_ai.usage.input_tokens", 0) for each in used)
    assert tokens["output"].explicit_bounds[:4] == (1, 4, 16, 64)
    durations = {point.attributes.get("error.type"): point for point in seen.points("gen_ai.client.operation.duration")}
    assert {error: point.count for error, point in durations.items()} == {None: 2, "ServerUnavailable": 1}
    assert dict(durations[None].attributes) == answered
    assert durations[None].explicit_bounds[:2] == (0.01, 0.02)


# --- events ---


async def test_failed_tries_are_events_of_the_model_call(seen):
    async with LoopbackServer() as server:
        server.answer(error_answer(503))
        server.answer(error_answer(503))
        server.reply("yes")
        with watching(seen.sink):
            await function(OpenAICompatible("m", base_url=server.base_url, retry_delay=0.001))("?")
    first, second = events(seen.one("chat m"))
    assert first[0] == second[0] == "simplellmfunc.try_failed"
    assert 0 < first[1].pop("simplellmfunc.pause") < 0.1
    assert first[1] == {
        "simplellmfunc.turn": 1, "simplellmfunc.tries": 1, "gen_ai.request.model": "m", "simplellmfunc.next_model": "m",
        "error.type": "ServerUnavailable", "simplellmfunc.message": "ServerUnavailable (503)",
    }  # fmt: skip
    assert seen.one("chat m").status.status_code is StatusCode.UNSET


async def test_re_asks_and_repairs_are_events_of_the_function(traced):
    seen, open_ = traced(), traced(capture_content=True)
    with watching(seen.sink, open_.sink):
        await function(ScriptedLLM('{"points": "many"}', '{"points": "3"}'), Grade)("?")
    assert events(seen.one("invoke_agent ask")) == [
        ("simplellmfunc.re_ask", {"simplellmfunc.turn": 1, "simplellmfunc.paths": ("points",)}),
        ("simplellmfunc.repair", {"simplellmfunc.turn": 2, "simplellmfunc.path": "points"}),
    ]
    told = [attributes["simplellmfunc.message"] for _, attributes in events(open_.one("invoke_agent ask"))]
    assert told == ["points: expected int, got 'many'", "number taken from '3'"], "with content they say what was found"


async def test_an_answer_that_is_given_up_is_not_asked_for_again(seen):
    with watching(seen.sink), pytest.raises(ValueError, match="no"):
        await function(ScriptedLLM("no", "no"), int, max_reasks=1)("?")
    agent = seen.one("invoke_agent ask")
    assert [name for name, _ in events(agent)] == ["simplellmfunc.re_ask"]
    assert agent.attributes["error.type"] == "ResponseParseError"
    assert (agent.status.status_code, agent.status.description) == (StatusCode.ERROR, "ResponseParseError")


async def test_a_mode_that_is_refused_is_a_failed_model_call(seen):
    def answer(request: Any) -> Any:
        if request.response_format is not None:
            raise BadRequest("m", status=400, body="response_format is not supported")
        return '{"points": 3}'

    with watching(seen.sink):
        await function(ScriptedLLM(answer, repeat=True, profile=PROFILES["openai"]), Grade)("?")
    refused, answered = (span for span in seen.spans if span.name == "chat scripted")
    assert (refused.attributes["error.type"], refused.status.description) == ("BadRequest", "BadRequest (400)")
    assert [name for name, _ in events(refused)] == ["simplellmfunc.try_failed"]
    assert "error.type" not in answered.attributes
    told = seen.one("invoke_agent ask").attributes["simplellmfunc.downgrades"]
    assert told == ("output mode: tool instead of native",)


# --- how runs nest ---


async def test_nested_runs_stand_below_the_tool_they_run_in(seen):
    inner_llm = ScriptedLLM("in", repeat=True, model_name="inner")
    in_a_thread = function_of(inner_llm, name="in_a_thread")
    on_the_loop = function(inner_llm, name="on_the_loop")
    calls = tool_calls(("in_a_thread", {"text": "a"}), ("on_the_loop", {"text": "b"}))
    with watching(seen.sink):
        await function(ScriptedLLM(calls, "done"), toolkit=[in_a_thread, on_the_loop])("?")
    wanted = [("invoke_agent ask", None), *[("chat scripted", "invoke_agent ask")] * 2]
    for name in ("in_a_thread", "on_the_loop"):
        wanted.append((f"execute_tool {name}", "invoke_agent ask"))
        wanted += [(f"invoke_agent {name}", f"execute_tool {name}"), ("chat inner", f"invoke_agent {name}")]
    assert sorted(seen.tree, key=str) == sorted(wanted, key=str)
    assert len({span.context.trace_id for span in seen.spans}) == 1


async def test_a_run_stands_below_the_callers_span(seen):
    tracer = seen.provider.get_tracer("mine")
    with watching(seen.sink), tracer.start_as_current_span("request") as span:
        await function(ScriptedLLM("yes"))("?")
        function_of(ScriptedLLM("yes"))("?")
        assert trace.get_current_span() is span
    assert [parent for name, parent in seen.tree if name.startswith("invoke_agent")] == ["request", "request"]


async def test_tools_at_the_same_time_end_when_they_end(seen):
    quick_is_done = asyncio.Event()

    async def slow() -> str:
        """Wait."""
        await quick_is_done.wait()
        await asyncio.sleep(0.05)
        return "slow"

    async def quick() -> str:
        """Be quick."""
        quick_is_done.set()
        return "quick"

    with watching(seen.sink):
        await function(ScriptedLLM(tool_calls(("slow", {}), ("quick", {})), "done"), toolkit=[slow, quick])("?")
    assert seen.one("execute_tool quick").end_time < seen.one("execute_tool slow").end_time


async def test_whose_run_it_is_may_come_from_the_baggage(seen):
    token = context.attach(baggage.set_baggage("user.id", "u7", baggage.set_baggage("session.id", "s7")))
    try:
        with watching(seen.sink):
            await function(ScriptedLLM("yes"))("?")
    finally:
        context.detach(token)
    agent = seen.one("invoke_agent ask")
    assert (agent.attributes["session.id"], agent.attributes["user.id"]) == ("s7", "u7")


# --- how runs end ---


async def test_a_tool_that_fails(seen):
    def broken() -> str:
        """Break."""
        raise KeyError("the secret of the customer")

    with watching(seen.sink):
        await function(ScriptedLLM(tool_calls(("broken", {}), ("none", {})), "done"), toolkit=[broken])("?")
    failed, unknown = seen.one("execute_tool broken"), seen.one("execute_tool none")
    assert (failed.attributes["error.type"], failed.status.status_code) == ("KeyError", StatusCode.ERROR)
    assert unknown.attributes["error.type"] == "unknown_tool"
    assert "customer" not in failed.to_json()
    assert seen.one("invoke_agent ask").status.status_code is StatusCode.UNSET


async def test_an_error_marks_the_model_call_and_the_function_and_is_redacted(traced):
    seen, open_ = traced(), traced(capture_content=True)
    with watching(seen.sink, open_.sink), pytest.raises(ServerUnavailable):
        await function(ScriptedLLM(ServerUnavailable("m", status=503, body=f"key {KEY} is known")))("?")
    for span in seen.spans:
        assert span.attributes["error.type"] == "ServerUnavailable"
        assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "ServerUnavailable (503)")
    assert "503" in (open_.one("invoke_agent ask").status.description or "")
    assert "CANARY" not in "".join(span.to_json() for span in open_.spans)


async def test_a_run_that_is_cancelled_inside_a_tool(seen):
    running = asyncio.Event()

    async def never() -> str:
        """Wait."""
        running.set()
        await asyncio.Event().wait()
        return ""

    with watching(seen.sink):
        task = asyncio.ensure_future(function(ScriptedLLM(tool_calls(("never", {}))), toolkit=[never])("?"))
        await running.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert {span.name: span.attributes.get("error.type") for span in seen.spans} == {
        "invoke_agent ask": "CancelledError", "chat scripted": None, "execute_tool never": "CancelledError",
    }  # fmt: skip


async def test_a_stream_that_is_left_early(seen):
    with watching(seen.sink):
        async with aclosing(function(ScriptedLLM("a long answer")).stream("?")) as pieces:
            async for _ in pieces:
                break
    assert [name for name, _ in seen.tree] == ["invoke_agent ask", "chat scripted"]
    assert {span.status.status_code for span in seen.spans} == {StatusCode.UNSET}
    assert not [span for span in seen.spans if "error.type" in span.attributes]
    assert [name for name, _ in events(seen.one("invoke_agent ask"))] == ["simplellmfunc.abandoned"]


async def test_what_is_not_sampled_costs_no_text(traced, monkeypatch):
    seen = traced(capture_content=True, sampler=ALWAYS_OFF)
    monkeypatch.setattr("SimpleLLMFunc.observability.otel.span_sink.json_text", lambda *_: pytest.fail("rendered"))
    llm = ScriptedLLM(tool_calls(("search", {"query": "x"})), "done")
    with watching(seen.sink):
        assert await function(llm, toolkit=[search])("?") == "done"
    assert seen.spans == []
    assert seen.points("gen_ai.client.token.usage")


# --- content ---


async def test_content_is_off_unless_asked_for(seen):
    llm = ScriptedLLM(tool_calls(("search", {"query": "private-tool"})), '{"points": "private-bad"}', '{"points": 7}')
    with watching(seen.sink):
        await function(llm, Grade, toolkit=[search])("private-question")
    told = "".join(span.to_json() for span in seen.spans)
    assert "private" not in told
    assert "Answer." not in told


async def test_the_keys_that_a_model_chose_are_content(traced):
    answer = '{"points": {"private-key": {"points": "many"}}, "private-too": 1}'
    llm, quiet, open_ = ScriptedLLM(answer, "{}", repeat=True), traced(), traced(capture_content=True)
    with watching(quiet.sink, open_.sink):
        await function(llm, dict[str, dict[str, Grade]])("?")
    (_, told), *_ = events(quiet.one("invoke_agent ask"))
    assert told["simplellmfunc.paths"] == ("points.*.points", "*")
    assert "private" not in "".join(span.to_json() for span in quiet.spans)
    (_, told), *_ = events(open_.one("invoke_agent ask"))
    assert told["simplellmfunc.paths"] == ("points.private-key.points", "private-too")


def test_parameters_have_the_form_of_the_conventions():
    assert request_params({"stop": "END"}) == {"gen_ai.request.stop_sequences": ["END"]}
    assert request_params({"stop": ("A", "B")}) == {"gen_ai.request.stop_sequences": ["A", "B"]}
    assert request_params({"stop": [], "seed": True, "temperature": "hot"}) == {}
    assert request_params({"max_completion_tokens": 5}) == {"gen_ai.request.max_tokens": 5}


def test_a_path_shows_what_a_type_declares():
    schema = {"$defs": {"Grade": {"properties": {"points": {}}}}, "anyOf": [{"type": "null"}]}
    shown = {path: declared_path(path, schema) for path in ("", "points", "[3].points", "a.points[0].b-c", "5551234")}
    assert list(shown.values()) == ["", "points", "[3].points", "*.points[0].*", "*"]
    assert declared_path("points", None) == "*"


CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


@pytest.mark.parametrize(
    ("variable", "argument", "captured"),
    [
        (None, None, False), ("false", None, False), ("no_content", None, False), ("true", None, True),
        ("True", None, True), ("SPAN_ONLY", None, True), ("true", False, False), (None, True, True),
    ],
)  # fmt: skip
def test_who_asks_for_content(monkeypatch, variable, argument, captured):
    if variable is None:
        monkeypatch.delenv(CONTENT, raising=False)
    else:
        monkeypatch.setenv(CONTENT, variable)
    assert SpanSink(capture_content=argument).captures_content is captured


def data(span: ReadableSpan, name: str) -> Any:
    text = span.attributes[name]
    assert isinstance(text, str)
    return json.loads(text)


async def test_content_has_the_form_of_the_conventions(told_all):
    llm = ScriptedLLM(tool_calls(("search", {"query": "tides"}), content="Let me see."), '{"points": 3}')
    with watching(told_all.sink):
        await function(llm, Grade, toolkit=[search])("where?")
    agent, first, tool, second = told_all.spans
    assert data(agent, "input.value") == {"text": "where?"}
    assert data(agent, "output.value") == {"points": 3}
    assert agent.attributes["input.mime_type"] == agent.attributes["output.mime_type"] == "application/json"
    [instruction] = data(first, "gen_ai.system_instructions")
    assert instruction["type"] == "text"
    assert "Answer." in instruction["content"]
    [asked] = data(first, "gen_ai.input.messages")
    assert (asked["role"], asked["parts"][0]["type"]) == ("user", "text")
    assert "where?" in asked["parts"][0]["content"]
    call = {"type": "tool_call", "id": "call_0_0", "name": "search", "arguments": {"query": "tides"}}
    said = {"type": "text", "content": "Let me see."}
    assert data(first, "gen_ai.output.messages") == [
        {"role": "assistant", "parts": [said, call], "finish_reason": "tool_call"}
    ]
    assert data(second, "gen_ai.input.messages")[1:] == [
        {"role": "assistant", "parts": [said, call]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_0_0", "response": "shelf 12: tides"}]},
    ]
    assert data(second, "gen_ai.output.messages")[0]["finish_reason"] == "stop"
    [definition] = data(first, "gen_ai.tool.definitions")
    assert (definition["type"], definition["name"]) == ("function", "search")
    assert definition["parameters"]["required"] == ["query"]
    assert data(tool, "gen_ai.tool.call.arguments") == {"query": "tides"}
    assert data(tool, "gen_ai.tool.call.result") == "shelf 12: tides"
    for span in (first, second):
        assert not {"input.value", "output.value"} & set(span.attributes)


async def test_content_is_redacted(told_all):
    def leaky(api_key: str) -> str:
        """Leak."""
        return f"Bearer {KEY}"

    llm = ScriptedLLM(tool_calls(("leaky", {"api_key": KEY})), f"the key is {KEY}")
    with watching(told_all.sink):
        await function(llm, toolkit=[leaky])(f"my key is {KEY}")
    told = "".join(span.to_json() for span in told_all.spans)
    assert "my key is" in told
    assert "CANARY" not in told


@pytest.mark.parametrize("limit", [1, 5, 40, 400, 4000])
async def test_json_is_valid_under_the_limit_of_the_sdk(traced, monkeypatch, limit):
    monkeypatch.setenv("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", str(limit))
    seen = traced(capture_content=True, span_limits=SpanLimits(max_attribute_length=limit))
    with watching(seen.sink):
        await function(ScriptedLLM('{"points": 3}'), Grade)('a "long" question\n' * 1000)
    for span in seen.spans:
        for name, value in span.attributes.items():
            if name in {"input.value", "output.value"} or name.endswith(("messages", "instructions", "definitions")):
                assert len(value) <= limit
                json.loads(value)


async def test_what_no_database_can_hold_is_replaced(told_all):
    with watching(told_all.sink):
        await function(ScriptedLLM("b\x00d \ud800"))("a\x00b \udfff 世界")
    [asked] = data(told_all.one("chat scripted"), "gen_ai.input.messages")
    assert "世界" in asked["parts"][0]["content"]
    told = "".join(str(value) for span in told_all.spans for value in span.attributes.values())
    told.encode()
    assert "\\u0000" not in told
    assert "\x00" not in told
