"""``--gpus``: who may use which GPUs, refused when two would share one or a machine has fewer."""

import pytest

from wer.cli.options import Settings
from wer.errors import ConfigError
from wer.gpus import assigned, check_present, split_assignments


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("writer=0-3,executor=4-7", {"writer": "0-3", "executor": "4-7"}),
        ("writer=0,2,5-7,executor=1", {"writer": "0,2,5-7", "executor": "1"}),
        (" writer = 0 , executor = 1 ", {"writer": "0", "executor": "1"}),
    ],
)
def test_what_the_option_says_becomes_the_table_gpus(text, table):
    assert split_assignments(text) == table


@pytest.mark.parametrize("text", ["", ",", "0-3", "writer=0,executor=1,writer=2"])
def test_an_option_that_gives_gpus_to_nobody_or_twice_is_refused(text):
    with pytest.raises(ConfigError, match="--gpus"):
        split_assignments(text)


def test_ranges_and_numbers_are_the_gpus_of_a_role():
    assert assigned({"writer": "0-2,5", "executor": "3"}) == {"writer": (0, 1, 2, 5), "executor": (3,)}


def test_a_role_can_be_taken_out_of_a_presets_assignment():
    config = Settings(preset="paper-open", gpus="writer=").resolve()

    assert assigned(config.gpus) == {"executor": (4, 5, 6, 7)}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"writer": "0-3", "executor": "3-7"}, "writer and executor both have GPU 3"),
        ({"writer": "3-1"}, "expected numbers and ranges"),
        ({"writer": "0-"}, "expected numbers and ranges"),
        ({"writer": "all"}, "expected numbers and ranges"),
        ({"writer": "0-99999999999"}, "expected numbers and ranges"),
        ({"writer": "1,1"}, "names a GPU twice"),
        ({"executer": "1"}, "no role named 'executer'; did you mean 'executor'"),
    ],
)
def test_an_assignment_that_cannot_be_is_refused_with_the_reason(table, message):
    with pytest.raises(ValueError, match=message):
        assigned(table)


def test_the_option_takes_the_place_of_a_presets_assignment():
    config = Settings(preset="paper-open", gpus="writer=0-1,executor=2-3").resolve()

    assert config.gpus == {"writer": "0-1", "executor": "2-3"}


def test_the_same_gpu_for_two_roles_is_a_configuration_error_with_its_key():
    with pytest.raises(ConfigError, match=r"gpus: writer and executor both have GPU 1"):
        Settings(preset="cpu", gpus="writer=0-1,executor=1").resolve()


def test_more_gpus_than_the_machine_has_are_named():
    (problem,) = check_present({"writer": "0-1", "executor": "2-4"}, 3)

    assert problem == (
        "gpus.executor names GPU 3, 4 and this machine has GPUs 0-2. Give it fewer with --gpus."
    )
