# /// script
# dependencies = ["mlflow"]
# ///
"""Both wires, whole and streamed, a tool between two requests: the tracer sees each of six calls once, with its tokens."""

import mlflow
from scene import check, seen, traced

mlflow.set_tracking_uri("sqlite:///mlflow.db")
mlflow.openai.autolog()
traced()
mlflow.flush_trace_async_logging()
found = mlflow.search_traces(return_type="list")
check("states", [str(trace.info.state.value) for trace in found], ["OK"] * 6)
check("input tokens", [(trace.info.token_usage or {}).get("input_tokens") for trace in found], [3] * 6)
seen("6 traces with 3 input tokens each, for 6 requests")
