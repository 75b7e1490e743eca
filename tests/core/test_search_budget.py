"""A budget for the search alone: methods are compared at equal cost, and what was paid for counts."""

import pytest
from support.perform import configured, perform

from wer.reports.results import results


def searched(store) -> int:
    """Rollouts that the search paid for: not those of skills that the scan had run already."""
    had = {rollout.key for _, found in store.experiences() for rollout in found.rollouts}
    scanned = {rollout.key for rollout, _, _ in store.rollouts()[: 2 * 2 * 6]}
    return len(had - scanned)


@pytest.mark.parametrize("rollouts", [1, 7, 20])
def test_a_spent_search_ends_in_the_table_of_the_best_so_far(tmp_path, rollouts):
    store = perform(tmp_path / "run", configured(budget__search_rollouts=rollouts))

    assert results(store).cell("refined", "average") is not None
    assert searched(store) <= rollouts


def test_every_candidate_whose_rollouts_ended_is_kept(tmp_path):
    store = perform(tmp_path / "run", configured(budget__search_rollouts=7, concurrency=1))

    assert searched(store) == 6


def test_a_search_is_limited_by_tokens_too(tmp_path):
    store = perform(tmp_path / "run", configured(budget__search_tokens=1_000))
    whole = perform(tmp_path / "whole", configured())

    assert 0 < store.spend()["writer"].calls <= 10 < whole.spend()["writer"].calls


def test_the_scans_and_the_measurement_are_not_the_searchs(tmp_path):
    limited = perform(tmp_path / "run", configured(budget__search_rollouts=1))
    whole = perform(tmp_path / "whole", configured())

    for condition in ("none", "seed"):
        assert results(limited).cell(condition, "average") == results(whole).cell(condition, "average")


def test_a_resumed_run_does_not_get_a_second_search(tmp_path):
    config = configured(budget__search_rollouts=7)
    before = perform(tmp_path / "run", config).count_rollouts()

    assert perform(tmp_path / "run", config).count_rollouts() == before
