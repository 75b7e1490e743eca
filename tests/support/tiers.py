"""Every way to isolate episodes that this machine has, for tests that must hold in each."""

import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

import wer_docker
import wer_process
from wer.contracts import Pool, Sandbox
from wer.records import SandboxSpec

DOMAINS = Path(__file__).parent / "domains"
if str(DOMAINS) not in sys.path:
    sys.path.append(str(DOMAINS))

ALL = [
    "process",
    *(["bubblewrap"] if shutil.which("bwrap") else []),
    pytest.param("docker", marks=pytest.mark.docker),
]
SMALL = 64 << 20


def spec(**changes) -> SandboxSpec:
    given = {
        "name": "attacked",
        "domain": "wer_attacked:Attacked",
        "packages": ("wer_attacked",),
        "memory_bytes": 256 << 20,
        "episode_memory_bytes": SMALL,
        "call_timeout_s": 20.0,
    }
    return SandboxSpec(**(given | changes))


def sandbox(tier: str) -> Sandbox:
    if tier == "docker":
        return wer_docker.wer_sandboxes()["docker"]()
    return wer_process.wer_sandboxes()["process"]()


@asynccontextmanager
async def pool(tier: str, *, workers: int = 1, **changes) -> AsyncIterator[Pool]:
    with path_of(tier):
        started = await sandbox(tier).start(spec(**changes), workers)
        try:
            yield started
        finally:
            await started.close()


@contextmanager
def path_of(tier: str) -> Iterator[None]:
    """Hide bubblewrap from the plain process tier, which looks for it on PATH."""
    with pytest.MonkeyPatch.context() as patch:
        if tier == "process":
            patch.setenv("PATH", "/nonexistent")
        yield
