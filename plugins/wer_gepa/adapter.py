"""What the gepa package sees of WER: tasks to score a skill text on, and what happened there, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve
from gepa.core.adapter import EvaluationBatch, GEPAAdapter

from wer.contracts import Evaluate
from wer.errors import SearchSpent
from wer.records import Candidate, Experience, RefinementState, Rollout, Skill
from wer.skills import slug
from wer.skills.cleaning import harmless, plain
from wer.tooldocs import signatures
from wer.writing import render_trajectory
from wer_gepa.bridge import Bridge
from wer_gepa.options import Options

COMPONENT = "skill"
"""The one text of the agent that gepa evolves: the skill's body."""

_MAX_CHARACTERS = 20_000
_REPEATS = 4
"""Scores asked for, as a multiple of the rollouts allowed, at which a search that only repeats itself ends."""


class Adapter(GEPAAdapter[RefinementState, Experience, Experience]):
    """Scores candidates through the loop's `Evaluate`, which stores, judges and charges.

    Args:
        rollouts: The most that the search may have run. What the states bring is not counted.
    """

    propose_new_texts = None

    def __init__(
        self,
        states: Sequence[RefinementState],
        *,
        evaluate: Evaluate,
        bridge: Bridge,
        options: Options,
        rollouts: int,
    ) -> None:
        self._base = states[0].skill
        self._named = named(states[0])
        self._evaluate = evaluate
        self._bridge = bridge
        self._options = options
        self._rollouts = rollouts
        self._calls = 0
        self._texts: dict[str, int] = {self._base.body: 0}
        self._known = {
            (self._base.body, state.id) for state in states if len(state.evidence) >= options.trials
        }
        self._had = len(self._known)

    def spent(self, gepa_state: object) -> bool:
        """Whether the search has to end: gepa's condition to stop, asked before every iteration."""
        used = (len(self._known) - self._had) * self._options.trials
        repeats = self._calls * self._options.trials >= _REPEATS * self._rollouts
        return self._bridge.failure is not None or used >= self._rollouts or repeats

    def demand_unbroken(self) -> None:
        """Raise what ended the search, where gepa would have gone on."""
        if self._bridge.failure is not None:
            raise self._bridge.failure

    def skill(self, text: str) -> Skill | None:
        """The skill of a text; None for one that no agent can be given."""
        return self._base if text == self._base.body else revised(self._named, text)

    def evaluate(
        self, batch: list[RefinementState], candidate: dict[str, str], capture_traces: bool = False
    ) -> EvaluationBatch[Experience, Experience]:
        """Run one candidate on some tasks. gepa fills up a minibatch by naming a task twice: that is one evaluation.

        Raises:
            SearchSpent: They would be more rollouts than the search may have.
        """
        text = candidate[COMPONENT]
        self._calls += len(batch)
        pairs = {(text, state.id) for state in batch}
        allowed = (len(self._known | pairs) - self._had) * self._options.trials <= self._rollouts
        index = self._texts.setdefault(text, len(self._texts))
        asked = {state.id: state for state in batch}
        proposals = [(state, proposed(state, index, text, self.skill(text))) for state in asked.values()]

        async def run() -> Sequence[Experience]:
            if not allowed:
                raise SearchSpent("the domain's share of rollouts is spent")
            return await self._evaluate(proposals, self._options.trials)

        had = dict(zip(asked, self._bridge.wait(run), strict=True))
        found = [had[state.id] for state in batch]
        self._known |= pairs
        return EvaluationBatch(
            outputs=found,
            scores=[experience.reward.task for experience in found],
            trajectories=found if capture_traces else None,
        )

    def make_reflective_dataset(
        self,
        candidate: dict[str, str],
        eval_batch: EvaluationBatch[Experience, Experience],
        components_to_update: list[str],
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """Tell reflection what happened, verbatim."""
        found = eval_batch.trajectories or []
        return {COMPONENT: records(found, diagnostics=self._options.diagnostics)}


def named(state: RefinementState) -> Skill:
    """The skill in force; where there is none, what a text needs beside itself to become one."""
    if not state.skill.empty:
        return state.skill
    domain = state.task.domain
    return evolve(state.skill, name=slug(domain) or "skill", description=f"Tasks of the domain {domain}.")


def revised(base: Skill, text: str) -> Skill | None:
    """Give a skill another body. GEPA's texts need no numbered steps; beyond that they are hostile as any."""
    body = harmless(plain(text)).strip()
    return evolve(base, body=body) if body and len(body) <= _MAX_CHARACTERS else None


def proposed(state: RefinementState, index: int, text: str, skill: Skill | None) -> Candidate:
    """Put a text of gepa's in the loop's form."""
    return Candidate(
        state_id=state.id,
        index=index,
        text=text,
        reasoning="",
        skill=skill,
        well_formed=skill is not None,
        problem="" if skill is not None else f"empty, or longer than {_MAX_CHARACTERS} characters",
    )


def records(experiences: Sequence[Experience], *, diagnostics: bool) -> list[dict[str, Any]]:
    """One record a rollout in gepa's schema; tools are listed with the first task that has them."""
    told: list[dict[str, Any]] = []
    seen: set[str] = set()
    for experience in experiences:
        tools = signatures(experience.state.task.tools)
        listed = {} if tools in seen else {"Tools": tools}
        seen.add(tools)
        if not experience.rollouts:
            told.append({"Inputs": listed, "Generated Outputs": "", "Feedback": experience.candidate.problem})
        for rollout in experience.rollouts:
            told.append(_record(experience.state, rollout, listed, diagnostics=diagnostics))
            listed = {}
    return told


def _record(
    state: RefinementState, rollout: Rollout, listed: Mapping[str, str], *, diagnostics: bool
) -> dict[str, Any]:
    verdict = rollout.verdict
    outcome = "Passed." if verdict.passed else f"Failed, with a score of {verdict.score:g}."
    found = verdict.diagnostics if diagnostics else ()
    context = {"Environment": state.task.context} if listed and state.task.context else {}
    return {
        "Inputs": {**listed, **context, "Task": "\n".join(state.task.turns)},
        "Generated Outputs": harmless(render_trajectory(rollout.trajectory)),
        "Feedback": harmless("\n".join([outcome, *found])),
    }
