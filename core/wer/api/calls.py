"""`wer.refine`, `wer.evaluate`, `wer.compare` and `wer.train`: what each makes of its words."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, Unpack, get_args

import attrs

from wer import folders, jobs, plugins
from wer.api.parts import Env, environments
from wer.api.performing import Performance, awaited, blocking
from wer.api.words import Words, configured
from wer.configuration import MAY_CHANGE, RunConfig
from wer.errors import ConfigError
from wer.jobs import Job
from wer.loop.checking import check_names, demand_models
from wer.loop.domains import domains
from wer.loop.domains import environments as made
from wer.records import Json, Split
from wer.reports.forecast import demand_possible, forecast
from wer.reports.gating import Rule
from wer.skills import load_skill

T = TypeVar("T")


def _refine(
    env: Env | None = None,
    skill: str | os.PathLike[str] | None = None,
    *,
    rounds: int | None = None,
    trials: int | None = None,
    measure: bool = True,
    **words: Unpack[Words],
) -> Performance[Any]:
    """Revise a skill from what happens on the training tasks, and measure it beside no skill and the old one.

    Args:
        env: A `wer.Domain`, an installed environment's name, or ``file.py:NAME``; or several.
        skill: A SKILL.md or its folder, or `Run.best` of another run; None has a model draft one a task.
        rounds: Revisions of each training task's skill; 2 by default.
        trials: Rollouts a test task under each condition; 3 by default.
        measure: False leaves the test split alone, as ``wer refine`` does.
        words: See `wer.api.words.Words`.

    Returns:
        The run: ``run.table``, ``run.diff``, ``run.best.save(folder)``.

    Raises:
        WerError: Whatever the user can act on; a note says how a run goes on that had begun.
    """
    settings: dict[str, Json] = {
        "refinement.rounds": rounds,
        "evaluation.trials": trials,
    }
    if skill is not None:
        load_skill(Path(skill))  # refused now, if it is none
        settings["seed_skill"] = str(Path(skill).resolve())
    if measure:
        return _prepared(jobs.protocol(), env, words, {**settings, **_UNTRAINED})
    return _prepared(jobs.refinement(), env, words, settings)


def _evaluate(
    env: Env | None = None,
    skill: str | os.PathLike[str] | None = None,
    *,
    split: Split = "test",
    trials: int | None = None,
    aa: bool = False,
    against: str | os.PathLike[str] | None = None,
    no_regression: float | None = None,
    **words: Unpack[Words],
) -> Performance[Any]:
    """Measure Pass@1 of a skill beside no skill, or against an older skill; without one, of a writer's skills.

    Args:
        env: As in `wer.refine`.
        skill: A SKILL.md or its folder, or `Run.best`. None measures what ``writer`` makes of seed skills.
        split: ``test`` or ``train``.
        trials: Rollouts a task under each condition; 3 by default.
        aa: Measure the skill again, with other seeds: how much is noise.
        against: An older skill that this one must beat; ``run.gate.answer`` says whether it does.
        no_regression: With ``against``: enough that it is not worse by more than so many points.
        words: See `wer.api.words.Words`.

    Returns:
        The run: ``run.table``, ``run.gate``.

    Raises:
        WerError: As for `wer.refine`.
    """
    settings: dict[str, Json] = {"evaluation.trials": trials}
    if no_regression is not None and against is None:
        raise ConfigError("no_regression says what is enough beside an older skill: give that as against.")
    if skill is None:
        if words.get("writer") is None or split != "test" or against is not None or aa:
            raise ConfigError(
                "there is no skill to evaluate. Give a SKILL.md or its folder; or give writer alone, which is measured "
                "on the test split."
            )
        return _prepared(jobs.protocol("eval"), env, words, {**settings, **_UNTRAINED})
    if against is not None:
        rule = Rule(margin=None if no_regression is None else no_regression / 100)
        gating = jobs.gating(load_skill(Path(skill)), load_skill(Path(against)), rule, split=split)
        return _prepared(gating, env, words, settings)
    measurement = jobs.measurement(load_skill(Path(skill)), split=split, again=aa)
    return _prepared(measurement, env, words, settings)


def _compare(
    env: Env | None = None,
    *skills: str | os.PathLike[str],
    split: Split = "test",
    trials: int | None = None,
    **words: Unpack[Words],
) -> Performance[Any]:
    """Compare skills on the same tasks and seeds: the others with the first, which is measured twice.

    Args:
        env: As in `wer.refine`.
        skills: Two or more: a SKILL.md, its folder, a run or its folder, whose refined skills are taken.
        split: ``test`` or ``train``.
        trials: Rollouts a task of each skill; 3 by default.
        words: See `wer.api.words.Words`.

    Returns:
        The run: ``run.table``, with what of the differences is noise.

    Raises:
        WerError: As for `wer.refine`.
    """
    if len(skills) < 2:
        raise ConfigError(f"{len(skills)} skills are given, and a comparison takes two or more.")
    compared = jobs.comparison(jobs.named_skills([Path(skill) for skill in skills]), split=split)
    return _prepared(compared, env, words, {"evaluation.trials": trials})


def _train(env: Env | None = None, **words: Unpack[Words]) -> Performance[Any]:
    """The whole protocol, as ``wer run``: seed skills, training, refinement, merge, and the test split.

    Args:
        env: As in `wer.refine`.
        words: See `wer.api.words.Words`.

    Returns:
        The run: ``run.table``, ``run.diff``, ``run.best``, and ``run.folder`` with the trained writer.

    Raises:
        WerError: As for `wer.refine`.
    """
    return _prepared(jobs.protocol(), env, words, {})


refine, refine_later = blocking(_refine), awaited(_refine)
evaluate, evaluate_later = blocking(_evaluate), awaited(_evaluate)
compare, compare_later = blocking(_compare), awaited(_compare)
train, train_later = blocking(_train), awaited(_train)

_UNTRAINED: Mapping[str, Json] = {"training.phases": 0, "evaluation.conditions": ["none", "seed", "refined"]}


def _prepared(job: Job[T], env: Env | None, words: Words, more: Mapping[str, Json]) -> Performance[T]:
    """Check everything that costs nothing."""
    if job.plan is not None and job.plan.split not in get_args(Split):
        raise ConfigError(f"split is {job.plan.split!r}, expected one of {', '.join(get_args(Split))}.")
    named = environments(env, words.get("tasks"), words.get("check"))
    config = configured(list(named), words, more)
    found = plugins.load().holding({name: held for name, held in named.items() if held is not None})
    check_names(config, found)
    chosen = domains(config, made(config, found), test_limit=config.evaluation.test_limit)
    demand_possible(config, chosen, job.plan)
    root, resumed, progress = Path(words.get("runs") or "runs"), words.get("resume"), words.get("progress")
    folder = folders.find(root, str(resumed)) if resumed is not None else None
    demand_models(config, found, writes=job.plan is None or job.plan.writes)
    if folder is not None:
        _demand_same(folder, config, job.command)
    return Performance(
        job=job,
        config=config,
        plugins=found,
        rollouts=forecast(config, chosen, found, job.plan).total,
        root=root,
        folder=folder,
        progress=True if progress is None else progress,
    )


def _demand_same(folder: Path, config: RunConfig, command: str) -> None:
    """Refuse to go on in a folder with other settings than it began with.

    Raises:
        ConfigError: With the settings that differ.
    """
    folders.demand_command(folder, command)
    folders.demand_store(folder)
    before, now = (dict(_flat(attrs.asdict(each))) for each in (folders.configuration(folder), config))
    differing = [key for key in {**before, **now} if before.get(key) != now.get(key)]
    fixed = [key for key in differing if not key.startswith(MAY_CHANGE)]
    if fixed:
        raise ConfigError(
            f"{', '.join(fixed)} differ from the settings with which {folder.name!r} began. Give the same, or leave "
            "resume out for a new run; limits, caps, prices, trackers, concurrency, workers and the runner may change."
        )


def _flat(tree: Mapping[str, Json], above: str = "") -> list[tuple[str, Json]]:
    return [
        pair
        for key, value in tree.items()
        for pair in (
            _flat(value, f"{above}{key}.")
            if isinstance(value, Mapping) and value
            else [(f"{above}{key}", value)]
        )
    ]
