"""Entry module of the OpenTelemetry tracker: a run as a trace, sent wherever ``OTEL_*`` says."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wer import hookimpl
from wer.contracts import Tracker, TrackerSetup


@hookimpl
def wer_trackers() -> Mapping[str, Callable[[TrackerSetup], Tracker]]:
    """Offer ``--track otel``."""
    return {"otel": _otel}


def _otel(setup: TrackerSetup) -> Tracker:
    from wer_otel.providing import provider
    from wer_otel.tracker import OpenTelemetry

    return OpenTelemetry(setup, provider())
