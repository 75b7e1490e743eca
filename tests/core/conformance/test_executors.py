"""Executors that break a rule are told of it, with the remedy."""

import asyncio
import re

import pytest
from attrs import evolve
from support.offering import offering

from wer import plugins
from wer.conformance import Settings, check_part, executors
from wer.errors import ModelUnavailable
from wer.records import Message, Reply, Sampling, Step, Trajectory, Turn, Usage


class Plain:
    """Asks the model once a turn, runs what it calls, and asks once more."""

    def __init__(self, model, options):
        self.model = model
        self.history = []

    @property
    def identity(self):
        return {"agent": "plain", "model": dict(self.model.identity)}

    def opening(self, task, skill):
        return [Message(role="system", content=f"{task.context}\n{skill.body}")]

    def sampling(self, skill, seed):
        return Sampling(seed=seed)

    async def ask(self, messages, tools, sampling):
        return await self.model.complete(tuple(messages), tools, sampling)

    async def execute(self, task, skill, session, seed):
        history = self.opening(task, skill)
        steps, messages, usage = [], [], Usage()
        here = await session.begin()
        while isinstance(here, Turn):
            messages.append(here.message)
            history.append(Message(role="user", content=here.message))
            while True:
                reply = await self.ask(history, task.tools, self.sampling(skill, seed))
                usage += reply.usage
                answer = await session.call(reply.calls) if reply.calls else None
                observations = answer.observations if answer else ()
                steps.append(
                    Step(turn=here.index, text=reply.text, calls=reply.calls, observations=observations)
                )
                history.append(Message(role="assistant", content=reply.text, calls=reply.calls))
                history += [Message(role="tool", content=seen.text) for seen in observations]
                if not reply.calls:
                    break
            here = await session.say(reply.text)
        return self.told(
            Trajectory(messages=tuple(messages), steps=tuple(steps), end=here, seed=seed, usage=usage)
        )

    def told(self, trajectory):
        return trajectory


class Eager(Plain):
    """Samples another way with a skill."""

    def sampling(self, skill, seed):
        return Sampling(seed=seed, temperature=0.7 if skill.empty else 0.1)


class Deaf(Plain):
    """Shows the model no skill."""

    def opening(self, task, skill):
        return [Message(role="system", content=task.context)]


class Free(Plain):
    """Forgets what its calls cost."""

    def told(self, trajectory):
        return evolve(trajectory, usage=Usage())


class Silent(Plain):
    """Leaves its steps out."""

    def told(self, trajectory):
        return evolve(trajectory, steps=())


class Seedless(Plain):
    def sampling(self, skill, seed):
        return Sampling(seed=0)


class Patient(Plain):
    """Tries again by itself."""

    async def ask(self, messages, tools, sampling):
        try:
            return await super().ask(messages, tools, sampling)
        except ModelUnavailable:
            return await super().ask(messages, tools, sampling)


class Swallowing(Plain):
    """Takes a failure of the model for an answer."""

    async def ask(self, messages, tools, sampling):
        try:
            return await super().ask(messages, tools, sampling)
        except Exception:
            return Reply(text="")


class Remembering(Plain):
    """Keeps the conversation on itself."""

    def opening(self, task, skill):
        if not self.history:
            self.history.extend(super().opening(task, skill))
        return self.history


class Stubborn(Plain):
    """Can't be cancelled."""

    async def ask(self, messages, tools, sampling):
        try:
            return await super().ask(messages, tools, sampling)
        except asyncio.CancelledError:
            return Reply(text="")


async def findings(executor):
    listed = await check_part(
        "executor", "plain", plugins.load(extra=[offering("wer_executors", plain=executor)]), Settings()
    )
    return {finding.sentence: finding for finding in listed}


async def test_an_executor_that_keeps_the_rules_passes_every_check():
    listed = await findings(Plain)

    assert {finding.status for finding in listed.values()} == {"ok"}, listed


@pytest.mark.parametrize(
    ("executor", "sentence", "why", "remedy"),
    [
        (
            Eager,
            "only the system prompt changes",
            "asked something else than without",
            "keep tools, sampling",
        ),
        (Deaf, "only the system prompt changes", "in no message", "Put the skill into the system prompt"),
        (Free, "usage is reported", "the trajectory says Usage", "Add up the usage"),
        (Silent, "every call and answer", "the trajectory holds 0 calls", "Give each reply a Step"),
        (
            Seedless,
            "the seed decides",
            "with another seed the model is sampled the same",
            "Derive Sampling.seed",
        ),
        (Patient, "raised at once", "ModelUnavailable was asked 2 times", "at the first failure"),
        (Swallowing, "raised at once", "the error did not arrive", "Let the model's errors through"),
        (Remembering, "don't touch each other", "not what each is alone", "nothing of it on the executor"),
        (Stubborn, "can be cancelled", "did not end when it was cancelled", "CancelledError through"),
    ],
)
async def test_a_broken_rule_is_named_with_its_remedy(executor, sentence, why, remedy, monkeypatch):
    monkeypatch.setattr(executors, "CANCELLED_S", 0.2)

    listed = await findings(executor)

    finding = next(finding for finding in listed.values() if sentence in finding.sentence)
    assert finding.status == "failed", listed
    assert re.search(why, finding.detail), finding
    assert re.search(remedy, finding.remedy), finding


@pytest.mark.parametrize("mode", ["native", "step", "plan"])
async def test_the_shipped_agent_passes_in_every_mode(mode):
    listed = await check_part("executor", "toolagent", plugins.load(), Settings(options={"mode": mode}))

    assert {finding.status for finding in listed} == {"ok"}, listed
