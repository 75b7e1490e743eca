"""The sandbox ``process``: the same server as in a container, as confined processes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

from wer.contracts import Pool
from wer.records import SandboxSpec
from wer.sandboxing import recipe
from wer.sandboxing.pool import WorkerPool
from wer.sandboxing.scratch import reap_folders
from wer_process.launcher import ProcessLauncher


class ProcessSandbox:
    """Implements `wer.contracts.Sandbox`. Always at hand on Linux and macOS, and the weaker tier."""

    def unavailable(self) -> str | None:
        """Say when episodes cannot be forked here: all but Windows can."""
        if hasattr(os, "fork"):
            return None
        return "the process sandbox needs Linux or macOS. On Windows, run WER under WSL 2"

    async def start(self, spec: SandboxSpec, workers: int) -> Pool:
        """Install what the spec needs into a cached folder of its own, and start a process a worker.

        Raises:
            SandboxError: With ``cause="start"``.
        """
        modules = await asyncio.to_thread(recipe.folders, spec)
        return await WorkerPool.start(spec, ProcessLauncher(spec, modules), workers)

    def reap(self) -> Sequence[str]:
        """Remove socket folders of dead drivers; their workers ended with them."""
        return reap_folders()
