"""Several methods in one run: what they share, what each is charged for, and what the table says."""

import asyncio
import csv

import pytest
from rich.console import Console
from support import counting
from support.perform import configured

from wer import plugins
from wer.display import Display
from wer.errors import ConfigError
from wer.loop.benching import bench
from wer.loop.opening import opened
from wer.methods import changed, configurations, named, over_seeds, recipe, recipes, writers
from wer.reports import learning
from wer.reports.benching import bench_lines, rows, write_files
from wer.reports.benching import over_seeds as spread
from wer.reports.replay import rejudge
from wer.reports.results import results
from wer.reports.statistics import holm, mean_of_runs, pass_hat_k
from wer.store import Store

SHALLOW = {"backend": "prompted", "training": {"phases": 0}, "refinement": {"rounds": 1}}
DEEP = {**SHALLOW, "refinement": {"rounds": 3}}


def compared(folder, config):
    folder.mkdir(exist_ok=True)
    store = Store(folder / "wer.sqlite", create=True)

    async def work():
        with Display(Console(quiet=True)) as display:
            found = plugins.load(extra=(counting,))
            async with opened(config, folder=folder, store=store, plugins=found, display=display) as run:
                await bench(run)

    asyncio.run(work())
    return store


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    config = configured(methods={"shallow": SHALLOW, "deep": DEEP}, budget__search_rollouts=40)
    return compared(tmp_path_factory.mktemp("bench") / "run", config)


def test_every_method_and_baseline_is_measured_on_the_same_tasks_and_seeds(store):
    found = results(store)

    assert found.conditions == ("none", "seed", "shallow", "deep", "again", "no-op")
    trials = {(task, trial) for condition, _, task, trial, _ in store.results() if condition == "none"}
    for condition in ("seed", "shallow", "deep"):
        assert trials == {(task, trial) for each, _, task, trial, _ in store.results() if each == condition}


def test_each_method_is_charged_for_its_own_search(store):
    shallow, deep = (row.spent for row in rows(store) if row.spent is not None)

    assert 0 < shallow.rollouts <= deep.rollouts <= 40
    assert 0 < shallow.tokens < deep.tokens
    assert {"writer, shallow", "writer, deep"} <= store.spend().keys()


def test_several_comparisons_with_one_base_are_corrected(store):
    families = {
        contrast.better: contrast.family for contrast in results(store).contrasts if contrast.base == "seed"
    }

    assert families == {"shallow": 2, "deep": 2, "again": 1}


def test_the_control_says_how_much_is_noise(store):
    assert any(line.startswith("A/A control: seed skill, measured again") for line in bench_lines(store))


def test_table_and_plot_are_written_as_files(store, tmp_path):
    paths = write_files(store, tmp_path)

    assert [path.name for path in paths] == ["bench.csv", "bench.tex", "bench.svg"]
    with (tmp_path / "bench.csv").open(newline="") as file:
        assert [line["method"] for line in csv.DictReader(file)][-2:] == ["deep", "the same again (A/A)"]
    assert r"Pass@1, \%" in (tmp_path / "bench.tex").read_text()


def test_every_cell_can_be_judged_again(store):
    again = list(rejudge(store, plugins.load(extra=(counting,))))

    assert again and all(found.agrees for found in again)


def test_a_comparison_that_is_resumed_pays_for_nothing_twice(tmp_path):
    config = configured(methods={"shallow": SHALLOW})
    before = compared(tmp_path / "run", config).spend()

    assert compared(tmp_path / "run", config).spend() == before


def test_training_seeds_are_told_apart_from_task_noise(tmp_path):
    config = configured(methods=over_seeds({"shallow": SHALLOW}, [0, 1, 2]))

    found = results(compared(tmp_path / "run", config))

    assert spread(found)["shallow"].tasks == 3


def test_a_method_with_seed_skills_of_its_own_starts_from_those(tmp_path):
    own = tmp_path / "SKILL.md"
    own.write_text("---\nname: mine\ndescription: Mine.\n---\n## Workflow\n1. try, as I do\n")

    store = compared(
        tmp_path / "run", configured(methods={"shared": SHALLOW, "own": {**SHALLOW, "seed_skill": str(own)}})
    )

    began = {stage: found.state.skill.name for stage, found in store.experiences()}
    assert began == {"shared/refine/refined/0": "counting", "own/refine/refined/0": "mine"}


def test_methods_with_noise_of_their_own_share_the_truth_and_the_lines_say_what_each_was_shown(tmp_path):
    noisy = {**SHALLOW, "training": {"phases": 0, "verifier_noise": 0.5}}
    config = configured(methods={"clean": SHALLOW, "noisy": noisy})
    store = compared(tmp_path / "run", config)

    [told] = learning.sentences(store, config)

    assert told.startswith("noisy: verifier noise 0.5: ")
    assert {each.method: each.flipped > 0 for each in learning.seen(store, config)} == {
        "clean": False,
        "noisy": True,
    }


def test_an_unknown_method_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match="'skiler'; did you mean 'skiller'"):
        named(["none", "skiler"])


def test_a_method_may_not_change_what_all_must_share():
    with pytest.raises(ConfigError, match=r"\[methods.mine\] changes executor"):
        configurations(configured(methods={"mine": {"executor": "scribe/b"}}))


@pytest.mark.parametrize("setting", [{"training": {"train_limit": 1}}, {"limits": {"retries": 0}}])
def test_a_method_may_not_change_what_is_opened_once_for_all(setting):
    with pytest.raises(ConfigError, match=r"\[methods.mine\] changes (training.train_limit|limits)"):
        configurations(configured(methods={"mine": setting}))


@pytest.mark.parametrize(
    "name", ["../evil", "a/b", "a b", "", ".", "again", "no-op", "refined", "seed", "x" * 65]
)
def test_a_name_that_is_no_folders_or_another_conditions_is_refused(name):
    with pytest.raises(ConfigError, match="can't"):
        configurations(configured(methods={name: SHALLOW}))


def test_a_table_changes_a_named_method_key_by_key_and_adds_others():
    tables = changed(
        named(["prompted"]), {"prompted": {"training": {"n": 4}}, "mine": {"backend": "prompted"}}
    )

    assert tables == {
        "prompted": {"backend": "prompted", "training": {"phases": 0, "n": 4}},
        "mine": {"backend": "prompted"},
    }


def test_tables_alone_choose_and_change_the_methods_of_their_names():
    assert changed({}, {"prompted": {"training": {"n": 4}}})["prompted"] == {
        "backend": "prompted",
        "training": {"phases": 0, "n": 4},
    }


def test_each_method_has_its_own_leak_policy(tmp_path):
    config = configured(methods={"strict": {**SHALLOW, "leak": "refuse"}})

    async def policies():
        store = Store(tmp_path / "wer.sqlite", create=True)
        with Display(Console(quiet=True)) as display:
            found = plugins.load(extra=(counting,))
            async with opened(config, folder=tmp_path, store=store, plugins=found, display=display) as run:
                [(name, method)] = configurations(config).items()
                return run.screen.policy, run.scoped(name, method).screen.policy

    assert asyncio.run(policies()) == ("report", "refuse")


@pytest.mark.parametrize("name", recipes())
def test_every_recipe_resolves_to_whole_configurations(name):
    grid = recipe(name)

    assert len(configurations(configured(methods=grid))) == len(grid) > 1


def test_writers_are_named_by_their_model():
    assert list(writers(["openai/a@http://x/v1", "litellm/anthropic/b"])) == ["a", "anthropic-b"]
    assert writers(["openai/a"], "seed-writers")["a"] == {"backend": "grpo", "seed_writer": "openai/a"}


def test_writers_that_would_share_a_name_are_refused():
    with pytest.raises(ConfigError, match="would both be called 'a'"):
        writers(["openai/a@http://x/v1", "openai/a@http://y/v1"])


def test_the_name_of_a_writer_can_name_a_method():
    assert list(writers(["openai/llama3:8b", "torch//my/weights"])) == ["llama3-8b", "my-weights"]


def test_holm_multiplies_the_smallest_p_by_the_number_of_comparisons_and_never_falls():
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])


def test_pass_hat_k_counts_tasks_whose_every_trial_passed():
    assert pass_hat_k([{"a": [True, True], "b": [True, False]}]).mean == 0.5


def test_an_interval_over_trainings_is_students():
    estimate = mean_of_runs([0.4, 0.5, 0.6])

    assert (estimate.low, estimate.high) == pytest.approx((0.5 - 0.2484, 0.5 + 0.2484), abs=1e-3)
