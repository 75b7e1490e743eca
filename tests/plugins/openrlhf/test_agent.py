"""What WER pays for a candidate is what OpenRLHF learns from: the agent inside its own classes."""

import asyncio
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.openrlhf_cpu import make_policy, python, variables
from support.tiny_writer import PaidByLetters, states

import wer_openrlhf
from wer_openrlhf import dataset
from wer_openrlhf.service import Service, rounded

pytestmark = [pytest.mark.openrlhf, pytest.mark.slow]

SCRIPT = Path(__file__).parents[2] / "support/openrlhf_cpu/scripts/agent_turn.py"
AGENT = Path(wer_openrlhf.__file__).with_name("agent.py")
TEXT = "abcxyz " * 10


async def turn(folder: Path, service: Service, policy: Path) -> dict[str, Any]:
    """Have the agent answer every prompt twice, beside the service that runs here."""
    shutil.copyfile(AGENT, folder / "agent.py")
    connection = {"url": service.url, "token": service.token, "top_k": 50}
    (folder / "connection.json").write_text(json.dumps(connection))
    process = await asyncio.create_subprocess_exec(
        *(python(), str(SCRIPT), str(folder), str(policy)),
        env={**os.environ, **variables()},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    said, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()[-4000:]
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
    return found


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return make_policy(tmp_path / "policy")


async def test_the_reward_and_its_terms_arrive_with_exactly_the_tokens_that_were_written(
    tmp_path: Path, policy: Path
):
    chosen = states(2)
    dataset.write(tmp_path / "prompts.jsonl", chosen, lambda state: f"Improve {state.skill.body}:", k=2)
    (tmp_path / "text.txt").write_text(TEXT)
    evaluate = PaidByLetters()

    async with Service(states={state.id: state for state in chosen}, evaluate=evaluate, k=2) as service:
        answer = await turn(tmp_path, service, policy)

    paid = rounded(3 / 7 / 3)  # three early letters in seven characters, and R is a third of R_task
    for experience in answer["found"]:
        assert experience["written"] == TEXT
        assert experience["reward"] == experience["score"] == paid
        assert experience["logs"]["reward_task"] == pytest.approx(3 / 7)
        assert not experience["truncated"]
    assert answer["top_k"] == [50] * 4
    assert sorted(slot.experience.candidate.index for slot in service.slots) == [0, 0, 1, 1]
    assert {slot.experience.candidate.text for slot in service.slots} == {TEXT}


async def test_an_answer_that_was_cut_at_the_limit_is_judged_as_it_is_and_marked(
    tmp_path: Path, policy: Path
):
    (state,) = states(1)
    dataset.write(tmp_path / "prompts.jsonl", [state], lambda state: "Improve:", k=2)
    (tmp_path / "text.txt").write_text(TEXT * 10)

    async with Service(states={state.id: state}, evaluate=PaidByLetters(), k=2) as service:
        answer = await turn(tmp_path, service, policy)

    assert [experience["truncated"] for experience in answer["found"]] == [True, True]
    assert {len(slot.experience.candidate.token_ids) for slot in service.slots} == {200}
    assert {slot.experience.candidate.text for slot in service.slots} == {(TEXT * 10)[:200]}
