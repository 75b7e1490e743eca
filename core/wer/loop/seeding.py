"""Seed skills and their first rollouts: the cold start, and the scan that says whether training can work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import evolve, frozen

from wer.configuration import TrainingConfig
from wer.contracts import Model
from wer.errors import WerError
from wer.loop.opening import Run
from wer.loop.roles import specs
from wer.loop.rollouts import seeds_of
from wer.records import (
    NO_SKILL,
    RefinementState,
    Rollout,
    Sampling,
    Skill,
    Task,
    content_hash,
    derive_seed,
)
from wer.retention import matched_pair, mixedness
from wer.shown import Shown
from wer.skills import load_skill
from wer.together import together
from wer.writing import read_skill, seed_messages

_TRIES = 3


@frozen(kw_only=True)
class Scanned:
    """A training task with a skill and that skill's rollouts."""

    task: Task
    skill: Skill
    rollouts: tuple[Rollout, ...]

    @property
    def share(self) -> float:
        """Share of rollouts that passed."""
        return sum(rollout.verdict.passed for rollout in self.rollouts) / len(self.rollouts)

    def shown(self, shown: Shown) -> Scanned:
        """As the optimizer sees it."""
        return evolve(self, rollouts=shown.rollouts(self.rollouts))

    def state(
        self,
        settings: TrainingConfig,
        *,
        parent: str | None = None,
        round: int = 0,
        phase: int = 0,
    ) -> RefinementState:
        """The state that asks for a better skill: one matched pair, or the first rollout, as evidence."""
        return RefinementState(
            task=self.task,
            skill=self.skill,
            evidence=matched_pair(self.rollouts, settings.evidence),
            parent=parent,
            round=round,
            phase=phase,
            form=settings.evidence_form,
        )


async def seed_skills(run: Run, tasks: Sequence[Task]) -> Mapping[str, Skill]:
    """Have a zero-shot skill for each task, by task key: read from a file, or written by a model.

    A task whose draft can't be read after three tries starts from no skill.
    """
    given = given_seed(run)
    if given is not None:
        return {task.key: given for task in tasks}
    spec = specs(run.config)["seed_writer"]
    model = run.role(run.paying("seed writer"), spec)
    run.display.stage(f"seed skills by {spec}", len(tasks), unit="drafts")
    drafts = await together(_draft(run, model, task) for task in tasks)
    unreadable = sum(draft.empty for draft in drafts)
    if unreadable:
        run.display.say(
            f"{unreadable} of {len(drafts)} drafts were not readable: those tasks start from no skill"
        )
    return {task.key: draft for task, draft in zip(tasks, drafts, strict=True)}


def given_seed(run: Run) -> Skill | None:
    """The seed skill that the user gave as a file, if any.

    Raises:
        SkillError: The file is not a skill.
    """
    return load_skill(Path(run.config.seed_skill)) if run.config.seed_skill else None


async def _draft(run: Run, model: Model, task: Task) -> Skill:
    base = evolve(NO_SKILL, name="draft", description=f"Tasks of the domain {task.domain}.")
    skill = None
    for attempt in range(_TRIES):
        key = content_hash([task.key, model.identity, run.config.seed, attempt])
        text = run.store.document("seed", key)
        if text is None:
            sampling = Sampling(
                temperature=run.config.training.temperature,
                top_k=run.config.training.top_k,
                max_tokens=run.config.training.max_response_tokens,
                seed=derive_seed(run.config.seed, "seed", task.key, attempt),
            )
            text = (await model.complete(seed_messages(task), (), sampling)).text
            run.store.put_document("seed", key, text)
        skill, _ = read_skill(text, parent=base)
        if skill is not None and not run.screen.refusal(skill, [task]):
            break
        skill = None
    run.display.advance()
    return skill or NO_SKILL


async def scan(
    run: Run, skills: Mapping[str, Skill], tasks: Sequence[Task], *, label: str
) -> tuple[Scanned, ...]:
    """Run each task n times under its skill, with each executor, and tell how the outcomes are mixed."""
    n = run.config.training.n
    units = [
        run.scheduler.units(
            task, skills[task.key], seeds_of(task, n, run_seed=run.config.seed, purpose="train")
        )
        for task in tasks
    ]
    run.display.stage(label, sum(map(len, units)))
    rollouts = iter(await run.scheduler.run([unit for each in units for unit in each]))
    scanned = tuple(
        Scanned(task=task, skill=skills[task.key], rollouts=tuple(next(rollouts) for _ in each))
        for task, each in zip(tasks, units, strict=True)
    )
    run.display.say(f"{label}: {counts(scanned)}")
    return scanned


def counts(scanned: Sequence[Scanned]) -> str:
    """Say how many tasks always, sometimes and never passed."""
    always = sum(task.share == 1.0 for task in scanned)
    never = sum(task.share == 0.0 for task in scanned)
    passed = sum(rollout.verdict.passed for task in scanned for rollout in task.rollouts)
    total = sum(len(task.rollouts) for task in scanned)
    mixed = len(scanned) - always - never
    return f"{passed}/{total} rollouts passed; of {len(scanned)} tasks {always} always, {mixed} mixed, {never} never"


def demand_signal(
    scanned: Sequence[Scanned], *, failures_teach: bool = False, perfect_will_do: bool = False
) -> None:
    """Stop a run that can't learn: every rollout passed, or none did.

    Args:
        failures_teach: Whether something is learnt where nothing passed.
        perfect_will_do: Whether it is a result that every rollout passed.

    Raises:
        WerError: With the counts and the remedy.
    """
    shares = {task.share for task in scanned}
    if shares == {0.0} and not failures_teach:
        raise WerError(
            f"no rollout passed ({counts(scanned)}), so no comparison can teach anything. Use a stronger executor, "
            "easier tasks (for BFCL: --set environment.bfcl.max_turns=1), or look at a trajectory with wer show."
        )
    if shares == {1.0} and not perfect_will_do:
        raise WerError(
            f"every rollout passed ({counts(scanned)}), so there is nothing to improve. Use harder tasks or a "
            "weaker executor."
        )


def first_states(scanned: Sequence[Scanned], settings: TrainingConfig) -> tuple[RefinementState, ...]:
    """The states of phase 0; with a limit those that can teach most: mixed first, then failed, then passed."""
    limit = settings.states_per_phase
    ranked = sorted(scanned, key=lambda task: (-mixedness(task.rollouts), task.share))
    return tuple(task.state(settings) for task in (ranked[:limit] if limit else scanned))
