"""The pool of an environment without tools: there is nothing to run in a sandbox."""

from __future__ import annotations

from attrs import frozen

from wer.errors import SandboxError
from wer.records import Json, JsonObject


class NoEpisode:
    """A `wer.contracts.Episode` without a world."""

    async def request(self, method: str, params: JsonObject, *, timeout_s: float | None = None) -> Json:
        """Refuse.

        Raises:
            SandboxError: Always: whoever asks has no sandbox.
        """
        raise SandboxError(f"{method!r} was asked of an environment without a sandbox", cause="start")

    async def close(self) -> None:
        """Nothing is held."""


@frozen
class NoPool:
    """A `wer.contracts.Pool` of such episodes.

    Attributes:
        tier: What isolates them instead, and whose it is.
    """

    tier: str

    async def lease(self) -> NoEpisode:
        """Give one."""
        return NoEpisode()

    async def close(self) -> None:
        """Nothing is held."""
