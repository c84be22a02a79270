# /// script
# dependencies = ["langsmith"]
# ///
"""Both wires, whole and streamed, a tool between two requests: the tracer sees each of six calls once, with its tokens."""

import os
from typing import Any

os.environ["LANGSMITH_TRACING"] = "true"

from langsmith import Client
from langsmith.wrappers import wrap_openai
from scene import check, seen, traced

ended: list[Any] = []


class Kept(Client):
    """Keeps what it is told, and sends nothing."""

    def create_run(self, *_: Any, **__: Any) -> None:
        pass

    def update_run(self, *_: Any, **told: Any) -> None:
        ended.append(told)


keeper = Kept(api_key="none", api_url="http://127.0.0.1:9", auto_batch_tracing=False)
traced(lambda client: wrap_openai(client, tracing_extra={"client": keeper}))
check("errors", [told.get("error") for told in ended], [None] * 6)
check("input tokens", [told["outputs"]["usage_metadata"]["input_tokens"] for told in ended], [3] * 6)
seen("6 runs with 3 input tokens each, for 6 requests")
