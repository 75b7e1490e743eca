"""Where spans go: to the program that WER runs in, if it traces already, else by OTLP as ``OTEL_*`` says."""

from __future__ import annotations

import os

from opentelemetry import trace
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter

from wer.errors import ConfigError


def provider() -> TracerProvider:
    """The program's own provider, or a new one of this run's.

    Raises:
        ConfigError: ``OTEL_TRACES_EXPORTER`` names an exporter that there isn't.
    """
    there = trace.get_tracer_provider()
    if isinstance(there, TracerProvider):
        return there
    name = os.environ.get("OTEL_SERVICE_NAME", "wer")
    made = TracerProvider(resource=Resource.create({SERVICE_NAME: name}), shutdown_on_exit=False)
    exporter = _exporter(os.environ.get("OTEL_TRACES_EXPORTER", "otlp").strip() or "otlp")
    if exporter is not None:
        made.add_span_processor(BatchSpanProcessor(exporter))
    return made


def _exporter(name: str) -> SpanExporter | None:
    if name == "otlp":
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        return OTLPSpanExporter()
    if name == "console":
        return ConsoleSpanExporter()
    if name == "none":
        return None
    raise ConfigError(
        f"OTEL_TRACES_EXPORTER is {name!r}, which --track otel doesn't have. Set it to otlp (over HTTP, "
        "to OTEL_EXPORTER_OTLP_ENDPOINT), console or none."
    )
