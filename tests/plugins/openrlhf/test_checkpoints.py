"""What goes from one phase to the next, and what does not."""

import os
import sys
from pathlib import Path

import pytest
import torch

from wer.errors import OptimizerError
from wer_openrlhf.checkpoints import Policy, actor_folder, carry, newest_tag, settle, step_of

SCHEDULE = {"base_lrs": [1e-3], "_last_lr": [4e-4], "last_epoch": 7, "_step_count": 8, "lr_lambdas": [{}]}


@pytest.fixture
def trained(tmp_path: Path) -> Policy:
    checkpoint, model = tmp_path / "old" / "checkpoint", tmp_path / "old" / "merged"
    tag = checkpoint / "global_step7"
    tag.mkdir(parents=True)
    place = {
        "episode": 0,
        "global_step": 7,
        "total_consumed_prompts": 14,
        "data_loader_state_dict": {"a": 14},
    }
    torch.save(
        {"module": {"w": torch.ones(2)}, "lr_scheduler": SCHEDULE, **place},
        tag / "mp_rank_00_model_states.pt",
    )
    torch.save({"exp_avg": torch.ones(2)}, tag / "bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt")
    (checkpoint / "latest").write_text("global_step7")
    model.mkdir()
    (model / "config.json").write_text("{}")
    return Policy(model=str(model), checkpoint=checkpoint)


async def test_weights_and_moments_go_on_and_the_place_in_the_prompts_does_not(trained, tmp_path):
    await carry(trained, tmp_path / "trainer", python=sys.executable, rate=5e-4)

    folder = actor_folder(tmp_path / "trainer")
    tag = newest_tag(folder)
    state = torch.load(folder / tag / "mp_rank_00_model_states.pt", weights_only=False)
    assert state["module"]["w"].equal(torch.ones(2))
    assert (state["global_step"], state["total_consumed_prompts"], state["data_loader_state_dict"]) == (
        0,
        0,
        {},
    )
    assert state["lr_scheduler"]["base_lrs"] == [5e-4]
    assert state["lr_scheduler"]["last_epoch"] == 0
    moments = "bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt"
    assert (folder / tag / moments).samefile(trained.checkpoint / "global_step7" / moments)
    assert step_of(tag) == 0


async def test_the_last_phases_own_checkpoint_is_left_as_it_was(trained, tmp_path):
    before = (trained.checkpoint / "global_step7" / "mp_rank_00_model_states.pt").read_bytes()

    await carry(trained, tmp_path / "trainer", python=sys.executable, rate=5e-4)

    assert (trained.checkpoint / "global_step7" / "mp_rank_00_model_states.pt").read_bytes() == before


async def test_a_checkpoint_that_was_removed_is_missed_with_what_to_do(trained, tmp_path):
    (trained.checkpoint / "latest").unlink()

    with pytest.raises(OptimizerError, match="left no checkpoint"):
        await carry(trained, tmp_path / "trainer", python=sys.executable, rate=5e-4)


def test_what_is_saved_is_found_again_and_costs_no_disk(trained, tmp_path):
    trained.save(tmp_path / "policy")

    found = Policy.load(tmp_path / "policy")
    assert found.checkpoint is not None
    assert newest_tag(found.checkpoint) == "global_step7"
    name = "global_step7/mp_rank_00_model_states.pt"
    assert (found.checkpoint / name).samefile(trained.checkpoint / name)


def test_a_policy_whose_saving_is_cut_short_is_not_there_at_all(trained, tmp_path, monkeypatch):
    (Path(trained.model) / "model.safetensors").write_bytes(b"weights")

    def killed_at_the_weights(source: str, target: str) -> None:
        if source.endswith(".safetensors"):
            raise KeyboardInterrupt
        Path(target).hardlink_to(source)

    monkeypatch.setattr(os, "link", killed_at_the_weights)
    with pytest.raises(KeyboardInterrupt):
        trained.save(tmp_path / "policy")

    assert not (tmp_path / "policy" / "merged").exists()
    with pytest.raises(OptimizerError, match=r"expected merged/config\.json"):
        Policy.load(tmp_path / "policy")


def test_an_untrained_writer_is_not_saved(tmp_path):
    Policy(model="some/model").save(tmp_path / "policy")

    assert not (tmp_path / "policy").exists()


def left(folder: Path, *, latest: str | None, folders: tuple[str, ...]) -> Path:
    """What a killed trainer left."""
    for name in folders:
        (folder / name).mkdir(parents=True)
    if latest is not None:
        (folder / "latest").write_text(latest)
    return folder


@pytest.mark.parametrize(
    ("latest", "folders", "tag", "kept"),
    [
        ("global_step2", ("global_step1", "global_step2"), "global_step2", {"global_step1", "global_step2"}),
        ("global_step2", ("global_step2", "global_step3"), "global_step2", {"global_step2"}),
        ("carried", ("carried", "global_step1"), "carried", {"carried"}),
        (None, ("global_step1",), None, set()),
        ("", ("global_step9", "global_step10"), "global_step10", {"global_step9", "global_step10"}),
        ("", (), None, set()),
        ("global_step2", ("global_step3",), None, set()),
    ],
    ids=[
        "whole",
        "half written",
        "half written after the turn",
        "the first half written",
        "name lost",
        "nothing",
        "gone",
    ],
)
def test_what_a_trainer_killed_at_any_moment_left_becomes_whole_checkpoints(
    tmp_path, latest, folders, tag, kept
):
    checkpoints = left(tmp_path, latest=latest, folders=folders)

    settle(checkpoints)

    assert newest_tag(checkpoints) == tag
    assert {path.name for path in checkpoints.iterdir() if path.is_dir()} == kept


def test_a_phase_without_any_checkpoint_needs_no_order(tmp_path):
    settle(tmp_path / "nothing")

    assert newest_tag(tmp_path / "nothing") is None
