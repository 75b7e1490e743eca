"""``wer bench``: several methods from one start, at equal cost, in one table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from attrs import evolve
from cyclopts import Parameter
from rich.console import Console

from wer import plugins
from wer.cli.forecast import foresee
from wer.cli.options import DryRun, Runs, Settings, Whole, listed
from wer.cli.performing import conclude, going_on, new_folder, perform
from wer.configuration import RunConfig
from wer.errors import ConfigError
from wer.loop.benching import bench as compare_methods
from wer.loop.checking import check_names
from wer.loop.opening import Run
from wer.methods import OF_WRITERS, changed, configurations, named, over_seeds, recipe, writers
from wer.records import Json
from wer.reports.benching import bench_lines, bench_table, write_files
from wer.reports.forecast import Plan


def bench(
    *,
    settings: Settings = Settings(),  # noqa: B008
    methods: Annotated[
        str | None,
        Parameter(
            help="Separated by commas: prompted,skiller,trace2skill,skill_r1_inference,skill_r1,wer,wer-openrlhf,gepa. "
            "none and seed are added."
        ),
    ] = None,
    recipe_: Annotated[
        str | None,
        Parameter(
            name="--recipe",
            help="A grid after the paper's tables: main, phases, depth, writers, seed-writers, ablations; or after "
            "the questions that it leaves open: noise, evidence, retention.",
        ),
    ] = None,
    writers_: Annotated[
        str | None,
        Parameter(
            name="--writers",
            help="Models for --recipe writers (who revises) or seed-writers (who drafts), separated by commas.",
        ),
    ] = None,
    train_seeds: Annotated[
        str, Parameter(help="Each method once a seed, for the spread over trainings: 0,1,2.")
    ] = "",
    search_rollouts: Annotated[
        Whole | None, Parameter(help="Rollouts that each method may search with.")
    ] = None,
    search_tokens: Annotated[
        Whole | None, Parameter(help="Tokens that each method may search with, all roles.")
    ] = None,
    resume: Annotated[str | None, Parameter(help="Go on with this comparison (id or folder).")] = None,
    dry_run: DryRun = False,
    runs: Runs = Path("runs"),
) -> None:
    """Compare methods: the same tasks, seeds, executor and search budget, Pass@1 and pass^k side by side.

    `wer bench --env bfcl --methods prompted,skiller,wer --search-rollouts 200 --preset cpu`. Differences are paired by
    task and seed and corrected for several methods; an A/A control shows the noise. Any method's settings can be
    changed, or one added, in a table [methods.NAME] of wer.toml. Every cell can be judged again: wer verify RUN.
    """
    found = plugins.load()
    if resume is not None:
        if methods is not None or recipe_ is not None or writers_ is not None or train_seeds:
            raise ConfigError(
                "--methods, --recipe, --writers and --train-seeds can't be changed in a comparison that goes on. "
                "Leave them out, or start a new one."
            )
        caps = {"search_rollouts": search_rollouts, "search_tokens": search_tokens}
        raised = [f"budget.{name}={cap}" for name, cap in caps.items() if cap is not None]
        settings = evolve(settings, set=[*(settings.set or ()), *raised])
        folder, config = going_on("bench", settings, runs, resume)
        _foresee(config, found)
        if not dry_run:
            _perform(config, folder, found)
        return
    config = settings.resolve(budget__search_rollouts=search_rollouts, budget__search_tokens=search_tokens)
    tables = changed(_chosen(methods, recipe_, writers_), config.methods)
    if not tables:
        raise ConfigError(
            "nothing to compare: give --methods, --recipe, or tables [methods.NAME] in wer.toml. "
            "For one method beside its baselines there is wer run."
        )
    config = evolve(config, methods=over_seeds(tables, _seeds(train_seeds) or [config.seed]))
    _foresee(config, found)
    if not dry_run:
        _perform(config, new_folder(config, runs, found, command="bench"), found)


def _chosen(methods: str | None, name: str | None, models: str | None) -> Mapping[str, Mapping[str, Json]]:
    """What the options ask for; nothing when they ask for nothing."""
    if (name in OF_WRITERS) != (models is not None):
        raise ConfigError(
            f"--recipe {' or '.join(OF_WRITERS)} and --writers openai/a,openai/b belong together: give both or neither."
        )
    if methods is not None and name is not None:
        raise ConfigError("--methods and --recipe both say what is compared: give one.")
    if models is not None and name is not None:
        return writers(listed("--writers", models), name)
    if name is not None:
        return recipe(name)
    return named(listed("--methods", methods)) if methods is not None else {}


def _seeds(text: str) -> list[int]:
    """The training seeds; none where none is given."""
    words = listed("--train-seeds", text) if text else []
    if not all(re.fullmatch(r"-?\d+", word) for word in words) or len(set(map(int, words))) < len(words):
        raise ConfigError(f"--train-seeds {text!r} are not different whole numbers, such as 0,1,2")
    return [int(word) for word in words]


def _foresee(config: RunConfig, found: plugins.Plugins) -> None:
    """Check every method, and print the most that is performed for all of them together, and for each."""
    methods = list(configurations(config).values())
    for method in methods:
        check_names(method, found)
    plan = Plan(scans=2, merged=1, conditions=len(methods) + 3)
    foresee(config, found, plan, beside=[(method, _plan(method, shared=config)) for method in methods])


def _plan(method: RunConfig, *, shared: RunConfig) -> Plan:
    """The most that one method performs; one with seed skills of its own scans the tasks with them."""
    own = (method.seed_skill, method.seed_writer) != (shared.seed_skill, shared.seed_writer)
    return Plan(scans=2 * own, phases=method.training.phases, revised=1, merged=1)


def _perform(config: RunConfig, folder: Path, found: plugins.Plugins) -> None:
    async def work(run: Run) -> None:
        await compare_methods(run)
        conclude(run)
        out = Console(highlight=False, soft_wrap=True)
        out.print(bench_table(run.store))
        for line in bench_lines(run.store):
            out.print(line, markup=False)
        for path in write_files(run.store, run.folder):
            out.print(f"{path}", markup=False)

    perform(config, folder, found, work, again="bench")
