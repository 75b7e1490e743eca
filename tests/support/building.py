"""Wheels of projects, built by hatchling itself: no environment is made for each, and nothing is fetched twice."""

from __future__ import annotations

import shutil
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from support.clean_venv import ROOT, run

from wer.wheels import install

_HATCHLING = ("hatchling==1.33.0", "trove-classifiers==2026.9.21.13")
_BUILD = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from hatchling.build import build_wheel; build_wheel(sys.argv[2])"
)


def built(project: Path, into: Path) -> Path:
    """Build a project's wheel into a folder of its own below another."""
    folder = into / f"wheel-of-{project.name}"
    folder.mkdir()
    run(sys.executable, "-c", _BUILD, install(_HATCHLING), folder, cwd=project)
    (wheel,) = folder.glob("*.whl")
    return wheel


def core_only(folder: Path) -> Path:
    """Lay out a WER that ships no plugin."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    _lay_out(folder, "wer-skills", [ROOT / "core" / "wer", ROOT / "core" / "wer_sandbox"])
    with (folder / "pyproject.toml").open("a") as file:
        file.write(f"dependencies = {declared['dependencies']}\n")
        file.write('[project.scripts]\nwer = "wer.cli:main"\n')
    return folder


def as_a_strangers(folder: Path, name: str, sources: Sequence[Path]) -> Path:
    """Lay out a shipped plugin as a package of its own; the first source is its entry module."""
    _lay_out(folder, f"wer-plugin-{name.replace('_', '-')}", sources)
    with (folder / "pyproject.toml").open("a") as file:
        file.write(
            f'dependencies = ["wer-skills"]\n[project.entry-points.wer]\n{name} = "{sources[0].name}"\n'
        )
    return folder


def _lay_out(folder: Path, name: str, sources: Sequence[Path]) -> None:
    for source in sources:
        shutil.copytree(source, folder / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    folder.joinpath("pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        f"[tool.hatch.build.targets.wheel]\npackages = {[source.name for source in sources]}\n"
        f'[project]\nname = "{name}"\nversion = "0.1.0"\n'
    )
