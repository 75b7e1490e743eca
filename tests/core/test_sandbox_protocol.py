"""What an episode promises to a session, in every tier."""

import asyncio

import pytest
import pytest_asyncio
from support import tiers

from wer.errors import SandboxError

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module", params=tiers.ALL)
async def pool(request):
    async with tiers.pool(request.param, workers=2) as started:
        yield started


@pytest_asyncio.fixture(loop_scope="module")
async def episode(pool):
    leased = await pool.lease()
    yield leased
    await leased.close()


async def test_json_survives_the_way_to_the_sandbox_and_back(episode):
    value = {"text": "über\n\u2028", "list": [1, 2.5, None, True], "deep": {"er": {"est": []}}}

    assert await episode.request("echo", {"value": value}) == value


async def test_one_megabyte_of_text_is_no_trouble(episode):
    text = "x" * (1 << 20)

    assert await episode.request("echo", {"value": text}) == text


async def test_an_episode_keeps_its_state_between_requests(episode):
    await episode.request("count", {"by": 2})

    assert await episode.request("count", {"by": 3}) == 5


async def test_concurrent_episodes_do_not_share_state(pool):
    async def count(times):
        leased = await pool.lease()
        totals = [await leased.request("count", {}) for _ in range(times)]
        await leased.close()
        return totals[-1]

    assert await asyncio.gather(*(count(times) for times in range(1, 9))) == list(range(1, 9))


async def test_requests_to_one_episode_wait_for_their_turn(episode):
    totals = await asyncio.gather(*(episode.request("count", {}) for _ in range(20)))

    assert sorted(totals) == list(range(1, 21))


@pytest.mark.parametrize("method", ["hidden", "total", "__class__", "exposed", "no_such"])
async def test_a_method_that_is_not_exposed_is_refused(episode, method):
    with pytest.raises(SandboxError, match=f"no method {method!r}") as refused:
        await episode.request(method, {})

    assert refused.value.cause == "protocol"


async def test_an_exception_of_the_domain_is_reported_by_its_name(episode):
    with pytest.raises(SandboxError, match="KeyError: 'a mistake in the domain'") as raised:
        await episode.request("raise_error", {})

    assert raised.value.cause == "protocol"
    assert "raise_error" in raised.value.stderr_tail
    assert await episode.request("count", {}) == 1


async def test_wrong_parameters_are_reported_and_the_episode_lives(episode):
    with pytest.raises(SandboxError, match="TypeError"):
        await episode.request("count", {"wrong": 1})

    assert await episode.request("count", {}) == 1


async def test_a_result_that_is_no_json_is_reported(episode):
    with pytest.raises(SandboxError, match="not JSON serializable"):
        await episode.request("unsayable", {})


async def test_a_request_longer_than_a_line_is_refused_before_it_is_sent(episode):
    with pytest.raises(SandboxError, match="cannot be sent"):
        await episode.request("echo", {"value": "x" * (17 << 20)})

    assert await episode.request("count", {}) == 1


async def test_output_of_the_domain_does_not_disturb_the_protocol(episode):
    assert (
        await episode.request("chatter", {"text": '{"id": 1, "result": "forged"}\n' * 50, "times": 200})
        == "said"
    )


async def test_modules_may_be_imported_late(episode):
    assert await episode.request("late_import", {}) == ["decimal", "sqlite3"]


async def test_a_closed_episode_refuses_requests_and_may_be_closed_again(pool):
    leased = await pool.lease()
    await leased.close()
    await leased.close()

    with pytest.raises(SandboxError, match="after the episode was closed"):
        await leased.request("count", {})


async def test_a_cancelled_request_leaves_no_answer_for_the_next(pool):
    leased = await pool.lease()
    waiting = asyncio.create_task(leased.request("hang", {}))
    await asyncio.sleep(0.05)
    waiting.cancel()

    with pytest.raises(asyncio.CancelledError):
        await waiting
    with pytest.raises(SandboxError):
        await leased.request("count", {})


async def test_the_environment_holds_nothing_of_the_users(pool, episode, monkeypatch):
    environment = await episode.request("environment", {})

    assert not {name for name in environment if "KEY" in name or "TOKEN" in name or name == "HOME"} - {"HOME"}
    assert environment["PYTHONHASHSEED"] == "0"
    assert await episode.request("clock_zone", {}) == "UTC"


async def test_the_tier_names_every_layer_of_an_episode(pool):
    for layer in ("resource limits", "no new privileges", "landlock", "seccomp"):
        assert layer in pool.tier
