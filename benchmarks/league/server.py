"""One llama.cpp server on this machine, in a process of its own: what a contender asks, and what it cost.

    python -m benchmarks.league.server smollm2-135m

The first line it prints holds its `url` and `key`. From then on it prints a line for each line it reads: all tokens that
went in and out so far, and its processor time. It ends with its standard input.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import urllib.request
from typing import Any

from SimpleLLMFunc.interface.local import server as local
from SimpleLLMFunc.interface.local.local_model import default_threads
from SimpleLLMFunc.interface.local.weights import KNOWN_WEIGHTS, fetch_weights

WINDOW = 4096


def start(model: str) -> local.LocalServer:
    """Start the server as `LocalModel` does; it counts its tokens besides."""
    made = local._params  # noqa: SLF001 - the rest is to be as users get it

    def counting(*given: Any) -> Any:
        params = made(*given)
        params.endpoint_metrics = True
        return params

    local._params = counting  # noqa: SLF001
    path = fetch_weights(KNOWN_WEIGHTS[model])
    return local.start_server(local.ServerOptions(model, path, default_threads(), WINDOW))


def spent(server: local.LocalServer) -> dict[str, float]:
    """Return the tokens of all requests so far, those of kept prompts too, and the processor time."""
    url = server.base_url.removesuffix("/v1") + "/metrics"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {server.key}"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as reply:
        counts = {name: float(value) for name, value in re.findall(rb"(?m)^llamacpp:(\w+) ([\d.]+)", reply.read())}
    tokens_in = counts[b"prompt_tokens_total"] + counts[b"prompt_tokens_cached_total"]
    return {"in": tokens_in, "out": counts[b"tokens_predicted_total"], "cpu": time.process_time()}


def main(model: str) -> None:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    server = start(model)
    print(json.dumps({"url": server.base_url, "key": server.key}), file=out, flush=True)
    for _ in sys.stdin:
        print(json.dumps(spent(server)), file=out, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
