"""Nothing stays on the machine: not after closing, not after a failure, not after ``kill -9``."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from support import census, tiers

from wer.errors import SandboxError
from wer.sandboxing.owners import Owner

EVERY = pytest.mark.parametrize("tier", tiers.ALL)
DRIVER = """
import asyncio, sys
sys.path[:0] = [{tests!r}]
from support import tiers

async def drive():
    async with tiers.pool({tier!r}, workers=2) as pool:
        episode = await pool.lease()
        await episode.request("count", {{}})
        print("driving", flush=True)
        await episode.request("hang", {{}}, timeout_s=600)

asyncio.run(drive())
"""


def left(tier, owner=None):
    kept = [*census.servers(tier, owner), *census.folders(owner)]
    return kept + (census.containers(owner) if tier == "docker" else [])


async def settled(tier, owner=None):
    """What is left after the kernel had a moment to bury."""
    for _ in range(100):
        if not left(tier, owner):
            return []
        await asyncio.sleep(0.1)
    return left(tier, owner)


@EVERY
async def test_closing_leaves_nothing_even_with_episodes_at_work(tier):
    async with tiers.pool(tier, workers=2) as pool:
        episodes = [await pool.lease() for _ in range(4)]
        hung = asyncio.create_task(episodes[0].request("hang", {}))
        assert left(tier)

    with pytest.raises(SandboxError):
        await hung
    assert await settled(tier) == []


@EVERY
async def test_closing_twice_is_no_error(tier):
    async with tiers.pool(tier) as pool:
        await pool.close()

    assert await settled(tier) == []


@EVERY
async def test_a_failed_start_leaves_nothing(tier):
    with tiers.path_of(tier), pytest.raises(SandboxError):
        await tiers.sandbox(tier).start(tiers.spec(domain="wer_attacked:Unloadable"), 2)

    assert await settled(tier) == []


@EVERY
async def test_a_cancelled_start_leaves_nothing(tier):
    with tiers.path_of(tier):
        starting = asyncio.create_task(tiers.sandbox(tier).start(tiers.spec(), 2))
        await asyncio.sleep(0.3)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await (await starting).close()
            raise asyncio.CancelledError  # it was quicker than the cancellation

    assert await settled(tier) == []


@EVERY
async def test_reaping_after_a_killed_driver_leaves_nothing(tier):
    program = DRIVER.format(tests=str(Path(__file__).parents[1]), tier=tier)
    driver = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=subprocess.PIPE)
    assert await driver.stdout.readline() == b"driving\n"
    assert left(tier, driver.pid)

    driver.kill()
    await driver.wait()
    reaped = tiers.sandbox(tier).reap()

    assert any(str(driver.pid) in line for line in reaped)
    assert await settled(tier, driver.pid) == []


@EVERY
async def test_reaping_spares_the_living(tier):
    async with tiers.pool(tier) as pool:
        reaped = tiers.sandbox(tier).reap()

        episode = await pool.lease()
        assert await episode.request("count", {}) == 1
        assert not any(str(folder) in line for line in reaped for folder in census.folders())
        await episode.close()


def test_an_owner_is_dead_only_when_that_is_certain():
    me = Owner.me().write()

    assert not Owner.read(me).dead
    assert Owner.read(me | {"start": "1"}).dead, "the pid belongs to somebody else now"
    assert Owner.read(me | {"boot": "an earlier one"}).dead
    assert not Owner.read(me | {"space": "another", "start": "1"}).dead, "its pids say nothing here"
    assert not Owner.read({}).dead


def test_half_made_folders_and_folders_of_others_are_left_alone(tmp_path, monkeypatch):
    from wer.sandboxing import scratch

    monkeypatch.setattr(scratch.tempfile, "gettempdir", lambda: str(tmp_path))
    (tmp_path / "wer-sandbox-half").mkdir()

    assert scratch.reap_folders() == []
    assert (tmp_path / "wer-sandbox-half").is_dir()


def test_any_folder_of_a_process_that_was_killed_goes_at_the_next_start(tmp_path, monkeypatch):
    from wer.sandboxing import scratch

    monkeypatch.setattr(scratch.tempfile, "tempdir", str(tmp_path))
    mine, dead = scratch.scratch_folder("agent"), scratch.scratch_folder("agent")
    note = dead / "owner.json"
    note.write_text(json.dumps(json.loads(note.read_text()) | {"start": "1"}))

    assert len(scratch.reap_folders()) == 1
    assert mine.is_dir() and not dead.exists()
