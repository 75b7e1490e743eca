"""Which model plays each role of a run; a model is opened once, however many roles it plays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from attrs import field, frozen

from wer import catalogue
from wer.agents import is_own
from wer.configuration import RunConfig, apart
from wer.contracts import Environment, Model, Starting
from wer.display import Display
from wer.errors import ConfigError, PluginError
from wer.gpus import assigned
from wer.loop.agents import at_once
from wer.loop.ledger import Ledger, RoleModel
from wer.plugins import Plugins

_CAST = {"user": "user_model"}
"""The setting of a role's model, by the name that `wer.contracts.Environment.roles` gives it."""

NO_WRITER = (
    "the executor is an agent of your own, which writes no skills, and no model is named that does. Name one with "
    "--writer PROVIDER/NAME, or writer = ... in wer.toml."
)
ACTING = ("executor", *_CAST)
"""Roles that are asked inside of rollouts."""


def specs(config: RunConfig) -> Mapping[str, str]:
    """The model of each of `wer.gpus.ROLES`; empty where the run has none."""
    writer = writer_of(config)
    return {
        "executor": config.executor,
        "writer": writer,
        "seed_writer": config.seed_writer or writer,
        "merge_writer": config.merge_writer or writer,
        "user_model": config.user_model,
    }


def writer_of(config: RunConfig) -> str:
    """The model that revises skills: as configured, or the executor's; empty when that is the user's own agent."""
    return config.writer or ("" if is_own(config.executor) else config.executor)


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
    named: dict[str, str] = {role: getattr(config, _CAST[role]) for role in env.roles()}
    for role, spec in named.items():
        if not spec:
            setting = _CAST[role]
            raise ConfigError(
                f"environment {name!r} needs a model that plays the {role}. Give it with "
                f"--{setting.replace('_', '-')} PROVIDER/NAME, or {setting} = ... in wer.toml."
            )
    return named


def concurrency(config: RunConfig, plugins: Plugins, envs: Mapping[str, Environment]) -> int:
    """Rollouts at a time: as configured, or as many as help the executor; of several, the one that takes fewest."""
    return config.concurrency or min(_at_once(alone, plugins, envs) for alone in apart(config))


def _at_once(config: RunConfig, plugins: Plugins, envs: Mapping[str, Environment]) -> int:
    if is_own(config.executor):
        return at_once(config, envs)
    provider = plugins.provider(config.executor)
    return 1 if provider is None else provider.concurrency


def fetch_models(config: RunConfig, display: Display) -> None:
    """Download the catalogue's models that the run names, with progress, before anything waits for them."""
    named = {*specs(config).values(), *config.more_executors}
    wanted = {spec.partition("/")[2].partition("?")[0] for spec in named}
    for entry in catalogue.listing():
        if entry.name in wanted and entry.path is None:
            display.stage(f"downloading {entry.name}", round(entry.bytes / 1e6), unit="MB")
            catalogue.pull(entry.name, lambda _, done, __: display.reached(round(done / 1e6)))


def gpus_of(config: RunConfig) -> Mapping[str, tuple[int, ...]]:
    """The GPUs of each model: those of all the roles that it plays."""
    given = assigned(config.gpus)
    found: dict[str, tuple[int, ...]] = {}
    for role, spec in specs(config).items():
        found[spec] = (*found.get(spec, ()), *given.get(role, ()))
    return found


@frozen(kw_only=True)
class Models:
    """A run's models by specification, opened when a role first asks for them.

    Attributes:
        retries: Further tries after a provider's own failure.
        prices: US dollars per million prompt and completion tokens, by specification.
        say: Told one line about a retry, and about what a starting model waits for.
        gpus: By specification, as `gpus_of` gives them.
        logs: Where servers that WER starts may write what they say.
    """

    plugins: Plugins
    ledger: Ledger
    retries: int
    prices: Mapping[str, Sequence[float]]
    say: Callable[[str], None]
    gpus: Mapping[str, tuple[int, ...]] = field(factory=dict)
    logs: Path | None = None
    _open: dict[str, Model] = field(factory=dict, init=False)

    def role(self, role: str, spec: str) -> RoleModel:
        """The model of that specification, booking what it costs on that role.

        Raises:
            ConfigError: There is no model for it.
        """
        if not spec:
            raise ConfigError(NO_WRITER)
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
            acts=role in ACTING,
        )

    def cast(self, config: RunConfig, envs: Mapping[str, Environment]) -> Mapping[str, Model]:
        """Open what the environments' sessions call, each role once."""
        named = {role: spec for name, env in envs.items() for role, spec in cast(config, name, env).items()}
        return {role: self.role(role, spec) for role, spec in named.items()}

    async def ready(self) -> None:
        """Wait for models that are still starting, so that a run does not begin with one that will not."""
        for model in self._open.values():
            if isinstance(model, Starting):
                await model.ready()

    async def close(self) -> None:
        """Close every model that was opened."""
        for model in self._open.values():
            await model.close()
