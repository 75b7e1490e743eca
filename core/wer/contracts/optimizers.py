"""Who writes skills, how it may spend rollouts, and what it is made from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from attrs import field, frozen

from wer.contracts.models import Model
from wer.contracts.policies import Policy
from wer.errors import ConfigError
from wer.records import (
    Candidate,
    Experience,
    Json,
    PhaseOutcome,
    RefinementState,
    Rollout,
    Skill,
    Task,
    Usage,
)


class Evaluate(Protocol):
    """Given by the loop: the only way for an optimizer to spend rollouts."""

    async def __call__(
        self, proposals: Sequence[tuple[RefinementState, Candidate]], n: int | None = None
    ) -> Sequence[Experience]:
        """Store the candidates, run each n times, judge, reward, store; keep the order.

        Rollouts that are stored already are not run again. A candidate without a
        skill is not run: its R_task is 0.

        Args:
            n: Rollouts a candidate with each executor; None is the run's own n.

        Raises:
            BudgetExhausted: What was paid for is stored.
            InfrastructureError: A rollout could not be had after all retries.
        """
        ...

    def recorded(self, state: RefinementState) -> Sequence[Candidate]:
        """The whole group that an interrupted run had already written for a state, or nothing."""
        ...


class Optimizer(Protocol):
    """The Skill Optimizer pi_theta: writes s' for a state x, and may learn from R."""

    @property
    def learns(self) -> bool:
        """Whether phases change what it writes; if not, it has no untrained twin to compare with."""
        ...

    async def run_phase(
        self, states: Sequence[RefinementState], evaluate: Evaluate, folder: Path
    ) -> PhaseOutcome:
        """One pass over the states [Algorithm 1, lines 5-16].

        Args:
            folder: Where checkpoints of this phase go. A checkpoint that is already
                there belongs to the same phase, interrupted: go on from it.
        """
        ...

    async def propose(
        self, states: Sequence[RefinementState], k: int, seed: int
    ) -> Sequence[Sequence[Candidate]]:
        """Write k revisions for each state, without learning anything (inference) [Eq. 2].

        Several states at once, because a policy in memory samples them in one batch. Of an
        optimizer that does not learn, the loop asks one state a call, many calls at a time.

        Returns:
            A group of k candidates a state, in the order of the states.
        """
        ...

    def save(self, folder: Path) -> None:
        """Make the folder and write all that `load` needs, or nothing when there is no trained state."""
        ...

    def load(self, folder: Path) -> None:
        """Take up what `save` wrote, so that what is proposed next comes from the trained policy.

        Raises:
            WerError: The folder is not one that this optimizer wrote, or is damaged.
        """
        ...

    async def close(self) -> None:
        """Free weights, workers and models; nothing is proposed afterwards. Safe to call twice."""
        ...


@runtime_checkable
class Consolidating(Protocol):
    """An optimizer that writes one skill for a whole domain by itself, so that none is merged from many."""

    async def consolidate(self, states: Sequence[RefinementState], seed: int) -> Skill:
        """Write a domain's skill from what happened in all of its training tasks.

        Args:
            states: One a task, all with the same skill in force, with all of its rollouts.

        Returns:
            The skill in force, where nothing better could be written.
        """
        ...


@runtime_checkable
class Searching(Protocol):
    """An optimizer that searches for a domain's skill with rollouts of its own, so that none is merged from many."""

    async def search(
        self, states: Sequence[RefinementState], evaluate: Evaluate, rollouts: int, seed: int
    ) -> Skill:
        """Search from the skill in force on the domain's training tasks.

        `SearchSpent` is its end, not its failure: the best skill so far is the answer.

        Args:
            states: One a task, all with the same skill in force, with all of its rollouts.
            rollouts: The most that it may have run with each executor, beside those of the states: its share of
                ``budget.search_rollouts``, or what refinement rounds would have run.

        Returns:
            The skill in force, where nothing better was found.
        """
        ...


@runtime_checkable
class Imitating(Protocol):
    """An optimizer that compares with a task's reference, so that it can begin where no rollout passes."""

    @property
    def imitates(self) -> bool:
        """Whether it does, as it is set up."""
        ...


class Notes(Protocol):
    """Texts that a run keeps for its optimizer, by key."""

    def get(self, key: str) -> str | None:
        """Find a text; None when it is still to be written."""
        ...

    def put(self, key: str, text: str) -> None:
        """Keep a text at once, and for good: what is written first is what counts."""
        ...


class Notebook:
    """Notes that last as long as the process."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def get(self, key: str) -> str | None:
        """See `Notes`."""
        return self._texts.get(key)

    def put(self, key: str, text: str) -> None:
        """See `Notes`."""
        self._texts.setdefault(key, text)


async def _no_reference(task: Task) -> Rollout | None:
    """Most tasks of the world have none."""
    return None


async def _no_scripts(name: str, source: str, tests: str) -> str:
    """Where no sandbox is open, no script is tried."""
    return "there is no sandbox to try scripts in"


def _no_policy(name: str) -> Policy:
    """Outside a run, nobody has weights."""
    raise ConfigError(f"no policy {name!r} is open here: weights are trained within a run")


@frozen(kw_only=True)
class OptimizerSetup:
    """What an optimizer is made from.

    Attributes:
        writer: The model as named by the user, ``provider/name[@url]`` or a folder.
        open_model: Opens the writer as a metered `Model`; a backend that holds
            the weights itself never calls it.
        k: Candidates a state [K].
        phases: How many phases the schedule spans [P].
        seed: The run's seed.
        temperature: Of the policy.
        top_k: Of the policy; 0 is no limit.
        max_prompt_tokens: A longer prompt is refused, never truncated. A state that the
            loop assembled (its round is not 0) is then left out, and the run goes on.
        max_response_tokens: The policy's answer is cut here and judged as it is.
        options: The user's table ``[optimizer.NAME]``, still unchecked.
        ray_address: The Ray cluster to join, ``HOST:PORT``; empty when the user named none.
        gpus: GPUs of this machine that the user gave to the writer; empty is all that are
            found.
        progress: Told one short line at a time about work that takes seconds.
        check: Called before anything is written without `open_model`; raises
            `BudgetExhausted` when a cap is reached.
        charge: Told what was written without `open_model`: a call a candidate, and a
            prompt once for all the candidates that share it.
        record: Told the figures of an update step as soon as it is made, by the names of
            `wer.measures`: ``record(step, metrics)``, with steps counted from 0 within the
            phase. They are stored at once; a step that is recorded again, because its
            phase was interrupted, takes the place of the first. ``rollouts`` and
            ``rollouts_per_s`` are the loop's to add. This, `check` and `charge` belong to
            the event loop's thread.
        reference: Plays a task's reference in a fresh episode and gives the judged rollout;
            None where the environment has none. For writers only, never for an executor.
        try_script: Runs a helper script's tests in a sandbox, ``try_script(name, source, tests)``, and
            gives what went wrong, or nothing.
        notes: Texts by key that the run keeps, such as what a model was paid to write: an
            interrupted run finds them again.
        open_policy: Opens weights to train, by the name under which `wer.hookspecs.wer_policies`
            offers them; the one who opens a policy closes it.
    """

    writer: str
    open_model: Callable[[], Model]
    k: int
    phases: int
    seed: int
    temperature: float
    top_k: int
    max_prompt_tokens: int
    max_response_tokens: int
    options: Mapping[str, Json]
    progress: Callable[[str], None]
    check: Callable[[], None]
    charge: Callable[[Usage], None]
    record: Callable[[int, Mapping[str, float]], None]
    reference: Callable[[Task], Awaitable[Rollout | None]] = _no_reference
    try_script: Callable[[str, str, str], Awaitable[str]] = _no_scripts
    notes: Notes = field(factory=Notebook)
    open_policy: Callable[[str], Policy] = _no_policy
    ray_address: str = ""
    gpus: tuple[int, ...] = ()
