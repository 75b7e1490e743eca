"""What a server says of itself: its tools and its words to an agent, asked once and then cached."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import frozen

from wer import wheels
from wer.errors import TaskError
from wer.paths import cache_dir
from wer.records import Json, SandboxSpec, ToolSpec, content_hash
from wer.sandboxing import recipe

_ANSWER = "server.json"
_DESCRIBE_S = 120
_LAST_WORDS = 4000


@frozen(kw_only=True)
class Description:
    """The server's words.

    Attributes:
        instructions: To an agent; often empty.
    """

    instructions: str
    tools: tuple[ToolSpec, ...]


def describe(spec: SandboxSpec, files: Mapping[str, str]) -> Description:
    """Start the server once, confined as in an episode, and ask.

    Args:
        files: Contents in base64, by path in the server's folder.

    Raises:
        TaskError: It doesn't start, or lists no tools, with its last words.
    """
    folders = recipe.folders(spec)
    name = content_hash([[str(folder) for folder in folders], spec.environ, content_hash(files)])
    place = wheels.once(cache_dir() / "mcp" / name, lambda draft: _ask(spec, folders, files, draft))
    said = json.loads((place / _ANSWER).read_text("utf-8"))
    return Description(instructions=said["instructions"], tools=tuple(map(_tool, said["tools"])))


def _tool(written: Json) -> ToolSpec:
    schema = written.get("inputSchema") or {}
    return ToolSpec(
        name=written["name"],
        description=written.get("description") or "",
        parameters={"type": "object", "properties": {}, **schema},
    )


def _ask(spec: SandboxSpec, folders: Sequence[Path], files: Mapping[str, str], draft: Path) -> None:
    command = [sys.executable, "-S", "-P", "-m", "wer_mcp_domain"]
    environ = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", **spec.environ}
    environ["PYTHONPATH"] = os.pathsep.join(map(str, folders))
    try:
        done = subprocess.run(
            command,
            cwd="/",
            env=environ,
            input=json.dumps(dict(files)),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_DESCRIBE_S,
            check=True,
        )
        said = json.loads(done.stdout)
        if not said["tools"]:
            raise ValueError("it lists no tools")
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        words = getattr(error, "stderr", None) or ""
        words = words.decode(errors="replace") if isinstance(words, bytes) else words
        raise TaskError(
            f"the MCP server can't be asked for its tools ({error}). Check `command`, `requirements` (all that the "
            f"server imports, without dependencies) and `files` in [environment.mcp]. It said:\n{words[-_LAST_WORDS:]}"
        ) from error
    (draft / _ANSWER).write_text(done.stdout, "utf-8")
