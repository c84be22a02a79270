"""OTLP over HTTP, decoded by the receiver; and no request without a set-up."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from typing import Any

import pytest

from SimpleLLMFunc import ConfigError
from SimpleLLMFunc.extras import install_line
from SimpleLLMFunc.observability.otel.setup import setup_tracing
from tests.support.otlp_receiver import OtlpReceiver

FUNCTION = """
from SimpleLLMFunc import llm_function, watching
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls

def search(query: str) -> str:
    "Search the catalogue."
    return "shelf 12"

def answer(request):
    return "12" if request.messages[-1]["role"] == "tool" else tool_calls(("search", {"query": "tides"}))

@llm_function(llm_interface=ScriptedLLM(answer, repeat=True), toolkit=[search])
def find(question: str) -> int:
    "Find a book."
    raise NotImplementedError
"""


def run(code: str, **environment: str) -> str:
    """Run `code` in a new process, every warning an error, and return its output."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "SIMPLELLMFUNC_"))}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FUNCTION + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        env={**kept, **environment},
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.fixture
def receiver():
    with OtlpReceiver() as made:
        yield made


NAMES = ["invoke_agent find", "chat scripted", "execute_tool search", "chat scripted"]


def test_one_line_sends_every_run(receiver):
    printed = run(
        f"""
        from SimpleLLMFunc.observability.otel.setup import setup_tracing
        setup_tracing("{receiver.url}", headers={{"x-project": "library"}}, service_name="library", metrics=True)
        with watching(session_id="s1"):
            print(find("where?"))
        """
    )
    assert printed == "12\n"
    spans = receiver.spans()
    agent, first, tool, second = spans
    assert [span.name for span in spans] == NAMES
    assert {span.parent_id for span in (first, tool, second)} == {agent.span_id}
    assert agent.parent_id == ""
    for name in ("service.name", "openinference.project.name"):
        assert {span.resource[name] for span in spans} == {"library"}
    assert {span.scope[0::2] for span in spans} == {("SimpleLLMFunc", "https://opentelemetry.io/schemas/1.41.0")}
    assert agent.attributes["session.id"] == first.attributes["gen_ai.conversation.id"] == "s1"
    assert first.attributes["gen_ai.response.finish_reasons"] == ["tool_calls"]
    assert "gen_ai.input.messages" not in first.attributes
    assert {headers["x-project"] for _, headers, _ in receiver.requests} == {"library"}
    metrics = receiver.metrics()
    assert set(metrics) == {"gen_ai.client.token.usage", "gen_ai.client.operation.duration"}
    used = metrics["gen_ai.client.token.usage"]
    tokens = {labels["gen_ai.token.type"]: (count, total) for labels, count, total in used}
    assert tokens["input"] == (2, sum(span.attributes["gen_ai.usage.input_tokens"] for span in (first, second)))
    # Every span carries an attribute of the conventions: who filters by them drops none.
    assert all(any(name.startswith("gen_ai.") for name in span.attributes) for span in spans)


def test_the_environment_says_where_and_what(receiver):
    run(
        """
        from SimpleLLMFunc.observability.otel.setup import setup_tracing
        setup_tracing()
        find("where?")
        """,
        OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url,
        OTEL_EXPORTER_OTLP_HEADERS="authorization=Basic%20abc",
        OTEL_SERVICE_NAME="from the environment",
        OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="true",
    )
    agent, first, *_ = receiver.spans()
    assert agent.resource["service.name"] == "from the environment"
    assert json.loads(agent.attributes["input.value"]) == {"question": "where?"}
    assert "where?" in json.loads(first.attributes["gen_ai.input.messages"])[0]["parts"][0]["content"]
    assert receiver.requests[0][1]["authorization"] == "Basic abc"


@pytest.mark.heavy
def test_an_application_that_is_set_up_already_needs_nothing(receiver):
    """The usual way: the program sets a provider, perhaps after the first run."""
    run(
        f"""
        find("before")
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        find("before")
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter("{receiver.url}/v1/traces")))
        trace.set_tracer_provider(provider)
        with trace.get_tracer("mine").start_as_current_span("request"):
            find("where?")
        """
    )
    spans = receiver.spans()
    assert [span.name for span in spans] == ["request", *NAMES]
    assert spans[1].parent_id == spans[0].span_id


@pytest.mark.heavy
def test_with_the_interface_alone_nothing_is_made():
    printed = run(
        """
        import sys
        import opentelemetry.trace, opentelemetry.metrics
        from SimpleLLMFunc.observability.otel import span_sink as otel
        made = []
        otel.SpanSink.__init__ = lambda self, **_: made.append(self)
        find("where?")
        print(made, [name for name in sys.modules if name.startswith("opentelemetry.sdk")])
        """
    )
    assert printed == "[] []\n"


def test_what_was_set_up_already_is_left_alone():
    printed = run(
        """
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from SimpleLLMFunc import ConfigError
        from SimpleLLMFunc.observability.otel.setup import setup_tracing
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
        try:
            setup_tracing()
        except ConfigError as error:
            print(error, trace.get_tracer_provider() is provider)
        """
    )
    assert printed.startswith("OpenTelemetry is set up already in this process")
    assert printed.endswith(" True\n")


def test_a_missing_extra_is_told_with_the_line_to_run(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(ConfigError, match=re.escape(install_line("otel"))):
        setup_tracing()


@pytest.mark.parametrize("endpoint", ["localhost:4318", "", "grpc://localhost"])
def test_an_address_that_is_none_is_refused(endpoint: Any):
    with pytest.raises(ConfigError, match="endpoint"):
        setup_tracing(endpoint)
