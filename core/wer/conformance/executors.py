"""What every executor must do: seen with a scripted model and a scripted episode."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

from attrs import evolve, frozen

from wer.conformance.checks import Check, Fault, Kind, Settings
from wer.conformance.scripts import TASK, USAGE, Asked, HangingModel, ScriptedModel, ScriptedSession, greeting
from wer.contracts import Executor
from wer.errors import ModelError, ModelUnavailable
from wer.plugins import Plugins
from wer.records import NO_SKILL, Reply, Skill, Trajectory, Usage

_SKILL = Skill(name="greet-people", description="Greet.", body="## Workflow\n1. Greet whom the user names.\n")
_PATIENCE_S = 60.0
CANCELLED_S = 10.0
"""Seconds in which a cancelled rollout must have ended."""
_GARBAGE = ("", "{", '{"calls": [{"name": 1}]}', "<tool_call>", "\x00\ufffd")


@frozen(kw_only=True)
class Agent:
    """An executor's factory, to make it around any script."""

    make: Callable[[ScriptedModel], Executor]

    async def run(
        self, skill: Skill = NO_SKILL, seed: int = 1, answer: Callable[[Asked], Reply] = greeting
    ) -> tuple[ScriptedModel, ScriptedSession, Trajectory]:
        """One episode, alone."""
        model, session = ScriptedModel(answer), ScriptedSession()
        async with asyncio.timeout(_PATIENCE_S):
            trajectory = await self.make(model).execute(TASK, skill, session, seed)
        return model, session, trajectory


async def identity_is_plain(agent: Agent) -> None:
    """Equal identities make rollouts comparable, across runs."""
    model = ScriptedModel(greeting)
    first, second = (json.dumps(dict(agent.make(model).identity), sort_keys=True) for _ in range(2))
    if first != second or "scripted" not in first:
        raise Fault(
            f"two executors of one model are {first} and {second}",
            "Put the model's identity, the mode and the sampling into `identity`, and nothing that changes by itself.",
        )


async def only_the_system_prompt_changes(agent: Agent) -> None:
    """The skill is what is measured, so nothing else may follow it."""
    bare, _, _ = await agent.run()
    skilled, _, _ = await agent.run(_SKILL)
    if not any(
        _SKILL.body.strip() in message.content for asked in skilled.asked for message in asked.messages
    ):
        raise Fault(
            "the skill's body is in no message of the model",
            "Put the skill into the system prompt, verbatim.",
        )
    if list(map(_but_for_the_system, bare.asked)) != list(map(_but_for_the_system, skilled.asked)):
        raise Fault(
            "with a skill the model is asked something else than without, beside the system prompt",
            "Change messages with the role system only; keep tools, sampling and the number of calls.",
        )


def _but_for_the_system(asked: Asked) -> Asked:
    kept = tuple(message for message in asked.messages if message.role != "system")
    return evolve(asked, messages=kept)


async def usage_is_reported(agent: Agent) -> str:
    """Caps and prices are kept by what the trajectory says."""
    model, _, trajectory = await agent.run()
    wanted = sum((USAGE for _ in model.asked), Usage())
    if trajectory.usage != wanted:
        raise Fault(
            f"{len(model.asked)} calls of the model cost {wanted}, and the trajectory says {trajectory.usage}",
            "Add up the usage of every reply.",
        )
    return f"{len(model.asked)} calls"


async def trajectory_tells_all(agent: Agent) -> None:
    """Evidence for writers and verifiers is the trajectory, verbatim."""
    _, session, trajectory = await agent.run()
    made = [call for step in trajectory.steps for call in step.calls]
    heard = [observation for step in trajectory.steps for observation in step.observations]
    if (
        made != session.calls
        or len(heard) != len(made)
        or trajectory.messages != TASK.turns[: len(session.said)]
    ):
        raise Fault(
            f"the episode saw {len(session.calls)} calls and {len(session.said)} turns; the trajectory holds "
            f"{len(made)} calls, {len(heard)} observations and {len(trajectory.messages)} messages",
            "Give each reply a Step with its calls and their observations, and each begun turn its message.",
        )


async def the_seed_decides(agent: Agent) -> None:
    """Rollouts of one task differ by their seeds, and repeat with them."""
    first, again, other = [(await agent.run(seed=seed))[0].asked for seed in (1, 1, 2)]
    if first != again:
        raise Fault(
            "with one seed the model is asked two different things", "Derive every die from the seed."
        )
    if [asked.sampling for asked in first] == [asked.sampling for asked in other]:
        raise Fault("with another seed the model is sampled the same", "Derive Sampling.seed from the seed.")


async def failures_are_raised(agent: Agent) -> None:
    """Retries are the loop's, and a failure of the infrastructure is never a bad answer."""
    for error in (ModelUnavailable("429: busy"), ModelError("401: no such key")):
        count = 0

        def fail(asked: Asked, error: ModelError = error) -> Reply:
            nonlocal count
            count += 1
            raise error

        try:
            await agent.run(answer=fail)
        except type(error) as raised:
            if raised is error and count == 1:
                continue
        except TimeoutError:
            pass
        raise Fault(
            f"a model that raises {type(error).__name__} was asked {count} times, and the error did not arrive",
            "Let the model's errors through at the first failure.",
        )


async def it_can_be_cancelled(agent: Agent) -> None:
    """The loop gives up a rollout that hangs."""
    executor = agent.make(HangingModel(greeting))
    rollout = asyncio.ensure_future(executor.execute(TASK, NO_SKILL, ScriptedSession(), 1))
    await asyncio.sleep(0.05)
    rollout.cancel()
    await asyncio.wait([rollout], timeout=CANCELLED_S)
    if not rollout.cancelled():
        rollout.cancel()
        raise Fault(
            "a rollout whose model hangs did not end when it was cancelled",
            "Let asyncio.CancelledError through; catch Exception at most, and never in a loop.",
        )


async def garbage_is_data(agent: Agent) -> None:
    """What a model can say, it will."""
    for text in _GARBAGE:
        reply = Reply(text=text, malformed=("{",), usage=USAGE)
        _, _, trajectory = await agent.run(answer=partial(_the_same, reply))
        if not isinstance(trajectory, Trajectory):
            raise Fault(
                f"the reply {text!r} gave no trajectory", "Keep a malformed reply verbatim, and go on."
            )


def _the_same(reply: Reply, asked: Asked) -> Reply:
    return reply


async def rollouts_do_not_touch(agent: Agent) -> None:
    """One executor runs many episodes at once."""
    alone, _, wanted = await agent.run()
    model = ScriptedModel(greeting)
    executor = agent.make(model)
    sessions = [ScriptedSession() for _ in range(4)]
    found = await asyncio.gather(*(executor.execute(TASK, NO_SKILL, session, 1) for session in sessions))
    same = all(evolve(each, wall_s=0.0) == evolve(wanted, wall_s=0.0) for each in found)
    if not same or _sorted(model.asked) != _sorted(alone.asked * len(sessions)):
        raise Fault(
            "four episodes at once are not what each is alone",
            "Keep the conversation in `execute`, and nothing of it on the executor.",
        )


def _sorted(asked: list[Asked]) -> list[str]:
    return sorted(map(repr, asked))


@asynccontextmanager
async def open_agent(name: str, plugins: Plugins, settings: Settings) -> AsyncIterator[Agent]:
    """Make the executor called so, once, to see that it can be made."""

    def make(model: ScriptedModel) -> Executor:
        return plugins.executors.make(name, model, settings.options)

    make(ScriptedModel(greeting))
    yield Agent(make=make)


EXECUTORS: Kind[Agent] = Kind(
    checks=(
        Check("its identity is plain and stays the same", identity_is_plain),
        Check("with a skill only the system prompt changes", only_the_system_prompt_changes),
        Check("usage is reported", usage_is_reported),
        Check("the trajectory tells every call and answer", trajectory_tells_all),
        Check("the seed decides what is sampled", the_seed_decides),
        Check("failures of the model are raised at once, as they are", failures_are_raised),
        Check("a rollout that hangs can be cancelled", it_can_be_cancelled),
        Check("malformed replies are data", garbage_is_data),
        Check("rollouts at once don't touch each other", rollouts_do_not_touch),
    ),
    open=open_agent,
)
