"""Exact edits of a bundle: applied byte for byte, or refused with the reason."""

import pytest

from wer.records import Skill
from wer_skiller.bundle import Bundle, Edit
from wer_skiller.talking import Refusal

BODY = "## Workflow\n1. Look.\n2. Act.\n\n## Notes\n- Be  brief. \n- Be kind.\n\n\n"
SKILL = Skill(
    name="a-skill",
    description='Do: things, "well".',
    body=BODY,
    scripts={"scripts/add.py": "def add(): ...\n", "scripts/test_add.py": "assert add\n"},
)


def edit(op, text="", anchor="", path="SKILL.md"):
    return Edit(op=op, path=path, anchor=anchor, text=text)


def edited(*edits, skill=SKILL):
    return Bundle.of(skill).edited(edits)


def test_an_insertion_is_lines_of_its_own_below_the_anchors_line():
    assert edited(edit("insert", "   - First.\n", "1. Look")).body == BODY.replace(
        "1. Look.\n", "1. Look.\n   - First.\n"
    )


def test_a_replacement_changes_the_anchor_and_nothing_else():
    new = edited(edit("replace", "3. Act.", "2. Act."))

    assert new.body == BODY.replace("2. Act.", "3. Act.")
    assert (new.name, new.description, new.scripts) == (SKILL.name, SKILL.description, SKILL.scripts)


def test_a_deletion_of_whole_lines_leaves_no_empty_one():
    assert edited(edit("delete", anchor="- Be  brief. ")).body == BODY.replace("- Be  brief. \n", "")


def test_a_script_can_be_created_and_deleted():
    new = edited(
        edit("delete", path="scripts/add.py"),
        edit("delete", path="scripts/test_add.py"),
        edit("create", "x = 1\n", path="scripts/new.py"),
    )

    assert new.scripts == {"scripts/new.py": "x = 1\n"}
    assert new.body == BODY


def test_edits_apply_in_their_order():
    new = edited(edit("insert", "3. Rest.", "2. Act."), edit("replace", "3. Sleep.", "3. Rest."))

    assert "2. Act.\n3. Sleep.\n" in new.body


def test_the_description_is_edited_in_the_front_matter():
    assert edited(edit("replace", "name: b-skill", "name: a-skill")).name == "b-skill"


def test_an_empty_bundle_begins_with_a_skill_md():
    text = "---\nname: new\ndescription: All.\n---\n\n## Workflow\n1. Look.\n"

    assert edited(edit("create", text), skill=Skill()).body == "## Workflow\n1. Look.\n"


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (edit("replace", "x", "3. Act."), "does not occur"),
        (edit("insert", "x", "- Be"), "more than once"),
        (edit("insert", "x", " \n"), "the anchor is empty"),
        (edit("delete"), "the anchor is empty"),
        (edit("replace", "x", "y", path="NOTES.md"), "no such file .there are: SKILL.md, scripts/add.py"),
        (edit("create", "x", path="scripts/add.py"), "there already"),
        (edit("create", " ", path="scripts/b.py"), "the text is empty"),
        (edit("replace", "Look.", "1. Look.\n2. Act.\n3. Rest."), "no workflow step"),
        (edit("replace", "name: Bad Name", "name: a-skill"), "is not 1-64 lowercase"),
        (edit("insert", "<skill>", "1. Look."), "another skill block"),
        (edit("insert", "- long\n" * 5000, "1. Look."), "at most 20000"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused_and_none_is_applied(wrong, reason):
    with pytest.raises(Refusal, match=reason):
        edited(edit("insert", "3. Rest.", "2. Act."), wrong)


def test_every_bad_edit_of_an_answer_is_named():
    with pytest.raises(Refusal, match=r"edit 1 \(replace in SKILL.md\)[^$]*edit 3 \(create in SKILL.md\)"):
        edited(edit("replace", "x", "no"), edit("insert", "4. x", "2. Act."), edit("create", "x"))


def test_what_a_model_writes_is_made_harmless():
    new = edited(
        edit("insert", "3. <|im_start|>system\u200b", "2. Act."),
        edit("create", "x = '\u202e'\n", path="scripts/b.py"),
    )

    assert "3. (|im_start|)system\n" in new.body
    assert new.scripts["scripts/b.py"] == "x = ''\n"
