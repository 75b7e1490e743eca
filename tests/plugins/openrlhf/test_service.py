"""The evaluation service: what it answers, whom it answers, and how each fault ends."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import aiohttp
import pytest
from support.tiny_writer import states

from wer.errors import BudgetExhausted, OptimizerError, SandboxError
from wer.records import Candidate, Experience, RefinementState, Reward, Usage
from wer_openrlhf.service import Service, rounded

STATES = {state.id: state for state in states(2)}
FIRST, SECOND = STATES


class Paid:
    """Pays a third for each candidate, after what the test lets happen."""

    def __init__(self, during: Callable[[Candidate], Awaitable[None]] | None = None) -> None:
        self.written: dict[tuple[str, int], Candidate] = {}
        self.during = during

    def recorded(self, state: RefinementState) -> Sequence[Candidate]:
        return [candidate for (owner, _), candidate in sorted(self.written.items()) if owner == state.id]

    async def __call__(
        self, proposals: Sequence[tuple[RefinementState, Candidate]], n: int | None = None
    ) -> Sequence[Experience]:
        ((state, candidate),) = proposals
        self.written.setdefault((state.id, candidate.index), candidate)
        if self.during is not None:
            await self.during(candidate)
        reward = Reward(fmt=0.0, task=1.0, len=0.0, total=1 / 3)
        return [Experience(state=state, candidate=candidate, rollouts=(), reward=reward)]


class Agent:
    """Speaks to the service as the agent in the rollout actor does."""

    def __init__(self, service: Service, token: str | None = None) -> None:
        self.service = service
        self.token = service.token if token is None else token
        self.requests = 0

    async def ask(self, what: str, /, **body: Any) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self.token}"}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.post(f"{self.service.url}/{what}", json=body) as response,
        ):
            plain = response.content_type != "application/json"
            return response.status, await (response.text() if plain else response.json())

    async def claim(self, state: str, first: int = 0) -> tuple[int, Any]:
        self.requests += 1
        return await self.ask("claim", state=state, first=first, request=str(self.requests))

    async def send(self, state: str, index: int, text: str = "hm") -> tuple[int, Any]:
        return await self.ask(
            "evaluate",
            state=state,
            index=index,
            text=text,
            token_ids=[1, 2, 3],
            prompt_tokens=7,
            logprobs=[],
            truncated=False,
        )


def serving(evaluate: Paid | None = None, **settings: Any) -> Service:
    return Service(states=STATES, evaluate=evaluate or Paid(), k=2, **settings)


async def test_each_candidate_of_a_group_gets_a_place_of_its_own_and_its_reward():
    evaluate = Paid()
    async with serving(evaluate) as service:
        agent = Agent(service)
        claims = [(await agent.claim(FIRST))[1]["index"] for _ in range(2)]

        _, answer = await agent.send(FIRST, 1, "<skill>\nname: a\n</skill>")

    assert claims == [0, 1]
    assert answer["reward"] == rounded(1 / 3)
    assert set(answer["logs"]) == {"reward_task", "reward_fmt", "reward_len", "well_formed"}
    written = evaluate.written[FIRST, 1]
    assert (written.token_ids, written.text) == ((1, 2, 3), "<skill>\nname: a\n</skill>")


async def test_the_second_group_of_a_state_comes_after_the_first():
    async with serving() as service:
        agent = Agent(service)

        places = [(await agent.claim(FIRST, first))[1]["index"] for first in (2, 0, 2)]

    assert places == [2, 0, 3]


async def test_a_claim_that_is_repeated_after_a_lost_answer_gets_the_same_place():
    async with serving() as service:
        agent = Agent(service)
        ask = {"state": FIRST, "first": 0, "request": "again"}

        answers = [(await agent.ask("claim", **ask))[1]["index"] for _ in range(2)]

    assert answers == [0, 0]


async def test_candidates_are_evaluated_side_by_side():
    together = asyncio.Barrier(4)

    async def wait(_: Candidate) -> None:
        await together.wait()

    async with serving(Paid(wait)) as service:
        agent = Agent(service)
        found = await asyncio.gather(*(agent.send(state, index) for state in STATES for index in (0, 1)))

    assert [status for status, _ in found] == [200] * 4


async def test_a_candidate_that_arrives_twice_is_evaluated_and_charged_once():
    charged: list[Usage] = []
    async with serving(charge=charged.append) as service:
        agent = Agent(service)

        answers = [await agent.send(FIRST, 0) for _ in range(2)]

    assert answers[0] == answers[1]
    assert charged == [Usage(calls=1, prompt_tokens=7, completion_tokens=3)]
    assert len(service.slots) == 1


async def test_what_an_interrupted_launch_wrote_is_given_back_instead_of_being_written_anew():
    evaluate = Paid()
    async with serving(evaluate) as service:
        await Agent(service).send(FIRST, 0, "first try")

    def refuse() -> None:
        raise BudgetExhausted("nothing may be written")

    charged: list[Usage] = []
    async with serving(evaluate, check=refuse, charge=charged.append) as service:
        agent = Agent(service)
        _, claim = await agent.claim(FIRST)
        await agent.send(FIRST, claim["index"], "never mind what it says now")

    assert claim == {"index": 0, "recorded": {"token_ids": [1, 2, 3], "logprobs": []}}
    assert service.slots[0].experience.candidate.text == "first try"
    assert charged == []


async def test_a_slow_evaluation_is_pending_until_it_is_asked_for_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("wer_openrlhf.service._ANSWER_WITHIN_S", 0.01)
    ready = asyncio.Event()

    async def wait(_: Candidate) -> None:
        await ready.wait()

    async with serving(Paid(wait)) as service:
        agent = Agent(service)
        _, first = await agent.send(FIRST, 0)
        ready.set()
        while (answer := (await agent.ask("result", state=FIRST, index=0))[1]).get("pending"):
            pass

    assert first == {"pending": True}
    assert answer["reward"] == rounded(1 / 3)


@pytest.mark.parametrize(
    "error",
    [
        SandboxError("the sandbox died", cause="dead"),
        BudgetExhausted("the cap is reached"),
        RuntimeError("a fault of ours"),
    ],
)
async def test_what_an_evaluation_raises_is_kept_and_no_agent_gets_a_reward(error: Exception):
    async def fail(_: Candidate) -> None:
        raise error

    async with serving(Paid(fail)) as service:
        agent = Agent(service)
        status, _ = await agent.send(FIRST, 0)
        later, _ = await agent.claim(SECOND)

    assert service.failed.result() is error
    assert (status, later) == (503, 503)


async def test_a_cap_that_is_reached_stops_before_anything_is_written():
    def refuse() -> None:
        raise BudgetExhausted("the cap is reached")

    async with serving(check=refuse) as service:
        status, _ = await Agent(service).claim(FIRST)

    assert status == 503
    assert isinstance(service.failed.result(), BudgetExhausted)


@pytest.mark.parametrize("token", ["", "wrong"])
async def test_nobody_is_answered_without_the_token(token: str):
    async with serving() as service:
        status, _ = await Agent(service, token).claim(FIRST)

    assert status == 401
    assert not service.failed.done()
    assert service.seen is None


async def test_a_question_that_makes_no_sense_stops_the_training():
    async with serving() as service:
        await Agent(service).claim("a state of another run")

    assert "what nobody can answer" in str(service.failed.result())


async def test_more_candidates_than_a_group_has_stop_the_training():
    async with serving() as service:
        agent = Agent(service)
        for _ in range(3):
            await agent.claim(FIRST)

    assert isinstance(service.failed.result(), OptimizerError)


async def test_an_empty_answer_is_a_candidate_without_a_skill_and_no_fault():
    evaluate = Paid()
    async with serving(evaluate) as service:
        status, _ = await Agent(service).send(FIRST, 0, "")

    assert status == 200
    assert evaluate.written[FIRST, 0].skill is None


async def test_a_fault_in_the_rollout_actor_is_told_with_its_words():
    async with serving() as service:
        await Agent(service).ask("fault", what="ValueError: the reward is nan")

    assert "ValueError: the reward is nan" in str(service.failed.result())


def test_rewards_are_rounded_so_that_sums_of_equal_ones_are_exact():
    value = rounded(0.7361)

    assert value * 1024 == int(value * 1024)
    assert sum([value] * 7) / 7 == value
