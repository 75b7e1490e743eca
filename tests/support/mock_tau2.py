"""A mock server that plays every role of a tau2 run: agent, simulated user, and writer of skills.

The user names its task to the agent and does what the agent asks of it; the agent follows the
task's reference when its skill lets it, as in `support.mock_bfcl`, whose player answers
everything that is not tau2's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from aiohttp import web
from support import mock_bfcl
from support.mock_openai import Body

from wer.contracts import Environment
from wer_tau2 import benchmark


def player(bfcl: Environment) -> Any:
    """The server's answer to any request of a run over tau2, or over both environments."""
    others = mock_bfcl.player(bfcl)
    entries = {
        f"{domain}/{name}": entry
        for domain, tasks in benchmark.load().entries.items()
        for name, entry in tasks.items()
    }

    def act(body: Body) -> web.StreamResponse:
        system = next((m["content"] for m in body["messages"] if m["role"] == "system"), "")
        if "<scenario>" in system:
            return _user(body, system, entries)
        if "<policy>" in system and "<skill>" not in system:
            return _agent(body, system, entries)
        return others(body)

    return act


def _user(body: Body, system: str, entries: Mapping[str, Any]) -> web.StreamResponse:
    last = body["messages"][-1]
    name = next(name for name, entry in entries.items() if _tells(system, entry))
    step = re.fullmatch(r"Please do step (\d+)\.", str(last["content"]))
    if step:
        return _calls(entries[name]["evaluation_criteria"]["actions"][int(step[1])])
    if last["role"] == "tool":
        return _says("I did it.")
    return _says("###STOP###" if str(last["content"]).startswith("Done") else f"My task is {name}.")


def _tells(system: str, entry: Mapping[str, Any]) -> bool:
    told = {line.strip() for line in system.splitlines()}
    parts = entry["user_scenario"]["instructions"]
    texts = [parts[key] for key in ("reason_for_call", "known_info", "task_instructions") if parts[key]]
    return all(line.strip() in told for text in texts for line in text.splitlines())


def _agent(body: Body, system: str, entries: Mapping[str, Any]) -> web.StreamResponse:
    able = mock_bfcl.GOOD in system or (mock_bfcl.DRAFT in system and body["seed"] % 2 == 0)
    messages = [message for message in body["messages"] if message["role"] != "system"]
    name = re.search(r"My task is (.*)\.", messages[0]["content"])
    assert name is not None
    criteria = entries[name[1]]["evaluation_criteria"]
    done = sum(message["role"] == "assistant" for message in messages)
    if not able or done >= len(criteria["actions"]):
        return _says(f"Done. {' '.join(criteria.get('communicate_info') or ()) if able else ''}")
    action = criteria["actions"][done]
    return _says(f"Please do step {done}.") if action.get("requestor") == "user" else _calls(action)


def _says(text: str) -> web.StreamResponse:
    return mock_bfcl.reply({"role": "assistant", "content": text}, "stop")


def _calls(action: Mapping[str, Any]) -> web.StreamResponse:
    function = {"name": action["name"], "arguments": json.dumps(action["arguments"])}
    call = {"id": "c1", "type": "function", "function": function}
    return mock_bfcl.reply({"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls")
