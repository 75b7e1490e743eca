"""Opens what a run works with (plugins' parts, sandbox pools, models, store) and closes it all again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from attrs import evolve, frozen

from wer.configuration import RunConfig
from wer.contracts import Environment, Optimizer, OptimizerSetup, Verifier
from wer.display import Display
from wer.gpus import assigned
from wer.journal import journal
from wer.loop.agents import own_agents
from wer.loop.checking import check_names
from wer.loop.domains import Domain, domains, environments
from wer.loop.evaluating import Evaluation
from wer.loop.following import follow
from wer.loop.ledger import Budget, Ledger, RoleModel
from wer.loop.notes import StoredNotes
from wer.loop.recording import Recorder
from wer.loop.roles import Models, gpus_of, specs
from wer.loop.rollouts import Limits, Scheduler
from wer.loop.sameness import demand_same, demand_same_agents
from wer.loop.screening import Screen
from wer.loop.stateless import stateless_remark
from wer.loop.workplace import choose_runner, open_world
from wer.plugins import Plugins
from wer.records import Rollout, Task
from wer.shown import Shown
from wer.store import Store
from wer.tracing import tracing


@frozen(kw_only=True)
class Run:
    """Everything open that the loop needs.

    Attributes:
        folder: The run's folder; checkpoints and skills go below it.
        domains: In the order of reports.
        tier: What isolates the episodes, as the pools say.
        scope: Of several methods in one run, the one that this is for; empty for the only one.
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
    screen: Screen
    scope: str = ""

    def scoped(self, method: str, config: RunConfig) -> Run:
        """The same run for one of several methods: its stages, checkpoints and costs go by its name."""
        screen = evolve(self.screen, policy=config.leak)
        return evolve(
            self, config=config, scope=method, folder=self.folder / "methods" / method, screen=screen
        )

    def staged(self, name: str) -> str:
        """A stage's name in the store."""
        return f"{self.scope}/{name}" if self.scope else name

    def paying(self, role: str) -> str:
        """The role that costs are booked on."""
        return f"{role}, {self.scope}" if self.scope else role

    @property
    def shown(self) -> Shown:
        """How the optimizer sees what was run."""
        return self.config.shown

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
            screen=self.screen.candidate,
            shown=self.shown,
            phase=phase,
            phases=self.config.training.phases,
        )

    def optimizer(self) -> Optimizer:
        """Make the Skill Optimizer that the configuration names."""
        config = self.config
        writer = specs(config)["writer"]
        setup = OptimizerSetup(
            writer=writer,
            open_model=lambda: self.role(self.paying("writer"), writer),
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
            check=self._check,
            charge=lambda usage: self.ledger.charge(self.paying("writer"), usage),
            ray_address=config.ray_address,
            record=self.recorder.step,
            reference=self.reference,
            try_script=self.scheduler.world.try_script,
            notes=StoredNotes(store=self.store, optimizer=self.staged(config.backend)),
            open_policy=lambda name: self.plugins.policies.make(
                name, evolve(setup, options=config.optimizer.get(name, {}))
            ),
        )
        return self.plugins.optimizers.make(config.backend, setup)

    def _check(self) -> None:
        self.ledger.check()
        self.ledger.check_search()

    async def reference(self, task: Task) -> Rollout | None:
        """Play a task's reference; see `wer.contracts.OptimizerSetup`."""
        return await follow(self.scheduler, self.scheduler.world.environments[task.env], task)


@asynccontextmanager
async def opened(
    config: RunConfig, *, folder: Path, store: Store, plugins: Plugins, display: Display
) -> AsyncIterator[Run]:
    """Open the parts of a run, and close every process, container and model at its end."""
    async with AsyncExitStack() as stack:
        envs = environments(config, plugins)
        chosen = domains(config, envs, test_limit=config.evaluation.test_limit)
        verifiers = _verifiers(config, envs, plugins)
        check_names(config, plugins)
        demand_same(store, envs)
        ledger = Ledger(_budget(config), store)
        display.watch(lambda: ledger.total, store.add_time)
        note = stack.enter_context(journal(folder))
        stack.callback(display.follow)
        stack.callback(display.end_stage)
        await stack.enter_async_context(_timekeeping(display))
        recorder = Recorder(store=store, say=display.say)
        stack.callback(recorder.close)
        recorder.open(config, folder, plugins)
        display.follow(note, recorder.event)
        stack.enter_context(tracing(recorder.tracers, recorder.drop))
        models = Models(
            plugins=plugins,
            ledger=ledger,
            retries=config.limits.retries,
            prices=config.prices,
            say=display.say,
            gpus=gpus_of(config),
            logs=folder / "logs",
        )
        stack.push_async_callback(models.close)
        for spec in filter(None, (config.seed_writer, config.merge_writer)):
            models.role("", spec)  # opened now, so that a missing key is found before anything is paid
        world = await open_world(
            config, envs, verifiers, plugins=plugins, models=models, say=display.say, stack=stack
        )
        demand_same_agents(store, own_agents(world.executors or {config.executor: world.executor}))
        runner = choose_runner(config, world, plugins=plugins, ledger=ledger, say=display.say)
        stack.push_async_callback(runner.close)
        await runner.start()
        scheduler = Scheduler(
            world=world,
            store=store,
            ledger=ledger,
            limits=Limits(rollout_timeout_s=config.limits.rollout_timeout_s, retries=config.limits.retries),
            gate=asyncio.Semaphore(config.concurrency or runner.concurrency),
            runner=runner,
            on_finished=_announce(
                display, recorder, plugins, look=stateless_remark(config, envs, store, display.say)
            ),
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
            screen=Screen(policy=config.leak, environments=envs),
        )


def _verifiers(
    config: RunConfig, envs: Mapping[str, Environment], plugins: Plugins
) -> Mapping[str, tuple[str, Verifier]]:
    """The verifier of each environment, its own unless the configuration names one."""
    named = {name: config.verifier or env.verifier() for name, env in envs.items()}
    return {name: (verifier, plugins.verifiers.make(verifier)) for name, verifier in named.items()}


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


def _announce(
    display: Display, recorder: Recorder, plugins: Plugins, *, look: Callable[[Rollout], None]
) -> Callable[[Rollout, bool], None]:
    def announce(rollout: Rollout, cached: bool) -> None:
        look(rollout)
        display.rollout(rollout, cached)
        recorder.rollout(rollout, cached)
        plugins.hook.wer_rollout_finished(rollout=rollout, cached=cached)

    return announce
