"""Who owes what to whom: the typed protocols between the loop and its parts.

Hooks only register parts; these protocols do the work. Every method says its
failure policy: what is data, what is an error of the infrastructure (retried, never
scored), and what is an error of the user.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from attrs import field, frozen

from wer.errors import ConfigError
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
    Rollout,
    Sampling,
    SandboxSpec,
    Skill,
    Split,
    Task,
    ToolCall,
    ToolSpec,
    Trajectory,
    Turn,
    Unit,
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
    """One episode as the agent meets it.

    Between two of the agent's moves a user that is a model may act too, with tools of its own;
    the session asks that model and runs those tools, and leaves them in the evidence.
    """

    async def begin(self) -> Turn | End:
        """Put the world in place and give the first user message; or the end, if the user never asks."""
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
        """Export what a verifier needs. Called once: after the end, or when the agent has left.

        An agent that left without an end ended the episode: ``End(by="agent", why="stopped")``.
        """
        ...

    async def close(self) -> None:
        """Free the episode. Safe to call twice."""
        ...


Roles: TypeAlias = Mapping[str, "Model"]
"""Metered models by the role that they play in an episode; ``user`` is the simulated user."""


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

    def roles(self) -> Sequence[str]:
        """Which models, beside the executor's, its sessions call on the host: ``("user",)``, or none.

        The loop refuses a run whose configuration names no model for one of them, before
        anything is paid; each has a line of its own in the forecast and the costs.
        """
        ...

    async def open(self, task: Task, episode: Episode, roles: Roles, seed: int) -> Session:
        """Begin one rollout in a fresh episode.

        Args:
            roles: At least the models that `roles` names.
            seed: Of every die that the episode rolls, a simulated user's included.
        """
        ...

    async def expect(self, task: Task, episode: Episode) -> Json:
        """What the verifier compares with, made once a task in a fresh episode and stored.

        Never shown to an executor.
        """
        ...


@runtime_checkable
class Referenced(Protocol):
    """An environment that knows how its tasks are solved."""

    def reference(self, task: Task) -> Sequence[Sequence[ToolCall]] | None:
        """Calls that solve a task, a list a turn; None where there are none that an agent alone can make.

        For audits, and for optimizers that compare with a success. Never shown to an executor.
        """
        ...


@runtime_checkable
class Identified(Protocol):
    """An environment that users edit between runs, such as a `wer.Domain`."""

    @property
    def identity(self) -> Mapping[str, str]:
        """Content hashes by what they are of: ``tasks``, ``check``. A run goes on with equal ones only."""
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

    async def close(self) -> None:
        """Free connections, threads and memory; nothing is asked afterwards. Safe to call twice."""
        ...


@runtime_checkable
class Starting(Protocol):
    """A model that takes a while before it can answer: its factory returns while it is still loading."""

    async def ready(self) -> None:
        """Return once it can answer. Called when a run opens; a call of `Model.complete` waits too.

        Raises:
            ModelError: It did not start, with the cause.
        """
        ...


def _silent(line: str) -> None:
    """Say nothing."""


@frozen(kw_only=True)
class ModelSetup:
    """What a model is made from.

    Attributes:
        name: The text after the first slash, ``name[@url]``.
        gpus: GPUs of this machine that are the role's alone, by the numbers that
            ``nvidia-smi`` lists; empty when the user gave it none.
        folder: Where logs may be written; None when there is no run.
        say: Told one short line at a time about work that takes seconds.
    """

    name: str
    gpus: tuple[int, ...] = ()
    folder: Path | None = None
    say: Callable[[str], None] = _silent


Cost: TypeAlias = Literal["free", "reported", "unpriced"]


def _never(name: str) -> bool:
    """Most providers start no server."""
    return False


def _itself() -> str:
    """Most providers are all there is to them."""
    return ""


@frozen
class Provider:
    """A factory of models, with what the loop must know of them before one is opened.

    The forecast, and the refusal of a cap that could not be kept, come before a key is
    asked for, a file is fetched or weights are loaded.

    Attributes:
        factory: Makes a model, or says what is missing.
        cost: Of a call. ``free``: it runs on the user's own machine. ``reported``: a reply
            brings its cost, where it is known. ``unpriced``: only the user knows (``--price``).
        concurrency: Calls at a time beyond which more don't help.
        serves: Whether a model of that name is a server that WER starts and ends. It belongs to
            this machine, so that the workers of another runner can't share it.
        program: Finds a program that it needs beside its plugin, for ``wer doctor``, and says which;
            empty when it needs none. Raises `ConfigError`: what is missing, and then, in further
            sentences, the remedy.
    """

    factory: Callable[..., Model]
    cost: Cost = "reported"
    concurrency: int = 32
    serves: Callable[[str], bool] = _never
    program: Callable[[], str] = _itself

    def __call__(self, *given: Any) -> Model:
        """Open a model: a provider is offered in the place of its bare factory."""
        return self.factory(*given)


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


class Runner(Protocol):
    """A place where units of work run: this process, or the nodes of a cluster.

    It knows the run's environments, sandboxes and executor, and nothing of its store: what
    it gives back is judged, charged and stored by the one process that started the run.
    """

    @property
    def concurrency(self) -> int:
        """How many units it can work on at a time."""
        ...

    @property
    def isolation(self) -> str:
        """What isolates the episodes, for reports, as its pools say."""
        ...

    async def start(self) -> None:
        """Get ready; called once, before anything else is asked.

        Raises:
            WerError: The place can't be had, or is not fit for this run, with the remedy.
            InfrastructureError: A part of it did not start, with the cause.
        """
        ...

    async def execute(self, unit: Unit) -> tuple[Trajectory, Evidence]:
        """Run one unit to its end, in a fresh episode. Cancelled when it takes too long.

        Raises:
            InfrastructureError: The model, the sandbox or the place itself failed; the
                caller may try again, and a place that is gone is not chosen again.
        """
        ...

    async def expect(self, task: Task) -> Json:
        """Make what the verifier compares a task with; see `Environment.expect`."""
        ...

    async def close(self) -> None:
        """End what runs, and leave no process. Safe to call twice, and when `start` failed."""
        ...


@frozen(kw_only=True)
class RunnerSetup:
    """What a runner of another place is made from. All of it but the callables is plain text.

    Attributes:
        config: The run's whole configuration, as `wer.configuration.to_toml` writes it.
        address: Of the cluster, as the user named it; empty when the user named none.
        options: The user's table ``[runner_options]``, still unchecked.
        identity: Of the executor: a place whose executor has another is not the same agent.
        check: Called before a unit is sent out; raises `BudgetExhausted` when a cap is
            reached.
        charge: Told what a role's model calls in another place cost.
        say: Told one line about what the user should know.
    """

    config: str
    address: str
    options: Mapping[str, Json]
    identity: JsonObject
    check: Callable[[], None]
    charge: Callable[[str, Usage], None]
    say: Callable[[str], None]


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


@frozen(kw_only=True)
class Written:
    """One answer of a policy.

    Attributes:
        token_ids: Shape ``(T,)``, ids of the policy's own tokenizer.
        logprobs: Shape ``(T,)``, in nats, of the distribution that was sampled from.
        usage: The prompt is charged to the first of the answers that share it.
    """

    text: str
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    usage: Usage


@frozen(kw_only=True)
class Lesson:
    """One answer of a policy, with what it earned.

    Attributes:
        request: What was asked, as it was.
        token_ids: Shape ``(T,)``, as they were sampled since the last update.
        advantages: Shape ``(N,)``, for example one a rollout. Each is a term of the clipped surrogate
            of its own, all with the probability ratio of this one answer.
    """

    request: Sequence[Message]
    token_ids: tuple[int, ...]
    advantages: tuple[float, ...]


class Policy(Protocol):
    """Weights that an optimizer of another plugin writes with and trains by a clipped surrogate.

    How it updates (rate, clipping, a KL penalty) is the user's, in the table ``[optimizer.NAME]`` of
    the policy; what an answer earned is the optimizer's. It charges what it writes itself.
    """

    @property
    def batch(self) -> int:
        """How many states the user wants sampled side by side, and learnt from together."""
        ...

    async def excess(self, requests: Sequence[Sequence[Message]]) -> Sequence[int]:
        """By how many tokens each request is over the limit; 0 for one that fits."""
        ...

    async def sample(
        self, requests: Sequence[Sequence[Message]], seeds: Sequence[int], k: int
    ) -> Sequence[Sequence[Written]]:
        """Write k answers to each request; a seed and a place in the group decide an answer's dice.

        Raises:
            PromptTooLong: A request does not fit; nothing was sampled.
            BudgetExhausted: Before anything is sampled.
        """
        ...

    async def update(self, lessons: Sequence[Lesson], progress: tuple[float, float]) -> Mapping[str, float]:
        """Learn from lessons that the present weights wrote, and give `wer.measures.OF_UPDATE`.

        The loss is the mean over the lessons of the mean over their terms.

        Args:
            progress: Share of the whole training done before and after this update.

        Raises:
            OptimizerError: Loss or gradient is not finite; that step was not made.
        """
        ...

    async def checkpoint(self, folder: Path, done: Sequence[str]) -> None:
        """Write a phase's next checkpoint, whole or not at all.

        Args:
            done: Names of all that the phase learnt from so far, for `resume`.
        """
        ...

    async def resume(self, folder: Path) -> Sequence[str]:
        """Take up a phase's newest checkpoint and give what it had learnt from; nothing when there is none."""
        ...

    def save(self, folder: Path) -> None:
        """See `Optimizer.save`."""
        ...

    def load(self, folder: Path) -> None:
        """See `Optimizer.load`."""
        ...

    async def close(self) -> None:
        """Free the weights. Safe to call twice."""
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
            rollouts: The most that it may have run, beside those of the states: its share of
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


class Tracker(Protocol):
    """Shows a run's figures outside of it, as they come.

    The store has them all: a tracker that raises is told of once and left alone.
    """

    def log(self, stage: str, step: int, metrics: Mapping[str, float]) -> None:
        """Take the figures of one step.

        Args:
            stage: ``train`` for update steps, ``phase`` for whole phases, ``evaluation``
                for the measured split: each counts its own steps from 0.
            step: An update step counts over all phases. A step that comes again, because
                its phase was interrupted, takes the place of the first and of all after it.
            metrics: By names that may contain slashes.
        """
        ...

    def close(self) -> None:
        """Write what is still held. Called once, at the run's end or failure."""
        ...


@frozen(kw_only=True)
class TrackerSetup:
    """What a tracker is made from.

    Attributes:
        options: The user's table ``[tracking.NAME]``, still unchecked.
        name: The run's id, which a resumed run keeps.
        folder: The run's folder.
        config: The run's configuration as JSON, without anything that looks like a secret.
    """

    options: Mapping[str, Json]
    name: str
    folder: Path
    config: JsonObject
