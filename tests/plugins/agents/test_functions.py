"""Functions as the frozen agent: those that call WER's tools, and those that have their own."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
import time
from contextlib import suppress
from io import StringIO
from pathlib import Path

import pytest
from attrs import evolve

import wer
from wer.conformance.scripts import TASK, ScriptedSession
from wer.contracts import AgentSetup
from wer.domain.settled import SettledSession
from wer.errors import AgentError, InfrastructureError, SandboxError
from wer.records import (
    NO_SKILL,
    UNTOLD,
    Answer,
    End,
    Observation,
    Outcome,
    Skill,
    Task,
    ToolCall,
    TurnEvidence,
    Usage,
)
from wer.references import reference_to
from wer_agents import watching
from wer_agents.functions import function_agent

SKILL = Skill(name="greet", description="Greet.", body="## Workflow\n1. Greet whom the user names.\n")
LONE = Task(
    id="desk/a", env="desk", domain="desk", split="train", turns=("Do it.",), setup={"state": {"open": [1]}}
)


def made(function, *, tools=True, charged=None, **options):
    charge = (charged if charged is not None else []).append
    setup = AgentSetup(name=reference_to(function), tools=tools, options=options, charge=charge)
    return function_agent(setup)


async def act(function, *, session=None, task=TASK, skill=NO_SKILL, seed=1, **more):
    session = session or ScriptedSession()
    return await made(function, **more).execute(task, skill, session, seed)


async def settle(function, *, task=LONE, skill=NO_SKILL, seed=1, **more):
    session = SettledSession(task)
    trajectory = await made(function, tools=False, **more).execute(task, skill, session, seed)
    return trajectory, await session.evidence()


async def test_an_agent_is_called_once_a_turn_and_its_calls_are_written_down():
    async def greeter(turn, skill, tools, context):
        return await tools["greet"](name=turn.split()[-1])

    session = ScriptedSession()

    trajectory = await act(greeter, session=session)

    assert [call.arguments for call in session.calls] == [{"name": "please."}, {"name": "Grace."}]
    assert session.said == ["Hello, please.!", "Hello, Grace.!"]
    assert [(step.turn, len(step.calls), step.text) for step in trajectory.steps] == [
        (0, 1, ""),
        (0, 0, "Hello, please.!"),
        (1, 1, ""),
        (1, 0, "Hello, Grace.!"),
    ]
    assert trajectory.messages == TASK.turns and trajectory.end == End(by="user")


async def test_a_plain_function_runs_beside_the_loop_and_calls_plain_tools():
    def greeter(turn, skill, tools, context):
        assert threading.current_thread() is not threading.main_thread()
        return tools["greet"]("Ada")

    trajectory = await act(greeter)

    assert [step.text for step in trajectory.steps if not step.calls] == ["Hello, Ada!"] * 2


async def test_an_object_that_can_be_called_is_an_agent_too():
    class Greeter:
        async def __call__(self, turn, skill, tools, context):
            return await tools["greet"]("Ada")

    trajectory = await act(Greeter())

    assert len(trajectory.steps) == 4


async def test_no_skill_is_the_empty_text_and_a_skill_is_its_body():
    seen = []

    async def listener(turn, skill, tools, context, seed):
        seen.append((skill, context, seed))
        return ""

    await act(listener, seed=7)
    await act(listener, skill=SKILL, seed=8)

    assert seen == [("", "Be polite.", 7)] * 2 + [(SKILL.body, "Be polite.", 8)] * 2


async def test_what_an_agent_remembers_lasts_an_episode_and_no_longer():
    async def counter(turn, skill, tools, context, memory):
        memory["turns"] = memory.get("turns", 0) + 1
        return str(memory["turns"])

    sessions = [ScriptedSession(), ScriptedSession()]

    for session in sessions:
        await act(counter, session=session)

    assert [session.said for session in sessions] == [["1", "2"]] * 2


async def test_what_goes_wrong_in_a_tool_is_an_answer_for_the_agent_to_read():
    answers = []

    async def clumsy(turn, skill, tools, context):
        answers.append(await tools["greet"](whom="Ada"))
        answers.append(await tools.call("nobody", {}))
        answers.append(await tools.call("greet", "{not json"))
        return ""

    trajectory = await act(clumsy, task=evolve(TASK, turns=TASK.turns[:1]))

    assert answers[:2] == ["no such call: greet", "no such call: nobody"]
    assert answers[2].startswith("Error: the arguments are not JSON")
    assert [step.observations[0].ok for step in trajectory.steps if step.calls][:2] == [False, False]


async def test_tools_are_typed_by_their_schemas():
    seen = {}

    async def curious(turn, skill, tools, context):
        seen["tool"], seen["openai"] = tools["greet"], tools.openai()
        return ""

    await act(curious)

    tool = seen["tool"]
    assert (tool.__name__, tool.__doc__) == ("greet", "Greet somebody.")
    assert str(inspect.signature(tool)) == "(name: str) -> str" and inspect.iscoroutinefunction(tool)
    assert seen["openai"][0]["function"]["parameters"] == TASK.tools[0].parameters == tool.parameters


class Strict(ScriptedSession):
    """Ends the episode with the first call."""

    async def call(self, calls):
        await super().call(calls)
        return Answer(observations=(Observation(text="enough"),), end=End(by="environment", why="step_limit"))


@pytest.mark.parametrize("plain", [True, False])
async def test_an_agent_is_given_up_when_the_environment_ends_the_episode(plain):
    async def stubborn(turn, skill, tools, context):
        while True:
            try:
                await tools["greet"]("Ada")
            except Exception:  # what frameworks do
                continue

    def stubborn_too(turn, skill, tools, context):
        while True:
            try:
                tools["greet"]("Ada")
            except Exception:
                continue

    trajectory = await act(stubborn_too if plain else stubborn, session=Strict())

    assert trajectory.end == End(by="environment", why="step_limit")
    assert len(trajectory.steps) == 1


class Broken(ScriptedSession):
    async def call(self, calls):
        raise SandboxError("the episode died", cause="dead")


async def test_a_sandbox_that_breaks_is_raised_even_where_the_agent_hides_it():
    async def hider(turn, skill, tools, context):
        try:
            return await tools["greet"]("Ada")
        except BaseException:
            return "all is well"

    with pytest.raises(SandboxError, match="the episode died"):
        await act(hider, session=Broken())


async def test_an_agent_that_raises_is_a_failure_of_the_infrastructure_with_its_last_words():
    async def broken(turn, skill, tools, context):
        return {}["nothing"]

    with pytest.raises(
        InfrastructureError,
        match=r"your agent .*broken on conformance/greet raised KeyError: 'nothing' \(.*test_functions.py, line \d+, "
        r"in broken\)\. Nothing is scored",
    ):
        await act(broken)


async def test_an_agent_that_exits_is_a_failure_too():
    def leaver(task, skill, seed):
        raise SystemExit(3)

    with pytest.raises(InfrastructureError, match="raised SystemExit: 3"):
        await settle(leaver)


class _Unusual(BaseException):
    pass


@pytest.mark.parametrize("coroutine", [False, True])
@pytest.mark.parametrize("raised", [asyncio.CancelledError, GeneratorExit, StopIteration, _Unusual])
async def test_whatever_an_agent_raises_is_its_own_failure(raised, coroutine):
    def plain(task, skill, seed):
        raise raised

    async def agent(task, skill, seed):
        raise raised

    with pytest.raises(InfrastructureError, match=r"agent|plain.* on desk/a raised"):
        await settle(agent if coroutine else plain)


async def test_an_interrupt_that_an_agent_raises_in_its_thread_ends_no_program():
    def agent(task, skill, seed):
        raise KeyboardInterrupt

    with pytest.raises(InfrastructureError, match="raised KeyboardInterrupt"):
        await settle(agent)


async def test_an_agent_that_cancels_its_own_task_is_a_failure_of_its_own():
    async def agent(task, skill, seed):
        asyncio.current_task().cancel()
        await asyncio.sleep(0)

    with pytest.raises(InfrastructureError, match="raised CancelledError"):
        await settle(agent)


def test_an_agent_that_catches_every_cancellation_is_given_up_and_its_loop_can_be_closed(monkeypatch):
    monkeypatch.setattr("wer_agents.calling._GRACE_S", 0.01)

    async def agent(task, skill, seed):
        while True:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(60)

    async def limited():
        async with asyncio.timeout(0.01):
            await settle(agent)

    with pytest.raises(TimeoutError):
        asyncio.run(limited())


@pytest.mark.parametrize("coroutine", [False, True])
async def test_an_agent_that_changes_the_working_directory_leaves_the_runs_folder_where_it_is(
    tmp_path, coroutine
):
    def plain(task, skill, seed):
        os.chdir(tmp_path)
        return Outcome("done")

    async def agent(task, skill, seed):
        return plain(task, skill, seed)

    before = Path.cwd()
    await settle(agent if coroutine else plain)

    assert Path.cwd() == before


async def test_an_outcome_that_no_store_should_hold_is_refused():
    def agent(task, skill, seed):
        return Outcome("x" * (17 << 20))

    with pytest.raises(AgentError, match="larger than 16 MiB"):
        await settle(agent)


@pytest.mark.parametrize("plain", [True, False])
async def test_an_agent_that_hangs_can_be_given_up(plain):
    released = threading.Event()

    def hangs_too(turn, skill, tools, context):
        released.wait(60)
        return tools["greet"]("Ada")

    async def hangs(turn, skill, tools, context):
        await asyncio.Event().wait()

    session = ScriptedSession()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await act(hangs_too if plain else hangs, session=session)

    released.set()
    await asyncio.sleep(0.05)
    assert session.calls == []  # a thread that wakes up late finds the episode over


@pytest.mark.parametrize("answer", [None, 3, ["x"]])
async def test_an_answer_of_the_wrong_type_is_named_with_what_was_expected(answer):
    async def odd(turn, skill, tools, context):
        return answer

    with pytest.raises(
        AgentError, match=rf"returned .* of type {type(answer).__name__} on .*expected its answer"
    ):
        await act(odd)


async def test_a_state_is_not_the_agents_to_tell_where_the_environment_has_one():
    async def teller(turn, skill, tools, context):
        return Outcome("done", {"n": 1})

    with pytest.raises(AgentError, match="told a state"):
        await act(teller)


async def test_an_agent_with_its_own_tools_must_tell_an_outcome():
    def odd(task, skill, seed):
        return "done"

    with pytest.raises(AgentError, match=r"returned 'done' of type str on desk/a; expected a wer\.Outcome"):
        await settle(odd)


async def test_an_agent_that_answers_another_task_is_caught():
    def stale(task, skill, seed):
        return Outcome("done", {}, task="b")

    with pytest.raises(AgentError, match="was given the task 'desk/a' and answered 'b'"):
        await settle(stale)


async def test_an_agent_gets_a_copy_of_its_task_and_never_what_is_expected():
    def meddler(task, skill, seed):
        task.state["open"].append(2)
        return Outcome(f"{task.id} {task.query} {seed}", {"known": sorted(task.table())}, task=task.id)

    trajectory, evidence = await settle(meddler, seed=5)

    assert LONE.setup == {"state": {"open": [1]}}
    assert trajectory.steps[-1].text == evidence.turns[-1].said == "a Do it. 5"
    assert evidence.turns[-1].state == {"known": ["context", "domain", "id", "query", "state", "turns"]}


async def test_the_conversation_that_an_agent_tells_becomes_the_trajectory():
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}

    async def teller(task, skill, seed):
        return Outcome(
            [
                {"role": "system", "content": skill},
                {"role": "user", "content": "Do it."},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c", "content": "seen"},
                {"role": "assistant", "content": "Done."},
            ]
        )

    trajectory, evidence = await settle(teller)

    assert trajectory.steps[0].calls == (ToolCall(name="look", arguments={"at": 1}, id="c"),)
    assert trajectory.steps[0].observations == (Observation(text="seen"),)
    assert evidence.turns == (TurnEvidence(state=None, said="Done."),)


async def test_a_call_that_cannot_be_read_is_kept_as_text():
    def teller(task, skill, seed):
        call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"at": '}}
        return Outcome([{"role": "assistant", "content": "So.", "tool_calls": [call]}])

    trajectory, _ = await settle(teller)

    assert [step.text for step in trajectory.steps] == ['So.\nlook {"at": ']


async def test_a_call_whose_agent_no_longer_waits_is_ended_before_the_turn_is():
    begun = asyncio.Event()

    class Slow(ScriptedSession):
        async def call(self, calls):
            begun.set()
            await asyncio.sleep(0.01)
            return await super().call(calls)

    async def hasty(turn, skill, tools, context):
        begun.clear()
        waiting = asyncio.ensure_future(tools["greet"]("Ada"))
        await begun.wait()
        waiting.cancel()
        return "Bye."

    trajectory = await act(hasty, session=Slow())

    assert [len(step.calls) for step in trajectory.steps] == [1, 0, 1, 0]


async def test_an_agent_and_its_tools_may_say_nothing():
    call = {"id": "c", "type": "function", "function": {"name": "close", "arguments": "{}"}}

    def quiet(task, skill, seed):
        asked = {"role": "assistant", "content": "", "tool_calls": [call]}
        answered = {"role": "tool", "tool_call_id": "c", "content": ""}
        return Outcome([asked, answered, {"role": "assistant", "content": ""}])

    trajectory, evidence = await settle(quiet)

    assert [(step.text, len(step.calls)) for step in trajectory.steps] == [("", 1), ("", 0)]
    assert trajectory.steps[0].observations == (Observation(text=""),)
    assert evidence.turns[-1].said == ""


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (Outcome("x", {1, 2}), r"the state that .* left behind on desk/a is no JSON"),
        (Outcome("x", float("nan")), "is no JSON"),
        (
            Outcome([{"role": "robot", "content": "x"}]),
            r"message 1 of your agent's outcome is .*format of chat",
        ),
        (Outcome([None]), "message 1 of your agent's outcome is None"),
        (Outcome(3), "the messages of your agent's outcome are 3"),
        (Outcome("x", usage=7), r"the usage of your agent's outcome is 7; expected prompt_tokens"),
        (Outcome("x", usage={"prompt_tokens": 1}), "expected prompt_tokens and completion_tokens"),
        (Outcome("x", skill_loaded="yes"), "skill_loaded of .* is 'yes'; expected True, False"),
    ],
)
async def test_an_outcome_that_is_none_says_what_is_wrong_with_it(outcome, message):
    def odd(task, skill, seed):
        return outcome

    with pytest.raises(AgentError, match=message):
        await settle(odd)


async def test_usage_is_what_the_agent_says_and_else_unknown():
    told, untold = [], []
    spent = Usage(calls=2, prompt_tokens=30, completion_tokens=4, usd=None)

    def frank(task, skill, seed):
        return Outcome("x", usage={"calls": 2, "prompt_tokens": 30, "completion_tokens": 4})

    def silent(task, skill, seed):
        return Outcome("x")

    frankly, _ = await settle(frank, charged=told)
    silently, _ = await settle(silent, charged=untold)

    assert told == [frankly.usage] == [spent]
    assert untold == [silently.usage] == [UNTOLD]


@pytest.mark.parametrize(
    "usage", [Usage(prompt_tokens=-1000, completion_tokens=1), Usage(usd=float("nan")), {"prompt_tokens": -1}]
)
async def test_a_usage_that_can_not_be_is_refused_whoever_made_the_record(usage):
    with pytest.raises(AgentError, match="expected prompt_tokens and completion_tokens"):
        await settle(lambda task, skill, seed: Outcome("x", usage=usage))


async def test_a_turn_that_says_nothing_of_its_usage_leaves_the_rollout_unknown_once():
    charged: list[Usage] = []

    async def half(turn, skill, tools, context, memory):
        memory["n"] = memory.get("n", 0) + 1
        usage = Usage(calls=1, prompt_tokens=3, completion_tokens=1) if memory["n"] == 1 else None
        return Outcome("x", usage=usage, skill_loaded=memory["n"] == 1)

    trajectory = await act(half, charged=charged)

    assert (trajectory.usage.prompt_tokens, trajectory.usage.untold, trajectory.usage.usd) == (3, 1, None)
    assert sum(charged, Usage()) == trajectory.usage
    assert trajectory.skill_loaded is True


@pytest.mark.parametrize("owns", [True, False])
async def test_what_an_agent_used_before_it_raised_is_unknown_and_not_nothing(owns):
    charged: list[Usage] = []

    def caller(turn, skill, tools, context):
        if "Grace" in turn:
            raise ConnectionError
        return Outcome("x", usage={"prompt_tokens": 3, "completion_tokens": 1})

    def owner(task, skill, seed):
        raise ConnectionError

    with pytest.raises(InfrastructureError, match="raised ConnectionError"):
        await (settle(owner, charged=charged) if owns else act(caller, charged=charged))

    spent = sum(charged, Usage())
    assert (spent.untold, spent.prompt_tokens) == (1, 0 if owns else 3)


async def test_a_coroutine_that_holds_the_loop_is_named_with_its_line_and_the_remedy(monkeypatch):
    said = StringIO()
    monkeypatch.setattr("sys.stderr", said)
    monkeypatch.setattr(watching, "PATIENCE_S", 0.02)

    async def blocker(task, skill, seed):
        began = time.monotonic()
        while not said.getvalue().endswith("\n") and time.monotonic() - began < 10:
            time.sleep(0.01)  # noqa: ASYNC251  (what is wrong with it)
        return Outcome("x")

    await settle(blocker)

    assert "blocker on desk/a has held the event loop for 0.02 s" in said.getvalue()
    assert "in blocker): nothing else goes on" in said.getvalue()
    assert "make it a plain function, which runs in a thread. Ctrl-C, pressed twice" in said.getvalue()


async def test_an_agent_that_awaits_is_not_named(monkeypatch, capsys):
    monkeypatch.setattr(watching, "PATIENCE_S", 0.5)

    async def patient(task, skill, seed):
        for _ in range(100):
            await asyncio.sleep(0.01)
        return Outcome("x")

    await settle(patient)

    assert capsys.readouterr().err == ""


async def test_reset_is_called_before_each_rollout():
    log = []

    def reset(task):
        log.append(f"reset for {task.id}")

    async def worker(task, skill, seed):
        log.append("work")
        return Outcome("x")

    for _ in range(2):
        await settle(worker, reset=reference_to(reset))

    assert log == ["reset for a", "work"] * 2


async def test_a_reset_that_raises_is_a_failure_of_the_infrastructure():
    async def reset():
        raise OSError("database is locked")

    with pytest.raises(InfrastructureError, match=r"reset .*raised OSError: database is locked"):
        await settle(lambda task, skill, seed: Outcome("x"), reset=reference_to(reset))


@pytest.mark.parametrize(
    ("function", "tools", "message"),
    [
        (lambda turn, skill: "", True, r"takes turn, skill: no 'tools'\. Write agent\(turn, skill, tools\)"),
        (lambda turn, skil, tools: "", True, r"'skil', which WER doesn't have; did you mean 'skill'\?"),
        (lambda task, seed: "", False, r"takes task, seed: no 'skill'\."),
        (lambda: "", True, r"takes nothing: no 'turn'"),
        (lambda task, skill: "", True, r"has tools of its own, and this environment has tools"),
        (lambda turn, skill, tools: "", False, r"takes tools, and this environment has none"),
        (wer.Domain, False, r"is the class Domain; expected a function"),
        ("text", True, r"is a str; expected a function"),
    ],
)
def test_an_agent_that_cannot_work_is_refused_before_anything_runs(function, tools, message):
    with pytest.raises(AgentError, match=message):
        function_agent(AgentSetup(name=reference_to(function, "thing"), tools=tools))


async def test_a_policy_that_an_agent_does_not_take_is_not_dropped_in_silence():
    async def deaf(turn, skill, tools):
        return ""

    with pytest.raises(AgentError, match=r"has a policy that the agent must follow.*Add a parameter context"):
        await act(deaf)


async def test_scripts_of_a_skill_are_not_dropped_in_silence():
    with pytest.raises(AgentError, match=r"can't call those of a skill's scripts \(a\.py\)"):
        await settle(lambda task, skill, seed: Outcome("x"), skill=evolve(SKILL, scripts={"a.py": "x"}))


def test_another_version_is_another_agent():
    def agent(task, skill, seed):
        return Outcome("x")

    first, again, other = (made(agent, tools=False, version=name).identity for name in ("1", "1", "2"))

    assert first == again != other and first["code"]
