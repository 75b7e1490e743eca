"""A Ray of one's own with pretend GPUs: started on free ports, stopped with all that it started."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen
from support.openrlhf_cpu.environment import python, variables


@frozen(kw_only=True)
class Cluster:
    """A running Ray.

    Attributes:
        address: ``host:port``, for ``RAY_ADDRESS``.
        folder: Its logs and sockets; every process of it names this folder.
    """

    address: str
    folder: Path

    def processes(self) -> list[int]:
        """Pids of all that belongs to this Ray, whoever their parent is by now."""
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and self._owns(entry):
                    found.append(int(entry.name))
        return sorted(found)

    def kill(self) -> None:
        """Take all of it away at once, as when its machine fails."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _owns(self, process: Path) -> bool:
        mark = f"WER_TEST_RAY={self.folder}".encode()
        return mark in (process / "environ").read_bytes().split(b"\0")


@contextlib.contextmanager
def pretend_gpus(count: int, *, cpus: int = 8) -> Iterator[Cluster]:
    """Start a Ray whose node claims GPUs that it does not have, and stop it at the end.

    Other Rays of the machine are left alone: nothing is stopped by name.
    """
    folder = Path(tempfile.mkdtemp(prefix="wer-ray-", dir="/tmp"))  # short: it holds Unix sockets
    cluster = Cluster(address=f"127.0.0.1:{_free_port()}", folder=folder)
    log = folder / "start.log"
    with log.open("wb") as output:
        head = subprocess.Popen(
            [
                *("setpriv", "--pdeathsig", "TERM"),  # nor does it outlive a test that is killed
                *(str(Path(python()).with_name("ray")), "start", "--head", "--block"),
                *("--node-ip-address=127.0.0.1", f"--port={cluster.address.partition(':')[2]}"),
                *(f"--num-gpus={count}", f"--num-cpus={cpus}", "--object-store-memory=300000000"),
                *(f"--temp-dir={folder}", "--include-dashboard=false", "--disable-usage-stats"),
                *(
                    f"--ray-client-server-port={_free_port()}",
                    f"--dashboard-agent-listen-port={_free_port()}",
                ),
                *(
                    "--min-worker-port=0",
                    "--max-worker-port=0",
                ),  # any free port: other Rays have the usual ones
            ],
            env={**_without_ray(), **variables(), "WER_TEST_RAY": str(folder)},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait(head, cluster, log)
        yield cluster
    finally:
        _stop(head, cluster)
        shutil.rmtree(folder, ignore_errors=True)


def _without_ray() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(head: subprocess.Popen[bytes], cluster: Cluster, log: Path) -> None:
    for _ in range(1200):
        if "Ray runtime started" in log.read_text(errors="replace"):
            return
        if head.poll() is not None:
            break
        time.sleep(0.1)
    raise AssertionError(f"Ray did not start:\n{log.read_text(errors='replace')}")


def _stop(head: subprocess.Popen[bytes], cluster: Cluster) -> None:
    """Ask the head to stop, then end whatever of this Ray is left."""
    head.send_signal(signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        head.wait(20)
    for _ in range(100):
        if not cluster.processes():
            break
        cluster.kill()
        time.sleep(0.1)
    head.wait()
