"""How a worker process is started: a bare environment, a pinned module path, bubblewrap if there."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from wer.records import SandboxSpec
from wer.sandboxing.machines import Machine
from wer.sandboxing.rendezvous import SOCKET
from wer_process import bubblewrap
from wer_process.machine import ProcessMachine


class ProcessLauncher:
    """Implements `wer.sandboxing.machines.Launcher`.

    Args:
        modules: Folders of the module path; the standard library is the only other one.
    """

    shared = False

    def __init__(self, spec: SandboxSpec, modules: Sequence[Path]) -> None:
        self._spec = spec
        self._modules = modules
        self._bubblewrap = bubblewrap.find()
        inside = "in bubblewrap" if self._bubblewrap else "without bubblewrap"
        self.isolation = f"process {inside} (weaker than docker)"

    async def launch(self, folder: Path, key: str) -> Machine:
        """Start a worker in bubblewrap where the machine allows it, else as a bare child of this process."""
        command = [*self._python(), "--connect", str(folder / SOCKET)]
        if self._bubblewrap:
            command = [*bubblewrap.around(self._bubblewrap, [*self._modules, folder]), *command]
        else:
            command += ["--die-with-parent", str(os.getpid())]
        return await ProcessMachine.start(command, self._environ(key))

    async def close(self) -> None:
        """Nothing is held open."""

    def _python(self) -> list[str]:
        # -S keeps the user's site-packages out; -P keeps the working directory out.
        limits = [
            "--episode-memory",
            str(self._spec.episode_memory_bytes),
            "--disk",
            str(self._spec.disk_bytes),
        ]
        return [sys.executable, "-S", "-P", "-m", "wer_sandbox", "--domain", self._spec.domain, *limits]

    def _environ(self, key: str) -> dict[str, str]:
        """Nothing of the user's environment, which may hold keys."""
        return {
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1",  # an episode may start no thread
            "OPENBLAS_NUM_THREADS": "1",
            **self._spec.environ,
            "PYTHONPATH": os.pathsep.join(map(str, self._modules)),
            "WER_SANDBOX_KEY": key,
        }
