"""A whole run around an agent of the user's own, as the command line and its reports show it."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from types import ModuleType

import pytest
from support.mock_bfcl import serving
from support.mock_openai import MockOpenAI, says

from wer import hookimpl, plugins
from wer.cli import main
from wer.configuration import resolve
from wer.errors import AgentError, ConfigError
from wer.folders import configuration
from wer.loop.checking import check_names
from wer.loop.workplace import workplace
from wer.records import NO_SKILL, UNTOLD, Unit
from wer.references import reference_to
from wer.references import resolve as found_at
from wer.reports.results import results
from wer.store import Store

DESK = '''
    """A desk whose clerk has tools of her own, and a check."""

    import wer

    DRAWER = {}


    def clerk(task, skill, seed):
        if "carefully" in skill or seed % 4 == 0:
            DRAWER["answer"] = task.state["wanted"]
        return wer.Outcome(f"I did {task.id}.", dict(DRAWER))


    def reset():
        DRAWER.clear()


    def check(task, end):
        return end.state.get("answer") == task.expect


    desk = wer.Domain(tasks="tasks.jsonl", check=check)
'''
WRITTEN = """<think>It was careless.</think>
<skill>
name: take-care
description: Work at the desk.
## Workflow
1. Do it carefully.
</skill>"""
DRAFT = WRITTEN.replace("carefully", "quickly")
SKILL = "---\nname: care\ndescription: Care.\n---\n\n## Workflow\n1. Do it carefully.\n"


def wer(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(words)
    return int(ended.value.code or 0)


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A user's folder with her agent, her tasks and her check, and she is in it."""
    monkeypatch.chdir(tmp_path)
    rows = [
        {
            "id": f"t{n}",
            "query": f"Do {n}.",
            "state": {"wanted": n},
            "expect": n,
            "split": "train" if n < 3 else "test",
        }
        for n in range(6)
    ]
    Path("tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("SKILL.md").write_text(SKILL)
    write(DESK)
    return tmp_path


def write(text: str) -> None:
    Path("desk.py").write_text(textwrap.dedent(text))


def settings(**more):
    given = {"env": ["desk.py:desk"], "executor": "desk.py:clerk", **more}
    return resolve(None, None, (), {key.replace("__", "."): value for key, value in given.items()})


def writing(body):
    """Draft a skill that doesn't help, and revise it to one that does."""
    return says(WRITTEN if "You revise" in body["messages"][0]["content"] else DRAFT)(body)


def evaluate(*words: str, trials: int = 2, executor: str = "desk.py:clerk") -> int:
    return wer(
        "eval", "SKILL.md", "--env=desk.py:desk", f"--executor={executor}", f"--trials={trials}", *words
    )


def report() -> str:
    (folder,) = Path("runs").iterdir()
    return (folder / "report.md").read_text()


def test_a_skill_of_an_agent_with_its_own_tools_is_measured_without_a_sandbox(desk):
    assert evaluate("--set", "executor_options.reset=desk.py:reset") == 0

    text = report()
    assert "executor `desk.py:clerk`, writer `none`" in text
    assert "Isolation: the agent's own (one rollout at a time)." in text
    assert "the unknown tokens of 12 rollouts whose agent didn't say" in text
    assert "| executor | unknown | unknown | unknown | unknown | unknown |" in text
    (folder,) = Path("runs").iterdir()
    found = results(Store(folder / "wer.sqlite"))
    assert found.cell("skill", "desk/desk").mean == 1.0
    assert found.cell("none", "desk/desk").mean < 0.7


def test_a_run_makes_its_agent_a_better_skill(desk):
    words = ["run", "--env=desk.py:desk", "--executor=desk.py:clerk"]
    small = ["--set", "training.phases=1", "--set", "training.n=2", "--set", "training.k=2"]
    small += ["--set", "refinement.rounds=1", "--set", "executor_options.reset=desk.py:reset"]
    with serving(MockOpenAI(default=writing)) as mock:
        assert wer(*words, f"--writer=openai/w@{mock.url}", *small) == 0

    (skill,) = Path("runs").glob("*/skills/refined/**/SKILL.md")
    assert "carefully" in skill.read_text()
    (folder,) = Path("runs").iterdir()
    assert configuration(folder).executor == f"{desk}/desk.py:clerk"
    assert configuration(folder).executor_options["reset"] == f"{desk}/desk.py:reset"


FRAGILE = DESK.replace(
    "    DRAWER = {}\n",
    "    from pathlib import Path\n\n    DRAWER = {}\n",
).replace(
    'if "carefully"',
    'if Path("down").exists() and task.id == "t4":\n'
    '            raise ConnectionError("the database is down")\n'
    '        if "carefully"',
)


def fragile_run(agent: str = "desk.py:clerk") -> int:
    small = ["--set", "training.phases=0", "--set", "refinement.rounds=0", "--set", "limits.retries=1"]
    with serving(MockOpenAI(default=writing)) as mock:
        return wer(
            "run",
            "--env=desk.py:desk",
            f"--executor={agent}",
            f"--writer=openai/w@{mock.url}",
            *small,
        )


def test_an_agent_that_raises_is_tried_again_and_ends_the_run_resumably(desk, capsys):
    write(FRAGILE)
    Path("down").touch()

    assert fragile_run() == 2

    said = " ".join(capsys.readouterr().err.split())
    assert "trying again (1 of 1): your agent desk.py:clerk on desk/t4 raised ConnectionError" in said
    assert "the database is down" in said and "Nothing is scored" in said and "go on with: wer run" in said
    (folder,) = Path("runs").iterdir()
    rollouts = [rollout for rollout, *_ in Store(folder / "wer.sqlite").rollouts()]
    assert rollouts and all(rollout.task_id != "desk/t4" for rollout in rollouts)

    Path("down").unlink()
    assert wer("run", f"--resume={folder.name}") == 0

    after = [rollout.key for rollout, *_ in Store(folder / "wer.sqlite").rollouts()]
    assert after[: len(rollouts)] == [rollout.key for rollout in rollouts]


def test_a_run_does_not_go_on_with_another_agent(desk, capsys):
    write(DESK)
    Path("clerk.py").write_text(textwrap.dedent(FRAGILE))
    Path("down").touch()
    assert fragile_run(agent="clerk.py:clerk") == 2
    Path("clerk.py").write_text(Path("clerk.py").read_text().replace("I did", "I have done"))
    (folder,) = Path("runs").iterdir()

    assert wer("run", f"--resume={folder.name}") == 2

    assert "your agent clerk.py:clerk changed since this run began" in " ".join(
        capsys.readouterr().err.split()
    )


def test_an_agent_that_hangs_is_given_up_after_the_time_for_a_rollout(desk, capsys):
    write(DESK.replace('if "carefully"', 'import time; time.sleep(60)\n        if "carefully"'))

    assert evaluate("--set", "limits.rollout_timeout_s=0.05", "--set", "limits.retries=0") == 2

    assert "took more than 0.05 s" in " ".join(capsys.readouterr().err.split())


def test_an_interrupt_in_a_coroutine_ends_the_run_and_names_the_agent(desk, capsys):
    interrupted = DESK.replace('if "carefully"', 'raise KeyboardInterrupt\n        if ""')
    write(interrupted.replace("def clerk", "async def clerk"))

    assert evaluate() == 130

    said = " ".join(capsys.readouterr().err.split())
    assert "wer: interrupted: your agent desk.py:clerk on desk/t3 was at" in said and "in clerk" in said


def test_a_cap_that_could_not_be_kept_ends_the_run_with_the_remedy(desk, capsys):
    assert evaluate("--max-tokens=1000000") == 2

    said = " ".join(capsys.readouterr().err.split())
    assert (
        "tokens are capped (--max-tokens, or budget.max_tokens of wer.toml), and your agent doesn't" in said
    )
    assert "Have it return a wer.Outcome" in said


def test_usage_that_the_agent_tells_is_in_the_costs_at_the_given_price(desk):
    told = 'usage={"prompt_tokens": 500, "completion_tokens": 100}'
    write(DESK.replace("dict(DRAWER))", f"dict(DRAWER), {told})"))

    assert evaluate("--price=desk.py:clerk=1,10", "--max-cost=1") == 0

    assert "| executor | 12 | 6,000 | 0 | 1,200 | 0.0180 |" in report()


def test_the_report_tells_how_often_the_skill_was_loaded_and_what_is_unknown(desk):
    told = "skill_loaded={0: True, 1: False}.get(seed % 3) if skill else None"
    write(
        DESK.replace("dict(DRAWER))", f"dict(DRAWER), {told})").replace(
            '"carefully" in skill or seed % 4', "seed % 3"
        )
    )

    assert evaluate("--set", "executor_options.reset=desk.py:reset", trials=8) == 0

    (line,) = (line for line in report().splitlines() if "loaded in" in line)
    assert line.startswith("- this skill: loaded in ") and "Pass@1 100.0 % with it loaded" in line
    assert "Pass@1 0.0 % where it was not" in line and "unknown of " in line


def test_an_agent_that_ignores_its_skill_is_noticed(desk):
    write(DESK.replace('"carefully" in skill or ', ""))

    assert evaluate("--set", "executor_options.reset=desk.py:reset") == 0

    assert (
        "with 'this skill' the agent did exactly what it does without any, in all of 6 rollouts" in report()
    )


@pytest.mark.parametrize(
    ("executor", "remedy"),
    [
        ("desk.py:clerk", "Return wer.Outcome(messages, state)"),
        ("command: echo done", 'Have it write {"state": ...} as JSON into the file'),
    ],
)
def test_an_agent_that_tells_no_state_is_remarked_once_with_what_to_tell(desk, capsys, executor, remedy):
    write(DESK.replace(", dict(DRAWER))", ")").replace("end.state.get", "(end.state or {}).get"))

    assert evaluate(executor=executor) == 0

    said = " ".join(capsys.readouterr().err.split())
    assert said.count("told no state on desk/t") == 1 and f"warning: your agent {executor}" in said
    assert remedy in said and "docs/own-agents.md" in said
    assert f"- Note: your agent {executor} told no state" in report()


def test_a_check_that_fails_for_want_of_a_state_says_so(desk, capsys):
    write(DESK.replace(", dict(DRAWER))", ")"))

    assert evaluate() == 2

    said = " ".join(capsys.readouterr().err.split())
    assert "'NoneType' object has no attribute 'get'" in said and "Here end.state is None" in said


def test_rollouts_run_at_once_only_where_the_user_says_what_isolates_them(desk, capsys):
    with pytest.raises(
        ConfigError, match=r"concurrency is 4, and nobody isolates.*executor_options\.isolation"
    ):
        check_names(settings(concurrency=4), plugins.load())

    assert evaluate("--set", "concurrency=4", "--set", "executor_options.isolation=a database a call") == 0

    assert "Isolation: the agent's own (a database a call)." in report()


def test_who_writes_the_skills_must_be_said_before_anything_is_paid(desk, capsys):
    assert wer("run", "--env=desk.py:desk", "--executor=desk.py:clerk") == 2

    assert "writes no skills, and no model is named that does. Name one with --writer" in " ".join(
        capsys.readouterr().err.split()
    )
    assert not Path("runs").exists()


def test_a_forecast_does_not_pretend_to_know_what_an_agent_costs(desk, capsys):
    assert evaluate("--dry-run") == 0

    line = next(line for line in capsys.readouterr().out.splitlines() if "desk.py:clerk" in line)
    assert line.count("unknown") == 3 and not Path("runs").exists()


@pytest.mark.parametrize(
    ("executor", "error", "message"),
    [
        ("desk.py:clark", ConfigError, r"has no 'clark'; did you mean 'clerk'\? It has"),
        ("desk.py", ConfigError, r"names a file and no object in it"),
        ("disk.py:clerk", ConfigError, r"cannot read '.*disk\.py'.*Check the path before the colon"),
        ("no_such_module:clerk", ConfigError, "cannot import 'no_such_module': ModuleNotFoundError"),
        ("broken.py:clerk", ConfigError, r"broken\.py can't be imported: ZeroDivisionError"),
        ("desk.py:DRAWER", AgentError, "your agent desk.py:DRAWER is a dict; expected a function"),
    ],
)
def test_an_agent_that_is_not_there_is_refused_before_anything_is_built(desk, executor, error, message):
    Path("broken.py").write_text("1 / 0\n")

    with pytest.raises(error, match=message):
        check_names(settings(executor=executor), plugins.load())


def test_an_option_that_functions_do_not_have_is_named(desk):
    with pytest.raises(
        ConfigError, match=r"unknown key 'rest' in \[executor_options\]; did you mean 'reset'"
    ):
        check_names(settings(executor_options__rest="x"), plugins.load())


def test_an_agent_fits_environments_with_tools_or_without_and_not_both(desk):
    shop = Path(__file__).parents[2] / "examples" / "shop" / "shop.py"

    with pytest.raises(ConfigError, match=r"desk has none, shop has\. Run them apart"):
        check_names(settings(env=["desk.py:desk", f"{shop}:shop"]), plugins.load())
    with pytest.raises(AgentError, match="this environment has tools to be called"):
        check_names(settings(env=[f"{shop}:shop"]), plugins.load())


def test_an_executor_around_a_model_does_not_go_around_an_agent(desk):
    other = ModuleType("other")
    other.wer_executors = hookimpl(lambda: {"other": print})

    with pytest.raises(ConfigError, match="agent is 'other', which goes around a model"):
        check_names(settings(agent="other"), plugins.load(extra=(other,)))


def test_an_object_of_a_program_is_found_again_by_its_name():
    def local(task, skill, seed): ...

    top, inner = reference_to(wer), reference_to(local)

    assert top == f"{__name__}:wer" and found_at(top) is wer
    assert inner.startswith("__main__:") and found_at(inner) is local
    with pytest.raises(ConfigError, match="was an object of the program that began this"):
        found_at("__main__:gone")


def test_tasks_and_check_are_checked_without_a_sandbox_too(desk, capsys):
    assert wer("plugin", "check", "desk.py:desk") == 0

    assert "15 ok, 3 not applicable" in capsys.readouterr().out


async def test_a_worker_elsewhere_makes_the_same_agent_and_reports_what_is_known_of_its_costs(desk):
    found = plugins.load()
    store = Store(desk / "wer.sqlite", create=True)
    [task, *_] = found.environments.make("desk.py:desk", {}).tasks("desk", "test")

    async with workplace(settings(), plugins=found, spending=store, say=print) as here:
        trajectory, evidence = await here.execute(Unit(task=task, skill=NO_SKILL, seed=4))

    assert evidence.turns[-1].state == {"answer": 3} and trajectory.usage == UNTOLD
    assert store.spend() == {"executor": UNTOLD}
    assert here.isolation == "the agent's own (one rollout at a time)" and here.concurrency == 1
