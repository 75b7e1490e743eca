"""The tutorials are run as they are printed, with a mock server in the place of each paid model."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from support.mock_bfcl import player, reply, serving
from support.mock_openai import Body, MockOpenAI

from wer import plugins

TUTORIALS = Path(__file__).parent.parent / "docs" / "tutorials"
_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_PAID = re.compile(r"openai/gpt-[\w.-]+")

LATE = "After 30 days, refund to credit."
SKILL = (
    "<think>What differs?</think>\n<skill>\nname: returns\ndescription: Refund.\n## Workflow\n1. {}\n</skill>"
)


def follow(page: str, folder: Path, url: str, *, commands: Path = Path(sys.executable).parent) -> str:
    """Do what a page says, in the order in which it says it, and give what was printed.

    Args:
        commands: Where its commands are.
    """
    environ = {
        **os.environ,
        "PATH": f"{commands}:{os.environ['PATH']}",
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
    """A writer that learns from a failure; and the shop's agent, which refunds to the card unless told."""
    messages = body["messages"]
    system = messages[0]["content"]
    if "<skill>" in system:
        learnt = any(word in messages[-1]["content"] for word in ("# Failure", LATE))
        return reply({"role": "assistant", "content": SKILL.format(LATE if learnt else "Refund it.")}, "stop")
    seen = [
        json.loads(each["content"]) for each in messages if each["role"] == "tool" and "{" in each["content"]
    ]
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

    assert "18 ok" in said and "15 ok, 3 not applicable" in said
    assert "a difference below about 47 points" in said
    assert "refined skill is better than seed skill" in said and "The new skill is better" in _gate(tmp_path)
    assert LATE in (tmp_path / "skills" / "shop-returns" / "SKILL.md").read_text("utf-8")


def _gate(folder: Path) -> str:
    (written,) = folder.glob("runs/*/gate.md")
    return written.read_text("utf-8")


@pytest.mark.slow
def test_the_researcher_ends_with_methods_side_by_side_and_verdicts_that_hold(tmp_path):
    tasks = plugins.load().environments.make("bfcl", {"max_turns": 1})
    with serving(MockOpenAI(default=player(tasks))) as mock:
        said = follow("researcher.md", tmp_path, mock.url)

    assert "a difference below about 54 points" in said
    assert " 0 verdicts differ" in said
    assert "A/A control: this skill" in said and "A/A control: seed skill" in said


@pytest.mark.slow
def test_the_domain_owner_ends_with_a_package_whose_check_has_been_audited(tmp_path):
    page = tmp_path / "page"
    page.mkdir()
    with serving(MockOpenAI(default=desk)) as mock:
        said = follow("domain-owner.md", page, mock.url, commands=_own_environment(tmp_path / "venv"))

    assert said.count("18 ok") == 3
    assert "2 of 4 accepted" in said and "0 of 4 accepted" in said
    assert "of 2 tasks 1 always, 0 mixed, 1 never" in said


def desk(body: Body):
    """A writer without ideas, and an agent that lends and asks nothing."""
    messages = body["messages"]
    if "<skill>" in messages[0]["content"]:
        return reply({"role": "assistant", "content": SKILL.format("Lend the book.")}, "stop")
    asked = re.search(r"(?P<book>Emma|Dune|Ulysses|Middlemarch)", messages[-1]["content"])
    if messages[-1]["role"] != "user" or asked is None:
        return reply({"role": "assistant", "content": "Here you are."}, "stop")
    member = re.search(r"Ada|Bo|Cy|Di", messages[-1]["content"])
    return _calls("lend", {"member": member[0], "book": asked["book"]})


def _own_environment(folder: Path) -> Path:
    """An environment that sees all of this one, and into which a page may install: its folder of commands."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    here = sysconfig.get_path("purelib")
    (site / "also.pth").write_text(f"import site; site.addsitedir({here!r})\n", "utf-8")
    for name in ("wer", "pip", "pytest"):
        command = folder / "bin" / name
        command.write_text(f'#!/bin/sh\nexec "{folder}/bin/python" -m {name} "$@"\n', "utf-8")
        command.chmod(0o755)
    return folder / "bin"
