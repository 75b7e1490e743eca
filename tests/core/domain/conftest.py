"""The example shop, and small domains that a test writes itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wer import plugins
from wer.domain import Domain

SHOP = Path(__file__).parents[3] / "examples" / "shop" / "shop.py"


@pytest.fixture
def shop() -> Domain:
    return plugins.load().environments.make(f"{SHOP}:shop", {})


@pytest.fixture
def write(tmp_path):
    """Write ``world.py`` with a class ``World``, a check and a domain; and its tasks."""

    def written(body: str, *tasks: dict, check: str = "return True", head: str = "") -> str:
        lines = [
            "import wer",
            head,
            "class World(wer.State):",
            *(f"    {line}" for line in body.splitlines()),
        ]
        lines += ["def check(task, end):", f"    {check}"]
        lines += ["world = wer.Domain(World, tasks='tasks.jsonl', check=check)"]
        (tmp_path / "world.py").write_text("\n".join(lines) + "\n")
        given = tasks or ({"id": "a", "query": "Go."},)
        (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in given))
        return f"{tmp_path / 'world.py'}:world"

    return written
