"""How many rounds of refinement are worth it, asked of training tasks that nothing was learnt from.

What comes out of each round is merged as it would be shipped, and run on the slice of tasks
that is held out. The round after which most of it passes is the depth; the others are forgotten.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from attrs import frozen

from wer.configuration import RunConfig
from wer.contracts import Optimizer
from wer.errors import SearchSpent
from wer.loop.domains import Domain
from wer.loop.merging import merge_all
from wer.loop.opening import Run
from wer.loop.refining import refine
from wer.loop.rollouts import seeds_of
from wer.loop.seeding import Scanned
from wer.records import JsonObject, Skill, Task, derive_seed
from wer.shown import Shown
from wer.store import Store

FEWEST = 6
"""Tasks in a slice: with five, even if all of them agree, p = 2 / 2**5 > 5 % for any two depths."""

_PURPOSE = "depth"


@frozen(kw_only=True)
class Depth:
    """What a number of rounds gives on the slice.

    Attributes:
        rounds: From 0, which is what refinement began with.
        skills: Id of the merged skill of each domain.
        outcomes: By domain (``env/domain``) and task, whether each trial passed, as the optimizer is
            shown it: choosing among its skills is a part of what it learns.
    """

    rounds: int
    skills: Mapping[str, str]
    outcomes: Mapping[str, Mapping[str, tuple[bool, ...]]]

    @property
    def share(self) -> Fraction:
        """Share that passed, each domain and in it each task with the same weight."""
        domains = [_mean([_mean(trials) for trials in tasks.values()]) for tasks in self.outcomes.values()]
        return _mean(domains)


def held_out(config: RunConfig, domains: Sequence[Domain]) -> Mapping[str, tuple[Task, ...]]:
    """The slice, by domain: drawn by the run's seed; empty where no depth is chosen."""
    if not config.refinement.rounds:
        return {}
    held = {domain.name: _drawn(domain.train, config) for domain in domains}
    held = {name: tasks for name, tasks in held.items() if tasks}
    return held if sum(map(len, held.values())) >= FEWEST else {}


def _drawn(tasks: Sequence[Task], config: RunConfig) -> tuple[Task, ...]:
    count = math.floor(config.refinement.holdout * len(tasks) + 1e-9)  # 0.29 * 100 is a little below 29
    dice = {task.key: derive_seed(config.seed, "holdout", task.key) for task in tasks}
    chosen = sorted(dice, key=lambda key: dice[key])[:count]
    return tuple(task for task in tasks if task.key in chosen)


def learnt_from(
    scanned: Mapping[str, Sequence[Scanned]], held: Mapping[str, Sequence[Task]]
) -> Mapping[str, tuple[Scanned, ...]]:
    """The tasks of each domain that are not of the slice."""
    kept = {task.key for tasks in held.values() for task in tasks}
    return {
        name: tuple(task for task in tasks if task.task.key not in kept) for name, tasks in scanned.items()
    }


async def refine_and_merge(
    run: Run, optimizer: Optimizer, scanned: Mapping[str, Sequence[Scanned]], *, label: str
) -> Mapping[str, Skill]:
    """Refine every task that is not of the slice, and merge each domain's skills at the best depth.

    Raises:
        SearchSpent: Before two depths could be compared.
    """
    held = held_out(run.config, run.domains)
    sources = learnt_from(scanned, held)
    everything = [task for tasks in sources.values() for task in tasks]

    def by_domain(best: Sequence[Scanned]) -> Mapping[str, tuple[Scanned, ...]]:
        found = iter(best)
        return {name: tuple(next(found) for _ in tasks) for name, tasks in sources.items()}

    async def measure(rounds: int, best: Sequence[Scanned]) -> None:
        await _measure(run, await merge_all(run, by_domain(best), label), held, label, rounds)

    if not held:
        _say_why(run)
        return await merge_all(run, by_domain(await refine(run, optimizer, everything, label=label)), label)
    try:
        await refine(run, optimizer, everything, label=label, at_depth=measure)
    except SearchSpent as spent:
        if len(curve(run.store, run.staged(label))) < 2:
            raise
        run.scheduler.reopen()
        run.display.say(f"{spent}: the depths that were measured until then are compared")
    found = curve(run.store, run.staged(label))
    best = best_of(found)
    shares = ", ".join(f"{depth.rounds}: {float(depth.share):.0%}" for depth in found)
    run.display.say(f"{label}: share passed on the held-out tasks by depth {shares}; {best.rounds} is kept")
    return shipped(run.store, best)


def _say_why(run: Run) -> None:
    settings = run.config.refinement
    if settings.holdout and settings.rounds:
        run.display.say(
            f"too few training tasks to hold {FEWEST} out ({settings.holdout:.0%} of each domain): all of them are "
            f"learnt from, and the depth is refinement.rounds = {settings.rounds}"
        )


async def _measure(
    run: Run, skills: Mapping[str, Skill], held: Mapping[str, Sequence[Task]], label: str, rounds: int
) -> None:
    """Run the slice with the skills of one depth, and store which rollouts answer for it."""
    n = run.config.refinement.holdout_n
    tasks = [(name, task) for name, of_domain in held.items() for task in of_domain]
    units = [
        run.scheduler.units(
            task, skills[name], seeds_of(task, n, run_seed=run.config.seed, purpose="holdout")
        )
        for name, task in tasks
    ]
    run.display.stage(f"{label}, depth {rounds} on held-out tasks", sum(map(len, units)))
    rollouts = iter(await run.scheduler.run([unit for each in units for unit in each]))
    keys: dict[str, dict[str, list[str]]] = {}
    for (name, task), each in zip(tasks, units, strict=True):
        keys.setdefault(name, {})[task.key] = [next(rollouts).key for _ in each]
    for skill in skills.values():
        run.store.put_skill(skill)
    found = {
        "skills": {name: skill.id for name, skill in skills.items()},
        "rollouts": keys,
        "shown": {"noise": run.shown.noise, "seed": run.shown.seed},
    }
    run.store.put_document(_PURPOSE, f"{run.staged(label)} {rounds}", json.dumps(found))


def curve(store: Store, label: str) -> tuple[Depth, ...]:
    """The depths that were measured under a label, the shallowest first, from the stored verdicts."""
    found = [_depth(store, int(rounds), stored) for rounds, stored in _documents(store, label)]
    return tuple(sorted(found, key=lambda depth: depth.rounds))


def labels(store: Store) -> tuple[str, ...]:
    """The labels under which depths were measured."""
    return tuple(dict.fromkeys(key.rpartition(" ")[0] for key in sorted(store.documents(_PURPOSE))))


def rollout_keys(store: Store, label: str) -> frozenset[str]:
    """Keys of the rollouts that the depths of a label were measured by."""
    return frozenset(
        key
        for _, stored in _documents(store, label)
        for tasks in stored["rollouts"].values()
        for trials in tasks.values()
        for key in trials
    )


def _documents(store: Store, label: str) -> list[tuple[str, JsonObject]]:
    """What was stored of each depth, by its number."""
    named = [(*key.rpartition(" "), text) for key, text in store.documents(_PURPOSE).items()]
    return [(rounds, json.loads(text)) for name, _, rounds, text in named if name == label]


def _depth(store: Store, rounds: int, stored: JsonObject) -> Depth:
    shown = Shown(**stored["shown"])

    def passed(key: str) -> bool:
        return store.passed(key) != shown.flips(key)

    outcomes = {
        name: {task: tuple(map(passed, trials)) for task, trials in tasks.items()}
        for name, tasks in stored["rollouts"].items()
    }
    return Depth(rounds=rounds, skills=stored["skills"], outcomes=outcomes)


def best_of(depths: Sequence[Depth]) -> Depth:
    """The depth with the highest share; of equal ones the shallowest, which costs least."""
    return max(depths, key=lambda depth: (depth.share, -depth.rounds))


def shipped(store: Store, depth: Depth) -> Mapping[str, Skill]:
    """The merged skills of a depth, by domain."""
    return {name: store.skill(skill_id) for name, skill_id in depth.skills.items()}


def _mean(values: Sequence[bool] | Sequence[Fraction]) -> Fraction:
    return sum(map(Fraction, values), Fraction()) / len(values)
