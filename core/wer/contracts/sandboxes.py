"""What isolates an agent: a way to confine, warm servers of one kind, and one episode in one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from wer.records import Json, JsonObject, SandboxSpec


class Episode(Protocol):
    """One forked child of a sandbox server: a world of its own for one rollout."""

    async def request(self, method: str, params: JsonObject, *, timeout_s: float | None = None) -> Json:
        """Call an exposed method of the domain object in the sandbox.

        Args:
            method: A name that the domain exposes.
            params: Keyword arguments, as JSON.
            timeout_s: Seconds; None is the spec's ``call_timeout_s``.

        Raises:
            SandboxError: The child or its server died or hung. The domain's own
                exceptions never arrive here: a domain answers with data.
        """
        ...

    async def close(self) -> None:
        """Kill the child. Safe to call twice, and after a `SandboxError`."""
        ...


class Pool(Protocol):
    """Warm sandbox servers of one spec."""

    @property
    def tier(self) -> str:
        """What isolates the episodes, for reports: ``docker (no network, ...)``."""
        ...

    async def lease(self) -> Episode:
        """Fork a fresh episode on the least busy live worker; a dead worker is replaced.

        Raises:
            SandboxError: No worker can be had, with the cause and the stderr tail.
        """
        ...

    async def close(self) -> None:
        """Stop every worker and remove what it left on disk."""
        ...


class Sandbox(Protocol):
    """A way to isolate episodes: containers, or confined processes."""

    def unavailable(self) -> str | None:
        """Say why this sandbox can't be used here and what to do; None when it can."""
        ...

    async def start(self, spec: SandboxSpec, workers: int) -> Pool:
        """Build what the spec needs (cached by content) and start the workers.

        Raises:
            SandboxError: With ``cause="start"``.
        """
        ...

    def reap(self) -> Sequence[str]:
        """Remove what dead drivers left behind; return a line for each."""
        ...
