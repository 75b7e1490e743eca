"""The whole loop over a world in memory: what is stored, what is repeated, what is printed."""

from __future__ import annotations

import pytest
from support import counting
from support.perform import configured, perform

from wer import plugins
from wer.errors import BudgetExhausted, WerError
from wer.reports.replay import rejudge
from wer.reports.results import results
from wer.skills import load_skill
from wer.store import Store


def test_the_protocol_ends_with_every_condition_measured_on_every_test_task(tmp_path):
    store = perform(tmp_path / "run", configured())

    found = results(store)
    assert found.conditions == ("none", "seed", "refined", "no-op")
    assert {cell.domain for cell in found.cells} == {"counting/small", "counting/large", "average"}
    refined = found.cell("refined", "small")
    assert refined is not None and (refined.tasks, refined.trials) == (4, 8)


def test_refined_skills_are_published_byte_for_byte_as_they_were_evaluated(tmp_path):
    store = perform(tmp_path / "run", configured())

    published = store.documents("published")
    for key, skill_id in published.items():
        condition, _, _ = key.partition(" ")
        skill = store.skill(skill_id)
        loaded = load_skill(tmp_path / "run" / "skills" / condition / skill.name)
        assert loaded.body == skill.body
    assert any(key.startswith("refined") for key in published)


def test_a_second_run_of_a_finished_run_executes_nothing(tmp_path):
    config = configured()
    perform(tmp_path / "run", config).close()
    before = Store(tmp_path / "run" / "wer.sqlite").spend()

    store = perform(tmp_path / "run", config)

    assert store.spend() == before


def test_two_runs_with_one_seed_give_equal_results(tmp_path):
    first = perform(tmp_path / "a", configured())
    second = perform(tmp_path / "b", configured())

    assert sorted(first.results()) == sorted(second.results())


def test_a_run_that_hit_its_cap_goes_on_where_it_stopped(tmp_path):
    with pytest.raises(BudgetExhausted, match="--max-rollouts"):
        perform(tmp_path / "run", configured(budget__max_rollouts=30))
    kept = Store(tmp_path / "run" / "wer.sqlite")
    assert kept.count_rollouts() == 30

    resumed = perform(tmp_path / "run", configured())
    unbroken = perform(tmp_path / "other", configured())

    assert sorted(resumed.results()) == sorted(unbroken.results())
    assert resumed.count_rollouts() == unbroken.count_rollouts()


def test_rollouts_of_a_dead_sandbox_are_had_again_and_never_scored(tmp_path):
    broken = perform(tmp_path / "a", configured(sandbox="dying"))
    whole = perform(tmp_path / "b", configured())

    assert sorted(broken.results()) == sorted(whole.results())


def test_a_busy_model_is_asked_again(tmp_path):
    busy = perform(tmp_path / "a", configured(executor="scribe/a:2"))
    whole = perform(tmp_path / "b", configured())

    assert sorted(busy.results()) == sorted(whole.results())


def test_every_stored_rollout_is_judged_the_same_again(tmp_path):
    store = perform(tmp_path / "run", configured())

    again = list(rejudge(store, plugins.load(extra=(counting,))))

    assert len(again) == store.count_rollouts() > 50
    assert all(found.agrees for found in again)


def test_a_run_in_which_nothing_passes_stops_with_the_counts_and_a_remedy(tmp_path):
    hopeless = tmp_path / "SKILL.md"
    hopeless.write_text("---\nname: idle\ndescription: Do nothing.\n---\n## Workflow\n1. wait\n")
    harder = configured(seed_skill=str(hopeless), domains=["large"])

    with pytest.raises(WerError, match=r"of 3 tasks .* never"):
        perform(tmp_path / "run", harder)
