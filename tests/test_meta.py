"""Promises that hold for the whole code base."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from wer import hookspecs, plugins

ROOT = Path(__file__).parent.parent
HEAVY = (
    "docker",
    "litellm",
    "numpy",
    "peft",
    "ray",
    "scipy",
    "statsmodels",
    "torch",
    "transformers",
    "wandb",
    "xllamacpp",
)
HOOKS = {name: hook for name, hook in vars(hookspecs).items() if name.startswith("wer_")}
OFFERS = {row.kind for row in plugins.load().listing() if row.distribution.startswith("wer-skills")}
MODULES = [
    path
    for folder in ("core", "environments", "verifiers", "plugins")
    for path in sorted((ROOT / folder).rglob("*.py"))
]


@pytest.mark.parametrize("name", HOOKS)
def test_every_hook_says_when_and_how_often_it_is_called(name):
    assert "called" in (inspect.getdoc(HOOKS[name]) or "").lower()


@pytest.mark.parametrize(
    "kind", ["environment", "verifier", "executor", "optimizer", "model", "sandbox", "runner", "tracker"]
)
def test_every_kind_of_part_is_offered_by_a_shipped_plugin(kind):
    assert kind in OFFERS


def test_no_shipped_plugin_is_broken():
    assert plugins.load().broken == {}


@pytest.mark.parametrize(
    "statement",
    [
        "import wer",
        "import wer.plugins; wer.plugins.load()",
        "import wer.cli; sys.argv = ['wer', '--help']; wer.cli.main()",
        "import wer.reports.statistics",
        "import wer.doctor",
    ],
)
def test_starting_up_imports_no_heavy_library(statement):
    program = (
        f"import sys, contextlib\nwith contextlib.suppress(SystemExit):\n    {statement}\n"
        f"print(*[name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr, end='')"
    )

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert ended.stderr == ""


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_module_says_why_it_exists(path):
    source = path.read_text("utf-8").lstrip()

    assert source.startswith(('"""', "#!")) or not source
