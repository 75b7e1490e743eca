"""Every benchmark runs, at a tiny size, and says all that a reader of its figures needs. Nothing is timed here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parents[2] / "benchmarks" / "run.py"
FIELDS = {"name", "value", "unit", "samples", "target", "beside", "note", "met"}
TARGETS = {
    "start": {"start/wer --help": 0.3, "start/import wer": 0.1},
    "store": {"store/rollouts written": 500, "store/a run of 100 rollouts opened again": 1.0},
    "scheduler": {
        "scheduler/CPU a model call, concurrency 4": 0.6,
        "scheduler/share of the latency bound, concurrency 4, 50 ms server": 0.9,
        "scheduler/share of the latency bound, concurrency 8, 100 ms server": 0.9,
        "scheduler/memory after 200 rollouts over that after a tenth": 1.1,
    },
    "replay": {"replay/BFCL references, docker": 300, "replay/BFCL references, process": 150},
    "grpo": {
        "grpo/time of an update, K = 4, P = 8 R": 0.5,
        "grpo/peak memory of an update, K = 4, P = 8 R": 0.8,
    },
}


def run(*words):
    return subprocess.run([sys.executable, str(RUN), *words], capture_output=True, text=True, timeout=300)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.docker] if name == "replay" else []) for name in TARGETS],
)
def test_a_benchmark_writes_every_field_of_its_figures(tmp_path, name):
    ended = run(name, "--small", "--no-peers", "-o", str(tmp_path / "figures.json"))

    assert ended.returncode == 0, ended.stderr
    written = json.loads((tmp_path / "figures.json").read_text())
    assert written["size"] == "small" and written["machine"].keys() >= {"processor", "cores", "python"}
    assert all(figure.keys() == FIELDS and figure["samples"] for figure in written["figures"])
    aimed = {each["name"]: each["target"]["value"] for each in written["figures"] if each["target"]}
    assert aimed == TARGETS[name]


def test_an_unknown_benchmark_is_refused_with_those_there_are():
    ended = run("stor")

    assert ended.returncode == 2
    assert "no benchmark named 'stor'; there are start, store, scheduler, replay, grpo" in ended.stderr
