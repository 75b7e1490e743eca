"""Skill-R1: a skill generator trained on whole recurrences, or the recurrence alone [arXiv 2605.09359]."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from attrs import asdict

from wer.configuration import structure
from wer.contracts import Evaluate, OptimizerSetup, Policy
from wer.errors import ConfigError, OptimizerError
from wer.measures import describe
from wer.records import Candidate, PhaseOutcome, RefinementState, derive_seed
from wer.together import together
from wer.writing import unwritten
from wer_skill_r1.advantages import improvements
from wer_skill_r1.asked import Asked, Writes
from wer_skill_r1.chain import Chain
from wer_skill_r1.history import recall, remember
from wer_skill_r1.options import InferenceOptions, Options
from wer_skill_r1.recurrence import Recurrence, Seconds, candidates

_OF_OTHER_ADVANTAGES = ("zero_variance", "advantage_share_")


def trained(setup: OptimizerSetup) -> SkillR1:
    """Make the trained one.

    Raises:
        ConfigError: An option is wrong, or there is one generation.
    """
    options = structure(Options, setup.options, where="optimizer.skill_r1")
    if setup.k < 2:
        raise ConfigError(
            f"Skill-R1 learns from how a generation improves on the one before, and training.k, the number of "
            f"generations, is {setup.k}. Set it to 2 or more."
        )
    policy = setup.open_policy(options.policy)
    return SkillR1(setup, policy, policy=policy, weight=options.inter_weight)


def inference(setup: OptimizerSetup) -> SkillR1:
    """Make "Skill-R1 inference": the same recurrence, with any model and without gradient steps."""
    structure(InferenceOptions, setup.options, where="optimizer.skill_r1_inference")
    return SkillR1(setup, Asked(setup))


class SkillR1:
    """Writes each task's next skill from the history of all its generations.

    Args:
        writer: Who writes.
        policy: The same when it learns; None is Skill-R1 inference.
        weight: The paper's lambda.
    """

    def __init__(
        self, setup: OptimizerSetup, writer: Writes, *, policy: Policy | None = None, weight: float = 0.0
    ) -> None:
        self._setup = setup
        self._writer = writer
        self._policy = policy
        self._weight = weight
        self._recurrence = Recurrence(setup=setup, writer=writer)

    @property
    def learns(self) -> bool:
        """False for Skill-R1 inference."""
        return self._policy is not None

    async def run_phase(
        self, states: Sequence[RefinementState], evaluate: Evaluate, folder: Path
    ) -> PhaseOutcome:
        """Evolve every task for G generations; a policy learns from a batch of tasks at a time.

        Raises:
            PromptTooLong: A seed state does not fit, or no state does; nothing was sampled yet.
            BudgetExhausted: What was written and run is stored.
            OptimizerError: The update failed; the weights are those of the last good step.
        """
        if self._policy is None:
            starts = await self._recurrence.starts(states)
            found = await together(self._recurrence.evolve([state], evaluate, Seconds()) for state in starts)
            chains = [chain for [chain] in found]
        else:
            done = await self._policy.resume(folder)
            starts = await self._recurrence.starts(states)
            chains = await self._train(self._policy, starts, done, evaluate, folder)
        return PhaseOutcome(
            experiences=tuple(experience for chain in chains for experience in chain.experiences)
        )

    async def _train(
        self,
        policy: Policy,
        starts: Sequence[RefinementState],
        done: Sequence[str],
        evaluate: Evaluate,
        folder: Path,
    ) -> list[Chain]:
        """Take the tasks in an order that derives from the seed, a checkpoint after each batch."""
        order = sorted(starts, key=lambda state: derive_seed(self._setup.seed, "order", state.id))
        learnt = [state for state in order if state.id in done]
        if not all(evaluate.recorded(state) for state in learnt):
            raise OptimizerError(
                f"the checkpoint in {folder} learnt from states of which the run has no candidates: they belong to "
                "different runs. Remove the folder to train this phase again."
            )
        found = await self._evolved(learnt, evaluate, Seconds())
        rest = [state for state in order if state.id not in done]
        for start in range(0, len(rest), policy.batch):
            batch = rest[start : start + policy.batch]
            spent = Seconds()
            chains = await self._evolved(batch, evaluate, spent)
            share = self._share(batch[0].phase, len(found), len(batch), len(order))
            metrics = await self._learn(policy, list(chains.values()), share)
            self._setup.record(len(found) // policy.batch, {**metrics, **asdict(spent)})
            found |= chains
            await policy.checkpoint(folder, tuple(found))
        return [found[state.id] for state in starts]

    async def _evolved(
        self, states: Sequence[RefinementState], evaluate: Evaluate, spent: Seconds
    ) -> dict[str, Chain]:
        chains = await self._recurrence.evolve(states, evaluate, spent)
        return {state.id: chain for state, chain in zip(states, chains, strict=True)}

    def _share(self, phase: int, done: int, batch: int, tasks: int) -> tuple[float, float]:
        """Give the share of the whole training before and after a batch."""
        phases = max(self._setup.phases, 1)
        return (phase + done / tasks) / phases, (phase + (done + batch) / tasks) / phases

    async def _learn(
        self, policy: Policy, chains: Sequence[Chain], share: tuple[float, float]
    ) -> Mapping[str, float]:
        began = time.monotonic()
        lessons = [lesson for chain in chains for lesson in chain.lessons(self._weight)]
        learnt = await policy.update(lessons, share)
        gains = [gain for chain in chains for gain in improvements(chain.rewards)]
        described = describe([chain.experiences for chain in chains])
        return {
            **{name: value for name, value in described.items() if not name.startswith(_OF_OTHER_ADVANTAGES)},
            "improvement": fmean(gains) if gains else 0.0,
            **learnt,
            "update_s": time.monotonic() - began,
        }

    async def propose(
        self, states: Sequence[RefinementState], k: int, seed: int
    ) -> Sequence[Sequence[Candidate]]:
        """Write k next skills for each state, from its own history and that of the candidate behind it.

        A state that the loop assembled and that does not fit gets k candidates without a skill.

        Raises:
            PromptTooLong: A seed state does not fit; nothing was sampled yet.
            BudgetExhausted: Before anything is sampled.
        """
        chains = [Chain.begin(state, recall(self._setup.notes, state.parent)) for state in states]
        over = await self._writer.excess([chain.request for chain in chains])
        for state, excess in zip(states, over, strict=True):
            if excess and state.round == 0:
                raise self._recurrence.refusal(state, excess)
        fitting = [chain for chain, excess in zip(chains, over, strict=True) if not excess]
        written = await self._writer.sample(
            [chain.request for chain in fitting],
            [derive_seed(seed, chain.state.id) for chain in fitting],
            k,
        )
        groups: dict[str, Sequence[Candidate]] = {}
        for chain, group in zip(fitting, written, strict=True):
            groups[chain.state.id] = candidates(chain.state, group)
            for candidate in groups[chain.state.id]:
                remember(self._setup.notes, candidate.id, chain.history)
        return [groups.get(state.id) or unwritten(state, k) for state in states]

    def save(self, folder: Path) -> None:
        """Write the trained policy; nothing when none is trained."""
        if self._policy is not None:
            self._policy.save(folder)

    def load(self, folder: Path) -> None:
        """Take over what `save` wrote."""
        if self._policy is not None:
            self._policy.load(folder)

    async def close(self) -> None:
        """Free the policy; a model belongs to the run."""
        if self._policy is not None:
            await self._policy.close()
