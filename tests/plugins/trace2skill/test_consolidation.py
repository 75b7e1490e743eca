"""Trace2Skill step by step, with a scripted model: analysts, the merge hierarchy, and the skill that comes of it."""

from __future__ import annotations

import json

import pytest
from attrs import evolve
from support.trace2skill_world import (
    BASE,
    Writer,
    diagnosed,
    edit,
    ids,
    note,
    patch,
    reference,
    setup,
    state,
    supports,
)

from wer.contracts import Consolidating, Notebook
from wer.errors import ConfigError, ModelError, PromptTooLong
from wer.plugins import load
from wer.records import NO_SKILL


def make(given):
    return load().optimizers.make("trace2skill", given)


async def consolidate(say, states, *, notes=None, play=None, **options):
    """The skill, the model with all that it was asked, and the report."""
    writer, notes = Writer(say), notes or Notebook()
    given = setup(writer, notes=notes, **options)
    optimizer = make(evolve(given, reference=play) if play else given)
    skill = await optimizer.consolidate(states, 7)
    [report] = [json.loads(text) for key, text in notes._texts.items() if key.startswith("consolidation")]
    return skill, writer, report


def keeping(**words):
    """A merger that keeps every edit; words stand for the texts that it writes anew."""

    def answer(request):
        shown = ids(request)
        return patch(
            *[note(words.get(text, text), **{"from": [each]}) for each, text in shown.items()], dropped=[]
        )

    return answer


async def test_every_trajectory_has_its_analyst_and_all_see_the_same_base():
    def say(who, request):
        return {"success": patch(note("Copy last.")), "error": diagnosed(note("Don't stop early."))}.get(
            who
        ) or keeping()(request)

    skill, writer, report = await consolidate(say, [state("t1", True, False), state("t2", False)])

    assert [who for who, _, _ in writer.asked] == ["success", "error", "error", "merge"]
    assert all("2. Answer.\n\n## Notes" in request for request in writer.requests("success"))
    assert all("nothing was copied" in request for request in writer.requests("error"))
    assert skill == evolve(BASE, body=BASE.body + "- Don't stop early.\n- Copy last.\n")
    assert [len(each["support"]) for each in report["edits"]] == [2, 1]


async def test_a_success_analyst_is_asked_once_and_sees_no_verdict():
    skill, writer, report = await consolidate(lambda *_: "no json", [state("t1", True)])

    assert len(writer.asked) == 1
    assert "# Verifier" not in writer.requests("success")[0]
    assert report["counts"] == {"nonsense": 1}
    assert skill == BASE


async def test_an_error_analyst_compares_with_the_reference_which_no_success_analyst_sees():
    def say(who, request):
        return diagnosed(note("Copy.")) if who == "error" else patch(note("List."))

    _, writer, _ = await consolidate(say, [state("t1", False), state("t2", True)], play=reference(), fan_in=2)

    assert "# A success" in writer.requests("error")[0]
    assert "# A success" not in writer.requests("success")[0]


async def test_a_reference_that_does_not_pass_is_none():
    _, writer, _ = await consolidate(
        lambda *_: diagnosed(note("Copy.")), [state("t1", False)], play=reference(good=False)
    )

    assert "# A success" not in writer.requests("error")[0]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"cause": " "}, "'cause' is empty"),
        ({"step": 2}, "must be 0 to 1"),
        ({"step": True}, "must be 0 to 1"),
        ({"step": 0}, "the agent did call tools"),
        ({"quote": "copy is done"}, "does not occur in step 1"),
        ({"quote": ""}, "does not occur in step 1"),
        ({"fix": 3}, "a step of the success, 0 to 2"),
        ({"fix": 1}, "made the calls of step 1"),
        ({"fix": 0}, "the success makes the calls"),
    ],
)
async def test_a_failure_whose_cause_is_not_verified_gives_no_patch(changes, reason):
    skill, writer, report = await consolidate(
        lambda *_: diagnosed(note("Copy."), **changes), [state("t1", False)], play=reference()
    )

    assert skill == BASE
    assert report["counts"] == {"unverified cause": 1}
    assert report["problem"] == "no analyst gave a valid patch"
    assert len(writer.asked) == 3
    assert reason in writer.requests("error")[-1]


async def test_an_error_analyst_goes_on_until_its_cause_is_verified():
    answers = [diagnosed(note("Copy."), quote="nowhere"), diagnosed(note("Copy."))]

    skill, writer, report = await consolidate(
        lambda *_: answers.pop(0), [state("t1", False)], play=reference()
    )

    assert len(writer.asked) == 2
    assert "- Copy." in skill.body
    assert report["counts"] == {}


async def test_one_turn_is_the_ablation_without_a_loop():
    _, writer, _ = await consolidate(lambda *_: "?", [state("t1", False)], error_turns=1)

    assert len(writer.asked) == 1


async def test_an_analyst_that_answers_for_another_skill_gives_no_patch_and_is_counted():
    def say(who, request):
        return patch(note("Mine."), skill="invoices") if "Do t1." in request else patch(note("Copy last."))

    skill, _, report = await consolidate(say, [state("t1", True), state("t2", True)])

    assert "Mine" not in skill.body
    assert "Copy last." in skill.body
    assert (report["trajectories"], report["patches"]) == (2, 1)
    assert report["counts"] == {"another skill": 1}


async def test_an_edit_with_a_bad_anchor_goes_and_the_rest_of_its_patch_stays():
    answer = patch(
        edit("insert", "x", anchor="9. Nowhere."), edit("insert", "y", anchor="##"), note("Copy last.")
    )

    skill, _, report = await consolidate(lambda *_: answer, [state("t1", True)])

    assert skill.body == BASE.body + "- Copy last.\n"
    assert report["counts"] == {"bad edit": 2}


async def test_an_edit_that_quotes_values_of_its_task_is_refused():
    answer = patch(note("Copy t1_77.txt."), note("Copy last.", lesson="t1_77.txt was copied."))

    skill, _, report = await consolidate(lambda *_: answer, [state("t1", True)])

    assert skill.body == BASE.body + "- Copy last.\n"
    assert report["counts"] == {"leak": 1}
    assert report["edits"][0]["lesson"] == ""


async def test_one_patch_alone_needs_no_merger():
    _, writer, report = await consolidate(lambda *_: patch(note("Copy last.")), [state("t1", True)])

    assert [who for who, _, _ in writer.asked] == ["success"]
    assert report["levels"] == 0


async def test_patches_are_merged_level_by_level_and_support_is_carried_through():
    def say(who, request):
        if who != "merge":
            return patch(note("Copy last.") if "Do t5." not in request else note("Rare."))
        return keeping()(request)

    skill, writer, report = await consolidate(say, [state(f"t{n}", True) for n in range(1, 6)], fan_in=2)

    merges = writer.requests("merge")
    assert report["levels"] == 3
    assert [supports(request) for request in merges] == [
        {"Copy last.": 2},
        {"Copy last.": 2},
        {"Copy last.": 4},
        {"Copy last.": 4, "Rare.": 1},
    ]
    assert [each["support"] for each in report["edits"]] == [["t1-0", "t2-0", "t3-0", "t4-0"], ["t5-0"]]
    assert report["counts"]["duplicates"] == 3
    assert skill.body == BASE.body + "- Copy last.\n- Rare.\n"


async def test_a_lesson_in_other_words_gathers_the_support_of_all_that_it_was_made_from():
    def say(who, request):
        if who != "merge":
            return patch(note("Copy at the end." if "Do t1." in request else "Copy last."))
        return patch(note("Copy when all else is done.", **{"from": ["E1", "E2", "E9"]}), dropped=[])

    skill, _, report = await consolidate(say, [state("t1", True), state("t2", True)])

    assert skill.body == BASE.body + "- Copy when all else is done.\n"
    assert [each["support"] for each in report["edits"]] == [["t1-0", "t2-0"]]


async def test_a_conflict_is_shown_to_the_merger_and_fed_back_while_it_lasts():
    def say(who, request):
        if who != "merge":
            text = "2. Say yes." if "Do t1." in request else "2. Say no."
            return patch(edit("replace", text, anchor="2. Answer."))
        shown = ids(request) or {"E1": "2. Say yes.", "E2": "2. Say no."}
        both = [
            edit("replace", text, anchor="2. Answer.", **{"from": [each]}) for each, text in shown.items()
        ]
        return patch(*(both if "# Conflicts" in request else both[:1]), dropped=[])

    skill, writer, report = await consolidate(say, [state("t1", True), state("t2", True)])

    first, second = writer.requests("merge")
    assert "E1 and E2" in first
    assert "edits 1 and 2 change the same place" in second
    assert skill.body == BASE.body.replace("2. Answer.", "2. Say yes.")
    assert report["counts"] == {}


async def test_of_a_conflict_that_the_merger_leaves_the_weaker_side_is_withheld():
    def say(who, request):
        if who != "merge":
            text = "2. Say yes." if "Do t1." in request else "2. Say no."
            return patch(edit("replace", text, anchor="2. Answer."))
        yes = edit("replace", "2. Say yes.", anchor="2. Answer.", **{"from": ["E2"]})
        no = edit("replace", "2. Say no.", anchor="2. Answer.", **{"from": ["E1"]})
        return patch(yes, no, dropped=[])

    skill, _, report = await consolidate(say, [state(f"t{n}", True) for n in (1, 2, 3)])

    assert skill.body == BASE.body.replace("2. Answer.", "2. Say no.")
    assert report["counts"] == {"conflict": 1, "conflicts withheld": 1, "duplicates": 1}


async def test_a_recurring_lesson_that_the_merger_forgets_is_carried_over_and_a_single_one_is_not():
    def say(who, request):
        if who != "merge":
            return patch(note("Rare.") if "Do t1." in request else note("Copy last."))
        return patch(dropped=[])

    skill, _, report = await consolidate(say, [state(f"t{n}", True) for n in (1, 2, 3)])

    assert skill.body == BASE.body + "- Copy last.\n"
    assert report["counts"] == {"carried over": 1, "duplicates": 1}


async def test_a_recurring_lesson_that_the_merger_drops_as_contradicted_stays_away():
    def say(who, request):
        if who != "merge":
            return patch(note("Ask first.") if request.count("Do t1.") else note("Copy last."))
        return patch(dropped=["E1"])

    skill, _, _ = await consolidate(say, [state(f"t{n}", True) for n in (1, 2, 3)])

    assert skill == BASE


async def test_a_merged_edit_that_comes_of_nothing_given_is_refused():
    def say(who, request):
        if who != "merge":
            return patch(note(f"Copy last. {request.count('Do t1.') * 'Really.'}"))
        return patch(note("My own idea.", **{"from": ["E7"]}), note("Copy.", **{"from": ["E1"]}), dropped=[])

    skill, _, report = await consolidate(say, [state("t1", True), state("t2", True)])

    assert skill.body == BASE.body + "- Copy.\n"
    assert report["counts"] == {"invented": 1}


@pytest.mark.parametrize(
    "answer", ["nonsense", patch(note("x", **{"from": ["E1"]}), skill="invoices", dropped=[])]
)
async def test_patches_are_merged_by_program_when_the_merger_answers_nothing_usable(answer):
    def say(who, request):
        if who == "merge":
            return answer
        text = "2. Say yes." if "Do t1." in request else "2. Say no."
        return patch(edit("replace", text, anchor="2. Answer."), note("Copy last."))

    skill, writer, report = await consolidate(say, [state("t1", True), state("t2", True)])

    assert len(writer.requests("merge")) == 2
    assert skill.body == BASE.body.replace("2. Answer.", "2. Say yes.") + "- Copy last.\n"
    assert report["counts"]["merged by program"] == 1
    assert report["counts"]["conflicts withheld"] == 1


async def test_the_least_prevalent_edits_go_when_the_skill_gets_too_long():
    def say(who, request):
        if who == "merge":
            return keeping()(request)
        return patch(note("word " * 15)) if "Do t1." in request else patch(note("Copy last."))

    skill, _, report = await consolidate(say, [state(f"t{n}", True) for n in (1, 2, 3)], max_words=20)

    assert skill.body == BASE.body + "- Copy last.\n"
    assert report["counts"] == {"duplicates": 1, "edits not applied": 1}
    assert "at most 20" in report["problem"]


async def test_an_edit_that_leaves_no_skill_is_not_applied():
    gone = edit("delete", anchor="1. Read the request.\n2. Answer.")

    skill, _, report = await consolidate(lambda *_: patch(gone, note("Copy last.")), [state("t1", True)])

    assert skill.body == BASE.body + "- Copy last.\n"
    assert "no workflow step" in report["problem"]


async def test_no_edit_can_rename_the_skill():
    renamed = edit("replace", "name: other\n## Workflow", anchor="## Workflow")

    skill, _, _ = await consolidate(lambda *_: patch(renamed), [state("t1", True)])

    assert skill.name == "files"


async def test_without_a_base_a_skill_is_created_with_whole_sections_and_a_description():
    def say(who, request):
        if who != "merge":
            return patch(note("List.", section="Workflow"), note("Copy last."), skill="world-of-files")
        steps = edit("section", "1. List.\n2. Copy.", section="Workflow", **{"from": ["E1"]})
        return patch(
            steps,
            note("Copy last.", **{"from": ["E2"]}),
            skill="world-of-files",
            description="Files.",
            dropped=[],
        )

    states = [state("t1", True, skill=NO_SKILL), state("t2", True, skill=NO_SKILL)]
    skill, writer, _ = await consolidate(say, states)

    assert (skill.name, skill.description) == ("world-of-files", "Files.")
    assert skill.body == "## Workflow\n1. List.\n2. Copy.\n\n## Notes\n- Copy last.\n"
    assert "weak draft" in next(messages[0].content for who, messages, _ in writer.asked if who == "merge")


async def test_a_weak_draft_is_rewritten_in_mode_create_and_not_in_mode_deepen():
    def say(who, request):
        if who != "merge":
            return patch(note("List.", section="Workflow"))
        return patch(edit("section", "1. List.", section="Workflow", **{"from": ["E1"]}), dropped=[])

    states = [state("t1", True), state("t2", True)]
    created, _, _ = await consolidate(say, states, mode="create")
    deepened, _, report = await consolidate(say, states)

    assert created.body == "## Workflow\n1. List.\n\n## Notes\n- Be brief.\n"
    assert deepened.body == BASE.body.replace("2. Answer.", "2. Answer.\n1. List.")
    assert report["counts"]["merged by program"] == 1


async def test_an_empty_base_stays_empty_when_nothing_came():
    skill, _, _ = await consolidate(lambda *_: "?", [state("t1", True, skill=NO_SKILL)])

    assert skill == NO_SKILL


@pytest.mark.parametrize(("analysts", "asked"), [("success", ["success"]), ("error", ["error"])])
async def test_one_kind_of_analysts_is_the_papers_ablation(analysts, asked):
    def say(who, request):
        return patch(note("x")) if who == "success" else diagnosed(note("x"))

    _, writer, _ = await consolidate(say, [state("t1", True, False)], analysts=analysts)

    assert [who for who, _, _ in writer.asked] == asked


async def test_few_patches_come_evenly_from_the_tasks():
    states = [state("t1", True, True), state("t2", True, True)]

    _, writer, report = await consolidate(lambda *_: patch(note("x")), states, max_patches=2)

    assert report["trajectories"] == 2
    assert sorted(request.split("user: Do ")[1][:2] for request in writer.requests("success")) == ["t1", "t2"]


async def test_an_interrupted_consolidation_pays_nothing_twice():
    notes, broken = Notebook(), True

    def say(who, request):
        if who != "merge":
            return (
                patch(note("Copy last.")) if who == "success" else diagnosed(note("Copy."), quote="nowhere")
            )
        if broken:
            raise ModelError("the line is dead")
        return keeping()(request)

    states = [state("t1", True, False), state("t2", True)]
    with pytest.raises(ModelError):
        await make(setup(Writer(say), notes=notes)).consolidate(states, 7)
    broken = False
    skill, writer, _ = await consolidate(say, states, notes=notes)
    again, idle, _ = await consolidate(say, states, notes=notes)

    assert [who for who, _, _ in writer.asked] == ["merge"]
    assert idle.asked == []
    assert skill == again == evolve(BASE, body=BASE.body + "- Copy last.\n")


async def test_a_trajectory_that_does_not_fit_is_left_out_and_none_at_all_is_an_error():
    long = state("t1", True)
    [seen] = long.evidence
    step = evolve(seen.trajectory.steps[0], text="word " * 4000)
    long = evolve(long, evidence=(evolve(seen, trajectory=evolve(seen.trajectory, steps=(step,))),))

    def say(*_):
        return patch(note("Copy last."))

    _, _, report = await consolidate(say, [long, state("t2", True)], max_prompt_tokens=2000)
    with pytest.raises(PromptTooLong, match="never truncates"):
        await consolidate(say, [long], max_prompt_tokens=2000)

    assert (report["patches"], report["counts"]) == (1, {"too long": 1})


async def test_a_group_that_is_too_long_for_one_request_is_merged_by_halves():
    def say(who, request):
        if who == "merge":
            return keeping()(request)
        task = request.split("user: Do ")[1][:2]
        return patch(note(f"{task} " * 300))

    states = [state(f"t{n}", True) for n in range(1, 5)]
    _, writer, report = await consolidate(say, states, max_prompt_tokens=1700, max_words=2000)

    assert [len(ids(request)) for request in writer.requests("merge")] == [2, 2]
    assert report["counts"]["merged by program"] == 1
    assert len(report["edits"]) == 4


async def test_what_happened_is_said_in_a_line():
    lines = []

    await make(setup(Writer(lambda *_: patch(note("x"))), lines=lines)).consolidate([state("t1", True)], 1)

    assert lines == ["Trace2Skill: 1 trajectories, 1 patches, 0 levels, 1 edits applied"]


async def test_a_single_state_gets_candidates_from_its_own_trajectories():
    given = setup(Writer(lambda who, _: patch(note("x"))))

    [good] = await make(given).propose([state("t1", True)], 2, 0)
    [[bad]] = await make(setup(Writer(lambda *_: "?"))).propose([state("t1", False)], 1, 0)

    assert [each.skill.body for each in good] == [BASE.body + "- x\n"] * 2
    assert (bad.skill, bad.well_formed, bad.problem) == (None, False, "no analyst gave a valid patch")
    assert bad.usage.calls == 3


async def test_it_consolidates_and_does_not_learn():
    optimizer = make(setup(Writer(lambda *_: "?")))

    assert isinstance(optimizer, Consolidating)
    assert not optimizer.learns


def test_options_are_checked():
    with pytest.raises(ConfigError, match="fan_in"):
        make(setup(Writer(lambda *_: "?"), fan_in=1))
