"""Who owes what to whom: the typed protocols between the loop and its parts.

Hooks only register parts; these protocols do the work. Every method says its
failure policy: what is data, what is an error of the infrastructure (retried, never
scored), and what is an error of the user.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from attrs import frozen

from wer.records import (
    Answer,
    Candidate,
    End,
    Evidence,
    Experience,
    Json,
    JsonObject,
    Message,
    PhaseOutcome,
    RefinementState,
    Reply,
    Sampling,
    SandboxSpec,
    Skill,
    Split,
    Task,
    ToolCall,
    ToolSpec,
    Trajectory,
    Turn,
    Usage,
    Verdict,
)


class Episode(Protocol):
    """One forked child of a sandbox server: a world of its own for one rollout."""

    async def request(self, method: str, params: JsonObject, *, timeout_s: float | None = None) -> Json:
        """Call an exposed method of the domain object in the sandbox.

        Args:
            method: A name that the domain exposes.
            params: Keyword arguments, as JSON.
            timeout_s: Seconds; None is the spec's ``call_timeout_s``.

        Raises:
            SandboxError: The child or its server died or hung. The domain's own
                exceptions never arrive here: a domain answers with data.
        """
        ...

    async def close(self) -> None:
        """Kill the child. Safe to call twice, and after a `SandboxError`."""
        ...


class Pool(Protocol):
    """Warm sandbox servers of one spec."""

    @property
    def tier(self) -> str:
        """What isolates the episodes, for reports: ``docker (no network, ...)``."""
        ...

    async def lease(self) -> Episode:
        """Fork a fresh episode on the least busy live worker; a dead worker is replaced.

        Raises:
            SandboxError: No worker can be had, with the cause and the stderr tail.
        """
        ...

    async def close(self) -> None:
        """Stop every worker and remove what it left on disk."""
        ...


class Sandbox(Protocol):
    """A way to isolate episodes: containers, or confined processes."""

    def unavailable(self) -> str | None:
        """Say why this sandbox can't be used here and what to do; None when it can."""
        ...

    async def start(self, spec: SandboxSpec, workers: int) -> Pool:
        """Build what the spec needs (cached by content) and start the workers.

        Raises:
            SandboxError: With ``cause="start"``.
        """
        ...

    def reap(self) -> Sequence[str]:
        """Remove what dead drivers left behind; return a line for each."""
        ...


class Session(Protocol):
    """One episode as the agent meets it."""

    async def begin(self) -> Turn:
        """Put the world in place and give the first user message."""
        ...

    async def call(self, calls: Sequence[ToolCall]) -> Answer:
        """Run one step's calls in order.

        Unknown tools, wrong arguments and exceptions of a tool are observations.

        Raises:
            SandboxError: The sandbox broke; the rollout has no verdict.
        """
        ...

    async def say(self, text: str) -> Turn | End:
        """End the agent's turn with a message to the user (may be empty)."""
        ...

    async def evidence(self) -> Evidence:
        """Export what a verifier needs. Called once, after the end."""
        ...

    async def close(self) -> None:
        """Free the episode. Safe to call twice."""
        ...


class Environment(Protocol):
    """A family of tasks in a sandbox."""

    def domains(self) -> Sequence[str]:
        """Names of the domains, in the order of reports."""
        ...

    def verifier(self) -> str:
        """Name of the verifier that judges by default."""
        ...

    def tasks(self, domain: str, split: Split) -> Sequence[Task]:
        """The tasks of a domain. Ids are stable, splits are disjoint.

        Raises:
            TaskError: The data is missing or malformed.
        """
        ...

    def sandbox(self, domain: str) -> SandboxSpec:
        """The sandbox that the domain runs in; equal specs share one pool."""
        ...

    async def open(self, task: Task, episode: Episode, seed: int) -> Session:
        """Begin one rollout in a fresh episode."""
        ...

    async def expect(self, task: Task, episode: Episode) -> Json:
        """What the verifier compares with, made once a task in a fresh episode and stored.

        Never shown to an executor.
        """
        ...


class Verifier(Protocol):
    """Code that says pass or fail, from stored data alone."""

    def judge(self, task: Task, trajectory: Trajectory, evidence: Evidence, expect: Json) -> Verdict:
        """Judge one rollout. Pure: no clock, no network, no model, no state of its own.

        Raises:
            VerifierError: The data can't be judged; the run stops rather than guess.
        """
        ...


class Model(Protocol):
    """A language model behind any interface."""

    @property
    def identity(self) -> JsonObject:
        """What makes two models the same model: provider, name, file hash. No secrets."""
        ...

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling
    ) -> Reply:
        """Ask once. Retries are the caller's, so raise at the first failure.

        Raises:
            ModelUnavailable: 429, 5xx, time-out, reset, truncated or unreadable answer.
            ModelError: Anything that another try won't mend.
        """
        ...

    async def close(self) -> None: ...


class Executor(Protocol):
    """The frozen agent. A skill is the only thing that may change about it."""

    @property
    def identity(self) -> JsonObject:
        """Model, mode and sampling: equal identities give comparable rollouts."""
        ...

    async def execute(self, task: Task, skill: Skill, session: Session, seed: int) -> Trajectory:
        """Run one episode to its end. "No skill" is the empty skill.

        Malformed output of the model is data in the trajectory.

        Raises:
            InfrastructureError: The model's or the sandbox's own failure.
        """
        ...


class Evaluate(Protocol):
    """Given by the loop: the only way for an optimizer to spend rollouts."""

    async def __call__(
        self, proposals: Sequence[tuple[RefinementState, Candidate]], n: int | None = None
    ) -> Sequence[Experience]:
        """Store the candidates, run each n times, judge, reward, store; keep the order.

        Rollouts that are stored already are not run again. A candidate without a
        skill is not run: its R_task is 0.

        Args:
            n: Rollouts a candidate; None is the run's own n.

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

        Several states at once, because a policy in memory samples them in one batch.

        Returns:
            A group of k candidates a state, in the order of the states.
        """
        ...

    def save(self, folder: Path) -> None:
        """Write all that `load` needs, or nothing when there is no trained state."""
        ...

    def load(self, folder: Path) -> None: ...

    async def close(self) -> None: ...


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
        progress: Told one short line at a time about work that takes seconds.
        check: Called before anything is written without `open_model`; raises
            `BudgetExhausted` when a cap is reached.
        charge: Told what was written without `open_model`: a call a candidate, and a
            prompt once for all the candidates that share it. Both belong to the event
            loop's thread.
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
