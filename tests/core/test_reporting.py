"""What report.md and the printed table say of the split and of training."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from support.perform import configured

from wer.reports.reporting import print_report, write_report
from wer.store import Store


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "wer.sqlite", create=True)


@pytest.mark.parametrize("split", ["test", "train"])
def test_titles_name_the_split_that_was_measured(store, tmp_path, split):
    if split == "train":
        store.put_document("about", "split", "train")
    out = io.StringIO()

    print_report(Console(file=out, width=200), store, tmp_path, configured())
    report = write_report(tmp_path, store, configured()).read_text("utf-8")

    assert f"Pass@1 on the {split} split" in " ".join(out.getvalue().split())
    assert f"## Pass@1 on the {split} split, %" in report


def test_the_report_has_a_row_for_each_update_step(store, tmp_path):
    store.put_metrics("train/0", [{"loss": 0.25, "entropy": 1.5}, {"loss": 0.125, "update_s": 2.0}])

    report = write_report(tmp_path, store, configured()).read_text("utf-8")

    assert "| stage | step | loss | entropy | update_s |" in report
    assert "| train/0 | 0 | 0.25 | 1.5 | - |" in report
    assert "| train/0 | 1 | 0.125 | - | 2 |" in report


def test_a_run_without_update_steps_has_no_table_of_them(store, tmp_path):
    report = write_report(tmp_path, store, configured()).read_text("utf-8")

    assert "Update steps" not in report
