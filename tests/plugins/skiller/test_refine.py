"""``wer refine SKILL.md --backend skiller`` on a real task, with a mock server in every role."""

from __future__ import annotations

import pytest
from attrs import evolve
from support import mock_bfcl
from support.mock_bfcl import acting, reply, serving
from support.mock_openai import MockOpenAI
from support.skiller_world import SEED, diagnosis, note

from wer import plugins
from wer.cli import main
from wer.skills import load_skill, save_skill
from wer.store import Store


def server(critic_says: str):
    environment = plugins.load().environments.make("bfcl", {"max_turns": 1})
    tasks = environment.tasks("file_system", "train")
    act = acting({task.turns[0]: environment.reference(task)[0] for task in tasks})
    initial = [note("Read twice.")]

    def answer(body):
        system = body["messages"][0]["content"]
        if system.startswith("You are the critic"):
            return reply({"role": "assistant", "content": critic_says}, "stop")
        if system.startswith("You are the actor"):
            text = initial.pop() if initial else note(mock_bfcl.GOOD)
            return reply({"role": "assistant", "content": text}, "stop")
        return act(body)

    return answer


@pytest.mark.slow
def test_a_skill_is_refined_by_critic_and_actor(tmp_path):
    body = SEED.body.replace("Read the request.", "Begin.")
    seed = save_skill(evolve(SEED, body=body), tmp_path / "seed")
    with serving(MockOpenAI(default=server(diagnosis(failure="tool misuse")))) as mock:
        words = [
            "refine",
            str(seed),
            "--env=bfcl",
            "--domains=file_system",
            "--backend=skiller",
            "--rounds=2",
        ]
        words += [f"--executor=openai/mock@{mock.url}", "--sandbox=process", f"--runs={tmp_path / 'runs'}"]
        words += [
            "--set=environment.bfcl.max_turns=1",
            "--set=training.train_limit=1",
            "--set=refinement.n=1",
        ]
        with pytest.raises(SystemExit) as ended:
            main(words)

    assert not ended.value.code
    [run] = (tmp_path / "runs").iterdir()
    refined = load_skill(run / "skills" / "refined" / "bfcl-file-system")
    assert refined.body == body.replace("- Be brief.", f"- Be brief.\n- {mock_bfcl.GOOD}\n- Read twice.")
    rounds = [
        [found.candidate.reasoning, found.reward.task]
        for number in range(2)
        for _, found in Store(run / "wer.sqlite").experiences(f"refine/refined/{number}")
    ]
    assert rounds == [["", 0.0], ["tool misuse, step 1: The agent stopped at once.", 1.0]]
