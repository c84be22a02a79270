"""What the scripts of this folder use: the service that is asked, and the line that says what was seen.

The service runs outside of the script's process, so that a script may patch, mock or record all it has. `make ecosystem`
starts it, and names it in OPENAI_BASE_URL. It speaks chat completions and Responses, and answers with the text of the
last message, unless `answers` has said what comes next.
"""

from __future__ import annotations

import json
import os
import urllib.request
from typing import Any, NoReturn


def answers(*replies: Any) -> None:
    """Say what the next requests are answered with.

    A text; or a dict with `texts`, `calls` (pairs of a tool's name and its arguments), `thinking` and `delay` (seconds); or a dict with
    `status`, `headers` and `body`, which goes out as it is.
    """
    _ask("answers", json.dumps(replies).encode())


def asked() -> list[dict[str, Any]]:
    """Return the requests so far: `path`, `headers`, `body`."""
    return _ask("asked")


def _ask(what: str, body: bytes | None = None) -> Any:
    straight = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with straight.open(f"{os.environ['OPENAI_BASE_URL']}/{what}", body, timeout=20) as reply:
        return json.load(reply)


def check(what: str, found: object, wanted: object) -> None:
    """End the script where something is not as it should be; kept apart from `assert`, which tools rewrite or drop."""
    if found != wanted:
        raise SystemExit(f"{what}: {found!r}, and should be {wanted!r}")


def seen(text: str) -> None:
    """Say what was seen; the last words of a script."""
    print(json.dumps({"seen": text}), flush=True)


def skip(why: str) -> NoReturn:
    """End the script because the machine lacks something that no package brings, such as a compiler."""
    print(json.dumps({"skipped": why}), flush=True)
    raise SystemExit(0)


def traced(wrap: Any = None) -> None:
    """Make six requests through a client of the openai package: with a tool, and streamed, over both wires.

    Args:
        wrap: is given each client before it is used; None where the package itself is patched.
    """
    import asyncio

    import openai

    from SimpleLLMFunc import OpenAICompatible, llm_function

    def look(place: int) -> str:
        """Look."""
        return "nothing"

    async def ask(wire: Any) -> None:
        async with openai.AsyncOpenAI() as client:
            llm = OpenAICompatible("gpt-4o", client=client if wrap is None else wrap(client) or client, wire=wire)

            @llm_function(llm, toolkit=[look])
            async def tell(text: str) -> str:
                """Tell."""

            answers({"calls": [["look", {"place": 1}]]}, "fine", "fine")
            check(wire, await tell("a"), "fine")
            check(f"{wire}, streamed", "".join([piece async for piece in tell.stream("a")]), "fine")

    for wire in ("chat", "responses"):
        asyncio.run(ask(wire))
    check("requests", len(asked()), 6)


def provider() -> tuple[Any, Any]:
    """Return a tracer provider, and a function that returns the spans so far: names and attributes."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    kept = InMemorySpanExporter()
    made = TracerProvider()
    made.add_span_processor(SimpleSpanProcessor(kept))
    trace.set_tracer_provider(made)
    return made, kept


def check_traced(spans: Any, tokens: str) -> None:
    """Check that six spans have the attribute for input tokens, three each, and that each stands under a span of ours."""
    counted = [span for span in spans if tokens in span.attributes]
    check("input tokens", [span.attributes[tokens] for span in counted], [3] * 6)
    ours = [span for span in spans if span.name == "invoke_agent tell"]
    check("our spans", (len(ours), [span.name for span in spans if span.name.startswith("chat ")]), (4, []))
    check("their traces", {span.context.trace_id for span in counted}, {span.context.trace_id for span in ours})
    seen(
        "6 spans with 3 input tokens each, for 6 requests; they are part of the traces of our 4 runs, and no span of ours repeats them"
    )
