"""An MCP server in an episode, as `wer_mcp_domain` serves it."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from wer.arguments import objection
from wer.contracts import Episode
from wer.errors import DomainError
from wer.records import Json, Observation, Task, ToolCall
from wer_mcp.options import Beginning, Calls


class McpWorld:
    """Implements `wer.domain.session.World`.

    Args:
        files: Of every task, contents in base64 by path.
        setup: Calls before those of the task.
        state: Calls whose answers are the state.
    """

    def __init__(
        self,
        task: Task,
        episode: Episode,
        *,
        beginning: Beginning,
        files: Mapping[str, str],
        setup: Calls,
        state: Calls,
    ) -> None:
        self._task = task
        self._episode = episode
        self._files = {**files, **{path: encoded(text.encode()) for path, text in beginning.files.items()}}
        self._calls = (*setup, *beginning.calls)
        self._state = state

    async def reset(self) -> None:
        """Start the server and bring it where the task begins.

        Raises:
            DomainError: A call that does so failed.
        """
        answer = await self._episode.request("reset", {"files": self._files, "calls": self._calls})
        if answer["problem"]:
            raise DomainError(
                f"{self._task.id} can't begin: {answer['problem']}. Mend `setup` or the task's `calls`."
            )

    async def call(self, call: ToolCall) -> Observation:
        """Run one tool; for one that is not on offer servers have all sorts of answers, so they aren't asked."""
        on_offer = [tool.name for tool in self._task.tools]
        if call.name not in on_offer:
            text = f"Error: there is no tool {call.name!r}. The tools are {', '.join(on_offer)}."
            return Observation(text=text, ok=False)
        refused = objection(call)
        if refused is not None:
            return Observation(text=f"Error: {refused}", ok=False)
        answer = await self._episode.request("call", {"name": call.name, "arguments": call.arguments})
        return Observation(text=answer["text"], ok=answer["ok"])

    async def export(self) -> Json:
        """Ask what the options call the state."""
        return await self._episode.request("export", {"calls": self._state})

    async def close(self) -> None:
        """Kill the episode, and the server with it."""
        await self._episode.close()


def encoded(content: bytes) -> str:
    """As JSON can carry it."""
    return base64.b64encode(content).decode()
