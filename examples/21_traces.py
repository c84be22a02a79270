# /// script
# requires-python = ">=3.11"
# dependencies = ["SimpleLLMFunc[otel]"]
#
# [tool.uv.sources]  # the package index has another SimpleLLMFunc
# SimpleLLMFunc = { path = ".." }
# ///
"""See what a run did: its spans as a tree, with tokens, re-asks and repairs; a backend would show the same.

Model: answers written down (`ScriptedLLM`). For a real one change the lines `@llm_function(llm_interface=…`.
"""

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import BaseModel

from SimpleLLMFunc import llm_function, watching
from SimpleLLMFunc.observability.otel import SpanSink
from SimpleLLMFunc.testing import ScriptedLLM, tool_calls

# With a backend one line, `setup_tracing`, does instead: docs/how-to/otel-backends.md.
spans = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
sink = SpanSink(tracer_provider=provider, capture_content=True)


class Book(BaseModel):
    title: str
    shelf: int


# Real models: from SimpleLLMFunc import OpenAICompatible; llm_interface=OpenAICompatible("gpt-5-mini")
@llm_function(llm_interface=ScriptedLLM("The author writes about the sea."))
def summary(author: str) -> str:
    """Say in one sentence what the author writes about."""
    raise NotImplementedError


def catalogue(topic: str) -> list[str]:
    """Search the catalogue."""
    return [f"'{topic.title()}' by A. Author, shelf 12"]


@llm_function(
    llm_interface=ScriptedLLM(
        tool_calls(("catalogue", {"topic": "tides"}), ("summary", {"author": "A. Author"})),
        '{"title": "Tides"}',  # the shelf is missing: asked again
        '{"title": "Tides", "shelf": "12"}',  # a text where a number belongs: repaired
    ),
    toolkit=[catalogue, summary],
)
def find(topic: str) -> Book:
    """Find a book about the topic."""
    raise NotImplementedError


def id_of(span: ReadableSpan) -> int:
    context = span.get_span_context()
    assert context is not None
    return context.span_id


def show(span: ReadableSpan, below: dict[int | None, list[ReadableSpan]], depth: int = 0) -> None:
    attributes = span.attributes or {}
    tokens = [attributes.get(f"gen_ai.usage.{kind}_tokens") for kind in ("input", "output")]
    told = f"  {tokens[0]} + {tokens[1]} tokens" if tokens[0] else ""
    print(f"{'   ' * depth}{span.name}{told}")
    for event in span.events:
        print(f"{'   ' * depth}   ! {event.name}: {(event.attributes or {}).get('simplellmfunc.message')}")
    for inner in below.get(id_of(span), []):
        show(inner, below, depth + 1)


def main() -> None:
    with watching(sink, session_id="visit-7", user_id="ann"):
        print(find("tides"))
    below: dict[int | None, list[ReadableSpan]] = {}
    for span in sorted(spans.get_finished_spans(), key=lambda span: span.start_time or 0):
        below.setdefault(span.parent.span_id if span.parent else None, []).append(span)
    [root] = below[None]
    show(root, below)
    value = (root.attributes or {})["output.value"]
    assert value == '{"title": "Tides", "shelf": 12}', value
    assert [span.name for span in below[id_of(root)]].count("chat scripted") == 3


if __name__ == "__main__":
    main()
