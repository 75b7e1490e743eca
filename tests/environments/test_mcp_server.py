"""MCP servers good and bad, in every tier: what an agent sees of them, and what they can't do."""

import asyncio
import contextlib
import json
import os
import secrets

import pytest
import pytest_asyncio
from support import tiers
from support.mcp_domain import ask, begun, environment, pool_of

from wer.errors import SandboxError

pytestmark = pytest.mark.asyncio(loop_scope="module")

FORBIDDEN = [
    "fork",
    "run",
    "replace itself",
    "open a socket",
    "survive",
    "read a secret",
    "write elsewhere",
    "leave its folder",
    "look at its siblings",
    "open a file of the host",
    "change a mode",
    "kill",
]


def exists(path: str) -> bool:
    return os.path.exists(path)  # noqa: PTH110 - asked from coroutines


def processes(mark: str) -> set[str]:
    """Pids on this machine, in whatever namespace they are, that were given the mark."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - as above
        with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as environ:  # noqa: PTH123
            if mark.encode() in environ.read():
                found.add(pid)
    return found


async def gone(paths: list[str]) -> bool:
    for _ in range(1000):
        if not any(map(exists, paths)):
            return True
        await asyncio.sleep(0.02)
    return False


@pytest.fixture(scope="module")
def env():
    return environment()


@pytest_asyncio.fixture(loop_scope="module", scope="module", params=tiers.ALL)
async def pool(request, env):
    async with pool_of(env, request.param) as started:
        yield started


@pytest_asyncio.fixture(loop_scope="module")
async def session(env, pool):
    opened = await begun(env, pool)
    yield opened
    await opened.close()


async def test_the_task_finds_its_files_and_its_calls_made(env, pool):
    session = await begun(env, pool, "note")

    assert (await ask(session, "read")).text == "bread\neggs\n"
    await session.close()


async def test_two_episodes_at_once_never_meet(env, pool, session):
    other = await begun(env, pool)
    await ask(session, "add", text="mine")
    await ask(other, "add", text="other")

    first, second = (await session.evidence()).turns[0], (await other.evidence()).turns[0]

    assert first.state == [{"lines": ["mine"]}]
    assert second.state == [{"lines": ["other"]}]
    await other.close()


async def test_the_server_runs_in_a_folder_of_its_own_with_the_words_of_its_command(session):
    folder, home, arguments, files = json.loads((await ask(session, "whereabouts")).text)

    assert folder == home
    assert (arguments, files) == ([], ["server.py"])


async def test_the_server_may_start_threads(session):
    assert (await ask(session, "threads")).text == "1"


@pytest.mark.parametrize("what", FORBIDDEN)
async def test_the_server_is_confined(session, what):
    await ask(session, "add", text="something")

    tried = await ask(session, "attempt", what=what)

    assert tried.text in ("PermissionError", "OSError", "FileNotFoundError"), tried.text


async def test_a_file_larger_than_the_limit_is_cut_and_the_server_given_up(session):
    seen = await ask(session, "attempt", what="make a large file")

    assert seen.text == f"Error: the server's files have more than {1 << 20} bytes"


async def test_what_the_server_asks_in_the_middle_of_a_call_is_answered(session):
    assert json.loads((await ask(session, "asks")).text) == [{}, -32601]


async def test_words_on_stdout_that_are_no_messages_are_skipped(session):
    assert (await ask(session, "chatters")).text == "heard"


async def test_content_that_is_no_text_is_named(session):
    assert (await ask(session, "mixed")).text == "words\n[image, image/png]\npage\na://c"


async def test_an_answer_of_another_form_is_an_error_for_the_agent(session):
    seen = await ask(session, "unreadable")

    assert not seen.ok and "can't be read" in seen.text


async def test_a_tools_own_failure_is_an_error_for_the_agent(session):
    failed, refused = await ask(session, "fails"), await ask(session, "refuses")

    assert (failed.ok, failed.text) == (False, "it did not work")
    assert (refused.ok, refused.text) == (False, "Error: PermissionError: not today")


async def test_unknown_tools_and_wrong_arguments_are_errors_for_the_agent(session):
    unknown, wrong = await ask(session, "nothing"), await ask(session, "add", colour="red")

    assert not unknown.ok and "nothing" in unknown.text
    assert not wrong.ok and "colour" in wrong.text


async def test_a_result_of_ten_megabytes_is_refused_and_the_server_goes_on(session):
    seen = await ask(session, "big", characters=10 << 20)

    assert seen.text == "Error: the result has more than 1000000 characters"
    assert (await ask(session, "read")).ok


async def test_a_line_that_never_ends_is_given_up(session):
    seen = await ask(session, "floods")

    assert "a line of more than" in seen.text


@pytest.mark.parametrize(
    ("tool", "arguments", "how"),
    [
        ("dies", {"status": 3}, "exit status 3"),
        ("crashes", {}, "killed by SIGSEGV"),
        ("hangs_up", {}, "it hung up"),
    ],
)
async def test_a_call_that_ends_the_server_is_the_agents_doing(session, tool, arguments, how):
    seen = await ask(session, tool, **arguments)
    later = await ask(session, "read")
    evidence = await session.evidence()

    assert seen.text == f"Error: the server is gone: {how}" and not seen.ok
    assert later == seen
    assert evidence.turns[0].state == [seen.text]


async def test_a_server_that_wants_more_memory_than_it_may_have_is_told_no(session):
    seen = await ask(session, "fills_memory")

    assert "MemoryError" in seen.text


async def test_a_server_that_writes_more_files_than_it_may_is_given_up(session):
    assert (await ask(session, "writes", files=4, size=200_000)).text == "written"

    seen = await ask(session, "writes", files=8, size=200_000)

    assert seen.text == f"Error: the server's files have more than {1 << 20} bytes"
    assert (await ask(session, "read")) == seen


async def test_the_folder_is_clean_for_the_next_episode(env, pool):
    first = await begun(env, pool)
    await ask(first, "writes", files=2, size=10)
    await first.close()

    second = await begun(env, pool)

    assert json.loads((await ask(second, "whereabouts")).text)[-1] == ["server.py"]
    await second.close()


async def test_the_server_dies_with_its_episode_and_its_folder_goes(env):
    async with pool_of(env, "process") as pool:
        session = await begun(env, pool)
        pid = (await ask(session, "pid")).text
        traces = [f"/proc/{pid}", json.loads((await ask(session, "whereabouts")).text)[0]]
        assert all(map(exists, traces))

        await session.close()

        assert await gone(traces)


@pytest.mark.parametrize("tier", [tier for tier in tiers.ALL if isinstance(tier, str)])
async def test_no_process_of_an_episode_is_left_in_any_tier(tier):
    mark = secrets.token_hex(8)
    env = environment(environ={"WER_TEST_MARK": mark})
    async with pool_of(env, tier) as pool:
        idle = processes(mark)
        session = await begun(env, pool)
        assert len(processes(mark) - idle) == 2  # the episode and its server

        await session.close()

        assert await gone([f"/proc/{pid}" for pid in processes(mark) - idle])


async def test_a_call_that_is_never_answered_breaks_the_episode_and_is_no_verdict():
    env = environment(call_timeout_s=2.0)
    async with pool_of(env, "process") as pool:
        session = await begun(env, pool)

        with pytest.raises(SandboxError, match="gave no answer in 2 s"):
            await ask(session, "sleeps")


@pytest.mark.slow
async def test_a_call_that_computes_for_ever_is_the_agents_doing(env):
    async with pool_of(env, "process") as pool:
        session = await begun(env, pool)

        seen = await ask(session, "spins")

        assert seen.text == "Error: the server is gone: a request took more than 5 CPU seconds"
        await session.close()


async def test_a_server_that_something_outside_kills_breaks_the_episode_and_is_no_verdict(env):
    async with pool_of(env, "process") as pool:
        session = await begun(env, pool)
        pid = int((await ask(session, "pid")).text)

        asyncio.get_running_loop().call_later(0.1, os.kill, pid, 9)
        with pytest.raises(SandboxError, match="something outside killed the MCP server"):
            await ask(session, "sleeps")
