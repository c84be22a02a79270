"""Setting up OpenTelemetry in one line, for programs that do not do so already."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.extras import missing_extra
from SimpleLLMFunc.logger import remember_secret
from SimpleLLMFunc.observability.otel.environment import is_set_up
from SimpleLLMFunc.observability.otel.semconv import Attribute
from SimpleLLMFunc.observability.otel.span_sink import choose_content

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider


def setup_tracing(
    endpoint: str | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    service_name: str | None = None,
    capture_content: bool | None = None,
    metrics: bool = False,
) -> TracerProvider:
    """Send every run of the process to an OTLP backend over HTTP, and return the provider (`force_flush`, `shutdown`).

    Waiting spans are sent when the program ends. A program that has set up OpenTelemetry itself does not need this.

    Args:
        endpoint: such as ``http://localhost:6006``; ``/v1/traces`` is added where it is missing. None asks
            OTEL_EXPORTER_OTLP_ENDPOINT and its kin, else ``http://localhost:4318``.
        headers: for each request, such as a key; None asks OTEL_EXPORTER_OTLP_HEADERS.
        service_name: name of the program in the backend; None asks OTEL_SERVICE_NAME.
        capture_content: put prompts, answers, arguments and values into the spans, redacted; None asks
            OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT.
        metrics: send metrics too, every minute, to ``/v1/metrics``; few of the tracing backends take them.

    Raises:
        ConfigError: the extra "otel" is missing, or OpenTelemetry has been set up already.
    """
    try:
        from opentelemetry import metrics as metrics_api
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise missing_extra("opentelemetry", "otel", purpose="setup_tracing", error=error) from error
    if is_set_up():
        raise ConfigError(
            "OpenTelemetry is set up already in this process, and it gets the runs. Add an OTLPSpanExporter to that "
            "provider, or call setup_tracing before the code that set it up."
        )
    for secret in (headers or {}).values():
        remember_secret(secret)
    sent_headers = dict(headers) if headers else None
    resource = Resource.create({"service.name": service_name} if service_name else {})
    name = str(resource.attributes.get("service.name", ""))
    if not name.startswith("unknown_service"):
        # Phoenix puts the traces into this project, unless the environment names one.
        resource = Resource({Attribute.PROJECT: name}).merge(resource)
    provider = TracerProvider(resource=resource)
    spans = OTLPSpanExporter(endpoint=_address(endpoint, "traces"), headers=sent_headers)
    provider.add_span_processor(BatchSpanProcessor(spans))
    choose_content(capture_content)
    trace.set_tracer_provider(provider)
    if metrics:
        reader = PeriodicExportingMetricReader(
            OTLPMetricExporter(endpoint=_address(endpoint, "metrics"), headers=sent_headers)
        )
        metrics_api.set_meter_provider(MeterProvider([reader], resource=resource))
    return provider


def _address(endpoint: str | None, signal: str) -> str | None:
    """Return where a signal goes; None leaves it to the exporter, which reads the environment."""
    if endpoint is None:
        return None
    if not str(endpoint).startswith(("http://", "https://")):
        raise ConfigError(f"endpoint is {endpoint!r}; it must be an address such as http://localhost:4318.")
    return f"{endpoint.rstrip('/').removesuffix('/v1/traces')}/v1/{signal}"
