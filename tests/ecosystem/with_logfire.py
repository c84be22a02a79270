# /// script
# dependencies = ["logfire"]
# ///
"""Both wires, whole and streamed, a tool between two requests: the tracer sees each of six calls once, with its tokens."""

import logfire
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from scene import check_traced, traced

kept = InMemorySpanExporter()
logfire.configure(send_to_logfire=False, console=False, additional_span_processors=[SimpleSpanProcessor(kept)])
traced(lambda client: logfire.instrument_openai(client) and None)
check_traced(kept.get_finished_spans(), "gen_ai.usage.input_tokens")
