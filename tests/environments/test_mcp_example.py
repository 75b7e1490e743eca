"""The example of the documentation: a public MCP server, its tasks and its check, through ``wer eval``."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from support.mock_bfcl import reply, serving
from support.mock_openai import MockOpenAI

from wer import plugins
from wer.cli import main
from wer.contracts import Environment
from wer.reports.replay import rejudge
from wer.reports.results import results
from wer.store import Store

STEP = "Read the order and the item's stock"
EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "mcp-orders"


@pytest.fixture(autouse=True)
def there(monkeypatch):
    monkeypatch.chdir(EXAMPLE)


def environment() -> Environment:
    table = tomllib.loads((EXAMPLE / "wer.toml").read_text("utf-8"))
    return plugins.load().environments.make("mcp", table["environment"]["mcp"])


def player(env: Any) -> Any:
    """Make the reference's calls where the skill is read, and none without it."""
    references = {
        message: calls
        for split in ("train", "test")
        for task in env.tasks("orders", split)
        for message, calls in zip(task.turns, env.reference(task), strict=True)
    }

    def act(body: Any) -> Any:
        system, last = body["messages"][0]["content"], body["messages"][-1]
        wanted = references[last["content"]] if last["role"] == "user" and STEP in system else []
        calls = [
            {
                "id": f"c{i}",
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for i, call in enumerate(wanted)
        ]
        if not calls:
            return reply({"role": "assistant", "content": "Done."}, "stop")
        return reply({"role": "assistant", "content": None, "tool_calls": calls}, "tool_calls")

    return act


@pytest.mark.slow
@pytest.mark.parametrize("sandbox", ["process", pytest.param("docker", marks=pytest.mark.docker)])
def test_the_skill_of_the_example_is_measured_on_a_real_server(tmp_path, sandbox):
    with serving(MockOpenAI(default=player(environment()))) as mock, pytest.raises(SystemExit) as ended:
        main(
            [
                *("eval", "skills/order-book", "--config=wer.toml", f"--executor=openai/mock@{mock.url}"),
                *(f"--sandbox={sandbox}", "--trials=1", "--set=executor_options.mode='native'"),
                f"--runs={tmp_path}",
            ]
        )

    assert not ended.value.code
    (folder,) = tmp_path.iterdir()
    store = Store(folder / "wer.sqlite")
    found = results(store)
    skill, none = found.cell("skill", "average"), found.cell("none", "average")
    assert skill is not None and none is not None
    assert skill.mean == 1.0
    assert none.mean == pytest.approx(2 / 6)  # two tasks are done by changing nothing
    assert all(again.agrees for again in rejudge(store, plugins.load()))
    assert all(message["content"] for body in mock.requests for message in body["messages"][:1])


@pytest.mark.slow
def test_the_example_has_tasks_of_both_splits_and_tools_of_the_server():
    env = environment()
    train, test = env.tasks("orders", "train"), env.tasks("orders", "test")

    assert (len(train), len(test)) == (4, 6)
    assert [tool.name for tool in train[0].tools] == [
        *("read_query", "write_query", "create_table", "list_tables", "describe_table", "append_insight")
    ]
