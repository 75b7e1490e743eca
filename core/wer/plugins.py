"""Finding the parts that plugins offer: everything that varies is looked up here, by name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any, Generic, TypeVar

import pluggy
from attrs import evolve, field, frozen

from wer import hookspecs
from wer.agents import is_own
from wer.contracts import (
    Cost,
    Environment,
    Executor,
    Model,
    ModelSetup,
    Optimizer,
    Policy,
    Provider,
    Runner,
    Sandbox,
    Tracker,
    Verifier,
)
from wer.domain import Domain
from wer.errors import ConfigError, PluginError
from wer.extras import remedy
from wer.references import is_reference, resolve, short
from wer.tables import nearest

T = TypeVar("T")

_GROUP = "wer"
_FOREIGN_GROUP = re.compile(r"wer(\d+)")
_KINDS = {
    "wer_environments": "environment",
    "wer_verifiers": "verifier",
    "wer_executors": "executor",
    "wer_agents": "agent",
    "wer_optimizers": "optimizer",
    "wer_policies": "policy",
    "wer_models": "model",
    "wer_sandboxes": "sandbox",
    "wer_trackers": "tracker",
    "wer_runners": "runner",
}
_BY_REFERENCE = ("environment", "verifier")
_OBSERVERS = ("wer_rollout_finished", "wer_phase_finished")


@frozen
class Registry(Generic[T]):
    """The parts of one kind, as factories by name.

    Attributes:
        kind: In the singular, for messages: ``verifier``.
        offers: Name to the plugin that offers it and its factory.
        broken: Plugins that could not be loaded, with the reason.
        distributions: Name and version of the installed package, by plugin.
        given: Domains that the program itself holds, by the reference that stands for them in a configuration.
    """

    kind: str
    offers: Mapping[str, tuple[str, Callable[..., T]]]
    broken: Mapping[str, str]
    distributions: Mapping[str, str]
    given: Mapping[str, Domain] = field(factory=dict)

    def names(self) -> tuple[str, ...]:
        """What a user may write, in the order of messages."""
        return tuple(sorted(self.offers))

    def check(self, name: str) -> None:
        """Refuse a name that nobody offers, with the nearest.

        Raises:
            PluginError: With what is installed.
        """
        if self.kind in _BY_REFERENCE and is_reference(name):
            self._referenced(name)
        elif name not in self.offers:
            installed = ", ".join(self.names()) or "none"
            failed = f" Not loaded: {', '.join(self.broken)}; see wer plugin list." if self.broken else ""
            raise PluginError(
                f"no {self.kind} named {name!r} (installed: {installed}){nearest(name, self.offers) or '.'} "
                f"Check the spelling in wer.toml, or install the plugin that offers it.{failed}"
            )

    def called(self, name: str) -> str:
        """What a part is called in ids and tables: its name, or that of the `Domain` which a user named by its file.

        Raises:
            ConfigError: The file can't be imported, or has no such domain.
        """
        return self._referenced(name).name if is_reference(name) else name

    def make(self, name: str, *arguments: Any) -> T:
        """Call the factory of a name.

        Raises:
            PluginError: Nobody offers that name, or a library that it needs is missing.
        """
        self.check(name)
        if name not in self.offers:
            domain = self._referenced(name)
            return domain(*arguments) if self.kind == "environment" else domain.judge()  # type: ignore[return-value]
        plugin, factory = self.offers[name]
        try:
            return factory(*arguments)
        except ImportError as error:
            raise PluginError(
                f"{self.kind} {name!r} of plugin {plugin!r} needs a library that is missing: {error}. "
                + remedy(error.name or "", self.distributions.get(plugin, "").partition(" ")[0])
            ) from error

    def _referenced(self, name: str) -> Domain:
        """The `Domain` that a user named by its file or module, or gave as an object.

        Raises:
            ConfigError: It can't be imported, or is something else.
        """
        found = self.given[name] if name in self.given else resolve(name)
        if not isinstance(found, Domain):
            raise ConfigError(
                f"{name} is of type {type(found).__name__}, expected a wer.Domain. Other environments and verifiers "
                "are offered by a plugin."
            )
        return found.named(found.name or short(name), verifier=name)


@frozen(kw_only=True)
class Row:
    """One line of ``wer plugin list``.

    Attributes:
        distribution: Name and version of the installed package.
        kind: ``environment``, ..., ``observer``; empty for a broken plugin.
        status: ``ok``, or why it could not be loaded.
    """

    plugin: str
    distribution: str
    kind: str
    name: str
    status: str = "ok"


@frozen(kw_only=True)
class Plugins:
    """All parts that were found.

    Attributes:
        hook: Calls the observers: ``plugins.hook.wer_rollout_finished(...)``.
        broken: Plugins that could not be loaded, with the reason; the others work.
    """

    hook: Any
    environments: Registry[Environment]
    verifiers: Registry[Verifier]
    executors: Registry[Executor]
    agents: Registry[Executor]
    optimizers: Registry[Optimizer]
    policies: Registry[Policy]
    models: Registry[Model]
    sandboxes: Registry[Sandbox]
    trackers: Registry[Tracker]
    runners: Registry[Runner]
    broken: Mapping[str, str]
    rows: tuple[Row, ...]

    def model(self, spec: str, **setup: Any) -> Model:
        """Open the model that a user named ``provider/name[@url]``.

        Args:
            setup: Attributes of `ModelSetup` but the name.

        Raises:
            PluginError: No such provider, or not of that form.
        """
        self.check_model(spec)
        provider, _, rest = spec.partition("/")
        return self.models.make(provider, ModelSetup(name=rest, **setup))

    def check_model(self, spec: str) -> None:
        """Refuse a model's name that no provider can be found for, without opening anything.

        Raises:
            PluginError: As for `model`.
        """
        provider, slash, rest = spec.partition("/")
        if not (provider and slash and rest):
            raise PluginError(
                f"{spec!r} names no model. Write provider/name, with one of the providers "
                f"{', '.join(self.models.names()) or '(none installed)'}."
            )
        self.models.check(provider)

    def provider(self, spec: str) -> Provider | None:
        """What is known of a model before it is opened; None for a folder of weights, which no provider serves."""
        _, factory = self.models.offers.get(spec.partition("/")[0], ("", None))
        return factory if factory is None or isinstance(factory, Provider) else Provider(factory)

    def cost(self, spec: str) -> Cost:
        """Who knows what a model's calls cost. A folder of weights runs here, for nothing; an own agent says it."""
        if is_own(spec):
            return "reported"
        provider = self.provider(spec)
        return "free" if provider is None else provider.cost

    def holding(self, given: Mapping[str, Domain]) -> Plugins:
        """The same with domains that the program holds, by the reference that stands for each."""
        return evolve(
            self,
            environments=evolve(self.environments, given=given),
            verifiers=evolve(self.verifiers, given=given),
        )

    def listing(self) -> tuple[Row, ...]:
        """Say what every plugin offers, for ``wer plugin list``."""
        return self.rows


def load(extra: Sequence[ModuleType | type] = ()) -> Plugins:
    """Import every installed plugin and merge what they offer.

    Args:
        extra: Modules (or classes as namespaces) to register beside the installed ones.

    Raises:
        PluginError: Two plugins offer one name, or a hook is misspelt.
    """
    manager = pluggy.PluginManager(_GROUP)
    manager.add_hookspecs(hookspecs)
    distributions, broken = _register_installed(manager)
    for plugin in extra:
        _register(manager, plugin, plugin.__name__)
    offers = {hook: _merged(manager, hook, broken) for hook in _KINDS}
    _add_domains(offers)

    def registry(hook: str) -> Registry[Any]:
        return Registry(_KINDS[hook], offers[hook], broken, distributions)

    return Plugins(
        hook=manager.hook,
        environments=registry("wer_environments"),
        verifiers=registry("wer_verifiers"),
        executors=registry("wer_executors"),
        agents=registry("wer_agents"),
        optimizers=registry("wer_optimizers"),
        policies=registry("wer_policies"),
        models=registry("wer_models"),
        sandboxes=registry("wer_sandboxes"),
        trackers=registry("wer_trackers"),
        runners=registry("wer_runners"),
        broken=broken,
        rows=tuple(_rows(manager, offers, distributions, broken)),
    )


def _register_installed(manager: pluggy.PluginManager) -> tuple[dict[str, str], dict[str, str]]:
    """Import and register every installed plugin.

    Returns:
        By plugin: the package it comes from, and why it could not be loaded.
    """
    broken: dict[str, str] = {}
    distributions: dict[str, str] = {}
    found = entry_points()
    for point in sorted(found.select(group=_GROUP), key=lambda point: point.name):
        if point.name in distributions:
            raise PluginError(
                f"{distributions[point.name]} and {_distribution(point)} both have a plugin named "
                f"{point.name!r}. Uninstall one of them."
            )
        distributions[point.name] = _distribution(point)
        try:
            module = point.load()
        except (Exception, SystemExit) as error:  # a plugin's own failure, whatever it is, stops only itself
            broken[point.name] = f"{type(error).__name__}: {error}"
        else:
            _register(manager, module, point.name)
    for group in filter(_FOREIGN_GROUP.fullmatch, found.groups):
        for point in found.select(group=group):
            if point.name not in distributions:  # else the package has code for this version too
                distributions[point.name] = _distribution(point)
                broken[point.name] = _foreign(int(group.removeprefix(_GROUP)), distributions[point.name])
    return distributions, broken


def _foreign(version: int, distribution: str) -> str:
    """Why a plugin of another major version is not even imported, and what to do."""
    name = distribution.partition(" ")[0]
    if version == hookspecs.API[0]:
        return f"its entry points are in the group '{_GROUP}{version}'. Version {version} has the group {_GROUP!r}"
    remedy = (
        "Upgrade WER: pip install -U wer-skills"
        if version > hookspecs.API[0]
        else f"Upgrade the plugin: pip install -U {name}"
    )
    ours = ".".join(map(str, hookspecs.API))
    return f"made for version {version} of the plugin API, and this WER has {ours}. {remedy}"


def _register(manager: pluggy.PluginManager, plugin: ModuleType | type, name: str) -> None:
    """Register a plugin once its functions named ``wer_...`` are hooks that exist."""
    for attribute, value in vars(plugin).items():
        if not attribute.startswith("wer_") or not callable(value):
            continue
        if attribute not in (*_KINDS, *_OBSERVERS):
            close = difflib.get_close_matches(attribute, (*_KINDS, *_OBSERVERS), n=1, cutoff=0.5)
            hint = (
                f"Did you mean {close[0]!r}?"
                if close
                else f"The hooks are {', '.join((*_KINDS, *_OBSERVERS))}."
            )
            raise PluginError(f"plugin {name!r} has {attribute!r}, which is no hook of WER. {hint}")
        if not hasattr(value, f"{_GROUP}_impl"):
            raise PluginError(
                f"plugin {name!r} has {attribute!r} without @hookimpl. Import it from wer and mark it."
            )
    try:
        manager.register(plugin, name)
    except ValueError as error:
        raise PluginError(f"plugin {name!r} is registered twice: {error}. Rename or remove one.") from error
    except pluggy.PluginValidationError as error:
        manager.unregister(name=name)
        raise PluginError(
            f"plugin {name!r}: {error}. Take the arguments that wer.hookspecs shows."
        ) from error


def _merged(
    manager: pluggy.PluginManager, hook: str, broken: dict[str, str]
) -> dict[str, tuple[str, Callable[..., Any]]]:
    """Ask every plugin for its parts of one kind, one by one, so that each can fail alone."""
    offers: dict[str, tuple[str, Callable[..., Any]]] = {}
    for implementation in getattr(manager.hook, hook).get_hookimpls():
        plugin = implementation.plugin_name
        try:
            offered = dict(implementation.function())
        except Exception as error:  # as above
            broken[plugin] = f"{hook} raised {type(error).__name__}: {error}"
            continue
        for name, factory in offered.items():
            if name in offers:
                raise PluginError(
                    f"plugins {offers[name][0]!r} and {plugin!r} both offer a {_KINDS[hook]} named {name!r}. "
                    "Uninstall one of them, or rename what it offers."
                )
            offers[name] = (plugin, factory)
    return offers


def _add_domains(offers: dict[str, dict[str, tuple[str, Callable[..., Any]]]]) -> None:
    """Tell each `Domain` the name under which it is offered, and offer its verifier under that name too."""
    for name, (plugin, factory) in offers["wer_environments"].items():
        if isinstance(factory, Domain):
            domain = factory.named(name)
            if domain.verifier() in offers["wer_verifiers"]:
                other = offers["wer_verifiers"][domain.verifier()][0]
                raise PluginError(
                    f"plugins {other!r} and {plugin!r} both offer a verifier named {name!r}: a Domain brings its "
                    "own. Rename one of them."
                )
            offers["wer_environments"][name] = (plugin, domain)
            offers["wer_verifiers"][name] = (plugin, domain.judge)


def _rows(
    manager: pluggy.PluginManager,
    offers: Mapping[str, Mapping[str, tuple[str, Any]]],
    distributions: Mapping[str, str],
    broken: Mapping[str, str],
) -> Iterator[Row]:
    for hook, offered in offers.items():
        for name, (plugin, _) in sorted(offered.items()):
            yield Row(plugin=plugin, distribution=distributions.get(plugin, ""), kind=_KINDS[hook], name=name)
    for hook in _OBSERVERS:
        for implementation in getattr(manager.hook, hook).get_hookimpls():
            plugin = implementation.plugin_name
            yield Row(plugin=plugin, distribution=distributions.get(plugin, ""), kind="observer", name=hook)
    for plugin, reason in broken.items():
        yield Row(
            plugin=plugin,
            distribution=distributions.get(plugin, ""),
            kind="",
            name="",
            status=f"broken: {reason}",
        )


def _distribution(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else ""
