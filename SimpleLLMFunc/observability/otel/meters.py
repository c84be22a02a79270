"""The metrics of model calls, after the GenAI conventions."""

from __future__ import annotations

from collections.abc import Sequence

from opentelemetry.metrics import Histogram, Meter

from SimpleLLMFunc.observability.otel.semconv import DURATION_BUCKETS, TOKEN_BUCKETS, Metric


class Meters:
    """Tokens, duration and time to the first chunk of model calls.

    Args:
        meter: makes the instruments.
    """

    def __init__(self, meter: Meter) -> None:
        self.tokens = _histogram(meter, Metric.TOKEN_USAGE, "{token}", "Tokens of one request.", TOKEN_BUCKETS)
        self.duration = _histogram(
            meter, Metric.OPERATION_DURATION, "s", "From the request to the end of the reply.", DURATION_BUCKETS
        )
        self.first_chunk = _histogram(
            meter, Metric.FIRST_CHUNK, "s", "From the request to the first piece of a streamed reply.", DURATION_BUCKETS
        )


def _histogram(meter: Meter, name: str, unit: str, description: str, buckets: Sequence[float]) -> Histogram:
    return meter.create_histogram(name, unit, description, explicit_bucket_boundaries_advisory=buckets)
