"""SKILLER's rounds over real BFCL tasks in the process sandbox, with a scripted critic and actor."""

from __future__ import annotations

import json

import pytest
from support.skiller_world import (
    SCRIPT,
    SEED,
    SOMETIMES,
    WORKS,
    Scribe,
    diagnosis,
    edit,
    edits,
    note,
    opened_run,
)

from wer.leaks import private
from wer.loop.refining import refine
from wer.loop.running import run_protocol
from wer.skills import load_skill, save_skill

pytestmark = pytest.mark.slow

SHOUT = 'def shout(word: str) -> str:\n    """Write a word in capitals."""\n    return word.upper()\n'
SHOUT_TESTS = 'assert shout("a") == "A"\n'


def helped(body: str = SHOUT, tests: str = SHOUT_TESTS, *more: dict[str, str]) -> str:
    return edits(
        edit("create", body, path="scripts/shout.py"),
        edit("create", tests, path="scripts/test_shout.py"),
        edit("insert", f"- {SCRIPT}", "- Be brief."),
        *more,
    )


async def refined(folder, scribe, *, rounds=1, **options):
    async with opened_run(folder, scribe, refinement__rounds=rounds, **options) as open_:
        optimizer = open_.run.optimizer()
        best = await refine(open_.run, optimizer, open_.scanned, label="refined")
        experiences = {
            number: [found for _, found in open_.run.store.experiences(f"refine/refined/{number}")]
            for number in range(rounds)
        }
        return open_, best, experiences


async def test_the_first_round_refines_the_baseline_with_the_task_and_a_success(tmp_path):
    scribe = Scribe(actor=[note(WORKS)])

    open_, [best], _ = await refined(tmp_path / "run", scribe)

    [request] = scribe.requests("actor")
    assert scribe.requests("critic") == []
    assert open_.scanned[0].task.turns[0] in request
    assert "# A success" in request
    assert SEED.body.strip() in request
    assert best.skill.body == SEED.body.replace("- Be brief.", f"- Be brief.\n- {WORKS}")
    assert best.share == 1.0


async def test_the_critic_sees_the_whole_state_and_the_actor_its_instruction_alone(tmp_path):
    scribe = Scribe(critic=[diagnosis()], actor=[note("Try."), note(WORKS)])

    open_, [best], _ = await refined(tmp_path / "run", scribe, rounds=2)

    [critic] = scribe.requests("critic")
    task = open_.scanned[0].task
    assert task.turns[0] in critic  # x
    assert "# What the agent did" in critic and "step 1, agent: Done." in critic  # tau_i
    assert "# A success (the agent never sees it)\n" in critic and "step 1, call: " in critic  # tau*
    assert "# Verifier\npassed: false, score 0.00\n- " in critic  # v_i
    repair = scribe.requests("actor")[1]
    assert "step 1, procedural omission: The agent stopped at once." in repair
    assert "# Instruction\nTell it to act." in repair
    assert "# A success" not in repair
    assert best.share == 1.0


async def test_temperatures_are_the_papers(tmp_path):
    scribe = Scribe(critic=[diagnosis()], actor=[note("Try.")])

    await refined(tmp_path / "run", scribe, rounds=2)

    assert {(who, sampling.temperature) for who, _, sampling in scribe.asked} == {
        ("critic", 0.3),
        ("actor", 0.3),
    }
    schema = next(sampling.json_schema for who, _, sampling in scribe.asked if who == "critic")
    assert list(schema["properties"]) == [
        *("evaluation", "comparison", "step", "cause", "failure", "signature", "instruction")
    ]


async def test_an_infrastructure_failure_makes_no_edit(tmp_path):
    lost = diagnosis(failure="infrastructure failure", instruction="")
    scribe = Scribe(critic=[lost], actor=[note("Try.")])

    _, _, experiences = await refined(tmp_path / "run", scribe, rounds=2)

    [before], [after] = experiences[0], experiences[1]
    assert after.candidate.skill == before.candidate.skill
    assert after.candidate.reasoning == "infrastructure failure, step 1: The agent stopped at once."
    assert len(scribe.requests("actor")) == 1


async def test_nothing_is_asked_when_nothing_failed(tmp_path):
    scribe = Scribe(actor=[note(WORKS)])

    _, [best], experiences = await refined(tmp_path / "run", scribe, rounds=3)

    assert len(scribe.asked) == 1
    assert experiences[2][0].candidate.text == "nothing to mend: every rollout that is shown passed"
    assert best.share == 1.0


async def test_a_refused_edit_is_fed_back_once_with_the_reason(tmp_path):
    missing = edits(edit("replace", "- x", "- Not there."))
    scribe = Scribe(actor=[missing, note(WORKS)])

    _, [best], experiences = await refined(tmp_path / "run", scribe)

    _, again = scribe.requests("actor")
    assert "edit 1 (replace in SKILL.md): the anchor does not occur in the file" in again
    assert best.share == 1.0
    assert experiences[0][0].candidate.text.count("# actor\n") == 2


async def test_an_anchor_that_occurs_twice_is_refused_and_after_two_refusals_nothing_is_edited(tmp_path):
    twice = edits(edit("insert", "- x", "e"))
    scribe = Scribe(actor=[twice])

    _, [best], experiences = await refined(tmp_path / "run", scribe)

    candidate = experiences[0][0].candidate
    assert candidate.skill is None
    assert "the anchor occurs more than once" in candidate.problem
    assert len(scribe.asked) == 2
    assert best.skill == SEED


@pytest.mark.parametrize(
    ("nonsense", "reason"),
    [
        ("I think it went well.", "not JSON"),
        ("[]", "not a JSON object"),
        ("{}", "lacks 'evaluation'"),
        (diagnosis(failure="bad luck"), "must be one of procedural omission"),
        (diagnosis(step=99), "0 to 1"),
        (diagnosis(instruction=" "), "changes nothing"),
    ],
)
async def test_a_critic_that_answers_nonsense_is_told_once_and_edits_nothing(tmp_path, nonsense, reason):
    scribe = Scribe(critic=[nonsense], actor=[note("Try.")])

    _, [best], experiences = await refined(tmp_path / "run", scribe, rounds=2)

    assert len(scribe.requests("critic")) == 2
    assert reason in scribe.requests("critic")[1]
    assert experiences[1][0].candidate.skill is None
    assert reason in experiences[1][0].candidate.problem
    assert best.skill == experiences[0][0].candidate.skill


async def test_the_best_round_is_kept_and_every_round_is_a_snapshot(tmp_path):
    spoil = edits(edit("replace", "Stop.", SOMETIMES))
    scribe = Scribe(critic=[diagnosis()], actor=[note(SOMETIMES), spoil, note("Try.")])

    _, [best], experiences = await refined(tmp_path / "run", scribe, rounds=3, refinement__n=4)

    assert SOMETIMES in best.skill.body
    assert 0 < best.share < 1
    assert [found[0].reward.task for found in experiences.values()] == [best.share, 0.0, 0.0]
    snapshots = [found[0].candidate.skill.body for found in experiences.values()]
    assert [SOMETIMES in body for body in snapshots] == [True, False, False]
    assert "- Stop." in snapshots[1] and "- Try." in snapshots[2]


async def test_the_memory_tells_what_was_tried_and_what_came_of_it(tmp_path):
    scribe = Scribe(critic=[diagnosis()], actor=[note("Try."), note("Try harder."), note(WORKS)])

    await refined(tmp_path / "run", scribe, rounds=3)

    first, second = scribe.requests("critic")
    assert "1. initialisation\n   - insert in SKILL.md: - Try.\n" in first
    assert (
        "2. procedural omission: stops at once: The agent stopped at once.\n"
        "   - insert in SKILL.md: - Try harder.\n"
        "   before: 0 of 1 shown rollouts passed, mean score 0.00; "
        "after: 0 of 1 shown rollouts passed, mean score 0.00"
    ) in second
    assert "# Earlier updates" in scribe.requests("actor")[2]


async def test_each_task_has_its_own_bundle_and_memory(tmp_path):
    def named(request: str) -> str:
        return note(f"About {len(request)}.")

    scribe = Scribe(critic=[diagnosis()], actor=[named])

    open_, best, _ = await refined(tmp_path / "run", scribe, rounds=2, tasks=2)

    requests = scribe.requests("critic")
    assert len(requests) == 2
    for request, other in (requests, requests[::-1]):
        own = next(task for task in open_.scanned if task.task.turns[0] in request)
        assert other.partition("# Skill bundle")[0] not in request
        assert own.task.turns[0] not in other
    assert best[0].skill != best[1].skill


async def test_an_interrupted_run_pays_for_no_reply_twice(tmp_path):
    first = Scribe(actor=[note("Try."), note("Try.")])
    second = Scribe(actor=[note("other")])
    async with opened_run(tmp_path / "run", first) as open_:
        state = open_.scanned[0].state(open_.run.config.training)
        [before] = await open_.run.optimizer().propose([state], 1, 7)

    async with opened_run(tmp_path / "run", second) as open_:
        [after] = await open_.run.optimizer().propose([state], 1, 7)

    assert after == before
    assert second.asked == []


async def test_the_reference_never_reaches_the_executor(tmp_path):
    scribe = Scribe(critic=[diagnosis()], actor=[])
    async with opened_run(tmp_path / "run", scribe, refinement__rounds=2) as open_:
        task = open_.scanned[0].task
        reference = open_.run.scheduler.world.environments["bfcl"].reference(task)
        values = sorted(private(task, reference=reference).values)
        quoting = note(f"Use `{values[0]}`.")
        scribe._scripts["actor"] = [quoting, note("Try."), quoting, note(WORKS)]
        open_.agent.sent.clear()
        await refine(open_.run, open_.run.optimizer(), open_.scanned, label="refined")

    assert values
    assert any(
        value in request
        for _, messages, _ in scribe.asked
        for value in values
        for request in [messages[-1].content]
    )
    refusals = [request for request in scribe.requests("actor") if "That was refused" in request]
    assert len(refusals) == 2
    assert all(repr(values[0]) in refusal for refusal in refusals)
    shown = open_.sent
    assert "- Try." in shown and WORKS in shown
    assert not [value for value in values if json.dumps(value)[1:-1] in shown and not _public(task, value)]


def _public(task, value):
    return value.lower() in json.dumps([[t.name, t.description, t.parameters] for t in task.tools]).lower()


async def test_a_helper_script_is_tried_and_then_a_tool_of_the_agent(tmp_path):
    scribe = Scribe(actor=[helped(SHOUT, SHOUT_TESTS, edit("insert", f"- {WORKS}", "- Be brief."))])

    open_, [best], experiences = await refined(tmp_path / "run", scribe)

    [rollout] = experiences[0][0].rollouts
    assert set(best.skill.scripts) == {"scripts/shout.py", "scripts/test_shout.py"}
    called = [call.name for step in rollout.trajectory.steps for call in step.calls]
    assert called[0] == "script_shout"
    assert rollout.trajectory.steps[0].observations[0].text == "HELLO"
    assert "script_shout" in open_.sent and "Write a word in capitals." in open_.sent
    assert rollout.verdict.passed
    assert rollout.evidence.turns[0].calls == len(called) - 1


@pytest.mark.parametrize(
    ("body", "tests", "reason"),
    [
        (
            SHOUT.replace("upper", "lower"),
            SHOUT_TESTS,
            "the tests of scripts/shout.py fail: Error: AssertionError",
        ),
        (SHOUT, "x = 1\n", "asserts nothing"),
        ("def shout(word):\n    return word\n", SHOUT_TESTS, "no docstring"),
        (SHOUT.replace("return", "while True: pass\n    return"), SHOUT_TESTS, "more than 2 seconds"),
        (SHOUT.replace("return", "open('/tmp/x', 'w')\n    return"), SHOUT_TESTS, "fail: Error: "),
    ],
)
async def test_a_script_that_fails_its_tests_is_refused_and_fed_back_once(tmp_path, body, tests, reason):
    scribe = Scribe(actor=[helped(body, tests), note(WORKS)])

    _, [best], _ = await refined(tmp_path / "run", scribe)

    assert reason in scribe.requests("actor")[1]
    assert not best.skill.scripts
    assert best.share == 1.0


async def test_scripts_can_be_forbidden(tmp_path):
    scribe = Scribe(actor=[helped(), note(WORKS)])

    await refined(tmp_path / "run", scribe, optimizer__skiller__scripts=False)

    assert "helper scripts are not allowed" in scribe.requests("actor")[1]
    assert "scripts/" not in scribe.asked[0][1][0].content


async def test_a_bundle_is_published_byte_for_byte(tmp_path):
    scribe = Scribe(actor=[helped()])
    _, _, experiences = await refined(tmp_path / "run", scribe)
    skill = experiences[0][0].candidate.skill

    folder = save_skill(skill, tmp_path / "out")

    assert load_skill(folder) == skill
    assert (folder / "scripts" / "shout.py").read_text() == SHOUT


async def test_a_whole_run_begins_where_nothing_passes_and_publishes_the_bundle(tmp_path):
    seed = save_skill(SEED, tmp_path / "seed")
    scribe = Scribe(actor=[helped(SHOUT, SHOUT_TESTS, edit("insert", f"- {WORKS}", "- Be brief."))])
    conditions = ("none", "seed", "refined")

    async with opened_run(
        tmp_path / "run",
        scribe,
        seed_skill=str(seed),
        evaluation__conditions=conditions,
        evaluation__trials=1,
        refinement__rounds=2,
    ) as open_:
        await run_protocol(open_.run)
        passed = {condition: passed for condition, _, _, _, passed in open_.run.store.results()}

    assert [passed[condition] for condition in conditions] == [False, False, True]
    published = load_skill(tmp_path / "run" / "skills" / "refined" / "bfcl-file-system")
    assert published.scripts == {"scripts/shout.py": SHOUT, "scripts/test_shout.py": SHOUT_TESTS}
    assert WORKS in published.body
