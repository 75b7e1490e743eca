"""Episodes of tau2 written out beforehand, and how they are played in a session."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, frozen
from support.scripted_user import STOP, ScriptedUser

from wer.contracts import Environment, Episode
from wer.records import End, Evidence, Observation, Step, Task, ToolCall, Trajectory, Turn
from wer_tau2 import benchmark
from wer_tau2.tasks import entry


@frozen(kw_only=True)
class Event:
    """One message of the agent or the user.

    Attributes:
        calls: Empty in a message that is said.
    """

    by: str
    text: str = ""
    calls: tuple[ToolCall, ...] = ()


Script = list[Event]


def reference(task: Task) -> Script:
    """The task's reference, one call a message; the agent asks the user for its part."""
    criteria = entry(benchmark.load(), task)["evaluation_criteria"]
    script = [Event(by="user", text="Hello.")]
    for action in criteria["actions"] or ():
        call = ToolCall(name=action["name"], arguments=action["arguments"])
        if action.get("requestor") == "user":
            script += [
                Event(by="agent", text="Please do it."),
                Event(by="user", calls=(call,)),
                Event(by="user", text="I did."),
            ]
        else:
            script.append(Event(by="agent", calls=(call,)))
    told = " ".join(criteria.get("communicate_info") or ())
    return [*script, Event(by="agent", text=f"Done. {told}"), Event(by="user", text=STOP)]


async def play(
    env: Environment, task: Task, script: Script, episode: Episode, *, seed: int = 0
) -> tuple[Trajectory, Evidence]:
    """Play both sides to the end of the episode, or until the agent's script is over and it leaves."""
    user = ScriptedUser(*(event.calls or event.text for event in script if event.by == "user"))
    session = await env.open(task, episode, {"user": user}, seed)
    try:
        at: Turn | End = await session.begin()
        messages: list[str] = []
        steps: list[Step] = []
        if isinstance(at, Turn):
            messages.append(at.message)
        for move in (event for event in script if event.by == "agent"):
            if isinstance(at, End):
                break
            step = Step(turn=at.index, text=move.text, calls=move.calls)
            if move.calls:
                answer = await session.call(move.calls)
                step = evolve(step, observations=answer.observations)
                at = answer.end or at
            else:
                at = await session.say(move.text)
                messages += [at.message] if isinstance(at, Turn) else []
            steps.append(step)
        evidence = await session.evidence()
        end = at if isinstance(at, End) else evidence.end
        return Trajectory(messages=tuple(messages), steps=tuple(steps), end=end, seed=seed), evidence
    finally:
        await session.close()


def results(trajectory: Trajectory, evidence: Evidence) -> Sequence[Observation]:
    """What all tools answered, the user's included; in no order that means anything."""
    return [seen for step in (*trajectory.steps, *evidence.user) for seen in step.observations]
