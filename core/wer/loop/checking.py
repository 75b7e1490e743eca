"""Refuses what no installed plugin offers, before anything is built or paid."""

from __future__ import annotations

from wer.configuration import RunConfig
from wer.errors import ConfigError
from wer.loop.local import LOCAL
from wer.loop.roles import specs
from wer.plugins import Plugins
from wer.weights import demand_weights


def check_names(config: RunConfig, plugins: Plugins) -> None:
    """Look up every name of the configuration.

    Raises:
        PluginError: With the nearest spelling and what is installed.
        ConfigError: A writer that is named by a path is not there, a price is unknown, or
            rollouts elsewhere would each need a server of their own.
    """
    plugins.optimizers.check(config.backend)
    plugins.executors.check(config.agent)
    for spec in filter(None, (config.executor, config.seed_writer, config.merge_writer, config.user_model)):
        plugins.check_model(spec)
    demand_weights(config.writer or config.executor, plugins.models.names())
    for name in set(config.environment) - set(map(plugins.environments.called, config.env)):
        plugins.environments.check(name)
    for name in set(config.optimizer) - set(plugins.policies.names()):
        plugins.optimizers.check(name)
    _check_prices(config, plugins)
    if config.sandbox != "auto":
        plugins.sandboxes.check(config.sandbox)
    if config.runner != LOCAL:
        plugins.runners.check(config.runner)
        _check_servers(config, plugins)
    for name in config.tracking:
        plugins.trackers.check(name)
    if config.verifier:
        plugins.verifiers.check(config.verifier)


def _check_prices(config: RunConfig, plugins: Plugins) -> None:
    """A cap in US dollars needs the price of every model."""
    for spec in set(specs(config).values()) - {""}:
        if config.budget.max_cost and spec not in config.prices and plugins.cost(spec) == "unpriced":
            raise ConfigError(
                f"--max-cost is set, and the price of {spec!r} is unknown. Give it with "
                f"--price {spec}=PROMPT,COMPLETION (US dollars per million prompt and completion tokens), "
                "or cap --max-tokens."
            )


def _check_servers(config: RunConfig, plugins: Plugins) -> None:
    """A server that WER starts is nobody else's: each worker of another runner would start one more."""
    for role, spec in {"executor": config.executor, "user_model": config.user_model}.items():
        provider = plugins.provider(spec) if spec else None
        if provider is not None and provider.serves(spec.partition("/")[2]):
            raise ConfigError(
                f"{role} is {spec!r}, a server that WER starts for one machine, and with runner = {config.runner!r} "
                "every worker would start one of its own. Start it apart, and name it by a URL that all nodes "
                f"reach: {spec.partition('?')[0]}@http://HOST:PORT/v1."
            )
