"""The example agents: a plain loop, LangGraph and the OpenAI Agents SDK, against a mock server."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import pytest
from support.mock_bfcl import serving
from support.mock_openai import MockOpenAI, sends_json

from wer.cli import main
from wer.references import reference_to, resolve
from wer.reports.results import results
from wer.store import Store

EXAMPLES = Path(__file__).parents[2] / "examples"
SKILL = "---\nname: refund\ndescription: Refund.\n---\n\n## Workflow\n1. Look at the order before you act.\n"
WANTED = {
    "The kettle": [("get_order", {"number": "1001"}), ("refund", {"number": "1001", "amount": 39.9})],
    "Order 1002": [("get_order", {"number": "1002"})],
    "I returned the desk": [
        ("get_order", {"number": "1003"}),
        ("refund", {"number": "1003", "amount": 249.0, "to": "credit"}),
    ],
}


def acting(body):
    """With the skill, make the calls that a user's message asks for, one by one; without it, none."""
    messages = body["messages"]
    asked = max(place for place, message in enumerate(messages) if message["role"] == "user")
    text = messages[asked]["content"]
    able = any("Look at the order" in str(each["content"]) for each in messages if each["role"] != "user")
    calls = next((calls for start, calls in WANTED.items() if text.startswith(start)), [])
    made = sum(message["role"] == "tool" for message in messages[asked:])
    if not able or made == len(calls):
        return answer({"role": "assistant", "content": "Done."}, "stop")
    name, arguments = calls[made]
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"c{made}", "type": "function", "function": function}
    return answer({"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls")


def answer(message, finish):
    return sends_json(
        {
            "id": "x",
            "object": "chat.completion",
            "created": 0,
            "model": "mock",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        }
    )({})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "env", "passes"),
    [
        ("openai_loop.py", "shop/shop.py:shop", 0.5),  # the first domain's second task is not in the script
        ("langgraph_agent.py", "agents/refunds.py:refunds", 1.0),
        ("agents_sdk.py", "agents/refunds.py:refunds", 1.0),
    ],
)
def test_an_agent_of_another_library_acts_by_its_skill(file, env, passes, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("SKILL.md").write_text(SKILL)
    before = {name: value for name, value in os.environ.items() if name.startswith("OPENAI")}
    with serving(MockOpenAI(default=acting)) as mock:
        agent = partial(resolve(f"{EXAMPLES / 'agents' / file}:agent"), url=mock.url, key="secret-key")
        words = ["eval", "SKILL.md", f"--env={EXAMPLES / env}", f"--executor={reference_to(agent)}"]
        with pytest.raises(SystemExit) as ended:
            main([*words, "--trials=1", "--split=train", "--sandbox=process"])

    assert ended.value.code in (0, None)
    (folder,) = Path("runs").iterdir()
    store = Store(folder / "wer.sqlite")
    found = results(store)
    assert found.cell("skill", found.domains[0]).mean == passes
    assert found.cell("none", found.domains[0]).mean < passes
    called = [step for rollout, *_ in store.rollouts() for step in rollout.trajectory.steps if step.calls]
    assert called and all(step.observations for step in called)
    assert store.spend()["executor"].prompt_tokens == 100 * len(mock.requests)
    assert mock.headers[0]["Authorization"] == "Bearer secret-key"
    assert before == {name: value for name, value in os.environ.items() if name.startswith("OPENAI")}
    assert b"secret-key" not in b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
