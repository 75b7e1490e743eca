"""``wer eval``: Pass@1 of a skill, or of what a writer makes of seed skills, beside no skill."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.console import Console

from wer import plugins
from wer.cli.asked import Asked
from wer.cli.forecast import foresee
from wer.cli.options import DryRun, Runs, Settings, Whole
from wer.cli.performing import going_on, new_folder, perform, report
from wer.configuration import RunConfig
from wer.errors import ConfigError
from wer.reports.gating import EXIT, Gate
from wer.skills import load_skill


def evaluate(
    skill: Path | None = None,
    *,
    settings: Settings = Settings(),  # noqa: B008
    split: Literal["train", "test"] = "test",
    trials: Annotated[
        Whole | None, Parameter(help="Rollouts a task under each condition. Default: 3.")
    ] = None,
    aa: Annotated[
        bool,
        Parameter(help="Measure the skill again, with other seeds: how much is noise.", negative=()),
    ] = False,
    against: Annotated[
        Path | None,
        Parameter(help="Compare with this older skill instead of no skill, only until the answer is clear."),
    ] = None,
    no_regression: Annotated[
        float | None,
        Parameter(
            help="With --against: enough that it is not worse by more than so many points of Pass@1, such as 5."
        ),
    ] = None,
    gate: Annotated[
        bool,
        Parameter(
            help="With --against: end with status 0 if it is better (or not worse, with --no-regression), 1 if it is "
            "worse, 2 if it can't be told.",
            negative=(),
        ),
    ] = False,
    resume: Annotated[
        str | None,
        Parameter(help="Go on with this evaluation (id or folder): no finished rollout is paid twice."),
    ] = None,
    dry_run: DryRun = False,
    runs: Runs = Path("runs"),
) -> None:
    """Measure Pass@1 of a skill, paired by task and seed with no skill, with intervals.

    Without a skill a writer is measured, such as the checkpoint of a phase: its seed skills, revised
    by it and merged, on the test split. `wer eval --env bfcl --backend openrlhf --writer
    runs/RUN/checkpoints/phase-1/policy/merged --preset paper-open`.

    As a gate for pull requests: `wer eval new/SKILL.md --against old/SKILL.md --gate --env shop.py:shop --trials 6`.
    It stops as soon as the answer is clear, at an error rate of 5 % over all looks, and writes gate.md, gate.xml
    (JUnit) and gate.json. Without --gate the same is said, and the exit status is 0 whatever it is.

    Args:
        skill: A SKILL.md or its folder.
        split: Tasks to run. Look at the test split once, when you are done choosing.
    """
    found = plugins.load()
    if resume is None:
        asked = _asked(skill, against, split, aa, no_regression, gate)
        _leave_if_equal(asked)
        config = _resolved(asked, settings, trials)
        folder = None
    elif skill or against or aa or gate or split != "test" or (no_regression, trials) != (None, None):
        raise ConfigError(
            "an evaluation that goes on knows what it was asked: give --resume RUN without a skill, --against, "
            "--no-regression, --gate, --split, --trials and --aa."
        )
    else:
        folder, config = going_on("eval", settings, runs, resume)
        asked = Asked.of(folder)
    job = asked.job()
    foresee(config, found, job.plan)
    if dry_run:
        return
    if folder is None:
        folder = new_folder(config, runs, found, command=job.command, plan=job.plan)
        asked.keep(folder)
    answer = perform(config, folder, found, job.work, again="eval")
    report(folder, config)
    if isinstance(answer, Gate):
        _tell(answer, folder)
        if asked.gate:
            raise SystemExit(EXIT[answer.answer])


def _asked(
    skill: Path | None,
    against: Path | None,
    split: Literal["train", "test"],
    aa: bool,
    no_regression: float | None,
    gate: bool,
) -> Asked:
    """What the options ask for.

    Raises:
        ConfigError: They don't go together.
    """
    if skill is None and (against or aa):
        raise ConfigError("--against and --aa are about a skill: name a SKILL.md or its folder.")
    if against is None and (gate or no_regression is not None):
        raise ConfigError(
            "--gate and --no-regression ask how a skill stands beside an older one: give that with --against."
        )
    if against is not None and aa:
        raise ConfigError(
            "--aa measures noise beside no skill; a gate has its error rate. Leave one of them out."
        )
    if skill is None and split != "test":
        raise ConfigError(
            "a writer revises skills on the training split: it can only be measured on the other."
        )
    return Asked(
        skill=load_skill(skill) if skill else None,
        against=load_skill(against) if against else None,
        split=split,
        aa=aa,
        no_regression=no_regression,
        gate=gate,
    )


def _leave_if_equal(asked: Asked) -> None:
    """Of two skills with the same content nothing is measured: neither is better or worse."""
    if asked.skill is None or asked.against is None or asked.skill.id != asked.against.id:
        return
    Console().print("the two skills are the same: there is nothing to measure")
    raise SystemExit(EXIT["undecided"] if asked.gate and asked.no_regression is None else 0)


def _resolved(asked: Asked, settings: Settings, trials: int | None) -> RunConfig:
    """The configuration; for a writer that of the protocol without its training."""
    if asked.skill is not None:
        return settings.resolve(evaluation__trials=trials)
    if settings.writer is None:
        raise ConfigError(
            "nothing to evaluate: name a SKILL.md or its folder, or --writer with a model or a trained "
            "checkpoint's folder."
        )
    conditions = ["none", "seed", "refined"]
    return settings.resolve(evaluation__trials=trials, evaluation__conditions=conditions, training__phases=0)


def _tell(answer: Gate, folder: Path) -> None:
    """Print what a gate found, and where it is written."""
    out = Console(highlight=False, soft_wrap=True)
    for line in answer.lines():
        out.print(line, markup=False)
    for path in answer.write(folder):
        out.print(str(path), markup=False)
