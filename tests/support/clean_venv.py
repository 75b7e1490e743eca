"""An environment as a stranger has it: WER's wheel, plugins' wheels, and no checkout to fall back on.

Core's dependencies are those of this environment, by symbolic link, so that nothing is downloaded.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent.parent


def run(*words: str | Path, cwd: Path | None = None) -> str:
    """Run a command to its end, and give what it printed; its failure is the test's."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False, cwd=cwd, env=environ
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def wheel(project: Path, folder: Path) -> Path:
    """Build a project's wheel."""
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", folder, project)
    name = project.name if project != ROOT else "wer-skills"
    (built,) = folder.glob(f"{name.replace('-', '_')}-*.whl")
    return built


def clean_venv(folder: Path, *wheels: Path, also: Sequence[str] = ()) -> Path:
    """Make an environment with these wheels and core's dependencies, and give its folder of commands.

    Args:
        also: Further libraries of this environment.
    """
    run(sys.executable, "-m", "venv", folder)
    (site,) = folder.glob("lib/python*/site-packages")
    here = Path(sysconfig.get_path("purelib"))
    for name in _needed("wer-skills", *also):
        tops = {file.parts[0] for file in metadata.distribution(name).files or ()} - {"..", "__pycache__"}
        for top in tops:
            if not (site / top).exists():
                (site / top).symlink_to(here / top)
    run(folder / "bin" / "python", "-m", "pip", "install", "-q", "--no-deps", "--no-index", *wheels)
    return folder / "bin"


def _needed(*names: str) -> Sequence[str]:
    """The distributions below these, and themselves but WER."""
    found = list(names)
    for name in found:
        for line in metadata.requires(name) or ():
            needed = Requirement(line)
            if needed.name not in found and (needed.marker is None or needed.marker.evaluate({"extra": ""})):
                found.append(needed.name)
    return [name for name in found if name != "wer-skills"]
