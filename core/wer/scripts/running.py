"""Scripts in their own sandbox: a fresh episode a call, so that no call knows of another."""

from __future__ import annotations

from collections.abc import Mapping

from wer.arguments import objection
from wer.contracts import Pool
from wer.errors import SandboxError
from wer.records import Json, JsonObject, Observation, SandboxSpec, ToolCall
from wer.scripts.reading import Script

SCRIPTS = SandboxSpec(
    name="scripts",
    domain="wer_sandbox.scripts:scripts",
    episode_memory_bytes=256 << 20,
    call_timeout_s=20.0,  # of any script; its CPU time ends it earlier
    environ={"PYTHONHASHSEED": "0", "TZ": "UTC"},
)
"""Standard library alone; one for all skills."""


async def run_script(pool: Pool, script: Script, call: ToolCall) -> Observation:
    """Call a script; whatever it does wrong is the observation.

    Raises:
        SandboxError: No episode could be had.
    """
    refused = objection(call)
    if refused is not None:
        return Observation(text=f"Error: {refused}", ok=False)
    asked = {"source": script.source, "function": script.function, "arguments": dict(call.arguments)}
    return await _asked(pool, "call", asked)


async def try_script(pool: Pool, name: str, source: str, tests: str) -> str:
    """Run a script's tests; give what went wrong, or nothing.

    Raises:
        SandboxError: No episode could be had.
    """
    seen = await _asked(pool, "test", {"name": name, "source": source, "tests": tests})
    return "" if seen.ok else seen.text


async def _asked(pool: Pool, method: str, params: JsonObject) -> Observation:
    """Ask a fresh episode. One that dies may have been the machine's fault, so it has a second try."""
    story = ""
    for _ in range(2):
        episode = await pool.lease()
        try:
            return _read(await episode.request(method, params))
        except SandboxError as error:
            story = str(error).partition("\n")[0]
            if error.cause == "hung":
                break
        finally:
            await episode.close()
    return Observation(text=f"Error: the script gave no answer: {story}", ok=False)


def _read(answer: Json) -> Observation:
    """A script can forge its answer, which harms nobody else; but it has to be one."""
    if isinstance(answer, Mapping) and isinstance(answer.get("text"), str):
        return Observation(text=answer["text"], ok=answer.get("ok") is True)
    return Observation(text="Error: the script gave something else than an answer", ok=False)
