"""A domain without a class: tasks and a check, for agents that bring their tools."""

from __future__ import annotations

import json
import sys

import pytest

import wer
from wer import plugins
from wer.contracts import Settling
from wer.domain.settled import SettledSession
from wer.errors import DomainError, SandboxError
from wer.records import NO_SANDBOX, Outcome, Task, ToolCall, Turn, TurnEvidence
from wer.sandboxing.nowhere import NoPool

LONE = Task(
    id="desk/a", env="desk", domain="desk", split="train", turns=("One?", "Two?"), setup={"state": {"n": 1}}
)


@pytest.fixture
def desk(tmp_path):
    """Name a domain that is written in a file of its own."""
    text = (
        "import wer\n\ndef check(task, end):\n    return end.state == task.expect\n\n"
        "desk = wer.Domain(tasks='tasks.jsonl', check=check)\n"
    )
    (tmp_path / "desk.py").write_text(text)
    row = {"id": "a", "query": "Go.", "expect": 1, "split": "train", "reference": [{"name": "x"}]}
    (tmp_path / "tasks.jsonl").write_text(json.dumps(row))
    return f"{tmp_path / 'desk.py'}:desk"


def test_a_domain_of_tasks_and_a_check_has_no_tools_and_no_sandbox(desk):
    env = plugins.load().environments.make(desk, {})

    [task] = env.tasks("desk", "train")
    assert task.tools == () and env.sandbox("desk") == NO_SANDBOX
    assert env.reference(task) is None  # nobody here could play it
    assert set(env.identity) == {"tasks", "check"}


def test_its_tasks_lie_beside_its_check_or_in_a_notebook_where_one_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tasks.jsonl").write_text('{"id": "a", "query": "Go.", "split": "train"}')
    check = type(lambda: 1)((lambda task, end: True).__code__, {"__name__": "nowhere"}, "check")
    assert "nowhere" not in sys.modules

    env = wer.Domain(tasks="tasks.jsonl", check=check).named("note")

    assert [task.id for task in env.tasks("note", "train")] == ["note/a"]


def test_something_that_is_no_class_is_still_refused():
    with pytest.raises(DomainError, match="is made of a class"):
        wer.Domain(object(), tasks="tasks.jsonl", check=print)


async def test_what_an_agent_left_behind_is_the_evidence():
    session = SettledSession(LONE)
    assert isinstance(session, Settling)
    await session.begin()

    end = await session.settle(Outcome([{"role": "assistant", "content": "Bye."}], {"n": 2}))

    evidence = await session.evidence()
    assert evidence.turns == (TurnEvidence(state={"n": 2}, said="Bye."),) and evidence.end == end


async def test_an_agent_that_only_speaks_leaves_the_state_as_the_task_has_it():
    session = SettledSession(LONE)
    await session.begin()
    answer = await session.call((ToolCall(name="look", arguments={}),))
    assert isinstance(await session.say("One."), Turn)
    await session.say("Two.")

    evidence = await session.evidence()

    assert answer.observations[0].text == "Error: there is no tool 'look' here"
    assert [(turn.state, turn.said) for turn in evidence.turns] == [({"n": 1}, "One."), ({"n": 1}, "Two.")]


async def test_nothing_can_be_asked_of_a_sandbox_that_is_not_there():
    episode = await NoPool("the agent's own").lease()

    with pytest.raises(SandboxError, match="an environment without a sandbox"):
        await episode.request("reset", {})
