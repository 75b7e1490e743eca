"""What a hostile episode can't do, in every tier."""

import os

import pytest
import pytest_asyncio
from support import tiers

from wer.errors import SandboxError

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module", params=tiers.ALL)
async def pool(request):
    async with tiers.pool(request.param) as started:
        yield started


@pytest_asyncio.fixture(loop_scope="module")
async def episode(pool):
    leased = await pool.lease()
    yield leased
    await leased.close()


@pytest_asyncio.fixture(loop_scope="module")
async def sibling(pool):
    leased = await pool.lease()
    yield leased
    assert await leased.request("count", {}) == 1
    await leased.close()


async def test_it_cannot_fork(episode):
    assert (await episode.request("fork_many", {}))["made"] == 0


async def test_it_cannot_start_threads(episode):
    assert (await episode.request("start_threads", {}))["made"] == 0


async def test_it_cannot_take_more_memory_than_its_limit(episode):
    taken = await episode.request("fill_memory", {"wanted_mb": 1024})

    assert taken["stopped"] == "MemoryError"
    assert taken["got_mb"] << 20 <= tiers.SMALL


async def test_it_cannot_fill_the_disk(episode):
    assert await episode.request("fill_tmp", {}) != "done"


async def test_it_cannot_change_files(episode, tmp_path):
    tmp_path.chmod(0o777)
    target = tmp_path / "target"
    target.touch(0o666)
    places = [
        str(target),
        str(tmp_path / "new"),
        "/tmp/x",
        "/dev/shm/x",
        "/etc/passwd",
        "/root/x",
        "/var/tmp/x",
    ]
    places += ["/proc/sys/kernel/core_pattern", "/proc/self/oom_score_adj", "/proc/self/mem"]

    changed = await episode.request("write_files", {"paths": places})

    assert "done" not in changed.values(), changed


async def test_it_cannot_read_the_hosts_files(episode, tmp_path):
    tmp_path.chmod(0o755)
    secret = tmp_path / "secret"
    secret.write_text("secret")
    places = [
        str(secret),
        "/etc/passwd",
        "/etc/shadow",
        "/etc/hostname",
        "/proc/1/environ",
        "/proc/self/environ",
    ]
    places += ["/proc/self/maps", "/proc/kcore", "/proc/meminfo", "/sys/kernel/notes", __file__]

    read = await episode.request("read_files", {"paths": places})

    assert "done" not in read.values(), read


async def test_it_holds_no_file_but_its_own_connection_and_output(episode):
    assert await episode.request("open_files", {}) == [0, 1, 2, 3]


async def test_it_cannot_reach_any_network(episode):
    reached = await episode.request("sockets", {"host_socket": "/run/wer/host.sock"})

    assert "done" not in reached.values(), reached
    assert "ECONNREFUSED" not in reached.values(), reached


async def test_it_cannot_reach_into_a_sibling_or_the_kernel(episode, sibling):
    victim = await sibling.request("pid", {})

    reached = await episode.request("calls", {"sibling": victim})

    assert "done" not in reached.values(), reached


async def test_it_cannot_signal_anybody(episode, sibling):
    reached = await episode.request("signals", {"sibling": await sibling.request("pid", {})})

    assert "done" not in reached.values(), reached


async def test_it_cannot_slow_a_sibling_down(episode, sibling):
    reached = await episode.request("reniced", {"sibling": await sibling.request("pid", {})})

    assert "done" not in reached.values(), reached


async def test_it_is_nobody_and_leaves_no_core_file(episode):
    limits = await episode.request("limits", {})

    assert limits["uid"] == (65534 if os.geteuid() == 0 else limits["uid"])
    assert limits["core"] == 0


async def test_words_that_nobody_asked_for_end_the_episode(pool):
    leased = await pool.lease()

    with pytest.raises(SandboxError) as heard:
        await leased.request("babble", {"text": "no json\n"})

    assert heard.value.cause == "protocol"


async def test_a_forged_answer_to_another_request_ends_the_episode(pool):
    leased = await pool.lease()

    with pytest.raises(SandboxError, match="something else") as heard:
        await leased.request("babble", {"text": '{"id": 99, "result": 1}\n'})

    assert heard.value.cause == "protocol"


async def test_nesting_without_end_is_no_answer(pool):
    leased = await pool.lease()

    with pytest.raises(SandboxError) as heard:
        await leased.request("babble", {"text": "[" * 200_000 + "\n"})

    assert heard.value.cause == "protocol"


async def test_a_line_without_end_is_cut_off(pool):
    leased = await pool.lease()

    with pytest.raises(SandboxError, match="longer than") as heard:
        await leased.request("flood", {})

    assert heard.value.cause == "protocol"
