"""OpenRLHF's own trainer on this machine's processors: it learns, and a killed run of it goes on."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from support.mock_bfcl import DRAFT, GOOD, player, serving
from support.mock_openai import MockOpenAI
from support.openrlhf_cpu import pretend_gpus, python, variables
from support.phrase_writer import make_phrase_writer
from support.tiny_writer import setup, states
from support.trained_writer import refined

from wer import plugins
from wer.records import Candidate, Experience, RefinementState, Reward
from wer.retention import retain
from wer.store import Store
from wer_openrlhf import processes
from wer_openrlhf.optimizer import OpenRlhf

pytestmark = [pytest.mark.openrlhf, pytest.mark.slow]

STEPS = {DRAFT: 6.0, GOOD: 2.0, "Wait.": 2.0}
ON_A_CPU = {
    "batch": 2,
    "colocate": False,
    "sync_backend": "gloo",
    "attention": "sdpa",
    "enforce_eager": True,
    "gradient_checkpointing": False,
    "warmup": 0.0,
    "log_entropy": True,
}


class PaidForTheGoodStep:
    """Runs nothing: a skill with the good step earns everything, any other nothing."""

    def __init__(self) -> None:
        self.written: dict[tuple[str, int], Candidate] = {}

    def recorded(self, state: RefinementState) -> Sequence[Candidate]:
        return [self.written[key] for key in sorted(self.written) if key[0] == state.id]

    async def __call__(
        self, proposals: Sequence[tuple[RefinementState, Candidate]], n: int | None = None
    ) -> Sequence[Experience]:
        ((state, candidate),) = proposals
        self.written[state.id, candidate.index] = candidate
        paid = float(candidate.skill is not None and GOOD in candidate.skill.body)
        reward = Reward(fmt=0.0, task=paid, len=0.0, total=paid / 3)
        return [Experience(state=state, candidate=candidate, rollouts=(), reward=reward)]


def test_the_policy_learns_which_step_pays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name, value in variables().items():
        monkeypatch.setenv(name, value)
    recorded: dict[int, Mapping[str, float]] = {}
    writer = make_phrase_writer(tmp_path / "writer", STEPS)

    with pretend_gpus(2) as ray:
        made = setup(
            writer,
            k=8,
            max_prompt_tokens=400,
            max_response_tokens=8,
            ray_address=ray.address,
            record=recorded.__setitem__,
        )
        options = {**ON_A_CPU, "python": python(), "learning_rate": 2e-3}
        trained = OpenRlhf(evolve(made, options=options))
        asyncio.run(trained.run_phase(states(48), PaidForTheGoodStep(), tmp_path / "checkpoints" / "phase-0"))

    earned = [recorded[step]["reward_task"] for step in sorted(recorded)]
    assert len(earned) == 24
    assert sum(earned[-6:]) / 6 > sum(earned[:6]) / 6 + 0.2
    assert all(row["entropy"] > 0 for row in recorded.values())


@pytest.fixture(scope="module")
def resumed(tmp_path_factory: pytest.TempPathFactory):
    """A run of two phases that was killed after its first checkpoint, and went on to its end."""
    folder = tmp_path_factory.mktemp("openrlhf")
    writer = make_phrase_writer(folder / "writer", STEPS)
    environment = plugins.load().environments.make("bfcl", {})
    with serving(MockOpenAI(default=player(environment))) as mock, pretend_gpus(2) as ray:
        words = [
            *("run", "--env=bfcl", "--backend=openrlhf", "--preset=cpu-tiny", f"--runs={folder / 'runs'}"),
            *(f"--writer={writer}", f"--executor=openai/mock@{mock.url}", f"--ray-address={ray.address}"),
            *settings(mock.url),
        ]
        first = wer(words, folder / "first.txt")
        checkpoint = wait_for(first, folder / "runs", "*/checkpoints/phase-0/trainer/_actor/latest")
        first.send_signal(signal.SIGKILL)
        first.wait()
        run = checkpoint.parents[4]
        left = at(run)
        assert wer(["run", f"--resume={run}"], folder / "second.txt").wait(1200) == 0, (
            folder / "second.txt"
        ).read_text()[-6000:]
    return run, left, writer


def settings(url: str) -> list[str]:
    options: dict[str, Any] = {"python": python(), "learning_rate": 5e-4, "minibatch": 0}
    return [
        *(f"--set=optimizer.openrlhf.{name}={json.dumps(value)}" for name, value in options.items()),
        f"--set=seed_writer=openai/mock@{url}",
        f"--set=merge_writer=openai/mock@{url}",
        "--set=executor_options.mode=native",
        "--set=training.k=4",
        "--set=training.max_response_tokens=8",
        "--set=evaluation.conditions=['none','refined']",
    ]


def wer(words: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "wer", *words],
            env={**os.environ, **variables()},
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def wait_for(process: subprocess.Popen[bytes], folder: Path, pattern: str) -> Path:
    for _ in range(12000):
        found = next(folder.glob(pattern), None)
        if found is not None:
            return found
        assert process.poll() is None, (folder.parent / "first.txt").read_text()[-6000:]
        time.sleep(0.1)
    raise AssertionError(f"no {pattern} in twenty minutes")


def at(run: Path) -> dict[tuple[str, int], str]:
    """The candidates of the first phase by their place."""
    return {
        (found.state.id, found.candidate.index): found.candidate.id
        for _, found in Store(run / "wer.sqlite").experiences("train/0")
    }


def test_what_was_rewarded_before_the_kill_is_kept_and_each_state_has_one_group(resumed):
    run, left, _ = resumed

    found = at(run)
    assert left and left.items() <= found.items()
    assert {index for _, index in found} == {0, 1, 2, 3}
    groups = {state for state, _ in found}
    assert len(found) == 4 * len(groups)


def test_the_states_retained_in_the_first_phase_are_the_prompts_of_the_second(resumed):
    run, _, _ = resumed
    store = Store(run / "wer.sqlite")

    kept = retain([found for _, found in store.experiences("train/0")])
    lines = (run / "checkpoints" / "phase-1" / "prompts.jsonl").read_text("utf-8").splitlines()
    asked = {json.loads(json.loads(line)["label"])["state"] for line in lines}
    parents = {store.state(state).parent for state in asked}
    assert parents and parents <= {found.candidate.id for found in kept}
    assert {found.state.id for _, found in store.experiences("train/1")} == asked


def test_every_step_has_its_row_although_the_run_was_killed_in_the_middle(resumed):
    run, _, _ = resumed

    rows = [(stage, step) for stage, step, _ in Store(run / "wer.sqlite").metrics()]
    for phase in (0, 1):
        lines = (run / "checkpoints" / f"phase-{phase}" / "prompts.jsonl").read_text("utf-8").splitlines()
        made = sorted(step for stage, step in rows if stage == f"train/{phase}")
        assert made == list(range(len(made))) and len(lines) % len(made) == 0


def test_weights_and_schedule_go_on_from_phase_to_phase(resumed):
    run, _, _ = resumed

    rows = {(stage, step): row for stage, step, row in Store(run / "wer.sqlite").metrics()}
    # A step whose word was lost with the killed driver has what its candidates tell, and no rate.
    rates = [row["learning_rate"] for _, row in sorted(rows.items()) if "learning_rate" in row]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] == 0.0
    assert (run / "checkpoints" / "final" / "merged" / "model.safetensors").is_file()


def test_the_trained_policy_is_an_ordinary_model_folder(resumed):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    run, _, writer = resumed
    folder = run / "checkpoints" / "final" / "merged"

    trained = AutoModelForCausalLM.from_pretrained(folder)
    untrained = AutoModelForCausalLM.from_pretrained(writer)
    assert not trained.lm_head.weight.equal(untrained.lm_head.weight)
    assert AutoTokenizer.from_pretrained(folder).chat_template


def test_the_trained_policy_refines_a_skill(resumed, tmp_path: Path):
    run, _, _ = resumed

    written = refined(run / "checkpoints" / "final" / "merged", tmp_path)

    assert any(step in body for body in written for step in STEPS)


def test_nothing_of_the_trainer_is_left(resumed):
    run, _, _ = resumed

    assert processes.marked(str((run / "checkpoints" / "phase-0").resolve())) == []
    assert processes.marked(str((run / "checkpoints" / "phase-1").resolve())) == []
