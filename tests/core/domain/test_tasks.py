import json

import pytest

from wer.domain.tasks import Call, read_tasks, with_splits
from wer.errors import TaskError


@pytest.fixture
def file(tmp_path):
    def write(*lines):
        path = tmp_path / "tasks.jsonl"
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        path.write_text("\n".join(texts) + "\n")
        return path

    return write


def test_a_line_has_all_that_a_task_may_have(file):
    [row] = read_tasks(
        file(
            {
                "id": "a",
                "turns": ["Hello.", "Go."],
                "state": {"x": 1},
                "expect": [1, None],
                "reference": [[], [{"name": "go", "arguments": {"fast": True}}]],
                "domain": "d",
                "split": "test",
            }
        )
    )

    assert (row.id, row.turns, row.state, row.expect) == ("a", ("Hello.", "Go."), {"x": 1}, [1, None])
    assert row.reference == ((), (Call(name="go", arguments={"fast": True}),))
    assert (row.domain, row.split) == ("d", "test")


def test_a_query_is_one_turn_and_its_reference_a_plain_list_of_calls(file):
    [row] = read_tasks(file({"id": "a", "query": "Go.", "reference": [{"name": "go"}]}))

    assert row.turns == ("Go.",)
    assert row.reference == ((Call(name="go"),),)


def test_doing_nothing_can_be_the_reference_and_no_reference_is_none(file):
    nothing, unknown = read_tasks(
        file({"id": "a", "query": "Hi.", "reference": []}, {"id": "b", "query": "Hi."})
    )

    assert nothing.reference == ((),)
    assert unknown.reference is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{nope", "not JSON"),
        ('{"id": "b", "query": "Go.", "expect": 1e999}', "not JSON"),
        ('{"id": "b", "query": "\\ud83d"}', "not JSON"),
        ({"id": "b\nc", "query": "Go."}, r"id is 'b\\nc'; expected printable"),
        ({"id": "b", "query": "Go.", "domain": " d"}, "domain is ' d'; expected printable"),
        ({"id": "b", "query": "Go.", "expects": 1}, "did you mean 'expect'"),
        ("[1]", "not a JSON object"),
        ('{"id": "b", "query": "x", "state": {"y": NaN}}', "NaN is not JSON"),
        ({"id": "b"}, "expected either query"),
        ({"id": "b", "query": "x", "turns": ["y"]}, "expected either query"),
        ({"id": "b", "turns": ["y", " "]}, "not empty"),
        ({"query": "x"}, "missing key 'id'"),
        ({"id": " ", "query": "x"}, "the id is empty"),
        ({"id": 3, "query": "x"}, "id is 3"),
        ({"id": "b", "query": "x", "stat": {}}, "unknown key 'stat'.*did you mean 'state'"),
        ({"id": "b", "query": "x", "state": []}, "state is"),
        ({"id": "b", "query": "x", "split": "dev"}, "split is 'dev'; expected train or test"),
        ({"id": "a", "query": "x"}, "the id 'a' is also that of line 1"),
        ({"id": "b", "query": "x", "reference": "go"}, "reference is no list"),
        ({"id": "b", "query": "x", "reference": ["go"]}, "the reference has 'go'"),
        ({"id": "b", "query": "x", "reference": [{"nam": "go"}]}, r"unknown key 'nam' in \[reference\]"),
        ({"id": "b", "turns": ["x", "y"], "reference": [{"name": "go"}]}, "a list of 2 lists of calls"),
    ],
)
def test_a_faulty_line_is_named_by_its_number(file, line, message):
    path = file({"id": "a", "query": "Go."}, "", line)

    with pytest.raises(TaskError, match=f"(?s)tasks.jsonl, line 3: .*{message}"):
        read_tasks(path)


def test_all_faulty_lines_are_named_at_once(file):
    with pytest.raises(TaskError, match=r"(?s)line 1: .*line 2: "):
        read_tasks(file("{", "{"))


def test_a_file_that_is_missing_or_empty_is_refused(tmp_path, file):
    with pytest.raises(TaskError, match="cannot read the tasks"):
        read_tasks(tmp_path / "none.jsonl")
    with pytest.raises(TaskError, match="has no task"):
        read_tasks(file(""))


def test_of_the_tasks_without_a_split_60_percent_are_for_training_the_same_ones_every_time(file):
    rows = read_tasks(file(*({"id": f"t{i}", "query": "Go."} for i in range(30))))

    once, again = with_splits(rows, seed=0), with_splits(rows, seed=0)

    assert once == again
    assert [row.split for row in once].count("train") == 18
    assert with_splits(rows, seed=1) != once


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_even_a_few_tasks_without_a_split_have_one_for_training_and_one_for_the_test(file, count):
    rows = read_tasks(file(*({"id": f"t{i}", "query": "Go."} for i in range(count))))

    assert {row.split for row in with_splits(rows, seed=0)} == {"train", "test"}


def test_a_split_that_is_written_stays(file):
    rows = read_tasks(file(*({"id": f"t{i}", "query": "Go.", "split": "train"} for i in range(3))))

    assert [row.split for row in with_splits(rows, seed=0)] == ["train"] * 3


def test_only_a_line_feed_ends_a_line(file):
    [first, second] = read_tasks(
        file('{"id": "a", "query": "one\u2028two\x85three"}\r', '{"id": "b", "query": "Go."}\r')
    )

    assert (first.turns, second.id) == (("one\u2028two\x85three",), "b")
