"""What every optimizer must do: seen with a scripted writer, or with weights that the user names."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from attrs import define, evolve, field, frozen

from wer.conformance.checks import Check, Fault, Kind, NotApplicable, Settings
from wer.conformance.scripts import TASK, USAGE, Asked, ScriptedModel
from wer.contracts import Optimizer, OptimizerSetup
from wer.errors import BudgetExhausted, ConfigError, InfrastructureError
from wer.plugins import Plugins
from wer.records import (
    Candidate,
    End,
    Evidence,
    Experience,
    RefinementState,
    Reply,
    Reward,
    Rollout,
    Skill,
    Step,
    Trajectory,
    TurnEvidence,
    Verdict,
    derive_seed,
)

_K = 2
_PATIENCE_S = 600.0
_NO_WEIGHTS = "/no/weights"
"""A path: whoever wants a model from a hub must not find one. A scripted writer asks no name."""


def _rollout(passed: bool, skill: Skill) -> Rollout:
    step = Step(turn=0, text="Done.")
    end = End(by="user")
    return Rollout(
        key=f"conformance-{passed}",
        task_id=TASK.id,
        skill_id=skill.id,
        seed=int(passed),
        trajectory=Trajectory(messages=TASK.turns[:1], steps=(step,), end=end, seed=int(passed)),
        evidence=Evidence(turns=(TurnEvidence(state=None),), end=end),
        verdict=Verdict(score=float(passed), passed=passed),
    )


_SKILL = Skill(name="greet-people", description="Greet.", body="## Workflow\n1. Greet.\n")
STATES = tuple(
    RefinementState(
        task=evolve(TASK, id=f"conformance/{number}"),
        skill=_SKILL,
        evidence=(_rollout(True, _SKILL), _rollout(False, _SKILL)),
    )
    for number in range(2)
)
"""Two states, each with a success and a failure as evidence."""


def written(asked: Asked) -> Reply:
    """A well-formed revision, another one for each seed."""
    step = f"Greet {asked.sampling.seed} times."
    skill = f"name: greet\ndescription: Greet.\n## Workflow\n1. {step}"
    text = f"<think>\nWhy.\n</think>\n<skill>\n{skill}\n</skill>"
    return Reply(text=text, usage=USAGE)


@define
class Paid:
    """An `wer.contracts.Evaluate` that runs nothing: the text decides what a candidate earns.

    Attributes:
        failure: Raised at the first call, once.
        groups: What was proposed, by state, as a store would keep it.
    """

    failure: Exception | None = None
    groups: dict[str, list[Candidate]] = field(factory=dict)

    async def __call__(
        self, proposals: Sequence[tuple[RefinementState, Candidate]], n: int | None = None
    ) -> Sequence[Experience]:
        """Record, then fail or pay."""
        for state, candidate in proposals:
            group = self.groups.setdefault(state.id, [])
            if candidate.index not in [each.index for each in group]:
                group.append(candidate)
        await asyncio.sleep(0)
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure
        return [self._experience(state, candidate) for state, candidate in proposals]

    def recorded(self, state: RefinementState) -> Sequence[Candidate]:
        """See `wer.contracts.Evaluate`."""
        return self.groups.get(state.id, ())

    def _experience(self, state: RefinementState, candidate: Candidate) -> Experience:
        paid = derive_seed(candidate.text, candidate.index) % 2 / 1.0
        rollouts = () if candidate.skill is None else (_rollout(bool(paid), candidate.skill),)
        reward = Reward(fmt=float(candidate.well_formed), task=paid, len=0.0, total=paid / 3)
        return Experience(state=state, candidate=candidate, rollouts=rollouts, reward=reward)


@frozen(kw_only=True)
class Backend:
    """An optimizer's factory, and a folder for what it writes."""

    make: Callable[[], Optimizer]
    folder: Path

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Optimizer]:
        """One optimizer, closed at the end, and twice."""
        optimizer = self.make()
        try:
            async with asyncio.timeout(_PATIENCE_S):
                yield optimizer
        finally:
            await optimizer.close()
            await optimizer.close()

    def phase(self, name: str) -> Path:
        """A phase's folder."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        return folder


def _texts(groups: Sequence[Sequence[Candidate]]) -> list[list[str]]:
    return [[candidate.text for candidate in group] for group in groups]


async def k_candidates_a_state(backend: Backend) -> str:
    """Groups are compared within themselves."""
    async with backend.opened() as optimizer:
        groups = await optimizer.propose(STATES[:1], 3, 1)
    found = [(candidate.state_id, candidate.index) for group in groups for candidate in group]
    if found != [(STATES[0].id, index) for index in range(3)]:
        raise Fault(
            f"asked for 3 candidates of a state, it gave {found}",
            "Return a group a state, in their order, with indices 0..k-1 and the state's id.",
        )
    good = sum(candidate.skill is not None for group in groups for candidate in group)
    return f"{good} of 3 hold a skill"


async def seeds_repeat(backend: Backend) -> None:
    """A resumed run writes what the interrupted one would have written."""
    async with backend.opened() as optimizer:
        first, again, other = [_texts(await optimizer.propose(STATES[:1], _K, seed)) for seed in (1, 1, 2)]
    if first != again:
        raise Fault(
            "one seed gave two different groups", "Derive every die from the seed and the state's id."
        )
    if first == other:
        raise Fault("two seeds gave the same group", "Derive what is sampled from the seed.")


async def a_phase_pays_each_candidate(backend: Backend) -> None:
    """Retention and the report work on what a phase returns."""
    paid = Paid()
    async with backend.opened() as optimizer:
        outcome = await optimizer.run_phase(STATES, paid, backend.phase("whole"))
    _demand_whole(outcome.experiences, paid)


def _demand_whole(experiences: Sequence[Experience], paid: Paid) -> None:
    got = [experience.candidate.id for experience in experiences]
    wanted = [candidate.id for group in paid.groups.values() for candidate in group]
    tasks = list(dict.fromkeys(experience.state.task.id for experience in experiences))
    ordered = tasks == [state.task.id for state in STATES]
    if sorted(got) != sorted(wanted) or not ordered or len(got) < _K * len(STATES):
        raise Fault(
            f"a phase of {len(STATES)} states with {_K} candidates each gave {len(got)} experiences for "
            f"{len(wanted)} evaluated candidates, or in another order",
            "Return every experience that `evaluate` gave, in the order of the states.",
        )


async def saved_is_loaded(backend: Backend) -> str:
    """A trained policy outlives its process."""
    folder = backend.folder / "saved"  # which `save` makes, as in a run
    async with backend.opened() as optimizer:
        await optimizer.run_phase(STATES, Paid(), backend.phase("before saving"))
        optimizer.save(folder)
        wanted = _texts(await optimizer.propose(STATES[:1], _K, 1))
        learns = optimizer.learns
    if learns and not any(folder.rglob("*")):
        raise Fault(
            "it learns, and `save` wrote nothing", "Write all that `load` needs; or set learns = False."
        )
    async with backend.opened() as optimizer:
        optimizer.load(folder)
        got = _texts(await optimizer.propose(STATES[:1], _K, 1))
    if got != wanted:
        raise Fault(
            "what was saved and loaded writes something else than before",
            "Save and load every weight and every state of a die that proposals depend on.",
        )
    return "it learns" if learns else "nothing is learnt"


async def failures_are_survived(backend: Backend) -> None:
    """Rollouts fail, caps are reached; the run then ends, and goes on with ``--resume``."""
    for number, failure in enumerate(
        (InfrastructureError("a sandbox died"), BudgetExhausted("the cap is reached"))
    ):
        paid = Paid(failure=failure)
        folder = backend.phase(f"interrupted-{number}")
        kept: dict[str, list[Candidate]] = {}
        async with backend.opened() as optimizer:
            try:
                await optimizer.run_phase(STATES, paid, folder)
            except Exception as raised:
                if raised is not failure:
                    raise Fault(
                        f"evaluate raised {failure!r}, and run_phase {raised!r}",
                        "Let it through as it is: not wrapped, and not in a group.",
                    ) from raised
            else:
                raise Fault(f"evaluate raised {failure!r}, and run_phase hid it", "Let it through as it is.")
            kept = {key: list(group) for key, group in paid.groups.items()}
        async with backend.opened() as optimizer:
            outcome = await optimizer.run_phase(STATES, paid, folder)
        _demand_whole(outcome.experiences, paid)
        if any(paid.groups[key][: len(group)] != group for key, group in kept.items()):
            raise Fault(
                "the phase that went on wrote a recorded group anew",
                "Ask `evaluate.recorded(state)` first: what was written is paid for.",
            )


@asynccontextmanager
async def open_backend(name: str, plugins: Plugins, settings: Settings) -> AsyncIterator[Backend]:
    """Make the optimizer called so, once, to see that it can be made."""
    with tempfile.TemporaryDirectory(prefix="wer-check-") as folder:

        def make() -> Optimizer:
            return plugins.optimizers.make(name, _setup(name, plugins, settings))

        first = make()
        try:
            if not settings.model:
                await first.propose(STATES[:1], 1, 0)
        except ConfigError as error:
            raise NotApplicable("it trains weights: name a folder of small ones with --model") from error
        finally:
            await first.close()
        yield Backend(make=make, folder=Path(folder))


def _setup(name: str, plugins: Plugins, settings: Settings) -> OptimizerSetup:
    setup = OptimizerSetup(
        writer=settings.model or _NO_WEIGHTS,
        open_model=lambda: ScriptedModel(written),
        k=_K,
        phases=1,
        seed=0,
        temperature=0.95,
        top_k=50,
        max_prompt_tokens=19_000,
        max_response_tokens=64,
        options=settings.table("optimizer", name),
        progress=lambda line: None,
        check=lambda: None,
        charge=lambda usage: None,
        record=lambda step, metrics: None,
        open_policy=lambda policy: plugins.policies.make(
            policy, evolve(setup, options=settings.table("optimizer", policy))
        ),
    )
    return setup


OPTIMIZERS: Kind[Backend] = Kind(
    checks=(
        Check("it writes K candidates a state", k_candidates_a_state),
        Check("seeds repeat", seeds_repeat),
        Check("a phase gives every candidate's experience", a_phase_pays_each_candidate),
        Check("what was saved is loaded", saved_is_loaded),
        Check("a failing evaluate ends the phase, which then goes on", failures_are_survived),
    ),
    open=open_backend,
)
