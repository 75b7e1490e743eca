"""Run folders: found by name, held by one process, and honest about the other."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import pytest

from wer import folders
from wer.configuration import resolve
from wer.errors import ConfigError, StoreError

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CONFIG = resolve(None, None, (), {"env": ["bfcl"], "executor": "local/x"})


def test_a_new_run_has_its_resolved_configuration_and_versions(tmp_path):
    folder = folders.create(tmp_path, CONFIG, command="run", now=NOW)

    assert folder.name == "20260102-030405-bfcl-prompted"
    assert folders.configuration(folder) == CONFIG
    assert "wer = " in (folder / "about.toml").read_text()


def test_two_runs_of_one_second_get_two_folders(tmp_path):
    first, second = (folders.create(tmp_path, CONFIG, command="run", now=NOW) for _ in range(2))

    assert first != second


def test_the_newest_run_is_found_without_a_name_and_any_by_its_id(tmp_path):
    first = folders.create(tmp_path, CONFIG, command="run", now=NOW)
    second = folders.create(tmp_path, CONFIG, command="run", now=NOW)
    os.utime(second / "run.toml", (2e9, 2e9))
    os.utime(second, (2e9, 2e9))

    assert folders.find(tmp_path, None) == second
    assert folders.find(tmp_path, first.name) == first
    assert folders.find(tmp_path, str(first)) == first


def test_a_misspelt_run_is_answered_with_the_nearest(tmp_path):
    folder = folders.create(tmp_path, CONFIG, command="run", now=NOW)

    with pytest.raises(ConfigError, match=f"did you mean '{folder.name}'"):
        folders.find(tmp_path, folder.name[:-1])


def test_a_second_process_on_one_run_is_refused_by_the_number_of_the_first(tmp_path):
    with folders.locked(tmp_path), pytest.raises(StoreError, match=f"in use by process {os.getpid()}"):
        folders.locked(tmp_path).__enter__()


def test_a_folder_that_can_not_be_written_is_named_with_a_remedy(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")

    with pytest.raises(StoreError, match=r"cannot write a run folder below .*--runs"):
        folders.create(blocked / "runs", CONFIG, command="run", now=NOW)


def test_a_run_that_is_only_looked_at_does_not_become_the_newest(tmp_path):
    first, second = (folders.create(tmp_path, CONFIG, command="run", now=NOW) for _ in range(2))
    os.utime(first / "run.toml", (1e9, 1e9))
    (first / "wer.sqlite-shm").touch()
    os.utime(first, (3e9, 3e9))

    assert list(folders.below(tmp_path)) == [second, first]


def test_the_folder_that_one_stands_in_has_a_name(tmp_path, monkeypatch):
    folder = folders.create(tmp_path, CONFIG, command="run", now=NOW)
    monkeypatch.chdir(folder)

    assert folders.find(tmp_path, ".") == folder
