"""The frozen agent of a run: a model with an executor around it, or an agent of the user's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from attrs import evolve

from wer.agents import called, is_own, kind_of, target
from wer.configuration import RunConfig
from wer.contracts import AgentSetup, Environment, Executor
from wer.errors import ConfigError
from wer.loop.ledger import Ledger, priced
from wer.plugins import Plugins
from wer.records import NO_SANDBOX, Usage

EXECUTOR = "executor"
"""The role that its costs are booked on."""
_AT_ONCE = 8


def offers_tools(config: RunConfig, envs: Mapping[str, Environment]) -> bool:
    """Whether the environments of a run have tools for an agent to call.

    Raises:
        ConfigError: Some have and others haven't: no agent fits both.
    """
    found = dict(_tools(config, envs))
    if len(set(found.values())) > 1:
        listed = ", ".join(f"{name} {'has' if tools else 'has none'}" for name, tools in found.items())
        raise ConfigError(
            f"an agent either calls WER's tools or has its own, and of these environments {listed}. Run them apart."
        )
    return all(found.values())


def _tools(config: RunConfig, envs: Mapping[str, Environment]) -> Iterator[tuple[str, bool]]:
    for name, env in envs.items():
        for domain in env.domains():
            if not config.domains or domain in config.domains:
                yield name, env.sandbox(domain).id != NO_SANDBOX.id


def own_agent(
    config: RunConfig,
    envs: Mapping[str, Environment],
    plugins: Plugins,
    *,
    ledger: Ledger | None = None,
) -> Executor:
    """Make the agent that the configuration names, or find what is wrong with it.

    Args:
        ledger: Books what it costs; None where nothing will be run.

    Raises:
        WerError: It can't be found, isn't one, or doesn't fit the environments.
    """
    spec = config.executor
    setup = AgentSetup(name=target(spec), options=config.executor_options, tools=offers_tools(config, envs))
    if ledger is not None:
        setup = evolve(setup, check=ledger.check, charge=partial(_charge, ledger, config))
    return plugins.agents.make(kind_of(spec) or "", setup)


def _charge(ledger: Ledger, config: RunConfig, usage: Usage) -> None:
    """Book what the agent used, at the price of its name as it is written or as reports call it."""
    spec = config.executor
    ledger.charge(EXECUTOR, priced(usage, config.prices.get(spec, config.prices.get(called(spec)))))


def check_own(config: RunConfig, envs: Mapping[str, Environment], plugins: Plugins) -> None:
    """Refuse an agent of the user's own that can't work, before anything is built or paid.

    Raises:
        WerError: As for `own_agent`; or rollouts would disturb each other.
    """
    own_agent(config, envs, plugins)
    if config.agent != "toolagent":
        raise ConfigError(
            f"agent is {config.agent!r}, which goes around a model, and the executor is your own "
            f"({called(config.executor)}). Leave --agent out."
        )
    if config.concurrency > 1 and _lonely(config, envs):
        raise ConfigError(
            f"concurrency is {config.concurrency}, and nobody isolates the rollouts of an agent with tools of its own "
            "from each other. Leave it out, and they run one at a time; or say what isolates them: --set "
            "executor_options.isolation='a database for each call'."
        )


def own_agents(executors: Mapping[str, Executor]) -> Mapping[str, Executor]:
    """Those of a run's executors that are the user's own, by what reports call them."""
    return {called(spec): executor for spec, executor in executors.items() if is_own(spec)}


def at_once(config: RunConfig, envs: Mapping[str, Environment]) -> int:
    """Rollouts at a time that an agent of the user's own gets when the configuration leaves it open."""
    return 1 if _lonely(config, envs) else _AT_ONCE


def isolation(config: RunConfig) -> str:
    """What isolates episodes that have no sandbox, for reports, and whose it is."""
    if not is_own(config.executor):
        return "none needed (the environment has no tools)"
    said = config.executor_options.get("isolation")
    return f"the agent's own ({said or 'one rollout at a time'})"


def _lonely(config: RunConfig, envs: Mapping[str, Environment]) -> bool:
    return not offers_tools(config, envs) and not config.executor_options.get("isolation")
