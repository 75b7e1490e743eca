"""Results by environment and domain, and contrasts that weigh domains as the table does."""

from __future__ import annotations

from attrs import evolve
from support.counting import Counting

from wer.records import NO_SKILL, End, Evidence, Rollout, Trajectory, Verdict
from wer.reports.results import results
from wer.store import Store


def measured(store, condition, tasks, passes):
    for task, passed in zip(tasks, passes, strict=True):
        rollout = Rollout(
            key=f"{condition} {task.id}",
            task_id=task.id,
            skill_id=NO_SKILL.id,
            seed=0,
            trajectory=Trajectory(messages=(), steps=(), end=End(by="agent"), seed=0),
            evidence=Evidence(turns=(), end=End(by="agent")),
            verdict=Verdict(score=float(passed), passed=passed),
        )
        store.put_rollout(rollout, task=task, skill=NO_SKILL, verifier="reached", tries=1)
        store.put_results([(condition, task, 0, rollout)])


def tasks(domain, *, env="counting", count=4):
    made = Counting().tasks(domain, "test")[:count]
    return [evolve(task, id=f"{env}/{task.id}", env=env) for task in made]


def test_equal_domain_names_of_two_environments_stay_apart(tmp_path):
    store = Store(tmp_path / "wer.sqlite", create=True)
    measured(store, "none", tasks("small"), [True] * 4)
    measured(store, "none", tasks("small", env="other"), [False] * 4)

    found = results(store)

    assert found.domains == ("counting/small", "other/small")
    assert found.cell("none", "counting/small").mean == 1.0
    assert found.cell("none", "small") is None
    assert [found.heading(domain) for domain in found.domains] == ["counting/small", "other/small"]


def test_a_domain_of_one_environment_is_known_by_its_plain_name(tmp_path):
    store = Store(tmp_path / "wer.sqlite", create=True)
    measured(store, "none", tasks("small"), [True] * 4)

    found = results(store)

    assert found.heading("counting/small") == "small"
    assert found.cell("none", "small") == found.cell("none", "counting/small")


def test_a_contrast_is_the_difference_of_the_averages_in_the_table(tmp_path):
    store = Store(tmp_path / "wer.sqlite", create=True)
    for condition, passed in (("none", False), ("seed", True)):
        measured(store, condition, tasks("small", count=1), [passed])
        measured(store, condition, tasks("large"), [False] * 4)

    found = results(store)

    (contrast,) = found.contrasts
    assert contrast.difference.mean == 0.5
    assert contrast.difference.mean == (
        found.cell("seed", "average").mean - found.cell("none", "average").mean
    )


def test_conditions_without_a_common_task_are_not_contrasted(tmp_path):
    store = Store(tmp_path / "wer.sqlite", create=True)
    measured(store, "none", tasks("small"), [True] * 4)
    measured(store, "seed", tasks("large"), [True] * 4)

    assert results(store).contrasts == ()
