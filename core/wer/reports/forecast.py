"""What a run will cost, said before the first paid call. Every assumption is printed with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias, TypeVar

from attrs import evolve, frozen

from wer.agents import called, is_own
from wer.configuration import RunConfig
from wer.errors import ConfigError
from wer.loop.depths import held_out
from wer.loop.domains import Domain
from wer.loop.ledger import priced
from wer.loop.merging import merge_calls
from wer.loop.roles import NO_WRITER, specs, writer_of
from wer.plugins import Plugins
from wer.records import Split, Task, Usage
from wer.tooldocs import document

_CHARACTERS_PER_TOKEN = 4
_STEPS_A_TURN = 3
_OPEN_TURNS = 8
_USER_PROMPT_TOKENS = 1500
_TOKENS_A_STEP = 80
_EVIDENCE_TOKENS = 800
_SECONDS_A_CALL = 2.0

T = TypeVar("T", int, float)

_Asked: TypeAlias = tuple[str, str, float, float, float]
"""Role, model, calls, and the prompt and completion tokens of one call."""


@frozen(kw_only=True)
class Plan:
    """Which parts of the protocol a command performs.

    Attributes:
        scans: Passes over the training tasks before anything is revised.
        phases: Of training.
        revised: Policies whose revisions of the training tasks' skills are refined and merged.
        merged: Merges a domain.
        given: Skills that are given, merged into one, and compared with it on the training tasks.
        conditions: How many conditions are measured.
        split: The tasks that they are measured on.
    """

    scans: int = 0
    phases: int = 0
    revised: int = 0
    merged: int = 0
    given: int = 0
    conditions: int = 0
    split: Split = "test"

    @property
    def writes(self) -> bool:
        """Whether skills are written, so that there must be a model that does."""
        return bool(self.scans or self.revised or self.merged or self.given)


def protocol(config: RunConfig) -> Plan:
    """The whole protocol, as ``wer run`` performs it."""
    conditions = config.evaluation.conditions
    return Plan(
        scans=2,
        phases=config.training.phases if "refined" in conditions else 0,
        revised=sum(name in ("untrained", "refined") for name in conditions),
        merged=sum(name != "none" for name in conditions),
        conditions=len(conditions),
    )


def demand_possible(config: RunConfig, chosen: Sequence[Domain], plan: Plan | None) -> None:
    """Refuse work that lacks what it is done with: somebody who writes, tasks to learn from, tasks to measure on.

    Args:
        plan: None is the whole protocol.

    Raises:
        ConfigError: With what to name.
    """
    plan = plan or protocol(config)
    if plan.writes and not writer_of(config):
        raise ConfigError(NO_WRITER)
    named = ", ".join(domain.name for domain in chosen)
    if (plan.scans or plan.given) and not any(domain.train for domain in chosen):
        raise ConfigError(
            f"{named} has no training tasks to learn from: choose other domains with --domains."
        )
    if plan.conditions and not any(domain.tasks(plan.split) for domain in chosen):
        raise ConfigError(
            f"{named} has no {plan.split} tasks to measure on: choose other domains with --domains."
        )


@frozen(kw_only=True)
class RoleForecast:
    """The most that one role will be asked.

    Attributes:
        calls: Model calls.
        prompt_tokens: In all calls together; None where nobody knows, as of an agent of the user's own.
        completion_tokens: Likewise.
        usd: US dollars; None where no price is known.
    """

    role: str
    model: str
    calls: int
    prompt_tokens: int | None
    completion_tokens: int | None
    usd: float | None


@frozen(kw_only=True)
class Forecast:
    """Upper estimates; caches and early ends make it less.

    Attributes:
        rollouts: By stage, in the order in which they are run.
        roles: A line each.
        measured: Tasks that Pass@1 is measured on.
        trials: Of each of them under one condition.
    """

    rollouts: tuple[tuple[str, int], ...]
    roles: tuple[RoleForecast, ...]
    measured: int
    trials: int

    @property
    def total(self) -> int:
        """Rollouts of all stages: the most that ``--max-rollouts`` would have to allow."""
        return sum(count for _, count in self.rollouts)

    def minutes(self, concurrency: int) -> float:
        """How long the model calls take at the assumed pace."""
        return sum(role.calls for role in self.roles) * _SECONDS_A_CALL / concurrency / 60


ASSUMPTIONS = (
    f"assuming {_STEPS_A_TURN} model calls a user turn (1 in plan mode), {_CHARACTERS_PER_TOKEN} characters a token, "
    f"{_OPEN_TURNS} turns and {_USER_PROMPT_TOKENS:,} prompt tokens a call where a model is the user, "
    f"{_TOKENS_A_STEP} tokens written a call, "
    f"{_EVIDENCE_TOKENS} tokens of evidence a state, "
    f"{_SECONDS_A_CALL:g} s a call"
)


def forecast(
    config: RunConfig, domains: Sequence[Domain], plugins: Plugins, plan: Plan | None = None
) -> Forecast:
    """Count rollouts and model calls from the sizes of what is performed.

    Args:
        plan: None is the whole protocol.
    """
    plan = plan or protocol(config)
    measured = [task for domain in domains for task in domain.tasks(plan.split)]
    executors = len(config.executors)
    stages = [(stage, executors * count) for stage, count in _stages(config, plan, domains)]
    rollouts = sum(count for _, count in stages)
    stages.append(
        (f"{plan.split} split, the agent that does nothing", len(measured) if plan.conditions else 0)
    )
    asked = (*_acting(config, plan, domains, rollouts), *_writing(config, plan, domains))
    roles = tuple(
        _role(config, role, model, calls, prompt, written, free=plugins.cost(model) == "free")
        for role, model, calls, prompt, written in asked
    )
    return Forecast(
        rollouts=tuple((stage, count) for stage, count in stages if count),
        roles=tuple(role for role in roles if role.calls),
        measured=len(measured) if plan.conditions else 0,
        trials=config.evaluation.trials,
    )


def total(forecasts: Sequence[Forecast]) -> Forecast:
    """Add up what is performed in one run with several settings. The first says what is measured."""
    rollouts: dict[str, int] = {}
    roles: dict[tuple[str, str], list[RoleForecast]] = {}
    for each in forecasts:
        for stage, count in each.rollouts:
            rollouts[stage] = rollouts.get(stage, 0) + count
        for role in each.roles:
            roles.setdefault((role.role, role.model), []).append(role)
    return evolve(
        forecasts[0],
        rollouts=tuple(rollouts.items()),
        roles=tuple(
            evolve(
                several[0],
                calls=sum(each.calls for each in several),
                prompt_tokens=_known_sum([each.prompt_tokens for each in several]),
                completion_tokens=_known_sum([each.completion_tokens for each in several]),
                usd=_known_sum([each.usd for each in several]),
            )
            for several in roles.values()
        ),
    )


def _stages(config: RunConfig, plan: Plan, domains: Sequence[Domain]) -> Iterator[tuple[str, int]]:
    """Rollouts of one executor by stage."""
    train = sum(len(domain.train) for domain in domains)
    measured = sum(len(domain.tasks(plan.split)) for domain in domains)
    held = sum(map(len, held_out(config, domains).values()))
    trained, refined = _candidates(config, plan, domains)
    refinement, check = config.refinement, config.merge.check_rollouts
    yield "scan of the training tasks, without and with seed skills", plan.scans * train * config.training.n
    yield f"training, {plan.phases} phases", trained * config.training.n
    yield "refinement rounds", refined * refinement.n
    depths = plan.revised * (refinement.rounds + 1)
    yield f"{held} held-out tasks at every depth", depths * held * refinement.holdout_n
    sources = sum(count for count in _sources(config, domains) if count > 1)
    yield (
        "merged skills and their sources",
        (2 * plan.revised * sources + plan.given + bool(plan.given)) * check,
    )
    yield f"{plan.split} split, all conditions", plan.conditions * measured * config.evaluation.trials


def _candidates(config: RunConfig, plan: Plan, domains: Sequence[Domain]) -> tuple[int, int]:
    """How many candidates the writer is asked for in training and in refinement."""
    training, refinement = config.training, config.refinement
    learnt = sum(len(domain.train) for domain in domains) - sum(map(len, held_out(config, domains).values()))
    states = min(learnt, training.states_per_phase or learnt)
    return plan.phases * states * training.k, plan.revised * refinement.rounds * learnt * refinement.k


def _sources(config: RunConfig, domains: Sequence[Domain]) -> Iterator[int]:
    """How many skills are merged into one after refinement, domain by domain."""
    held = held_out(config, domains)
    for domain in domains:
        learnt = len(domain.train) - len(held.get(domain.name, ()))
        yield min(learnt, config.merge.max_sources or learnt)


def _merges(config: RunConfig, plan: Plan, domains: Sequence[Domain]) -> int:
    """Calls of the merger; where the depth is chosen, the skills of each depth are merged."""
    limit = config.merge.max_sources
    seeds = sum(merge_calls(min(len(domain.train), limit or len(domain.train))) for domain in domains)
    revisions = sum(map(merge_calls, _sources(config, domains)))
    depths = config.refinement.rounds + 1 if held_out(config, domains) else 1
    given = merge_calls(plan.given) if plan.given else 0
    return (plan.merged - plan.revised) * seeds + plan.revised * depths * revisions + given


def _acting(config: RunConfig, plan: Plan, domains: Sequence[Domain], rollouts: int) -> Iterator[_Asked]:
    """What executor and simulated user are asked, if the rollouts are spread evenly over the tasks."""
    scanned = [task for domain in domains for task in domain.train if plan.scans or plan.given]
    measured = [task for domain in domains for task in domain.tasks(plan.split) if plan.conditions]
    acted = [*scanned, *measured]
    steps = 1 if config.executor_options.get("mode") == "plan" else _STEPS_A_TURN
    calls = rollouts * _mean([_turns(task) for task in acted]) * steps
    prompt = _mean([_task_tokens(task) for task in acted])
    for spec in config.executors:
        yield "executor", spec, calls / len(config.executors), prompt, _TOKENS_A_STEP
    with_user = {
        task.key for domain in domains if "user" in domain.roles for task in domain.train + domain.test
    }
    replies = rollouts * _mean([_turns(task) * (task.key in with_user) for task in acted])
    # The agent that does nothing hears one message a task.
    replies += sum(task.key in with_user for task in measured)
    yield "user", config.user_model, replies, _USER_PROMPT_TOKENS, _TOKENS_A_STEP


def _writing(config: RunConfig, plan: Plan, domains: Sequence[Domain]) -> Iterator[_Asked]:
    """What those are asked who write skills."""
    train = [task for domain in domains for task in domain.train]
    models, longest = specs(config), config.training.max_response_tokens
    revision = _mean([_task_tokens(task) for task in train]) + _EVIDENCE_TOKENS
    drafts = len(train) if plan.scans and not config.seed_skill else 0
    yield "seed writer", models["seed_writer"], drafts, revision, longest
    yield "writer", models["writer"], sum(_candidates(config, plan, domains)), revision, longest
    merges = _merges(config, plan, domains)
    yield "merger", models["merge_writer"], merges, config.merge.max_tokens, config.merge.max_tokens


def _role(
    config: RunConfig, role: str, model: str, calls: float, prompt: float, written: float, *, free: bool
) -> RoleForecast:
    if is_own(model):
        return RoleForecast(
            role=role,
            model=called(model),
            calls=round(calls),
            prompt_tokens=None,
            completion_tokens=None,
            usd=None,
        )
    usage = Usage(
        calls=round(calls),
        prompt_tokens=round(calls * prompt),
        completion_tokens=round(calls * written),
        usd=0.0 if free else None,
    )
    usd = priced(usage, config.prices.get(model)).usd
    return RoleForecast(
        role=role,
        model=model,
        calls=usage.calls,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        usd=usd,
    )


def _turns(task: Task) -> int:
    """How many user turns a task has; an open-ended one as many as are usual."""
    return len(task.turns) or _OPEN_TURNS


def _task_tokens(task: Task) -> float:
    text = document(task.tools) + task.context + "".join(task.turns)
    return len(text) / _CHARACTERS_PER_TOKEN


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _known_sum(values: Sequence[T | None]) -> T | None:
    """The sum; unknown where one of them is."""
    known = [value for value in values if value is not None]
    return sum(known[1:], known[0]) if len(known) == len(values) else None
