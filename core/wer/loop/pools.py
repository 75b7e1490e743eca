"""The sandbox of a run, and its warm workers for every domain."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from functools import partial

from wer.configuration import RunConfig
from wer.contracts import Environment, Pool, Sandbox
from wer.errors import ConfigError, SandboxError
from wer.loop.agents import isolation
from wer.loop.local import LOCAL
from wer.loop.roles import concurrency
from wer.plugins import Plugins
from wer.records import NO_SANDBOX, SandboxSpec
from wer.sandboxing.later import PoolLater
from wer.sandboxing.nowhere import NoPool
from wer.scripts import SCRIPTS


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


async def start_pools(
    config: RunConfig,
    envs: Mapping[str, Environment],
    plugins: Plugins,
    say: Callable[[str], None],
    stack: AsyncExitStack,
) -> Mapping[str, Pool]:
    """Start a pool a sandbox spec; with a runner elsewhere only once this machine has a rollout to run.

    That of the skills' helper scripts starts with the first script that is called.

    Args:
        say: Told one line about what takes its time.
        stack: Closes the pools.

    Returns:
        By sandbox spec id.

    Raises:
        SandboxError: One did not start.
    """
    name, sandbox = choose_sandbox(config.sandbox, plugins)
    for line in sandbox.reap():
        say(f"removed what an earlier run left: {line}")
    workers = min(config.workers or os.cpu_count() or 1, concurrency(config, plugins, envs))

    async def start(spec: SandboxSpec) -> Pool:
        if spec.id == NO_SANDBOX.id:
            say(f"isolation: {isolation(config)}")
            return NoPool(isolation(config))
        say(f"starting the {name} sandbox for {spec.name} (built once, then cached)")
        try:
            pool = await sandbox.start(spec, workers)
        except OSError as error:
            raise SandboxError(f"sandbox {name!r} did not start: {error}", cause="start") from error
        say(f"isolation: {pool.tier}")
        return pool

    pools: dict[str, Pool] = {SCRIPTS.id: PoolLater(partial(start, SCRIPTS))}
    stack.push_async_callback(pools[SCRIPTS.id].close)
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
