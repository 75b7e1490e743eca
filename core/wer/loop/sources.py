"""Whether a merged skill keeps what its sources had gained: each source's own task, run with both.

A source was chosen for the rollouts that it passed, so that those would flatter it. Source and
merged skill therefore get fresh seeds, the same for both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from attrs import frozen

from wer.loop.opening import Run
from wer.loop.rollouts import seeds_of
from wer.records import Rollout, Skill, Task
from wer.store import Store

_PURPOSE = "kept"


@frozen(kw_only=True)
class Source:
    """A skill that went into a merged one, with the tasks that it is for.

    Attributes:
        tasks: Run in turn, so that a source with many has as many rollouts as any other.
    """

    skill: Skill
    tasks: tuple[Task, ...]


@frozen(kw_only=True)
class Checked:
    """What was found of one source.

    Attributes:
        name: Its first task, or its own name.
        merged: Passed or not, rollout by rollout, with the merged skill.
        source: Likewise with the source; empty where the merged skill passed every time, so that
            it can have lost nothing.
    """

    name: str
    merged: tuple[bool, ...]
    source: tuple[bool, ...]


async def check_merges(run: Run, label: str, merged: Mapping[str, Skill]) -> None:
    """Check each domain's merged skill against its sources, if ``merge.check_rollouts`` says so.

    A skill that was not merged from several, such as a consolidated one, has none.
    """
    if not run.config.merge.check_rollouts:
        return
    for domain, skill in merged.items():
        text = run.store.document("sources", f"{run.staged(label)} {domain} {skill.id}")
        tasks: Mapping[str, Sequence[str]] = json.loads(text or "{}")
        sources = {
            run.store.task(keys[0]).id: Source(
                skill=run.store.skill(skill_id), tasks=tuple(map(run.store.task, keys))
            )
            for skill_id, keys in tasks.items()
        }
        if sources:
            await check(run, skill, sources, name=f"{run.staged(label)} {domain}")


async def check(run: Run, merged: Skill, sources: Mapping[str, Source], *, name: str) -> None:
    """Run the merged skill where each source came from, and the source where something failed.

    Args:
        sources: By the name that reports call them.
        name: What reports call the merged skill.
    """
    run.display.stage(f"{name}: what the merge kept", 0)
    after = await _run(run, {key: Source(skill=merged, tasks=each.tasks) for key, each in sources.items()})
    failed = {key: sources[key] for key, found in after.items() if not all(map(_passed, found))}
    before = await _run(run, failed)
    found = {key: {"merged": _keys(after[key]), "source": _keys(before.get(key, ()))} for key in sources}
    run.store.put_document(_PURPOSE, name, json.dumps(found))


async def _run(run: Run, skills: Mapping[str, Source]) -> Mapping[str, tuple[Rollout, ...]]:
    n = run.config.merge.check_rollouts
    units = {
        key: [
            unit
            for task, seed in _places(run, each.tasks, n)
            for unit in run.scheduler.units(task, each.skill, [seed])
        ]
        for key, each in skills.items()
    }
    rollouts = iter(await run.scheduler.run([unit for each in units.values() for unit in each]))
    return {key: tuple(next(rollouts) for _ in each) for key, each in units.items()}


def _places(run: Run, tasks: Sequence[Task], n: int) -> list[tuple[Task, int]]:
    """Where a source's rollouts are: its tasks in turn, each with seeds of its own."""
    seeds = {task.key: seeds_of(task, n, run_seed=run.config.seed, purpose="merge") for task in tasks}
    return [(tasks[i % len(tasks)], seeds[tasks[i % len(tasks)].key][i // len(tasks)]) for i in range(n)]


def kept(store: Store) -> Mapping[str, tuple[Checked, ...]]:
    """What was found of each source, by the name of the merged skill, from the stored verdicts."""
    return {
        name: tuple(
            Checked(
                name=source,
                merged=tuple(map(store.passed, keys["merged"])),
                source=tuple(map(store.passed, keys["source"])),
            )
            for source, keys in json.loads(text).items()
        )
        for name, text in store.documents(_PURPOSE).items()
    }


def _passed(rollout: Rollout) -> bool:
    return rollout.verdict.passed


def _keys(rollouts: Sequence[Rollout]) -> list[str]:
    return [rollout.key for rollout in rollouts]
