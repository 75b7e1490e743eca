import shutil

import pytest

from wer import doctor


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WER_CACHE", str(tmp_path / "cache"))


def found():
    return {finding.what: finding for finding in doctor.check()}


def test_every_finding_that_is_not_fine_has_a_remedy():
    findings = doctor.check()

    assert all(finding.remedy for finding in findings if finding.status != "ok")
    assert {"python", "gpu", "API keys", "disk of the cache", "bubblewrap"} <= {f.what for f in findings}


def test_keys_are_named_and_their_values_never_shown(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")

    assert "OPENAI_API_KEY" in found()["API keys"].detail
    assert not any("secret" in repr(finding) for finding in doctor.check())


def test_a_full_disk_fails(monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: type("Usage", (), {"free": 1 << 20}))

    assert found()["disk of the cache"].status == "fail"


def test_a_model_that_is_not_here_says_how_to_get_it():
    finding = found()["model smollm2-135m"]

    assert finding.remedy.startswith("wer models pull smollm2-135m")


def test_a_vllm_is_named_with_its_version(tmp_path, monkeypatch):
    (tmp_path / "lib/python3.11/site-packages/vllm-0.29.0.dist-info").mkdir(parents=True)
    program = tmp_path / "bin" / "vllm"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("WER_VLLM", str(program))

    assert found()["vllm"].detail == f"0.29.0, {program}"


def test_a_vllm_that_is_missing_comes_with_the_remedy(monkeypatch):
    monkeypatch.setenv("WER_VLLM", "/nowhere/vllm")

    finding = found()["vllm"]
    assert (finding.status, finding.detail) == ("warn", "WER_VLLM is '/nowhere/vllm', which is no program")
    assert finding.remedy.startswith("Install it into an environment of its own")


def test_a_gpu_whose_driver_fails_is_a_warning(tmp_path, monkeypatch):
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\nexit 9\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    assert found()["gpu"].status == "warn"


def test_a_gpu_is_named(tmp_path, monkeypatch):
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'NVIDIA X1, 80000 MiB'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    assert found()["gpu"].detail == "NVIDIA X1, 80000 MiB"


def test_without_docker_daemon_another_sandbox_is_named(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "tcp://nowhere:2375")

    finding = found()["sandbox docker"]

    assert finding.status in ("warn", "fail") and finding.detail and finding.remedy
