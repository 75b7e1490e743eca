"""What is particular to the process tier."""

import shutil

import pytest
from support import census, tiers

import wer_process


def test_it_is_available_without_any_daemon():
    assert wer_process.wer_sandboxes()["process"]().unavailable() is None


@pytest.mark.parametrize("tier", [tier for tier in tiers.ALL if isinstance(tier, str)])
async def test_its_name_says_that_it_is_weaker_and_what_surrounds_it(tier):
    async with tiers.pool(tier) as pool:
        assert "weaker than docker" in pool.tier
        assert ("in bubblewrap" in pool.tier) == (tier == "bubblewrap")


@pytest.mark.parametrize("tier", [tier for tier in tiers.ALL if isinstance(tier, str)])
async def test_workers_know_none_of_the_users_variables_or_modules(tier, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("PYTHONSTARTUP", "/secret")

    async with tiers.pool(tier, environ={"EXTRA": "given"}) as pool:
        episode = await pool.lease()
        environment = await episode.request("environment", {})
        modules = await episode.request("modules", {})
        await episode.close()

    assert not {"OPENAI_API_KEY", "PYTHONSTARTUP", "HOME", "WER_SANDBOX_KEY"} & set(environment)
    assert environment["EXTRA"] == "given"
    assert not any("site-packages" in folder for folder in modules)


async def test_a_bubblewrap_that_does_not_work_is_not_used(tmp_path, monkeypatch):
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert shutil.which("bwrap") == str(broken)

    pool = await tiers.sandbox("process").start(tiers.spec(), 1)

    assert "without bubblewrap" in pool.tier
    await pool.close()
    assert census.folders() == []
