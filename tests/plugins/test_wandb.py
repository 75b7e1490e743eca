"""Weights & Biases gets what the store has, in a run of its own or as a part of an active one."""

from __future__ import annotations

import sys

import pytest
from support import fake_wandb
from support.perform import configured, perform
from support.tracking import plugin

from wer import plugins
from wer.contracts import TrackerSetup
from wer.errors import ConfigError, PluginError


@pytest.fixture
def installed(monkeypatch):
    """Put a fake module in the place of ``wandb``, and have the plugin import it anew."""

    def put(module):
        monkeypatch.setitem(sys.modules, "wandb", module)
        monkeypatch.delitem(sys.modules, "wer_wandb.tracker", raising=False)
        return module

    yield put
    sys.modules.pop("wer_wandb.tracker", None)


def opened(run_folder, **options):
    setup = TrackerSetup(options=options, name="run-1", folder=run_folder, config={"seed": 7})
    return plugins.load().trackers.make("wandb", setup)


def test_a_run_of_its_own_gets_every_step_of_the_store_and_ends_with_the_run(tmp_path, installed):
    wandb = installed(fake_wandb.module())

    store = perform(tmp_path / "run", configured(backend="stepping", tracking__wandb={}), extra=(plugin([]),))

    (run,) = wandb.runs
    expected = [
        {**{f"train/{name}": value for name, value in row.items()}, "train/step": index}
        for index, (_, _, row) in enumerate(store.metrics())
    ]
    assert [row for row in run.rows if "train/step" in row] == expected
    assert run.finished


def test_a_run_has_the_wer_runs_id_so_that_a_resumed_one_goes_on_in_it(tmp_path, installed):
    wandb = installed(fake_wandb.module())

    opened(tmp_path, project="p", entity="team", mode="offline")

    begun = wandb.runs[0].begun
    assert (begun["id"], begun["name"], begun["resume"]) == ("run-1", "run-1", "allow")
    assert (begun["project"], begun["entity"], begun["mode"]) == ("p", "team", "offline")
    assert begun["config"] == {"seed": 7}


def test_nothing_of_the_command_line_the_output_or_the_working_tree_is_sent(tmp_path, installed):
    wandb = installed(fake_wandb.module())

    opened(tmp_path)

    assert wandb.runs[0].begun["settings"].settings == {
        "console": "off",
        "save_code": False,
        "disable_git": True,
        "x_disable_meta": True,
    }


@pytest.mark.parametrize(("prefix", "before"), [("wer", "wer/"), ("skills/", "skills/"), ("", "")])
def test_an_active_run_is_joined_under_a_prefix_and_left_open(tmp_path, installed, prefix, before):
    active = fake_wandb.Run(config={"theirs": 1})
    wandb = installed(fake_wandb.module(active=active))

    tracker = opened(tmp_path, prefix=prefix)
    tracker.log("train", 4, {"loss": 0.5})
    tracker.close()

    assert active.rows == [{f"{before}train/loss": 0.5, f"{before}train/step": 4}]
    assert active.axes[f"{before}train/*"] == f"{before}train/step"
    assert active.config == {"theirs": 1, prefix.strip("/") or "wer": {"seed": 7}}
    assert not active.finished
    assert wandb.runs == []


def test_a_service_that_refuses_is_told_with_what_to_do(tmp_path, installed):
    installed(fake_wandb.module(refusal="no API key"))

    with pytest.raises(ConfigError, match=r"no API key\. Log in with wandb login.*offline"):
        opened(tmp_path)


def test_a_missing_library_is_named_with_what_installs_it(tmp_path, installed):
    installed(None)

    with pytest.raises(PluginError, match=r"pip install 'wer-skills\[wandb\]'"):
        opened(tmp_path)


def test_an_unknown_setting_is_refused(tmp_path, installed):
    installed(fake_wandb.module())

    with pytest.raises(ConfigError, match=r"tracking\.wandb"):
        opened(tmp_path, api_key="secret")
