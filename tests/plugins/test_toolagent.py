"""The frozen agent against a scripted model and a world in memory."""

from __future__ import annotations

import json

import pytest
from attrs import define, evolve, field

from wer.errors import ConfigError, PromptTooLong
from wer.records import (
    NO_SKILL,
    Answer,
    End,
    Observation,
    Reply,
    Skill,
    Task,
    ToolCall,
    ToolSpec,
    Turn,
    Usage,
)
from wer_toolagent import wer_executors

LS = ToolSpec(name="ls", description="Shell. List files.", parameters={"type": "object", "properties": {}})
CD = ToolSpec(
    name="cd",
    description="Shell. Change folder.",
    parameters={
        "type": "object",
        "properties": {"folder": {"type": "string", "description": "One level."}},
        "required": ["folder"],
    },
)
TASK = Task(
    id="shell/1",
    env="shell",
    domain="files",
    split="train",
    turns=("list", "go"),
    tools=(LS, CD),
    context="Policy.",
)
SKILL = Skill(name="careful", description="files", body="## Workflow\n1. Look first.\n")


@define
class Scripted:
    """A model that answers from a list and remembers what it was asked."""

    replies: list[Reply | Exception]
    asked: list[tuple] = field(factory=list)

    @property
    def identity(self):
        return {"provider": "scripted"}

    async def complete(self, messages, tools, sampling):
        self.asked.append((messages, tools, sampling))
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def close(self):
        pass


@define
class World:
    """A session with scripted turns; every call answers with its own name."""

    turns: tuple[str, ...]
    steps_allowed: int = 99
    said: list[str] = field(factory=list)
    called: list[ToolCall] = field(factory=list)

    async def begin(self):
        return Turn(message=self.turns[0], index=0)

    async def call(self, calls):
        self.called += calls
        self.steps_allowed -= 1
        end = End(by="environment", why="step_limit") if self.steps_allowed == 0 else None
        return Answer(observations=tuple(Observation(text=f"did {call.name}") for call in calls), end=end)

    async def say(self, text):
        self.said.append(text)
        done = len(self.said) == len(self.turns)
        return End(by="user") if done else Turn(message=self.turns[len(self.said)], index=len(self.said))


def agent(model, **options):
    return wer_executors()["toolagent"](model, options)


def native(name, arguments=None, *, id="c1", text=""):
    call = ToolCall(name=name, arguments=arguments or {}, id=id)
    return Reply(text=text, calls=(call,), finish="tool_calls")


def written(*calls):
    return Reply(text=json.dumps([{"name": name, "arguments": arguments} for name, arguments in calls]))


async def run(model, *, task=TASK, skill=NO_SKILL, seed=7, steps_allowed=99, **options):
    world = World(task.turns, steps_allowed)
    return await agent(model, **options).execute(task, skill, world, seed), world


async def test_native_agent_works_until_it_only_talks():
    model = Scripted([native("ls"), Reply(text="done"), native("cd", {"folder": "a"}), Reply(text="there")])

    trajectory, world = await run(model)

    assert [call.name for call in world.called] == ["ls", "cd"]
    assert world.said == ["done", "there"]
    assert trajectory.end == End(by="user")
    assert [(step.turn, step.text) for step in trajectory.steps] == [
        (0, ""),
        (0, "done"),
        (1, ""),
        (1, "there"),
    ]
    assert trajectory.messages == ("list", "go")


async def test_native_history_keeps_calls_with_their_results():
    model = Scripted([native("ls", id="x9"), Reply(text="done"), Reply(text="ok")])

    await run(model)

    last = model.asked[-1][0]
    assert [message.role for message in last] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert last[2].calls[0].id == last[3].call_id == "x9"
    assert last[3].content == "did ls"


@pytest.mark.parametrize("mode", ["native", "step", "plan"])
async def test_a_skill_adds_its_own_text_to_the_request_and_nothing_else(mode):
    bare, skilled = (Scripted([Reply(text="no"), Reply(text="no")]) for _ in range(2))

    await run(bare, mode=mode)
    await run(skilled, mode=mode, skill=SKILL)

    for (messages, *rest), (with_skill, *rest_with_skill) in zip(bare.asked, skilled.asked, strict=True):
        assert with_skill[0].content == messages[0].content + "\n\n# Skill\n\n" + SKILL.body
        assert with_skill[1:] == messages[1:]
        assert rest_with_skill == rest


async def test_native_agent_without_context_and_skill_has_no_system_message():
    model = Scripted([Reply(text="no"), Reply(text="no")])

    await run(model, task=evolve(TASK, context=""))

    assert [message.role for message in model.asked[0][0]] == ["user"]


async def test_a_blank_skill_is_no_skill():
    bare, blank = (Scripted([Reply(text="no"), Reply(text="no")]) for _ in range(2))

    await run(bare)
    await run(blank, skill=Skill(name="blank", description="d", body=" \n"))

    assert blank.asked == bare.asked


async def test_an_undecodable_native_call_ends_the_turn_and_is_kept_verbatim():
    broken = Reply(text="I go", calls=native("ls").calls, malformed=('cd {"folder": ',))
    model = Scripted([broken, Reply(text="ok")])

    trajectory, world = await run(model)

    assert world.called == []
    assert trajectory.steps[0].text == 'I go\nls {}\ncd {"folder": '
    assert world.said[0] == "I go"


async def test_the_environments_step_limit_ends_the_episode():
    model = Scripted([native("ls"), native("ls")])

    trajectory, _ = await run(model, steps_allowed=2)

    assert trajectory.end == End(by="environment", why="step_limit")
    assert len(trajectory.steps) == 2


async def test_a_plan_runs_all_calls_and_ends_the_turn_silently():
    model = Scripted([written(("ls", {}), ("cd", {"folder": "a"})), written(("ls", {}))])

    trajectory, world = await run(model, mode="plan")

    assert [call.name for call in world.called] == ["ls", "cd", "ls"]
    assert world.said == ["", ""]
    assert [len(step.calls) for step in trajectory.steps] == [2, 1]


async def test_the_next_turn_of_a_plan_shows_what_the_last_one_gave():
    model = Scripted([written(("ls", {})), written(("ls", {}))])

    await run(model, mode="plan")

    assert model.asked[1][0][-1].content == "Results:\ndid ls\n\ngo"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "I would list the files.",
        '[{"name": "ls", "arguments": {}}, {"name": "cd", "argum',
        '[{"name": "ls", "arguments": {}}, {"name": "cd"}]',
        '{"name": "ls", "arguments": {}}',
        '[{"name": "ls", "arguments": "rm -rf"}]',
        '[{"name": 3, "arguments": {}}]',
        "[" * 100_000,
    ],
)
async def test_a_plan_that_is_none_makes_no_call_and_is_kept_verbatim(text):
    model = Scripted([Reply(text=text, finish="length"), written(("ls", {}))])

    trajectory, world = await run(model, mode="plan")

    assert trajectory.steps[0].text == text
    assert trajectory.steps[0].calls == ()
    assert [call.name for call in world.called] == ["ls"]


async def test_step_mode_makes_one_call_a_reply_until_done():
    model = Scripted(
        [
            Reply(text='{"name": "ls", "arguments": {}}'),
            Reply(text='{"name": "done", "arguments": {"message": "two files"}}'),
            Reply(text="nonsense"),
        ]
    )

    _, world = await run(model, mode="step")

    assert world.said == ["two files", "nonsense"]
    assert model.asked[1][0][-1].content == "Results:\ndid ls"


async def test_step_mode_refuses_an_environment_whose_tool_is_named_done():
    done = ToolSpec(name="done", description="", parameters={})

    with pytest.raises(ConfigError, match="'done'"):
        await run(Scripted([]), task=evolve(TASK, tools=(done,)), mode="step")


async def test_plans_are_constrained_to_the_tools_and_their_arguments():
    model = Scripted([written(("ls", {})), written(("ls", {}))])

    await run(model, mode="plan")

    _, tools, sampling = model.asked[0]
    cd = sampling.json_schema["items"]["anyOf"][1]
    assert tools == ()
    assert cd["properties"]["name"] == {"const": "cd"}
    assert cd["properties"]["arguments"] == {
        "type": "object",
        "properties": {"folder": {"type": "string"}},
        "required": ["folder"],
        "additionalProperties": False,
    }


async def test_the_largest_group_of_tools_is_documented_first_and_its_preface_once():
    tools = (ToolSpec(name="post", description="Web. Post.", parameters={}), LS, CD)
    model = Scripted([written(("ls", {})), written(("ls", {}))])

    await run(model, task=evolve(TASK, tools=tools), mode="plan")

    prompt = model.asked[0][0][0].content
    assert prompt.index("ls") < prompt.index("post")
    assert prompt.count("Shell.") == 1
    assert "One level." in prompt


async def test_every_reply_of_a_rollout_has_its_own_seed_and_equal_rollouts_equal_seeds():
    first, second = (Scripted([native("ls"), Reply(text="a"), Reply(text="b")]) for _ in range(2))

    await run(first, seed=3)
    await run(second, seed=3)

    seeds = [sampling.seed for *_, sampling in first.asked]
    assert len(set(seeds)) == 3
    assert seeds == [sampling.seed for *_, sampling in second.asked]


async def test_usage_of_all_replies_is_added_up():
    spent = Usage(calls=1, prompt_tokens=10, completion_tokens=2, usd=0.5)
    model = Scripted([Reply(text="a", usage=spent), Reply(text="b", usage=spent)])

    trajectory, _ = await run(model)

    assert trajectory.usage == spent + spent


async def test_a_first_prompt_that_does_not_fit_without_a_skill_is_an_error():
    with pytest.raises(PromptTooLong):
        await run(Scripted([PromptTooLong("too long")]))


@pytest.mark.parametrize("mode", ["native", "step", "plan"])
async def test_a_skill_that_leaves_no_room_for_the_first_prompt_fails_in_silence(mode):
    model = Scripted([PromptTooLong("too long")])

    trajectory, world = await run(model, mode=mode, skill=SKILL)

    assert trajectory.end == End(by="agent", why="out_of_context")
    assert world.said == ["", ""]
    assert not world.called and len(model.asked) == 1
    assert trajectory.messages == ("list", "go")
    assert [(step.turn, step.text, step.calls) for step in trajectory.steps] == [(0, "", ()), (1, "", ())]


async def test_an_agent_whose_own_history_outgrows_the_context_ends_its_turns():
    model = Scripted([native("ls"), PromptTooLong("too long"), PromptTooLong("too long")])

    trajectory, world = await run(model)

    assert world.said == ["", ""]
    assert trajectory.end == End(by="user")


async def test_a_skill_with_scripts_is_refused_rather_than_run_without_them():
    skill = evolve(SKILL, scripts={"scripts/fix.py": "print()"})

    with pytest.raises(ConfigError, match=r"scripts/fix\.py"):
        await run(Scripted([]), skill=skill)


def test_identity_tells_mode_and_sampling_apart():
    options = [{}, {"mode": "plan"}, {"temperature": 0.0}, {"top_k": 5}, {"top_p": 0.5}, {"max_tokens": 9}]

    identities = [json.dumps(agent(Scripted([]), **some).identity) for some in options]

    assert len(set(identities)) == len(options)


@pytest.mark.parametrize("mode", ["native", "step", "plan"])
def test_identity_changes_with_the_words_around_a_skill(mode, monkeypatch):
    before = agent(Scripted([]), mode=mode).identity
    monkeypatch.setattr("wer_toolagent.prompts.skill_prompt", lambda skill: f"# Procedure\n\n{skill.body}")

    after = agent(Scripted([]), mode=mode).identity

    assert before.pop("prompt") != after.pop("prompt")
    assert before == after


def test_a_misspelt_option_names_the_right_one():
    with pytest.raises(ConfigError, match="'mode'"):
        agent(Scripted([]), mod="plan")
