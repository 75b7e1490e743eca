"""A shipped plugin is built as a third party's would be: alone, on a WER without any plugin, it installs and works."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

_ROOT = Path(__file__).parent.parent

_PLUGIN = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "wer-plugin-state-match"
version = "1.0"
dependencies = ["wer-skills"]

[project.entry-points.wer]
state_match = "wer_state_match"
"""

_JUDGE = """
from wer import plugins
from wer.records import End, Evidence, Task, Trajectory, TurnEvidence

verifier = plugins.load().verifiers.make("state_match")
task = Task(id="t", env="e", domain="d", split="train", turns=("go",))
end = End(by="agent")
trajectory = Trajectory(messages=("go",), steps=(), end=end, seed=0)
evidence = Evidence(turns=(TurnEvidence(state={"a": 1}),), end=end)
print(verifier.judge(task, trajectory, evidence, {"state": {"a": 1.0}}).passed)
print(verifier.judge(task, trajectory, evidence, {"state": {"a": 2}}).passed)
"""


def run(*words: str | Path) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def core_only(folder: Path) -> Path:
    """Lay out a WER that ships no plugin."""
    declared = tomllib.loads((_ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    dependencies = ",\n".join(f'    "{line}"' for line in declared["dependencies"])
    shutil.copytree(_ROOT / "core", folder / "core", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        f'[project]\nname = "wer-skills"\nversion = "0.1.0"\ndependencies = [\n{dependencies}\n]\n'
        '[project.scripts]\nwer = "wer.cli:main"\n'
        '[tool.hatch.build.targets.wheel]\npackages = ["core/wer", "core/wer_sandbox"]\n'
    )
    return folder


@pytest.mark.slow
def test_the_state_match_verifier_alone_installs_on_a_wer_without_plugins_and_judges(tmp_path):
    core = core_only(tmp_path / "core-only")
    plugin = tmp_path / "wer-plugin-state-match"
    shutil.copytree(_ROOT / "verifiers" / "wer_state_match", plugin / "wer_state_match")
    (plugin / "pyproject.toml").write_text(
        _PLUGIN + '\n[tool.hatch.build.targets.wheel]\npackages = ["wer_state_match"]\n'
    )
    assert len(_PLUGIN.splitlines()) <= 12
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"

    run(python, "-m", "pip", "install", "-q", core, plugin)

    listed = run(tmp_path / "venv" / "bin" / "wer", "plugin", "list")
    assert "state_match" in listed and "bfcl" not in listed
    assert run(python, "-c", _JUDGE).split() == ["True", "False"]
