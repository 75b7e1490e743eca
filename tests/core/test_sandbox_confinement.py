"""The parts of the confinement that only a look from outside can check."""

import sys

import pytest

from wer_sandbox import seccomp, syscalls
from wer_sandbox.confine import Confinement
from wer_sandbox.domains import call


def test_a_working_directory_on_the_module_path_opens_nothing(monkeypatch):
    monkeypatch.setattr(sys, "path", ["/", "", ".", "relative", *sys.path])

    readable = Confinement().readable

    assert not {"/", "", ".", "relative"} & set(readable)


def test_the_filter_knows_every_call_of_the_list_once():
    columns = list(zip(*syscalls.DENIED.values(), strict=True))

    for column in columns:
        numbers = [number for number in column if number is not None]
        assert len(numbers) == len(set(numbers))
        assert max(numbers) < syscalls.FIRST_COMMON


def test_a_companion_may_do_nothing_that_the_list_does_not_know():
    assert syscalls.DENIED.keys() > syscalls.COMPANION_MAY


@pytest.mark.parametrize("companion", [False, True])
def test_jumps_of_the_filter_stay_inside_it(companion):
    code = seccomp.assemble(read_only=True, companion=companion)

    for place in range(0, len(code) - 8, 8):
        yes, no = code[place + 2], code[place + 3]
        assert place // 8 + 1 + max(yes, no) < len(code) // 8


def test_a_domain_is_called_by_exposed_name_only():
    class Domain:
        exposed = ("double",)

        def double(self, number):
            return 2 * number

    assert call(Domain(), "double", {"number": 4}) == 8
