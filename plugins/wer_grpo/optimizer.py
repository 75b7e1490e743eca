"""In-process GRPO: sample, have the candidates executed, and learn from what they earned."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from itertools import compress
from pathlib import Path

from attrs import evolve

from wer.contracts import Evaluate, OptimizerSetup
from wer.errors import ConfigError, OptimizerError
from wer.measures import describe
from wer.records import Candidate, Experience, PhaseOutcome, RefinementState, Usage, derive_seed
from wer.writing import unwritten
from wer_grpo.authoring import Written
from wer_grpo.checkpoints import Progress, load_learner, newest_checkpoint, read_progress, write_checkpoint
from wer_grpo.learner import Group
from wer_grpo.policy import Answer
from wer_grpo.surrogate import advantages
from wer_grpo.trained import Trained


class Grpo(Trained):
    """The Skill Optimizer pi_theta, trained with the clipped surrogate of Eq. 6.

    The writer is loaded at first use. Runs on the CPU; CUDA is used where torch finds
    it, which has not been tried.

    Args:
        setup: ``setup.options`` is read as `GrpoOptions`.

    Raises:
        ConfigError: An option is wrong, a group would have one candidate, or the writer is a
            folder whose tokenizer or chat template is of no use.
    """

    learns = True

    def __init__(self, setup: OptimizerSetup) -> None:
        if setup.k < 2:
            raise ConfigError(
                f"GRPO compares the candidates of a group, and training.k is {setup.k}. Set it to 2 or more."
            )
        super().__init__(setup)

    async def run_phase(
        self, states: Sequence[RefinementState], evaluate: Evaluate, folder: Path
    ) -> PhaseOutcome:
        """One pass over the states, a batch at a time, with a checkpoint after each batch.

        States are taken in an order that derives from the run's seed. A checkpoint that is
        there already is gone on from; candidates that were recorded after it are used as
        they are, since the policy that wrote them is the checkpoint's.

        Raises:
            PromptTooLong: A seed state does not fit, or no state does; nothing was sampled
                yet. States that the loop assembled are left out instead.
            BudgetExhausted: Before a batch is sampled.
            OptimizerError: Loss, gradient or logits are not finite; the weights are those
                of the last good step, and the message names the last checkpoint.
        """
        if self._setup.temperature <= 0:
            raise ConfigError("training.temperature is 0: candidates of a group would be equal. Raise it.")
        progress, fitting = await self._worker.run(lambda: self._begin(states, folder))
        order = sorted(fitting, key=lambda state: derive_seed(self._setup.seed, "order", state.id))
        done = set(progress.done)
        found: dict[str, list[Experience]] = {}
        for state in (state for state in order if state.id in done):
            found[state.id] = list(await evaluate(self._recorded(state, evaluate, folder)))
        open_ = [state for state in order if state.id not in done]
        for start in range(0, len(open_), self._options.batch):
            batch = open_[start : start + self._options.batch]
            groups, metrics = await self._batch(
                batch, evaluate, self._share(progress, batch, len(order)), folder
            )
            found |= dict(zip((state.id for state in batch), groups, strict=True))
            self._setup.record(progress.batches, metrics)
            progress = evolve(
                progress,
                done=(*progress.done, *(state.id for state in batch)),
                batches=progress.batches + 1,
            )
            now = progress
            await self._worker.run(lambda now=now: write_checkpoint(self._learner, now, folder))  # type: ignore[misc]
        experiences = tuple(experience for state in fitting for experience in found[state.id])
        return PhaseOutcome(experiences=experiences)

    async def propose(
        self, states: Sequence[RefinementState], k: int, seed: int
    ) -> Sequence[Sequence[Candidate]]:
        """Sample k candidates a state and learn nothing; at temperature 0 the most likely one, k times.

        A state that the loop assembled and that does not fit gets k candidates without a skill.

        Raises:
            PromptTooLong: A seed state does not fit; nothing was sampled yet.
            BudgetExhausted: Before a batch is sampled.
        """
        refused = await self._worker.run(lambda: self._author.refusals(states))
        fitting = [state for state in states if state.id not in refused]
        groups: dict[str, tuple[Candidate, ...]] = {}
        side_by_side = max(1, self._options.batch * self._setup.k // k)  # as many answers as in training
        for start in range(0, len(fitting), side_by_side):
            batch = fitting[start : start + side_by_side]
            self._setup.check()
            written = await self._worker.run(lambda batch=batch: self._author.sample(batch, k, seed))  # type: ignore[misc]
            self._charge(written)
            groups |= {state.id: group.candidates for state, group in zip(batch, written, strict=True)}
        return [groups.get(state.id) or unwritten(state, k) for state in states]

    def _begin(
        self, states: Sequence[RefinementState], folder: Path
    ) -> tuple[Progress, list[RefinementState]]:
        """Give how far the phase is, and the states that fit."""
        folder.mkdir(parents=True, exist_ok=True)
        refused = self._author.refusals(states)
        fitting = [state for state in states if state.id not in refused]
        if refused and not fitting:
            raise next(iter(refused.values()))
        checkpoint = newest_checkpoint(folder)
        if checkpoint is None:
            return Progress(), fitting
        self._setup.progress(f"going on from {checkpoint.name}")
        load_learner(self._learner, checkpoint)
        return read_progress(checkpoint), fitting

    def _charge(self, written: Iterable[Written]) -> None:
        """Book what was sampled; recorded candidates were booked when they were written."""
        self._setup.charge(sum((each.usage for group in written for each in group.candidates), Usage()))

    def _recorded(
        self, state: RefinementState, evaluate: Evaluate, folder: Path
    ) -> list[tuple[RefinementState, Candidate]]:
        group = evaluate.recorded(state)
        if not group:
            raise OptimizerError(
                f"the checkpoint in {folder} learnt from state {state.id}, and the run has no candidates for it: "
                "they belong to different runs. Remove the folder to train this phase again."
            )
        return [(state, candidate) for candidate in group]

    def _share(
        self, progress: Progress, batch: Sequence[RefinementState], states: int
    ) -> tuple[float, float]:
        """Give the share of the whole schedule that is done before and after a batch."""
        phases = max(self._setup.phases, 1)
        before = len(progress.done) / states
        after = (len(progress.done) + len(batch)) / states
        return (batch[0].phase + before) / phases, (batch[0].phase + after) / phases

    async def _batch(
        self, batch: Sequence[RefinementState], evaluate: Evaluate, share: tuple[float, float], folder: Path
    ) -> tuple[list[list[Experience]], dict[str, float]]:
        began = time.monotonic()
        recorded = {state.id: evaluate.recorded(state) for state in batch}
        fresh = [not recorded[state.id] for state in batch]
        if any(fresh):
            self._setup.check()
        written = await self._worker.run(lambda: self._author.write(batch, recorded))
        if any(fresh):
            self._charge(compress(written, fresh))
        sampled = time.monotonic()
        pairs = [
            (state, candidate)
            for state, group in zip(batch, written, strict=True)
            for candidate in group.candidates
        ]
        experiences = iter(await evaluate(pairs))
        groups = [[next(experiences) for _ in group.candidates] for group in written]
        executed = time.monotonic()
        lessons = [
            self._lesson(state, group, each.answers)
            for state, group, each in zip(batch, groups, written, strict=True)
        ]
        learnt = await self._worker.run(lambda: self._learn(lessons, share, folder))
        seconds = {
            "generation_s": sampled - began,
            "rollouts_s": executed - sampled,
            "update_s": time.monotonic() - executed,
        }
        return groups, {**describe(groups, scaled=self._options.scale_advantages), **learnt, **seconds}

    def _lesson(
        self, state: RefinementState, group: Sequence[Experience], answers: tuple[Answer, ...]
    ) -> Group:
        rewards = [experience.reward.total for experience in group]
        return Group(
            prompt=self._writer.prompt(state),
            answers=answers,
            advantages=advantages(rewards, scaled=self._options.scale_advantages),
        )
