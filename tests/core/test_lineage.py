"""Where a skill came from, and what ``wer show`` says of runs with and without one."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime

import pytest
from attrs import evolve
from support.counting import Counting
from support.perform import configured, perform

from wer import folders
from wer.cli import main
from wer.records import NO_SKILL, Candidate, Experience, RefinementState, Reward, Skill
from wer.reports.lineage import revisions, root
from wer.store import Store

SEED = Skill(name="trying", description="Try.", body="## Workflow\n1. try")


@pytest.fixture
def folder(tmp_path):
    def made(config):
        return folders.create(tmp_path, config, command="run", now=datetime.now(UTC))

    return made


@pytest.fixture
def shown(capfd):
    def show(folder):
        with pytest.raises(SystemExit) as ended:
            main(["show", str(folder)])
        assert not ended.value.code
        return capfd.readouterr().out

    return show


def revised(store, stage):
    """Store one revision of the seed skill."""
    state = RefinementState(task=Counting().tasks("small", "train")[0], skill=SEED, evidence=())
    candidate = Candidate(
        state_id=state.id, index=0, text=stage, reasoning="", skill=evolve(SEED, body=stage), well_formed=True
    )
    reward = Reward(fmt=1.0, task=1.0, len=1.0, total=1.0)
    store.put_state(state)
    store.put_group(stage, [candidate])
    store.put_experience(stage, Experience(state=state, candidate=candidate, rollouts=(), reward=reward))


def test_a_conditions_revisions_are_its_own_alone(tmp_path):
    store = Store(tmp_path / "wer.sqlite", create=True)
    for stage in ("refine/untrained/0", "train/0", "refine/refined/0"):
        revised(store, stage)

    def stages(condition):
        return [revision.stage for revision in revisions(store, "counting/small", condition)]

    assert stages("refined") == ["train/0", "refine/refined/0"]
    assert stages("untrained") == ["refine/untrained/0"]
    assert stages("seed") == []


def test_first_revisions_of_one_skill_have_it_as_their_root(tmp_path):
    skill = tmp_path / "SKILL.md"
    skill.write_text("---\nname: trying\ndescription: Try.\n---\n## Workflow\n1. try\n")
    store = perform(tmp_path / "run", configured(seed_skill=str(skill)))

    assert root(revisions(store, "counting/small", "refined")).name == "trying"
    assert root([]) == NO_SKILL


@pytest.mark.parametrize(
    ("conditions", "said"),
    [
        (["seed", "untrained", "refined"], "counting/small: the refined skill"),
        (["seed", "untrained"], "the untrained optimizer's skill (this run has no refined one)"),
        (["seed"], "counting/small: the seed skill (this run has no revision of it)"),
        (["skill"], "counting/small: the skill that was measured"),
    ],
)
def test_show_names_the_skill_that_it_shows(folder, shown, conditions, said):
    run = folder(configured())
    store = Store(run / "wer.sqlite", create=True)
    for condition in conditions:
        skill = evolve(SEED, body=f"## Workflow\n1. as {condition}")
        store.put_skill(skill)
        store.put_document("published", f"{condition} counting/small", skill.id)
    store.close()

    out = " ".join(shown(run).split())

    assert said in out
    assert f"1. as {conditions[-1]}" in out


def test_nothing_in_a_skill_commands_the_terminal_that_shows_it(folder, shown):
    run = folder(configured())
    skill = evolve(SEED, body="## Workflow\n1. try\x1b]0;owned\x07 again\u202e")
    with closing(Store(run / "wer.sqlite", create=True)) as store:
        store.put_skill(skill)
        store.put_document("published", "refined counting/small", skill.id)

    out = shown(run)

    assert "1. try]0;owned again" in out
    assert not set("\x1b\x07\u202e") & set(out)


def test_show_of_a_finished_run_shows_every_domain(folder, shown):
    run = folder(configured())
    perform(run, configured()).close()

    out = shown(run)

    assert "counting/small: the refined skill" in out
    assert "counting/large: the refined skill" in out


def test_show_says_that_a_run_has_no_skills_yet(folder, shown):
    run = folder(configured())
    Store(run / "wer.sqlite", create=True).close()

    assert "this run has no skills yet" in shown(run)
