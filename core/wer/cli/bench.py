"""``wer bench``: several methods from one start, at equal cost, in one table."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from wer import folders, plugins
from wer.cli.forecast import foresee
from wer.cli.options import DryRun, Runs, Settings, listed
from wer.cli.performing import conclude, perform
from wer.configuration import RunConfig
from wer.errors import ConfigError
from wer.loop.benching import bench as compare_methods
from wer.loop.checking import check_names
from wer.loop.opening import Run
from wer.methods import configurations, named, over_seeds, recipe, writers
from wer.records import Json
from wer.reports.benching import bench_lines, bench_table, write_files
from wer.reports.forecast import Plan


def bench(
    *,
    settings: Settings = Settings(),  # noqa: B008
    methods: Annotated[
        str | None,
        Parameter(
            help="Separated by commas: prompted,skiller,trace2skill,skill_r1,wer,gepa. none and seed are added."
        ),
    ] = None,
    recipe_: Annotated[
        str | None,
        Parameter(
            name="--recipe", help="A grid after the paper's tables: main, phases, depth, writers, ablations."
        ),
    ] = None,
    writers_: Annotated[
        str | None, Parameter(name="--writers", help="Models for --recipe writers, separated by commas.")
    ] = None,
    train_seeds: Annotated[
        str, Parameter(help="Each method once a seed, for the spread over trainings: 0,1,2.")
    ] = "",
    search_rollouts: Annotated[
        int | None, Parameter(help="Rollouts that each method may search with.")
    ] = None,
    search_tokens: Annotated[
        int | None, Parameter(help="Tokens that each method may search with, all roles.")
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
        folder = folders.find(runs, resume)
        folders.demand_command(folder, "bench")
        folders.demand_store(folder)
        _perform(settings.resume(folder / "run.toml"), folder, found)
        return
    config = settings.resolve(budget__search_rollouts=search_rollouts, budget__search_tokens=search_tokens)
    chosen = _chosen(methods, recipe_, writers_)
    tables = {name: {**table, **config.methods.get(name, {})} for name, table in chosen.items()}
    tables |= {name: dict(table) for name, table in config.methods.items() if not chosen}
    if not tables:
        raise ConfigError(
            "nothing to compare: give --methods, --recipe, or tables [methods.NAME] in wer.toml. "
            "For one method beside its baselines there is wer run."
        )
    seeds = [int(seed) for seed in listed("--train-seeds", train_seeds)] if train_seeds else [config.seed]
    config = settings.resolve(
        budget__search_rollouts=search_rollouts,
        budget__search_tokens=search_tokens,
        methods=dict(over_seeds(tables, seeds)),
    )
    for each in configurations(config).values():
        check_names(each, found)
    foresee(config, found, _plan(config))
    if not dry_run:
        _perform(config, folders.create(runs, config, command="bench", now=datetime.now(UTC)), found)


def _chosen(methods: str | None, name: str | None, models: str | None) -> Mapping[str, Mapping[str, Json]]:
    """What the options ask for; nothing when they ask for nothing."""
    if (name == "writers") != (models is not None):
        raise ConfigError(
            "--recipe writers and --writers openai/a,openai/b belong together: give both or neither."
        )
    if methods is not None and name is not None:
        raise ConfigError("--methods and --recipe both say what is compared: give one.")
    if models is not None:
        return writers(listed("--writers", models))
    if name is not None:
        return recipe(name)
    return named(listed("--methods", methods)) if methods is not None else {}


def _plan(config: RunConfig) -> Plan:
    """The most that all methods together perform."""
    each = configurations(config).values()
    return Plan(
        scans=2,
        phases=sum(method.training.phases for method in each),
        revised=len(each),
        merged=len(each) + 1,
        conditions=len(each) + 3,
    )


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

    perform(config, folder, found, work, again=f"wer bench --resume {folder}")
