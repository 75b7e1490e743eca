"""``wer eval``: Pass@1 of a skill beside no skill and the agent that does nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.console import Console

from wer import plugins
from wer.cli import options
from wer.cli.performing import create_and_perform
from wer.configuration import resolve
from wer.measuring import measure
from wer.opening import Run
from wer.records import NO_SKILL
from wer.reporting import print_report, write_report
from wer.running import publish
from wer.skills import load_skill


def evaluate(
    skill: Path,
    *,
    env: options.Env = None,
    domains: options.Domains = None,
    executor: options.ExecutorModel = None,
    sandbox: options.SandboxName = None,
    verifier: options.VerifierName = None,
    split: Literal["train", "test"] = "test",
    trials: Annotated[int | None, Parameter(help="Rollouts a task under each condition. Default: 3.")] = None,
    preset: options.Preset = None,
    config: options.ConfigFile = None,
    sets: options.Sets = None,
    seed: options.Seed = None,
    max_rollouts: options.MaxRollouts = None,
    max_tokens: options.MaxTokens = None,
    max_cost: options.MaxCost = None,
    runs: options.Runs = Path("runs"),
) -> None:
    """Measure Pass@1 of a skill, paired by task and seed with no skill, with intervals.

    Args:
        skill: A SKILL.md or its folder.
        split: Tasks to run. Look at the test split once, when you are done choosing.
    """
    measured = load_skill(skill)
    resolved = resolve(
        preset,
        options.config_file(config),
        sets or (),
        options.overrides(
            env=env,
            domains=domains,
            executor=executor,
            sandbox=sandbox,
            verifier=verifier,
            seed=seed,
            evaluation__trials=trials,
            budget__max_rollouts=max_rollouts,
            budget__max_tokens=max_tokens,
            budget__max_cost=max_cost,
        ),
    )

    async def work(run: Run) -> None:
        conditions = {
            "none": {domain.name: NO_SKILL for domain in run.domains},
            "seed": {domain.name: measured for domain in run.domains},
        }
        publish(run, {"seed": conditions["seed"]})
        await measure(run, conditions, split=split)
        write_report(run.folder, run.store, resolved)
        print_report(Console(), run.store, run.folder, resolved)

    create_and_perform(resolved, runs, plugins.load(), work)
