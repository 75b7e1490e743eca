"""Figures as they come: stored at once, never twice, and shown by trackers that may fail."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from support import counting
from support.perform import configured, perform
from support.tracking import Stepping, plugin

from wer import plugins
from wer.cli.export import export
from wer.cli.options import Settings
from wer.configuration import from_toml, resolve, to_toml
from wer.errors import PluginError, WerError
from wer.loop.checking import check_names
from wer.loop.recording import Recorder
from wer.measures import OF_GROUPS
from wer.redaction import redacted
from wer.reports.reporting import print_report
from wer.reports.results import results
from wer.store import Store


def stepping(**overrides):
    return configured(backend="stepping", tracking__memory__colour="red", **overrides)


def test_each_step_is_in_the_store_and_at_the_tracker_with_the_rollouts_that_it_took(tmp_path):
    made = []

    store = perform(tmp_path / "run", stepping(), extra=(plugin(made),))

    steps = store.metrics()
    assert [(stage, step) for stage, step, _ in steps] == [
        ("train/0", 0),
        ("train/0", 1),
        ("train/1", 0),
        ("train/1", 1),
    ]
    shown = [(step, row) for stage, step, row in made[0].rows if stage == "train"]
    assert shown == [(index, row) for index, (_, _, row) in enumerate(steps)]
    first = steps[0][2]
    assert first["rollouts"] > 0
    assert first["rollouts_per_s"] == first["rollouts"] / 2.0
    assert steps[1][2]["rollouts"] == 0.0


def test_a_tracker_is_told_of_each_phase_and_gets_the_users_options_and_the_runs_name(tmp_path):
    made = []

    store = perform(tmp_path / "run", stepping(), extra=(plugin(made),))

    phases = {step: row for stage, step, row in made[0].rows if stage == "phase"}
    stored = [found.reward.total for _, found in store.experiences("train/0")]
    assert phases.keys() == {0, 1}
    assert phases[0]["reward"] == pytest.approx(sum(stored) / len(stored))
    assert phases[0]["retained"] > 0
    setup = made[0].setup
    assert (setup.name, setup.folder, setup.options) == ("run", tmp_path / "run", {"colour": "red"})
    assert made[0].closed == 1


@pytest.mark.parametrize("fail_at", [0, 2])
def test_a_tracker_that_fails_is_left_alone_and_the_run_ends_as_without_it(tmp_path, fail_at):
    made = []

    store = perform(tmp_path / "run", stepping(), extra=(plugin(made, fail_at=fail_at),))

    assert (made[0].calls, made[0].closed) == (fail_at + 1, 0)
    assert len(store.metrics()) == 4
    assert results(store).cell("refined", "small") is not None


def test_a_failing_tracker_is_told_of_once_and_the_others_go_on(tmp_path):
    said, made = [], []
    found = plugins.load(extra=(counting, plugin(made, fail_at=1)))
    recorder = Recorder(store=Store(tmp_path / "wer.sqlite", create=True), say=said.append)
    recorder.open(
        resolve(None, None, ["tracking.memory={}"], {"env": ["e"], "executor": "m/x"}), tmp_path, found
    )
    recorder.begin(0)

    for step in range(4):
        recorder.step(step, {"loss": 1.0})
    recorder.close()

    assert len(said) == 1
    assert "'memory' failed and gets no more figures: ConnectionError" in said[0]
    assert len(recorder.store.metrics()) == 4


def test_a_phase_that_died_and_goes_on_has_each_step_once(tmp_path, monkeypatch):
    monkeypatch.setattr(Stepping, "die_in", 1)
    with pytest.raises(WerError, match="killed by a test"):
        perform(tmp_path / "run", stepping(), extra=(plugin([]),))
    before = [(stage, step) for stage, step, _ in Store(tmp_path / "run" / "wer.sqlite").metrics()]
    made = []

    store = perform(tmp_path / "run", stepping(), extra=(plugin(made),))

    assert before == [("train/0", 0), ("train/0", 1), ("train/1", 0)]
    assert [(stage, step) for stage, step, _ in store.metrics()] == [*before, ("train/1", 1)]
    assert [step for stage, step, _ in made[0].rows if stage == "train"] == [2, 3]
    assert store.metrics()[2][2]["rollouts"] == 0.0, "the first start had paid for them"


def test_a_step_that_is_made_again_takes_the_place_of_the_first(tmp_path):
    store = Store(tmp_path / "wer.sqlite", create=True)
    store.put_metrics("train/0", 0, {"loss": 0.5})
    store.put_metrics("train/0", 1, {"loss": 0.4})

    store.put_metrics("train/0", 0, {"loss": 0.3})

    assert store.metrics() == [("train/0", 0, {"loss": 0.3}), ("train/0", 1, {"loss": 0.4})]


def test_a_step_whose_word_was_lost_gets_a_row_from_its_candidates_at_the_end_of_the_phase(tmp_path):
    made = []
    store = perform(tmp_path / "run", stepping(), extra=(plugin([]),))
    found = [experience for _, experience in store.experiences("train/1")]
    size = len(found) // 4
    recorder = Recorder(store=store, say=print)
    recorder.open(stepping(), tmp_path, plugins.load(extra=(counting, plugin(made))))
    recorder.begin(1)

    recorder.complete(size, scaled=False)

    rows = {step: row for stage, step, row in store.metrics() if stage == "train/1"}
    assert sorted(rows) == [0, 1, 2, 3]
    assert [rows[step].get("loss") for step in range(4)] == [0.5, 0.25, None, None]
    mean = sum(experience.reward.total for experience in found[2 * size : 3 * size]) / size
    assert rows[2].keys() == OF_GROUPS.keys() and rows[2]["reward"] == pytest.approx(mean)
    assert [(stage, step) for stage, step, _ in made[0].rows] == [("train", 4), ("train", 5)]


def test_steps_of_a_backend_that_says_nothing_of_their_size_are_left_as_they_are(tmp_path):
    store = perform(tmp_path / "run", stepping(), extra=(plugin([]),))
    before = store.metrics()
    recorder = Recorder(store=store, say=print)
    recorder.begin(1)

    recorder.complete(0, scaled=False)

    assert store.metrics() == before


def test_a_step_that_got_its_row_late_stands_before_those_that_came_after_it(tmp_path):
    store = Store(tmp_path / "wer.sqlite", create=True)
    for stage, step in (("train/1", 0), ("train/10", 1), ("train/10", 0)):
        store.put_metrics(stage, step, {})

    assert [(stage, step) for stage, step, _ in store.metrics()] == [
        ("train/1", 0),
        ("train/10", 0),
        ("train/10", 1),
    ]


def test_a_step_outside_of_any_phase_is_refused(tmp_path):
    recorder = Recorder(store=Store(tmp_path / "wer.sqlite", create=True), say=print)

    with pytest.raises(ValueError, match="before any phase"):
        recorder.step(0, {})


def test_an_unknown_tracker_is_refused_with_those_that_are_installed():
    config = resolve(None, None, ["tracking.tensorbord={}"], {"env": ["bfcl"], "executor": "openai/x"})

    with pytest.raises(PluginError, match=r"no tracker named 'tensorbord' .*tensorboard"):
        check_names(config, plugins.load())


def test_a_trackers_empty_table_survives_writing_and_reading():
    config = resolve(None, None, ["tracking.wandb={}"], {"env": ["bfcl"], "executor": "openai/x"})

    assert from_toml(to_toml(config)).tracking == {"wandb": {}}


def test_track_turns_a_tracker_on_and_leaves_its_settings():
    settings = Settings(
        env=["bfcl"], executor="openai/x", track=["wandb", "tensorboard"], set=["tracking.wandb.project=p"]
    )

    assert settings.resolve().tracking == {"wandb": {"project": "p"}, "tensorboard": {}}


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"api_key": "x", "max_tokens": 5}, {"api_key": "(hidden)", "max_tokens": 5}),
        ({"headers": {"Authorization": "Bearer x"}}, {"headers": {"Authorization": "(hidden)"}}),
        ("openai/m@https://me:pw@host:8/v1?key=x#y", "openai/m@https://host:8/v1"),
        ({"openai/m@http://u:p@h/v1": [1.0, 2.0]}, {"openai/m@http://h/v1": [1.0, 2.0]}),
        (("a", {"auth_token": "x", "token": ""}), ["a", {"auth_token": "(hidden)", "token": ""}]),
        ("http://[::1/v1", "(hidden)"),
        ({"k": 4, "seed_writer": "", "monkey": "m"}, {"k": 4, "seed_writer": "", "monkey": "m"}),
    ],
)
def test_a_configuration_is_shown_without_its_secrets(value, shown):
    assert redacted(value) == shown


def test_trackers_see_the_configuration_without_secrets(tmp_path):
    made = []
    config = stepping(executor_options__cookie="sesame", environment__counting__token="sesame")

    perform(tmp_path / "run", config, extra=(plugin(made),))

    assert "sesame" not in repr(made[0].setup.config)
    assert made[0].setup.config["training"]["k"] == 4


def test_the_printed_report_has_the_newest_steps_in_one_table(tmp_path):
    store = Store(tmp_path / "wer.sqlite", create=True)
    for step in range(25):
        store.put_metrics("train/0", step, {"reward": step / 100, "reward_task": 0.5, "generation_s": 12.0})
    out = io.StringIO()

    print_report(Console(file=out, width=110), store, tmp_path, configured())

    lines = out.getvalue()
    assert "25 update steps, 5 earlier ones are in report.md" in lines
    assert "0/24" in lines and "0/4 " not in lines
    assert "0.50/-/-" in lines and "12/-/-" in lines


def test_a_runs_figures_are_exported_a_line_a_step(tmp_path):
    store = perform(tmp_path / "run", stepping(), extra=(plugin([]),))
    (tmp_path / "run" / "run.toml").write_text(to_toml(stepping()), "utf-8")

    export(str(tmp_path / "run"), form="metrics", out=tmp_path / "steps.jsonl")

    lines = (tmp_path / "steps.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == len(store.metrics()) == 4
    assert '"stage": "train/0", "step": 0' in lines[0] and '"loss": 0.5' in lines[0]
