"""A receiver of OTLP over HTTP on loopback, in a thread of its own; what arrives is decoded from the protobuf.

with OtlpReceiver() as receiver:
    setup_tracing(receiver.url)
    …
    receiver.spans()
"""

from __future__ import annotations

import gzip
import http.server
import threading
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
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                receiver.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                answers = {"/v1/traces": ExportTraceServiceResponse, "/v1/metrics": ExportMetricsServiceResponse}
                answer = answers.get(self.path)
                self.send_response(200 if answer else 404)
                data = answer().SerializeToString() if answer else b""
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> OtlpReceiver:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

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
