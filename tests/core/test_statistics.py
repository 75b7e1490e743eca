import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from statsmodels.stats.proportion import proportion_confint

from wer.reports import statistics
from wer.reports.statistics import (
    equal_weight_average,
    equal_weight_difference,
    paired_difference,
    pass_at_1,
    smallest_detectable_difference,
    wilson,
)


def outcomes(*tasks):
    return {f"task-{index}": tuple(bool(int(mark)) for mark in marks) for index, marks in enumerate(tasks)}


def drawn(dice, chances, trials):
    return {
        f"task-{i}": tuple(bool(x) for x in dice.random(trials) < chance) for i, chance in enumerate(chances)
    }


some_outcomes = st.lists(st.text("01", min_size=1, max_size=4), min_size=1, max_size=12).map(
    lambda t: outcomes(*t)
)


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_one_trial_a_task_gives_wilsons_interval(counts):
    passed, tasks = counts
    estimate = pass_at_1(outcomes(*("1" * passed + "0" * (tasks - passed))))

    low, high = proportion_confint(passed, tasks, method="wilson")
    assert (estimate.low, estimate.high) == (pytest.approx(low), pytest.approx(high))
    assert wilson(passed, tasks) == (pytest.approx(low), pytest.approx(high))


def test_repeating_a_deterministic_agent_tells_nothing_new():
    once, thrice = (pass_at_1(outcomes(*["1" * n] * 30, *["0" * n] * 10)) for n in (1, 3))

    assert (thrice.low, thrice.high) == (pytest.approx(once.low), pytest.approx(once.high))
    assert (once.trials, thrice.trials) == (40, 120)


def test_independent_trials_make_the_interval_narrower():
    estimate = pass_at_1(outcomes(*["01", "10"] * 20))

    low, high = proportion_confint(40, 80, method="wilson")
    assert (estimate.low, estimate.high) == (pytest.approx(low), pytest.approx(high))


@pytest.mark.parametrize(("mark", "mean"), [("0", 0.0), ("1", 1.0)])
def test_all_alike_leaves_an_interval_on_one_side(mark, mean):
    estimate = pass_at_1(outcomes(*[mark * 3] * 10))

    assert estimate.mean == mean
    assert 0.2 < estimate.high - estimate.low < 0.35
    assert mean in (estimate.low, estimate.high)


def test_one_task_says_next_to_nothing():
    estimate = pass_at_1(outcomes("1" * 50))

    assert estimate.low < 0.25


@given(some_outcomes)
def test_every_interval_holds_its_mean_and_stays_a_rate(table):
    estimate = pass_at_1(table)

    assert 0 <= estimate.low <= estimate.mean <= estimate.high <= 1


@pytest.mark.parametrize(("tasks", "trials"), [(38, 1), (38, 3), (150, 3)])
def test_ninety_five_percent_intervals_cover_the_truth_that_often(tasks, trials):
    dice = np.random.default_rng(5)
    hits = []
    for _ in range(400):
        estimate = pass_at_1(drawn(dice, dice.beta(0.6, 0.4, tasks), trials))
        hits.append(estimate.low <= 0.6 <= estimate.high)

    assert 0.925 <= np.mean(hits) <= 0.98


@pytest.mark.parametrize(
    ("tasks", "trials", "gain"), [(38, 1, 0.1), (38, 3, 0.1), (150, 3, 0.0), (12, 2, 0.2)]
)
def test_paired_intervals_cover_the_truth_that_often(tasks, trials, gain):
    dice = np.random.default_rng(7)
    hits = []
    for _ in range(400):
        base = dice.beta(0.5, 0.5, tasks)
        better = np.where(dice.random(tasks) < gain, 1.0, base)
        truth = gain * 0.5
        difference = paired_difference(drawn(dice, better, trials), drawn(dice, base, trials))
        hits.append(difference.low <= truth <= difference.high)

    assert 0.925 <= np.mean(hits) <= 0.995


def test_the_p_value_is_exact_for_one_trial_a_task():
    better, base = outcomes(*"1111111100"), outcomes(*"0000000110")

    difference = paired_difference(better, base)

    assert difference.p == pytest.approx(binomtest(1, 8).pvalue)  # the exact McNemar test
    assert difference.mean == pytest.approx(0.6)


def test_equal_conditions_differ_by_nothing_but_not_for_certain():
    same = outcomes(*["111"] * 20)

    difference = paired_difference(same, same)

    assert (difference.mean, difference.p) == (0.0, 1.0)
    assert difference.low == pytest.approx(-difference.high) and 0 < difference.high < 0.1


def test_the_same_gain_on_every_task_keeps_an_interval():
    difference = paired_difference(outcomes(*"11111"), outcomes(*"00000"))

    assert difference.mean == difference.high == 1.0
    assert difference.low < 0.5
    assert difference.p == pytest.approx(2 / 2**5)


def test_only_tasks_of_both_conditions_are_compared():
    difference = paired_difference({"a": [True], "b": [False]}, {"b": [False], "c": [True]})

    assert (difference.mean, difference.tasks, difference.p) == (0.0, 1, 1.0)
    assert (difference.low, difference.high) == (-1.0, 1.0)


def test_conditions_without_a_common_task_are_refused():
    with pytest.raises(ValueError, match="both conditions have"):
        paired_difference({"a": [True]}, {"b": [True]})


@given(some_outcomes, some_outcomes)
def test_turning_a_comparison_round_turns_its_signs(left, right):
    one, other = paired_difference(left, right), paired_difference(right, left)

    assert (one.mean, one.low, one.high) == (
        pytest.approx(-other.mean),
        pytest.approx(-other.high),
        pytest.approx(-other.low),
    )
    assert one.p == pytest.approx(other.p) and 0 <= one.p <= 1
    assert -1 <= one.low <= one.mean <= one.high <= 1


def test_an_average_of_one_domain_is_that_domain():
    table = outcomes("110", "000", "111", "100")

    average, alone = equal_weight_average([table]), pass_at_1(table)

    assert (average.mean, average.low, average.high) == (
        alone.mean,
        pytest.approx(alone.low),
        pytest.approx(alone.high),
    )


def test_domains_weigh_the_same_whatever_their_size():
    average = equal_weight_average([outcomes(*"1" * 10), outcomes(*"01" * 20)])

    assert average.mean == pytest.approx(0.75)
    assert (average.tasks, average.trials) == (50, 50)
    assert 0.55 < average.low < 0.75 < average.high < 0.85


@given(some_outcomes, some_outcomes)
def test_a_difference_over_one_domain_is_the_paired_difference(left, right):
    assert equal_weight_difference([(left, right)]) == paired_difference(left, right)


def test_domains_weigh_the_same_in_a_difference_whatever_their_size():
    small = (outcomes(*"1111"), outcomes(*"0000"))
    large = (outcomes(*"01" * 20), outcomes(*"01" * 20))

    difference = equal_weight_difference([small, large])

    assert difference.mean == pytest.approx(0.5)
    assert difference.tasks == 44
    assert difference.p == pytest.approx(2 / 2**4)
    assert difference.low < 0.5 < difference.high


def test_intervals_over_uneven_domains_cover_the_truth_that_often():
    dice = np.random.default_rng(11)
    hits = []
    for _ in range(400):
        pairs = []
        for tasks, gain in ((8, 0.3), (30, 0.0), (60, 0.1)):
            base = dice.beta(0.5, 0.5, tasks)
            better = np.where(dice.random(tasks) < gain, 1.0, base)
            pairs.append((drawn(dice, better, 2), drawn(dice, base, 2)))
        difference = equal_weight_difference(pairs)
        hits.append(difference.low <= 0.5 * 0.4 / 3 <= difference.high)

    assert 0.925 <= np.mean(hits) <= 0.995


def test_the_p_value_of_many_uneven_domains_is_found_on_a_grid():
    dice = np.random.default_rng(13)
    sizes = (37, 41, 43, 38, 29)
    pairs = [(drawn(dice, [0.7] * tasks, 3), drawn(dice, [0.6] * tasks, 3)) for tasks in sizes]
    differences = [
        (np.mean(better[task]) - np.mean(base[task])) / len(better)
        for better, base in pairs
        for task in better
    ]

    signs = dice.choice([-1, 1], (20_000, len(differences)))
    flipped = np.mean(np.abs(signs @ differences) >= abs(sum(differences)) - 1e-9)

    assert 0.001 < flipped < 0.999
    assert equal_weight_difference(pairs).p == pytest.approx(flipped, abs=0.01)


def test_a_difference_over_no_domain_is_refused():
    with pytest.raises(ValueError, match="at least one domain"):
        equal_weight_difference([])


@pytest.mark.parametrize("table", [{}, {"a": []}])
def test_an_estimate_of_nothing_is_refused(table):
    with pytest.raises(ValueError, match=r"at least one task|has no trial"):
        pass_at_1(table)


def test_more_tasks_and_more_trials_show_smaller_differences():
    sizes = [smallest_detectable_difference(*size) for size in ((12, 1), (38, 1), (38, 3), (150, 3))]

    assert sizes == sorted(sizes, reverse=True)
    assert 0.05 < sizes[-1] < sizes[0] < 0.7
    assert smallest_detectable_difference(1, 1) <= 1.0


def test_the_smallest_detectable_difference_is_found_four_times_in_five():
    dice, tasks, trials = np.random.default_rng(3), 150, 3
    gain = smallest_detectable_difference(tasks, trials)
    found = []
    for _ in range(400):
        chances = dice.beta(0.5, 0.5, tasks)  # correlation 1/2 between trials of one task
        turned = dice.permutation(tasks) < round(gain * tasks)
        base = np.where(turned, 0.0, chances)
        better = np.where(turned, 1.0, chances)
        found.append(paired_difference(drawn(dice, better, trials), drawn(dice, base, trials)).low > 0)

    assert np.mean(found) > 0.75


def test_the_module_itself_needs_no_scipy():
    assert "scipy" not in vars(statistics)
