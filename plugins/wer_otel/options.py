"""What a user may set about OpenTelemetry in the configuration: nothing, the environment has it all."""

from __future__ import annotations

from attrs import frozen


@frozen(kw_only=True)
class OtelOptions:
    """``[tracking.otel]``: empty. The exporter reads ``OTEL_EXPORTER_OTLP_ENDPOINT`` and the like."""
