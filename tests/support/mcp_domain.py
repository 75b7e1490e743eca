"""An MCP environment around the server beside this file, for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support.tiers import path_of, sandbox

import wer_mcp
from wer.contracts import Environment, Pool, Session
from wer.records import ToolCall

HERE = Path(__file__).parent / "mcp"


def environment(**changes: Any) -> Environment:
    given = {
        "command": ["python", "server.py"],
        "files": {"server.py": str(HERE / "server.py")},
        "tasks": str(HERE / "tasks.jsonl"),
        "check": f"{HERE / 'check.py'}:check",
        "state": [["structured", {}]],
        "memory_bytes": 128 << 20,
        "disk_bytes": 1 << 20,
    }
    return wer_mcp.wer_environments()["mcp"](given | changes)


def task(env: Environment, name: str):
    found = {task.id: task for split in ("train", "test") for task in env.tasks("mcp", split)}
    return found[f"mcp/{name}"]


@asynccontextmanager
async def pool_of(env: Environment, tier: str) -> AsyncIterator[Pool]:
    with path_of(tier):
        pool = await sandbox(tier).start(env.sandbox("mcp"), 1)
        try:
            yield pool
        finally:
            await pool.close()


async def begun(env: Environment, pool: Pool, name: str = "again") -> Session:
    session = await env.open(task(env, name), await pool.lease(), {}, 0)
    await session.begin()
    return session


async def ask(session: Session, tool: str, **arguments: Any):
    answer = await session.call([ToolCall(name=tool, arguments=arguments)])
    return answer.observations[0]
