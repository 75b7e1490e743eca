"""A skill must be a procedure: which values of a task are found in it, and which words are free."""

import pytest

from wer.leaks import Leak, private, sentence
from wer.records import Skill, Task, ToolCall, ToolSpec

MOVE = ToolSpec(
    name="mv",
    description="Move a file to a folder, for example 'archive'.",
    parameters={"type": "object", "properties": {"source": {"type": "string"}, "destination": {}}},
)


def task(*turns: str) -> Task:
    return Task(id="t", env="e", domain="d", split="train", turns=turns, tools=(MOVE,))


def call(**arguments) -> ToolCall:
    return ToolCall(name="mv", arguments=arguments)


def leaked(body: str, *turns: str, **arguments) -> list[str]:
    found = private(task(*turns), reference=[[call(**arguments)]])
    return [leak.value for leak in found.leaks(Skill(name="s", body=body))]


def test_a_file_name_of_the_reference_is_a_leak():
    assert leaked("1. Move final_report.pdf first.", source="final_report.pdf") == ["final_report.pdf"]


def test_a_plain_word_is_a_leak_only_between_quotes():
    assert leaked("1. Look into the documents.", source="documents") == []
    assert leaked("1. Look into `documents`.", source="documents") == ["documents"]


@pytest.mark.parametrize("number, leaks", [(12446, True), (3, False), (True, False), (1.255, True)])
def test_a_number_is_a_leak_when_it_is_telling(number, leaks):
    assert bool(leaked(f"1. Pass {number}.", source=number)) == leaks


def test_what_the_tools_document_themselves_is_free():
    assert leaked("1. Move it to 'archive' with `source`.", destination="archive", source="source") == []


def test_an_identifier_that_the_user_named_is_a_leak():
    assert leaked("1. Cancel #W2378156 at once.", "Please cancel #W2378156.", source="x") == ["#W2378156"]


def test_values_inside_lists_and_tables_are_found():
    assert leaked("Use a_b_1 and c_d_2.", source=["a_b_1", {"deep": "c_d_2"}]) == ["a_b_1", "c_d_2"]


def test_a_value_inside_a_longer_word_is_not_found():
    assert leaked("1. See final_report.pdf.", source="final_rep") == []


def test_a_script_of_the_skill_is_searched_too():
    found = private(task(), reference=[[call(source="final_report.pdf")]])
    skill = Skill(name="s", body="1. Run it.", scripts={"a.py": "path = 'final_report.pdf'"})
    assert found.leaks(skill) == (Leak(value="final_report.pdf", source="reference"),)


def test_the_sentence_names_five_values_and_counts_the_rest():
    leaks = [Leak(value=f"id_{number}", source="query") for number in range(7)]
    assert sentence(leaks).endswith("'id_4' (query) and 2 more")
