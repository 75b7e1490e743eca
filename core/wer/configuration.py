"""The resolved configuration of a run: defaults, then preset, ``wer.toml``, ``--set``, options."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Literal, TypeAlias

import attrs
import tomli_w
from attrs import Attribute, field, frozen

from wer import agents
from wer.errors import ConfigError
from wer.gpus import assigned
from wer.records import EvidenceForm, Json
from wer.redaction import secrets
from wer.references import located
from wer.retention import Kept, Retention
from wer.reward import RewardRule
from wer.shown import Shown
from wer.tables import nearest, structure

Condition: TypeAlias = Literal["none", "seed", "untrained", "refined"]
LeakPolicy: TypeAlias = Literal["report", "penalise", "refuse"]

_DEPTH = 32
_TOO_DEEP = f"has tables or lists more than {_DEPTH} levels deep. Nothing here needs that: flatten it."

MAY_CHANGE = ("limits.", "budget.", "prices", "tracking.", "concurrency", "workers", "runner", "ray_address")
"""Settings, or beginnings of them, that may change in a run that goes on."""

__all__ = ["MAY_CHANGE", "RunConfig", "from_toml", "merged", "presets", "resolve", "structure", "to_toml"]


def _probability(_: Any, attribute: Attribute[Any], value: float) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"{attribute.name} must lie in 0..1, got {value!r}")


def _at_least(minimum: float, reason: str = "") -> Any:
    def check(_: Any, attribute: Attribute[Any], value: float) -> None:
        if not minimum <= value < math.inf:
            because = f": {reason}" if reason else ""
            raise ValueError(
                f"{attribute.name} must be finite and at least {minimum}, got {value!r}{because}"
            )

    return check


def _at_most_half(_: Any, attribute: Attribute[Any], value: float) -> None:
    if not 0 <= value <= 0.5:
        raise ValueError(
            f"{attribute.name} must lie in 0..0.5, got {value!r}: most tasks are there to be learnt from"
        )


def _distinct(_: Any, attribute: Attribute[Any], value: Sequence[str]) -> None:
    if not value:
        raise ValueError(f"{attribute.name} is empty: name at least one")
    for name in value:
        if value.count(name) > 1:
            raise ValueError(f"{attribute.name} names {name!r} twice: name each once")


@frozen(kw_only=True)
class TrainingConfig:
    """``[training]``: the schedule and the policy's sampling; the paper's settings by default.

    Attributes:
        k: Candidates a state [K].
        n: Rollouts a candidate [n].
        phases: Passes over the states [P].
        states_per_phase: The most states that one phase works on; 0 is all.
        train_limit: The most training tasks a domain; 0 is all.
        temperature: Of the writer, at which it is sampled and trained.
        top_k: Of the writer; 0 is no limit.
        retention: Which candidates seed the next phase: those with mixed outcomes, the closest to
            half first, which is the paper's rule at n = 2; ``half``, exactly half alone; or all (ablations).
        evidence: What the writer is shown of a pair: both rollouts, or one kind only (ablations).
        evidence_form: Whether a pair's rollouts are written down whole (``verbatim``), as in the
            paper, or from three events before they part (``divergence``), for the writers that ask
            with `wer.writing.revision_messages`: prompted, grpo and openrlhf.
        verifier_noise: Probability that the optimizer is shown a verdict the other way round, in
            rewards, retention, evidence and selection. The store and all measurements have the true ones.
        max_prompt_tokens: A longer prompt is refused, never cut.
        max_response_tokens: A longer answer is cut there, and judged as it is.
    """

    k: int = field(
        default=4,
        validator=_at_least(2, "an advantage compares the candidates of one group, and one has no peers"),
    )
    n: int = field(default=2, validator=_at_least(1))
    phases: int = field(default=3, validator=_at_least(0))
    states_per_phase: int = field(default=0, validator=_at_least(0))
    train_limit: int = field(default=0, validator=_at_least(0))
    retention: Retention = "mixed"
    evidence: Kept = "both"
    evidence_form: EvidenceForm = "verbatim"
    verifier_noise: float = field(default=0.0, validator=_probability)
    temperature: float = field(default=0.95, validator=_at_least(0))
    top_k: int = field(default=50, validator=_at_least(0))
    max_prompt_tokens: int = field(default=19_000, validator=_at_least(1))
    max_response_tokens: int = field(default=4_096, validator=_at_least(1))

    def __attrs_post_init__(self) -> None:
        if self.phases > 1 and self.n < 2:
            raise ValueError(
                f"n must be at least 2 when phases is {self.phases}, got {self.n}: the next phase starts "
                "from candidates whose rollouts both passed and failed. Raise n, or set phases = 1."
            )


@frozen(kw_only=True)
class RefinementConfig:
    """``[refinement]``: revisions on the training split once training is over.

    Attributes:
        rounds: The most revisions of one skill.
        k: Candidates a round; the best by verdicts goes on.
        n: Rollouts a candidate.
        holdout: Share of each domain's training tasks, rounded down, that nothing is learnt
            from: the depth, 0 to `rounds`, whose merged skills pass there most is kept. 0, or
            fewer than six such tasks in all: every task is learnt from, and the depth is `rounds`.
            The default is a third: of 18 training tasks 6.
        holdout_n: Rollouts of each of these tasks at each depth.
    """

    rounds: int = field(default=2, validator=_at_least(0))
    k: int = field(default=1, validator=_at_least(1))
    n: int = field(default=2, validator=_at_least(1))
    holdout: float = field(default=0.34, validator=_at_most_half)
    holdout_n: int = field(default=3, validator=_at_least(1))


@frozen(kw_only=True)
class MergeConfig:
    """``[merge]``: one skill of many, a domain.

    Attributes:
        max_sources: The most skills of a domain that are merged, the best by share of
            passes first; 0 is all.
        max_tokens: Of the merger's answer.
        max_words: Of the merged skill, as the merger is asked to keep to.
        check_rollouts: Rollouts of each source on its own task, and of the merged skill on the same
            task, on fresh seeds, that tell whether what the source gained was lost in the merge.
            Fewer than 6 tell almost nothing; 0 is no check.
    """

    max_sources: int = field(default=0, validator=_at_least(0))
    max_tokens: int = field(default=4_096, validator=_at_least(1))
    max_words: int = field(default=900, validator=_at_least(1))
    check_rollouts: int = field(default=0, validator=_at_least(0))


@frozen(kw_only=True)
class EvaluationConfig:
    """``[evaluation]``: Pass@1 on the test split.

    Attributes:
        trials: Rollouts a task under each condition.
        conditions: What is compared: no skill, the seed skill, refinement by an
            untrained optimizer, refinement by the trained one.
        test_limit: The most test tasks a domain; 0 is all.
    """

    trials: int = field(default=3, validator=_at_least(1))
    conditions: tuple[Condition, ...] = field(
        default=("none", "seed", "untrained", "refined"), validator=_distinct
    )
    test_limit: int = field(default=0, validator=_at_least(0))


@frozen(kw_only=True)
class BudgetConfig:
    """``[budget]``: caps over all roles of the run together; 0 is no cap.

    Attributes:
        max_rollouts: Rollouts run; those found in the store are free.
        max_tokens: Prompt and completion tokens.
        max_cost: US dollars.
        search_rollouts: Rollouts of the phases and refinement rounds, after the scans of the
            seed skills. When they are spent, the best skills so far are measured: methods
            are compared at equal cost.
        search_tokens: Prompt and completion tokens of all roles, likewise.
    """

    max_rollouts: int = field(default=0, validator=_at_least(0))
    max_tokens: int = field(default=0, validator=_at_least(0))
    max_cost: float = field(default=0.0, validator=_at_least(0))
    search_rollouts: int = field(default=0, validator=_at_least(0))
    search_tokens: int = field(default=0, validator=_at_least(0))


@frozen(kw_only=True)
class LimitsConfig:
    """``[limits]``: when a rollout counts as hung, and how often it is tried again.

    Attributes:
        rollout_timeout_s: Seconds for one rollout from lease to verdict.
        retries: Further tries after a failure of the infrastructure.
    """

    rollout_timeout_s: float = field(default=600.0, validator=_at_least(0.001))
    retries: int = field(default=3, validator=_at_least(0))


def _named(_: Any, attribute: Attribute[Any], value: tuple[str, ...] | str) -> None:
    if not value:
        raise ValueError(
            f"{attribute.name} is empty: give --{attribute.name}, a preset that has it, "
            f"or {attribute.name} = ... in wer.toml"
        )


def _priced(_: Any, attribute: Attribute[Any], value: Mapping[str, Sequence[float]]) -> None:
    for model, price in value.items():
        if len(price) != 2 or not all(0 <= part < math.inf for part in price):
            raise ValueError(
                f"the price of {model!r} is {list(price)!r}: give two numbers, US dollars per million "
                "prompt tokens and per million completion tokens"
            )


def _assignable(_: Any, attribute: Attribute[Any], value: Mapping[str, str]) -> None:
    assigned(value)


@frozen(kw_only=True)
class RunConfig:
    """Everything that decides a run.

    Attributes:
        env: Names of environments; or, of a `wer.Domain`, its file or module: ``shop.py:shop``.
        domains: Domains of those environments; empty is all.
        method: The algorithm; ``wer`` is the one there is.
        backend: The optimizer: ``prompted``, ``grpo``, or any other installed one.
        writer: The model behind the optimizer, ``provider/name[@url]``; empty is `executor`.
        seed_skill: A ``SKILL.md`` or its folder that every task starts from; empty has
            a model write one a task.
        seed_writer: Drafts the seed skills; empty is `writer`.
        merge_writer: Merges skills; empty is `writer`.
        executor: The frozen agent's model, ``provider/name[@url]``; or an agent of your own: a function,
            ``agent.py:answer``, a program, ``command: python agent.py``, or an endpoint, ``http://...``.
        more_executors: Further frozen agents. Every candidate has its n rollouts with each of them,
            on the same seeds, and so has every measured condition; R_task and Pass@1 are the mean.
        user_model: The simulated user's, of an environment that has one, such as ``tau2``.
        agent: The executor plugin around that model.
        verifier: Empty is the environment's own.
        sandbox: ``auto`` is the best that works here.
        leak: What follows when a skill quotes values of one task (see `wer.leaks`): published
            skills are searched and it is said (``report``); a candidate's R_fmt is 0 too
            (``penalise``); or it counts as no skill (``refuse``).
        seed: Of every die: splits, samples, rollouts.
        runner: Where rollouts run: ``local``, or ``ray`` on every node of a Ray cluster.
        ray_address: The cluster that ``runner = "ray"`` and ``backend = "openrlhf"`` join,
            ``HOST:PORT``; empty is the cluster that this machine belongs to.
        workers: Sandbox workers; 0 is one a CPU core.
        concurrency: Rollouts at a time; 0 leaves it to the loop.
        gpus: GPUs of this machine by role, for the models that WER itself starts:
            ``{writer = "0-3", executor = "4-7"}``. A role that is not named takes what it finds.
        prices: US dollars per million prompt and completion tokens, by model:
            ``{"openai/gpt-4o-mini" = [0.15, 0.6]}``. Local models cost nothing, and
            ``litellm/`` models bring their prices.
        executor_options: Checked by the executor plugin.
        runner_options: Checked by the runner's plugin.
        environment: A table an environment, checked by its plugin.
        optimizer: A table an optimizer, checked by its plugin.
        methods: What ``wer bench`` compares: a table a method, of the settings that it changes.
        tracking: A table a tracker, checked by its plugin; a table, even an empty one, turns
            its tracker on, as ``--track NAME`` does.
    """

    env: tuple[str, ...] = field(default=(), validator=_named)
    domains: tuple[str, ...] = ()
    method: Literal["wer"] = "wer"
    backend: str = "prompted"
    writer: str = ""
    seed_skill: str = ""
    seed_writer: str = ""
    merge_writer: str = ""
    executor: str = field(default="", validator=_named)
    more_executors: tuple[str, ...] = ()
    user_model: str = ""
    agent: str = "toolagent"
    verifier: str = ""
    sandbox: str = "auto"
    leak: LeakPolicy = "report"
    seed: int = 0
    runner: str = field(default="local", validator=_named)
    ray_address: str = ""
    workers: int = field(default=0, validator=_at_least(0))
    concurrency: int = field(default=0, validator=_at_least(0))
    gpus: Mapping[str, str] = field(factory=dict, validator=_assignable)
    training: TrainingConfig = TrainingConfig()
    reward: RewardRule = field(factory=RewardRule)
    refinement: RefinementConfig = RefinementConfig()
    merge: MergeConfig = MergeConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    budget: BudgetConfig = BudgetConfig()
    limits: LimitsConfig = LimitsConfig()
    prices: Mapping[str, tuple[float, ...]] = field(factory=dict, validator=_priced)
    executor_options: Mapping[str, Json] = field(factory=dict)
    runner_options: Mapping[str, Json] = field(factory=dict)
    environment: Mapping[str, Mapping[str, Json]] = field(factory=dict)
    optimizer: Mapping[str, Mapping[str, Json]] = field(factory=dict)
    tracking: Mapping[str, Mapping[str, Json]] = field(factory=dict)
    methods: Mapping[str, Mapping[str, Json]] = field(factory=dict)

    @property
    def shown(self) -> Shown:
        """How the optimizer sees what was run."""
        settings = self.training
        return Shown(noise=settings.verifier_noise, seed=self.seed, form=settings.evidence_form)

    @property
    def executors(self) -> tuple[str, ...]:
        """Every frozen agent of the run, `executor` first."""
        return (self.executor, *self.more_executors)

    def __attrs_post_init__(self) -> None:
        repeated = [name for name in self.more_executors if not name or self.executors.count(name) > 1]
        if repeated:
            raise ValueError(
                f"more_executors names {repeated[0]!r}, which is empty or an executor already: name each once"
            )
        n = self.training.n
        if n > 1 and self.executor_options.get("temperature") == 0:
            raise ValueError(
                f"executor_options.temperature is 0 with training.n = {n}: a greedy executor repeats itself, "
                "and retention lives on rollouts that differ. Use a temperature above 0, or training.n = 1."
            )


def resolve(
    preset: str | None, file: Path | None, sets: Sequence[str], overrides: Mapping[str, Json]
) -> RunConfig:
    """Combine all sources of a run's configuration; a later one wins, key by key.

    Args:
        preset: One of `presets`.
        file: A ``wer.toml``.
        sets: ``a.b=c`` each; ``c`` is a TOML value, or else a bare string.
        overrides: Explicit options by dotted key; None is "not given".

    Raises:
        ConfigError: Whatever a user can correct, with its path.
    """
    tree: dict[str, Json] = {}
    if preset is not None:
        tree = merged(tree, _preset(preset))
    if file is not None:
        tree = merged(tree, _located(read(file), file.parent))
    tree = merged(tree, assigned_options(sets))
    for key, value in overrides.items():
        if value is not None:
            tree = merged(tree, _nested(key, value))
    _demand_no_secret(tree)
    return _config(_located(tree, Path.cwd()))


def _demand_no_secret(tree: Mapping[str, Json]) -> None:
    """Refuse what run.toml would keep in plain text; the message does not repeat it.

    Raises:
        ConfigError: With the place.
    """
    found = [f"{place or 'a setting'} is {what}" for place, what in secrets(dict(tree))]
    if found:
        raise ConfigError(
            f"{'; '.join(found)}: it would stay in run.toml and in the store. Take it out, and give it by an "
            "environment variable: WER_API_KEY for a model server of your own, OPENAI_API_KEY or the provider's."
        )


def from_toml(text: str, *, source: str = "wer.toml") -> RunConfig:
    """Read a configuration that `to_toml` wrote."""
    return _config(_parsed(text, source))


def to_toml(config: RunConfig) -> str:
    """Write a configuration so that reading it back gives an equal one."""
    return tomli_w.dumps(attrs.asdict(config))


def variant(config: RunConfig, changes: Mapping[str, Json]) -> RunConfig:
    """The same configuration with some settings changed, given as nested tables.

    Raises:
        ConfigError: As for `resolve`.
    """
    return _config(merged(_parsed(to_toml(attrs.evolve(config, methods={})), "the configuration"), changes))


def apart(config: RunConfig) -> tuple[RunConfig, ...]:
    """The same configuration with each of its executors alone."""
    return tuple(attrs.evolve(config, executor=spec, more_executors=()) for spec in config.executors)


def presets() -> tuple[str, ...]:
    """Name the presets that ship with WER."""
    folder = resources.files("wer") / "presets"
    return tuple(sorted(Path(item.name).stem for item in folder.iterdir() if item.name.endswith(".toml")))


def _config(tree: Mapping[str, Json]) -> RunConfig:
    if _deeper(tree, _DEPTH):
        raise ConfigError(f"the configuration {_TOO_DEEP}")
    lists = ("env", "domains", "more_executors")
    listed = {key: [tree[key]] for key in lists if isinstance(tree.get(key), str)}
    return structure(RunConfig, {**tree, **listed}, where="")


def _located(tree: dict[str, Json], folder: Path) -> dict[str, Json]:
    """Make the paths of ``shop.py:shop`` in ``env`` and ``executor`` absolute, so that a resumed run finds the file."""
    tree = {**tree, **_located_agent(tree, folder)}
    env = tree.get("env")
    names = [env] if isinstance(env, str) else env
    if not isinstance(names, list):
        return tree
    return {**tree, "env": [located(name, folder) if isinstance(name, str) else name for name in names]}


def _located_agent(tree: dict[str, Json], folder: Path) -> dict[str, Json]:
    """The executor, and the function that resets what it works on, with absolute paths."""
    executor, options = tree.get("executor"), tree.get("executor_options")
    found: dict[str, Json] = {}
    if isinstance(executor, str):
        found["executor"] = agents.located(executor, folder)
    more = tree.get("more_executors")
    if isinstance(more, list):
        found["more_executors"] = [
            agents.located(each, folder) if isinstance(each, str) else each for each in more
        ]
    reset = options.get("reset") if isinstance(options, Mapping) else None
    if isinstance(options, Mapping) and isinstance(reset, str):
        found["executor_options"] = {**options, "reset": agents.located(reset, folder)}
    return found


def _deeper(value: Json, levels: int) -> bool:
    """Whether tables and lists lie inside each other more than so many levels deep."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if not isinstance(value, list):
        return False
    return levels == 0 or any(_deeper(item, levels - 1) for item in value)


def _preset(name: str) -> dict[str, Json]:
    if name not in presets():
        raise ConfigError(
            f"no preset named {name!r}{nearest(name, presets()) or '.'} "
            f"Use one of {', '.join(presets())}, or a file with --config."
        )
    return _parsed((resources.files("wer") / "presets" / f"{name}.toml").read_text("utf-8"), f"preset {name}")


def read(file: Path) -> dict[str, Json]:
    """Read a ``wer.toml`` as it is, unchecked.

    Raises:
        ConfigError: It can't be read, or is no TOML.
    """
    try:
        return _parsed(file.read_text("utf-8-sig"), str(file))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"cannot read {str(file)!r}: {error}. Give --config a readable UTF-8 file."
        ) from error


def _parsed(text: str, source: str) -> dict[str, Json]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"{source} is not TOML: {error}. Correct that place; strings need quotes."
        ) from error
    except RecursionError:
        raise ConfigError(f"{source} {_TOO_DEEP}") from None


def assigned_options(items: Sequence[str]) -> Mapping[str, Json]:
    """Read ``key=value`` each, as for ``--set``, into one table.

    Raises:
        ConfigError: One is something else.
    """
    tree: dict[str, Json] = {}
    for item in items:
        tree = merged(tree, _assignment(item))
    return tree


def _assignment(item: str) -> dict[str, Json]:
    key, equals, text = item.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {item!r} is not key=value. Write it like --set training.k=4.")
    if key.count(".") > _DEPTH:
        raise ConfigError(f"--set {key[:40]!r}... {_TOO_DEEP}")
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        parsed = {}
    except RecursionError:
        raise ConfigError(f"--set {item[:40]!r}... {_TOO_DEEP}") from None
    value = parsed["value"] if parsed.keys() == {"value"} else text.strip()
    return _nested(key.strip(), value)


def _nested(key: str, value: Json) -> dict[str, Json]:
    head, _, rest = key.partition(".")
    return {head: _nested(rest, value) if rest else value}


def merged(below: Mapping[str, Json], above: Mapping[str, Json]) -> dict[str, Json]:
    """Lay one tree of tables over another; values and lists replace, tables combine."""
    tree = dict(below)
    for key, value in above.items():
        under = tree.get(key)
        both = isinstance(under, Mapping) and isinstance(value, Mapping)
        tree[key] = merged(under, value) if both else value  # type: ignore[arg-type]
    return tree
