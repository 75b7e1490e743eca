"""The optimizer over a stand-in for OpenRLHF: phases, resume, and the clear end of every fault."""

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from support.openrlhf_cpu import make_policy
from support.stand_in import STAND_IN, PaidByLetters, optimizer, phase, unchecked
from support.tiny_writer import setup, states

from wer.errors import (
    BudgetExhausted,
    ConfigError,
    OptimizerError,
    PromptTooLong,
    SandboxError,
    StoreError,
    WerError,
)
from wer.measures import MEASURES
from wer.records import Usage
from wer_openrlhf import preflight, processes
from wer_openrlhf.checkpoints import newest_tag
from wer_openrlhf.launching import devices


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_policy(tmp_path_factory.mktemp("writer"))


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(STAND_IN))
    monkeypatch.setattr(preflight, "check", unchecked)


def log(folder: Path, number: int = 0) -> str:
    return (folder / "logs" / f"openrlhf-phase-{number}.log").read_text("utf-8")


async def test_a_phase_gives_every_state_its_candidates_and_leaves_an_ordinary_model_folder(writer, tmp_path):
    evaluate = PaidByLetters()
    trained = optimizer(writer)

    outcome = await trained.run_phase(states(4), evaluate, phase(tmp_path))
    trained.save(phase(tmp_path) / "policy")

    groups = [(found.state.id, found.candidate.index) for found in outcome.experiences]
    assert sorted(groups) == sorted((state.id, index) for state in states(4) for index in range(4))
    assert (phase(tmp_path) / "policy" / "merged" / "config.json").is_file()
    assert newest_tag(phase(tmp_path) / "policy" / "checkpoint") == "global_step2"
    assert {path.name for path in (phase(tmp_path) / "trainer" / "_actor").iterdir() if path.is_dir()} == {
        "global_step2"
    }


async def test_each_step_is_recorded_when_the_trainer_reports_it(writer, tmp_path):
    steps: dict[int, Mapping[str, float]] = {}
    trained = optimizer(writer, record=steps.__setitem__)

    outcome = await trained.run_phase(states(4), PaidByLetters(), phase(tmp_path))

    assert list(steps) == [0, 1]
    assert {row["loss"] for row in steps.values()} == {0.25}
    assert {row["states"] for row in steps.values()} == {2.0}
    mean = sum(found.reward.total for found in outcome.experiences) / len(outcome.experiences)
    assert sum(row["reward"] for row in steps.values()) / 2 == pytest.approx(mean)


async def test_a_step_whose_line_was_lost_is_recorded_by_what_its_candidates_earned(
    writer, tmp_path, monkeypatch
):
    monkeypatch.setenv("STAND_IN", "silent")
    steps: dict[int, Mapping[str, float]] = {}

    await optimizer(writer, record=steps.__setitem__).run_phase(states(4), PaidByLetters(), phase(tmp_path))

    assert list(steps) == [0, 1]
    assert all(row["states"] == 2.0 and "loss" not in row for row in steps.values())


async def test_states_that_do_not_fill_a_batch_are_written_for_twice(writer, tmp_path):
    outcome = await optimizer(writer).run_phase(states(3), PaidByLetters(), phase(tmp_path))

    counts = {state.id: 0 for state in states(3)}
    for found in outcome.experiences:
        counts[found.state.id] += 1
    assert sorted(counts.values()) == [4, 4, 8]


async def test_a_phase_that_was_trained_already_is_not_trained_again(writer, tmp_path):
    evaluate = PaidByLetters()
    first = await optimizer(writer).run_phase(states(2), evaluate, phase(tmp_path))

    again = await optimizer(writer, options={"python": "/no/such/python"}).run_phase(
        states(2), evaluate, phase(tmp_path)
    )

    assert again.experiences == first.experiences


async def test_an_evaluations_own_error_ends_the_phase_and_the_trainer(writer, tmp_path):
    fault = SandboxError("the sandbox died", cause="dead")

    with pytest.raises(SandboxError) as raised:
        await optimizer(writer).run_phase(states(4), PaidByLetters(fault), phase(tmp_path))

    assert raised.value is fault
    assert processes.marked(str(phase(tmp_path))) == []


async def test_a_trainer_that_dies_is_an_error_with_its_last_words_and_without_the_token(
    writer, tmp_path, monkeypatch
):
    monkeypatch.setenv("STAND_IN", "dies half-way")

    with pytest.raises(OptimizerError, match=r"exit status 3") as raised:
        await optimizer(writer).run_phase(states(4), PaidByLetters(), phase(tmp_path))

    assert '"token": "[secret]"' in log(tmp_path)
    assert '"token": "[secret]"' in str(raised.value)
    assert not (phase(tmp_path) / "agent" / "connection.json").exists()


async def test_a_phase_goes_on_from_its_checkpoint_and_writes_nothing_twice(writer, tmp_path, monkeypatch):
    evaluate = PaidByLetters()
    monkeypatch.setenv("STAND_IN", "dies half-way")
    with pytest.raises(OptimizerError):
        await optimizer(writer).run_phase(states(4), evaluate, phase(tmp_path))
    before = dict(evaluate.written)

    monkeypatch.setenv("STAND_IN", "")
    steps: dict[int, Mapping[str, float]] = {}
    outcome = await optimizer(writer, record=steps.__setitem__).run_phase(
        states(4), evaluate, phase(tmp_path)
    )

    assert len(before) == outcome.step_size == 8
    assert len(evaluate.written) == len(outcome.experiences) == 16
    assert before.items() <= evaluate.written.items()
    assert list(steps) == [1]


async def test_candidates_written_after_the_checkpoint_are_learnt_from_as_they_are(writer, tmp_path):
    evaluate = PaidByLetters(hold=asyncio.Event())  # six are rewarded, the others wait for ever
    task = asyncio.create_task(optimizer(writer).run_phase(states(2), evaluate, phase(tmp_path)))
    await evaluate.eight.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    before = dict(evaluate.written)

    evaluate.hold = None
    outcome = await optimizer(writer).run_phase(states(2), evaluate, phase(tmp_path))

    assert {
        (found.state.id, found.candidate.index): found.candidate for found in outcome.experiences
    } == before


async def test_cancelling_ends_every_process_of_the_launch(writer, tmp_path, monkeypatch):
    monkeypatch.setenv("STAND_IN", "hangs after 1")
    evaluate = PaidByLetters()
    task = asyncio.create_task(optimizer(writer).run_phase(states(4), evaluate, phase(tmp_path)))
    await evaluate.eight.wait()
    running = processes.marked(str(phase(tmp_path)))

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert running
    assert processes.marked(str(phase(tmp_path))) == []


async def test_what_a_killed_driver_left_behind_is_ended_before_the_next_launch(writer, tmp_path):
    left = await asyncio.create_subprocess_exec(
        "sleep",
        "3600",
        env={**os.environ, processes.MARK: str(phase(tmp_path).resolve())},
        start_new_session=True,
    )

    await optimizer(writer).run_phase(states(2), PaidByLetters(), phase(tmp_path))

    assert await left.wait() == -signal.SIGTERM


async def test_a_trainer_that_asks_for_nothing_in_time_is_ended_and_the_silent_actors_are_named(
    writer, tmp_path, monkeypatch
):
    monkeypatch.setenv("STAND_IN", "never starts")

    with pytest.raises(OptimizerError, match=r"no word from: PolicyModelActor, RolloutRayActor") as raised:
        await optimizer(writer, options={"start_timeout_s": 3.0}).run_phase(
            states(2), PaidByLetters(), phase(tmp_path)
        )

    assert "waiting for a GPU" in str(raised.value)
    assert processes.marked(str(phase(tmp_path))) == []


async def test_a_trainer_that_falls_silent_is_ended(writer, tmp_path, monkeypatch):
    monkeypatch.setenv("STAND_IN", "hangs after 1")

    with pytest.raises(OptimizerError, match="no sign of life"):
        await optimizer(writer, options={"stall_timeout_s": 1.0}).run_phase(
            states(4), PaidByLetters(), phase(tmp_path)
        )


async def test_every_documented_figure_of_a_step_is_recorded(writer, tmp_path):
    steps: dict[int, Mapping[str, float]] = {}

    await optimizer(writer, record=steps.__setitem__).run_phase(states(2), PaidByLetters(), phase(tmp_path))

    of_the_loop, of_others = {"rollouts", "rollouts_per_s"}, {"kl_reference", "improvement"}
    assert steps[0].keys() == MEASURES.keys() - of_the_loop - of_others
    assert (steps[0]["truncated"], steps[0]["sync_s"], steps[0]["entropy"]) == (1.0, 0.25, 1.5)


async def test_a_sample_that_reads_like_the_trainers_own_line_is_not_believed(writer, tmp_path, monkeypatch):
    monkeypatch.setenv("STAND_IN", "quotes")
    steps: dict[int, Mapping[str, float]] = {}

    await optimizer(writer, record=steps.__setitem__).run_phase(states(4), PaidByLetters(), phase(tmp_path))

    assert "'policy_loss': nan" in log(tmp_path)
    assert [row["loss"] for row in steps.values()] == [0.25, 0.25]


async def test_a_trainer_that_ends_well_without_a_model_is_an_error_and_trains_on_at_the_next_try(
    writer, tmp_path, monkeypatch
):
    evaluate = PaidByLetters()
    monkeypatch.setenv("STAND_IN", "no model")
    with pytest.raises(OptimizerError, match="ended without writing a model"):
        await optimizer(writer).run_phase(states(2), evaluate, phase(tmp_path))

    monkeypatch.setenv("STAND_IN", "")
    await optimizer(writer).run_phase(states(2), evaluate, phase(tmp_path))

    assert len(evaluate.written) == len(evaluate.evaluated) - 8 == 8
    assert (phase(tmp_path) / "export" / "config.json").is_file()


async def test_a_trainer_that_is_killed_in_its_export_leaves_no_folder_that_looks_whole(
    writer, tmp_path, monkeypatch
):
    evaluate = PaidByLetters()
    monkeypatch.setenv("STAND_IN", "hangs in its export")
    with pytest.raises(OptimizerError, match="no sign of life"):
        await optimizer(writer, options={"stall_timeout_s": 1.0}).run_phase(
            states(2), evaluate, phase(tmp_path)
        )
    half = list(tmp_path.rglob("config.json"))

    monkeypatch.setenv("STAND_IN", "")
    await optimizer(writer).run_phase(states(2), evaluate, phase(tmp_path))

    assert {file.parent.name for file in half} == {".export"}
    assert (phase(tmp_path) / "export" / "model.safetensors").is_file()
    assert not (phase(tmp_path) / ".export").exists()


async def test_a_store_that_takes_no_figures_ends_the_launch_with_its_error(writer, tmp_path):
    def full(step: int, metrics: Mapping[str, float]) -> None:
        raise StoreError("the disk is full")

    with pytest.raises(StoreError, match="the disk is full"):
        await optimizer(writer, record=full).run_phase(states(4), PaidByLetters(), phase(tmp_path))

    assert processes.marked(str(phase(tmp_path))) == []


async def test_a_log_that_cannot_be_written_ends_the_launch_before_it_begins(writer, tmp_path):
    (tmp_path / "logs" / "openrlhf-phase-0.log").mkdir(parents=True)

    with pytest.raises(OSError, match=r"openrlhf-phase-0\.log"):
        await optimizer(writer).run_phase(states(2), PaidByLetters(), phase(tmp_path))


async def test_a_cap_that_is_reached_in_a_phase_costs_nothing_twice_once_it_is_raised(writer, tmp_path):
    evaluate, charged = PaidByLetters(), list[Usage]()

    def check() -> None:
        if len(charged) >= 8:
            raise BudgetExhausted("the cap is reached")

    with pytest.raises(BudgetExhausted):
        await optimizer(writer, check=check, charge=charged.append).run_phase(
            states(4), evaluate, phase(tmp_path)
        )
    before = dict(evaluate.written)
    outcome = await optimizer(writer, charge=charged.append).run_phase(states(4), evaluate, phase(tmp_path))

    assert len(before) == 8 and before.items() <= evaluate.written.items()
    assert len(outcome.experiences) == len(evaluate.written) == len(charged) == 16
    assert len(set(evaluate.evaluated)) == 16


KILLED = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from support.stand_in import PaidByLetters, optimizer, phase, unchecked
from support.tiny_writer import states
from wer_openrlhf import preflight

preflight.check = unchecked
trained = optimizer(Path(sys.argv[2]))
asyncio.run(trained.run_phase(states(4), PaidByLetters(), phase(Path(sys.argv[3]))))
"""


@pytest.mark.parametrize("moment", ["never starts", "hangs after 1"])
def test_a_killed_driver_leaves_no_trainer(writer, tmp_path, monkeypatch, moment):
    monkeypatch.setenv("STAND_IN", moment)
    tests = str(Path(__file__).parents[2])
    mark = str(phase(tmp_path).resolve())
    driver = subprocess.Popen([sys.executable, "-c", KILLED, tests, str(writer), str(tmp_path)])
    assert comes(lambda: bool(processes.marked(mark)))

    driver.kill()
    driver.wait()

    assert comes(lambda: not processes.marked(mark))


def test_a_killed_drivers_way_back_is_forgotten_when_the_phase_is_next_begun(writer, tmp_path, monkeypatch):
    async def refused(*_: object, **__: object) -> None:
        raise ConfigError("no GPU")

    monkeypatch.setenv("STAND_IN", "hangs after 1")
    tests = str(Path(__file__).parents[2])
    driver = subprocess.Popen([sys.executable, "-c", KILLED, tests, str(writer), str(tmp_path)])
    file = phase(tmp_path) / "agent" / "connection.json"
    assert comes(file.exists)
    driver.kill()
    driver.wait()
    mode = stat.S_IMODE(file.stat().st_mode)
    monkeypatch.setattr(preflight, "check", refused)

    with pytest.raises(ConfigError, match="no GPU"):
        asyncio.run(optimizer(writer).run_phase(states(4), PaidByLetters(), phase(tmp_path)))

    assert mode == 0o600
    assert not file.exists()


def comes(true: Callable[[], bool]) -> bool:
    """Wait until it is, for a minute at most."""
    for _ in range(1200):
        if true():
            return True
        time.sleep(0.05)
    return False


async def test_a_dead_actor_is_named(writer, tmp_path, monkeypatch):
    monkeypatch.setenv("STAND_IN", "dead actor")

    with pytest.raises(OptimizerError, match="dead Ray actors: PolicyModelActor"):
        await optimizer(writer).run_phase(states(2), PaidByLetters(), phase(tmp_path))


async def test_a_loss_that_is_not_a_number_stops_the_training(writer, tmp_path, monkeypatch):
    monkeypatch.setenv("STAND_IN", "no number")

    with pytest.raises(OptimizerError, match="loss that are not finite"):
        await optimizer(writer).run_phase(states(4), PaidByLetters(), phase(tmp_path))


async def test_a_completion_without_a_token_stops_the_training(writer, tmp_path, monkeypatch):
    monkeypatch.setenv("STAND_IN", "mute")

    with pytest.raises(OptimizerError, match="without a single token"):
        await optimizer(writer).run_phase(states(2), PaidByLetters(), phase(tmp_path))


async def test_the_agents_way_back_is_readable_by_this_user_alone(writer, tmp_path, monkeypatch):
    monkeypatch.setenv("STAND_IN", "hangs after 1")
    evaluate = PaidByLetters()
    task = asyncio.create_task(optimizer(writer).run_phase(states(4), evaluate, phase(tmp_path)))
    await evaluate.eight.wait()

    file = phase(tmp_path) / "agent" / "connection.json"
    mode, token = stat.S_IMODE(file.stat().st_mode), json.loads(file.read_text("utf-8"))["token"]
    seen = [
        (Path("/proc") / str(pid) / part).read_bytes()
        for pid in processes.marked(str(phase(tmp_path)))
        for part in ("cmdline", "environ")
    ]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert mode == 0o600
    assert seen and not any(token.encode() in text for text in seen)


async def test_keys_of_other_services_are_not_handed_to_the_trainer(writer, tmp_path, monkeypatch):
    monkeypatch.setenv("STAND_IN", "hangs after 1")
    for name in ("SOME_API_KEY", "AWS_SECRET_ACCESS_KEY", "db_password"):
        monkeypatch.setenv(name, "sk-secret")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "of-the-cluster")
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    evaluate = PaidByLetters()
    task = asyncio.create_task(optimizer(writer).run_phase(states(4), evaluate, phase(tmp_path)))
    await evaluate.eight.wait()

    (pid,) = processes.marked(str(phase(tmp_path)))
    environment = (Path("/proc") / str(pid) / "environ").read_bytes()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert b"sk-secret" not in environment
    assert b"RAY_AUTH_TOKEN=of-the-cluster" in environment
    assert b"RAY_ADDRESS" not in environment


async def test_the_writers_gpus_are_counted_as_nvidia_smi_does(writer):
    assert devices(setup(writer, gpus=(2, 3))) == {
        "CUDA_VISIBLE_DEVICES": "2,3",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }


async def test_a_python_that_does_not_exist_is_named(writer, tmp_path):
    with pytest.raises(OptimizerError, match=r"'/no/such/python'.*optimizer.openrlhf.python"):
        await optimizer(writer, options={"python": "/no/such/python"}).run_phase(
            states(2), PaidByLetters(), phase(tmp_path)
        )


async def test_a_seed_state_that_does_not_fit_is_refused_before_the_launch(writer, tmp_path):
    small = optimizer(writer, max_prompt_tokens=10)

    with pytest.raises(PromptTooLong):
        await small.run_phase(states(2), PaidByLetters(), phase(tmp_path))

    assert not phase(tmp_path).exists()


def test_a_group_of_one_is_refused(writer):
    with pytest.raises(ConfigError, match=r"training.k is 1"):
        optimizer(writer, k=1)


def test_gpus_of_this_machine_are_refused_for_a_writer_that_trains_in_a_cluster(writer):
    with pytest.raises(ConfigError, match=r"gpus\.writer names GPUs .*\(0, 1\).* --ray-address a:1"):
        optimizer(writer, gpus=(0, 1), ray_address="a:1")


def test_a_writer_whose_chat_template_fails_is_refused_before_anything_is_paid(tmp_path):
    folder = make_policy(tmp_path / "writer")
    (folder / "chat_template.jinja").write_text("{{ raise_exception('no system role') }}")

    with pytest.raises(ConfigError, match="no system role"):
        optimizer(folder)


def test_a_policy_that_is_not_there_cannot_be_loaded(writer, tmp_path):
    with pytest.raises(WerError, match=r"expected merged/config\.json"):
        optimizer(writer).load(tmp_path)
