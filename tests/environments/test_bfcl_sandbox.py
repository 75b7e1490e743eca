import json

import attrs
import pytest

import wer_docker
from wer.records import End, Task, ToolCall, Trajectory
from wer_bfcl import benchmark
from wer_bfcl.reference import reference
from wer_bfcl_checker.official import BfclChecker

NOBODY = Trajectory(messages=(), steps=(), end=End(by="agent"), seed=0)


def task_with(env, domain: str, tool: str) -> Task:
    return next(task for task in env.tasks(domain, "test") if tool in {spec.name for spec in task.tools})


async def follow_the_reference(env, task, pool):
    session = await env.open(task, await pool.lease(), {}, 0)
    try:
        await session.begin()
        for calls in reference(benchmark.load(), task):
            if calls:
                await session.call(calls)
            await session.say("done")
        return await session.evidence()
    finally:
        await session.close()


async def expected(env, task, pool):
    episode = await pool.lease()
    try:
        return await env.expect(task, episode)
    finally:
        await episode.close()


async def answers(env, task, pool, *calls: ToolCall):
    session = await env.open(task, await pool.lease(), {}, 0)
    try:
        await session.begin()
        answer = await session.call(calls)
        return [observation.text for observation in answer.observations], await session.evidence()
    finally:
        await session.close()


async def test_two_episodes_of_one_task_give_equal_evidence(bfcl, bfcl_pool):
    task = bfcl.tasks("travel_booking", "test")[0]

    first = await follow_the_reference(bfcl, task, bfcl_pool)
    second = await follow_the_reference(bfcl, task, bfcl_pool)

    assert first == second


async def test_an_episode_never_sees_what_another_did(bfcl, bfcl_pool):
    task = task_with(bfcl, "file_system", "mkdir")
    _, untouched = await answers(bfcl, task, bfcl_pool, ToolCall(name="pwd", arguments={}))

    await answers(bfcl, task, bfcl_pool, ToolCall(name="mkdir", arguments={"dir_name": "mine"}))
    _, after = await answers(bfcl, task, bfcl_pool, ToolCall(name="pwd", arguments={}))

    assert after.turns[0].state == untouched.turns[0].state


async def test_a_logarithm_of_absurd_precision_is_refused(bfcl, bfcl_pool):
    task = task_with(bfcl, "trading_bot", "logarithm")
    absurd = ToolCall(name="logarithm", arguments={"value": 2, "base": 3, "precision": 10**9})

    texts, _ = await answers(bfcl, task, bfcl_pool, absurd)

    assert texts == ["Error during execution: precision must be at most 4300, got 1000000000"]


async def test_a_folder_copied_into_itself_for_ever_is_data(bfcl, bfcl_pool):
    task = task_with(bfcl, "file_system", "cp")
    knot = [
        ToolCall(name="mkdir", arguments={"dir_name": "a"}),
        ToolCall(name="cp", arguments={"source": "a", "destination": "a"}),
        ToolCall(name="find", arguments={"path": "."}),
    ]

    texts, evidence = await answers(bfcl, task, bfcl_pool, *knot)

    assert texts[-1].startswith("Error during execution: maximum recursion depth exceeded")
    assert "$too_large" in evidence.turns[0].state["GorillaFileSystem"]["root"]


def doubled(times: int) -> list[ToolCall]:
    """Each time, a folder that holds the last one twice, without copying anything."""

    def call(name: str, **arguments: str) -> ToolCall:
        return ToolCall(name=name, arguments=arguments)

    calls = [call("mkdir", dir_name="a0")]
    for number in range(times):
        inner, twin, outer = f"a{number}", f"b{number}", f"a{number + 1}"
        calls += [call("cp", source=inner, destination=twin), call("mkdir", dir_name=outer)]
        calls += [call("mv", source=name, destination=outer) for name in (inner, twin)]
    return calls


async def test_a_tool_that_would_run_for_hours_is_stopped_and_is_data(bfcl, bfcl_pool):
    task = task_with(bfcl, "file_system", "du")
    size = ToolCall(name="du", arguments={})

    texts, evidence = await answers(bfcl, task, bfcl_pool, *doubled(40), size)

    assert texts[-1] == "Error during execution: the call took more than 2 seconds"
    assert "$too_large" in evidence.turns[0].state["GorillaFileSystem"]["root"]


async def test_code_in_an_argument_stays_text(bfcl, bfcl_pool):
    task = task_with(bfcl, "file_system", "mkdir")
    code = ToolCall(name="grep", arguments={"file_name": "__import__('os').getcwd()", "pattern": "x"})

    texts, _ = await answers(bfcl, task, bfcl_pool, code)

    assert texts == ["""{"error": "grep: __import__('os').getcwd(): No such file or directory"}"""]


async def test_the_day_of_the_run_changes_no_age(bfcl, bfcl_pool):
    task = next(
        task
        for task in bfcl.tasks("travel_booking", "test")
        if "user_first_name" in task.setup["initial_config"].get("TravelAPI", {})
    )
    person = task.setup["initial_config"]["TravelAPI"]
    born = ToolCall(
        name="verify_traveler_information",
        arguments={
            "first_name": person["user_first_name"],
            "last_name": person["user_last_name"],
            "date_of_birth": "2008-03-24",
            "passport_number": "US1",
        },
    )
    day_before = attrs.evolve(born, arguments={**born.arguments, "date_of_birth": "2008-03-23"})

    texts, _ = await answers(bfcl, task, bfcl_pool, born, day_before)

    assert "at least 18" in texts[0]
    assert texts[1] == '{"verification_status": true}'


@pytest.mark.parametrize("text", ["\ud800", "\x00", "\n{}", "é漢🙂"])
async def test_odd_text_comes_back_as_it_was(bfcl, bfcl_pool, text):
    task = task_with(bfcl, "file_system", "echo")
    odd = ToolCall(name="echo", arguments={"content": text})

    texts, _ = await answers(bfcl, task, bfcl_pool, odd, ToolCall(name=text, arguments={text: text}))

    assert json.loads(texts[0]) == {"terminal_output": text}
    assert texts[1] == f"Error during execution: name {text!r} is not defined"


@pytest.mark.docker
async def test_references_pass_in_a_container_too(bfcl):
    pool = await wer_docker.wer_sandboxes()["docker"]().start(bfcl.sandbox("file_system"), workers=1)
    try:
        for domain in bfcl.domains():
            task = bfcl.tasks(domain, "test")[0]

            evidence = await follow_the_reference(bfcl, task, pool)
            expect = await expected(bfcl, task, pool)

            assert BfclChecker().judge(task, NOBODY, evidence, expect).passed
    finally:
        await pool.close()
