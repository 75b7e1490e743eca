"""One worker as the driver holds it, from hiring to dismissal."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import ray
from attrs import define, field
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from wer.codec import from_json
from wer.contracts import RunnerSetup
from wer.errors import ConfigError, InfrastructureError
from wer.records import content_hash
from wer_ray.answers import Hello, error_of, read
from wer_ray.cluster import Cluster, Node
from wer_ray.options import RayOptions
from wer_ray.worker import Worker

_CLOSE_S = 30.0
_ENOUGH = 1000  # calls at a time into one actor: the loop's own gate is what limits them


class WorkerLost(InfrastructureError):
    """Ray says that a worker is gone, or never came."""

    kind = "lost worker"


@define(eq=False, kw_only=True)
class Hand:
    """A worker of one node.

    Attributes:
        hello: What it said of itself last.
        running: Units that it has and did not answer.
        failures: Failed units since the last that succeeded.
    """

    node: Node
    actor: Any
    cluster: Cluster
    setup: RunnerSetup
    hello: Hello = field(default=Hello(identity=None, isolation="", concurrency=1))
    running: int = 0
    failures: int = 0

    @property
    def burden(self) -> float:
        """How little it should get: a node that fails fast must not draw all the work to itself."""
        return (self.running + 1) / self.hello.concurrency * 2.0 ** min(self.failures, 10)

    async def call(self, method: str, *arguments: Any) -> Mapping[str, str]:
        """Call the worker, take its bill and its lines, and raise its failure.

        Raises:
            WorkerLost: The worker, or its answer, is gone.
        """
        reference = getattr(self.actor, method).remote(*arguments)
        try:
            answer = read(await self.cluster.unless_headless(reference))
        except asyncio.CancelledError:
            ray.cancel(reference)
            raise
        except RayError as error:
            raise WorkerLost(f"the Ray worker on {self.node.place} is gone: {_in_short(error)}") from error
        for role, usage in answer.spent.items():
            self.setup.charge(role, usage)
        for kind, role, count in answer.faults:
            for _ in range(count):
                self.setup.fault(kind, role)
        for line in answer.said:
            self.setup.say(f"{self.node.place}: {line}")
        if answer.failure is not None:
            raise error_of(answer.failure, place=self.node.place)
        return answer.result

    async def ask_health(self) -> None:
        """Have it say hello again."""
        self.hello = from_json((await self.call("health"))["hello"], Hello)

    async def dismiss(self) -> None:
        """Have it close its sandboxes and its executor, as long as it is there, and end it."""
        try:
            with contextlib.suppress(InfrastructureError, TimeoutError):
                async with asyncio.timeout(_CLOSE_S):
                    await self.call("close")
        finally:
            self.end()

    def end(self) -> None:
        """End its process at once."""
        ray.kill(self.actor)


async def hire(
    node: Node, *, cluster: Cluster, setup: RunnerSetup, options: RayOptions, environ: Mapping[str, str]
) -> Hand:
    """Start a worker on a node, and see that it is like this machine.

    Args:
        environ: Environment variables to send it.

    Raises:
        ConfigError: It is not, or the configuration can't be had there.
        WorkerLost: Ray could not start it, or lost it at once.
        InfrastructureError: It did not open, with the cause.
    """
    actor = ray.remote(Worker).options(
        num_cpus=options.cpus,
        num_gpus=options.gpus,
        max_restarts=0,
        max_concurrency=_ENOUGH,
        scheduling_strategy=NodeAffinitySchedulingStrategy(node.id, soft=False),
    )
    hand = Hand(node=node, actor=actor.remote(), cluster=cluster, setup=setup)
    try:
        async with asyncio.timeout(options.start_timeout_s):
            _demand_version(node, (await hand.call("version"))["wer"])
            hand.hello = from_json((await hand.call("open", setup.config, environ))["hello"], Hello)
        _demand_agent(hand)
    except TimeoutError as error:
        hand.end()
        raise InfrastructureError(
            f"the Ray worker on {node.place} did not open within {options.start_timeout_s:g} s: its sandbox is "
            f"slow to build, or Ray has no {options.cpus:g} CPU and {options.gpus:g} GPU to give it. Raise "
            "runner_options.start_timeout_s, or ask for less."
        ) from error
    except BaseException:
        hand.end()
        raise
    return hand


def _demand_version(node: Node, theirs: str) -> None:
    ours = version("wer-skills")
    if theirs != ours:
        raise ConfigError(
            f"the Ray node {node.place} has wer {theirs}, and this machine has {ours}. Install "
            f"wer-skills=={ours} on every node."
        )


def _demand_agent(hand: Hand) -> None:
    if content_hash(hand.hello.identity) != content_hash(hand.setup.identity):
        raise ConfigError(
            f"the executor on the Ray node {hand.node.place} is another one: {hand.hello.identity!r} there, "
            f"{dict(hand.setup.identity)!r} here. Install the same plugins and model files on every node."
        )


def _in_short(error: Exception) -> str:
    """The first and the last line of a message of Ray's, which may hold a page between them."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return lines[0] if len(lines) == 1 else f"{lines[0]} [...] {lines[-1]}"
