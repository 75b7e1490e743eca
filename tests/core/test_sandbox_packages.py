"""Which of the user's code is copied into a sandbox."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from wer.domain import Domain
from wer.errors import DomainError, SandboxError
from wer.records import SandboxSpec
from wer.sandboxing.recipe import folders


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of the user's, on the path."""
    monkeypatch.setenv("WER_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").write_text("N = 1\n")
    yield tmp_path / "mine"
    sys.modules.pop("mine", None)


def spec(*packages):
    return SandboxSpec(name="mine", domain="wer_sandbox.state:world", packages=packages)


def test_a_package_that_is_named_twice_is_copied_once(package):
    [code] = folders(spec("mine", str(package), f"{package}/"))

    assert (code / "mine" / "__init__.py").read_text() == "N = 1\n"
    assert sorted(each.name for each in code.iterdir() if each.is_dir()) == ["mine", "wer_sandbox"]


def test_two_packages_of_one_name_are_refused_with_both(package):
    (package / "mine").mkdir()

    with pytest.raises(SandboxError, match=r"two packages of the name 'mine': .*rename one, or leave it out"):
        folders(spec("mine", str(package / "mine")))


def test_a_package_that_is_not_there_is_refused(package):
    with pytest.raises(SandboxError, match=r"is not there \(expected a folder or a file\)\. Check its path"):
        folders(spec(str(package / "gone")))
    with pytest.raises(SandboxError, match=r"'gone' is not installed .*write the path of a folder"):
        folders(spec("gone"))


def test_packages_of_a_domain_may_be_paths_and_are_a_list():
    def check(task, end):
        return True

    assert Domain(tasks="t.jsonl", check=check, packages=[Path("/x/mine")]).packages == ("/x/mine",)
    with pytest.raises(DomainError, match=r"takes lists of packages.*Write \['/x/mine'\]"):
        Domain(tasks="t.jsonl", check=check, packages=Path("/x/mine"))
