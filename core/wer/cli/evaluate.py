"""``wer eval``: Pass@1 of a skill, or of what a writer makes of seed skills, beside no skill."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.console import Console

from wer import plugins
from wer.cli.forecast import foresee
from wer.cli.options import DryRun, Runs, Settings
from wer.cli.performing import conclude, create_and_perform
from wer.errors import ConfigError
from wer.gate import OLD, gate
from wer.loop.measuring import AGAIN, measure
from wer.loop.opening import Run
from wer.loop.running import publish, run_protocol
from wer.records import NO_SKILL, Skill, Split
from wer.reports.benching import bench_lines
from wer.reports.forecast import Plan
from wer.reports.gating import EXIT, Gate, Rule
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
    foresee(config, found, Plan(conditions=3 if aa else 2, split=split))
    if dry_run:
        return

    async def work(run: Run) -> None:
        conditions = {
            "none": {domain.name: NO_SKILL for domain in run.domains},
            "skill": {domain.name: measured for domain in run.domains},
        }
        publish(run, {"skill": conditions["skill"]})
        run.store.put_document("about", "split", split)
        await measure(run, conditions, split=split)
        if aa:
            run.store.put_document("about", "bases", "skill")
            await measure(run, {AGAIN: conditions["skill"]}, split=split, purpose="again")
        conclude(run)
        for line in bench_lines(run.store, base="skill"):
            Console(highlight=False, soft_wrap=True).print(line, markup=False)

    create_and_perform("eval", config, runs, found, work)


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
    foresee(config, found, Plan(conditions=2, split=split))
    if dry_run:
        return
    answers: list[Gate] = []

    async def work(run: Run) -> None:
        names = [domain.name for domain in run.domains]
        run.store.put_document("about", "split", split)
        run.store.put_document("about", "bases", OLD)
        answers.append(
            await gate(run, dict.fromkeys(names, new), dict.fromkeys(names, old), rule, split=split)
        )
        conclude(run)

    folder = create_and_perform("eval", config, runs, found, work)
    out = Console(highlight=False, soft_wrap=True)
    for line in answers[0].lines():
        out.print(line, markup=False)
    for path in answers[0].write(folder):
        out.print(str(path), markup=False)
    raise SystemExit(EXIT[answers[0].answer])


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

    async def work(run: Run) -> None:
        await run_protocol(run)
        conclude(run)

    create_and_perform("eval", config, runs, found, work)
