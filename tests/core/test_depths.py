"""The depth of refinement, chosen on training tasks that nothing was learnt from."""

from __future__ import annotations

import asyncio
import json
import shlex
import signal
from datetime import UTC, datetime
from fractions import Fraction

import pytest
from rich.console import Console
from support import counting, stairs
from support.perform import configured, perform, program

from wer import folders, jobs, plugins
from wer.cli import main
from wer.display import Display
from wer.errors import BudgetExhausted
from wer.loop.benching import bench
from wer.loop.depths import Depth, best_of, curve, held_out
from wer.loop.domains import domains, environments
from wer.loop.opening import opened
from wer.reports.benching import spent
from wer.reports.depths import depth_lines
from wer.reports.forecast import Plan, forecast
from wer.reports.reporting import write_report
from wer.store import Store

BUMP = {"alone": [1, 2, 3, 4], "merged": [1, 4, 2, 2]}
"""One round helps once it is merged; a second one helps each task alone, and hurts the merged skill."""


@pytest.fixture
def climbing(tmp_path):
    """A configuration over the stairs, with a seed skill of level 0."""
    skill = tmp_path / "SKILL.md"
    skill.write_text(stairs.SEED)

    def make(**overrides):
        return configured(
            env=["stairs"],
            executor="mason/a",
            agent="climber",
            executor_options={**BUMP, **overrides.pop("executor_options", {})},
            seed_skill=str(skill),
            training__phases=0,
            **{"refinement__holdout": 0.25, **overrides},
        )

    return make


def climb(folder, config):
    return perform(folder, config, extra=(stairs,))


def refine(folder, config):
    """Do what ``wer refine`` does, and give the store."""
    folder.mkdir(exist_ok=True)
    found = plugins.load(extra=(counting, stairs))
    work = jobs.refinement().work
    try:
        asyncio.run(jobs.carry_out(work, config, folder, found, Display(Console(quiet=True))))
    finally:
        store = Store(folder / "wer.sqlite")
    return store


def slice_of(config):
    found = plugins.load(extra=(counting, stairs))
    chosen = domains(config, environments(config, found))
    return {task.id for tasks in held_out(config, chosen).values() for task in tasks}


def refined(store):
    published = store.documents("published")
    return {store.skill(skill).body for key, skill in published.items() if key.startswith("refined")}


def test_the_depth_that_passes_most_on_the_slice_is_shipped_and_not_the_last(tmp_path, climbing):
    store = climb(tmp_path / "run", climbing())

    shares = [float(depth.share) for depth in curve(store, "refined")]
    assert len(shares) == 3
    assert shares[1] == 1.0 > max(shares[0], shares[2])
    assert {"level 1 merged" in body for body in refined(store)} == {True}


def test_nothing_is_learnt_from_the_slice(tmp_path, climbing):
    config = climbing()

    store = climb(tmp_path / "run", config)

    held = slice_of(config)
    assert len(held) == 6
    assert not held & {found.state.task.id for _, found in store.experiences()}
    assert len({found.state.task.id for _, found in store.experiences()}) == 24 - 6


def test_the_slice_is_drawn_by_the_seed(climbing):
    assert slice_of(climbing()) == slice_of(climbing()) != slice_of(climbing(seed=1))


def test_thirty_tasks_without_a_split_are_split_40_20_40(tmp_path, monkeypatch):
    lines = [json.dumps({"id": f"t{number}", "query": "Go."}) for number in range(30)]
    (tmp_path / "tasks.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "own.py").write_text(
        "import wer\nown = wer.Domain(tasks='tasks.jsonl', check=lambda task, end: True)\n"
    )
    monkeypatch.chdir(tmp_path)
    config = configured(env=["own.py:own"])

    (found,) = domains(config, environments(config, plugins.load()))

    held = held_out(config, [found])
    assert (len(found.train), len(held[found.name]), len(found.test)) == (18, 6, 12)


@pytest.mark.parametrize("settings", [{"refinement__holdout": 0}, {"training__train_limit": 8}])
def test_without_a_slice_every_task_is_learnt_from_for_all_rounds(tmp_path, climbing, settings):
    config = climbing(**settings)

    store = climb(tmp_path / "run", config)

    assert curve(store, "refined") == ()
    assert {"level 2 merged" in body for body in refined(store)} == {True}


def test_of_equal_depths_the_shallowest_is_kept():
    def depth(rounds, *trials):
        return Depth(rounds=rounds, skills={}, outcomes={"d": {"a": trials}})

    assert best_of([depth(0, True, False), depth(1, True, True), depth(2, True, True)]).rounds == 1


def test_domains_weigh_the_same_and_tasks_within_them():
    outcomes = {"one": {"a": (True,)}, "two": {"b": (True,), "c": (False,), "d": (False,), "e": (False,)}}

    assert Depth(rounds=0, skills={}, outcomes=outcomes).share == Fraction(5, 8)


def test_a_round_that_changes_nothing_costs_no_further_rollout(tmp_path, climbing):
    store = climb(tmp_path / "run", climbing(writer="mason/mute"))

    first, *others = store.documents("depth").values()

    assert len(others) == 2
    assert set(others) == {first}


def test_the_forecast_counts_what_the_depths_cost(tmp_path, climbing):
    config = climbing(evaluation__conditions=["none", "refined"])
    found = plugins.load(extra=(counting, stairs))

    ahead = forecast(config, domains(config, environments(config, found)), found)
    store = climb(tmp_path / "run", config)

    stages = dict(ahead.rollouts)
    merger = next(role for role in ahead.roles if role.role == "merger")
    assert stages["6 held-out tasks at every depth"] == 3 * 6 * 3
    assert store.count_rollouts() == ahead.total
    assert merger.calls == 2 * 2 * 3  # of nine sources eight at a time, in two domains, at three depths
    assert 0 < store.spend()["merger"].calls < merger.calls  # at depth 0 all have the seed skill


def test_a_finished_run_that_is_run_again_measures_nothing_again(tmp_path, climbing):
    before = climb(tmp_path / "run", climbing())
    rollouts, spending = before.count_rollouts(), before.spend()

    again = climb(tmp_path / "run", climbing())

    assert (again.count_rollouts(), again.spend()) == (rollouts, spending)


@pytest.mark.slow
def test_a_kill_in_the_middle_of_the_curve_repeats_no_rollout_and_ends_as_an_unbroken_one(tmp_path, climbing):
    config = climbing()
    folder = folders.create(tmp_path, config, command="run", now=datetime(2026, 1, 1, tzinfo=UTC))
    log = tmp_path / "log"
    words = ["run", "--resume", str(folder)]
    for fuse in (("depth", 2), ("stored rollout", 40), ("depth", 3)):
        process = program(words, log=log, fuse=fuse)
        process.join()
        assert process.exitcode == -signal.SIGKILL, log.with_suffix(".txt").read_text()
    process = program(words, log=log)
    process.join()
    assert process.exitcode == 0, log.with_suffix(".txt").read_text()

    ran = log.read_text().split()
    killed, unbroken = Store(folder / "wer.sqlite"), climb(tmp_path / "unbroken", config)

    assert len(ran) == len(set(ran))
    assert curve(killed, "refined") == curve(unbroken, "refined")
    assert killed.count_rollouts() == unbroken.count_rollouts()


def test_a_search_that_is_spent_in_the_middle_ships_the_best_depth_measured_until_then(tmp_path, climbing):
    rounds = 36 + 18 + 18 + 20  # the first round and two depths, and a part of the second round
    store = climb(tmp_path / "run", climbing(budget__search_rollouts=rounds))

    assert len(curve(store, "refined")) == 2
    assert {"level 1 merged" in body for body in refined(store)} == {True}


def test_a_search_that_is_spent_before_two_depths_ships_the_best_skills_of_the_tasks(tmp_path, climbing):
    store = climb(tmp_path / "run", climbing(budget__search_rollouts=18 + 36 + 5))

    assert len(curve(store, "refined")) == 1
    assert {"level 1 merged" in body for body in refined(store)} == {True}


def test_a_refinement_that_hits_a_cap_leaves_the_best_so_far_and_goes_on(tmp_path, climbing):
    scans = 2 * 24 * 2
    capped = climbing(budget__max_rollouts=scans + 18 + 36 + 18 + 5)

    with pytest.raises(BudgetExhausted, match="--max-rollouts"):
        refine(tmp_path / "run", capped)
    so_far = list((tmp_path / "run" / "skills" / "so-far").glob("*/SKILL.md"))
    store = refine(tmp_path / "run", climbing())

    assert len(so_far) == 2
    assert all("level 1 merged" in file.read_text() for file in so_far)
    assert len(curve(store, "refined")) == 3


def test_what_is_shown_with_noise_is_what_chooses(tmp_path, climbing):
    store = climb(tmp_path / "run", climbing(training__verifier_noise=1.0))

    assert curve(store, "refined")[1].share == 0
    assert not any("level 1 merged" in body for body in refined(store))


def test_the_curve_says_how_sure_it_is(tmp_path, climbing):
    config = climbing()
    store = climb(tmp_path / "run", config)

    lines = list(depth_lines(store))

    assert "6 tasks held out of the training split, 18 rollouts a depth" in lines[0]
    assert any(line.startswith("| 1 | 100.0 [") and line.endswith("| chosen |") for line in lines)
    assert lines[-1].startswith("Depth 1 is kept: the highest share, and of equal ones the shallowest.")
    assert "It can't be told apart from depth" in lines[-1]
    assert lines[0] in write_report(tmp_path / "run", store, config).read_text()


def test_a_depth_that_is_beyond_noise_better_is_said_to_be(tmp_path, climbing):
    store = climb(tmp_path / "run", climbing(refinement__rounds=1, refinement__holdout=0.5))

    assert list(depth_lines(store))[-1] == (
        "Depth 1 is kept: the highest share, and of equal ones the shallowest. It can be told apart from the others. "
        "Its own figure is the best of 2, and so flatters it."
    )


def test_a_method_of_a_comparison_is_charged_for_its_depths(tmp_path, climbing):
    method = {"backend": "prompted", "training": {"phases": 0}}
    config = climbing(methods={"with": method, "without": {**method, "refinement": {"holdout": 0}}})
    (tmp_path / "run").mkdir()
    store = Store(tmp_path / "run" / "wer.sqlite", create=True)

    async def compared():
        found = plugins.load(extra=(counting, stairs))
        with Display(Console(quiet=True)) as display:
            async with opened(
                config, folder=tmp_path / "run", store=store, plugins=found, display=display
            ) as run:
                await bench(run)

    asyncio.run(compared())

    assert spent(store, "with").rollouts == 2 * 18 * 2 + 3 * 6 * 3
    assert spent(store, "without").rollouts == 2 * 24 * 2


def test_refine_prints_the_curve_and_the_command_that_measures_each_skill(
    tmp_path, climbing, monkeypatch, capfd
):
    load = plugins.load
    monkeypatch.setattr(plugins, "load", lambda: load(extra=(counting, stairs)))
    (tmp_path / "wer.toml").write_text(
        'env = ["stairs"]\nexecutor = "mason/a"\nagent = "climber"\nsandbox = "memory"\n'
        "[executor_options]\nalone = [1, 2, 3, 4]\nmerged = [1, 4, 2, 2]\n"
    )
    monkeypatch.chdir(tmp_path)

    with pytest.raises(SystemExit) as ended:
        main(["refine", "SKILL.md"])

    printed = capfd.readouterr().out
    assert ended.value.code == 0
    assert "| 1 | 100.0 [" in printed
    assert "Depth 1 is kept" in printed

    measured = [shlex.split(line) for line in printed.splitlines() if line.startswith("  wer eval ")]
    assert len(measured) == 2
    with pytest.raises(SystemExit) as ended:
        main([*measured[0][1:], "--trials=1"])
    assert ended.value.code == 0
    assert "points of Pass@1" in capfd.readouterr().out


def test_the_plan_of_a_refinement_has_its_depths(climbing):
    config = climbing()
    found = plugins.load(extra=(counting, stairs))

    ahead = forecast(config, domains(config, environments(config, found)), found, Plan(scans=2, revised=1))

    assert dict(ahead.rollouts)["6 held-out tasks at every depth"] == 54
