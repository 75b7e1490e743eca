"""A session in which the agent may call its skill's scripts beside the environment's tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve

from wer.contracts import Pool, Session
from wer.records import Answer, End, Evidence, Observation, Skill, Task, ToolCall, Turn
from wer.scripts.reading import Script, scripts_of
from wer.scripts.running import run_script

STEPS = 30
"""Steps of one episode that call scripts alone; the environment, which limits the others, hears nothing of them."""
_END = End(by="agent", why="script_limit")


def equipped(task: Task, skill: Skill, session: Session, pool: Pool) -> tuple[Task, Skill, Session]:
    """What an executor is given: the scripts as tools of the task, and the skill without them.

    A script whose tool has the name of one of the task's is left out.

    Raises:
        SkillError: A script can't be offered to an agent.
    """
    taken = {tool.name for tool in task.tools}
    scripts = {each.tool.name: each for each in scripts_of(skill) if each.tool.name not in taken}
    tools = (*task.tools, *(script.tool for script in scripts.values()))
    return evolve(task, tools=tools), evolve(skill, scripts={}), HelpedSession(session, scripts, pool)


class HelpedSession:
    """A `wer.contracts.Session` around another, whose episode and evidence know nothing of scripts.

    Args:
        scripts: By the name of their tool.
        pool: Of the scripts' own sandbox.
    """

    def __init__(self, session: Session, scripts: Mapping[str, Script], pool: Pool) -> None:
        self._session = session
        self._scripts = scripts
        self._pool = pool
        self._steps = 0
        self._end: End | None = None

    async def begin(self) -> Turn | End:
        """See `wer.contracts.Session`."""
        return await self._session.begin()

    async def call(self, calls: Sequence[ToolCall]) -> Answer:
        """Run one step: the environment gets its own calls as one step, a script each of the others.

        A script sees nothing of the world and changes nothing in it, so that the order between
        the two kinds doesn't matter.
        """
        own = [call for call in calls if call.name not in self._scripts]
        answer = await self._session.call(own) if own else self._alone()
        seen = iter(answer.observations)
        observations = [
            await self._run(call) if call.name in self._scripts else next(seen, None) for call in calls
        ]
        return evolve(answer, observations=tuple(each for each in observations if each is not None))

    async def say(self, text: str) -> Turn | End:
        """See `wer.contracts.Session`."""
        return await self._session.say(text)

    async def evidence(self) -> Evidence:
        """The environment's; with our end, when it was ours."""
        evidence = await self._session.evidence()
        return evidence if self._end is None else evolve(evidence, end=self._end)

    async def close(self) -> None:
        """See `wer.contracts.Session`."""
        await self._session.close()

    def _alone(self) -> Answer:
        self._steps += 1
        self._end = _END if self._steps == STEPS else None
        return Answer(observations=(), end=self._end)

    async def _run(self, call: ToolCall) -> Observation:
        return await run_script(self._pool, self._scripts[call.name], call)
