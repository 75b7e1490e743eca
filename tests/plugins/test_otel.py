"""A run as a trace: who lies in whom, what model calls are called, and no word of a prompt."""

from __future__ import annotations

import json
import os
from collections import Counter as Tally
from types import ModuleType

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from support.counting import Counter
from support.perform import configured, perform

from wer import hookimpl
from wer.contracts import TrackerSetup
from wer.errors import ConfigError, ModelUnavailable
from wer.records import Message, Sampling
from wer.tracing import span, tracing
from wer_otel import providing
from wer_otel.tracker import OpenTelemetry

SECRET = "nobody may read this prompt"


class Asking(Counter):
    """The counting agent, which asks its model before it acts."""

    def __init__(self, model, options):
        super().__init__(model, options)
        self._model = model

    async def execute(self, task, skill, session, seed):
        await self._model.complete((Message(role="user", content=SECRET),), (), Sampling(seed=seed))
        return await super().execute(task, skill, session, seed)


class Kept:
    """An exporter that keeps the spans, and the plugin that sends a run's there."""

    def __init__(self):
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.plugin = ModuleType("traced")

        @hookimpl
        def wer_trackers():
            return {"kept": lambda setup: OpenTelemetry(setup, self.provider)}

        @hookimpl
        def wer_executors():
            return {"asking": Asking}

        self.plugin.wer_trackers = wer_trackers
        self.plugin.wer_executors = wer_executors

    def spans(self):
        return self.exporter.get_finished_spans()


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    kept = Kept()
    config = configured(agent="asking", tracking__kept={}, evaluation__conditions=["none", "seed"])
    perform(tmp_path_factory.mktemp("traced") / "run", config, extra=(kept.plugin,))
    return kept.spans()


def named(spans, name):
    return [each for each in spans if each.name == name]


def test_run_stage_rollout_and_what_is_in_it_lie_in_each_other(ran):
    by_id = {each.context.span_id: each for each in ran}

    def chain(each):
        above = by_id.get(each.parent.span_id) if each.parent else None
        return [each.name, *(chain(above) if above else [])]

    [run] = [each for each in ran if each.parent is None]
    lease, rollout = named(ran, "lease")[-1], named(ran, "rollout")[-1]
    assert run.name == "run run"
    assert chain(lease)[:2] == ["lease", "rollout"]
    assert chain(rollout)[1].startswith("test split") and chain(rollout)[2:] == ["run run"]
    assert any(chain(each)[1:2] == ["rollout"] for each in ran if each.name.startswith("chat"))
    assert {each.context.trace_id for each in ran} == {run.context.trace_id}


def test_a_model_call_has_the_conventions_names(ran):
    call = next(each for each in ran if each.attributes.get("wer.role") == "executor")

    assert call.kind is trace.SpanKind.CLIENT
    assert call.attributes["gen_ai.operation.name"] == "chat"
    assert call.attributes["gen_ai.provider.name"] == "scribe"
    assert call.attributes["gen_ai.usage.input_tokens"] == 100
    assert call.attributes["gen_ai.usage.output_tokens"] == 20
    assert call.attributes["gen_ai.response.finish_reasons"] == ("stop",)
    assert call.attributes["gen_ai.request.temperature"] == 0.7


def test_a_rollout_says_what_became_of_it(ran):
    verdicts = Tally(each.attributes["wer.passed"] for each in named(ran, "rollout"))

    assert verdicts.total() > 0
    assert all(each.attributes["wer.tries"] == 1 for each in named(ran, "rollout"))


def test_no_prompt_is_in_a_trace(ran):
    told = "".join(each.to_json() for each in ran)

    assert SECRET not in told and "Count to" not in told


async def test_a_failed_call_is_an_error_without_its_message(tmp_path):
    kept = Kept()
    tracker = OpenTelemetry(setup(tmp_path), kept.provider)

    with (
        tracing({"kept": tracker}, failed=lambda name, error: None),
        pytest.raises(ModelUnavailable),
        span("model", model="m"),
    ):
        raise ModelUnavailable(SECRET)

    [call] = kept.spans()
    assert call.attributes["error.type"] == "ModelUnavailable"
    assert not call.status.is_ok and SECRET not in call.to_json()


def test_a_tracer_that_raises_is_told_of_once_and_never_harms_the_work(tmp_path):
    class Broken:
        def span(self, work, attributes):
            raise ConnectionError("the service hung up")

        def stage(self, name): ...

    failures = []
    with tracing({"broken": Broken()}, failed=lambda name, error: failures.append(name)):
        for _ in range(2):
            with span("rollout") as tell:
                tell(passed=True)

    assert failures == ["broken"]


def test_the_environment_chooses_the_exporter(monkeypatch):
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    assert isinstance(providing._exporter(os.environ["OTEL_TRACES_EXPORTER"]), ConsoleSpanExporter)

    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "zipkin")
    with pytest.raises(ConfigError, match=r"'zipkin'.*otlp .*console or none"):
        providing.provider()


def test_a_run_keeps_a_log_for_programs(tmp_path):
    perform(tmp_path / "run", configured(evaluation__conditions=["none"]))

    notes = [json.loads(line) for line in (tmp_path / "run" / "logs" / "run.jsonl").read_text().splitlines()]
    begun = [note["name"] for note in notes if note["event"] == "stage"]
    assert notes[0]["event"] == "opened" and notes[-1]["event"] == "ended"
    assert begun == [note["name"] for note in notes if note["event"] == "stage ended"]
    assert all(note["time"] for note in notes)


def setup(folder):
    return TrackerSetup(options={}, name="run", folder=folder, config={})
