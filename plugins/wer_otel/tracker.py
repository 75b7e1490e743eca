"""A run as one trace: the run, its stages, their rollouts, and in these the model calls and sandbox leases.

Names and attributes of model calls are those of OpenTelemetry's conventions for generative AI; what
they have no name for begins with ``wer.``. No text of a prompt, a skill or a reply is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from attrs import define, field
from opentelemetry import context, trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from wer.configuration import structure
from wer.contracts import Tell, TrackerSetup
from wer.records import Json
from wer_otel.options import OtelOptions

_CONVENTIONS = {
    "provider": "gen_ai.provider.name",
    "model": "gen_ai.request.model",
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "max_tokens": "gen_ai.request.max_tokens",
    "seed": "gen_ai.request.seed",
    "prompt_tokens": "gen_ai.usage.input_tokens",
    "completion_tokens": "gen_ai.usage.output_tokens",
    "cached_tokens": "gen_ai.usage.cache_read.input_tokens",
}
"""Of a model's call: WER's name to the convention's."""


@define
class OpenTelemetry:
    """Implements `wer.contracts.Tracker` and `wer.contracts.Tracing`.

    Args:
        setup: ``setup.options`` is read as `OtelOptions`.
        provider: Makes and sends the spans; it may be the whole program's.
    """

    setup: TrackerSetup
    provider: TracerProvider
    _tracer: trace.Tracer = field(init=False)
    _run: Span = field(init=False)
    _stage: Span | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        structure(OtelOptions, self.setup.options, where="tracking.otel")
        self._tracer = self.provider.get_tracer("wer")
        self._run = self._tracer.start_span(f"run {self.setup.name}", attributes={"wer.run": self.setup.name})

    def log(self, stage: str, step: int, metrics: Mapping[str, float]) -> None:
        """Note the figures of a step in the run's span."""
        figures = {f"wer.{name}": value for name, value in metrics.items()}
        self._run.add_event(f"{stage} step", {"wer.step": step, **figures})

    def stage(self, name: str) -> None:
        """End the stage's span, and begin the next one below the run's."""
        if self._stage is not None:
            self._stage.end()
        below = trace.set_span_in_context(self._run, context.Context())
        self._stage = (
            self._tracer.start_span(name, context=below, attributes={"wer.stage": name}) if name else None
        )

    def span(self, work: str, attributes: Mapping[str, Json]) -> AbstractContextManager[Tell]:
        """Surround a piece of work, below the one that it lies in or else below the stage."""
        return self._surround(work, attributes)

    def close(self) -> None:
        """End what is open, and send what is held; a program's own provider stays open."""
        self.stage("")
        self._run.end()
        self.provider.force_flush()
        if self.provider is not trace.get_tracer_provider():
            self.provider.shutdown()

    @contextmanager
    def _surround(self, work: str, attributes: Mapping[str, Json]) -> Iterator[Tell]:
        calling = work == "model"
        name = f"chat {attributes['model']}" if calling else work
        kind = SpanKind.CLIENT if calling else SpanKind.INTERNAL
        above = self._above()
        with self._tracer.start_as_current_span(
            name, context=above, kind=kind, record_exception=False, set_status_on_exception=False
        ) as span:

            def tell(**more: Json) -> None:
                span.set_attributes(_model(more) if calling else _named(more))

            tell(**attributes)
            if calling:
                span.set_attribute("gen_ai.operation.name", "chat")
            try:
                yield tell
            except BaseException as error:
                # without its message, which may quote a server or a prompt
                span.set_attribute("error.type", type(error).__qualname__)
                span.set_status(Status(StatusCode.ERROR))
                raise

    def _above(self) -> context.Context | None:
        """None is the span that is current here, if it is one of this run's."""
        here = trace.get_current_span().get_span_context()
        if here.is_valid and here.trace_id == self._run.get_span_context().trace_id:
            return None
        return trace.set_span_in_context(self._stage or self._run)


def _model(attributes: Mapping[str, Json]) -> dict[str, Any]:
    """A call's attributes under the names of the conventions."""
    finish = attributes.get("finish")
    rest = {
        name: value for name, value in attributes.items() if name not in _CONVENTIONS and name != "finish"
    }
    known = {_CONVENTIONS[name]: value for name, value in attributes.items() if name in _CONVENTIONS}
    return {**known, **_named(rest), **({"gen_ai.response.finish_reasons": (finish,)} if finish else {})}


def _named(attributes: Mapping[str, Json]) -> dict[str, Any]:
    """Attributes with WER's prefix, without what is not known."""
    return {f"wer.{name}": value for name, value in attributes.items() if value is not None}
