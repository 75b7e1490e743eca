"""What dies is named, in bounded time, and the next lease works, in every tier."""

import asyncio
import contextlib
import os
import signal
import time

import pytest
import pytest_asyncio
from support import census, tiers

from wer.errors import SandboxError

pytestmark = pytest.mark.asyncio(loop_scope="module")
BOUND_S = 15.0
"""Generous: a time-out of the test itself would say nothing about who was slow."""


@pytest_asyncio.fixture(loop_scope="module", scope="module", params=tiers.ALL)
async def tier(request):
    return request.param


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def pool(tier):
    """One for all tests: each must leave it in working order."""
    async with tiers.pool(tier) as started:
        yield started


async def expect_error(awaitable):
    began = time.monotonic()
    with pytest.raises(SandboxError) as met:
        await awaitable
    assert time.monotonic() - began < BOUND_S
    return met.value


async def works(pool):
    episode = await pool.lease()
    try:
        return await episode.request("count", {}) == 1
    finally:
        await episode.close()


async def test_a_hung_call_is_hung_and_its_child_is_gone(pool):
    episode = await pool.lease()

    error = await expect_error(episode.request("hang", {}, timeout_s=0.5))

    assert error.cause == "hung"
    assert (await expect_error(episode.request("count", {}))).cause == "hung"
    assert await works(pool)


@pytest.mark.parametrize("how", [{"number": "segv"}, {"number": 7}])
async def test_a_child_that_dies_is_dead_and_its_last_words_are_told(pool, how):
    episode = await pool.lease()

    error = await expect_error(episode.request("die", how))

    assert error.cause == "dead"
    assert ("SIGSEGV" in str(error)) or ("exit status 7" in str(error))
    assert "my last words" in error.stderr_tail
    assert await works(pool)


async def test_a_child_that_leaves_is_dead(pool):
    error = await expect_error((await pool.lease()).request("leave", {}))

    assert error.cause == "dead"


async def test_one_dead_child_does_not_touch_the_others(pool):
    survivor, victim = await pool.lease(), await pool.lease()
    await survivor.request("count", {})

    await expect_error(victim.request("die", {"number": 1}))

    assert await survivor.request("count", {}) == 2


async def test_a_domain_that_cannot_be_loaded_shows_its_traceback(tier):
    with tiers.path_of(tier):
        starting = tiers.sandbox(tier).start(tiers.spec(domain="wer_attacked:Unloadable"), 1)

        error = await expect_error(starting)

    assert error.cause == "start"
    assert "RuntimeError: this domain cannot be loaded" in error.stderr_tail


async def test_a_domain_that_exposes_what_it_lacks_is_refused(tier):
    with tiers.path_of(tier):
        error = await expect_error(tiers.sandbox(tier).start(tiers.spec(domain="wer_attacked:Ill"), 1))

    assert "exposes ['missing']" in error.stderr_tail


async def test_a_package_that_is_not_there_is_named(tier):
    error = await expect_error(tiers.sandbox(tier).start(tiers.spec(packages=("no_such_package",)), 1))

    assert error.cause == "start"
    assert "'no_such_package' is not installed" in str(error)


async def test_a_closed_pool_leases_nothing(tier):
    async with tiers.pool(tier) as pool:
        pass

    assert "was closed" in str(await expect_error(pool.lease()))


async def test_a_killed_worker_takes_its_episodes_along_and_is_replaced(pool, tier):
    waiting = asyncio.create_task((await pool.lease()).request("hang", {}))
    await asyncio.sleep(0.2)

    for pid in census.servers(tier):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    assert (await expect_error(waiting)).cause == "dead"
    assert await works(pool)


async def test_a_stopped_worker_is_hung_and_replaced(pool, tier):
    episode = await pool.lease()
    for pid in census.servers(tier):
        os.kill(pid, signal.SIGSTOP)

    assert (await expect_error(episode.request("hang", {}, timeout_s=0.5))).cause == "hung"
    assert await works(pool)
