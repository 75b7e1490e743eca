"""A writer for the help desk of ``examples/own-tools``, and that example where a test may change it."""

import shutil
from pathlib import Path

from aiohttp import web
from support.mock_bfcl import reply
from support.mock_openai import Body

EXAMPLE = Path(__file__).parents[2] / "examples" / "own-tools"
_SKILL = (
    "<think>Look at the failure.</think>\n<skill>\nname: tickets\ndescription: Close tickets.\n"
    "## Workflow\n1. {}\n</skill>"
)


def writer(body: Body) -> web.StreamResponse:
    """Learn from a failure to add a note."""
    learnt = any(word in body["messages"][-1]["content"] for word in ("# Failure", "as a note"))
    step = "Add the reason as a note, then close." if learnt else "Close it."
    return reply({"role": "assistant", "content": _SKILL.format(step)}, "stop")


def copied(folder: Path, url: str) -> Path:
    """Lay the example into a folder, with its writer at that address."""
    shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True)
    script = folder / "refine.py"
    script.write_text(script.read_text("utf-8").replace("openai/gpt-4o-mini", f"openai/mock@{url}"), "utf-8")
    return script
