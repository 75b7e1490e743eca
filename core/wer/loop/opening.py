"""Opens what a run works with (plugins' parts, sandbox pools, models, store) and closes it all again."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

from attrs import evolve, field, frozen

from wer import catalogue
from wer.configuration import RunConfig, to_toml
from wer.contracts import (
    Environment,
    Executor,
    Model,
    Optimizer,
    OptimizerSetup,
    Pool,
    Runner,
    RunnerSetup,
    Sandbox,
    Starting,
)
from wer.display import Display
from wer.errors import ConfigError, PluginError, SandboxError
from wer.gpus import assigned
from wer.loop.evaluating import Evaluation
from wer.loop.ledger import Budget, Ledger, RoleModel, Spending
from wer.loop.local import LocalRunner, World
from wer.loop.recording import Recorder
from wer.loop.rollouts import Limits, Scheduler
from wer.plugins import Plugins
from wer.records import Rollout, SandboxSpec, Split, Task
from wer.sandboxing.later import PoolLater
from wer.store import Store
from wer.tables import nearest
from wer.weights import demand_weights

LOCAL = "local"
"""The runner that needs no plugin."""

_CAST = {"user": "user_model"}
"""The setting of a role's model, by the name that `wer.contracts.Environment.roles` gives it."""


@frozen(kw_only=True)
class Domain:
    """One domain of a run with its tasks.

    Attributes:
        name: ``env/domain``.
        roles: Models beside the executor's that take part in its episodes.
    """

    name: str
    env: str
    train: tuple[Task, ...]
    test: tuple[Task, ...]
    roles: tuple[str, ...] = ()

    def tasks(self, split: Split) -> tuple[Task, ...]:
        """The domain's tasks to learn from, or those that are touched once, at the end."""
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
    recorder: Recorder
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
            gpus=assigned(config.gpus).get("writer", ()),
            progress=self.display.say,
            check=self.ledger.check,
            charge=lambda usage: self.ledger.charge("writer", usage),
            ray_address=config.ray_address,
            record=self.recorder.step,
        )
        return self.plugins.optimizers.make(config.backend, setup)


def check_names(config: RunConfig, plugins: Plugins) -> None:
    """Refuse names that no plugin offers, before anything is built or paid.

    Raises:
        PluginError: With the nearest spelling and what is installed.
        ConfigError: A writer that is named by a path is not there, or a price is unknown.
    """
    plugins.optimizers.check(config.backend)
    plugins.executors.check(config.agent)
    for spec in filter(None, (config.executor, config.seed_writer, config.merge_writer, config.user_model)):
        plugins.check_model(spec)
    demand_weights(config.writer or config.executor, plugins.models.names())
    for name in config.environment:
        plugins.environments.check(name)
    for name in config.optimizer:
        plugins.optimizers.check(name)
    specs = (config.executor, config.writer, config.seed_writer, config.merge_writer, config.user_model)
    for spec in set(specs) - {""}:
        if config.budget.max_cost and spec not in config.prices and plugins.cost(spec) == "unpriced":
            raise ConfigError(
                f"--max-cost is set, and the price of {spec!r} is unknown. Give it with "
                f"--price {spec}=PROMPT,COMPLETION (US dollars per million prompt and completion tokens), "
                "or cap --max-tokens."
            )
    if config.sandbox != "auto":
        plugins.sandboxes.check(config.sandbox)
    if config.runner != LOCAL:
        plugins.runners.check(config.runner)
    for name in config.tracking:
        plugins.trackers.check(name)
    if config.verifier:
        plugins.verifiers.check(config.verifier)


def environments(config: RunConfig, plugins: Plugins) -> Mapping[str, Environment]:
    """Make the environments that the configuration names.

    Raises:
        ConfigError: One of them needs a model that the configuration doesn't name.
    """
    envs = {name: plugins.environments.make(name, config.environment.get(name, {})) for name in config.env}
    for name, env in envs.items():
        cast(config, name, env)
    return envs


def cast(config: RunConfig, name: str, env: Environment) -> Mapping[str, str]:
    """The models that take part in an environment's episodes beside the executor's, by role.

    Args:
        name: The environment's.

    Raises:
        ConfigError: The configuration names no model for a role.
        PluginError: There is no such role.
    """
    unknown = [role for role in env.roles() if role not in _CAST]
    if unknown:
        raise PluginError(
            f"environment {name!r} wants a model in the role {unknown[0]!r}, which WER doesn't have "
            f"(roles: {', '.join(_CAST)}). Its plugin may be made for another version."
        )
    specs: dict[str, str] = {role: getattr(config, _CAST[role]) for role in env.roles()}
    for role, spec in specs.items():
        if not spec:
            setting = _CAST[role]
            raise ConfigError(
                f"environment {name!r} needs a model that plays the {role}. Give it with "
                f"--{setting.replace('_', '-')} PROVIDER/NAME, or {setting} = ... in wer.toml."
            )
    return specs


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
                    roles=tuple(env.roles()),
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
        await stack.enter_async_context(_timekeeping(display))
        recorder = Recorder(store=store, say=display.say)
        stack.callback(recorder.close)
        recorder.open(config, folder, plugins)
        models = _Models(
            plugins=plugins,
            ledger=ledger,
            retries=config.limits.retries,
            prices=config.prices,
            say=display.say,
            gpus=_gpus(config),
            logs=folder / "logs",
        )
        stack.push_async_callback(models.close)
        for spec in filter(None, (config.seed_writer, config.merge_writer)):
            models.role("", spec)  # opened now, so that a missing key is found before anything is paid
        executor: Executor = plugins.executors.make(
            config.agent, models.role("executor", config.executor), config.executor_options
        )
        roles = models.cast(config, envs)
        pools = await _pools(config, envs, plugins, display.say, stack)
        await models.ready()
        world = World(environments=envs, verifiers=verifiers, pools=pools, executor=executor, roles=roles)
        runner = _runner(config, world, plugins, ledger, display)
        stack.push_async_callback(runner.close)
        await runner.start()
        scheduler = Scheduler(
            world=world,
            store=store,
            ledger=ledger,
            limits=Limits(rollout_timeout_s=config.limits.rollout_timeout_s, retries=config.limits.retries),
            gate=asyncio.Semaphore(config.concurrency or runner.concurrency),
            runner=runner,
            on_finished=_announce(display, recorder, plugins),
            say=display.say,
        )
        yield Run(
            config=config,
            folder=folder,
            plugins=plugins,
            store=store,
            display=display,
            ledger=ledger,
            recorder=recorder,
            scheduler=scheduler,
            domains=chosen,
            tier=runner.isolation,
            role=models.role,
        )


def with_executor(scheduler: Scheduler, executor: Executor) -> Scheduler:
    """The same scheduler around another agent, for baselines. Its units run here, wherever the others do."""
    world = evolve(scheduler.world, executor=executor)
    return evolve(scheduler, world=world, runner=LocalRunner(world=world))


def _runner(config: RunConfig, world: World, plugins: Plugins, ledger: Ledger, display: Display) -> Runner:
    """Make the runner that the configuration names."""
    if config.runner == LOCAL:
        return LocalRunner(world=world, concurrency=concurrency(config, plugins))
    setup = RunnerSetup(
        config=to_toml(config),
        address=config.ray_address,
        options=config.runner_options,
        identity=world.executor.identity,
        check=ledger.check,
        charge=ledger.charge,
        say=display.say,
    )
    return plugins.runners.make(config.runner, setup)


@asynccontextmanager
async def workplace(
    config: RunConfig, *, plugins: Plugins, spending: Spending, say: Callable[[str], None]
) -> AsyncIterator[LocalRunner]:
    """Open what rollouts need and no more: for a machine that works for a run that another one drives.

    Args:
        spending: Told what the models cost. Caps are watched by whoever drives the run.
    """
    async with AsyncExitStack() as stack:
        envs = environments(config, plugins)
        models = _Models(
            plugins=plugins,
            ledger=Ledger(Budget(), spending),
            retries=config.limits.retries,
            prices=config.prices,
            say=say,
        )
        stack.push_async_callback(models.close)
        executor: Executor = plugins.executors.make(
            config.agent, models.role("executor", config.executor), config.executor_options
        )
        roles = models.cast(config, envs)
        pools = await _pools(evolve(config, runner=LOCAL), envs, plugins, say, stack)
        await models.ready()
        world = World(environments=envs, verifiers={}, pools=pools, executor=executor, roles=roles)
        yield LocalRunner(world=world, concurrency=concurrency(config, plugins))


@frozen(kw_only=True)
class _Models:
    """Models by specification, each opened once, however many roles it plays."""

    plugins: Plugins
    ledger: Ledger
    retries: int
    prices: Mapping[str, Sequence[float]]
    say: Callable[[str], None]
    gpus: Mapping[str, tuple[int, ...]] = field(factory=dict)
    logs: Path | None = None
    _open: dict[str, Model] = field(factory=dict, init=False)

    def role(self, role: str, spec: str) -> RoleModel:
        if spec not in self._open:
            self._open[spec] = self.plugins.model(
                spec, gpus=self.gpus.get(spec, ()), folder=self.logs, say=self.say
            )
        return RoleModel(
            self._open[spec],
            role=role,
            ledger=self.ledger,
            retries=self.retries,
            on_retry=self.say,
            price=self.prices.get(spec),
        )

    def cast(self, config: RunConfig, envs: Mapping[str, Environment]) -> Mapping[str, Model]:
        """Open what the environments' sessions call, each role once."""
        specs = {role: spec for name, env in envs.items() for role, spec in cast(config, name, env).items()}
        return {role: self.role(role, spec) for role, spec in specs.items()}

    async def ready(self) -> None:
        """Wait for models that are still starting, so that a run does not begin with one that will not."""
        for model in self._open.values():
            if isinstance(model, Starting):
                await model.ready()

    async def close(self) -> None:
        for model in self._open.values():
            await model.close()


def _gpus(config: RunConfig) -> Mapping[str, tuple[int, ...]]:
    """The GPUs of each model: those of all the roles that it plays."""
    writer = config.writer or config.executor
    given = assigned(config.gpus)
    specs = {
        "executor": config.executor,
        "writer": writer,
        "seed_writer": config.seed_writer or writer,
        "merge_writer": config.merge_writer or writer,
        "user_model": config.user_model,
    }
    found: dict[str, tuple[int, ...]] = {}
    for role, spec in specs.items():
        found[spec] = (*found.get(spec, ()), *given.get(role, ()))
    return found


def fetch_models(config: RunConfig, display: Display) -> None:
    """Download the catalogue's models that the run names, with progress, before anything waits for them."""
    specs = (config.executor, config.writer, config.seed_writer, config.merge_writer, config.user_model)
    wanted = {spec.partition("/")[2].partition("?")[0] for spec in specs}
    for entry in catalogue.listing():
        if entry.name in wanted and entry.path is None:
            display.stage(f"downloading {entry.name}", round(entry.bytes / 1e6), unit="MB")
            catalogue.pull(entry.name, lambda _, done, __: display.reached(round(done / 1e6)))


async def _pools(
    config: RunConfig,
    envs: Mapping[str, Environment],
    plugins: Plugins,
    say: Callable[[str], None],
    stack: AsyncExitStack,
) -> Mapping[str, Pool]:
    """Start a pool a sandbox spec; with a runner elsewhere only once this machine has a rollout to run."""
    name, sandbox = choose_sandbox(config.sandbox, plugins)
    for line in sandbox.reap():
        say(f"removed what an earlier run left: {line}")
    workers = min(config.workers or os.cpu_count() or 1, concurrency(config, plugins))

    async def start(spec: SandboxSpec) -> Pool:
        say(f"starting the {name} sandbox for {spec.name} (built once, then cached)")
        try:
            pool = await sandbox.start(spec, workers)
        except OSError as error:
            raise SandboxError(f"sandbox {name!r} did not start: {error}", cause="start") from error
        say(f"isolation: {pool.tier}")
        return pool

    pools: dict[str, Pool] = {}
    for spec in _specs(config, envs):
        if spec.id not in pools:
            later = config.runner != LOCAL
            pools[spec.id] = PoolLater(partial(start, spec)) if later else await start(spec)
            stack.push_async_callback(pools[spec.id].close)
    return pools


def _specs(config: RunConfig, envs: Mapping[str, Environment]) -> Iterator[SandboxSpec]:
    """The sandboxes of the chosen domains."""
    for env in envs.values():
        for name in env.domains():
            if not config.domains or name in config.domains:
                yield env.sandbox(name)


def concurrency(config: RunConfig, plugins: Plugins) -> int:
    """Rollouts at a time: as configured, or as many as help the executor's model."""
    provider = plugins.provider(config.executor)
    return config.concurrency or (1 if provider is None else provider.concurrency)


@asynccontextmanager
async def _timekeeping(display: Display) -> AsyncIterator[None]:
    """Book the stage's time once a second, so that a killed run knows how long it worked."""

    async def keep() -> None:
        while True:
            await asyncio.sleep(1.0)
            display.book()

    keeping = asyncio.create_task(keep())
    try:
        yield
    finally:
        keeping.cancel()
        await asyncio.wait([keeping])
        if not keeping.cancelled():
            keeping.exception()  # the store's failure; whoever stores a result next reports it


def _budget(config: RunConfig) -> Budget:
    caps = config.budget
    return Budget(max_rollouts=caps.max_rollouts, max_tokens=caps.max_tokens, max_cost=caps.max_cost)


def _announce(display: Display, recorder: Recorder, plugins: Plugins) -> Callable[[Rollout, bool], None]:
    def announce(rollout: Rollout, cached: bool) -> None:
        display.rollout(rollout, cached)
        recorder.rollout(rollout, cached)
        plugins.hook.wer_rollout_finished(rollout=rollout, cached=cached)

    return announce
