"""The tutorials are run as they are printed, with a mock server in the place of each paid model."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.mock_bfcl import player, reply, serving
from support.mock_openai import Body, MockOpenAI

from wer import plugins

TUTORIALS = Path(__file__).parent.parent / "docs" / "tutorials"
_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_PAID = re.compile(r"openai/gpt-[\w.-]+")

LATE = "After 30 days, refund to credit."
SKILL = "<think>What differs?</think>\n<skill>\nname: returns\ndescription: Refund.\n## Workflow\n1. {}\n</skill>"


def follow(page: str, folder: Path, url: str) -> str:
    """Do what a page says, in the order in which it says it, and give what was printed."""
    environ = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "OPENAI_BASE_URL": url,
        "OPENAI_API_KEY": "none",
    }
    said = ""
    for language, title, text in _BLOCK.findall((TUTORIALS / page).read_text("utf-8")):
        text = _PAID.sub(f"openai/mock@{url}", text)
        if title:
            (folder / title).parent.mkdir(parents=True, exist_ok=True)
            (folder / title).write_text(text, "utf-8")
        else:
            words = {"sh": ["bash", "-euo", "pipefail", "-c"], "python": [sys.executable, "-c"]}[language]
            done = subprocess.run([*words, text], cwd=folder, env=environ, capture_output=True, text=True)
            said += f"\n$ {text}{done.stdout}{done.stderr}"
            assert done.returncode == 0, said
    return said


def shop(body: Body):
    """The writer, who learns from a failure; and the shop's agent, who refunds to the card if nothing says otherwise."""
    messages = body["messages"]
    system = messages[0]["content"]
    if "<skill>" in system:
        learnt = any(word in messages[-1]["content"] for word in ("# Failure", LATE))
        return reply({"role": "assistant", "content": SKILL.format(LATE if learnt else "Refund it.")}, "stop")
    seen = [json.loads(each["content"]) for each in messages if each["role"] == "tool" and "{" in each["content"]]
    if messages[-1]["content"] == "refunded":
        return reply({"role": "assistant", "content": "It is refunded."}, "stop")
    if not seen:
        return _calls("look", {})
    able = LATE in system or body["seed"] % 3 == 0
    to = "credit" if able and seen[0]["days"] > 30 else "card"
    return _calls("refund", {"euro": seen[0]["euro"], "to": to})


def _calls(name, arguments):
    call = {"id": "c", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return reply({"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls")


@pytest.mark.slow
def test_the_agent_engineer_ends_with_a_better_skill_and_a_gate_that_says_so(tmp_path):
    with serving(MockOpenAI(default=shop)) as mock:
        said = follow("agent-engineer.md", tmp_path, mock.url)

    assert "18 ok" in said
    assert LATE in (tmp_path / "skills" / "shop-returns" / "SKILL.md").read_text("utf-8")


@pytest.mark.slow
def test_the_researcher_ends_with_methods_side_by_side_and_verdicts_that_hold(tmp_path):
    tasks = plugins.load().environments.make("bfcl", {"max_turns": 1})
    with serving(MockOpenAI(default=player(tasks))) as mock:
        said = follow("researcher.md", tmp_path, mock.url)

    assert " 0 verdicts differ" in said
    assert "A/A" in said
