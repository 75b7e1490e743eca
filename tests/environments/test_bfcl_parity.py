"""The verdicts made from exported data against the ones of the benchmark's own checker."""

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

from wer.records import End, Evidence, Task, ToolCall, Trajectory
from wer_bfcl import benchmark
from wer_bfcl.environment import Bfcl
from wer_bfcl.reference import reference
from wer_bfcl.session import BfclSession
from wer_bfcl_checker.final_state import BfclFinalState
from wer_bfcl_checker.official import BfclChecker

OFFICIAL = Path(__file__).parents[1] / "support" / "official_bfcl.py"
OFFICIAL_STEPS = 21
VARIANTS = 6
NOBODY = Trajectory(messages=(), steps=(), end=End(by="agent"), seed=0)

Step = list[ToolCall]
Script = list[list[Step]]


def every_task(env: Bfcl) -> list[Task]:
    return [
        task for domain in env.domains() for split in ("train", "test") for task in env.tasks(domain, split)
    ]


def play_by_the_book(task: Task) -> Script:
    return [[list(calls)] if calls else [] for calls in reference(benchmark.load(), task)]


def one_call_a_step(task: Task) -> Script:
    return [[[call] for call in calls] for calls in reference(benchmark.load(), task)]


# Perturbations: each takes a script with one call a step and changes it in place.


def drop(script: Script, task: Task, dice: random.Random) -> None:
    turn = _busy_turn(script, dice)
    turn.pop(dice.randrange(len(turn)))


def drop_turn(script: Script, task: Task, dice: random.Random) -> None:
    _busy_turn(script, dice).clear()


def repeat(script: Script, task: Task, dice: random.Random) -> None:
    turn = _busy_turn(script, dice)
    turn.append(dice.choice(turn))


def reorder(script: Script, task: Task, dice: random.Random) -> None:
    dice.shuffle(_busy_turn(script, dice))


def reverse_turns(script: Script, task: Task, dice: random.Random) -> None:
    script.reverse()


def move_to_another_turn(script: Script, task: Task, dice: random.Random) -> None:
    turn = _busy_turn(script, dice)
    dice.choice(script).append(turn.pop(dice.randrange(len(turn))))


def add_a_look(script: Script, task: Task, dice: random.Random) -> None:
    looks = [tool.name for tool in task.tools if not tool.parameters["required"]]
    _insert(script, dice, ToolCall(name=dice.choice(looks), arguments={}))


def add_an_unknown_tool(script: Script, task: Task, dice: random.Random) -> None:
    _insert(script, dice, ToolCall(name="no_such_tool", arguments={"x": 1}))


def add_a_wrong_call(script: Script, task: Task, dice: random.Random) -> None:
    _insert(script, dice, ToolCall(name=dice.choice(task.tools).name, arguments={"unexpected": "x"}))


def group_the_steps(script: Script, task: Task, dice: random.Random) -> None:
    script[:] = [[[call for step in turn for call in step]] if turn else [] for turn in script]


def wrong_argument(script: Script, task: Task, dice: random.Random) -> None:
    _change_a_call(script, dice, _wrong)


def number_as_text(script: Script, task: Task, dice: random.Random) -> None:
    _change_a_call(script, dice, lambda value, dice: str(value))


def integer_for_float(script: Script, task: Task, dice: random.Random) -> None:
    for turn in script:
        for step in turn:
            step[:] = [attrs.evolve(call, arguments=_swap_number_types(call.arguments)) for call in step]


def forget_an_argument(script: Script, task: Task, dice: random.Random) -> None:
    step = dice.choice(_busy_turn(script, dice))
    names = list(step[0].arguments)[1:]
    step[0] = attrs.evolve(step[0], arguments={name: step[0].arguments[name] for name in names})


def stop_early(script: Script, task: Task, dice: random.Random) -> None:
    del script[dice.randrange(len(script)) :]


def too_many_steps(script: Script, task: Task, dice: random.Random) -> None:
    turn = dice.choice(script)
    look = next(tool.name for tool in task.tools if not tool.parameters["required"])
    extra = OFFICIAL_STEPS - len(turn) + dice.choice((-1, 0, 1))
    turn.extend([ToolCall(name=look, arguments={})] for _ in range(max(extra, 0)))


PERTURBATIONS: Sequence[Callable[[Script, Task, random.Random], None]] = (
    drop,
    drop_turn,
    repeat,
    reorder,
    reverse_turns,
    move_to_another_turn,
    add_a_look,
    add_an_unknown_tool,
    add_a_wrong_call,
    group_the_steps,
    wrong_argument,
    number_as_text,
    integer_for_float,
    forget_an_argument,
    stop_early,
    too_many_steps,
)


def perturbed(task: Task, variant: int) -> tuple[str, Script]:
    dice = random.Random(f"{task.id} {variant}")
    script = one_call_a_step(task)
    chosen = dice.sample(PERTURBATIONS, 1 if dice.random() < 0.8 else 2)
    chosen.sort(key=PERTURBATIONS.index)
    for perturb in chosen:
        if any(script):
            perturb(script, task, dice)
    return " + ".join(perturb.__name__ for perturb in chosen), script


def _busy_turn(script: Script, dice: random.Random) -> list[Step]:
    return dice.choice([turn for turn in script if turn])


def _insert(script: Script, dice: random.Random, call: ToolCall) -> None:
    turn = dice.choice(script)
    turn.insert(dice.randint(0, len(turn)), [call])


def _change_a_call(script: Script, dice: random.Random, change) -> None:
    step = dice.choice(_busy_turn(script, dice))
    index = dice.randrange(len(step))
    arguments = dict(step[index].arguments)
    if arguments:
        name = dice.choice(list(arguments))
        arguments[name] = change(arguments[name], dice)
    step[index] = attrs.evolve(step[index], arguments=arguments)


def _wrong(value, dice: random.Random):
    match value:
        case bool():
            return not value
        case int() | float():
            return dice.choice((value + 1, -value, value * 2, None))
        case str():
            return dice.choice((value + "x", value.upper(), "", None))
        case list():
            return dice.choice((value[:-1], value + value, [value], None))
    return None


def _swap_number_types(arguments):
    return {
        name: float(value)
        if type(value) is int
        else int(value)
        if isinstance(value, float) and value.is_integer()
        else value
        for name, value in arguments.items()
    }


async def play(script: Script, task: Task, episode) -> Evidence:
    session = BfclSession(task, episode)
    try:
        await session.begin()
        for turn in script:
            for step in turn:
                answer = await session.call(step)
                if answer.end:
                    return await session.evidence()
            await session.say("done")
        return await session.evidence()
    finally:
        await session.close()


def official_transcript(script: Script) -> list[list[list[str]]]:
    """What the official runner's inference would have left of a script, by its own step limit."""
    turns = []
    for turn in script:
        turns.append([[_python(call) for call in step] for step in turn[:OFFICIAL_STEPS]])
        if len(turn) >= OFFICIAL_STEPS:
            break
    return turns


def _python(call: ToolCall) -> str:
    return f"{call.name}({', '.join(f'{name}={value!r}' for name, value in call.arguments.items())})"


def official_verdicts(scripts: Sequence[tuple[Task, Script]], wheels: Path):
    data = benchmark.load()
    items = []
    for task, script in scripts:
        name = task.id.removeprefix("bfcl/").partition("@")[0]
        answer = data.answers[name][: len(task.turns)]
        turns = official_transcript(script)
        items.append({"entry": data.entries[name], "answer": answer, "turns": turns})
    done = subprocess.run(
        [sys.executable, str(OFFICIAL)],
        input=json.dumps(items),
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, sorted(wheels.glob("*.whl")))),
            "PYTHONHASHSEED": "0",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


async def our_verdicts(env, scripts: Sequence[tuple[Task, Script]], pool):
    expects = {}
    limit = asyncio.Semaphore(4)

    async def expect(task: Task):
        async with limit:
            episode = await pool.lease()
            try:
                expects[task.id] = await env.expect(task, episode)
            finally:
                await episode.close()

    async def judge(task: Task, script: Script):
        async with limit:
            evidence = await play(script, task, await pool.lease())
        wanted = expects[task.id]
        official = BfclChecker().judge(task, NOBODY, evidence, wanted)
        final_state = BfclFinalState().judge(task, NOBODY, evidence, wanted)
        results = [text for turn in evidence.turns for text in turn.results]
        verdicts = {"official": official.passed, "final_state": final_state.passed, "results": results}
        return verdicts, official.diagnostics

    await asyncio.gather(*(expect(task) for task in {task.id: task for task, _ in scripts}.values()))
    return await asyncio.gather(*(judge(task, script) for task, script in scripts))


def mismatches(names, scripts, ours, theirs):
    return [
        (task.id, name, mine, official, diagnostics)
        for name, (task, _), (mine, diagnostics), official in zip(names, scripts, ours, theirs, strict=True)
        if any(mine[key] != official[key] for key in mine)
    ]


@pytest.mark.slow
async def test_every_reference_passes_here_and_in_the_official_checker(bfcl, bfcl_pool, bfcl_wheels):
    scripts = [(task, play_by_the_book(task)) for task in every_task(bfcl)]

    ours = await our_verdicts(bfcl, scripts, bfcl_pool)
    theirs = official_verdicts(scripts, bfcl_wheels)

    assert len(scripts) == 200
    assert [task.id for (task, _), (mine, _) in zip(scripts, ours, strict=True) if not mine["official"]] == []
    assert mismatches(["reference"] * 200, scripts, ours, theirs) == []


@pytest.mark.slow
async def test_no_verdict_on_perturbed_trajectories_differs_from_the_official_one(
    bfcl, bfcl_pool, bfcl_wheels
):
    drawn = [(task, *perturbed(task, variant)) for task in every_task(bfcl) for variant in range(VARIANTS)]
    names = [name for _, name, _ in drawn]
    scripts = [(task, script) for task, _, script in drawn]

    ours = await our_verdicts(bfcl, scripts, bfcl_pool)
    theirs = official_verdicts(scripts, bfcl_wheels)

    shares = {
        kind: Counter(official[kind] for official in theirs)[True] / len(theirs)
        for kind in ("official", "final_state")
    }
    assert len(scripts) == 1200
    assert mismatches(names, scripts, ours, theirs) == []
    assert all(0.25 <= share <= 0.75 for share in shares.values()), shares
    assert {official["error"] for official in theirs} == {
        "",
        "multi_turn:force_terminated",
        "multi_turn:empty_turn_model_response",
        "multi_turn:instance_state_mismatch",
        "multi_turn:execution_response_mismatch",
    }


@pytest.mark.slow
async def test_prefix_tasks_get_the_official_verdict_of_their_first_turns(
    bfcl_prefix, bfcl_pool, bfcl_wheels
):
    drawn = [(task, perturbed(task, 0)[1]) for task in every_task(bfcl_prefix)]

    ours = await our_verdicts(bfcl_prefix, drawn, bfcl_pool)
    theirs = official_verdicts(drawn, bfcl_wheels)

    assert mismatches(["prefix"] * 200, drawn, ours, theirs) == []
