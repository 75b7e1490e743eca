"""The nouns of the loop, as frozen records: task, state, skill, candidate, trajectory, verdict.

Everything here is plain data (strings, numbers, tuples, JSON), checks itself, and
knows its content hash, so that a replay finds what is already there. Tensors
begin inside an optimizer plugin. Notation in brackets is that of the paper (arXiv
2608.17587): a refinement state is ``x = (q, C, h, s, e)``.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, TypeAlias

from attrs import Attribute, asdict, field, frozen

Json: TypeAlias = Any
"""JSON as Python has it: None, bool, int, float, str, sequences, mappings with string keys."""
JsonObject: TypeAlias = Mapping[str, Json]
Split: TypeAlias = Literal["train", "test"]
EvidenceForm: TypeAlias = Literal["verbatim", "divergence"]
"""How a writer reads a matched pair: whole, as in the paper, or from shortly before its rollouts part."""


def content_hash(value: Json) -> str:
    """Name a piece of JSON by its content: 16 hex digits of SHA-256 over canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=dict)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def derive_seed(*parts: str | int) -> int:
    """Make a 31-bit seed from named parts, so that equal parts always roll the same dice."""
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def _unit(_: Any, attribute: Attribute[float], value: float) -> None:
    if not (math.isfinite(value) and 0.0 <= value <= 1.0):
        raise ValueError(f"{attribute.name} must lie in 0..1, got {value!r}")


@frozen(kw_only=True)
class ToolSpec:
    """One tool on offer.

    Attributes:
        parameters: A JSON schema of type ``object``.
    """

    name: str
    description: str
    parameters: JsonObject


@frozen(kw_only=True, slots=False)
class Skill:
    """A short procedure in markdown, the only thing that WER changes about an agent.

    The body is kept verbatim, so that what is published is byte for byte what was
    evaluated; `wer.skills` reads its workflow and notes. The empty skill means "no
    skill" and adds nothing to a prompt.

    Attributes:
        name: Agent Skills name, 1-64 characters of ``a-z``, ``0-9`` and single hyphens.
        description: One line on the family of tasks that it covers.
        body: Markdown: a numbered ``## Workflow`` and ``## Notes``.
        scripts: Helper programs by relative path; they run in a sandbox only.
    """

    name: str = ""
    description: str = ""
    body: str = ""
    scripts: Mapping[str, str] = field(factory=dict)

    @property
    def empty(self) -> bool:
        """Whether it tells the agent nothing; "no skill" is a baseline, and runs as any skill does."""
        return not self.body.strip()

    @cached_property
    def id(self) -> str:
        """Hash of all that an agent could notice: equal skills share their rollouts, whoever wrote them."""
        return content_hash([self.name, self.description, self.body, dict(self.scripts)])


NO_SKILL = Skill()


@frozen(kw_only=True, slots=False)
class Task:
    """One thing to do in one environment. What an agent may see, and no more.

    Attributes:
        id: Stable and readable, unique within a run, for example
            ``bfcl/multi_turn_base_3@1`` (``@1``: only the first turn, a prefix task).
        turns: What the user says, a turn each [q]; empty where a simulated user decides it
            in the course of the episode.
        tools: The tools on offer [part of C].
        context: Policy or description of the environment [part of C]; may be empty.
        setup: What the environment's sandbox needs to put the world in place.
        marks: Plain remarks that reports must repeat, such as ``prefix task``.
    """

    id: str
    env: str
    domain: str
    split: Split
    turns: tuple[str, ...]
    tools: tuple[ToolSpec, ...] = ()
    context: str = ""
    setup: JsonObject = field(factory=dict)
    marks: tuple[str, ...] = ()

    @cached_property
    def key(self) -> str:
        """Content hash of all that can change a rollout's course."""
        tools = [[tool.name, tool.description, tool.parameters] for tool in self.tools]
        return content_hash([self.id, list(self.turns), tools, self.context, self.setup])


@frozen(kw_only=True)
class ToolCall:
    """A call that the agent made [a_t].

    Attributes:
        arguments: The JSON object that the model wrote, never interpreted as code.
        id: The model's own id for the call, where its interface has one.
    """

    name: str
    arguments: JsonObject
    id: str = ""


@frozen(kw_only=True)
class Observation:
    """What the environment answered [o_t], as the model reads it.

    Attributes:
        ok: False when the tool refused or raised; that is data, not a fault of ours.
    """

    text: str
    ok: bool = True


@frozen(kw_only=True)
class Turn:
    """A user message that the agent now has to act on."""

    message: str
    index: int


@frozen(kw_only=True)
class End:
    """The end of an episode.

    Attributes:
        by: Who ended it, so that a report can tell a simulated user's failures from the agent's.
        why: Short and stable, for example ``done`` or ``step_limit``.
    """

    by: Literal["agent", "user", "environment"]
    why: str = "done"


@frozen(kw_only=True)
class Answer:
    """What a session answers to one step of the agent: an observation for each call.

    Attributes:
        end: Set when this step was the last one allowed.
    """

    observations: tuple[Observation, ...]
    end: End | None = None


@frozen(kw_only=True)
class Step:
    """One reply of the executor's model, with what came back.

    Attributes:
        turn: Index of the user turn that it belongs to, from 0.
        text: What the model said beside its calls, verbatim; all of the reply when
            it held no decodable call.
        calls: In the model's order; empty when the reply ends the turn.
        observations: One for each call, in the same order.
    """

    turn: int
    text: str
    calls: tuple[ToolCall, ...] = ()
    observations: tuple[Observation, ...] = ()

    def __attrs_post_init__(self) -> None:
        if len(self.observations) > len(self.calls):
            raise ValueError("a step has more observations than calls")


@frozen(kw_only=True)
class Usage:
    """What model calls cost.

    Attributes:
        usd: Money, 0.0 for local models, None where no price is known.
        cached_tokens: The part of ``prompt_tokens`` that the server had in its cache.
        untold: Rollouts of an agent of the user's own that did not say what they used: unknown,
            and so in none of the other figures.
    """

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    usd: float | None = 0.0
    untold: int = 0

    def __add__(self, other: Usage) -> Usage:
        usd = None if self.usd is None or other.usd is None else self.usd + other.usd
        return Usage(
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            usd=usd,
            untold=self.untold + other.untold,
        )


UNTOLD = Usage(usd=None, untold=1)
"""What a rollout used whose agent does not say."""


@frozen(kw_only=True)
class Trajectory:
    """One run of the frozen executor, verbatim [tau = (a_1, o_1, ..., a_T, o_T, y), Eq. 3].

    The terminal state ``y`` is in the rollout's `Evidence`.

    Attributes:
        messages: The user's messages, one a turn that was begun.
        seed: The executor's sampling seed.
        wall_s: Seconds from the first request to the end.
        skill_loaded: Whether the agent read the skill that it was given to load; None where nobody
            knows, or the skill was in its prompt.
    """

    messages: tuple[str, ...]
    steps: tuple[Step, ...]
    end: End
    seed: int
    usage: Usage = Usage()
    wall_s: float = 0.0
    skill_loaded: bool | None = None


@frozen
class Outcome:
    """What an agent of the user's own did in one task, as it says.

    Attributes:
        messages: In the format of chat completions, its calls and their answers included; or its
            last answer alone, as a text.
        state: What it left behind, any JSON: what a check sees as ``end.state``. Only of an agent
            with tools of its own.
        usage: What its model calls cost; None is unknown. A table of `Usage`'s attributes does too.
        skill_loaded: As in `Trajectory`.
        task: Id of the task that it answers; empty is the one that it was given.
    """

    messages: str | Sequence[JsonObject]
    state: Json = None
    usage: Usage | None = field(default=None, kw_only=True)
    skill_loaded: bool | None = field(default=None, kw_only=True)
    task: str = field(default="", kw_only=True)


@frozen(kw_only=True)
class TurnEvidence:
    """What a verifier may know of one turn.

    Attributes:
        state: The environment's state after the turn [y after the last], canonical JSON. None
            after a turn that its verifiers don't look at.
        results: What the tools answered in this turn, in order.
        calls: How many calls the agent made in this turn.
        said: What the agent told the user at its end, where the environment keeps it.
    """

    state: Json
    results: tuple[str, ...] = ()
    calls: int = 0
    said: str = ""


@frozen(kw_only=True)
class Evidence:
    """All that a verifier needs, as data, so that a stored rollout can be judged again.

    Attributes:
        probe: The JSON answer of the verifier's probe in the sandbox, or None.
        user: What a simulated user did that the agent can't see, in order: calls of its own
            tools, and the words that ended the episode. A step's ``turn`` is the one that
            came of it.
    """

    turns: tuple[TurnEvidence, ...]
    end: End
    probe: Json = None
    user: tuple[Step, ...] = ()


@frozen(kw_only=True)
class Verdict:
    """What code, and never a model, says about a rollout.

    Attributes:
        score: In 0..1, finite.
        passed: Decides retention and Pass@1.
        diagnostics: One line a finding, for people. They may quote what the reference reached,
            and a skill must not learn answers: the only writers that see them are critics who
            are also shown the reference, and whose skills are searched for it, and methods of
            others that live on them, under the run's policy on leaks.
    """

    score: float = field(validator=_unit)
    passed: bool
    diagnostics: tuple[str, ...] = ()


@frozen(kw_only=True)
class Unit:
    """One rollout to have: the unit of work, plain data that any machine can be sent.

    Attributes:
        attempt: Which try it is, from 1; not part of what the rollout is.
        executor: In a run with several, the specification of the one that acts; empty for the only one.
    """

    task: Task
    skill: Skill
    seed: int
    executor: str = ""
    attempt: int = 1


@frozen(kw_only=True)
class Rollout:
    """One finished rollout: what was run, what happened, and the verdict.

    A rollout that the infrastructure broke never becomes one of these.

    Attributes:
        key: Content hash of task, skill, executor and seed: the unit of work's name.
        executor: As in `Unit`.
    """

    key: str
    task_id: str
    skill_id: str
    seed: int
    trajectory: Trajectory
    evidence: Evidence
    verdict: Verdict
    executor: str = ""


@frozen(kw_only=True, slots=False)
class RefinementState:
    """What the optimizer is asked to improve on [x = (q, C, h, s, e), Eq. 1].

    ``q`` and ``C`` are the task's turns, tools and context; ``h`` is the steps of
    the evidence's trajectories, verbatim, and ``e`` whether each passed.

    Attributes:
        skill: The skill in force [s].
        evidence: Rollouts of exactly that skill on exactly that task [h, e].
        parent: Id of the candidate that produced the skill; None for a seed skill.
        round: How many revisions lie behind the skill, from 0.
        phase: The training phase that this state is for, from 0.
        form: How `wer.writing.revision_messages` writes the evidence down; the rollouts are whole.
    """

    task: Task
    skill: Skill
    evidence: tuple[Rollout, ...]
    parent: str | None = None
    round: int = 0
    phase: int = 0
    form: EvidenceForm = "verbatim"

    @cached_property
    def id(self) -> str:
        """Hash of task, skill, evidence and place in the tree: a resumed run finds its candidates by it."""
        rollouts = [rollout.key for rollout in self.evidence]
        return content_hash([self.task.key, self.skill.id, rollouts, self.parent, self.round, self.phase])

    @property
    def successes(self) -> tuple[Rollout, ...]:
        """Evidence of what the skill already makes work, for the revision to keep."""
        return tuple(rollout for rollout in self.evidence if rollout.verdict.passed)

    @property
    def failures(self) -> tuple[Rollout, ...]:
        """Evidence of what the skill does not prevent yet, for the revision to mend."""
        return tuple(rollout for rollout in self.evidence if not rollout.verdict.passed)


@frozen(kw_only=True, slots=False)
class Candidate:
    """One document that the optimizer wrote for a state [s'_k].

    Shapes use ``T`` for the tokens that the policy wrote, the prompt excluded.

    Attributes:
        state_id: The `RefinementState` that it answers.
        index: Its place in the group, 0..K-1.
        text: Everything the model wrote, verbatim.
        reasoning: The reasoning block, empty when there was none.
        skill: The skill, or None when no skill could be found in the text.
        well_formed: True when the text is exactly a reasoning block and a skill block.
        problem: Why there is no skill, or why the text is not well formed; or "".
        token_ids: Shape ``(T,)``, ids of the policy's own tokenizer; empty for API models.
        logprobs: Shape ``(T,)``, in nats, of the distribution that was sampled from.
        usage: What writing it cost.
    """

    state_id: str
    index: int
    text: str
    reasoning: str
    skill: Skill | None
    well_formed: bool
    problem: str = ""
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    usage: Usage = Usage()

    @cached_property
    def id(self) -> str:
        """Hash of state, place in the group and text: two equal texts of one group stay two samples."""
        return content_hash([self.state_id, self.index, self.text])


@frozen(kw_only=True)
class Reward:
    """What the optimizer is paid for a candidate [Eq. 4].

    Attributes:
        fmt: R_fmt in 0..1, before annealing.
        task: R_task in 0..1, the mean verifier score over the n rollouts.
        len: R_len in 0..1.
        total: ``(w * fmt + task + len) / 3`` with the annealing weight w of the time.
        terms: Those that `total` is the mean of; fewer than three are an ablation.
    """

    fmt: float = field(validator=_unit)
    task: float = field(validator=_unit)
    len: float = field(validator=_unit)
    total: float = field(validator=_unit)
    terms: tuple[str, ...] = ("fmt", "task", "len")


@frozen(kw_only=True)
class Experience:
    """A scored candidate with all of its rollouts: (x, s', {tau_1..tau_n}, R)."""

    state: RefinementState
    candidate: Candidate
    rollouts: tuple[Rollout, ...]
    reward: Reward


@frozen(kw_only=True)
class PhaseOutcome:
    """What one pass over the states gave.

    Attributes:
        experiences: Every scored candidate, in the order of the states.
        step_size: Candidates that each update step learnt from, which were all written before
            those of the next. The loop then describes the steps of which no row was recorded,
            because the process died between an update and the word of it. 0: it does not.
        scaled: Whether advantages were divided by the group's standard deviation.
    """

    experiences: tuple[Experience, ...]
    step_size: int = 0
    scaled: bool = False


@frozen(kw_only=True)
class Message:
    """One message of a chat."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""


@frozen(kw_only=True)
class Sampling:
    """How a model is asked to sample.

    Attributes:
        temperature: 0 is greedy.
        top_k: 0 is no limit.
        json_schema: When set, the reply must be JSON of this schema.
    """

    temperature: float = 0.7
    top_k: int = 0
    top_p: float = 1.0
    max_tokens: int = 1024
    seed: int = 0
    json_schema: JsonObject | None = None


@frozen(kw_only=True)
class Reply:
    """What a model answered.

    Attributes:
        text: Without the calls.
        calls: Decodable native tool calls only.
        malformed: Raw text of native calls whose arguments are not a JSON object.
        finish: ``stop``, ``length`` or ``tool_calls``, as the server said.
    """

    text: str
    calls: tuple[ToolCall, ...] = ()
    malformed: tuple[str, ...] = ()
    finish: str = "stop"
    usage: Usage = Usage()


@frozen(kw_only=True)
class SandboxSpec:
    """What one sandbox server needs: an image recipe in the small.

    Attributes:
        name: Short name, used in image tags, venv folders and labels.
        domain: ``module:factory`` inside the sandbox; see `wer_sandbox`.
        requirements: Exact pins (``name==version``), installed without dependencies.
        packages: Pure-Python code of the host to copy in: import names such as
            ``wer_bfcl_domain``, or paths of files and folders; it may import the standard library
            and the requirements.
        memory_bytes: Limit for one worker with its episodes.
        episode_memory_bytes: Address-space limit of one episode.
        disk_bytes: What the program beside an episode may write, in a folder of its own that goes
            with the episode (`wer_sandbox.companion`); 0 is no such program.
        pids: Process limit of one worker.
        call_timeout_s: Seconds after which one request counts as hung.
        environ: Extra environment variables, for example ``PYTHONHASHSEED``.
    """

    name: str
    domain: str
    requirements: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    memory_bytes: int = 1 << 30
    episode_memory_bytes: int = 512 << 20
    disk_bytes: int = 0
    pids: int = 128
    call_timeout_s: float = 10.0
    environ: Mapping[str, str] = field(factory=dict)

    @property
    def id(self) -> str:
        """Specs with one id can share a pool."""
        return content_hash(asdict(self))


NO_SANDBOX = SandboxSpec(name="none", domain="")
"""Of an environment without tools: there is nothing to isolate, or an agent with tools of its own does it."""
