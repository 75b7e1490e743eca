"""TensorBoard reads back what the store has."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.perform import configured, perform
from support.tracking import Stepping, plugin
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from wer import plugins
from wer.contracts import TrackerSetup
from wer.errors import ConfigError, PluginError, WerError


def scalars(folder: Path) -> dict[str, dict[int, list[float]]]:
    """Every value that TensorBoard shows, by tag and step; a step with two values is a fault."""
    read = EventAccumulator(str(folder)).Reload()
    shown: dict[str, dict[int, list[float]]] = {}
    for tag in read.Tags()["scalars"]:
        for event in read.Scalars(tag):
            shown.setdefault(tag, {}).setdefault(event.step, []).append(event.value)
    return shown


def stored(store):
    """What TensorBoard should show of the store's steps."""
    shown = {}
    for index, (_, _, row) in enumerate(store.metrics()):
        for name, value in row.items():
            shown.setdefault(f"train/{name}", {})[index] = [pytest.approx(value, rel=1e-6)]
    return shown


def test_the_event_files_hold_every_step_of_the_store(tmp_path):
    config = configured(backend="stepping", tracking__tensorboard={})

    store = perform(tmp_path / "run", config, extra=(plugin([]),))

    assert scalars(tmp_path / "run" / "tensorboard" / "train") == stored(store)
    assert scalars(tmp_path / "run" / "tensorboard" / "phase").keys() >= {"phase/reward", "phase/retained"}


def test_steps_that_a_resumed_phase_made_again_are_shown_once(tmp_path, monkeypatch):
    config = configured(backend="stepping", tracking__tensorboard={})
    monkeypatch.setattr(Stepping, "die_in", 1)
    with pytest.raises(WerError, match="killed by a test"):
        perform(tmp_path / "run", config, extra=(plugin([]),))

    store = perform(tmp_path / "run", config, extra=(plugin([]),))

    assert len(list((tmp_path / "run" / "tensorboard" / "train").iterdir())) == 2
    assert scalars(tmp_path / "run" / "tensorboard" / "train") == stored(store)


def opened(run_folder, **options):
    setup = TrackerSetup(options=options, name="run-1", folder=run_folder, config={})
    return plugins.load().trackers.make("tensorboard", setup)


def test_figures_are_on_disk_before_the_tracker_is_closed(tmp_path):
    tracker = opened(tmp_path)

    tracker.log("train", 3, {"loss": 0.5})

    assert scalars(tmp_path / "tensorboard" / "train") == {"train/loss": {3: [0.5]}}
    tracker.close()


def test_a_folder_of_the_users_gets_one_of_each_run(tmp_path):
    tracker = opened(tmp_path / "run", folder=str(tmp_path / "all"))

    tracker.log("evaluation", 0, {"refined/average/pass_1": 0.25})
    tracker.close()

    shown = scalars(tmp_path / "all" / "run-1" / "evaluation")
    assert shown == {"evaluation/refined/average/pass_1": {0: [0.25]}}


def test_an_unknown_setting_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"tracking\.tensorboard"):
        opened(tmp_path, port=6006)


def test_a_missing_library_is_named_with_what_installs_it(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "wer_tensorboard.tracker", raising=False)
    monkeypatch.setitem(sys.modules, "tensorboard.compat.proto.event_pb2", None)

    with pytest.raises(PluginError, match=r"pip install 'wer-skills\[tensorboard\]'"):
        opened(tmp_path)
