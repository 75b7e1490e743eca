"""The driver's evaluation service: OpenRLHF's agents send candidates, and get their rewards back.

It listens on the loopback, or on the address that a cluster reaches, and answers only to its
token. Candidates come one by one, in any order, and are executed at once, so that rollouts run
while others are still being written. Whatever goes wrong in an evaluation is kept here and raised
by the optimizer: the trainer is stopped and never sees a made-up reward.
"""

from __future__ import annotations

import asyncio
import hmac
import math
import secrets
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from aiohttp import web
from attrs import define, field, frozen

from wer.contracts import Evaluate
from wer.errors import OptimizerError
from wer.records import Candidate, Experience, RefinementState, Usage
from wer.writing import parse_candidate

_ANSWER_WITHIN_S = 20.0
_PARTS = 1024
_NO_SENSE = (LookupError, TypeError, ValueError, ArithmeticError, RecursionError)


def rounded(reward: float) -> float:
    """Round a reward to 1/1024, so that sums and means over a group are exact in float32.

    Candidates that earned the same then have an advantage of exactly zero, also where the
    trainer divides by the group's standard deviation.
    """
    return round(reward * _PARTS) / _PARTS


@frozen(kw_only=True)
class Slot:
    """One candidate's place, with the times that matter (seconds of a monotonic clock).

    Attributes:
        claimed: The agent began to write.
        written: The candidate arrived.
        rewarded: The reward was ready.
    """

    experience: Experience
    claimed: float
    written: float
    rewarded: float


@define(kw_only=True, eq=False)
class Service:
    """Serves one launch of the trainer; an async context manager.

    Attributes:
        states: By id, all that the trainer may ask about.
        k: Candidates a group.
        host: Address to listen on.
        check: Called before a candidate is written; raises to stop.
        charge: Told what a new candidate cost.
        slots: What has been rewarded in this launch, in the order of its completion.
        failed: Set once to the first failure.
        seen: When an agent last asked for something, or None.
    """

    states: Mapping[str, RefinementState]
    evaluate: Evaluate
    k: int
    host: str = "127.0.0.1"
    check: Callable[[], None] = lambda: None
    charge: Callable[[Usage], None] = lambda usage: None
    token: str = field(factory=lambda: secrets.token_urlsafe(32), repr=False)
    port: int = 0
    slots: list[Slot] = field(factory=list)
    seen: float | None = None
    failed: asyncio.Future[BaseException] = field(init=False)
    _claims: dict[str, int] = field(factory=dict, init=False)
    _counts: dict[tuple[str, int], int] = field(factory=dict, init=False)
    _claimed: dict[tuple[str, int], float] = field(factory=dict, init=False)
    _recorded: dict[tuple[str, int], Candidate] = field(factory=dict, init=False)
    _tasks: dict[tuple[str, int], asyncio.Task[Experience]] = field(factory=dict, init=False)
    _runner: web.AppRunner = field(init=False)

    @property
    def url(self) -> str:
        """Where the agents find it."""
        return f"http://{self.host}:{self.port}"

    def alive(self) -> float | None:
        """When the trainer last gave a sign of life; now, while it waits for rewards."""
        waits = any(not task.done() for task in self._tasks.values())
        return time.monotonic() if waits else self.seen

    async def __aenter__(self) -> Self:
        self.failed = asyncio.get_running_loop().create_future()
        for state in self.states.values():
            for candidate in self.evaluate.recorded(state):
                self._recorded[state.id, candidate.index] = candidate
        app = web.Application(client_max_size=64 << 20, middlewares=[self._guard])
        app.router.add_post("/claim", self._claim)
        app.router.add_post("/evaluate", self._evaluate)
        app.router.add_post("/result", self._result)
        app.router.add_post("/fault", self._fault)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self.host, self.port).start()
        except OSError as error:
            await self._runner.cleanup()
            raise OptimizerError(
                f"the trainer's agents cannot be served on {self.host}:{self.port} ({error}). Choose another "
                "optimizer.openrlhf.port, or 0 for any, and a host that is an address of this machine."
            ) from error
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        running = [task for task in self._tasks.values() if not task.done()]
        if running and (kind is None or issubclass(kind, Exception)):
            await asyncio.wait(running)  # rollouts in flight are paid for: they end and are stored
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await self._runner.cleanup()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, f"Bearer {self.token}".encode()):
            return web.Response(status=401, text="wrong token")
        if self.failed.done():
            return web.Response(status=503, text="an evaluation failed")
        self.seen = time.monotonic()
        try:
            answer: web.StreamResponse = await handler(request)
        except (*_NO_SENSE, web.HTTPException) as error:
            self.fail(OptimizerError(f"the trainer's agent asked what nobody can answer: {error!r}"))
        except ConnectionError:
            raise  # the agent asks again
        except Exception as error:
            self.fail(error)
        else:
            return answer
        return web.Response(status=503, text="an evaluation failed")

    def fail(self, error: BaseException) -> None:
        """Keep the first failure; agents are refused from now on."""
        if not self.failed.done():
            self.failed.set_result(error)

    async def _claim(self, request: web.Request) -> web.Response:
        """Give the next free place of a group, and what is written there already."""
        body = await request.json()
        state, first = self.states[body["state"]], int(body["first"])
        index = self._claims.get(body["request"])
        if index is None:
            taken = self._counts.get((state.id, first), 0)
            if taken >= self.k:
                raise ValueError(f"more than {self.k} candidates for state {state.id}")
            index = first + taken
            self._counts[state.id, first] = taken + 1
            self._claims[body["request"]] = index
        recorded = self._recorded.get((state.id, index))
        if recorded is None:
            self.check()
        self._claimed.setdefault((state.id, index), time.monotonic())
        found = recorded and {"token_ids": recorded.token_ids, "logprobs": recorded.logprobs}
        return web.json_response({"index": index, "recorded": found})

    async def _evaluate(self, request: web.Request) -> web.Response:
        """Take a candidate in; the same one twice is one."""
        body = await request.json()
        key = body["state"], int(body["index"])
        if key not in self._tasks:
            if key not in self._claimed:
                raise ValueError(f"nobody claimed place {key[1]} of state {key[0]}")
            written = time.monotonic()
            candidate = self._recorded.get(key) or self._read(body)
            self._tasks[key] = asyncio.create_task(self._reward(candidate, written))
        return await self._answer(key)

    async def _result(self, request: web.Request) -> web.Response:
        body = await request.json()
        return await self._answer((body["state"], int(body["index"])))

    async def _fault(self, request: web.Request) -> web.Response:
        what = str((await request.json())["what"]).encode("utf-8", "replace").decode()
        self.fail(OptimizerError(f"the agent in OpenRLHF's rollout actor failed: {what}"))
        return web.Response()

    def _read(self, body: Mapping[str, Any]) -> Candidate:
        tokens = tuple(map(int, body["token_ids"]))
        logprobs = tuple(map(float, body["logprobs"]))
        if not all(map(math.isfinite, logprobs)):
            raise ValueError("log-probabilities of vLLM that are not finite: its weights are of no use")
        index = int(body["index"])
        usage = Usage(
            calls=1,
            prompt_tokens=0 if index % self.k else int(body["prompt_tokens"]),
            completion_tokens=len(tokens),
        )
        self.charge(usage)
        return parse_candidate(
            str(body["text"]),
            state=self.states[body["state"]],
            index=index,
            token_ids=tokens,
            logprobs=logprobs,
            usage=usage,
        )

    async def _reward(self, candidate: Candidate, written: float) -> Experience:
        try:
            (experience,) = await self.evaluate([(self.states[candidate.state_id], candidate)])
        except Exception as error:
            self.fail(error)
            raise
        key = candidate.state_id, candidate.index
        slot = Slot(
            experience=experience,
            claimed=self._claimed.get(key, written),
            written=written,
            rewarded=time.monotonic(),
        )
        self.slots.append(slot)
        return experience

    async def _answer(self, key: tuple[str, int]) -> web.Response:
        """Wait a while for the reward; the agent asks again when it is still pending."""
        task = self._tasks[key]
        await asyncio.wait([task], timeout=_ANSWER_WITHIN_S)
        if not task.done():
            return web.json_response({"pending": True})
        experience = task.result()
        reward = experience.reward
        logs = {
            "reward_task": reward.task,
            "reward_fmt": reward.fmt,
            "reward_len": reward.len,
            "well_formed": float(experience.candidate.well_formed),
        }
        return web.json_response({"reward": rounded(reward.total), "logs": logs})
