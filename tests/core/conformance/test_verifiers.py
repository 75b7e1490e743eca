"""The audit before spending: verifiers that can't tell right from wrong are found out without a model."""

import re

import pytest
from support import till

from wer import plugins
from wer.conformance import Settings, check_part
from wer.conformance.mutations import mutations
from wer.records import ToolCall

SETTINGS = Settings(sandbox="process", environment="till", tasks=2)


async def findings(verifier, environment=till.Till):
    found = plugins.load(extra=[till.plugin(environment, verifier)])
    listed = await check_part("verifier", "till_total", found, SETTINGS)
    return {finding.sentence: finding for finding in listed}


async def test_a_verifier_that_tells_right_from_wrong_passes_and_says_what_it_saw():
    listed = await findings(till.Total)

    assert {finding.status for finding in listed.values()} == {"ok"}, listed
    assert listed["the reference passes"].detail == "2 references"
    assert listed["doing nothing fails"].detail == "doing nothing passes on 0 of 2 tasks"
    assert re.match(r"0 of \d accepted; \d more end in", listed["changed references fail"].detail)


@pytest.mark.parametrize(
    ("verifier", "sentence", "why", "remedy"),
    [
        (
            till.Everything,
            "doing nothing fails",
            "accepts doing nothing on all 2 tasks",
            "Compare what the agent left behind",
        ),
        (till.Nothing, "the reference passes", "the reference of 'till/3' fails", "Mend the reference"),
        (
            till.Busy,
            "changed references fail",
            r"(\d) of \1 changed references are accepted .*till/3 without call",
            "Look at all of the state",
        ),
        (till.Flaky, "the same again", "with the same data", "no clock, no random numbers"),
        (till.Counting, "the same again", "with the same data", "no state of its own"),
        (
            till.Writing,
            "needs stored data alone",
            "opened '/no-such-folder/verdicts' for writing",
            "writes nothing",
        ),
        (
            till.NotANumber,
            "the reference passes",
            "score must lie in 0..1, got nan",
            "Do what the message says",
        ),
    ],
)
async def test_a_bad_verifier_is_found_and_told_what_to_do(verifier, sentence, why, remedy):
    listed = await findings(verifier)

    finding = next(finding for finding in listed.values() if sentence in finding.sentence)
    assert finding.status == "failed", listed
    assert re.search(why, finding.detail), finding
    assert re.search(remedy, finding.remedy), finding


async def test_without_references_only_doing_nothing_is_audited():
    class Unreferenced(till.Till):
        reference = None

    listed = await findings(till.Total, Unreferenced)

    assert listed["the reference passes"].status == "not applicable"
    assert listed["changed references fail"].status == "not applicable"
    assert listed["doing nothing fails"].status == "ok"


def test_each_mutation_changes_one_thing_and_a_seed_repeats_them():
    reference = [
        [ToolCall(name="a", arguments={"x": 1}), ToolCall(name="b", arguments={"y": "no"})],
        [ToolCall(name="c", arguments={})],
    ]

    found = list(mutations(reference, 3))

    assert [re.sub(r"\d", "#", mutation.what).split(" ")[0] for mutation in found] == [
        "without",
        *["with"] * 3,
    ]
    assert {sum(map(len, mutation.turns)) for mutation in found} == {2, 3, 4}
    assert all(mutation.turns != tuple(map(tuple, reference)) for mutation in found)
    assert found == list(mutations(reference, 3))


def test_a_reference_without_calls_has_no_mutations():
    assert list(mutations([[], []], 0)) == []
