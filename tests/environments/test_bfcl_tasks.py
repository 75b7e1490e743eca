import importlib.util

import pytest

import wer_bfcl
from wer import plugins
from wer.errors import ConfigError, TaskError
from wer_bfcl import benchmark
from wer_bfcl.reference import reference
from wer_bfcl.tasks import PREFIX_MARK, UNDERIVABLE_MARK

DOMAINS = ("file_system", "vehicle_control", "trading_bot", "travel_booking")
FIRST_TASK = ("bfcl/multi_turn_base_0", "0206fa10e0644c54")


def make(**options):
    return wer_bfcl.wer_environments()["bfcl"](options)


def ids(env, split):
    return {domain: [task.id for task in env.tasks(domain, split)] for domain in env.domains()}


def test_the_splits_have_the_sizes_of_the_paper():
    env = make()

    train = {domain: len(found) for domain, found in ids(env, "train").items()}
    test = {domain: len(found) for domain, found in ids(env, "test").items()}

    assert env.domains() == DOMAINS
    assert train == dict(zip(DOMAINS, (12, 13, 12, 13), strict=True))
    assert test == dict(zip(DOMAINS, (38, 37, 38, 37), strict=True))


def test_the_splits_are_disjoint_and_cover_the_benchmark():
    env = make()

    everything = [name for split in ("train", "test") for found in ids(env, split).values() for name in found]

    assert sorted(everything) == sorted(f"bfcl/multi_turn_base_{number}" for number in range(200))


def test_the_same_seed_gives_the_same_split_and_another_seed_another():
    assert ids(make(), "train") == ids(make(seed=0), "train")
    assert ids(make(), "train") != ids(make(seed=1), "train")


def test_ids_and_keys_of_the_default_split_never_change():
    first = make().tasks("file_system", "train")[0]

    assert (first.id, first.key) == FIRST_TASK


def test_the_benchmark_is_read_without_being_installed():
    make().tasks("file_system", "train")

    assert importlib.util.find_spec("bfcl_eval") is None


def test_a_task_that_is_cut_is_marked_as_no_benchmark_task():
    env = make(max_turns=1)

    tasks = [task for domain in DOMAINS for split in ("train", "test") for task in env.tasks(domain, split)]

    cut = [task for task in tasks if task.id.endswith("@1")]
    assert len(cut) == 197  # three tasks of the benchmark have one turn and stay whole
    assert all(PREFIX_MARK in task.marks and len(task.turns) == 1 for task in cut)
    assert all(PREFIX_MARK not in task.marks for task in tasks if task not in cut)


def test_the_six_references_that_nobody_could_guess_are_marked():
    env = make()

    tasks = [task for domain in DOMAINS for split in ("train", "test") for task in env.tasks(domain, split)]

    marked = sorted(int(task.id.rpartition("_")[2]) for task in tasks if UNDERIVABLE_MARK in task.marks)
    assert marked == [4, 8, 18, 75, 187, 188]


def test_a_task_offers_the_tools_of_all_its_classes():
    env = make()

    sizes = {len(task.tools) for domain in DOMAINS for task in env.tasks(domain, "test")}

    assert min(sizes) == 18
    assert max(sizes) == 39


def test_a_misspelt_option_is_answered_with_the_nearest_one():
    with pytest.raises(ConfigError, match="max_turns"):
        make(max_turn=1)


def test_zero_turns_are_refused():
    with pytest.raises(ConfigError, match="max_turns"):
        make(max_turns=0)


def test_an_unknown_domain_error_lists_the_known_ones():
    with pytest.raises(ConfigError, match="file_system, vehicle_control"):
        make().tasks("files", "train")


def test_a_folder_without_the_wheel_says_what_to_do(tmp_path):
    with pytest.raises(TaskError, match="downloads it again"):
        benchmark.read(tmp_path)


def test_a_wheel_without_the_data_says_which_file_to_delete(tmp_path):
    (tmp_path / "bfcl_eval-1-py3-none-any.whl").write_bytes(b"not a zip")

    with pytest.raises(TaskError, match=r"bfcl_eval-1-py3-none-any\.whl"):
        benchmark.read(tmp_path)


def test_needed_tools_are_the_own_class_and_what_the_reference_calls_and_are_marked():
    whole = plugins.load().environments.make("bfcl", {"max_turns": 1})
    needed = plugins.load().environments.make("bfcl", {"max_turns": 1, "tools": "needed"})

    for domain in whole.domains():
        for all_tools, few_tools in zip(
            whole.tasks(domain, "test"), needed.tasks(domain, "test"), strict=True
        ):
            names = {tool.name for tool in few_tools.tools}
            calls = {call.name for turn in reference(benchmark.load(), few_tools) for call in turn}
            assert calls <= names <= {tool.name for tool in all_tools.tools}
            fewer = len(few_tools.tools) < len(all_tools.tools)
            assert fewer == any("needed classes" in mark for mark in few_tools.marks)
    sizes = [len(task.tools) for task in needed.tasks("file_system", "test")]
    assert sizes.count(18) > 30


def test_the_reference_has_the_calls_of_each_turn_that_is_kept():
    [whole] = [task for task in make().tasks("file_system", "test") if task.id == "bfcl/multi_turn_base_1"]
    [first] = [
        task for task in make(max_turns=1).tasks("file_system", "test") if task.id.startswith(f"{whole.id}@")
    ]

    calls = make().reference(whole)

    assert len(calls) == len(whole.turns)
    assert make(max_turns=1).reference(first) == calls[:1]
