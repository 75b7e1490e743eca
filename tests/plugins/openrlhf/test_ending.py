"""A training that is told to end leaves no process and says how to go on, and so it does."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import census
from support.mock_bfcl import player, serving
from support.mock_openai import MockOpenAI
from support.openrlhf_cpu import make_policy
from support.stand_in import STAND_IN

from wer import plugins
from wer_openrlhf import processes

pytestmark = pytest.mark.slow

UNCHECKED = """
import sys
sys.path.insert(0, sys.argv[1])
from support.stand_in import unchecked
from wer.cli import main
from wer_openrlhf import preflight

preflight.check = unchecked
main(sys.argv[2:])
"""


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A temporary folder whose path is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="w") as folder:
        (Path(folder) / "tmp").mkdir()
        yield Path(folder)


def wer(words: list[str], scratch: Path, mood: str) -> subprocess.Popen[str]:
    """The command line, over the stand-in for OpenRLHF."""
    stand_in = {"PYTHONPATH": str(STAND_IN), "STAND_IN": mood, "TMPDIR": str(scratch / "tmp")}
    return subprocess.Popen(
        [sys.executable, "-c", UNCHECKED, str(Path(__file__).parents[2]), *words],
        env={**os.environ, **stand_in},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def training(scratch: Path, url: str) -> list[str]:
    model = f"openai/mock@{url}"
    options = {"optimizer.openrlhf.python": sys.executable, "training.k": 4, "refinement.rounds": 0}
    return [
        *("run", "--env=bfcl", "--backend=openrlhf", "--preset=cpu-tiny", f"--runs={scratch / 'runs'}"),
        *(f"--writer={make_policy(scratch / 'writer')}", f"--executor={model}"),
        *(f"--set=seed_writer={model}", f"--set=merge_writer={model}", "--set=executor_options.mode=native"),
        *(f"--set={name}={json.dumps(value)}" for name, value in options.items()),
        *("--set=training.phases=1", "--set=evaluation.conditions=['none','refined']"),
    ]


@pytest.mark.parametrize(
    ("ending", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "kill"]
)
def test_a_training_that_is_told_to_end_leaves_nothing_and_goes_on_with_the_command_that_it_names(
    scratch: Path, ending: signal.Signals, status: int
):
    environment = plugins.load().environments.make("bfcl", {})
    with serving(MockOpenAI(default=player(environment))) as mock:
        process = wer(training(scratch, mock.url), scratch, "hangs after 1")
        while not (begun := list(scratch.glob("runs/*/checkpoints/phase-0/trainer/_actor/latest"))):
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.1)
        phase = str(begun[0].parents[2].resolve())
        running = processes.marked(phase)

        process.send_signal(ending)
        _, printed = process.communicate()
        left = processes.marked(phase), census.processes_of(scratch / "tmp")
        (run,) = (scratch / "runs").iterdir()
        resumed = wer(["run", f"--resume={run}"], scratch, "")
        _, told = resumed.communicate()

    assert (process.returncode, bool(running), left) == (status, True, ([], []))
    assert f"go on with: wer run --resume {run}" in printed and "Traceback" not in printed
    assert resumed.returncode == 0, told
    assert "going on from global_step1" in told
