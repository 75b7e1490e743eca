"""The environments and domains of a run, each domain with the tasks that the configuration leaves it."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from wer.configuration import RunConfig
from wer.contracts import Environment
from wer.errors import ConfigError
from wer.loop.roles import cast
from wer.plugins import Plugins
from wer.records import Split, Task
from wer.tables import nearest


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


def environments(config: RunConfig, plugins: Plugins) -> Mapping[str, Environment]:
    """Make the environments that the configuration names.

    Raises:
        ConfigError: One of them needs a model that the configuration doesn't name.
    """
    envs: dict[str, Environment] = {}
    for reference in config.env:
        name = plugins.environments.called(reference)
        if name in envs or (name != reference and name in plugins.environments.offers):
            raise ConfigError(
                f"two environments are named {name!r}, one of them {reference!r}. Give it another: "
                "wer.Domain(..., name=...)."
            )
        envs[name] = plugins.environments.make(reference, config.environment.get(name, {}))
    for name, env in envs.items():
        cast(config, name, env)
    return envs


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
