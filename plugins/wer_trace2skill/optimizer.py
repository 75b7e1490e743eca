"""Trace2Skill: one skill a domain, consolidated from what all of its trajectories teach [arXiv 2603.25158].

The loop rolls the base skill out over the training tasks (stage 1). Here analysts propose patches
in parallel (stage 2), and patches are consolidated and applied (stage 3).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

from attrs import evolve, frozen

from wer.configuration import structure
from wer.contracts import Evaluate, OptimizerSetup
from wer.errors import PromptTooLong
from wer.groups import propose_and_evaluate
from wer.records import (
    Candidate,
    JsonObject,
    PhaseOutcome,
    RefinementState,
    Rollout,
    Skill,
    Usage,
    content_hash,
    derive_seed,
)
from wer.replies import Replies
from wer.skills import slug
from wer.together import together
from wer_trace2skill.analysts import Analysts, Case
from wer_trace2skill.applying import Result, apply_patch
from wer_trace2skill.asking import Settled, Writer
from wer_trace2skill.conflicts import Patch
from wer_trace2skill.merging import Merged, Merger
from wer_trace2skill.options import Options


@frozen(kw_only=True)
class Consolidation:
    """What became of a domain's trajectories.

    Attributes:
        skill: None where nothing could be made of them.
        report: How it came about, edit by edit, as JSON; also in the run's notes.
        texts: All that the model wrote, in a fixed order.
    """

    skill: Skill | None
    report: JsonObject
    texts: tuple[str, ...]
    usage: Usage

    @property
    def sentence(self) -> str:
        """For the display."""
        found = self.report
        counted = ", ".join(f"{count} {kind}" for kind, count in found["counts"].items())
        return (
            f"Trace2Skill: {found['trajectories']} trajectories, {found['patches']} patches, {found['levels']} levels, "
            f"{len(found['edits'])} edits applied" + (f" ({counted})" if counted else "")
        )


class Trace2Skill:
    """Writes a domain's skill from all of its trajectories at once.

    Args:
        setup: Its ``open_model`` gives the one model of analysts and mergers; the paper takes the
            agent's own.
    """

    learns = False
    imitates = True

    def __init__(self, setup: OptimizerSetup) -> None:
        self._options = structure(Options, setup.options, where="optimizer.trace2skill")
        self._setup = setup
        self._writer = Writer(replies=Replies(who="Trace2Skill", model=setup.open_model(), setup=setup))

    async def consolidate(self, states: Sequence[RefinementState], seed: int) -> Skill:
        """Write a domain's skill; the one in force stays where no valid patch came.

        Raises:
            PromptTooLong: No trajectory fits.
            WerError, InfrastructureError: The model's, the sandbox's or the budget's.
        """
        found = await self._consolidated(states, seed)
        self._setup.progress(found.sentence)
        return found.skill or states[0].skill

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
        """Consolidate each state's own trajectories, k times independently: a domain of one task.

        Raises:
            PromptTooLong: Of a first state; a later one that does not fit is left without a skill.
            WerError, InfrastructureError: The model's, the sandbox's or the budget's.
        """
        return await together(self._candidates(state, k, seed) for state in states)

    async def _candidates(self, state: RefinementState, k: int, seed: int) -> Sequence[Candidate]:
        return await together(
            self._candidate(state, index, derive_seed(seed, state.id, index)) for index in range(k)
        )

    async def _candidate(self, state: RefinementState, index: int, seed: int) -> Candidate:
        try:
            found = await self._consolidated([state], seed)
        except PromptTooLong as error:
            if state.round == 0:
                raise
            report = {"problem": str(error)}
            found = Consolidation(skill=None, report=report, texts=(), usage=Usage())
        problem = "" if found.skill else str(found.report["problem"])
        return Candidate(
            state_id=state.id,
            index=index,
            text="\n\n".join(found.texts) or problem,
            reasoning="\n".join(edit["lesson"] for edit in found.report.get("edits", ())),
            skill=found.skill,
            well_formed=found.skill is not None,
            problem=problem,
            usage=found.usage,
        )

    async def _consolidated(self, states: Sequence[RefinementState], seed: int) -> Consolidation:
        """Stages 2 and 3 over the trajectories of one base skill."""
        base = _named(states[0])
        cases = await self._cases(states)
        settled, too_long = await self._analyse(base, cases, seed)
        patches = [each.reading.value for each in settled if each.reading.value is not None]
        counts = Counter(refusal.kind for each in settled for refusal in each.reading.refused)
        counts["too long"] += too_long
        merged = await self._merger(base, seed).consolidate(patches) if patches else _NOTHING
        result = apply_patch(base, merged.patch, max_words=self._options.max_words)
        counts.update(merged.counts)
        counts["edits not applied"] += len(merged.patch.edits) - len(result.edits)
        report = _report(cases, patches, merged, result, +counts)
        self._setup.notes.put(_key(states, seed), json.dumps(report))
        return Consolidation(
            skill=result.skill if result.edits else None,
            report=report,
            texts=(*(text for each in settled for text in each.texts), *merged.texts),
            usage=sum((each.usage for each in settled), merged.usage),
        )

    async def _cases(self, states: Sequence[RefinementState]) -> list[Case]:
        """The trajectories to analyse, a round over the tasks after the other; failures with a success."""
        wanted = {"combined": (True, False), "success": (True,), "error": (False,)}[self._options.analysts]
        listed = [[each for each in state.evidence if each.verdict.passed in wanted] for state in states]
        turns = zip_longest(*listed)
        chosen = [(state, each) for turn in turns for state, each in zip(states, turn, strict=True) if each]
        chosen = chosen[: self._options.max_patches or None]
        failed = {state.id: state for state, each in chosen if not each.verdict.passed}
        found = await together(self._success(state) for state in failed.values())
        successes = dict(zip(failed, found, strict=True))
        return [
            Case(
                task=state.task,
                rollout=each,
                success=None if each.verdict.passed else successes[state.id],
            )
            for state, each in chosen
        ]

    async def _success(self, state: RefinementState) -> Rollout | None:
        """What a failure is compared with; a reference that does not pass is none."""
        played = await self._setup.reference(state.task)
        if played is not None and played.verdict.passed:
            return played
        return next(iter(state.successes), None)

    async def _analyse(
        self, base: Skill, cases: Sequence[Case], seed: int
    ) -> tuple[list[Settled[Patch]], int]:
        """Dispatch an analyst a trajectory, all at once, none of which sees another's patch.

        Returns:
            In the order of the cases, and how many were too long and left out.
        """
        analysts = Analysts(
            writer=self._writer,
            base=base,
            max_edits=self._options.max_edits,
            temperature=self._options.analyst_temperature,
            error_turns=self._options.error_turns,
            max_tokens=self._setup.max_response_tokens,
        )

        async def analyse(case: Case) -> Settled[Patch] | PromptTooLong:
            try:
                return await analysts.analyse(case, derive_seed(seed, "analyst", case.rollout.key))
            except PromptTooLong as error:
                return error

        found = await together(analyse(case) for case in cases)
        settled = [each for each in found if isinstance(each, Settled)]
        refused = [each for each in found if isinstance(each, PromptTooLong)]
        if refused and not settled:
            raise refused[0]
        return settled, len(refused)

    def _merger(self, base: Skill, seed: int) -> Merger:
        return Merger(
            writer=self._writer,
            base=base,
            create=self._options.mode == "create" or base.empty,
            fan_in=self._options.fan_in,
            max_edits=self._options.max_merged_edits,
            temperature=self._options.merger_temperature,
            max_tokens=self._setup.max_response_tokens,
            seed=seed,
        )

    def save(self, folder: Path) -> None:
        """Nothing is trained, so nothing is written."""

    def load(self, folder: Path) -> None:
        """Nothing was written, so nothing is read."""

    async def close(self) -> None:
        """The model belongs to the run."""


_NOTHING = Merged(patch=Patch(edits=()))


def _named(state: RefinementState) -> Skill:
    """The base; an empty one is named after the domain, so that analysts can say what they patch."""
    if state.skill.name:
        return state.skill
    return evolve(state.skill, name=slug(state.task.domain) or "skill")


def _key(states: Sequence[RefinementState], seed: int) -> str:
    return f"consolidation {content_hash([[state.id for state in states], seed])}"


def _report(
    cases: Sequence[Case],
    patches: Sequence[Patch],
    merged: Merged,
    result: Result,
    counts: Counter[str],
) -> JsonObject:
    """How a skill came about."""
    edits = [
        {"op": edit.op, "section": edit.section, "lesson": edit.lesson, "support": sorted(edit.support)}
        for edit in result.edits
    ]
    problem = result.problem if patches else "no analyst gave a valid patch"
    return {
        "trajectories": len(cases),
        "patches": len(patches),
        "levels": merged.levels,
        "counts": dict(sorted(counts.items())),
        "edits": edits,
        "problem": problem,
    }
