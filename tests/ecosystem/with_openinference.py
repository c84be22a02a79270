# /// script
# dependencies = ["openinference-instrumentation-openai", "opentelemetry-sdk"]
# ///
"""Both wires, whole and streamed, a tool between two requests: the tracer sees each of six calls once, with its tokens."""

from openinference.instrumentation.openai import OpenAIInstrumentor
from scene import check_traced, provider, traced

tracers, kept = provider()
OpenAIInstrumentor().instrument(tracer_provider=tracers)
traced()
check_traced(kept.get_finished_spans(), "llm.token_count.prompt")
