"""Opens what a run works with (plugins' parts, sandbox pools, models, store) and closes it all again."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from attrs import evolve, field, frozen

from wer import catalogue
from wer.configuration import RunConfig
from wer.contracts import Environment, Executor, Model, Optimizer, OptimizerSetup, Pool, Sandbox
from wer.display import Display
from wer.errors import ConfigError, SandboxError
from wer.loop.evaluating import Evaluation
from wer.loop.ledger import Budget, Ledger, RoleModel, unpriced
from wer.loop.rollouts import Limits, Scheduler, World
from wer.plugins import Plugins
from wer.records import Rollout, SandboxSpec, Split, Task
from wer.store import Store
from wer.tables import nearest


@frozen(kw_only=True)
class Domain:
    """One domain of a run with its tasks.

    Attributes:
        name: ``env/domain``.
    """

    name: str
    env: str
    train: tuple[Task, ...]
    test: tuple[Task, ...]

    def tasks(self, split: Split) -> tuple[Task, ...]:
        return self.train if split == "train" else self.test


@frozen(kw_only=True)
class Run:
    """Everything open that the loop needs.

    Attributes:
        folder: The run's folder; checkpoints and skills go below it.
        domains: In the order of reports.
        tier: What isolates the episodes, as the pools say.
        role: Opens a model in a role: ``role("merger", "openai/gpt-4o")``.
    """

    config: RunConfig
    folder: Path
    plugins: Plugins
    store: Store
    display: Display
    ledger: Ledger
    scheduler: Scheduler
    domains: tuple[Domain, ...]
    tier: str
    role: Callable[[str, str], RoleModel]

    def evaluation(self, stage: str, *, n: int, phase: int = 0) -> Evaluation:
        """Make the `Evaluate` of one stage."""
        return Evaluation(
            stage=stage,
            scheduler=self.scheduler,
            store=self.store,
            rule=self.config.reward,
            n=n,
            seed=self.config.seed,
            on_rewarded=self.display.reward,
            phase=phase,
            phases=self.config.training.phases,
        )

    def optimizer(self) -> Optimizer:
        """Make the Skill Optimizer that the configuration names."""
        config = self.config
        setup = OptimizerSetup(
            writer=config.writer or config.executor,
            open_model=lambda: self.role("writer", config.writer or config.executor),
            k=config.training.k,
            phases=config.training.phases,
            seed=config.seed,
            temperature=config.training.temperature,
            top_k=config.training.top_k,
            max_prompt_tokens=config.training.max_prompt_tokens,
            max_response_tokens=config.training.max_response_tokens,
            options=config.optimizer.get(config.backend, {}),
            progress=self.display.say,
            check=self.ledger.check,
            charge=lambda usage: self.ledger.charge("writer", usage),
        )
        return self.plugins.optimizers.make(config.backend, setup)


def check_names(config: RunConfig, plugins: Plugins) -> None:
    """Refuse names that no plugin offers, before anything is built or paid.

    Raises:
        PluginError: With the nearest spelling and what is installed.
    """
    plugins.optimizers.check(config.backend)
    plugins.executors.check(config.agent)
    for spec in filter(None, (config.executor, config.seed_writer, config.merge_writer)):
        plugins.check_model(spec)
    for name in config.environment:
        plugins.environments.check(name)
    for name in config.optimizer:
        plugins.optimizers.check(name)
    for spec in {config.executor, config.writer, config.seed_writer, config.merge_writer} - {""}:
        if config.budget.max_cost and unpriced(spec, config.prices):
            raise ConfigError(
                f"--max-cost is set, and the price of {spec!r} is unknown. Give it with "
                f"--price {spec}=PROMPT,COMPLETION (US dollars per million prompt and completion tokens), "
                "or cap --max-tokens."
            )
    if config.sandbox != "auto":
        plugins.sandboxes.check(config.sandbox)
    if config.verifier:
        plugins.verifiers.check(config.verifier)


def environments(config: RunConfig, plugins: Plugins) -> Mapping[str, Environment]:
    """Make the environments that the configuration names."""
    return {name: plugins.environments.make(name, config.environment.get(name, {})) for name in config.env}


def domains(config: RunConfig, envs: Mapping[str, Environment], *, test_limit: int = 0) -> tuple[Domain, ...]:
    """List the chosen domains with their tasks.

    Raises:
        ConfigError: A domain that no chosen environment has.
    """
    known = [name for env in envs.values() for name in env.domains()]
    for name in config.domains:
        if name not in known:
            hint = nearest(name, known) or "."
            raise ConfigError(f"no domain named {name!r}{hint} Known domains: {', '.join(known)}.")
    chosen = []
    for env_name, env in envs.items():
        for name in env.domains():
            if config.domains and name not in config.domains:
                continue
            test = tuple(env.tasks(name, "test"))
            train = tuple(env.tasks(name, "train"))
            chosen.append(
                Domain(
                    name=f"{env_name}/{name}",
                    env=env_name,
                    train=train[: config.training.train_limit or None],
                    test=test[: test_limit or None],
                )
            )
    return tuple(chosen)


def choose_sandbox(name: str, plugins: Plugins) -> tuple[str, Sandbox]:
    """Take the named sandbox, or with ``auto`` Docker when its daemon answers, else processes.

    Raises:
        ConfigError: A named sandbox can't be used here, with the remedy.
    """
    if name != "auto":
        sandbox = plugins.sandboxes.make(name)
        why = sandbox.unavailable()
        if why is not None:
            raise ConfigError(f"sandbox {name!r} can't be used here: {why}")
        return name, sandbox
    reasons = []
    for choice in ("docker", "process"):
        if choice not in plugins.sandboxes.names():
            continue
        sandbox = plugins.sandboxes.make(choice)
        why = sandbox.unavailable()
        if why is None:
            return choice, sandbox
        reasons.append(f"{choice}: {why}")
    raise ConfigError("no sandbox can be used here. " + " ".join(reasons))


@asynccontextmanager
async def opened(
    config: RunConfig, *, folder: Path, store: Store, plugins: Plugins, display: Display
) -> AsyncIterator[Run]:
    """Open the parts of a run, and close every process, container and model at its end."""
    async with AsyncExitStack() as stack:
        envs = environments(config, plugins)
        chosen = domains(config, envs, test_limit=config.evaluation.test_limit)
        verifiers = {}
        for name, env in envs.items():
            verifier = config.verifier or env.verifier()
            verifiers[name] = (verifier, plugins.verifiers.make(verifier))
        check_names(config, plugins)
        ledger = Ledger(_budget(config), store)
        display.watch(lambda: ledger.total, store.add_time)
        stack.callback(display.end_stage)
        models = _Models(
            plugins=plugins,
            ledger=ledger,
            retries=config.limits.retries,
            prices=config.prices,
            say=display.say,
        )
        stack.push_async_callback(models.close)
        for spec in filter(None, (config.seed_writer, config.merge_writer)):
            models.role("", spec)  # opened now, so that a missing key is found before anything is paid
        executor: Executor = plugins.executors.make(
            config.agent, models.role("executor", config.executor), config.executor_options
        )
        pools = await _pools(config, envs, chosen, plugins, display, stack)
        scheduler = Scheduler(
            world=World(environments=envs, verifiers=verifiers, pools=pools, executor=executor),
            store=store,
            ledger=ledger,
            limits=Limits(rollout_timeout_s=config.limits.rollout_timeout_s, retries=config.limits.retries),
            gate=asyncio.Semaphore(concurrency(config)),
            on_finished=_announce(display, plugins),
            say=display.say,
        )
        yield Run(
            config=config,
            folder=folder,
            plugins=plugins,
            store=store,
            display=display,
            ledger=ledger,
            scheduler=scheduler,
            domains=chosen,
            tier="; ".join(dict.fromkeys(pool.tier for pool in pools.values())),
            role=models.role,
        )


def with_executor(scheduler: Scheduler, executor: Executor) -> Scheduler:
    """The same scheduler around another agent, for baselines."""
    return evolve(scheduler, world=evolve(scheduler.world, executor=executor))


@frozen(kw_only=True)
class _Models:
    """Models by specification, each opened once, however many roles it plays."""

    plugins: Plugins
    ledger: Ledger
    retries: int
    prices: Mapping[str, Sequence[float]]
    say: Callable[[str], None]
    _open: dict[str, Model] = field(factory=dict, init=False)

    def role(self, role: str, spec: str) -> RoleModel:
        if spec not in self._open:
            self._open[spec] = self.plugins.model(spec)
        return RoleModel(
            self._open[spec],
            role=role,
            ledger=self.ledger,
            retries=self.retries,
            on_retry=self.say,
            price=self.prices.get(spec),
        )

    async def close(self) -> None:
        for model in self._open.values():
            await model.close()


def fetch_models(config: RunConfig, display: Display) -> None:
    """Download the catalogue's models that the run names, with progress, before anything waits for them."""
    specs = (config.executor, config.writer, config.seed_writer, config.merge_writer)
    wanted = {spec.partition("/")[2].partition("?")[0] for spec in specs}
    for entry in catalogue.listing():
        if entry.name in wanted and entry.path is None:
            display.stage(f"downloading {entry.name}", round(entry.bytes / 1e6), unit="MB")
            catalogue.pull(entry.name, lambda _, done, __: display.reached(round(done / 1e6)))


async def _pools(
    config: RunConfig,
    envs: Mapping[str, Environment],
    chosen: Sequence[Domain],
    plugins: Plugins,
    display: Display,
    stack: AsyncExitStack,
) -> Mapping[str, Pool]:
    name, sandbox = choose_sandbox(config.sandbox, plugins)
    for line in sandbox.reap():
        display.say(f"removed what an earlier run left: {line}")
    specs: dict[str, SandboxSpec] = {}
    for domain in chosen:
        spec = envs[domain.env].sandbox(domain.name.partition("/")[2])
        specs.setdefault(spec.id, spec)
    pools = {}
    for key, spec in specs.items():
        display.say(f"starting the {name} sandbox for {spec.name} (built once, then cached)")
        try:
            pools[key] = await sandbox.start(
                spec, min(config.workers or os.cpu_count() or 1, concurrency(config))
            )
        except OSError as error:
            raise SandboxError(f"sandbox {name!r} did not start: {error}", cause="start") from error
        stack.push_async_callback(pools[key].close)
        display.say(f"isolation: {pools[key].tier}")
    return pools


def concurrency(config: RunConfig) -> int:
    """Rollouts at a time: as configured, or two a core for llama.cpp and 32 for anything that batches."""
    if config.concurrency:
        return config.concurrency
    return 2 * (os.cpu_count() or 1) if config.executor.startswith("local/") else 32


def _budget(config: RunConfig) -> Budget:
    caps = config.budget
    return Budget(max_rollouts=caps.max_rollouts, max_tokens=caps.max_tokens, max_cost=caps.max_cost)


def _announce(display: Display, plugins: Plugins) -> Callable[[Rollout, bool], None]:
    def announce(rollout: Rollout, cached: bool) -> None:
        display.rollout(rollout, cached)
        plugins.hook.wer_rollout_finished(rollout=rollout, cached=cached)

    return announce
