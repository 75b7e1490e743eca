"""Environments that break a rule are told of it, with the remedy."""

import re

import pytest
from attrs import evolve
from support import till

from wer import plugins
from wer.conformance import KINDS, Settings
from wer.conformance.checks import run_checks
from wer.conformance.watching import watching

SETTINGS = Settings(sandbox="process", tasks=2)


async def findings(environment, *sentences):
    """What is found of all sentences, or of those that contain some words."""
    kind = KINDS["environment"]
    checks = [
        check for check in kind.checks if not sentences or any(part in check.sentence for part in sentences)
    ]
    found = plugins.load(extra=[till.plugin(environment)])
    listed = await run_checks("environment till", evolve(kind, checks=checks), "till", found, SETTINGS)
    return {finding.sentence: finding for finding in listed}


async def failed(environment, sentence):
    """The finding of the one check that is asked for, which does not hold."""
    _, finding = (await findings(environment, sentence)).values()
    assert finding.status == "failed"
    return finding


async def test_an_environment_that_keeps_the_rules_passes_every_check():
    listed = await findings(till.Till)

    assert tuple(listed) == KINDS["environment"].sentences
    assert {finding.status for finding in listed.values()} == {"ok"}, listed


@pytest.mark.parametrize(
    ("environment", "sentence", "why", "remedy"),
    [
        (
            till.Unstable,
            "the same in two loads",
            "two loads give different tasks",
            "no clock, no random numbers",
        ),
        (till.Overlapping, "splits are disjoint", "'till/4' is the training task 'till/3'", "into one split"),
        (
            till.in_world("Writing"),
            "reaches outside its sandbox",
            r"in call add: opened '/tmp/wer-till-book.txt' for writing",
            "Keep its state in memory",
        ),
        (
            till.in_world("Naive"),
            "wrong arguments are answered as data",
            "wer_no_such_tool.* raised SandboxError",
            r"Observation\(text=..., ok=False\)",
        ),
        (till.in_world("Objects"), "can be stored and read again", "is no JSON", "no NaN"),
        (
            till.in_world("Numbered"),
            "fresh episodes of one task are equal",
            "pid is",
            "the export is not deterministic",
        ),
    ],
)
async def test_a_broken_rule_is_named_with_its_remedy(environment, sentence, why, remedy):
    finding = await failed(environment, sentence)

    assert re.search(why, finding.detail), finding
    assert re.search(remedy, finding.remedy), finding


@pytest.mark.parametrize("environment", [till.Shared, till.OneSession])
async def test_state_that_leaks_between_episodes_is_found(environment):
    _, *leaks = (await findings(environment, "are equal", "don't touch")).values()

    assert any(finding.status == "failed" for finding in leaks)
    assert any("session object that `open` returns" in finding.remedy for finding in leaks)


async def test_a_tool_that_no_reference_calls_is_tried_too():
    finding = await failed(till.Secretive, "reaches outside its sandbox")

    assert "in call note: opened '/tmp/wer-till-book.txt' for writing" in finding.detail


async def test_a_file_that_is_written_on_the_host_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(till.OnTheHost, "book", tmp_path / "book.txt")

    finding = await failed(till.OnTheHost, "reaches outside its sandbox")

    assert f"on the host, outside its sandbox, the environment opened '{tmp_path}/book.txt'" in finding.detail
    assert "Episode.request" in finding.remedy


async def test_a_process_that_is_left_behind_is_found():
    try:
        finding = await failed(till.Leaving, "closing frees")
    finally:
        for process in till.Leaving.started:
            process.kill()
            process.wait()

    assert "1 more child processes" in finding.detail


async def test_an_environment_that_cannot_be_made_is_told_once():
    def broken(options):
        raise RuntimeError("no data")

    listed = await findings(broken)

    assert [finding.status for finding in listed.values()].count("failed") == 1
    assert "RuntimeError: no data" in listed["it can be made"].detail


def test_the_cache_is_where_it_is_now_and_not_where_it_was_when_somebody_first_watched(tmp_path, monkeypatch):
    for name in ("first", "second"):
        monkeypatch.setenv("WER_CACHE", str(tmp_path / name))
        with watching() as heard:
            (tmp_path / name / "kept").mkdir()

        assert heard == []
