"""A session with scripts: the environment and its evidence hear nothing of them."""

from wer.records import Answer, End, Evidence, Observation, Skill, Task, ToolCall, ToolSpec, Turn
from wer.scripts import HelpedSession, equipped

DOUBLE = 'def double(n: int) -> int:\n    "Double."\n    return 2 * n'
SKILL = Skill(name="s", description="d", body="1. x", scripts={"scripts/double.py": DOUBLE})
UP = ToolSpec(name="up", description="Up.", parameters={"type": "object", "properties": {}})
TASK = Task(id="t", env="e", domain="d", split="train", turns=("Go.",), tools=(UP,))


class Inner:
    """A session that notes the steps that it hears of."""

    def __init__(self):
        self.steps = []

    async def begin(self):
        return Turn(message="Go.", index=0)

    async def call(self, calls):
        self.steps.append(tuple(call.name for call in calls))
        return Answer(observations=tuple(Observation(text=call.name) for call in calls))

    async def evidence(self):
        return Evidence(turns=(), end=End(by="agent", why="stopped"))


class Doubling:
    """An episode of the scripts' sandbox that is no sandbox."""

    async def request(self, method, params, *, timeout_s=None):
        return {"text": str(2 * params["arguments"]["n"]), "ok": True}

    async def close(self): ...


class Pool:
    tier = "none"

    async def lease(self):
        return Doubling()

    async def close(self): ...


def call(name, **arguments):
    return ToolCall(name=name, arguments=arguments)


def met():
    inner = Inner()
    task, skill, session = equipped(TASK, SKILL, inner, Pool())
    return inner, task, skill, session


def test_an_executor_is_given_the_scripts_as_tools_and_the_skill_without_them():
    _, task, skill, session = met()

    assert [tool.name for tool in task.tools] == ["up", "script_double"]
    assert skill.body == SKILL.body
    assert not skill.scripts
    assert isinstance(session, HelpedSession)


async def test_the_environment_gets_its_own_calls_as_one_step():
    inner, _, _, session = met()
    await session.begin()

    answer = await session.call([call("up"), call("script_double", n=4), call("up")])

    assert [seen.text for seen in answer.observations] == ["up", "8", "up"]
    assert inner.steps == [("up", "up")]


async def test_a_step_of_scripts_alone_is_no_step_of_the_environment():
    inner, _, _, session = met()
    await session.begin()

    answer = await session.call([call("script_double", n=1)])

    assert answer.observations == (Observation(text="2"),)
    assert inner.steps == []


async def test_an_agent_that_calls_scripts_for_ever_is_ended():
    _, _, _, session = met()
    await session.begin()

    ends = [(await session.call([call("script_double", n=1)])).end for _ in range(30)]

    assert ends == [None] * 29 + [End(by="agent", why="script_limit")]
    assert (await session.evidence()).end.why == "script_limit"


def test_the_tools_of_the_task_come_first():
    task = Task(
        id="t",
        env="e",
        domain="d",
        split="train",
        turns=("Go.",),
        tools=(ToolSpec(name="script_double", description="", parameters={}),),
    )

    equal, _, _ = equipped(task, SKILL, Inner(), Pool())

    assert equal.tools == task.tools
