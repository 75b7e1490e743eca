"""Programs as the frozen agent, run for real: what they are told, what is written down, and what is left of them."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from attrs import evolve
from support.census import processes_of
from support.mock_openai import MockOpenAI, calls, fails, says

from wer.conformance.scripts import TASK, ScriptedSession
from wer.contracts import AgentSetup
from wer.domain.settled import SettledSession
from wer.errors import AgentError, BudgetExhausted, ConfigError, InfrastructureError, ModelError, SandboxError
from wer.records import NO_SKILL, UNTOLD, Answer, End, Observation, Skill, Task, ToolCall, Usage
from wer_agents import wer_agents

GREETER = Path(__file__).parents[2] / "support" / "agents" / "greeter.py"
SKILL = Skill(name="greet", description="Greet.", body='## Workflow\n1. Greet whom the "user" names.\n')
LONE = Task(
    id="desk/a", env="desk", domain="desk", split="train", turns=("Do it.",), setup={"state": {"open": [1]}}
)


@pytest.fixture(autouse=True)
def private_folder(tmp_path, monkeypatch):
    """Every rollout leaves an empty folder of temporary files, and no process that was started in it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    assert list(tmp_path.glob("wer-*")) == []
    assert processes_of(tmp_path) == []


def made(command, *, tools=True, charged=None, check=lambda: None, **options):
    charge = (charged if charged is not None else []).append
    setup = AgentSetup(name=command, tools=tools, options=options, charge=charge, check=check)
    return wer_agents()["command"](setup)


async def act(command, *, session=None, task=TASK, skill=SKILL, seed=5, **more):
    session = session or ScriptedSession()
    return await made(command, **more).execute(task, skill, session, seed)


async def greet(*ways, **more):
    return await act(f"{sys.executable} {GREETER} {' '.join(ways)}", **more)


async def settle(command, *, skill=NO_SKILL, **more):
    session = SettledSession(LONE)
    trajectory = await made(command, tools=False, **more).execute(LONE, skill, session, 5)
    return trajectory, await session.evidence()


def shell(script):
    return f"sh -c '{script}'"


async def test_a_program_calls_the_episodes_tools_and_prints_its_answer_once_a_turn():
    session, charged = ScriptedSession(), []

    trajectory = await greet(session=session, charged=charged)

    assert [call.arguments["name"] for call in session.calls] == ["please", "Grace"]
    assert session.said == ["Hello, please!", "Hello, Grace!"]
    assert [(step.turn, step.text, len(step.calls)) for step in trajectory.steps] == [
        (0, "", 1),
        (0, "Hello, please!", 0),
        (1, "", 1),
        (1, "Hello, Grace!", 0),
    ]
    assert trajectory.messages == TASK.turns
    assert trajectory.end == End(by="user")
    assert trajectory.seed == 5
    assert trajectory.usage == UNTOLD and charged == [UNTOLD]
    assert trajectory.skill_loaded is None


async def test_a_program_finds_the_conversation_and_its_own_folder_again_in_the_next_turn():
    session = ScriptedSession()

    await greet("remember", session=session)

    first, second = map(json.loads, session.said)
    assert first == [[], ["skills"], 5, {"id": TASK.id, "domain": TASK.domain, "context": TASK.context}]
    assert second[0] == [
        {"role": "user", "content": TASK.turns[0]},
        {"role": "assistant", "content": session.said[0]},
    ]
    assert second[1] == ["note-0", "skills"]


async def test_placeholders_are_filled_in_without_a_shell():
    session = ScriptedSession()

    await act(
        'printf "%s|" {task} {seed} {skills} {{task}} "; echo no"', session=session, skills=".claude/skills"
    )

    message, seed, skills, braces, semicolon, _ = session.said[0].split("|")
    assert (message, seed, braces, semicolon) == (TASK.turns[0], "5", "{task}", "; echo no")
    assert skills.endswith("/work/.claude/skills")


async def test_a_skill_lies_as_a_folder_and_no_skill_is_an_empty_one():
    script = shell("ls {skills}; cat {skills}/greet/SKILL.md 2>/dev/null; true")
    with_skill, without = ScriptedSession(), ScriptedSession()

    await act(script, session=with_skill)
    await act(script, session=without, skill=NO_SKILL)

    assert with_skill.said[0] == f"greet\n---\nname: greet\ndescription: Greet.\n---\n\n{SKILL.body.strip()}"
    assert without.said[0] == ""


async def test_tools_can_be_handed_on_as_a_file_that_other_agents_read():
    session = ScriptedSession()

    await act("cat {mcp_config}", session=session)

    server = json.loads(session.said[0])["mcpServers"]["wer"]
    assert server["type"] == "http" and server["url"].startswith("http://127.0.0.1:")
    assert server["headers"]["Authorization"].startswith("Bearer ")


async def test_a_skill_that_is_read_through_us_counts_as_loaded():
    assert (await greet("resource")).skill_loaded is True
    assert (await greet("resource", skill=NO_SKILL)).skill_loaded is None


async def test_a_program_may_say_what_it_cost_and_whether_it_read_the_skill():
    charged = []

    trajectory = await greet("tell", charged=charged)

    each = Usage(calls=1, prompt_tokens=7, completion_tokens=3, usd=None)
    assert trajectory.usage == each + each
    assert charged == [each, each]
    assert trajectory.skill_loaded is True


async def test_model_calls_pass_the_proxy_and_are_charged_as_they_come(monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-of-the-user")
    charged = []
    async with MockOpenAI(default=says("I greet.")) as mock:
        trajectory = await greet("model", upstream=mock.url, upstream_key="MY_KEY", charged=charged)

    each = Usage(calls=1, prompt_tokens=10, completion_tokens=5, usd=None)
    assert charged == [each, each]
    assert trajectory.usage == each + each
    assert [step.text for step in trajectory.steps if step.turn == 0] == ["", "I greet.", "Hello, please!"]
    assert trajectory.skill_loaded is False
    assert mock.headers[0]["Authorization"] == "Bearer sk-of-the-user"


async def test_a_skill_that_the_model_was_shown_counts_as_loaded():
    async with MockOpenAI(default=says("I greet.")) as mock:
        assert (await greet("model", "skilled", upstream=mock.url)).skill_loaded is True


async def test_an_agent_that_goes_on_after_its_model_failed_is_not_judged():
    async with MockOpenAI(default=fails(503, message="overloaded")) as mock:
        with pytest.raises(InfrastructureError, match=r"(?s)model server at .* answered 503: .*overloaded"):
            await greet("model", upstream=mock.url)
    async with MockOpenAI(default=fails(401, message="no such key")) as mock:
        with pytest.raises(ModelError, match=r"(?s)401.*Check the API key"):
            await greet("model", upstream=mock.url)


async def test_a_request_that_the_model_server_refuses_is_the_agents_own_doing():
    async with MockOpenAI(default=fails(400, message="too long", code="context_length_exceeded")) as mock:
        assert (await greet("model", upstream=mock.url)).end == End(by="user")


async def test_a_spent_budget_stops_the_agents_model_calls():
    spent = iter([None, None])

    def check():
        if next(spent, "spent"):
            raise BudgetExhausted("the cap --max-tokens is reached")

    async with MockOpenAI(default=says("I greet.")) as mock:
        with pytest.raises(BudgetExhausted, match="--max-tokens"):
            await greet("model", upstream=mock.url, check=check)
    assert len(mock.requests) == 1


async def test_an_agent_with_its_own_tools_leaves_its_outcome_in_a_file(tmp_path):
    told = {"messages": [{"role": "assistant", "content": "Done."}], "state": {"open": []}}
    (tmp_path / "told.json").write_text(json.dumps(told))
    script = shell(f"cp {tmp_path / 'told.json'} {{outcome}}; echo noise")

    trajectory, evidence = await settle(script)

    assert evidence.turns[-1].state == {"open": []}
    assert evidence.turns[-1].said == "Done."
    assert [step.text for step in trajectory.steps] == ["Done."]


async def test_an_agent_with_its_own_tools_may_only_answer():
    trajectory, evidence = await settle("echo {task}")

    assert evidence.turns[-1].said == "Do it."
    assert [step.text for step in trajectory.steps] == ["Do it."]


OWN_LOOP = """
import json, os, urllib.request
turn = json.load(open(os.environ["WER_TURN"]))
messages = [{"role": "user", "content": turn["message"]}]
for result in ("two tickets", None):
    body = json.dumps({"model": "m", "messages": messages}).encode()
    headers = {"Authorization": "Bearer " + turn["model"]["token"], "Content-Type": "application/json"}
    request = urllib.request.Request(turn["model"]["url"] + "/chat/completions", body, headers)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
        reply = json.load(answer)["choices"][0]["message"]
    messages += [reply, {"role": "tool", "tool_call_id": "call_1", "content": result}]
assert turn["mcp"] is None and turn["task"]["state"] == {"open": [1]}
open(turn["outcome"], "w").write(json.dumps({"state": 2}))
print(reply["content"])
"""


async def test_the_proxy_writes_down_what_an_agent_does_with_its_own_tools(tmp_path):
    (tmp_path / "own.py").write_text(OWN_LOOP)
    async with MockOpenAI(calls("look", {"in": "desk"}, text="Let me see."), says("Two.")) as mock:
        trajectory, evidence = await settle(f"{sys.executable} {tmp_path / 'own.py'}", upstream=mock.url)

    looked, answered = trajectory.steps
    assert looked.calls == (ToolCall(name="look", arguments={"in": "desk"}, id="call_1"),)
    assert (looked.text, looked.observations) == ("Let me see.", (Observation(text="two tickets"),))
    assert answered.text == "Two."
    assert trajectory.usage.completion_tokens == 10
    assert evidence.turns[-1].state == 2


async def test_a_program_that_fails_is_an_infrastructure_failure_with_its_last_words(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")

    with pytest.raises(InfrastructureError, match="ended with status 3") as failed:
        await act(shell("echo $OPENAI_API_KEY {token} broke down >&2; exit 3"))

    assert str(failed.value).endswith("*** *** broke down")
    with pytest.raises(InfrastructureError, match="killed by signal 9"):
        await act(shell("kill -9 $$"))


async def test_a_flood_on_standard_output_is_stopped():
    with pytest.raises(InfrastructureError, match=r"more than 1 MiB on standard output"):
        await act("yes")


async def test_output_that_is_no_utf8_is_read_as_far_as_it_can_be():
    session = ScriptedSession()

    await act(r"printf '\377ok'", session=session)

    assert session.said[0] == "\ufffdok"


async def test_processes_that_a_program_leaves_behind_are_ended(private_folder):
    marked = private_folder / "left"
    marked.symlink_to("/bin/sleep")

    await act(shell(f"setsid {marked} 1000 >/dev/null 2>&1 & (nohup {marked} 1000 &) ; true"))

    assert processes_of(marked) == []


async def test_a_cancelled_rollout_leaves_nothing_behind(private_folder):
    marked = private_folder / "stays"
    marked.symlink_to("/bin/sleep")
    rollout = asyncio.create_task(act(shell(f"trap true TERM; setsid {marked} 1000 & {marked} 1000")))
    while len(processes_of(marked)) < 3:  # noqa: ASYNC110
        await asyncio.sleep(0.02)

    rollout.cancel()
    with pytest.raises(asyncio.CancelledError):
        await rollout

    assert processes_of(private_folder) == []


DRIVER = """
import asyncio, sys
from wer.conformance.scripts import TASK, ScriptedSession
from wer.contracts import AgentSetup
from wer.records import NO_SKILL
from wer_agents import wer_agents

agent = wer_agents()["command"](AgentSetup(name=sys.argv[1]))
asyncio.run(agent.execute(TASK, NO_SKILL, ScriptedSession(), 1))
"""


@pytest.mark.slow
async def test_a_killed_wer_leaves_no_process_of_its_agent(private_folder):
    marked = private_folder / "orphan"
    marked.symlink_to("/bin/sleep")
    driver = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", DRIVER, shell(f"setsid {marked} 1000 & {marked} 1001")),
        env={**os.environ, "TMPDIR": str(private_folder)},
    )
    while len(processes_of(marked)) < 5:  # noqa: ASYNC110
        await asyncio.sleep(0.02)

    driver.kill()
    await driver.wait()
    while processes_of(marked):  # noqa: ASYNC110
        await asyncio.sleep(0.02)

    for left in private_folder.glob("wer-agent-*"):
        shutil.rmtree(left)


class Short(ScriptedSession):
    async def call(self, calls):
        answer = await super().call(calls)
        return evolve(answer, end=End(by="environment", why="step_limit")) if len(self.calls) == 3 else answer


async def test_an_episode_that_the_environment_ends_stops_the_program():
    session = Short()

    trajectory = await greet("on-and-on", session=session)

    assert trajectory.end == End(by="environment", why="step_limit")
    assert [len(step.calls) for step in trajectory.steps] == [1, 1, 1]
    assert trajectory.messages == TASK.turns[:1]


class Broken(ScriptedSession):
    async def call(self, calls) -> Answer:
        raise SandboxError("the sandbox died", cause="dead")


async def test_a_sandbox_that_breaks_in_a_call_breaks_the_rollout():
    with pytest.raises(SandboxError, match="the sandbox died"):
        await greet(session=Broken())


@pytest.mark.parametrize(
    ("told", "complaint"),
    [
        ('{{"task": "desk/b"}}', "was given the task 'desk/a' and answered 'desk/b'"),
        ("[1]", "expected a JSON object with messages and state"),
        ('{{"stat": 1}}', "did you mean 'state'"),
        ("{{", "no JSON in UTF-8"),
        ('{{"messages": 7}}', "messages of your agent"),
        ('{{"usage": "much"}}', "the usage of your agent"),
    ],
)
async def test_an_outcome_that_is_none_is_named(told, complaint):
    with pytest.raises(AgentError, match=complaint):
        await settle(f"sh -c 'printf %s \"$0\" > {{outcome}}' '{told}'")


async def test_an_outcome_that_is_no_file_is_not_waited_for():
    with pytest.raises(AgentError, match="it is no file"):
        await settle("mkfifo {outcome}")


async def test_scripts_of_a_skill_are_not_laid_out_for_an_agent_to_run():
    with pytest.raises(AgentError, match="in a sandbox of ours"):
        await settle("echo hi", skill=evolve(SKILL, scripts={"scripts/add.py": "def add(): ..."}))


async def test_a_state_is_not_the_agents_to_tell_where_the_environment_has_one():
    with pytest.raises(AgentError, match="told a state"):
        await act("sh -c 'echo \"$0\" > {outcome}' '{{\"state\": 1}}'")


@pytest.mark.parametrize(
    ("command", "options", "complaint"),
    [
        ("", {}, "names no program"),
        ("no-such-program --now", {}, "there is no program 'no-such-program'"),
        ("echo 'half", {}, "can't be split into words"),
        ("echo {taks}", {}, r"\{taks\}; did you mean 'task'"),
        ("echo {model_url}", {}, r"nothing to put in the place of \{model_url\}"),
        ("echo", {"skills": "../up"}, "below the working folder"),
        ("echo", {"upstream": "localhost"}, "is no address"),
        ("echo", {"upstream": "http://me:pw@host/v1"}, "settings are stored"),
        ("echo", {"upstream": "http://h/v1", "upstream_key": "NOT_SET_ANYWHERE"}, "which is not set"),
        ("echo", {"timeout": 3}, "timeout"),
        ("echo", {"reset": "command: no-such-program"}, "executor_options.reset: there is no program"),
    ],
)
def test_a_command_that_cannot_work_is_refused_at_once(command, options, complaint):
    with pytest.raises(ConfigError, match=complaint):
        made(command, **options)


def test_another_content_of_the_script_is_another_agent(tmp_path):
    script = tmp_path / "agent.py"
    script.write_text("print(1)")
    before = made(f"python3 {script}").identity
    assert made(f"python3 {script}").identity == before

    script.write_text("print(2)")

    assert made(f"python3 {script}").identity != before


async def test_a_reset_is_run_before_each_rollout_and_its_failure_is_no_score(tmp_path):
    log = tmp_path / "log"
    script = tmp_path / "reset.sh"
    script.write_text(f'#!/bin/sh\ncat "$WER_TASK" >> {log}\n')
    script.chmod(0o755)

    await settle("echo hi", reset=f"command: {script} {{task}}")

    assert json.loads(log.read_text())["state"] == {"open": [1]}
    with pytest.raises(InfrastructureError, match=r"(?s)reset 'sh' ended with status 1.*no database"):
        await settle("echo hi", reset="command: sh -c 'echo no database >&2; exit 1'")


async def test_a_message_too_long_for_a_command_line_says_where_it_is():
    with pytest.raises(ConfigError, match="WER_TURN"):
        await act("echo {task}", session=Long())


class Long(ScriptedSession):
    async def begin(self):
        return evolve(await super().begin(), message="x" * (os.sysconf("SC_ARG_MAX") + 1))
