"""``wer plugin check`` on installed packages, good and bad."""

import re
import sys

import pytest
from support import till

from wer.cli import main


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a package of one module, which offers what its entry point names."""
    names = []

    def installed(distribution, source, *, plugin="shop"):
        module = f"wer_{distribution.replace('-', '_')}"
        (tmp_path / f"{module}.py").write_text(f"from wer import hookimpl\n{source}")
        names.append(module)
        info = tmp_path / f"{distribution.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        info.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        info.joinpath("entry_points.txt").write_text(f"[wer]\n{plugin} = {module}\n")

    monkeypatch.syspath_prepend(str(till.DOMAINS))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("COLUMNS", "2000")
    yield installed
    for name in names:
        sys.modules.pop(name, None)


def check(capfd, *words):
    """Run the command; its exit status, and what it printed on one line a row."""
    with pytest.raises(SystemExit) as ended:
        main(["plugin", "check", *words])
    out, err = capfd.readouterr()
    return ended.value.code or 0, re.sub(r" +", " ", out + err)


_TILL = """
from support import till

@hookimpl
def wer_environments():
    return {"till": till.Till}

@hookimpl
def wer_verifiers():
    return {"till_total": till.Total}
"""


@pytest.mark.parametrize("name", ["wer-plugin-till", "till"])
def test_a_package_is_checked_with_all_of_its_parts(install, capfd, name):
    install("wer-plugin-till", _TILL)

    code, out = check(capfd, name, "--sandbox=process", "--tasks=1")

    assert code == 0
    assert "environment till" in out and "verifier till_total on till" in out
    assert out.count("the reference passes") == 1
    assert "18 ok" in out


def test_a_faulty_environment_fails_the_command_with_the_fault_and_its_remedy(install, capfd):
    install("wer-plugin-till", _TILL.replace("till.Till", "till.Shared"))

    code, out = check(capfd, "till", "--sandbox=process", "--tasks=1")

    assert code == 1
    assert "after an episode of 'till/3' in which an agent acted, a fresh one is not as before" in out
    assert "Keep what belongs to an episode in the session object" in out


def test_a_package_that_cannot_be_imported_is_told_what_is_missing(install, capfd):
    install("wer-plugin-bad", "import no_such_library")

    code, out = check(capfd, "wer-plugin-bad")

    assert code == 1
    assert "ModuleNotFoundError: No module named 'no_such_library'" in out
    assert "install the library, or declare it as a dependency" in out


def test_a_name_that_two_packages_offer_is_told_with_both(install, capfd):
    for name in ("left", "right"):
        source = "@hookimpl\ndef wer_verifiers():\n    return {'same': object}\n"
        install(f"wer-plugin-{name}", source, plugin=name)

    code, out = check(capfd, "same")

    assert code == 1
    assert "plugins 'left' and 'right' both offer a verifier named 'same'" in out
    assert "Uninstall one of them, or rename what it offers." in out


def test_a_misspelt_hook_is_told_with_the_nearest(install, capfd):
    install("wer-plugin-shop", "@hookimpl\ndef wer_enviroments():\n    return {}\n")

    code, out = check(capfd, "shop")

    assert code == 1
    assert "plugin 'shop' has 'wer_enviroments', which is no hook of WER" in out
    assert "Did you mean 'wer_environments'?" in out


def test_a_name_that_nobody_has_is_refused_with_the_nearest(capfd):
    code, out = check(capfd, "bfcl_cheker")

    assert code == 2
    assert "nothing is called 'bfcl_cheker'; did you mean 'bfcl_checker'?" in out


def test_a_part_of_a_kind_without_checks_is_no_failure(capfd):
    code, out = check(capfd, "tensorboard")

    assert code == 0
    assert "WER has no checks for this kind" in out


def test_options_of_the_part_are_taken(capfd):
    code, out = check(capfd, "toolagent", "--set", "mode='nonsense'")

    assert code == 1
    assert "nonsense" in out


def test_a_configuration_gives_the_table_of_the_part(tmp_path, capfd):
    (tmp_path / "wer.toml").write_text("[optimizer.grpo]\nnonsense = 1\n")

    code, out = check(capfd, "grpo", f"--config={tmp_path / 'wer.toml'}")

    assert code == 1 or "nonsense" in out
    assert "unknown key 'nonsense' in [optimizer.grpo]" in out


def test_a_verifier_is_checked_on_the_environment_that_names_it(install, capfd):
    install("wer-plugin-till", _TILL.replace("till.Total", "till.Everything"))

    code, out = check(capfd, "till_total", "--sandbox=process", "--tasks=1")

    assert code == 1
    assert "verifier till_total on till" in out
    assert "the verifier accepts doing nothing on all 1 tasks that were tried" in out


def test_a_verifier_that_no_environment_names_asks_for_one(install, capfd):
    install("wer-plugin-lone", "@hookimpl\ndef wer_verifiers():\n    return {'lone': object}\n")

    code, out = check(capfd, "lone")

    assert code == 0
    assert "no installed environment names it as its own; give one with --env" in out
