"""Whether agents that load a skill by themselves did: the activation rate, and Pass@1 with and without it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from attrs import frozen

from wer.records import NO_SKILL, content_hash
from wer.reports.results import title_of
from wer.store import Store


@frozen(kw_only=True)
class _Act:
    """One rollout of the measurement.

    Attributes:
        pair: Equal for rollouts on the same task and seed, by which conditions are paired.
        loaded: Whether the agent read its skill; None where nobody knows.
        steps: Hash of what the agent did and what came of it.
    """

    pair: str
    loaded: bool | None
    passed: bool
    steps: str


def sentences(store: Store) -> Iterator[str]:
    """A line a condition with a skill: how often it was loaded, where anybody knows; and if it changed nothing."""
    skilled: dict[str, list[_Act]] = defaultdict(list)
    bare: dict[str, str] = {}
    for condition, pair, skill, loaded, passed, steps in store.activations():
        act = _Act(pair=pair, loaded=loaded, passed=passed, steps=content_hash(steps))
        if skill == NO_SKILL.id:
            bare[pair] = act.steps
        else:
            skilled[condition].append(act)
    for condition, acts in skilled.items():
        known = [act for act in acts if act.loaded is not None]
        if known:
            yield _activated(condition, known, unknown=len(acts) - len(known))
        paired = [act for act in acts if act.pair in bare]
        if paired and all(act.steps == bare[act.pair] for act in paired):
            yield (
                f"Note: with {title_of(condition)!r} the agent did exactly what it does without any, in all of "
                f"{len(paired)} rollouts on the same tasks and seeds: it may not read the skill that it is given."
            )


def _activated(condition: str, known: Sequence[_Act], *, unknown: int) -> str:
    loaded = [act for act in known if act.loaded]
    others = [act for act in known if not act.loaded]
    parts = [
        f"{title_of(condition)}: loaded in {len(loaded)} of {len(known)} rollouts "
        f"({100 * len(loaded) / len(known):.0f} %)"
    ]
    parts += [f"Pass@1 {_passed(loaded)} with it loaded"] if loaded else []
    parts += [f"Pass@1 {_passed(others)} where it was not"] if others else []
    parts += [f"unknown of {unknown} more"] if unknown else []
    return ", ".join(parts) + "."


def _passed(acts: Sequence[_Act]) -> str:
    return f"{100 * sum(act.passed for act in acts) / len(acts):.1f} %"
