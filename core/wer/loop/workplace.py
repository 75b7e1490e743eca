"""Where rollouts run: in this process, with a runner's plugin, or here for a run that another machine drives."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from attrs import evolve

from wer.agents import is_own
from wer.configuration import RunConfig, apart, to_toml
from wer.contracts import Environment, Executor, Runner, RunnerSetup, Verifier
from wer.loop.agents import EXECUTOR, own_agent
from wer.loop.domains import environments
from wer.loop.ledger import Budget, Ledger, Spending
from wer.loop.local import LOCAL, LocalRunner, World
from wer.loop.pools import start_pools
from wer.loop.roles import Models, concurrency
from wer.plugins import Plugins


async def open_world(
    config: RunConfig,
    envs: Mapping[str, Environment],
    verifiers: Mapping[str, tuple[str, Verifier]],
    *,
    plugins: Plugins,
    models: Models,
    say: Callable[[str], None],
    stack: AsyncExitStack,
) -> World:
    """Open the executor, the other models of the episodes and the sandboxes, and wait until all are ready.

    Args:
        stack: Closes the sandboxes. The models are closed by whoever made `models`.
    """

    def made(alone: RunConfig) -> Executor:
        if is_own(alone.executor):
            return own_agent(alone, envs, plugins, ledger=models.ledger)
        model = models.role(EXECUTOR, alone.executor)
        return plugins.executors.make(alone.agent, model, alone.executor_options)

    executors = {alone.executor: made(alone) for alone in apart(config)}
    roles = models.cast(config, envs)
    pools = await start_pools(config, envs, plugins, say, stack)
    await models.ready()
    return World(
        environments=envs,
        verifiers=verifiers,
        pools=pools,
        executor=executors[config.executor],
        executors=executors if len(executors) > 1 else {},
        roles=roles,
    )


def choose_runner(
    config: RunConfig, world: World, *, plugins: Plugins, ledger: Ledger, say: Callable[[str], None]
) -> Runner:
    """Make the runner that the configuration names."""
    if config.runner == LOCAL:
        return LocalRunner(world=world, concurrency=concurrency(config, plugins, world.environments))
    setup = RunnerSetup(
        config=to_toml(config),
        address=config.ray_address,
        options=config.runner_options,
        identity=world.identity,
        check=ledger.check,
        charge=ledger.charge,
        say=say,
        fault=ledger.fault,
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
        models = Models(
            plugins=plugins,
            ledger=Ledger(Budget(), spending),
            retries=config.limits.retries,
            prices=config.prices,
            say=say,
        )
        stack.push_async_callback(models.close)
        here = evolve(config, runner=LOCAL)
        world = await open_world(here, envs, {}, plugins=plugins, models=models, say=say, stack=stack)
        yield LocalRunner(world=world, concurrency=concurrency(config, plugins, envs))
