"""The verdicts made from exported data against those of the package's own orchestrator and evaluator."""

import asyncio
import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs
import pytest
from support.scripted_user import STOP
from support.tau2_scripts import Event, Script, play, reference, results

from wer import wheels
from wer.records import Task, ToolCall
from wer_tau2 import benchmark
from wer_tau2.tasks import entry
from wer_tau2_reward.verifier import Tau2Reward

OFFICIAL = Path(__file__).parents[1] / "support" / "official_tau2.py"
VARIANTS = {"airline": 4, "retail": 2, "telecom": 2}
REFERENCES = {"airline": 50, "retail": 114, "telecom": 114}
ENDS = {
    "stop": "user_stop",
    "transfer": "user_stop",
    "out_of_scope": "user_stop",
    "premature_stop": "user_stop",
    "stopped": "left",
    "step_limit": "max_steps",
    "loop": "max_steps",
    "error_limit": "too_many_errors",
    "empty_message": "agent_error",
}


def every_task(env, domain: str) -> list[Task]:
    return [*env.tasks(domain, "train"), *env.tasks(domain, "test")]


# Perturbations: each takes a script and changes it in place.


def drop(script: Script, task: Task, dice: random.Random) -> None:
    script.remove(dice.choice(_acting(script)))


def repeat(script: Script, task: Task, dice: random.Random) -> None:
    event = dice.choice(_acting(script))
    script.insert(script.index(event), event)


def reorder(script: Script, task: Task, dice: random.Random) -> None:
    places = [i for i, event in enumerate(script) if event.by == "agent" and event.calls]
    events = [script[i] for i in places]
    dice.shuffle(events)
    for place, event in zip(places, events, strict=True):
        script[place] = event


def do_nothing(script: Script, task: Task, dice: random.Random) -> None:
    script[:] = [event for event in script if not event.calls]


def wrong_argument(script: Script, task: Task, dice: random.Random) -> None:
    _change_a_call(script, dice, _wrong)


def wrong_type(script: Script, task: Task, dice: random.Random) -> None:
    _change_a_call(script, dice, lambda value, dice: dice.choice((7, None, [], {"a": [1]}, "", True)))


def forget_the_arguments(script: Script, task: Task, dice: random.Random) -> None:
    event = dice.choice(_acting(script))
    call = attrs.evolve(event.calls[0], arguments={})
    script[script.index(event)] = attrs.evolve(event, calls=(call,))


def add_an_argument(script: Script, task: Task, dice: random.Random) -> None:
    event = dice.choice(_acting(script))
    more = {**event.calls[0].arguments, dice.choice(("requestor", "tool_name", "self", "x y")): 1}
    call = attrs.evolve(event.calls[0], arguments=more)
    script[script.index(event)] = attrs.evolve(event, calls=(call,))


def add_an_unknown_tool(script: Script, task: Task, dice: random.Random) -> None:
    _insert(script, dice, Event(by="agent", calls=(ToolCall(name="no_such_tool", arguments={}),)))


def add_a_look(script: Script, task: Task, dice: random.Random) -> None:
    looks = [tool.name for tool in task.tools if not tool.parameters.get("required")]
    if looks:
        _insert(script, dice, Event(by="agent", calls=(ToolCall(name=dice.choice(looks), arguments={}),)))


def act_for_the_other(script: Script, task: Task, dice: random.Random) -> None:
    call = dice.choice(_acting(script)).calls[0]
    _insert(script, dice, Event(by="agent", calls=(call,)))


def group_the_calls(script: Script, task: Task, dice: random.Random) -> None:
    grouped: Script = []
    for event in script:
        if grouped and event.calls and grouped[-1].calls and grouped[-1].by == event.by:
            grouped[-1] = attrs.evolve(grouped[-1], calls=grouped[-1].calls + event.calls)
        else:
            grouped.append(event)
    script[:] = grouped


def say_it_beside_the_calls(script: Script, task: Task, dice: random.Random) -> None:
    event = dice.choice(_acting(script))
    told = script[-2].text
    script[-2] = attrs.evolve(script[-2], text="Done.")
    script[script.index(event)] = attrs.evolve(event, text=told)


def keep_silent_about_it(script: Script, task: Task, dice: random.Random) -> None:
    script[-2] = attrs.evolve(script[-2], text="Done.")


def say_it_with_commas(script: Script, task: Task, dice: random.Random) -> None:
    told = script[-2].text.upper()
    script[-2] = attrs.evolve(script[-2], text=",".join(told[i : i + 2] for i in range(0, len(told), 2)))


def say_nothing(script: Script, task: Task, dice: random.Random) -> None:
    script[-2] = attrs.evolve(script[-2], text=dice.choice(("", " \n")))


def stop_otherwise(script: Script, task: Task, dice: random.Random) -> None:
    word = dice.choice(("###TRANSFER###", "###OUT-OF-SCOPE###", f"Bye. {STOP} Thanks.", "STOP"))
    script[-1] = attrs.evolve(script[-1], text=word)


def stop_early(script: Script, task: Task, dice: random.Random) -> None:
    place = dice.choice([i for i, event in enumerate(script) if event.by == "user" and not event.calls])
    script[place] = attrs.evolve(script[place], text=STOP)


def too_many_errors(script: Script, task: Task, dice: random.Random) -> None:
    wrong = ToolCall(name="no_such_tool", arguments={})
    for _ in range(dice.choice((8, 9, 10, 11))):
        _insert(script, dice, Event(by="agent", calls=(wrong,)))


def too_long(script: Script, task: Task, dice: random.Random) -> None:
    spoken = (
        200
        - len(script)
        - len([event for event in script if event.calls])
        + dice.choice((-3, -2, -1, 0, 1, 2))
    )
    talk = [
        Event(by="agent", text="Well?"),
        Event(by="user", text="Well."),
        Event(by="agent", text="Hm."),
        Event(by="user", text="Hm?"),
    ]
    script[1:1] = (talk * 60)[: spoken - spoken % 2]


PERTURBATIONS: Sequence[Callable[[Script, Task, random.Random], None]] = (
    drop,
    repeat,
    reorder,
    do_nothing,
    wrong_argument,
    wrong_type,
    forget_the_arguments,
    add_an_argument,
    add_an_unknown_tool,
    add_a_look,
    act_for_the_other,
    group_the_calls,
    say_it_beside_the_calls,
    keep_silent_about_it,
    say_it_with_commas,
    say_nothing,
    stop_otherwise,
    stop_early,
    too_many_errors,
    too_long,
)


def perturbed(task: Task, variant: int) -> tuple[str, Script]:
    dice = random.Random(f"{task.id} {variant}")
    script = reference(task)
    chosen = dice.sample(PERTURBATIONS, 1 if dice.random() < 0.8 else 2)
    chosen.sort(key=PERTURBATIONS.index)
    for perturb in chosen:
        if _acting(script):
            perturb(script, task, dice)
    return " + ".join(perturb.__name__ for perturb in chosen), script


def _acting(script: Script) -> Script:
    return [event for event in script if event.calls]


def _insert(script: Script, dice: random.Random, event: Event) -> None:
    """Somewhere in a turn of the agent's."""
    places = [i for i, each in enumerate(script) if each.by == "agent"]
    script.insert(dice.choice(places), event)


def _change_a_call(script: Script, dice: random.Random, change) -> None:
    event = dice.choice(_acting(script))
    arguments = dict(event.calls[0].arguments)
    if arguments:
        name = dice.choice(list(arguments))
        arguments[name] = change(arguments[name], dice)
    call = attrs.evolve(event.calls[0], arguments=arguments)
    script[script.index(event)] = attrs.evolve(event, calls=(call,))


def _wrong(value, dice: random.Random):
    match value:
        case bool():
            return not value
        case int() | float():
            return dice.choice((value + 1, -value, float(value)))
        case str():
            return dice.choice((value + "x", value.upper(), ""))
        case list():
            return dice.choice((value[:-1], value + value, list(reversed(value))))
    return None


def official_verdicts(scripts: Sequence[tuple[Task, Script]]):
    items = [
        {
            "domain": task.domain,
            "task": entry(benchmark.load(), task),
            "events": [
                [event.by, event.text, [[call.name, call.arguments] for call in event.calls]]
                for event in script
            ],
        }
        for task, script in scripts
    ]
    done = subprocess.run(
        [sys.executable, "-S", "-P", str(OFFICIAL)],
        input=json.dumps(items),
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(wheels.install(benchmark.REQUIREMENTS)),
            "PYTHONHASHSEED": "0",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


async def our_verdicts(env, scripts: Sequence[tuple[Task, Script]], pool):
    expects = {}
    limit = asyncio.Semaphore(2)

    async def expect(task: Task):
        async with limit:
            episode = await pool.lease()
            try:
                expects[task.id] = await env.expect(task, episode)
            finally:
                await episode.close()

    async def judge(task: Task, script: Script):
        async with limit:
            trajectory, evidence = await play(env, task, script, await pool.lease())
        verdict = Tau2Reward().judge(task, trajectory, evidence, expects[task.id])
        seen = sorted([each.text, not each.ok] for each in results(trajectory, evidence))
        return {
            "reward": verdict.score,
            "end": ENDS[evidence.end.why],
            "results": seen,
            "db": evidence.turns[-1].state["db"],
            "why": verdict.diagnostics,
        }

    await asyncio.gather(*(expect(task) for task in {task.id: task for task, _ in scripts}.values()))
    return await asyncio.gather(*(judge(task, script) for task, script in scripts))


def mismatches(names, scripts, ours, theirs):
    found = []
    for name, (task, _), mine, official in zip(names, scripts, ours, theirs, strict=True):
        official = {**official, "results": sorted(official["results"])}
        # The package has no verdict on an agent that leaves: its agents can't.
        keys = ("end", "results", "db") if official["end"] == "left" else ("reward", "end", "results", "db")
        different = {key: (mine[key], official[key]) for key in keys if mine[key] != official[key]}
        if different:
            found.append((task.id, name, different, mine["why"]))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("domain", REFERENCES)
async def test_every_reference_passes_here_and_in_the_package(tau2, tau2_pool, domain):
    scripts = [(task, reference(task)) for task in every_task(tau2, domain)]

    ours = await our_verdicts(tau2, scripts, tau2_pool)
    theirs = official_verdicts(scripts)

    assert len(scripts) == REFERENCES[domain]
    assert [task.id for (task, _), mine in zip(scripts, ours, strict=True) if mine["reward"] != 1.0] == []
    assert mismatches(["reference"] * len(scripts), scripts, ours, theirs) == []


@pytest.mark.slow
@pytest.mark.parametrize("domain", VARIANTS)
async def test_no_verdict_on_perturbed_episodes_differs_from_the_packages(tau2, tau2_pool, domain):
    drawn = [
        (task, *perturbed(task, variant))
        for task in every_task(tau2, domain)
        for variant in range(VARIANTS[domain])
    ]
    names = [name for _, name, _ in drawn]
    scripts = [(task, script) for task, _, script in drawn]

    ours = await our_verdicts(tau2, scripts, tau2_pool)
    theirs = official_verdicts(scripts)

    rewards = Counter(official["reward"] for official in theirs)
    assert mismatches(names, scripts, ours, theirs) == []
    assert min(rewards[0.0], rewards[1.0]) > len(scripts) / 5, rewards
    assert {"user_stop", "max_steps", "too_many_errors"} <= {official["end"] for official in theirs}
