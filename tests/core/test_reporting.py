"""What report.md and the printed table say of the split and of training."""

from __future__ import annotations

import io

import pytest
from attrs import evolve
from rich.console import Console
from support.counting import Counting
from support.perform import configured

from wer.records import NO_SKILL, End, Evidence, Rollout, Trajectory, Verdict
from wer.reports.reporting import print_report, write_report
from wer.store import Store


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "wer.sqlite", create=True)


def measured(store, condition="none", domain="small"):
    """Store one result: a task that passed, with no skill unless it is said."""
    task = evolve(Counting().tasks("small", "test")[0], domain=domain)
    end = End(by="agent")
    rollout = Rollout(
        key="k",
        task_id=task.id,
        skill_id=NO_SKILL.id,
        seed=0,
        trajectory=Trajectory(messages=("go",), steps=(), end=end, seed=0),
        evidence=Evidence(turns=(), end=end),
        verdict=Verdict(score=1.0, passed=True),
    )
    store.put_rollout(rollout, task=task, skill=NO_SKILL, verifier="reached", tries=1)
    store.put_results([(condition, task, 0, rollout)])


@pytest.mark.parametrize("split", ["test", "train"])
def test_titles_name_the_split_that_was_measured(store, tmp_path, split):
    measured(store)
    if split == "train":
        store.put_document("about", "split", "train")
    out = io.StringIO()

    print_report(Console(file=out, width=200), store, tmp_path, configured())
    report = write_report(tmp_path, store, configured()).read_text("utf-8")

    assert f"Pass@1 on the {split} split" in " ".join(out.getvalue().split())
    assert f"## Pass@1 on the {split} split, %" in report


def test_names_of_domains_and_skills_are_neither_markup_nor_commands_nor_cells(store, tmp_path):
    measured(store, condition="[/red]\x1b[31m|x", domain="[/bold]d")
    out = io.StringIO()

    print_report(Console(file=out, width=200), store, tmp_path, configured())
    report = write_report(tmp_path, store, configured()).read_text("utf-8")

    assert "[/bold]d (n=1)" in out.getvalue() and "[/red][31m|x" in out.getvalue()
    assert "\x1b" not in out.getvalue() + report
    assert r"| [/red][31m\|x | 1 |" in report


def test_a_note_that_quotes_a_skill_begins_no_line_of_its_own(store, tmp_path):
    forged = "the seed skill quotes 'x'\n\n## Pass@1\n\n| refined skill | 100 |"
    store.put_document("leaks", "seed d", forged)

    report = write_report(tmp_path, store, configured()).read_text()

    assert not [
        line for line in report.splitlines() if line == "## Pass@1" or line.startswith("| refined skill")
    ]
    assert "- Note: the seed skill quotes 'x'" in report


def test_a_run_that_measured_nothing_says_so_instead_of_an_empty_table(store, tmp_path):
    out = io.StringIO()

    print_report(Console(file=out, width=200), store, tmp_path, configured())

    assert "nothing was measured" in out.getvalue()


def test_the_report_has_a_row_for_each_update_step(store, tmp_path):
    store.put_metrics("train/0", 0, {"loss": 0.25, "entropy": 1.5})
    store.put_metrics("train/0", 1, {"loss": 0.125, "update_s": 2.0})

    report = write_report(tmp_path, store, configured()).read_text("utf-8")

    assert "| stage | step | loss | entropy | update_s |" in report
    assert "| train/0 | 0 | 0.25 | 1.5 | - |" in report
    assert "| train/0 | 1 | 0.125 | - | 2 |" in report


def test_a_run_without_update_steps_has_no_table_of_them(store, tmp_path):
    report = write_report(tmp_path, store, configured()).read_text("utf-8")

    assert "Update steps" not in report


def test_the_report_counts_who_ended_the_episodes_and_why(store, tmp_path):
    measured(store)

    report = write_report(tmp_path, store, configured()).read_text("utf-8")

    assert "| counting | agent | done | 1 | 1 |" in report
