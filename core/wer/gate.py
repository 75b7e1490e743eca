"""Measures two skills only as long as their difference is not clear."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from wer.loop.measuring import measure
from wer.loop.opening import Run
from wer.records import Skill, Split
from wer.reports.gating import Gate, Rule, decide
from wer.reports.results import outcomes_of
from wer.reports.statistics import Outcomes

NEW, OLD = "new", "old"


async def gate(
    run: Run, new: Mapping[str, Skill], old: Mapping[str, Skill], rule: Rule, *, split: Split = "test"
) -> Gate:
    """Run trial after trial of every task under both skills, and look as often as the rule plans.

    Args:
        new: By domain name.
        old: Likewise.
    """
    trials = run.config.evaluation.trials
    planned = evolve(rule, looks=min(rule.looks, trials))
    names = {task.key: task.id for domain in run.domains for task in domain.tasks(split)}
    for look in range(1, planned.looks + 1):
        so_far = evolve(run.config.evaluation, trials=-(-trials * look // planned.looks))
        part = evolve(run, config=evolve(run.config, evaluation=so_far))
        await measure(part, {NEW: new, OLD: old}, split=split, look=f", look {look} of {planned.looks}")
        found = outcomes_of(run.store)
        domains = list(found[NEW])
        seen = so_far.trials * len(run.scheduler.world.executors or ("",))
        decision = decide(
            planned,
            [_named(found[NEW][domain], names, seen) for domain in domains],
            [_named(found[OLD][domain], names, seen) for domain in domains],
            look=look,
            of_trials=trials,
        )
        if decision.answer != "undecided":
            break
    return decision


def _named(outcomes: Outcomes, names: Mapping[str, str], seen: int) -> Outcomes:
    """By the tasks' ids, which people know, in the place of the store's keys.

    Args:
        seen: The first trials of each, which are looked at; a gate that is repeated has all of them already.
    """
    return {names[key]: trials[:seen] for key, trials in outcomes.items()}
