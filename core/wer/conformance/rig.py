"""An environment with its verifier in a real sandbox, and nobody to pay: where its episodes are tried."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from attrs import evolve, field, frozen

from wer.conformance.checks import Settings
from wer.contracts import Environment, Episode, Executor, Pool, Referenced, Session, Verifier
from wer.errors import SandboxError
from wer.loop.auditing import stand_ins
from wer.loop.local import LocalRunner, World
from wer.loop.noop import NoOp
from wer.loop.pools import choose_sandbox
from wer.plugins import Plugins
from wer.records import (
    NO_SANDBOX,
    NO_SKILL,
    Evidence,
    Json,
    JsonObject,
    SandboxSpec,
    Task,
    ToolCall,
    Trajectory,
    Unit,
)
from wer.references import short
from wer.sandboxing.nowhere import NoPool
from wer_sandbox.probe import PROBED

_SEED = 0
_MOST = 12


@frozen(kw_only=True)
class Rig:
    """What the checks of an environment and of its verifier work on.

    Attributes:
        name: As tasks call the environment.
        written: As the user names it.
        world: The environment, its verifier, and pools whose domains are watched.
        tasks: The first ones of each domain.
    """

    name: str
    written: str
    plugins: Plugins
    settings: Settings
    world: World
    tasks: tuple[Task, ...]

    @property
    def environment(self) -> Environment:
        """The one that is checked."""
        return self.world.environments[self.name]

    @property
    def verifier(self) -> tuple[str, Verifier]:
        """The verifier's name and itself."""
        return self.world.verifiers[self.name]

    def again(self) -> Environment:
        """A second environment of that name, as the next process would make it."""
        return self.plugins.environments.make(self.written, self.settings.table("environment", self.name))

    def reference(self, task: Task) -> Sequence[Sequence[ToolCall]] | None:
        """A task's reference, where the environment knows it."""
        return self.environment.reference(task) if isinstance(self.environment, Referenced) else None

    def some_calls(self, task: Task) -> tuple[ToolCall, ...]:
        """Calls to act with: the reference's, then one of each other tool with arguments that its schema allows."""
        calls = [call for turn in self.reference(task) or () for call in turn][:_MOST]
        others = [tool for tool in task.tools if tool.name not in {call.name for call in calls}]
        calls += [ToolCall(name=tool.name, arguments=plausible(tool.parameters)) for tool in others[:_MOST]]
        return tuple(calls)

    @asynccontextmanager
    async def session(self, task: Task) -> AsyncIterator[Session]:
        """A fresh episode of a task, before its first turn."""
        episode = await self.world.pool(task).lease()
        try:
            session = await self.environment.open(task, episode, self.world.cast(task), _SEED)
            try:
                yield session
            finally:
                await session.close()
        finally:
            await episode.close()

    async def play(self, task: Task, executor: Executor) -> tuple[Trajectory, Evidence]:
        """A whole episode, as the loop plays it."""
        runner = LocalRunner(world=evolve(self.world, executor=executor))
        return await runner.execute(Unit(task=task, skill=NO_SKILL, seed=_SEED))

    async def expect(self, task: Task) -> Json:
        """What the verifier compares with."""
        return await LocalRunner(world=self.world).expect(task)


class ProbedEpisode:
    """An episode that is asked, before it is closed, what its tools tried beyond their process."""

    def __init__(self, episode: Episode, attempts: dict[str, None]) -> None:
        self._episode = episode
        self._attempts = attempts
        self._closed = False

    async def request(self, method: str, params: JsonObject, *, timeout_s: float | None = None) -> Json:
        """See `wer.contracts.Episode`."""
        return await self._episode.request(method, params, timeout_s=timeout_s)

    async def close(self) -> None:
        """Ask once, and close."""
        if not self._closed:
            self._closed = True
            with suppress(SandboxError):  # it is dead, and whoever killed it was told
                self._attempts.update(dict.fromkeys(await self.request("wer_attempts", {})))
        await self._episode.close()


@frozen(kw_only=True)
class ProbedPool:
    """A pool of such episodes.

    Attributes:
        attempts: What was tried in any of them, each once.
    """

    pool: Pool
    attempts: dict[str, None] = field(factory=dict)

    @property
    def tier(self) -> str:
        """That of the pool inside."""
        return self.pool.tier

    async def lease(self) -> ProbedEpisode:
        """A fresh one."""
        return ProbedEpisode(await self.pool.lease(), self.attempts)

    async def close(self) -> None:
        """Close the pool inside."""
        await self.pool.close()


@asynccontextmanager
async def pools(
    environment: Environment, plugins: Plugins, sandbox: str
) -> AsyncIterator[Mapping[str, ProbedPool]]:
    """One worker for each sandbox of an environment, with a probe around its domain, by the spec's own id."""
    _, chosen = choose_sandbox(sandbox, plugins)
    chosen.reap()  # what a check that was killed left behind
    async with AsyncExitStack() as stack:
        started: dict[str, ProbedPool] = {}
        for spec in map(environment.sandbox, environment.domains()):
            if spec.id not in started:
                pool: Pool = NoPool("nothing") if spec == NO_SANDBOX else await chosen.start(probed(spec), 1)
                stack.push_async_callback(pool.close)
                started[spec.id] = ProbedPool(pool=pool)
        yield started


def probed(spec: SandboxSpec) -> SandboxSpec:
    """The same sandbox, with a probe around the domain."""
    return evolve(spec, domain="wer_sandbox.probe:around", environ={**spec.environ, PROBED: spec.domain})


@asynccontextmanager
async def open_rig(written: str, plugins: Plugins, settings: Settings) -> AsyncIterator[Rig]:
    """Make the environment called so, and start its sandboxes."""
    name = short(written)
    environment = plugins.environments.make(written, settings.table("environment", name))
    verifier = settings.verifier or environment.verifier()
    judges = {name: (verifier, plugins.verifiers.make(verifier))}
    async with pools(environment, plugins, settings.sandbox) as started:
        world = World(
            environments={name: environment},
            verifiers=judges,
            pools=started,
            executor=NoOp(),
            roles=stand_ins(environment),
        )
        tasks = [
            task
            for domain in environment.domains()
            for task in [*environment.tasks(domain, "train"), *environment.tasks(domain, "test")][
                : settings.tasks
            ]
        ]
        yield Rig(
            name=name, written=written, plugins=plugins, settings=settings, world=world, tasks=tuple(tasks)
        )


def plausible(parameters: JsonObject) -> dict[str, Json]:
    """Arguments that a tool's schema allows, as small as they get."""
    properties: Mapping[str, JsonObject] = parameters.get("properties", {})
    return {name: _value(properties.get(name, {})) for name in parameters.get("required", properties)}


def _value(schema: JsonObject) -> Json:
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object":
        return plausible(schema)
    return _VALUES.get(kind if isinstance(kind, str) else "string", "a")


_VALUES: Mapping[str, Json] = {"integer": 1, "number": 1.0, "boolean": True, "array": [], "null": None}
