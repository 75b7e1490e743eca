"""Shipped plugins have no privileges: each, as a stranger's package on a WER without plugins, passes its checks."""

from __future__ import annotations

import textwrap

import pytest
from support.building import as_a_strangers, built, core_only
from support.clean_venv import ROOT, clean_venv, run
from support.mock_bfcl import serving
from support.mock_openai import MockOpenAI, says

pytestmark = pytest.mark.slow

_PLUGINS = {
    "bfcl": ("environments/wer_bfcl", "environments/wer_bfcl_domain"),
    "bfcl_checker": ("verifiers/wer_bfcl_checker",),
    "state_match": ("verifiers/wer_state_match",),
    "prompted": ("plugins/wer_prompted",),
    "toolagent": ("plugins/wer_toolagent",),
    "openai": ("plugins/wer_litellm",),
    "process": ("plugins/wer_process",),
}
_JUDGE = textwrap.dedent("""
    import sys

    sys.path.insert(0, sys.argv[1])
    from wer import plugins
    from wer.records import End, Evidence, Task, Trajectory, TurnEvidence

    verifier = plugins.load().verifiers.make("state_match")
    end = End(by="agent")
    judged = [
        verifier.judge(
            Task(id="t", env="e", domain="d", split="train", turns=("go",)),
            Trajectory(messages=("go",), steps=(), end=end, seed=0),
            Evidence(turns=(TurnEvidence(state={"a": 1}),), end=end),
            {"state": {"a": value}},
        )
        for value in (1.0, 2)
    ]
    print([verdict.passed for verdict in judged])
""")
_WER = "import sys; sys.path[:0] = sys.argv.pop(1).split(':'); from wer.cli import main; main()"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("symmetry")


@pytest.fixture(scope="module")
def python(folder):
    """Of an environment with core alone."""
    return clean_venv(folder / "venv", built(core_only(folder / "core-only"), folder)) / "python"


@pytest.fixture(scope="module")
def places(python, folder):
    """The shipped plugins, each installed into a folder of its own."""
    places = {}
    for name, sources in _PLUGINS.items():
        project = as_a_strangers(folder / name, name, [ROOT / source for source in sources])
        places[name] = folder / f"{name}-installed"
        pip = ("-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", places[name])
        run(python, *pip, built(project, folder))
    return places


@pytest.fixture(scope="module")
def wer(python, places, folder):
    """Run ``wer`` with some of the plugins."""

    def run_wer(plugins, *words):
        path = ":".join(str(places[name]) for name in plugins)
        return run(python, "-c", _WER, path, *words, cwd=folder)

    return run_wer


def test_a_core_only_wheel_has_no_plugin(python):
    program = "from wer import plugins; print(plugins.load().listing())"

    assert run(python, "-c", program).strip() == "()"


@pytest.mark.parametrize("name", ["prompted", "toolagent", "process"])
def test_a_shipped_plugin_passes_its_checks_alone_on_core(wer, name):
    said = wer([name], "plugin", "check", name)

    assert " ok" in said and "failed" not in said


def test_the_state_match_verifier_judges_alone_on_core(python, places):
    assert run(python, "-c", _JUDGE, places["state_match"]).strip() == "[True, False]"


def test_the_shipped_models_pass_their_checks_alone_on_core(wer):
    with serving(MockOpenAI(default=says("hello"))) as mock:
        said = wer(["openai"], "plugin", "check", "openai", f"--model=openai/mock@{mock.url}")

    assert "6 ways to fail" in said and "failed" not in said


@pytest.mark.parametrize("name", ["bfcl", "bfcl_checker"])
def test_the_shipped_benchmark_and_its_verifier_pass_with_nothing_but_a_sandbox(wer, name):
    said = wer(["process", "bfcl", "bfcl_checker"], "plugin", "check", name, "--sandbox=process", "--tasks=1")

    assert "4 references" in said and "failed" not in said
