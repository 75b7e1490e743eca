"""Edits against the one base: exact anchors, sections, and what clashes with what."""

import pytest
from support.trace2skill_world import BASE, edit, note

from wer_trace2skill.asking import Refusal
from wer_trace2skill.conflicts import conflicts, peaceful, ranked, united
from wer_trace2skill.edits import DEEPENING, OPERATIONS, Edit, applied, read_edit


def read(found, *, base=BASE.body, operations=OPERATIONS, support=("a",)):
    made = read_edit(found, base, operations=operations)
    return Edit(
        op=made.op,
        section=made.section,
        anchor=made.anchor,
        text=made.text,
        lesson=made.lesson,
        support=frozenset(support),
    )


def test_all_edits_of_a_patch_are_made_at_once_and_the_rest_stays_byte_for_byte():
    edits = [
        read(edit("insert", "1. Look first.", anchor="1. Read the request.")),
        read(edit("replace", "Answer shortly", anchor="2. Answer")),
        read(note("Copy last.")),
        read(note("Ask nobody.", section="Limits")),
    ]

    assert applied(edits, BASE.body) == (
        "## Workflow\n1. Read the request.\n1. Look first.\nAnswer shortly.\n\n"
        "## Notes\n- Be brief.\n- Copy last.\n\n## Limits\n- Ask nobody.\n"
    )


def test_a_deleted_line_leaves_no_empty_one():
    assert applied([read(edit("delete", anchor="2. Answer."))], BASE.body) == BASE.body.replace(
        "2. Answer.\n", ""
    )


def test_a_line_can_go_while_its_section_grows():
    edits = [read(edit("delete", anchor="- Be brief.")), read(note("Be exact."))]

    assert conflicts(edits, BASE.body) == ()
    assert applied(edits, BASE.body).endswith("## Notes\n- Be exact.\n")


def test_a_section_is_written_whole_under_its_own_heading():
    made = read(edit("section", "## Workflow\n1. List.\n2. Copy.", section="Workflow"))

    assert applied([made], BASE.body) == "## Workflow\n1. List.\n2. Copy.\n\n## Notes\n- Be brief.\n"


def test_sections_of_an_empty_base_begin_with_the_workflow():
    edits = [read(note("Be exact."), base=""), read(note("List.", section="## Workflow"), base="")]

    assert applied(edits, "") == "## Workflow\n1. List.\n\n## Notes\n- Be exact.\n"


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ("x", "object of texts"),
        ({**note("x"), "text": 3}, "object of texts"),
        (edit("append", "x"), "must be one of"),
        (edit("section", "x"), "must be one of insert, replace, delete, note"),
        (note("  "), "'text' is empty"),
        (edit("insert", "x"), "anchor is empty"),
        (edit("insert", "x", anchor="3. Nothing."), "is not in the skill"),
        (edit("replace", "x", anchor="##"), "more than once"),
    ],
)
def test_an_edit_that_can_not_be_made_is_refused(found, reason):
    with pytest.raises(Refusal, match=reason):
        read(found, operations=DEEPENING)


@pytest.mark.parametrize(
    "other",
    [
        edit("delete", anchor="1. Read the request."),
        edit("replace", "y", anchor="the request"),
        edit("insert", "y", anchor="Read the"),
        edit("section", "1. y", section="workflow"),
        note("1. y", section="Workflow") | {"op": "section"},
    ],
)
def test_two_edits_of_one_place_clash_when_one_takes_it_away(other):
    one = read(edit("replace", "x", anchor="Read the request"))

    assert conflicts([one, read(other)], BASE.body) == ((0, 1),)


def test_additions_in_one_place_go_together_and_the_first_comes_first():
    edits = [read(note("one")), read(note("two")), read(edit("insert", "- three", anchor="- Be brief."))]

    assert conflicts(edits, BASE.body) == ()
    assert applied(edits, BASE.body).endswith("- Be brief.\n- one\n- two\n- three\n")


def test_two_texts_of_a_new_section_clash_only_when_one_is_all_of_it():
    added, whole = read(note("x", section="Limits")), read(edit("section", "- y", section="limits"))

    assert conflicts([added, added], BASE.body) == ()
    assert conflicts([added, whole], BASE.body) == ((0, 1),)


def test_edits_that_say_the_same_become_one_with_all_trajectories_behind_it():
    edits = [
        read(note("- Copy last."), support=("a",)),
        read(edit("insert", "copy  LAST", anchor="- Be brief."), support=("b",)),
        read(note("Other."), support=("c",)),
    ]

    found = united(edits, BASE.body)

    assert [(each.text, sorted(each.support)) for each in found] == [
        ("- Copy last.", ["a", "b"]),
        ("Other.", ["c"]),
    ]


def test_of_two_that_clash_the_more_prevalent_one_is_taken():
    weak = read(edit("replace", "x", anchor="2. Answer."))
    strong = read(edit("delete", anchor="2. Answer."), support=("b", "c"))
    free = read(note("z"))

    assert peaceful([weak, free, strong], BASE.body) == ((strong, free), (weak,))
    assert ranked([weak, free, strong]) == (strong, weak, free)
