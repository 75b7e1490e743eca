"""SKILLER: the skill is the policy text, and a strong model is its critic and actor [arXiv 2608.10538].

The loop's refinement is the paper's: it rolls every update out, verifies it, goes on from it,
keeps each as a snapshot in the store, and rolls back to the best. Here is one update.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wer.configuration import structure
from wer.contracts import Evaluate, OptimizerSetup
from wer.errors import PromptTooLong
from wer.groups import propose_and_evaluate
from wer.records import (
    Candidate,
    PhaseOutcome,
    RefinementState,
    Sampling,
    Skill,
    derive_seed,
)
from wer.replies import Replies
from wer.together import together
from wer_skiller.actor import actor_system, edits_schema, initial_messages, read_edits, repair_messages
from wer_skiller.bundle import Bundle, Edit
from wer_skiller.checking import check_update
from wer_skiller.critic import INFRASTRUCTURE, SCHEMA, Diagnosis, critic_messages, read_diagnosis
from wer_skiller.memory import Attempt, outcome, recall, remember
from wer_skiller.options import Options
from wer_skiller.situation import Situation, situation
from wer_skiller.talking import Refusal, Talk

_NOTHING_FAILED = "nothing to mend: every rollout that is shown passed"


class Skiller:
    """Edits one bundle a task, from one memory a task; tasks side by side.

    Args:
        setup: Its ``open_model`` gives the model of critic and actor.
    """

    learns = False
    imitates = True

    def __init__(self, setup: OptimizerSetup) -> None:
        self._options = structure(Options, setup.options, where="optimizer.skiller")
        self._setup = setup
        self._writer = Replies(who="SKILLER", model=setup.open_model(), setup=setup)

    async def run_phase(
        self, states: Sequence[RefinementState], evaluate: Evaluate, folder: Path
    ) -> PhaseOutcome:
        """Propose and evaluate, one state's group as soon as it is written; nothing is learned."""
        return await propose_and_evaluate(
            self.propose, states, evaluate, k=self._setup.k, seed=self._setup.seed
        )

    async def propose(
        self, states: Sequence[RefinementState], k: int, seed: int
    ) -> Sequence[Sequence[Candidate]]:
        """Update each state's bundle, k times independently.

        Raises:
            PromptTooLong: Of a first state; a later one that does not fit is left without a skill.
            WerError, InfrastructureError: The model's, the sandbox's or the budget's.
        """
        return await together(self._updates(state, k, seed) for state in states)

    async def _updates(self, state: RefinementState, k: int, seed: int) -> Sequence[Candidate]:
        return await together(
            self._update(state, index, derive_seed(seed, state.id, index)) for index in range(k)
        )

    async def _update(self, state: RefinementState, index: int, seed: int) -> Candidate:
        update = _Update(self._setup, self._options, self._writer, state, seed)
        skill: Skill | None = None
        problem = ""
        try:
            skill = await update.skill()
        except Refusal as refusal:
            problem = str(refusal)
        except PromptTooLong as error:
            if state.round == 0:
                raise
            problem = str(error)
        candidate = Candidate(
            state_id=state.id,
            index=index,
            text="\n\n".join(update.talk.texts) or problem or _NOTHING_FAILED,
            reasoning=update.summary,
            skill=skill,
            well_formed=skill is not None,
            problem=problem,
            usage=update.talk.usage,
        )
        if skill is not None:
            remember(self._setup.notes, candidate.id, update.attempt())
        return candidate

    def save(self, folder: Path) -> None:
        """Nothing is trained, so nothing is written."""

    def load(self, folder: Path) -> None:
        """Nothing was written, so nothing is read."""

    async def close(self) -> None:
        """The model belongs to the run."""


class _Update:
    """One update of one bundle."""

    def __init__(
        self, setup: OptimizerSetup, options: Options, writer: Replies, state: RefinementState, seed: int
    ) -> None:
        self._setup = setup
        self._options = options
        self._state = state
        self._seed = seed
        self._bundle = Bundle.of(state.skill)
        self._attempts = recall(setup.notes, state)
        self._diagnosis: Diagnosis | None = None
        self._edits: tuple[Edit, ...] = ()
        self.talk = Talk(writer=writer)

    @property
    def summary(self) -> str:
        """The critic's, for whoever reads the candidate."""
        if self._diagnosis is None:
            return ""
        return f"{self._diagnosis.failure}, step {self._diagnosis.step}: {self._diagnosis.cause}"

    async def skill(self) -> Skill:
        """The complete updated skill, or the same one where there is nothing to mend.

        Raises:
            Refusal: Critic or actor gave nothing usable in two tries.
        """
        here = await situation(self._state, self._setup)
        if self._state.round == 0 and self._state.parent is None and here.success is not None:
            return await self._act(here)
        if here.current is None:
            return self._state.skill
        self._diagnosis = await self._criticise(here)
        if self._diagnosis.failure == INFRASTRUCTURE:
            return self._state.skill
        return await self._act(here)

    def attempt(self) -> Attempt:
        """What the memory keeps of it."""
        found = self._diagnosis
        started = "initialisation" if self._edits else "no failure"
        return Attempt(
            parent=self._state.parent or "",
            failure=found.failure if found else started,
            signature=found.signature if found else "",
            summary=found.cause if found else "",
            edits=tuple(edit.summary for edit in self._edits),
            before=outcome(self._state.evidence),
        )

    async def _criticise(self, here: Situation) -> Diagnosis:
        async def read(text: str) -> Diagnosis:
            return read_diagnosis(text, steps=here.steps)

        asked = critic_messages(here, self._bundle, self._attempts, max_edits=self._options.max_edits)
        sampling = Sampling(
            temperature=self._options.critic_temperature,
            max_tokens=self._setup.max_response_tokens,
            seed=derive_seed(self._seed, "critic"),
            json_schema=SCHEMA,
        )
        return await self.talk.settle("critic", asked, sampling, read)

    async def _act(self, here: Situation) -> Skill:
        options = self._options
        system = actor_system(max_edits=options.max_edits, scripts=options.scripts)
        if self._diagnosis is None:
            asked = initial_messages(here, self._bundle, system=system)
        else:
            asked = repair_messages(here, self._bundle, self._diagnosis, self._attempts, system=system)
        sampling = Sampling(
            temperature=options.actor_temperature,
            max_tokens=self._setup.max_response_tokens,
            seed=derive_seed(self._seed, "actor"),
            json_schema=edits_schema(options.max_edits),
        )

        async def read(text: str) -> Skill:
            edits = read_edits(text, max_edits=options.max_edits)
            new = self._bundle.edited(edits)
            await check_update(
                new,
                self._state.skill,
                private=here.private,
                scripts=options.scripts,
                try_script=self._setup.try_script,
            )
            self._edits = edits
            return new

        return await self.talk.settle("actor", asked, sampling, read)
