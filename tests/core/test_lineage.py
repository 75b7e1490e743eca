"""Where a skill came from, and what ``wer show`` says of runs with and without one."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from support.perform import configured, perform

from wer import folders
from wer.cli import main
from wer.records import NO_SKILL
from wer.reports.lineage import revisions, root
from wer.store import Store


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


def test_a_conditions_revisions_are_its_own_alone(tmp_path):
    store = perform(tmp_path / "run", configured())

    def stages(condition):
        return {revision.stage for revision in revisions(store, "counting/small", condition)}

    assert stages("refined") == {"train/0", "train/1", "refine/refined/0", "refine/refined/1"}
    assert stages("untrained") == {"refine/untrained/0", "refine/untrained/1"}
    assert stages("seed") == set()


def test_first_revisions_of_one_skill_have_it_as_their_root(tmp_path):
    skill = tmp_path / "SKILL.md"
    skill.write_text("---\nname: trying\ndescription: Try.\n---\n## Workflow\n1. try\n")
    store = perform(tmp_path / "run", configured(seed_skill=str(skill)))

    assert root(revisions(store, "counting/small", "refined")).name == "trying"
    assert root([]) == NO_SKILL


@pytest.mark.parametrize(
    ("conditions", "said"),
    [
        (["none", "seed", "untrained", "refined"], "counting/small: the refined skill"),
        (["none", "untrained"], "counting/small: the untrained optimizer's skill (this run has no refined"),
        (["none", "seed"], "counting/small: the seed skill (this run has no revision"),
    ],
)
def test_show_names_the_skill_that_it_shows(folder, shown, conditions, said):
    config = configured(evaluation__conditions=conditions)
    run = folder(config)
    perform(run, config).close()

    assert said in " ".join(shown(run).split())


def test_show_says_that_a_run_has_no_skills_yet(folder, shown):
    run = folder(configured())
    Store(run / "wer.sqlite", create=True).close()

    assert "this run has no skills yet" in shown(run)
