# /// script
# dependencies = ["opentelemetry-instrumentation-aiohttp-client", "opentelemetry-sdk"]
# ///
"""A call with a tool, and one that is tried twice, without `client=`: its HTTP spans stand under our spans."""

import asyncio

from opentelemetry.instrumentation.aiohttp_client import AioHttpClientInstrumentor
from scene import answers, check, provider, seen

from SimpleLLMFunc import OpenAICompatible, llm_function

tracers, kept = provider()
AioHttpClientInstrumentor().instrument(tracer_provider=tracers)


def look(place: int) -> str:
    """Look."""
    return "nothing"


@llm_function(OpenAICompatible("m", retry_delay=0.01), toolkit=[look])
async def tell(text: str) -> str:
    """Tell."""


answers({"calls": [["look", {"place": 1}]]}, {"status": 500, "body": {}}, "fine")
check("said", asyncio.run(tell("a")), "fine")
spans = {span.context.span_id: span for span in kept.get_finished_spans()}
under = [spans[span.parent.span_id].name for span in spans.values() if span.name == "POST"]
check("the parents of the HTTP spans", under, ["chat m"] * 3)
check("traces", len({span.context.trace_id for span in spans.values()}), 1)
seen("3 HTTP spans, each under the span of its model call, in one trace")
