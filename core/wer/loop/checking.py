"""Refuses what no installed plugin offers, before anything is built or paid."""

from __future__ import annotations

from wer.agents import is_own
from wer.configuration import RunConfig, apart
from wer.errors import ConfigError
from wer.loop.agents import check_own
from wer.loop.domains import environments
from wer.loop.local import LOCAL
from wer.loop.roles import specs, writer_of
from wer.methods import configurations
from wer.plugins import Plugins
from wer.weights import demand_weights
from wer.writers import demand_template


def check_names(config: RunConfig, plugins: Plugins) -> None:
    """Look up every name of the configuration.

    Raises:
        PluginError: With the nearest spelling and what is installed.
        WerError: An agent of the user's own can't work in this run.
        ConfigError: A writer that is named by a path is not there, a price is unknown, or
            rollouts elsewhere would each need a server of their own.
    """
    plugins.optimizers.check(config.backend)
    plugins.executors.check(config.agent)
    for alone in apart(config):
        if is_own(alone.executor):
            check_own(alone, environments(config, plugins), plugins)
        else:
            plugins.check_model(alone.executor)
    for spec in filter(None, (config.seed_writer, config.merge_writer, config.user_model)):
        plugins.check_model(spec)
    if writer_of(config):
        demand_weights(writer_of(config), plugins.models.names())
        demand_template(writer_of(config))
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


def demand_models(config: RunConfig, plugins: Plugins, *, writes: bool) -> None:
    """Refuse a run one of whose models can't be opened, for want of a key for example, before it has a folder.

    Args:
        writes: Whether skills are written, so that the writers are asked too.

    Raises:
        WerError: Of whoever offers the model, with the remedy.
    """
    for each in (config, *configurations(config).values()):
        writers = (writer_of(each), each.seed_writer, each.merge_writer) if writes else ()
        for spec in filter(None, (*each.executors, *writers, each.user_model)):
            provider = None if is_own(spec) else plugins.provider(spec)
            if provider is not None:
                provider.check(spec.partition("/")[2])


def _check_prices(config: RunConfig, plugins: Plugins) -> None:
    """A cap in US dollars needs the price of every model."""
    for spec in {*specs(config).values(), *config.more_executors} - {""}:
        if config.budget.max_cost and spec not in config.prices and plugins.cost(spec) == "unpriced":
            raise ConfigError(
                f"--max-cost is set, and the price of {spec!r} is unknown. Give it with "
                f"--price {spec}=PROMPT,COMPLETION (US dollars per million prompt and completion tokens), "
                "or cap --max-tokens."
            )


def _check_servers(config: RunConfig, plugins: Plugins) -> None:
    """A server that WER starts is nobody else's: each worker of another runner would start one more."""
    acting = [*(("executor", spec) for spec in config.executors), ("user_model", config.user_model)]
    for role, spec in acting:
        provider = plugins.provider(spec) if spec else None
        if provider is not None and provider.serves(spec.partition("/")[2]):
            raise ConfigError(
                f"{role} is {spec!r}, a server that WER starts for one machine, and with runner = {config.runner!r} "
                "every worker would start one of its own. Start it apart, and name it by a URL that all nodes "
                f"reach: {spec.partition('?')[0]}@http://HOST:PORT/v1."
            )
