"""``wer refine SKILL.md --backend trace2skill`` consolidates at once, whatever ``--rounds`` says, by a mock server."""

from __future__ import annotations

import pytest
from support import mock_bfcl
from support.mock_bfcl import acting, reply, serving
from support.mock_openai import MockOpenAI
from support.skiller_world import SEED
from support.trace2skill_world import diagnosed, ids, note, patch

from wer import plugins
from wer.cli import main
from wer.skills import load_skill, save_skill

NAME = "bfcl-file-system"


def server():
    environment = plugins.load().environments.make("bfcl", {"max_turns": 1})
    tasks = environment.tasks("file_system", "train")
    act = acting({task.turns[0]: environment.reference(task)[0] for task in tasks})

    def answer(body):
        system, request = body["messages"][0]["content"], body["messages"][-1]["content"]
        if system.startswith("You are an error analyst"):
            text = diagnosed(note(mock_bfcl.GOOD), skill=NAME, step=0, fix=1)
        elif system.startswith("You merge patches"):
            text = patch(*[note(t, **{"from": [e]}) for e, t in ids(request).items()], skill=NAME, dropped=[])
        else:
            return act(body)
        return reply({"role": "assistant", "content": text}, "stop")

    return answer


@pytest.mark.slow
def test_a_skill_is_refined_from_all_of_its_trajectories_at_once(tmp_path):
    seed = save_skill(SEED, tmp_path / "seed")
    with serving(MockOpenAI(default=server())) as mock:
        words = ["refine", str(seed), "--env=bfcl", "--domains=file_system", "--backend=trace2skill"]
        words += [f"--executor=openai/mock@{mock.url}", "--sandbox=process", f"--runs={tmp_path / 'runs'}"]
        words += ["--rounds=3", "--set=environment.bfcl.max_turns=1", "--set=training.train_limit=2"]
        with pytest.raises(SystemExit) as ended:
            main(words)

    assert not ended.value.code
    [run] = (tmp_path / "runs").iterdir()
    refined = load_skill(run / "skills" / "refined" / NAME)
    assert refined.body == f"{SEED.body}- {mock_bfcl.GOOD}\n"
