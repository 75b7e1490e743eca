"""``wer eval``: Pass@1 of a skill, or of what a writer makes of seed skills, beside no skill."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.console import Console

from wer import jobs, plugins
from wer.cli.forecast import foresee
from wer.cli.options import DryRun, Runs, Settings
from wer.cli.performing import perform_job, report
from wer.errors import ConfigError
from wer.records import Skill, Split
from wer.reports.gating import EXIT, Rule
from wer.skills import load_skill


def evaluate(
    skill: Path | None = None,
    *,
    settings: Settings = Settings(),  # noqa: B008
    split: Literal["train", "test"] = "test",
    trials: Annotated[int | None, Parameter(help="Rollouts a task under each condition. Default: 3.")] = None,
    aa: Annotated[
        bool,
        Parameter(help="Measure the skill again, with other seeds: how much is noise.", negative=()),
    ] = False,
    against: Annotated[
        Path | None,
        Parameter(help="An older skill that this one must beat: exit 0 better, 1 worse, 2 undecided."),
    ] = None,
    no_regression: Annotated[
        float | None,
        Parameter(
            help="With --against: enough that it is not worse by more than so many points of Pass@1, such as 5."
        ),
    ] = None,
    dry_run: DryRun = False,
    runs: Runs = Path("runs"),
) -> None:
    """Measure Pass@1 of a skill, paired by task and seed with no skill, with intervals.

    Without a skill a writer is measured, such as the checkpoint of a phase: its seed skills, revised
    by it and merged, on the test split. `wer eval --env bfcl --backend openrlhf --writer
    runs/RUN/checkpoints/phase-1/policy/merged --preset paper-open`.

    As a gate for pull requests: `wer eval new/SKILL.md --against old/SKILL.md --env shop.py:shop --trials 6`. It stops
    as soon as the answer is clear, at an error rate of 5 % over all looks, and writes gate.md, gate.xml (JUnit) and
    gate.json.

    Args:
        skill: A SKILL.md or its folder.
        split: Tasks to run. Look at the test split once, when you are done choosing.
    """
    if skill is None:
        _evaluate_writer(settings, split, trials, dry_run, runs)
        return
    if against is not None:
        _gate(settings, load_skill(skill), load_skill(against), split, trials, no_regression, dry_run, runs)
        return
    if no_regression is not None:
        raise ConfigError(
            "--no-regression says what is enough beside an older skill: give that with --against."
        )
    measured = load_skill(skill)
    config = settings.resolve(evaluation__trials=trials)
    found = plugins.load()
    job = jobs.measurement(measured, split=split, again=aa)
    foresee(config, found, job.plan)
    if dry_run:
        return
    folder, _ = perform_job(job, config, runs, found)
    report(folder, config)


def _gate(
    settings: Settings,
    new: Skill,
    old: Skill,
    split: Split,
    trials: int | None,
    points: float | None,
    dry_run: bool,
    runs: Path,
) -> None:
    """Compare with an older skill, and end with the status that says how that came out."""
    rule = Rule(margin=None if points is None else points / 100)
    config = settings.resolve(evaluation__trials=trials)
    found = plugins.load()
    job = jobs.gating(new, old, rule, split=split)
    foresee(config, found, job.plan)
    if dry_run:
        return
    folder, answer = perform_job(job, config, runs, found)
    report(folder, config)
    out = Console(highlight=False, soft_wrap=True)
    for line in answer.lines():
        out.print(line, markup=False)
    for path in answer.write(folder):
        out.print(str(path), markup=False)
    raise SystemExit(EXIT[answer.answer])


def _evaluate_writer(settings: Settings, split: str, trials: int | None, dry_run: bool, runs: Path) -> None:
    """Perform the protocol without its training: what this writer's revisions are worth."""
    if settings.writer is None:
        raise ConfigError(
            "nothing to evaluate: name a SKILL.md or its folder, or --writer with a model or a trained "
            "checkpoint's folder."
        )
    if split != "test":
        raise ConfigError(
            "a writer revises skills on the training split: it can only be measured on the other."
        )
    conditions = ["none", "seed", "refined"]
    config = settings.resolve(
        evaluation__trials=trials, evaluation__conditions=conditions, training__phases=0
    )
    found = plugins.load()
    foresee(config, found)
    if dry_run:
        return
    folder, _ = perform_job(jobs.protocol("eval"), config, runs, found)
    report(folder, config)
