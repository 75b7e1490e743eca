"""What a run will cost, said before the first paid call. Every assumption is printed with it."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from wer.configuration import RunConfig
from wer.loop.ledger import FREE, priced
from wer.loop.opening import Domain
from wer.records import Task, Usage
from wer.tooldocs import document

_CHARACTERS_PER_TOKEN = 4
_STEPS_A_TURN = 3
_TOKENS_A_STEP = 80
_EVIDENCE_TOKENS = 800
_SECONDS_A_CALL = 2.0


@frozen(kw_only=True)
class RoleForecast:
    """The most that one role will be asked.

    Attributes:
        calls: Model calls.
        prompt_tokens: In all calls together.
        completion_tokens: Likewise.
        usd: US dollars; None where no price is known.
    """

    role: str
    model: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    usd: float | None


@frozen(kw_only=True)
class Forecast:
    """Upper estimates; caches and early ends make it less.

    Attributes:
        rollouts: By stage, in the order in which they are run.
        roles: A line each.
        test_tasks: Tasks of the test split.
    """

    rollouts: tuple[tuple[str, int], ...]
    roles: tuple[RoleForecast, ...]
    test_tasks: int

    @property
    def total(self) -> int:
        return sum(count for _, count in self.rollouts)

    def minutes(self, concurrency: int) -> float:
        """How long the model calls take at the assumed pace."""
        return sum(role.calls for role in self.roles) * _SECONDS_A_CALL / concurrency / 60


ASSUMPTIONS = (
    f"assuming {_STEPS_A_TURN} model calls a user turn (1 in plan mode), {_CHARACTERS_PER_TOKEN} characters a token, "
    f"{_TOKENS_A_STEP} tokens written a call, {_EVIDENCE_TOKENS} tokens of evidence a state, "
    f"{_SECONDS_A_CALL:g} s a call"
)


def forecast(config: RunConfig, domains: Sequence[Domain]) -> Forecast:
    """Count rollouts and model calls of the whole protocol from its sizes."""
    training, refinement = config.training, config.refinement
    train = [task for domain in domains for task in domain.train]
    test = [task for domain in domains for task in domain.test]
    states = min(len(train), training.states_per_phase or len(train))
    revised = [name for name in config.evaluation.conditions if name in ("untrained", "refined")]
    trained = training.phases if "refined" in revised else 0
    refined = len(revised) * refinement.rounds * len(train) * refinement.k
    stages = (
        ("scan of the training tasks, without and with seed skills", 2 * len(train) * training.n),
        (f"training, {trained} phases", trained * states * training.k * training.n),
        ("refinement rounds", refined * refinement.n),
        (
            "test split, all conditions",
            len(config.evaluation.conditions) * len(test) * config.evaluation.trials,
        ),
    )
    rollouts = sum(count for _, count in stages)
    writer = config.writer or config.executor
    asked = trained * states * training.k + refined
    revision = _mean([_task_tokens(task) for task in train]) + _EVIDENCE_TOKENS
    drafts = 0 if config.seed_skill else len(train)
    merges = len(domains) * sum(name != "none" for name in config.evaluation.conditions)
    plan = config.executor_options.get("mode") == "plan"
    calls = rollouts * _mean([len(task.turns) for task in [*train, *test]]) * (1 if plan else _STEPS_A_TURN)
    acting = _mean([_task_tokens(task) for task in [*train, *test]])
    roles = tuple(
        _role(config, role, model, count, prompt, written)
        for role, model, count, prompt, written in (
            ("executor", config.executor, calls, acting, _TOKENS_A_STEP),
            ("seed writer", config.seed_writer or writer, drafts, revision, training.max_response_tokens),
            ("writer", writer, asked, revision, training.max_response_tokens),
            (
                "merger",
                config.merge_writer or writer,
                merges,
                config.merge.max_tokens,
                config.merge.max_tokens,
            ),
        )
    )
    return Forecast(rollouts=stages, roles=roles, test_tasks=len(test))


def _role(
    config: RunConfig, role: str, model: str, calls: float, prompt: float, written: float
) -> RoleForecast:
    usage = Usage(
        calls=round(calls),
        prompt_tokens=round(calls * prompt),
        completion_tokens=round(calls * written),
        usd=0.0 if model.partition("/")[0] in FREE else None,
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


def _task_tokens(task: Task) -> float:
    text = document(task.tools) + task.context + "".join(task.turns)
    return len(text) / _CHARACTERS_PER_TOKEN


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
