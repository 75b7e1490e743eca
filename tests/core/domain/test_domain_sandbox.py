"""A user's class in the real sandboxes."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest
from support import tiers

from wer import plugins
from wer.errors import DomainError, SandboxError
from wer.loop.following import Following
from wer.records import NO_SKILL, ToolCall

COUNT = ToolCall(name="count", arguments={"n": 2})
COUNTING = """def __init__(self, n=0):
    self.n = n
def count(self, n: int) -> int:
    '''Count.'''
    self.n += n
    return self.n"""


def made(reference):
    return plugins.load().environments.make(reference, {})


@asynccontextmanager
async def pool_of(env, tier="process"):
    with tiers.path_of(tier):
        pool = await tiers.sandbox(tier).start(env.sandbox(""), 1)
        try:
            yield pool
        finally:
            await pool.close()


async def opened(env, task, pool):
    return await env.open(task, await pool.lease(), {}, 0)


@pytest.mark.parametrize("tier", tiers.ALL)
async def test_every_reference_of_the_example_passes_its_check_and_doing_nothing_only_where_nothing_is_to_do(
    shop, tier
):
    verifier = plugins.load().verifiers.make(shop.verifier())
    passed, idle = set(), set()
    async with pool_of(shop, tier) as pool:
        tasks = [
            task
            for domain in shop.domains()
            for split in ("train", "test")
            for task in shop.tasks(domain, split)
        ]
        for task in tasks:
            for calls, those in ((shop.reference(task), passed), (((),) * len(task.turns), idle)):
                session = await opened(shop, task, pool)
                trajectory = await Following(calls=calls).execute(task, NO_SKILL, session, 0)
                evidence = await session.evidence()
                await session.close()
                if verifier.judge(task, trajectory, evidence, await shop.expect(task, None)).passed:
                    those.add(task.id)

    assert len(tasks) == len(passed) == 8
    assert idle == {"shop/chairs-too-early"}


async def test_two_episodes_at_once_share_nothing(write):
    env = made(
        write(
            COUNTING + "\nseen = []\ndef see(self) -> int:\n    '''See.'''\n    self.seen.append(1)\n"
            "    return len(self.seen)",
            {"id": "a", "query": "Go.", "state": {"n": 1}},
        )
    )
    [task] = env.tasks("world", "test")
    async with pool_of(env) as pool:
        first, second = await opened(env, task, pool), await opened(env, task, pool)
        for session in (first, second):
            await session.begin()
        await first.call([COUNT, ToolCall(name="see", arguments={})])
        answer = await second.call([ToolCall(name="see", arguments={})])
        states = [(await session.evidence()).turns[-1].state for session in (first, second)]
        for session in (first, second):
            await session.close()

    assert states == [{"n": 3}, {"n": 1}]
    assert answer.observations[0].text == "1"


async def test_the_files_beside_a_class_that_it_imports_come_along(write, tmp_path):
    (tmp_path / "beside_prices.py").write_text("import beside_more\nPRICE = beside_more.PRICE\n")
    (tmp_path / "beside_more").mkdir()
    (tmp_path / "beside_more" / "__init__.py").write_text("PRICE = 7\n")
    (tmp_path / "beside_unused.py").write_text("raise RuntimeError\n")
    env = made(
        write(
            "def price(self) -> int:\n    '''Price.'''\n    return beside_prices.PRICE",
            head="import beside_prices",
        )
    )
    [task] = env.tasks("world", "test")
    async with pool_of(env) as pool:
        session = await opened(env, task, pool)
        await session.begin()
        answer = await session.call([ToolCall(name="price", arguments={})])
        await session.close()

    assert answer.observations[0].text == "7"


async def test_a_module_that_uses_more_of_wer_than_the_class_is_still_imported(write):
    head = (
        "from wer import Verdict, hookimpl\nfrom wer.records import ToolCall\nimport wer.contracts\n"
        "@hookimpl\ndef wer_verifiers():\n    return {}\n"
        "class Mine(wer.contracts.Verifier):\n    pass\n"
        "def other(x: Verdict | None) -> ToolCall: ..."
    )
    env = made(write(COUNTING, head=head))
    async with pool_of(env) as pool:
        session = await opened(env, env.tasks("world", "test")[0], pool)
        await session.begin()
        answer = await session.call([COUNT])
        await session.close()

    assert answer.observations[0].text == "2"


async def test_a_library_that_the_sandbox_lacks_is_named(write):
    env = made(write(COUNTING, head="import attrs"))

    with pytest.raises(SandboxError, match="No module named 'attrs'"):
        async with pool_of(env):
            pass


async def test_a_state_that_cannot_be_exported_stops_the_run_with_the_remedy(write):
    env = made(write("def spoil(self) -> None:\n    '''Spoil.'''\n    self.x = object()"))
    async with pool_of(env) as pool:
        session = await opened(env, env.tasks("world", "test")[0], pool)
        await session.begin()
        await session.call([ToolCall(name="spoil", arguments={})])
        with pytest.raises(
            DomainError, match=r"world/a: .*state\.x is of type object.*underscore, or .* export\(\)"
        ):
            await session.say("done")
        await session.close()


async def test_a_task_whose_state_does_not_fit_the_class_is_named(write):
    env = made(write(COUNTING, {"id": "a", "query": "Go.", "state": {"m": 1}}))
    async with pool_of(env) as pool:
        session = await opened(env, env.tasks("world", "test")[0], pool)
        with pytest.raises(DomainError, match=r"world/a: World\(\*\*state\) raised TypeError: .*'m'"):
            await session.begin()
        await session.close()


async def test_an_agent_that_never_stops_calling_is_stopped(write):
    env = made(write(COUNTING))
    async with pool_of(env) as pool:
        session = await opened(env, env.tasks("world", "test")[0], pool)
        await session.begin()
        ends = [(await session.call([COUNT])).end for _ in range(30)]
        evidence = await session.evidence()
        await session.close()

    assert ends[:-1] == [None] * 29
    assert (ends[-1].by, ends[-1].why) == ("environment", "step_limit")
    assert evidence.turns[-1].state == {"n": 60}
