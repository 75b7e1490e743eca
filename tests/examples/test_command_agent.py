"""The example of an agent that is a program, measured through the command line as its users do."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from aiohttp import web
from support.mock_bfcl import reply, serving
from support.mock_openai import Body, MockOpenAI

from wer.cli import main
from wer.store import Store

EXAMPLES = Path(__file__).parents[2] / "examples"
SKILL = "---\nname: refunds\ndescription: Give money back.\n---\n\n## Workflow\n1. Look at the order first.\n"


def model(body: Body) -> web.StreamResponse:
    """Read the skill where there is one, look at an order where the skill says so, and tell that it is done."""
    names = [tool["function"]["name"] for tool in body["tools"]]
    heard = [message["content"] or "" for message in body["messages"]]
    made = [call["function"]["name"] for each in body["messages"] for call in each.get("tool_calls", ())]
    if "read_skill" in names and "read_skill" not in made:
        return _calls("read_skill", {})
    if "get_order" not in made and any("Look at the order first" in text for text in heard):
        return _calls("get_order", {"number": "1001"})
    return reply({"role": "assistant", "content": "Done."}, "stop")


def _calls(name, arguments):
    call = {
        "id": f"c-{name}",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }
    return reply({"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls")


@pytest.mark.slow
def test_the_example_is_measured_and_the_report_says_how_often_it_read_its_skill(tmp_path, monkeypatch):
    monkeypatch.chdir(EXAMPLES.parent)
    monkeypatch.setenv("A_KEY", "sk-of-the-user")
    (tmp_path / "SKILL.md").write_text(SKILL)
    with serving(MockOpenAI(default=model)) as mock, pytest.raises(SystemExit) as ended:
        main(
            [
                "eval",
                str(tmp_path / "SKILL.md"),
                "--env=examples/shop/shop.py:shop",
                f"--executor=command: {sys.executable} examples/command-agent/agent.py gpt-4o-mini",
                f"--set=executor_options.upstream='{mock.url}'",
                "--set=executor_options.upstream_key='A_KEY'",
                "--set=evaluation.test_limit=2",
                "--sandbox=process",
                "--trials=1",
                f"--runs={tmp_path / 'runs'}",
            ]
        )

    assert not ended.value.code
    (folder,) = (tmp_path / "runs").iterdir()
    report = (folder / "report.md").read_text("utf-8")
    assert "(100 %)" in report
    found = [rollout for rollout, *_ in Store(folder / "wer.sqlite").rollouts()]
    with_skill = [each for each in found if each.trajectory.skill_loaded]
    called = [{call.name for step in each.trajectory.steps for call in step.calls} for each in with_skill]
    assert called == [{"get_order"}] * 4
    assert all(each.trajectory.usage.calls >= 3 for each in with_skill)
    stored = b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())
    assert b"sk-of-the-user" not in stored
