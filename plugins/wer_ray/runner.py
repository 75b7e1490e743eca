"""The driver's side: who works, who gets the next unit, and who takes the place of the dead."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Mapping, Sequence

from ray.exceptions import RayError

from wer.codec import from_json, to_json
from wer.contracts import RunnerSetup
from wer.errors import ConfigError, InfrastructureError, WerError
from wer.records import Evidence, Json, Task, Trajectory, Unit
from wer.together import together
from wer_ray.cluster import Cluster, Node
from wer_ray.hands import Hand, WorkerLost, hire
from wer_ray.options import RayOptions

_HEARTBEAT_S = 10.0
_SILENCE_S = 60.0
_STARTS = 3


class RayRunner:
    """A `wer.contracts.Runner` over an actor a node.

    A worker that dies is an error of the infrastructure to the units that it had: the loop
    tries them again, and they go to the others. Its node, if it lives, gets a new worker; so
    does a node that joins later.
    """

    def __init__(self, setup: RunnerSetup, options: RayOptions) -> None:
        self._setup = setup
        self._options = options
        self._cluster = Cluster(setup.address)
        self._environ: Mapping[str, str] = {}
        self._hands: list[Hand] = []
        self._starts: dict[str, int] = {}
        self._staffing = asyncio.Lock()
        self._vacant = asyncio.Event()
        self._watching: set[asyncio.Task[None]] = set()

    @property
    def concurrency(self) -> int:
        """That of all workers together."""
        return sum(hand.hello.concurrency for hand in self._hands)

    @property
    def isolation(self) -> str:
        """What the workers say, each once, and how many they are."""
        kinds = "; ".join(dict.fromkeys(hand.hello.isolation for hand in self._hands))
        return f"{len(self._hands)} Ray workers: {kinds}"

    async def start(self) -> None:
        """Join the cluster and open a worker on every node.

        Raises:
            ConfigError: No cluster, no node to work on, or a node that is not like this one.
            InfrastructureError: A worker did not start, with its cause.
        """
        self._environ = _forwarded(self._options.forward)
        self._cluster.join()
        if problems := await self._staff():
            raise problems[0]
        if not self._hands:
            wanted = f" with the resource {self._options.resource!r}" if self._options.resource else ""
            raise ConfigError(
                f"the Ray cluster has no node to work on{wanted}. Add one with `ray start --address HOST:6379`."
            )
        self._setup.say(f"{len(self._hands)} Ray workers take {self.concurrency} rollouts at a time")
        for work in (self._cluster.watch(), self._keep_asking(), self._keep_staffing()):
            self._watching.add(asyncio.create_task(work))

    async def execute(self, unit: Unit) -> tuple[Trajectory, Evidence]:
        """Have a worker run the unit."""
        self._setup.check()
        texts = await self._ask("execute", to_json(unit), again=unit.attempt > 1)
        return from_json(texts["trajectory"], Trajectory), from_json(texts["evidence"], Evidence)

    async def expect(self, task: Task) -> Json:
        """Have a worker make it."""
        texts = await self._ask("expect", to_json(task), again=False)
        return json.loads(texts["expect"])

    async def close(self) -> None:
        """Close every worker, take its last bill, and leave the cluster."""
        for task in self._watching:
            task.cancel()
        await asyncio.gather(*self._watching, return_exceptions=True)
        self._cluster.closing()
        hands, self._hands = self._hands, []
        await asyncio.gather(*(hand.dismiss() for hand in hands))
        self._cluster.leave()

    async def _ask(self, method: str, text: str, *, again: bool) -> Mapping[str, str]:
        """Have the right worker do something.

        Raises:
            InfrastructureError: It failed or is gone, or there is none.
            WerError: The cluster has no head.
        """
        self._cluster.demand_head()
        hand = await self._choose(again=again)
        hand.running += 1
        try:
            texts = await hand.call(method, text)
        except WorkerLost as error:
            self._lose(hand, str(error))
            raise
        except InfrastructureError:
            hand.failures += 1
            raise
        finally:
            hand.running -= 1
        hand.failures = 0
        self._starts.pop(hand.node.id, None)
        return texts

    async def _choose(self, *, again: bool) -> Hand:
        """The worker with the least to do; a later try goes, where it can, to one that did not fail."""
        if not self._hands:
            problems = await self._staff()
            if not self._hands:
                why = f": {problems[0]}" if problems else ""
                raise InfrastructureError(
                    f"no Ray worker is left{why}. Go on with --resume once there is a node."
                )
        unblamed = [hand for hand in self._hands if not hand.failures] if again else []
        return min(unblamed or self._hands, key=lambda hand: hand.burden)

    def _lose(self, hand: Hand, why: str) -> None:
        """Give up a worker; whoever waits for it is told by Ray."""
        if hand in self._hands:
            self._hands.remove(hand)
            self._setup.say(why)
            hand.end()
            self._vacant.set()

    async def _staff(self) -> Sequence[Exception]:
        """Open the workers that living nodes lack, and give the reasons where that failed."""
        async with self._staffing:
            try:
                missing = [node for node in await self._nodes() for _ in range(self._vacancies(node))]
                problems = await together(map(self._open, missing))
            except (RayError, RuntimeError) as error:  # the head is gone, or too busy to say
                return [InfrastructureError(f"the Ray cluster does not name its nodes: {error}")]
        return [problem for problem in problems if problem is not None]

    async def _nodes(self) -> Sequence[Node]:
        if not await self._cluster.answers():  # Ray would try for a minute, in a thread that nothing ends
            raise RuntimeError("its head does not answer")
        return await asyncio.to_thread(self._cluster.nodes, self._options.resource)

    def _vacancies(self, node: Node) -> int:
        """How many workers to start there; none where they fail again and again."""
        if self._starts.get(node.id, 0) >= _STARTS * self._options.workers_per_node:
            return 0
        return self._options.workers_per_node - sum(hand.node.id == node.id for hand in self._hands)

    async def _open(self, node: Node) -> Exception | None:
        """Take on one worker of a node, or say why not. A node that is gone needs no reason."""
        for _ in range(_STARTS):
            self._starts[node.id] = self._starts.get(node.id, 0) + 1
            try:
                hand = await hire(
                    node,
                    cluster=self._cluster,
                    setup=self._setup,
                    options=self._options,
                    environ=self._environ,
                )
            except WorkerLost as error:
                problem: Exception = error
                if node not in await self._nodes():
                    return None
            except Exception as error:  # of whatever kind: the caller decides what it means
                return error
            else:
                self._hands.append(hand)
                return None
        return problem

    async def _keep_asking(self) -> None:
        """Ask every worker how it is, now and then, and give up who does not answer."""
        while True:
            await asyncio.sleep(_HEARTBEAT_S)
            await asyncio.gather(*map(self._ask_health, tuple(self._hands)))

    async def _ask_health(self, hand: Hand) -> None:
        try:
            async with asyncio.timeout(_SILENCE_S):
                await hand.ask_health()
        except TimeoutError:
            self._lose(hand, f"the Ray worker on {hand.node.place} was silent for {_SILENCE_S:g} s: given up")
        except WerError as error:
            self._lose(hand, str(error))

    async def _keep_staffing(self) -> None:
        """Fill vacancies as they come, and look for new nodes now and then."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_HEARTBEAT_S):
                    await self._vacant.wait()
            self._vacant.clear()
            for problem in await self._staff():
                self._setup.say(f"a Ray worker is missing: {problem}")


def _forwarded(names: Sequence[str]) -> Mapping[str, str]:
    """The environment variables to send.

    Raises:
        ConfigError: One is not set here.
    """
    for name in names:
        if name not in os.environ:
            raise ConfigError(
                f"runner_options.forward names {name!r}, which is not set here. Set it, or leave it out."
            )
    return {name: os.environ[name] for name in names}
