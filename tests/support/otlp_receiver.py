"""A receiver of OTLP over HTTP on loopback, in a thread of its own; what arrives is decoded from the protobuf.

with OtlpReceiver() as receiver:
    setup_tracing(receiver.url)
    …
    receiver.spans()
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from tests.support.connections import Recorded
from tests.support.server import Answer, serving_in_thread


@dataclass(frozen=True)
class ReceivedSpan:
    """One span as it came over the wire."""

    name: str
    kind: int
    span_id: str
    parent_id: str
    trace_id: str
    attributes: dict[str, Any]
    events: list[tuple[str, dict[str, Any]]]
    status: int
    resource: dict[str, Any]
    scope: tuple[str, str, str]
    seconds: float = field(default=0.0, compare=False)


class OtlpReceiver:
    """Takes in traces and metrics; anything else is 404."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self._serving = serving_in_thread(self._answer)
        self.url = ""

    def _answer(self, request: Recorded) -> Answer:
        body = gzip.decompress(request.raw) if request.headers.get("content-encoding") == "gzip" else request.raw
        self.requests.append((request.path, request.headers, body))
        made = {"/v1/traces": ExportTraceServiceResponse, "/v1/metrics": ExportMetricsServiceResponse}.get(request.path)
        data = made().SerializeToString() if made else b""
        return Answer(200 if made else 404, {"content-type": "application/x-protobuf"}, body=data)

    def __enter__(self) -> OtlpReceiver:
        self.url = self._serving.__enter__().base_url.removesuffix("/v1")
        return self

    def __exit__(self, *error: Any) -> None:
        self._serving.__exit__(*error)

    def spans(self) -> list[ReceivedSpan]:
        """What has come so far, in the order in which the spans began."""
        found = []
        for path, _, body in list(self.requests):
            if path == "/v1/traces":
                found += _spans(ExportTraceServiceRequest.FromString(body))
        return [span for _, span in sorted(found, key=lambda pair: pair[0])]

    def metrics(self) -> dict[str, list[tuple[dict[str, Any], int, float]]]:
        """Attributes, count and sum of each point of each histogram; the latest export counts."""
        found: dict[str, list[tuple[dict[str, Any], int, float]]] = {}
        for path, _, body in list(self.requests):
            if path == "/v1/metrics":
                found = _metrics(ExportMetricsServiceRequest.FromString(body))
        return found


def _spans(request: Any) -> Iterator[tuple[int, ReceivedSpan]]:
    for of_resource in request.resource_spans:
        resource = _attributes(of_resource.resource.attributes)
        for of_scope in of_resource.scope_spans:
            scope = (of_scope.scope.name, of_scope.scope.version, of_scope.schema_url)
            for span in of_scope.spans:
                yield (
                    span.start_time_unix_nano,
                    ReceivedSpan(
                        name=span.name,
                        kind=span.kind,
                        span_id=span.span_id.hex(),
                        parent_id=span.parent_span_id.hex(),
                        trace_id=span.trace_id.hex(),
                        attributes=_attributes(span.attributes),
                        events=[(event.name, _attributes(event.attributes)) for event in span.events],
                        status=span.status.code,
                        resource=resource,
                        scope=scope,
                        seconds=(span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
                    ),
                )


def _metrics(request: Any) -> dict[str, list[tuple[dict[str, Any], int, float]]]:
    return {
        metric.name: [(_attributes(point.attributes), point.count, point.sum) for point in metric.histogram.data_points]
        for of_resource in request.resource_metrics
        for of_scope in of_resource.scope_metrics
        for metric in of_scope.metrics
    }


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, kind)
