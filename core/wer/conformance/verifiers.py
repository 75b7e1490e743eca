"""The audit before spending: whether a verifier tells right from wrong, seen without a model."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from attrs import evolve, frozen

from wer.codec import from_json, to_json
from wer.conformance.checks import Check, Fault, Kind, NotApplicable, Settings
from wer.conformance.mutations import mutations
from wer.conformance.rig import Rig, open_rig
from wer.conformance.watching import watching
from wer.contracts import Executor, Session
from wer.loop.following import Following
from wer.loop.local import World
from wer.loop.noop import NoOp
from wer.plugins import Plugins
from wer.records import End, Evidence, Json, JsonObject, Skill, Task, Trajectory, Turn, Verdict, derive_seed

_TIMES = 5


@frozen(kw_only=True)
class Case:
    """One played episode, ready to be judged.

    Attributes:
        what: ``the reference``, ``doing nothing``, or how the reference was changed.
        harmless: It left the reference's states behind, so that nobody need tell it from the reference.
    """

    task: Task
    what: str
    trajectory: Trajectory
    evidence: Evidence
    expect: Json
    harmless: bool = False

    @property
    def named(self) -> str:
        """For a list."""
        return f"{self.task.id} {self.what}"


class Leaving:
    """An executor that hears the first message, and leaves."""

    @property
    def identity(self) -> JsonObject:
        """Without a model: one agent in all audits."""
        return {"agent": "leaving"}

    async def execute(self, task: Task, skill: Skill, session: Session, seed: int) -> Trajectory:
        """Hear it."""
        here = await session.begin()
        if isinstance(here, Turn):
            return Trajectory(
                messages=(here.message,), steps=(), end=End(by="agent", why="stopped"), seed=seed
            )
        return Trajectory(messages=(), steps=(), end=here, seed=seed)


@frozen(kw_only=True)
class Audited:
    """A verifier with episodes to judge, all played before the first check."""

    name: str
    plugins: Plugins
    world: World
    references: tuple[Case, ...]
    idle: tuple[Case, ...]
    left: tuple[Case, ...]
    mutants: tuple[Case, ...]

    @property
    def all(self) -> tuple[Case, ...]:
        """Every case."""
        return self.references + self.idle + self.left + self.mutants

    def judge(self, case: Case) -> Verdict:
        """Judge as the loop does."""
        return self.world.judge(case.task, case.trajectory, case.evidence, case.expect)

    def passing(self, cases: Sequence[Case]) -> list[Case]:
        """Those that the verifier accepts."""
        return [case for case in cases if self.judge(case).passed]


async def reference_passes(audited: Audited) -> str:
    """A verifier that refuses the solution refuses every skill."""
    if not audited.references:
        raise NotApplicable("the environment gives no references (see wer.contracts.Referenced)")
    for case in audited.references:
        verdict = audited.judge(case)
        if not verdict.passed:
            why = "; ".join(verdict.diagnostics) or "without a diagnosis"
            raise Fault(
                f"the reference of {case.task.id!r} fails: {why}",
                "Mend the reference, what `expect` returns, or the verifier: one of them is wrong.",
            )
    return f"{len(audited.references)} references"


async def doing_nothing_fails(audited: Audited) -> str:
    """What passes without an agent measures nothing."""
    passing = audited.passing(audited.idle)
    if passing and len(passing) == len(audited.idle):
        raise Fault(
            f"the verifier accepts doing nothing on all {len(passing)} tasks that were tried",
            "Compare what the agent left behind with what the task wants, and give tasks in which something is to be "
            "done. If these few are meant so, try more with --tasks.",
        )
    listed = f": {', '.join(case.task.id for case in passing)}" if passing else ""
    return f"doing nothing passes on {len(passing)} of {len(audited.idle)} tasks{listed}"


async def changed_references_fail(audited: Audited) -> str:
    """A verifier that accepts a solution and its spoilt copy learns nothing about either."""
    telling = [case for case in audited.mutants if not case.harmless]
    if not telling:
        raise NotApplicable("no changed reference left another state behind than the reference")
    accepted = audited.passing(telling)
    listed = "; ".join(case.named for case in accepted[:8])
    if 2 * len(accepted) > len(telling):
        raise Fault(
            f"{len(accepted)} of {len(telling)} changed references are accepted although they end in another state: "
            f"{listed}",
            "Look at all of the state that the task is about, and not only at whether something was done.",
        )
    harmless = len(audited.mutants) - len(telling)
    return (
        f"{len(accepted)} of {len(telling)} accepted{': ' + listed if accepted else ''}; "
        f"{harmless} more end in the reference's state"
    )


async def verdicts_repeat(audited: Audited) -> None:
    """A verdict that depends on anything but its data is noise in every reward."""
    first = [audited.judge(case) for case in audited.all]
    order = list(enumerate(audited.all))
    anew = evolve(
        audited.world,
        verifiers={
            case.task.env: (audited.name, audited.plugins.verifiers.make(audited.name))
            for case in audited.all
        },
    )
    for seed in range(_TIMES):
        random.Random(seed).shuffle(order)  # noqa: S311 - repeatable, not secret
        for place, case in order:
            verdict = (anew if seed else audited.world).judge(
                case.task, case.trajectory, case.evidence, case.expect
            )
            if verdict != first[place]:
                raise Fault(
                    f"{case.named} was judged {first[place]} and then, with the same data, {verdict}",
                    "A verifier is pure: no clock, no random numbers, no files, no model, no state of its own; sort "
                    "what comes from a set.",
                )


async def stored_data_is_enough(audited: Audited) -> None:
    """Verdicts are made again from the store: ``wer verify``."""
    for case in audited.all:
        again = evolve(
            case,
            trajectory=from_json(to_json(case.trajectory), Trajectory),
            evidence=from_json(to_json(case.evidence), Evidence),
        )
        with watching() as heard:
            audited.judge(again)
        if heard:
            raise Fault(
                f"judging {case.named} {'; '.join(dict.fromkeys(heard))}",
                "A verifier judges what it is given: it writes nothing, and asks nobody.",
            )
        if audited.judge(again) != audited.judge(case):
            raise Fault(
                f"{case.named} is judged {audited.judge(again)} once it was stored and read",
                "Compare as JSON compares: lists for tuples, strings for keys.",
            )


async def leaving_is_judged(audited: Audited) -> None:
    """Agents leave early, and a run must not end of it."""
    by_nothing = {case.task.id for case in audited.passing(audited.idle)}
    for case in audited.left:
        if audited.judge(case).passed and case.task.id not in by_nothing:
            raise Fault(
                f"an agent that left {case.task.id!r} at once passes",
                "Fail an episode in which turns of the task never began.",
            )


_NOTHING = "doing nothing"


@asynccontextmanager
async def open_audited(name: str, plugins: Plugins, settings: Settings) -> AsyncIterator[Audited]:
    """Play references, changed references and nothing on an environment's tasks.

    Args:
        name: Of the verifier; ``settings.environment`` names the environment.
    """
    async with open_rig(settings.environment, plugins, evolve(settings, verifier=name)) as rig:
        references, idle, left, mutants = [], [], [], []
        for task in rig.tasks:
            expect = await rig.expect(task)
            idle.append(await _case(rig, task, _NOTHING, NoOp(), expect))
            left.append(await _case(rig, task, "leaving at once", Leaving(), expect))
            calls = rig.reference(task)
            if calls is None:
                continue
            reference = await _case(rig, task, "the reference", Following(calls=calls), expect)
            references.append(reference)
            for mutation in mutations(calls, derive_seed("mutation", task.id)):
                mutant = await _case(rig, task, mutation.what, Following(calls=mutation.turns), expect)
                mutants.append(evolve(mutant, harmless=_states(mutant) == _states(reference)))
        yield Audited(
            name=name,
            plugins=plugins,
            world=rig.world,
            references=tuple(references),
            idle=tuple(idle),
            left=tuple(left),
            mutants=tuple(mutants),
        )


async def _case(rig: Rig, task: Task, what: str, executor: Executor, expect: Json) -> Case:
    trajectory, evidence = await rig.play(task, executor)
    return Case(task=task, what=what, trajectory=trajectory, evidence=evidence, expect=expect)


def _states(case: Case) -> list[Json]:
    return [turn.state for turn in case.evidence.turns]


VERIFIERS: Kind[Audited] = Kind(
    checks=(
        Check("the reference passes", reference_passes),
        Check("doing nothing fails", doing_nothing_fails),
        Check("changed references fail", changed_references_fail),
        Check("verdicts are the same again and in any order", verdicts_repeat),
        Check("a verdict needs stored data alone", stored_data_is_enough),
        Check("an agent that leaves at once fails, and ends no run", leaving_is_judged),
    ),
    open=open_audited,
)
