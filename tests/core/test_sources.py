"""Whether a merged skill keeps what each of its sources had gained, and what is said when it doesn't."""

from __future__ import annotations

import pytest
from scipy.stats import fisher_exact
from statsmodels.stats.proportion import confint_proportions_2indep
from support import counting, stairs
from support.perform import configured, perform

from wer import plugins
from wer.cli import main
from wer.loop.domains import domains, environments
from wer.loop.merging import merge_calls
from wer.loop.sources import Checked, kept
from wer.reports.forecast import Plan, forecast
from wer.reports.reporting import write_report
from wer.reports.sources import judged, source_lines
from wer.reports.statistics import fewer, rate_difference

GAIN = {"alone": [1, 4, 4], "merged": [1, 4, 4]}


@pytest.fixture
def merging(tmp_path):
    """A configuration over the stairs in which one round makes every task's own skill perfect."""
    skill = tmp_path / "SKILL.md"
    skill.write_text(stairs.SEED)

    def make(lost=(), **overrides):
        settings = {
            "env": ["stairs"],
            "executor": "mason/a",
            "agent": "climber",
            "executor_options": {**GAIN, "lost": list(lost)},
            "seed_skill": str(skill),
            "domains": ["small"],
            "training__phases": 0,
            "refinement__rounds": 1,
            "merge__check_rollouts": 8,
            "evaluation__conditions": ["none", "refined"],
        }
        return configured(**{**settings, **overrides})

    return make


def merge(folder, config):
    return perform(folder, config, extra=(stairs,))


def checked(merged, source):
    """A source that passed so many of eight rollouts, beside the merged skill's."""
    passed = (tuple(i < count for i in range(8)) for count in (merged, source))
    return Checked(name="t", merged=next(passed), source=next(passed))


def test_a_gain_that_the_merged_skill_lost_is_named_with_both_shares(tmp_path, merging):
    config = merging(lost=[23])

    store = merge(tmp_path / "run", config)

    first, *others = source_lines(store)
    assert first == (
        "refined stairs/small, the merged skill against its 12 sources, 8 rollouts of each where the source came from: "
        "11 kept, 1 lost."
    )
    assert others == [
        "lost: stairs/small-23 passed 8/8 with its own skill and 0/8 with the merged one (-100 points, 95 % interval "
        "-100 to -54; p = 0.00093 after Holm's correction for 12)"
    ]
    assert others[0] in write_report(tmp_path / "run", store, config).read_text()


def test_merges_are_not_checked_unless_asked_for(tmp_path, merging):
    store = merge(tmp_path / "run", merging(merge__check_rollouts=0))

    assert kept(store) == {}


def test_a_source_is_run_only_where_the_merged_skill_failed(tmp_path, merging):
    store = merge(tmp_path / "run", merging(lost=[23]))

    (found,) = kept(store).values()

    assert [each.name for each in found if each.source] == ["stairs/small-23"]


def test_sources_get_fresh_seeds(tmp_path, merging):
    store = merge(tmp_path / "run", merging(lost=[23]))

    task = next(key for rollout, key, _ in store.rollouts() if rollout.task_id == "stairs/small-23")
    learnt = {
        rollout.seed
        for _, found in store.experiences()
        for rollout in found.rollouts
        if found.state.task.key == task
    }
    seeds = {rollout.seed for rollout, key, _ in store.rollouts() if key == task}
    assert len(seeds - learnt) == 8


def test_a_checked_run_that_is_run_again_pays_for_nothing(tmp_path, merging):
    before = merge(tmp_path / "run", merging(lost=[23])).count_rollouts()

    assert merge(tmp_path / "run", merging(lost=[23])).count_rollouts() == before


def test_the_check_is_not_charged_to_the_search(tmp_path, merging):
    store = merge(tmp_path / "run", merging(budget__search_rollouts=24))

    (found,) = kept(store).values()
    assert len(found) == 12


@pytest.mark.parametrize(
    ("merged", "source", "fate"),
    [
        (8, 0, "nothing to keep"),
        (6, 6, "kept"),
        (7, 3, "kept"),
        (6, 8, "undecided"),
        (0, 8, "lost"),
        (0, 0, "nothing to keep"),
    ],
)
def test_one_source_is_judged_by_both_shares(merged, source, fate):
    assert [each.fate for each in judged([checked(merged, source)])] == [fate]


def test_among_many_sources_a_loss_must_be_clearer():
    clear_alone = checked(2, 7)

    assert judged([clear_alone])[0].fate == "lost"
    assert {each.fate for each in judged([clear_alone] * 8)} == {"undecided"}


def test_the_exact_test_is_fishers_and_one_sided():
    for after, before in ((0, 6), (1, 5), (4, 2), (3, 3)):
        table = [[after, 6 - after], [before, 6 - before]]
        assert fewer(after, before, 6) == pytest.approx(fisher_exact(table, alternative="less").pvalue)


@pytest.mark.parametrize(("after", "before", "n"), [(56, 48, 80), (6, 6, 6), (0, 8, 8), (1, 5, 6)])
def test_the_interval_of_a_difference_is_newcombes(after, before, n):
    expected = confint_proportions_2indep(after, n, before, n, method="newcomb")

    assert rate_difference(after, before, n) == pytest.approx(expected)


def test_undecided_sources_come_with_what_could_have_been_told(tmp_path, merging):
    config = merging(executor_options={"alone": [1, 4, 4], "merged": [1, 3, 3]}, merge__check_rollouts=6)

    lines = list(source_lines(merge(tmp_path / "run", config)))

    assert "undecided" in lines[0]
    assert lines[-1] == (
        "With 6 rollouts and 12 sources a fall from 6/6 is told from noise at 0/6 or less: raise "
        "merge.check_rollouts to decide more."
    )


def test_the_forecast_counts_the_check_and_every_level_of_the_merge(merging):
    config = merging(merge__max_sources=10)
    found = plugins.load(extra=(counting, stairs))

    ahead = forecast(config, domains(config, environments(config, found)), found, Plan(revised=1, merged=1))

    assert dict(ahead.rollouts)["merged skills and their sources"] == 2 * 10 * 8
    assert next(role.calls for role in ahead.roles if role.role == "merger") == 3


@pytest.mark.parametrize(("sources", "calls"), [(0, 0), (1, 0), (2, 1), (8, 1), (9, 2), (16, 3), (65, 10)])
def test_a_merge_of_many_asks_eight_at_a_time(sources, calls):
    assert merge_calls(sources) == calls


@pytest.fixture
def wer(tmp_path, monkeypatch, capfd):
    """Call the command where two skills are, over the stairs."""
    load = plugins.load
    monkeypatch.setattr(plugins, "load", lambda: load(extra=(counting, stairs)))
    monkeypatch.chdir(tmp_path)
    for name, step in (("one", "level 1"), ("two", "level 0")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "SKILL.md").write_text(stairs.SEED.replace("level 0", step))
    (tmp_path / "wer.toml").write_text(
        'agent = "climber"\nsandbox = "memory"\n[executor_options]\nalone = [1, 4]\nmerged = [1, 1]\n'
    )

    def call(*words: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main(words)
        return int(ended.value.code or 0), " ".join(capfd.readouterr().out.split())

    return call


MERGE = ["merge", "one", "two", "--out", "both", "--writer", "mason/a"]


def test_a_merge_with_an_environment_is_checked_on_its_training_tasks(wer, tmp_path):
    status, printed = wer(*MERGE, "--env", "stairs", "--executor", "mason/a", "--check-rollouts", "12")

    assert status == 0
    assert "level 1 merged" in (tmp_path / "both" / "SKILL.md").read_text()
    assert "both, the merged skill against its 2 sources, 12 rollouts of each" in printed
    assert "lost: one passed 12/12 with its own skill" in printed


def test_a_dry_merge_prints_the_forecast_and_writes_nothing(wer, tmp_path):
    status, printed = wer(*MERGE, "--env", "stairs", "--executor", "mason/a", "--dry-run")

    assert status == 0
    assert "18 rollouts merged skills and their sources" in printed
    assert not (tmp_path / "both").exists()


def test_a_merge_without_an_environment_refuses_what_it_would_ignore(wer, capfd):
    with pytest.raises(SystemExit) as ended:
        main([*MERGE, "--executor", "mason/a"])

    assert ended.value.code == 2
    assert "without --env nothing is run" in capfd.readouterr().err
