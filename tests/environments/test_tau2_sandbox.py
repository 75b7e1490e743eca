import asyncio

import pytest
from support.scripted_user import STOP, ScriptedUser
from support.tau2_scripts import Event, play, reference

import wer_docker
from wer.loop.following import Following
from wer.loop.noop import NoOp
from wer.records import NO_SKILL, End, Task, ToolCall
from wer_tau2_reward.verifier import Tau2Reward

DOES_NOTHING = {
    "airline": {0, 1, 4, 5, 6, 10, 13, 26, 28, 31, 34, 36, 41, 43, 45, 46, 47, 48, 49},
    "retail": {10, 12, 25, 50, 57, 65, 105},
    "telecom": set(),
}


async def answers(env, task, pool, *calls: ToolCall):
    script = [
        Event(by="user", text="Hello."),
        *(Event(by="agent", calls=(call,)) for call in calls),
        Event(by="agent", text="Done."),
        Event(by="user", text=STOP),
    ]
    trajectory, evidence = await play(env, task, script, await pool.lease())
    return [seen.text for step in trajectory.steps for seen in step.observations], evidence


async def verdict(env, task: Task, trajectory, evidence, pool):
    episode = await pool.lease()
    try:
        expect = await env.expect(task, episode)
    finally:
        await episode.close()
    return Tau2Reward().judge(task, trajectory, evidence, expect)


@pytest.mark.parametrize(
    "expression", ["9**9**9", "9**9**9**9", "(9**9**9)*(9**9**9)", "9" * 400_000 + "**9"]
)
async def test_a_calculation_that_would_never_end_is_stopped_and_is_data(tau2, tau2_pool, expression):
    task = tau2.tasks("airline", "test")[0]
    endless = ToolCall(name="calculate", arguments={"expression": expression})
    fair = ToolCall(name="calculate", arguments={"expression": "2 * (3 + 4)"})

    texts, evidence = await answers(tau2, task, tau2_pool, endless, fair)

    assert texts[0].startswith("Error: ")
    assert texts[1] == "14.0"
    assert evidence.end == End(by="user", why="stop")


async def test_the_time_limit_of_a_call_is_what_the_agent_reads(tau2, tau2_pool):
    task = tau2.tasks("airline", "test")[0]

    texts, _ = await answers(
        tau2, task, tau2_pool, ToolCall(name="calculate", arguments={"expression": "9**9**9"})
    )

    assert texts == ["Error: the call took more than 2 seconds"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"user_id": 7},
        {"user_id": None},
        {"user_id": {"a": [1]}},
        {"user_id": ["x"]},
        {},
        {"user": "x"},
        {"user_id": "x", "requestor": "user"},
        {"user_id": "x", "tool_name": "y", "self": 1},
        {"user_id": "x" * 900_000},
        {"user_id": "__import__('os').getcwd()"},
        {"user_id": "\ud800"},
    ],
    ids=str,
)
async def test_arguments_of_the_wrong_type_are_an_observation(tau2, tau2_pool, arguments):
    task = tau2.tasks("airline", "test")[0]

    texts, evidence = await answers(
        tau2, task, tau2_pool, ToolCall(name="get_user_details", arguments=arguments)
    )

    assert texts[0].startswith("Error: ")
    assert evidence.end == End(by="user", why="stop")


async def test_two_episodes_of_one_task_give_equal_evidence(tau2, tau2_pool):
    for domain in tau2.domains():
        task = tau2.tasks(domain, "test")[0]

        first = await play(tau2, task, reference(task), await tau2_pool.lease())
        second = await play(tau2, task, reference(task), await tau2_pool.lease())

        assert first == second


async def test_bills_get_the_same_ids_in_every_episode(tau2, tau2_pool):
    task = next(
        task
        for task in tau2.tasks("telecom", "test")
        if "refuel_data" in {event.calls[0].name for event in reference(task) if event.calls}
    )

    _, first = await play(tau2, task, reference(task), await tau2_pool.lease())
    _, second = await play(tau2, task, reference(task), await tau2_pool.lease())

    assert first.turns[-1].state["db"] == second.turns[-1].state["db"]


async def test_what_the_user_does_is_seen_by_the_agents_tools_and_by_the_verdict(tau2, tau2_pool):
    task = next(task for task in tau2.tasks("telecom", "test") if "airplane_mode_on" in task.id)
    whole = reference(task)
    without = [event for event in whole if not (event.by == "user" and event.calls)]

    trajectory, evidence = await play(tau2, task, whole, await tau2_pool.lease())
    alone, less = await play(tau2, task, without, await tau2_pool.lease())

    assert (await verdict(tau2, task, trajectory, evidence, tau2_pool)).passed
    assert not (await verdict(tau2, task, alone, less, tau2_pool)).passed


async def test_the_user_is_told_the_packages_words_and_its_scenario(tau2, tau2_pool):
    task = tau2.tasks("telecom", "test")[0]
    user = ScriptedUser("Hello.")
    session = await tau2.open(task, await tau2_pool.lease(), {"user": user}, 0)
    await session.begin()
    await session.close()

    system, greeting = user.asked[0][0]
    assert "<scenario>" in system.content
    assert STOP in system.content
    assert greeting.content == "Hi! How can I help you today?"
    assert len(user.asked[0][1]) == 30


async def test_the_telecom_user_has_other_guidelines_than_one_without_tools(tau2, tau2_pool):
    prompts = []
    for domain in ("airline", "telecom"):
        user = ScriptedUser("Hello.")
        session = await tau2.open(tau2.tasks(domain, "test")[0], await tau2_pool.lease(), {"user": user}, 0)
        await session.begin()
        await session.close()
        prompts.append(user.asked[0][0][0].content.partition("<scenario>")[0])

    assert prompts[0] != prompts[1]


@pytest.mark.slow
@pytest.mark.parametrize("domain", DOES_NOTHING)
async def test_doing_nothing_passes_exactly_the_tasks_that_it_is_known_to_pass(tau2, tau2_pool, domain):
    passed = set()
    for task in [*tau2.tasks(domain, "train"), *tau2.tasks(domain, "test")]:
        session = await tau2.open(task, await tau2_pool.lease(), {"user": ScriptedUser("Hello.")}, 0)
        trajectory = await NoOp().execute(task, NO_SKILL, session, 0)
        evidence = await session.evidence()
        await session.close()
        if (await verdict(tau2, task, trajectory, evidence, tau2_pool)).passed:
            passed.add(int(task.setup["id"]))

    assert passed == DOES_NOTHING[domain]


@pytest.mark.slow
async def test_many_episodes_that_end_at_once_all_give_their_evidence(tau2, tau2_pool):
    tasks = tau2.tasks("airline", "test")[:24]
    episodes = [await tau2_pool.lease() for _ in tasks]

    played = await asyncio.gather(
        *(play(tau2, task, reference(task), episode) for task, episode in zip(tasks, episodes, strict=True))
    )

    assert {evidence.end for _, evidence in played} == {End(by="user", why="stop")}


@pytest.mark.docker
async def test_references_pass_in_a_container_too(tau2):
    pool = await wer_docker.wer_sandboxes()["docker"]().start(tau2.sandbox("airline"), workers=1)
    try:
        for domain in tau2.domains():
            task = tau2.tasks(domain, "test")[0]

            trajectory, evidence = await play(tau2, task, reference(task), await pool.lease())

            assert (await verdict(tau2, task, trajectory, evidence, pool)).passed
    finally:
        await pool.close()


@pytest.mark.slow
async def test_calls_that_are_given_as_a_reference_pass_without_a_word_to_the_user(tau2, tau2_pool):
    solved = []
    for domain in ("airline", "retail"):
        tasks = [task for task in tau2.tasks(domain, "train") if tau2.reference(task) is not None]
        for task in tasks:
            session = await tau2.open(task, await tau2_pool.lease(), {"user": ScriptedUser("Hello.")}, 0)
            trajectory = await Following(calls=tau2.reference(task)).execute(task, NO_SKILL, session, 0)
            evidence = await session.evidence()
            await session.close()
            solved.append((await verdict(tau2, task, trajectory, evidence, tau2_pool)).passed)

    assert len(solved) > 20
    assert all(solved)


def test_a_task_that_calls_of_the_agent_alone_cannot_solve_has_no_reference(tau2):
    counts = {
        domain: sum(
            tau2.reference(task) is not None
            for split in ("train", "test")
            for task in tau2.tasks(domain, split)
        )
        for domain in tau2.domains()
    }

    assert counts == {"airline": 44, "retail": 76, "telecom": 20}
