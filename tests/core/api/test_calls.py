"""`wer.refine` and its siblings: the words, the objects, and what they give back."""

import asyncio
import importlib.util
import inspect
import os
import pickle
import signal
import sys
from contextlib import closing

import pytest
from support.mock_bfcl import reply, serving
from support.mock_openai import MockOpenAI
from support.tickets import EXAMPLE, writer

import wer
from wer.errors import BudgetExhausted, ConfigError, InfrastructureError, PluginError, StoreError, WerError
from wer.records import Skill
from wer.skills import load_skill, save_skill

GOOD = Skill(name="note-it", description="Close tickets.", body="## Workflow\n1. Add a note, then close.\n")
PLAIN = Skill(name="close-it", description="Close tickets.", body="## Workflow\n1. Close.\n")


@pytest.fixture
def desk(monkeypatch):
    """The example's module with the agent, imported as a script of its folder would."""
    monkeypatch.syspath_prepend(EXAMPLE)
    yield importlib.import_module("desk")
    del sys.modules["desk"]


@pytest.fixture
def words(desk, tmp_path):
    """What every call here is given."""
    with serving(MockOpenAI(default=writer)) as mock:
        yield {
            "tasks": EXAMPLE / "tasks.jsonl",
            "check": check,
            "executor": desk.agent,
            "writer": f"openai/mock@{mock.url}",
            "runs": tmp_path / "runs",
            "progress": False,
        }


def check(task, end):
    return end.state == task.expect


def test_refine_goes_from_an_agent_with_its_own_tools_to_a_saved_skill(words, tmp_path):
    run = wer.refine(**words)
    (saved,) = run.best.save(tmp_path / "skills")

    assert run.best.estimate.mean == 1.0
    assert "Add the reason as a note" in load_skill(saved).body
    assert "the agent's own" in str(run.table)


def test_a_saved_skill_is_byte_for_byte_the_one_that_the_run_measured(words, tmp_path):
    run = wer.refine(**words)
    (saved,) = run.best.save(tmp_path / "skills")

    assert (saved / "SKILL.md").read_bytes() == (run.best.folder / saved.name / "SKILL.md").read_bytes()
    assert load_skill(saved) == run.best.skill


def test_a_skill_is_never_saved_over_another(words, tmp_path):
    best = wer.evaluate(skill=save_skill(GOOD, tmp_path), trials=1, **words).best
    best.save(tmp_path / "skills")

    with pytest.raises(ConfigError, match="exists already"):
        best.save(tmp_path / "skills")


def test_results_show_themselves_as_text_and_as_html(words):
    run = wer.refine(trials=1, **words)

    for view in (run, run.table, run.diff, run.best):
        assert "note" in repr(view) or "Pass@1" in repr(view)
        assert "<pre" in view._repr_html_()
    assert "+1. Add the reason as a note, then close." in str(run.diff)
    assert "written on seeing" in str(run.diff)


def test_what_a_model_wrote_is_text_in_a_notebook_and_no_html(words, tmp_path):
    hostile = Skill(name="x", description="Close.", body="## Workflow\n1. <script>alert(1)</script> note.\n")

    html = wer.evaluate(skill=save_skill(hostile, tmp_path), trials=1, **words).best._repr_html_()

    assert "&lt;script&gt;" in html
    assert "<script>" not in html


def test_nothing_that_is_shown_commands_a_terminal(words, tmp_path):
    body = "## Workflow\n1. Close\x1b]0;owned\x07 it \u202ewith a note.\n"
    hostile = Skill(name="x", description="Close.", body=body)

    best = wer.evaluate(skill=save_skill(hostile, tmp_path), trials=1, **words).best

    for shown in (str(best), repr(best), best._repr_html_(), best.__rich__()._parts[-1].plain):
        assert "Close]0;owned it with a note." in shown
    assert best.skill.body == body


def test_a_skill_that_was_changed_since_it_was_measured_is_not_saved_as_the_one_that_was(words, tmp_path):
    best = wer.evaluate(skill=save_skill(GOOD, tmp_path), trials=1, **words).best
    file = best.folder / "note-it" / "SKILL.md"
    file.write_text(file.read_text().replace("Add a note", "Add two notes"))

    with pytest.raises(StoreError, match="changed since"):
        best.save(tmp_path / "skills")

    assert not (tmp_path / "skills").exists()


def test_a_run_goes_to_another_process_as_its_folder(words):
    run = wer.refine(trials=1, **words)

    sent = pickle.loads(pickle.dumps(run))

    assert str(sent.table) == str(run.table)
    assert wer.Run(run).folder == run.folder


def test_a_missing_key_is_named_before_there_is_a_run_folder(words, tmp_path, monkeypatch):
    for name in ("OPENAI_API_KEY", "WER_API_KEY"):
        monkeypatch.delenv(name, raising=False)

    with pytest.raises(InfrastructureError, match=r"no API key for openai/keyless\. Set OPENAI_API_KEY"):
        wer.refine(**{**words, "writer": "openai/keyless"})

    assert not (tmp_path / "runs").exists()


def test_none_is_a_word_that_is_not_given(words):
    bare = dict.fromkeys(("config", "set", "track", "budget", "resume", "preset", "price", "gpus"))

    run = wer.refine(trials=1, rounds=None, **bare, **words)

    assert run.best.estimate.mean == 1.0


def test_refine_without_measuring_leaves_the_test_split_alone(words):
    run = wer.refine(measure=False, **words)

    assert "nothing was measured" in str(run.table)
    assert run.best.estimate is None
    assert "note" in run.best.skill.body


def test_the_best_skill_of_a_run_is_a_skill_for_the_next(words):
    first = wer.refine(trials=1, **words)

    again = wer.evaluate(skill=first.best, trials=1, **words)

    assert again.best.skill.body == first.best.skill.body


def test_skills_and_runs_are_compared(words, tmp_path):
    run = wer.refine(trials=1, **words)

    compared = wer.compare(None, save_skill(PLAIN, tmp_path), run, trials=1, **words)

    assert compared.results.conditions[:2] == ("none", "close-it")
    assert "A/A control" in str(compared.table)


def test_train_performs_the_whole_protocol(words):
    run = wer.train(set={"training.phases": 1, "training.k": 2, "evaluation.trials": 1}, **words)

    assert run.results.cell("refined", "average").mean == 1.0
    assert any(stage.startswith("phase") or "train" in stage for stage in _stages(run))


def _stages(run):
    return run._read(lambda store: [stage for stage, _ in store.experiences()])


@pytest.mark.parametrize(("new", "answer"), [(GOOD, "better"), (PLAIN, "undecided")])
def test_a_gate_says_how_a_skill_compares_with_an_older_one(words, tmp_path, new, answer):
    old = Skill(name="old", description="Close tickets.", body="## Workflow\n1. Be quick.\n")
    wide = {**words, "tasks": many(tmp_path)}

    run = wer.evaluate(skill=save_skill(new, tmp_path), against=save_skill(old, tmp_path), trials=3, **wide)

    assert run.gate.answer == answer
    assert run.best.skill.body == new.body


def many(folder):
    """The example's tasks several times over."""
    lines = (EXAMPLE / "tasks.jsonl").read_text().splitlines()
    named = [line.replace('"ticket-', f'"{i}-') for i in range(4) for line in lines]
    path = folder / "many.jsonl"
    path.write_text("\n".join(named) + "\n")
    return path


def test_every_verdict_comes_out_again(words):
    verified = wer.refine(trials=1, **words).verify()

    assert verified.agrees
    assert "0 verdicts differ" in repr(verified)


async def test_a_call_works_where_an_event_loop_runs_already(words):
    run = wer.refine(trials=1, **words)

    assert run.best.estimate.mean == 1.0


def test_an_interrupted_notebook_is_told_how_the_run_goes_on(words, desk):
    calls = []

    def interrupting(task, skill, seed):
        calls.append(task)
        if len(calls) == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return desk.agent(task, skill, seed)

    async def cell():
        with pytest.raises(KeyboardInterrupt) as interrupted:
            wer.refine(trials=1, **{**words, "executor": interrupting})
        return interrupted.value.__notes__

    with closing(asyncio.new_event_loop()) as loop:  # a kernel's: asyncio.run would have Ctrl-C for itself
        notes = loop.run_until_complete(cell())

    assert "resume=" in "".join(notes)


async def test_a_cancelled_run_lets_go_of_its_folder_and_goes_on_later(words, desk):
    begun = asyncio.Event()

    async def waiting(task, skill, seed):
        begun.set()
        await asyncio.sleep(60 if not again else 0)
        return desk.agent(task, skill, seed)

    again = False
    words["executor"] = waiting
    running = asyncio.create_task(wer.aio.refine(trials=1, **words))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    (folder,) = words["runs"].iterdir()
    again = True

    run = await wer.aio.refine(trials=1, resume=folder, **words)

    assert run.best.estimate.mean == 1.0


async def test_two_runs_go_on_at_a_time_in_one_loop(words, tmp_path):
    skills = [save_skill(skill, tmp_path) for skill in (GOOD, PLAIN)]

    good, plain = await asyncio.gather(
        *(wer.aio.evaluate(skill=skill, trials=1, **words) for skill in skills)
    )

    assert good.best.estimate.mean == 1.0 > plain.best.estimate.mean


def test_a_run_that_reached_its_budget_goes_on_with_the_same_call(words):
    with pytest.raises(BudgetExhausted) as stopped:
        wer.refine(budget=wer.Budget(rollouts=8), trials=1, **words)
    (note,) = stopped.value.__notes__
    folder = next(words["runs"].iterdir())

    run = wer.refine(resume=folder, trials=1, **words)

    assert f"resume={str(folder)!r}" in note
    assert run.folder == folder
    assert run.best.estimate.mean == 1.0


def test_other_settings_are_refused_in_a_run_that_goes_on(words):
    run = wer.refine(trials=1, **words)

    with pytest.raises(ConfigError, match=r"seed, evaluation\.trials differ"):
        wer.refine(trials=2, seed=5, resume=run.folder, **words)


def test_an_agent_that_raises_stops_the_run_with_its_own_words(words, desk):
    def broken(task, skill, seed):
        raise RuntimeError("the database is down")

    with pytest.raises(InfrastructureError, match="the database is down"):
        wer.refine(**{**words, "executor": broken}, set={"limits.retries": 0})


def test_a_domain_whose_variable_is_in_a_file_can_be_named_from_the_shell_afterwards(words, tmp_path):
    (tmp_path / "counter.py").write_text(
        "import wer\n\ndef judge(task, end):\n    return end.state == task.expect\n\n"
        f"tickets = wer.Domain(tasks={str(EXAMPLE / 'tasks.jsonl')!r}, check=judge)\n"
    )
    spec = importlib.util.spec_from_file_location("counter", tmp_path / "counter.py")
    module = sys.modules["counter"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    del words["tasks"], words["check"]

    run = wer.evaluate(module.tickets, skill=save_skill(GOOD, tmp_path), trials=1, **words)

    assert f"{tmp_path / 'counter.py'}:tickets" in (run.folder / "run.toml").read_text()


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"excutor": "x"}, TypeError, "did you mean 'executor'"),
        ({"trails": 3}, TypeError, "did you mean 'trials'"),
        ({"meassure": False}, TypeError, "did you mean 'measure'"),
        ({"rollouts": 3}, TypeError, r"caps as budget=wer\.Budget"),
        ({"set": "training.k=8"}, ConfigError, r"expected settings by name, such as \{'training.k': 8\}"),
        ({"env": 7}, ConfigError, "expected a wer.Domain"),
        ({"env": "bfkl"}, PluginError, "did you mean 'bfcl'"),
        ({"env": "nowhere.py:shop"}, ConfigError, "nowhere.py"),
        ({"tasks": "tasks.jsonl"}, ConfigError, "without check"),
        ({"env": "bfcl", "tasks": "t.jsonl", "check": check}, ConfigError, "brings its own"),
        ({"executor": 7}, ConfigError, "expected a name, or something that can be called"),
        ({"budget": 400}, ConfigError, "expected a wer.Budget"),
        ({"set": {"training.kk": 3}}, ConfigError, "unknown key 'kk'"),
        ({"skill": "nothing.md"}, WerError, "nothing.md"),
        ({"trials": 0}, ConfigError, "at least 1"),
    ],
)
def test_bad_arguments_are_refused_before_anything_begins(tmp_path, given, error, message):
    fine = {"env": "bfcl", "executor": "openai/mock@http://127.0.0.1:1/v1", "runs": tmp_path / "runs"}
    if "tasks" in given:
        del fine["env"]

    with pytest.raises(error, match=message):
        wer.refine(**{**fine, **given})

    assert not (tmp_path / "runs").exists()


def test_a_misspelt_word_is_named_before_what_is_missing_without_it(tmp_path):
    with pytest.raises(TypeError, match=r"evaluate\(\).* 'skil'; did you mean 'skill'"):
        wer.evaluate("bfcl", skil="SKILL.md", executor="openai/mock")


def test_a_split_that_is_none_is_refused(words, tmp_path):
    with pytest.raises(ConfigError, match="'dev', expected one of train, test"):
        wer.evaluate(skill=save_skill(GOOD, tmp_path), split="dev", **words)


def test_an_agent_that_writes_no_skills_needs_a_writer_before_anything_begins(words):
    del words["writer"]

    with pytest.raises(ConfigError, match="no model is named"):
        wer.refine(**words)

    assert not words["runs"].exists()


def test_one_skill_is_no_comparison(tmp_path):
    with pytest.raises(ConfigError, match="two or more"):
        wer.compare("bfcl", "SKILL.md", executor="openai/mock")


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"run\.toml"):
        wer.Run(tmp_path)


def test_a_call_shows_every_word_that_it_takes():
    shown = inspect.signature(wer.refine)

    assert {"env", "skill", "rounds", "executor", "budget", "resume"} <= set(shown.parameters)
    assert wer.refine.__name__ == "refine"


def test_drafts_with_which_everything_passes_are_measured_and_kept(words, tmp_path):
    def able(task, skill, seed):
        return wer.Outcome("Done.", state={"done": bool(skill)})

    words |= {"executor": able, "check": lambda task, end: end.state.get("done", False)}

    run = wer.refine(**words)

    assert run.best.estimate.mean == 1.0
    assert run.best.save(tmp_path / "kept")


def test_a_writer_whose_answers_have_no_skill_is_told(words, capsys):
    def mute(body):
        return reply({"role": "assistant", "content": "I would look first."}, "stop")

    with serving(MockOpenAI(default=mute)) as mock:
        wer.refine(
            **{**words, "progress": True, "writer": f"openai/mock@{mock.url}"},
            skill=save_skill(PLAIN, words["runs"].parent),
        )

    printed = " ".join("".join(capsys.readouterr()).split())
    assert "revisions have no skill that can be read" in printed
